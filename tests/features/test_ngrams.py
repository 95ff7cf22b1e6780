"""Hashed n-gram features against plain Python."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_xel.features.ngrams import NgramFeatures, NgramSettings, ngram_names
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.types import Query

SETTINGS = NgramSettings(window=20, longest_characters=4, context_stem=3)


def reference_ngrams(query, settings):
    """Return n-grams by kind, as strings."""
    mention = normalize_name(query.mention)
    left = query.text[max(0, query.start - settings.window) : query.start]
    context = f"{left} \n {query.text[query.end : query.end + settings.window]}".lower()
    padded = f" {mention} "
    sizes = range(settings.shortest_characters, settings.longest_characters + 1)
    return {
        "mention": words_of(mention, settings.longest_words),
        "context": words_of(context, settings.longest_words)
        + [f"{w[:3]}-" for (w,) in words_of(context, 1) if len(w) > settings.context_stem],
        "characters": [padded[i : i + n] for n in sizes for i in range(len(padded) - n + 1)],
    }


def words_of(text, longest):
    words = re.findall(r"[0-9a-zA-Z\u0080-\U0010ffff]+", text)
    sizes = range(1, longest + 1)
    return [tuple(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)]


def reference_vectors(queries, settings):
    """Return tf-idf vectors as dicts."""
    grams = [reference_ngrams(query, settings) for query in queries]
    frequency = Counter((kind, g) for row in grams for kind in row for g in set(row[kind]))
    weights = {
        "mention": settings.mention_words,
        "context": settings.context_words,
        "characters": settings.mention_characters,
    }
    rows = []
    for row in grams:
        vector = {}
        for kind, found in row.items():
            counts = Counter(found)
            values = {
                (kind, g): (1 + math.log(n))
                * (math.log((1 + len(queries)) / (1 + frequency[kind, g])) + 1)
                for g, n in counts.items()
            }
            norm = math.sqrt(sum(v * v for v in values.values()))
            vector |= {key: weights[kind] * v / norm for key, v in values.items()}
        rows.append(vector)
    return rows


WORDS = ["Paris", "saw", "Troy", "é", "東京", "x-ray", "42", "the"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=6)


@given(TEXTS, st.integers(0, 10), st.integers(1, 6))
def test_agrees_with_plain_python(texts, start, length):
    queries = [Query(t, min(start, len(t) - 1), min(start + length, len(t))) for t in texts]
    matrix = NgramFeatures.fit(queries, SETTINGS).transform(queries)
    expected = reference_vectors(queries, SETTINGS)
    assert matrix.shape[1] == len({key for row in expected for key in row})
    # Columns have no names: compare lengths, and all products between rows.
    dense = matrix.toarray()
    for i, one in enumerate(expected):
        assert np.count_nonzero(dense[i]) == len(one)
        assert sorted(dense[i][dense[i] > 0]) == pytest.approx(sorted(one.values()), rel=1e-4)
        for j, other in enumerate(expected):
            product = sum(value * other.get(key, 0) for key, value in one.items())
            assert dense[i] @ dense[j] == pytest.approx(product, rel=1e-3, abs=1e-5)


def test_one_pass_gives_what_two_give():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(9_000)]  # several batches, repeats
    queries = [Query(text, 2, min(12, len(text))) for text in texts]
    features, matrix = NgramFeatures.fit_transform(iter(queries), SETTINGS)
    other = NgramFeatures.fit(queries, SETTINGS)
    assert other.vocabulary.tolist() == features.vocabulary.tolist()
    for threads in (1, 2):
        assert (other.transform(queries, threads=threads) != matrix).nnz == 0
    assert (features.transform(queries[5_000:5_010]) != matrix[5_000:5_010]).nnz == 0


def test_unknown_ngrams_and_min_count():
    queries = [Query("Paris fell", 0, 5), Query("Paris rose", 0, 5)]
    features = NgramFeatures.fit(queries, NgramSettings(min_count=2))
    unknown = features.transform([Query("zzz", 0, 3), Query("Paris", 0, 5)])
    assert unknown[0].nnz == 0
    assert unknown[1].nnz == features.dimension
    assert features.transform([Query("", 0, 0)]).nnz == 0


def test_a_kind_can_be_left_out():
    query = Query("Paris fell", 0, 5)
    settings = NgramSettings(mention_words=0, context_words=0)
    matrix = NgramFeatures.fit([query], settings).transform([query])
    assert matrix.nnz == len({" paris "[i : i + n] for n in (3, 4) for i in range(8 - n)})


def test_arrays_round_trip():
    queries = [Query("Paris fell", 0, 5)]
    features = NgramFeatures.fit(queries)
    copy = NgramFeatures.from_arrays(features.settings, features.arrays())
    assert (copy.transform(queries) != features.transform(queries)).nnz == 0


def test_every_column_has_a_name():
    query = Query("the town Paris in Lamar County", 9, 14)
    settings = NgramSettings(mention_name=1.0, context_stem=4)
    features = NgramFeatures.fit([query], settings)
    names = features.columns(ngram_names(query, features.settings))
    assert set(names) == set(features.transform([query]).indices)
    assert {'"paris"', "||paris||", "coun-", "lamar", "lamar county", "| par|", "|ris |"} <= set(
        names.values()
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("longest_words", 0),
        ("window", -5),
        ("shortest_characters", 9),
        ("mention_words", math.nan),
        ("context_words", -1.0),
        ("min_count", 0),
    ],
)
def test_bad_settings(name, value):
    with pytest.raises(ValueError, match="must be"):
        NgramSettings(**{name: value})
