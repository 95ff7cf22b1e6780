"""Differences between knowledge bases."""

import json

from spacy_xel.kb.build import build_store
from spacy_xel.kb.diff import at_version, diff
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import Entity


def entities(kb):
    return {kb.kb_id(row): kb.entity(row) for row in kb.rows()}


def expected(old, new):
    """Return (id, old, new) of what differs, by comparing everything."""
    before, after = entities(old), entities(new)
    ids = {*before, *after}
    return {
        (kb_id, before.get(kb_id), after.get(kb_id))
        for kb_id in ids
        if before.get(kb_id) != after.get(kb_id)
    }


def found(old, new):
    changes = [(change.kb_id, change.old, change.new) for change in diff(old, new)]
    assert len(set(changes)) == len(changes)
    return set(changes)


def test_versions_of_one_store(small_kb):
    small_kb.add([Entity("X", "Atlantis")])
    small_kb.remove(["Q60", "X"])
    small_kb.add([Entity("Q90", "Lutetia")], replace=True)
    small_kb.rollback(1)
    small_kb.add([Entity("Q60", "New Amsterdam")], replace=True)
    versions = [at_version(small_kb, version) for version in range(small_kb.version + 1)]
    for old in versions:
        for new in versions:
            assert found(old, new) == expected(old, new)
    assert not found(versions[1], versions[4])
    assert len(found(versions[0], versions[5])) == 2


def test_two_stores(small_kb, tmp_path):
    lines = [
        {"id": "Q90", "title": "Paris", "aliases": ["City of Light"], "prior": 98,
         "description": "capital of France on the Seine", "types": ["city"]},
        {"id": "Q22647", "title": "Troy", "prior": 2},
        {"id": "N", "title": "Nineveh"},
    ]  # fmt: skip
    source = tmp_path / "other.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    build_store(source, tmp_path / "other")
    other = XelKnowledgeBase.open(tmp_path / "other")
    other.add([Entity("M", "Memphis")])
    assert found(small_kb, other) == expected(small_kb, other)
    kinds = sorted(change.kind for change in diff(small_kb, other))
    assert kinds == ["added"] * 2 + ["changed"] + ["removed"] * 6
