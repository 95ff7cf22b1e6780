"""DaMuEL."""

import pytest

from spacy_xel.formats import read_corpus
from tests.formats.dumps import imported, json_lines, write

TOKENS = [{"start": 0, "end": 5}, {"start": 6, "end": 10}, {"start": 11, "end": 13},
          {"start": 14, "end": 17}, {"start": 18, "end": 23}]  # fmt: skip
ITEMS = [
    {"qid": "Q90", "lang": "en", "label": "Paris", "aliases": ["Lutetia"], "description": "city",
     "wiki": {"title": "Paris", "text": "Paris lies on the Seine", "tokens": TOKENS, "links": [
         {"start": 4, "end": 5, "origin": "wiki", "title": "Seine", "qid": "Q1471"},
         {"start": 0, "end": 1, "origin": "label", "qid": "Q90"},
         {"start": 1, "end": 3, "origin": "wiki", "title": "Red link"}]}},
    {"qid": "Q1471", "lang": "en", "label": "Seine"},
    {"qid": "Q7", "lang": "en", "description": "only this"},
]  # fmt: skip


def test_items_and_articles(tmp_path):
    folder = tmp_path / "damuel"
    folder.mkdir()
    write(folder / "part-00000.xz", json_lines(ITEMS[:1]))
    write(folder / "part-00001.xz", json_lines(ITEMS[1:]))
    target = tmp_path / "kb.jsonl"
    report, kb = imported(folder, "damuel", target=target, corpus=tmp_path / "c.jsonl", min_count=1)
    assert kb["Q90"]["aliases"] == ["Lutetia"]
    assert kb["Q1471"]["prior"] == 1
    assert report.left_out == {"links found automatically": 1, "items without a name": 1}
    (text,) = read_corpus(folder, "damuel")
    found = [(text.text[m.start : m.end], m.kb_ids) for m in text.mentions]
    assert found == [("Seine", ("Q1471",)), ("lies on", ())]
    assert next(read_corpus(tmp_path / "c.jsonl")) == text


@pytest.mark.parametrize("link", [{"start": 4, "end": 6}, {"start": 2, "end": 2}, {"start": "0"}])
def test_links_out_of_range(tmp_path, link):
    bad = {**ITEMS[0], "wiki": {**ITEMS[0]["wiki"], "links": [link]}}
    with pytest.raises(ValueError, match="line 1: a link from token"):
        imported(write(tmp_path / "d.jsonl", json_lines([bad])), "damuel")
