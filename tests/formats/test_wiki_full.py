"""What the workflow wiki-full is made of: links of Cirrus, items with pages, joining, sampling."""

import json

import pytest

from spacy_xel.formats import read_corpus
from spacy_xel.formats.joining import join_entities, join_kbs
from spacy_xel.formats.sampling import Sample, paragraphs
from spacy_xel.formats.wiki_titles import clean_title, page_kind, templates_of
from spacy_xel.formats.wikidata import wiki_of
from spacy_xel.types import AnnotatedText, Entity, Mention
from tests.formats.dumps import imported, json_lines, page, write, write_dump


def cirrus(title, wikitext, qid, **more):
    fields = {"namespace": 0, "title": title, "wikibase_item": qid, "source_text": wikitext}
    return [{"index": {"_type": "_doc", "_id": "1"}}, fields | {"language": "en"} | more]


def test_cirrus_gives_links_contexts_and_items(tmp_path):
    pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")
    lines = [
        *cirrus("Troy", "[[Paris|Prince]] of [[Atlantis]]. 😀 [[Alexander]]", "Q1"),
        *cirrus("Paris", "Of [[Troy]]{{x|[[Paris|P]]}}", "Q2", redirect=[{"title": "Alexander"}]),
    ]
    source = write(tmp_path / "c.json.gz", json_lines(lines))
    corpus = tmp_path / "texts.jsonl"
    report, kb = imported(source, "cirrus", corpus=corpus, min_count=1, ids="wikidata", texts=True)
    assert set(kb["Q2"]["aliases"]) == {"Alexander", "Prince", "P"}
    assert kb["Q2"]["prior"] == 3
    text, _ = read_corpus(corpus)
    found = [(text.text[m.start : m.end], m.kb_ids) for m in text.mentions]
    assert found == [("Prince", ("Q2",)), ("Atlantis", ()), ("Alexander", ("Q2",))]
    assert (report.redirects, report.unknown_targets) == (1, 1)


def test_modules_and_subpages_do_not_make_a_disambiguation_page():
    names = ["Template:Infobox", "Module:Pagetype/disambiguation", "Module:Disambiguation"]
    assert page_kind("Troy", templates_of(names)) == "article"
    names = ["Template:Disambiguation", "Modul:X"]
    assert page_kind("Troy", templates_of(names)) == "disambiguation page"
    assert page_kind("Troja", templates_of(["Vorlage:Begriffsklärung"])) == "disambiguation page"


def test_titles_whose_first_letter_has_no_capital():
    assert clean_title("ß") == "ß"
    assert clean_title("éclair_x") == "Éclair x"


@pytest.mark.parametrize("tag", ["<redirect />", ""])
def test_redirects_of_old_dumps(tmp_path, tag):
    pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")
    old = page("Ilium", "#REDIRECT [[Troy#Walls]]").replace("<ns>", f"{tag}<ns>")
    report, kb = imported(
        write_dump(tmp_path / "w.xml", [page("Troy", "A town."), old]), "wikipedia"
    )
    assert kb["Troy"]["aliases"] == ["Ilium"]
    assert report.redirects == 1


def item(qid, title, **more):
    labels = {"en": {"value": title.split(" (")[0]}}
    return {
        "type": "item",
        "id": qid,
        "labels": labels,
        "sitelinks": {"enwiki": {"title": title}},
    } | more


@pytest.mark.parametrize(
    "broken",
    [
        {"claims": {"P31": ["x"]}}, {"claims": {"P31": [{"mainsnak": "x"}]}},
        {"aliases": {"en": ["x"]}}, {"labels": {"en": "x"}}, {"sitelinks": {"enwiki": "x"}},
    ],
)  # fmt: skip
def test_broken_items_cost_themselves(tmp_path, broken):
    lines = [item("Q1", "A"), item("Q2", "B", **broken), item("Q3", "C")]
    content = "[\r\n" + ",\r\n".join(map(json.dumps, lines)) + "\r\n]\r\n"
    source = write(tmp_path / "d.json.bz2", content)
    report, kb = imported(source, "wikidata", on_error="skip")
    assert (set(kb), sum(report.problems.values())) == ({"Q1", "Q3"}, 1)


