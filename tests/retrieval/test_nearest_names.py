"""Nearest names and fusion against brute force."""

import numpy as np
import pytest

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.retrieval.alias import make_alias_table
from spacy_xel.retrieval.hybrid import Hybrid, make_hybrid
from spacy_xel.retrieval.nearest_names.retriever import make_nearest_names
from spacy_xel.types import AnnotatedText, CandidateBatch, Mention, Query

MENTIONS = ["Paris", "paris, texas", "Troi", "New York", "ilium", "zzzz", "", "Tokyo tower", "x"]


def queries(names):
    return [Query(name, 0, len(name)) for name in names]


@pytest.fixture(scope="module")
def kb(small_store):
    return XelKnowledgeBase.open(small_store)


def slow_cosines(kb, retriever, mention: str) -> dict[int, float]:
    """Compare with every name, by the retriever's own features."""

    def weights(name):
        vector = retriever.features.transform(queries([name]))
        return {int(column): float(retriever.features.idf[column]) for column in vector.indices}

    best: dict[int, float] = {}
    first = weights(mention)
    for row in kb.rows():
        for name in kb.entity(row).names:
            second = weights(name)
            dot = sum(first[c] * second[c] for c in first.keys() & second.keys())
            norms = [sum(v * v for v in w.values()) ** 0.5 for w in (first, second)]
            if dot and all(norms):
                best[row] = max(best.get(row, 0.0), dot / norms[0] / norms[1])
    return best


@pytest.mark.parametrize("budget", [1, 3, 100_000])
def test_against_brute_force(kb, budget):
    retriever = make_nearest_names(budget=budget, abbreviations=False)
    retriever.initialize(kb, [])
    batch = retriever(queries(MENTIONS), 5)
    for mention, rows, scores in zip(MENTIONS, *map(np.ndarray.tolist, batch), strict=True):
        expected = slow_cosines(kb, retriever, normalize_name(mention))
        found = {row: score for row, score in zip(rows, scores, strict=True) if row >= 0}
        assert scores == sorted(scores, reverse=True)
        for row, score in found.items():
            assert score == pytest.approx(expected[row], rel=1e-4)
        if budget == 100_000:
            best = sorted(expected.values(), reverse=True)[:5]
            assert list(found.values()) == pytest.approx(best, rel=1e-4)


def test_names_of_texts_are_found(kb):
    texts = [AnnotatedText("1", "Lutetia", (Mention(0, 7, ("Q90",)), Mention(0, 7, ("gone",))))]
    retriever = make_nearest_names()
    retriever.initialize(kb, texts)
    batch = retriever(queries(["Lutetia"]), 3)
    assert (kb.kb_id(batch.rows[0, 0]), batch.scores[0, 0]) == ("Q90", pytest.approx(1.0))


def test_round_trips(kb, tmp_path):
    retriever = make_nearest_names()
    retriever.initialize(kb, [])
    retriever.to_disk(tmp_path)
    retriever.to_disk(tmp_path)
    expected = retriever(queries(MENTIONS), 4)
    other = make_nearest_names()
    other.from_disk(tmp_path)
    other.to_disk(tmp_path)
    third = make_nearest_names()
    third.from_bytes(retriever.to_bytes())
    for loaded in (other, third):
        loaded.attach(kb)
        assert all(map(np.array_equal, loaded(queries(MENTIONS), 4), expected))
    with pytest.raises(ValueError, match="other settings"):
        make_nearest_names(features={"shortest_characters": 2}).from_disk(tmp_path)


class Fixed:
    def __init__(self, rows, scores):
        self.batch = CandidateBatch(
            np.array([rows], dtype=np.int32), np.array([scores], dtype=np.float32)
        )

    def __call__(self, queries, k):
        return self.batch


def test_fusion():
    both = {"a": Fixed([1, 2, -1], [0.8, 0.2, -np.inf]), "b": Fixed([2, 3, 4], [0.9, 0.5, 0.1])}
    batch = Hybrid(both)(queries(["x"]), 3)
    assert batch.rows.tolist() == [[2, 1, 3]]
    assert batch.scores[0].tolist() == pytest.approx([0.55, 0.4, 0.25])
    batch = Hybrid(both, fusion="reciprocal_rank")(queries(["x"]), 3)
    assert batch.rows.tolist() == [[2, 1, 3]]
    assert batch.scores[0].tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62])


def test_hybrid_settings(kb):
    with pytest.raises(ValueError, match="at least one retriever"):
        make_hybrid({})
    with pytest.raises(ValueError, match="fusion"):
        make_hybrid({"a": make_alias_table()}, fusion="max")
    hybrid = make_hybrid({"a": make_alias_table()})
    hybrid.initialize(kb, [])
    assert hybrid([], 3).rows.shape == (0, 3)
    with pytest.raises(ValueError, match="top_k"):
        hybrid(queries(["Paris"]), 0)
