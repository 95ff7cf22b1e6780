"""The store against a dict, and against damage."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.kb.store import Store
from spacy_xel.types import AnnotatedText, Mention

NAMES = st.text(st.sampled_from("aAbBéßİ -'’1東"), min_size=1, max_size=6).filter(normalize_name)
ENTITIES = st.lists(
    st.tuples(NAMES, st.lists(NAMES, max_size=3), st.integers(0, 5)), min_size=1, max_size=12
)
MENTIONS = st.lists(st.tuples(NAMES, st.integers(-1, 14)), max_size=12)


def reference_table(entities, mentions, fold_case):
    """P(entity | name) by the definition: counts plus the share of the prior."""
    priors = {f"E{i}": prior for i, (_, _, prior) in enumerate(entities)}
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    nil: dict[str, int] = defaultdict(int)
    for i, (title, aliases, _) in enumerate(entities):
        for name in (title, *aliases):
            if key := normalize_name(name, fold_case=fold_case):
                counts[key].setdefault(f"E{i}", 0)
    for name, target in mentions:
        key = normalize_name(name, fold_case=fold_case)
        if target < 0:
            nil[key] += 1
        elif target < len(entities):
            counts[key][f"E{target}"] = counts[key].get(f"E{target}", 0) + 1
    table = {}
    for key, seen in counts.items():
        weight = sum(priors[e] + 1 for e in seen)
        total = sum(seen.values()) + nil[key] + 1
        table[key] = {e: (n + (priors[e] + 1) / weight) / total for e, n in seen.items()}
    return table


@given(ENTITIES, MENTIONS)
@settings(max_examples=60)
def test_store_agrees_with_a_dict(tmp_path_factory, entities, mentions):
    folder = tmp_path_factory.mktemp("store")
    lines = [
        {"id": f"E{i}", "title": title, "aliases": aliases, "prior": prior}
        for i, (title, aliases, prior) in enumerate(entities)
    ]
    (folder / "kb.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf8")
    corpus = [
        AnnotatedText("d", name, (Mention(0, len(name), (f"E{target}",) if target >= 0 else ()),))
        for name, target in mentions
    ]
    report = build_store(folder / "kb.jsonl", folder / "kb", corpus=corpus)
    kb = XelKnowledgeBase.open(folder / "kb")
    assert len(kb) == len(entities)
    assert report.mentions_unknown_id == sum(t >= len(entities) for _, t in mentions)
    for cased in (False, True):
        table = reference_table(entities, mentions, fold_case=not cased)
        index = kb.built.names_cased if cased else kb.built.names_uncased
        assert len(index) == len(table)
        queries = [*table, "zz", *(name for name, _ in mentions)]
        batch = kb.lookup_batch(queries, cased=cased)
        for key, found in zip(queries, batch, strict=True):
            expected = table.get(normalize_name(key, fold_case=not cased), {})
            assert found == kb.lookup(key, cased=cased)
            assert {kb.kb_id(row): p for row, p in found} == pytest.approx(expected, rel=1e-5)
            assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    for i, (title, aliases, prior) in enumerate(entities):
        entity = kb.get_entity(f"E{i}")
        assert (entity.title, entity.prior) == (title, prior)
        assert entity.aliases == tuple(dict.fromkeys(aliases))


def test_same_input_same_bytes(tmp_path, small_store, write_jsonl):
    from tests.conftest import SMALL_KB

    build_store(write_jsonl(SMALL_KB), tmp_path / "again", max_ram=1 << 20)
    manifest = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert manifest["files"] == json.loads((small_store / "manifest.json").read_text())["files"]


def test_titles_come_before_aliases_where_nothing_else_tells(tmp_path, write_jsonl):
    lines = [{"id": "A", "title": "x", "aliases": ["cold"]}, {"id": "B", "title": "cold"}]
    build_store(write_jsonl(lines), tmp_path / "kb")
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert [kb.kb_id(row) for row, _ in kb.lookup("Cold")] == ["B", "A"]


def test_bytes_round_trip(small_kb):
    copy = XelKnowledgeBase(small_kb.vocab).from_bytes(small_kb.to_bytes())
    assert copy.lookup("paris") == small_kb.lookup("paris")
    assert [copy.entity(row) for row in range(8)] == [small_kb.entity(row) for row in range(8)]


@pytest.mark.parametrize("name", ["priors.npy", "ids/keys.npy", "names_uncased/directory.npy"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_damage_is_noticed(small_kb, name, damage):
    path = Path(small_kb.path) / name
    data = bytearray(path.read_bytes())
    path.unlink()  # hard links share their data: write a new file
    if damage == "truncated":
        path.write_bytes(data[:-1])
    elif damage == "flipped":
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        Store.open(small_kb.path, verify=True)


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(FileNotFoundError, match="kb build"):
        Store.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        Store.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "other", "files": {}}')
    with pytest.raises(ValueError, match="format 'other'"):
        Store.open(tmp_path)


def test_arrays_are_mapped_not_read(small_store):
    store = Store.open(small_store)
    assert isinstance(store.priors.base, np.memmap)
