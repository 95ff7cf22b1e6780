"""Compiled kernels against plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_xel.kb.key_table import hash_name
from spacy_xel.kb.name_kernels import hash_bytes, keep_longest, squeeze_spaces


@given(st.text(min_size=1))
def test_hash_is_spacys(text):
    data = np.frombuffer(text.encode("utf8", "replace"), dtype=np.uint8)
    expected = hash_name(text.encode("utf8", "replace").decode())
    assert int(hash_bytes(data, 0, len(data), np.uint64(1))) == expected


@given(st.lists(st.text(st.sampled_from("ab é\n\t"), min_size=1, max_size=5), max_size=8))
@settings(max_examples=300)
def test_squeeze_spaces_agrees_with_split(tokens):
    text = "".join(tokens)
    ends = np.cumsum([len(token) for token in tokens], dtype=np.int64)
    starts = ends - np.array([len(token) for token in tokens], dtype=np.int64)
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    out = np.empty(len(data), dtype=np.uint8)
    byte_starts, byte_ends = np.empty_like(starts), np.empty_like(ends)
    size = squeeze_spaces(data, starts, ends, out, byte_starts, byte_ends)
    assert out[:size].tobytes().decode().rstrip(" ") == " ".join(text.split())
    for i, token in enumerate(tokens):
        squeezed = out[byte_starts[i] : byte_ends[i]].tobytes().decode()
        if token == token.strip():
            assert squeezed == " ".join(token.split())
        elif not token.strip():
            assert squeezed == ""


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
