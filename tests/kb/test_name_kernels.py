"""Compiled kernels against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_xel.kb.key_table import hash_name
from spacy_xel.kb.name_kernels import hash_bytes, keep_longest


@given(st.text(min_size=1))
def test_hash_is_spacys(text):
    data = np.frombuffer(text.encode("utf8", "replace"), dtype=np.uint8)
    expected = hash_name(text.encode("utf8", "replace").decode())
    assert int(hash_bytes(data, 0, len(data), np.uint64(1))) == expected


def brute_force_longest(spans, taken):
    taken = list(taken)
    kept = []
    for start, end in sorted(spans, key=lambda s: (-(s[1] - s[0]), s[0])):
        if not any(taken[start:end]):
            kept.append((start, end))
            taken[start:end] = [1] * (end - start)
    return sorted(kept)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=12),
    st.lists(st.integers(0, 1), min_size=15, max_size=15),
)
def test_keep_longest(places, taken):
    spans = [(start, start + length) for start, length in places]
    array = np.array(spans, dtype=np.int32).reshape(-1, 2)
    kept = np.zeros(len(spans), dtype=np.uint8)
    keep_longest(array, np.array(taken, dtype=np.uint8), kept)
    chosen = [tuple(span) for span in array[kept.astype(bool)].tolist()]
    assert sorted(chosen) == brute_force_longest(spans, taken)
