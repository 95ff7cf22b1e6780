"""KILT's knowledge source, queries and predictions."""

import json

import pytest

from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.formats.kilt import prediction_line, read_rankings
from spacy_xel.types import AnnotatedText, Mention
from tests.formats.dumps import imported, json_lines, write

PAGES = [
    {"wikipedia_id": "10", "wikipedia_title": "Paris", "categories": "Towns,Capitals",
     "text": ["Paris\n", "Paris lies on the Seine.\n", "Section::::Past.\n", "BULLET::::- Old\n"],
     "anchors": [{"text": "Seine", "href": "Seine", "paragraph_id": 1, "start": 18, "end": 23},
                 {"text": "wrong", "href": "X", "paragraph_id": 1, "start": 0, "end": 5}],
     "wikidata_info": {"wikidata_id": "Q90", "aliases": {"alias": ["City of Light"]}}},
    {"wikipedia_id": 11, "wikipedia_title": "Seine", "categories": "",
     "text": ["Seine\n", "It flows through the town."],
     "anchors": [{"text": "the town", "href": "Paris%23Past", "paragraph_id": 1, "start": 17,
                  "end": 25}]},
    {"wikipedia_id": "12", "wikipedia_title": "Mercury",
     "categories": "Disambiguation pages,All", "text": ["Mercury\n"], "anchors": []},
]  # fmt: skip


def test_knowledge_source(tmp_path):
    source = write(tmp_path / "ks.json", json_lines(PAGES))
    report, kb = imported(source, "kilt", corpus=tmp_path / "c.jsonl", min_count=1)
    assert kb["10"] == {
        "id": "10", "title": "Paris", "aliases": ["City of Light", "the town"],
        "description": "Paris lies on the Seine.", "prior": 1,
    }  # fmt: skip
    assert list(kb) == ["10", "11"]
    assert report.left_out == {"disambiguation pages": 1, "anchors that do not match their text": 1}
    paris, seine = read_corpus(tmp_path / "c.jsonl")
    assert [(paris.text[m.start : m.end], m.kb_ids) for m in paris.mentions] == [("Seine", ("11",))]
    assert [(seine.text[m.start : m.end], m.kb_ids) for m in seine.mentions] == [
        ("the town", ("10",))
    ]
    _, kb = imported(source, "kilt", ids="wikidata")
    assert list(kb) == ["Q90"]


@pytest.mark.parametrize("place", [(9, 0, 1), (1, 5, 900), (1, 5, 5), (1, None, 3), (-1, 0, 1)])
def test_anchors_out_of_range(tmp_path, place):
    bad = json.loads(json.dumps(PAGES[0]))
    bad["anchors"][0] |= dict(zip(("paragraph_id", "start", "end"), place, strict=True))
    source = write(tmp_path / "ks.json", json_lines([PAGES[1], bad]))
    with pytest.raises(ValueError, match="line 2: an anchor at"):
        imported(source, "kilt")


QUERY = {
    "id": "1a", "input": "So [START_ENT] Paris [END_ENT] fled.",
    "output": [{"answer": "Paris (mythology)",
                "provenance": [{"wikipedia_id": "15", "title": "Paris (mythology)"}]}],
    "meta": {"mention": "Paris"},
}  # fmt: skip


def test_queries(tmp_path):
    path = write(
        tmp_path / "q-dev-kilt.jsonl", json_lines([QUERY, {**QUERY, "id": 2, "output": []}])
    )
    first, second = read_corpus(path)
    assert first == AnnotatedText("1a", "So Paris fled.", (Mention(3, 8, ("15",)),), "en")
    assert second.mentions[0].kb_ids == ()
    write_corpus([first, second], tmp_path / "again-kilt.jsonl")
    assert list(read_corpus(tmp_path / "again-kilt.jsonl")) == [first, second]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "1", "input": "no mention"}, "must have a mention"),
        ({"id": "1", "input": "a [START_ENT]  [END_ENT]"}, "must have a mention"),
        ({"input": QUERY["input"]}, "'id' is missing"),
        ({**QUERY, "output": "x"}, "must be a list"),
        ({**QUERY, "output": [{"provenance": [{}]}]}, "wikipedia_id"),
    ],
)
def test_bad_queries(tmp_path, fields, problem):
    path = write(tmp_path / "q.kilt.jsonl", json_lines([QUERY, fields]))
    with pytest.raises(ValueError, match=f"line 2.*{problem}"):
        list(read_corpus(path))


def test_rankings(tmp_path):
    line = prediction_line("1a", "Paris", [("10", "Paris"), ("15", "P"), ("10", "Paris")])
    path = write(tmp_path / "p.jsonl", line)
    assert read_rankings(path)["1a"].pages == (("10", "15"),)
    with pytest.raises(ValueError, match="there twice"):
        read_rankings(write(tmp_path / "p2.jsonl", line + line))
