"""Texts put together from normal forms of tokens, against str.join."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions import token_forms
from spacy_xel.mentions.token_forms import TokenForms

WORDS = ["Paris", "the", "\n", " \t", "É", "ß", "東京", "\u00ad", "x" * 300]


def reference(words, spaces):
    text, places, needs_space = "", [], False
    for word, space in zip(words, spaces, strict=True):
        form = normalize_name(word)
        if form and needs_space and text:
            text += " "
        start = len(text.encode())
        text += form
        places.append((start, len(text.encode())))
        needs_space = space if form else needs_space or word.isspace()
    return text, places


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(WORDS), st.booleans()), max_size=20), max_size=4)
)
def test_agrees_with_join(texts):
    forms = TokenForms(normalize_name)
    for text in texts:
        check(forms, [word for word, _ in text], [space for _, space in text])


def check(forms, words, spaces):
    numbers = {word: hash(word) % 2**64 for word in words}
    by_number = {number: word for word, number in numbers.items()}
    keys = np.array([numbers[word] for word in words], dtype=np.uint64)
    joined = forms.join(keys, np.array(spaces, dtype=np.uint64), by_number.__getitem__)
    expected, places = reference(words, spaces)
    assert joined.data.tobytes().decode() == expected
    assert list(zip(joined.starts.tolist(), joined.ends.tolist(), strict=True)) == places


def test_many_tokens_and_forgetting(monkeypatch):
    monkeypatch.setattr(token_forms, "_MOST_FORMS", 30_000)
    forms = TokenForms(normalize_name)
    for round_number in range(5):
        words = [f"Word{round_number * 9_000 + i}" for i in range(10_000)]
        check(forms, words, [True] * len(words))
        assert len(forms._keys) <= 30_000
