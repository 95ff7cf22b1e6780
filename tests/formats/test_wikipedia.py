"""Dumps of Wikipedia: XML and CirrusSearch."""

import json

import pytest

from spacy_xel.formats import read_corpus
from spacy_xel.formats.wikipedia import read_pages, read_site
from tests.formats.dumps import HEADER, PAGES, imported, json_lines, page, write, write_dump

pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")


@pytest.mark.parametrize("name", ["d.xml", "d.xml.gz", "d.xml.bz2", "d.xml.xz"])
def test_knowledge_base_and_contexts(tmp_path, name):
    dump = write_dump(tmp_path / name)
    report, kb = imported(dump, "wikipedia", corpus=tmp_path / "c.jsonl", min_count=1)
    assert list(kb) == ["Paris", "Seine", "Troy", "Paris (mythology)"]
    paris = kb["Paris"]
    assert paris["aliases"] == ["Lutetia", "old Paris", "the town"]
    assert paris["prior"] == 3, "two links from Seine, one through the redirect"
    assert paris["description"] == "Paris is a town on the Seine, in France."
    assert kb["Paris (mythology)"]["aliases"] == ["Paris"]
    assert report.redirects == 1
    assert report.left_out == {
        "disambiguation pages": 2, "lists": 1, "pages of other namespaces": 1, "pages of json": 1,
    }  # fmt: skip
    texts = {text.doc_id: text for text in read_corpus(tmp_path / "c.jsonl")}
    troy = texts["Troy"]
    assert troy.lang == "de"
    found = [(troy.text[m.start : m.end], m.kb_ids) for m in troy.mentions]
    assert found == [
        ("Paris", ("Paris (mythology)",)), ("old Paris", ("Paris",)), ("Atlantis", ()),
    ]  # fmt: skip
    assert report.unknown_targets == 2, "Atlantis, and France in the first page"
    assert (report.texts, report.mentions) == (4, 8)


def test_ids_of_pages_and_rare_names(tmp_path):
    dump = write_dump(tmp_path / "d.xml")
    report, kb = imported(dump, "wikipedia", ids="page", corpus=tmp_path / "c.jsonl")
    assert list(kb) == ["10", "11", "13", "15"]
    assert kb["10"]["aliases"] == ["Lutetia"]
    assert report.rare_names > 0
    troy = next(t for t in read_corpus(tmp_path / "c.jsonl") if t.doc_id == "Troy")
    assert [m.kb_ids for m in troy.mentions] == [("15",), ("10",), ()]


def test_streaming_as_a_corpus(tmp_path):
    texts = list(read_corpus(write_dump(tmp_path / "d.xml.bz2")))
    assert [t.doc_id for t in texts] == ["Paris", "Seine", "Troy", "Paris (mythology)"]
    assert [m.kb_ids for m in texts[0].mentions] == [("Seine",), ("France",)]


def test_header(tmp_path):
    site = read_site(write_dump(tmp_path / "d.xml"))
    assert site.lang == "de"
    assert site.target("Datei:X.jpg").kind == "file"


def test_a_bad_page_costs_one_page(tmp_path):
    bad = [
        page("Broken").replace("<ns>", "<ns"),
        page("Unknown entity").replace("Someone", "&bomb;"),
        page("").replace("<title></title>", ""),
        page("Hostile", "{{a|" * 5000),
    ]
    data = (HEADER + PAGES[0] + "".join(bad)).encode()
    data += PAGES[1].replace("flows", "?").encode().replace(b"?", b"\xff") + PAGES[3].encode()
    dump = write(tmp_path / "d.xml", data)
    with pytest.raises(ValueError, match=r"d\.xml, page 2: the XML cannot be parsed"):
        imported(dump, "wikipedia")
    report, kb = imported(dump, "wikipedia", on_error="skip")
    assert list(kb) == ["Paris", "Troy"]
    assert sum(report.problems.values()) == 5
    lines = (tmp_path / "kb.jsonl.problems.jsonl").read_text().splitlines()
    assert [json.loads(line)["page"] for line in lines] == [2, 3, 4, 5, 6]


