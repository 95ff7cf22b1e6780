"""The alias table against algorithms 1 and 2 of the thesis, written out."""

import json
from collections import Counter, defaultdict

import pytest

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.retrieval.alias import AliasTable
from spacy_xel.types import AnnotatedText, Mention, Query

PAIRS = [
    *[("Paris", "city")] * 5, *[("Paris", "prince")] * 3, ("Paris", "town"),
    *[("PARIS", "town")] * 2, ("Ilion", "troy"), ("Troy", "troy"),
]  # fmt: skip


def construct_table(pairs, k):
    counts = defaultdict(Counter)
    for alias, entity in pairs:
        counts[alias][entity] += 1
    return {alias: [e for e, _ in counter.most_common(k)] for alias, counter in counts.items()}


@pytest.fixture
def kb(tmp_path):
    lines = [json.dumps({"id": e, "title": f"the {e}"}) for e in ("city", "prince", "town", "troy")]
    (tmp_path / "kb.jsonl").write_text("\n".join(lines))
    corpus = [AnnotatedText("", a, (Mention(0, len(a), (e,)),)) for a, e in PAIRS]
    build_store(tmp_path / "kb.jsonl", tmp_path / "kb", corpus=corpus)
    return XelKnowledgeBase.open(tmp_path / "kb")


@pytest.mark.parametrize("cased", [True, False])
@pytest.mark.parametrize("top_k", [1, 2, 10])
def test_follows_the_algorithms(kb, cased, top_k):
    pairs = PAIRS if cased else [(alias.lower(), entity) for alias, entity in PAIRS]
    expected = construct_table(pairs, top_k)
    table = AliasTable(top_k=top_k, cased=cased)
    table.initialize(kb, [])
    names = ["Paris", "PARIS", "paris", "Ilion", "Troy", "Sparta"]
    batch = table([Query(name, 0, len(name)) for name in names], 5)
    for name, rows, scores in zip(names, batch.rows, batch.scores, strict=True):
        found = [kb.kb_id(row) for row in rows.tolist() if row >= 0]
        assert found == expected.get(name if cased else name.lower(), [])
        assert list(scores) == sorted(scores, reverse=True)


def test_fewer_candidates_than_found(kb):
    table = AliasTable()
    table.initialize(kb, [])
    batch = table([Query("in Paris now", 3, 8)], 1)
    assert [kb.kb_id(row) for row in batch.rows[0]] == ["city"]
    assert table([], 3).rows.shape == (0, 3)


def test_bad_settings(kb):
    with pytest.raises(ValueError, match="top_k"):
        AliasTable(top_k=0)
    table = AliasTable()
    with pytest.raises(ValueError, match="not initialized"):
        table([Query("x", 0, 1)], 1)
    table.initialize(kb, [])
    with pytest.raises(ValueError, match="top_k"):
        table([Query("x", 0, 1)], 0)