def test_only_items_with_a_page(tmp_path):
    lines = [
        item("Q1", "Paris (mythology)"),
        item("Q2", "Troy", sitelinks={"frwiki": {"title": "T"}}),
    ]
    source = write(tmp_path / "d.json", json_lines(lines))
    report, kb = imported(source, "wikidata", only_pages=True)
    assert list(kb) == ["Q1"]
    assert (kb["Q1"]["title"], kb["Q1"]["aliases"]) == ("Paris (mythology)", ["Paris"])
    assert report.left_out == {"items without a page in the languages chosen": 1}
    assert (wiki_of("nb"), wiki_of("zh-min-nan")) == ("nowiki", "zh_min_nanwiki")


def test_join(tmp_path):
    pages = [
        {"id": t, "title": t, "aliases": [a], "prior": 3} for t, a in (("Troy", "x"), ("Z", "y"))
    ]
    items = [
        {"id": "Q1", "title": "Troy", "aliases": ["Ilium", "x"], "types": ["town"], "prior": 9},
        {"id": "Q2", "title": "Rome"},
    ]
    mentions = [
        {"start": 0, "end": 4, "kb_ids": ["Troy"]},
        {"start": 5, "end": 6, "kb_ids": ["Z"]},
    ]
    text = {"id": "d", "text": "Troy Z", "mentions": mentions}
    paths = [
        write(tmp_path / f"{name}.jsonl.gz", json_lines(lines))
        for name, lines in (("pages", pages), ("items", items), ("texts", [text]))
    ]
    target, linked = tmp_path / "kb.jsonl", tmp_path / "linked.jsonl.gz"
    report = join_kbs(paths[0], paths[1], target, corpus=paths[2], corpus_target=linked)
    (line,) = target.read_text().splitlines()
    expected = {
        "id": "Q1",
        "title": "Troy",
        "aliases": ["x", "Ilium"],
        "types": ["town"],
        "prior": 3,
    }
    assert json.loads(line) == expected
    (found,) = read_corpus(linked)
    assert [mention.kb_ids for mention in found.mentions] == [("Q1",), ()]
    assert (report.pages_without_item, report.items_without_page) == (1, 1)
    assert report.mentions_without_item == 1
    assert not list(tmp_path.glob(".join-*"))


def test_joined_descriptions():
    joined = join_entities(
        Entity("T", "T", description="A town."), Entity("Q", "T", description="d")
    )
    assert joined == Entity("Q", "T", description="d. A town.")


def test_paragraphs_keep_surfaces():
    whole = "😀 Troy\n\nParis\n \nx\n\ny Rome"
    spans = [(whole.index(name), name) for name in ("Troy", "Paris", "Rome")]
    mentions = [Mention(start, start + len(name), (name,)) for start, name in spans]
    across = whole.index("x")
    mentions.append(Mention(across, across + 4, ("x\n\ny",)))
    parts = list(paragraphs(AnnotatedText("d", whole, tuple(mentions), "en")))
    assert [part.text for part in parts] == ["😀 Troy", "Paris", "x\n\ny Rome"]
    for part in parts:
        for mention in part.mentions:
            assert (part.text[mention.start : mention.end],) == mention.kb_ids
    assert sum(len(part.mentions) for part in parts) == 4


def test_split_is_by_text_and_quotas_hold():
    texts = [
        AnnotatedText(f"d{i}", "a\n\nb", (Mention(0, 1, ("A",)), Mention(3, 4, (f"B{i}",))))
        for i in range(500)
    ]
    taken = list(Sample(dev_share=0.2, per_entity=3).divide(texts))
    train = [text for is_dev, text in taken if not is_dev]
    dev = {text.doc_id.partition("#")[0] for is_dev, text in taken if is_dev}
    assert dev.isdisjoint(text.doc_id.partition("#")[0] for text in train)
    assert 60 < len(dev) < 140
    assert sum(m.kb_ids == ("A",) for text in train for m in text.mentions) == 3
    assert len(train) == 3 + 500 - len(dev)
    assert taken == list(Sample(dev_share=0.2, per_entity=3).divide(texts))
    limited = list(Sample(dev_share=1.0, dev_texts=7).divide(texts))
    assert len(limited) == 7