def test_entity_bomb_has_no_effect(tmp_path):
    bomb = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
        f"<!ENTITY {chr(98 + i)} '{f'&{chr(97 + i)};' * 9}'>" for i in range(20)
    )
    dump = write(tmp_path / "d.xml", bomb + "]>" + HEADER + page("A", "x").replace("x<", "&u;<"))
    report, kb = imported(dump, "wikipedia", on_error="skip")
    assert kb == {}
    assert "undefined entity" in report.first_problems[0]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_truncated_dump(tmp_path, ending):
    dump = write_dump(
        tmp_path / f"d.xml.{ending}", [page(f"P{i}", f"Text {i * 7919}") for i in range(3000)]
    )
    dump.write_bytes(dump.read_bytes()[:-3000])
    with pytest.raises(ValueError, match="damaged or cut short"):
        imported(dump, "wikipedia")
    report, _ = imported(dump, "wikipedia", on_error="skip")
    assert sum(report.problems.values()) == 1


def test_cut_off_plain_dump_and_other_files(tmp_path):
    dump = write(tmp_path / "d.xml", HEADER + PAGES[0] + PAGES[1][:100])
    report, kb = imported(dump, "wikipedia", on_error="skip")
    assert list(kb) == ["Paris"]
    assert "ends within a page" in report.first_problems[0]
    with pytest.raises(ValueError, match="not in the format expected"):
        imported(write(tmp_path / "e.xml", "<html></html>"), "wikipedia")


def test_gigantic_page(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_xel.formats.wikipedia.MAX_PAGE_BYTES", 3 << 20)
    dump = write_dump(tmp_path / "d.xml", [PAGES[0], page("Big", "x" * (9 << 20)), PAGES[1]])
    report, kb = imported(dump, "wikipedia", on_error="skip")
    assert list(kb) == ["Paris", "Seine"]
    assert "more than" in report.first_problems[0]


def test_pages_are_passed_over_by_number(tmp_path):
    dump = write_dump(tmp_path / "d.xml.gz")
    everything = list(read_pages(dump, 0))
    assert [p.number for p in everything] == list(range(1, 11))
    assert list(read_pages(dump, 7)) == everything[7:]


def test_a_folder_of_parts(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    write_dump(folder / "p1.xml", PAGES[:2])
    write_dump(folder / "p2.xml.bz2", PAGES[2:])
    target = tmp_path / "kb.jsonl"
    _, kb = imported(folder, "wikipedia", target=target, min_count=1)
    assert kb["Paris"]["prior"] == 3


CIRRUS = [
    {"index": {"_type": "_doc", "_id": "10"}},
    {"title": "Paris", "namespace": 0, "opening_text": "Paris is a town.", "text": "Paris is a",
     "template": ["Template:Infobox"], "incoming_links": 42, "wikibase_item": "Q90",
     "redirect": [{"namespace": 0, "title": "Lutetia"}, {"namespace": 4, "title": "P"}]},
    {"index": {"_id": "11"}},
    {"title": "Mercury", "namespace": 0, "template": ["Template:Disambiguation"]},
    {"index": {"_id": "12"}},
    {"title": "About", "namespace": 4},
    {"index": {"_id": "13"}},
    {"title": "Troy", "namespace": 0, "text": "A city.", "redirect": []},
]  # fmt: skip


def test_cirrus(tmp_path):
    dump = write(tmp_path / "d.json.gz", json_lines(CIRRUS))
    report, kb = imported(dump, "cirrus")
    assert kb["Paris"] == {
        "id": "Paris", "title": "Paris", "aliases": ["Lutetia"], "description": "Paris is a town.",
        "prior": 42,
    }  # fmt: skip
    assert kb["Troy"]["description"] == "A city."
    assert report.left_out == {"disambiguation pages": 1, "pages of other namespaces": 1}
    report, kb = imported(dump, "cirrus", ids="wikidata")
    assert list(kb) == ["Q90"]
    assert report.left_out["articles without an item of Wikidata"] == 1


@pytest.mark.parametrize(
    "line",
    ['{"title": 3, "namespace": 0}', '{"title": "A", "namespace": 0, "redirect": {}', "[]", "\x00",
     '{"title": "A", "namespace": 0, "incoming_links": "x"}',
     '{"title": "\\ud800", "namespace": 0}',
     '{"title": "", "namespace": 0}', '{"title": "A|B", "namespace": 0}'],
)  # fmt: skip
def test_bad_cirrus_lines(tmp_path, line):
    dump = write(tmp_path / "d.json", json_lines(CIRRUS[:2]) + line + "\n")
    with pytest.raises(ValueError, match=r"d\.json, line 3: "):
        imported(dump, "cirrus")
    report, kb = imported(dump, "cirrus", on_error="skip")
    assert list(kb) == ["Paris"]
    assert sum(report.problems.values()) == 1
