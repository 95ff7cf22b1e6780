"""Wikidata's JSON dumps."""

import json

import pytest

from tests.formats.dumps import imported, write


def item(kb_id, label="", *, aliases=(), description="", types=(), sites=(), kind="item"):
    """Return an item as it is in the dump."""
    statements = [
        {"mainsnak": {"snaktype": "value", "property": "P31", "datatype": "wikibase-item",
                      "datavalue": {"type": "wikibase-entityid",
                                    "value": {"entity-type": "item", "id": t}}},
         "type": "statement", "rank": rank}
        for t, rank in types
    ]  # fmt: skip
    return {
        "type": kind, "id": kb_id,
        "labels": {"en": {"language": "en", "value": label}} if label else [],
        "aliases": {"en": [{"language": "en", "value": a} for a in aliases]},
        "descriptions": {"en": {"language": "en", "value": description}} if description else {},
        "claims": {"P31": statements} if statements else [],
        "sitelinks": {s: {"site": s, "title": t, "badges": []} for s, t in sites},
        "lastrevid": 1,
    }  # fmt: skip


PARIS = item(
    "Q90", "Paris", aliases=["City of Light"], description="capital", types=[("Q515", "normal")],
    sites=[("enwiki", "Paris"), ("dewiki", "Paris"), ("frwiki", "Paris")],
)  # fmt: skip
CITY = item("Q515", "city", types=[("Q9", "deprecated")])
ITEMS = [
    PARIS, CITY,
    item("Q1", "Paris", types=[("Q4167410", "normal")]),
    item("Q2", "List of cities", types=[("Q13406463", "preferred")]),
    item("P31", "instance of", kind="property"),
    item("Q3"),
    item("Q4", types=[("Q5", "normal"), ("Q515", "preferred")], sites=[("enwiki", "Lyon")]),
]  # fmt: skip


def dump_of(path, items):
    return write(path, "[\n" + ",\n".join(json.dumps(i) for i in items) + "\n]\n")


@pytest.mark.parametrize("name", ["d.json", "d.json.gz", "d.json.bz2"])
def test_items(tmp_path, name):
    report, kb = imported(dump_of(tmp_path / name, ITEMS), "wikidata")
    assert kb["Q90"] == {
        "id": "Q90", "title": "Paris", "aliases": ["City of Light"], "description": "capital",
        "types": ["Q515", "city"], "prior": 3,
    }  # fmt: skip
    assert kb["Q515"] == {"id": "Q515", "title": "city"}
    assert kb["Q4"]["title"] == "Lyon", "from the sitelink"
    assert kb["Q4"]["types"] == ["Q515", "city"], "the preferred statement, and its label"
    assert report.left_out == {
        "disambiguation pages": 1, "lists": 1, "property entries, which are not items": 1,
        "items without a name in the languages chosen": 1,
    }  # fmt: skip


def test_languages(tmp_path):
    paris = json.loads(json.dumps(PARIS))
    paris["labels"]["fr"] = {"language": "fr", "value": "Ville de Paris"}
    paris["labels"]["mul"] = {"language": "mul", "value": "PARIS"}
    _, kb = imported(dump_of(tmp_path / "d.json", [paris]), "wikidata", langs=("fr", "en"))
    assert kb["Q90"]["title"] == "Ville de Paris"
    assert kb["Q90"]["aliases"] == ["Paris", "PARIS", "City of Light"]
    _, kb = imported(dump_of(tmp_path / "e.json", [paris]), "wikidata", langs=("is",))
    assert kb["Q90"]["title"] == "PARIS"


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b'{"type": "item", "labels": {"en": {"value": "x"}}}', b"\xff\xfe",
     b'{"type": "item", "id": "Q1", "labels": "x"}',
     b'{"type": "item", "id": "Q1", "labels": {"en": 3}}',
     b'{"type": "item", "id": "Q1", "claims": {"P31": {}}, "labels": {"en": {"value": "x"}}}',
     b'{"type": "item", "id": "NIL", "labels": {"en": {"value": "x"}}}', b"[" * 100_000],
)  # fmt: skip
def test_bad_lines(tmp_path, line):
    data = b"[\n" + json.dumps(PARIS).encode() + b",\n" + line + b",\n" + json.dumps(CITY).encode()
    dump = write(tmp_path / "d.json", data + b"\n]\n")
    with pytest.raises(ValueError, match=r"d\.json, line 3: "):
        imported(dump, "wikidata")
    report, kb = imported(dump, "wikidata", on_error="skip")
    assert list(kb) == ["Q90", "Q515"]
    assert sum(report.problems.values()) == 1


def test_gigantic_line(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_xel.formats.reading.MAX_RECORD_BYTES", 1 << 20)
    big = item("Q7", "x" * (2 << 20))
    report, kb = imported(
        dump_of(tmp_path / "d.json", [PARIS, big, CITY]), "wikidata", on_error="skip"
    )
    assert list(kb) == ["Q90", "Q515"]
    assert "longer than" in report.first_problems[0]
