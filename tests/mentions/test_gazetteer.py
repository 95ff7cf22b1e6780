"""Names found in text, against brute force and against spaCy's entity_ruler."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.util import filter_spans

from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.gazetteer import NameFinder, Tokens
from spacy_xel.types import Entity
from tests.conftest import ASSETS


def make_kb(folder, names, lang=""):
    lines = [json.dumps({"id": f"E{i}", "title": name}) for i, name in enumerate(names)]
    (folder / "kb.jsonl").write_text("\n".join(lines), encoding="utf8")
    build_store(folder / "kb.jsonl", folder / "kb", lang=lang)
    return XelKnowledgeBase.open(folder / "kb")


def tokens(doc):
    array = doc.to_array(["ORTH", "SPACY"]).reshape(-1, 2)
    columns = [np.ascontiguousarray(array[:, i]) for i in (0, 1)]
    return Tokens(*columns, doc.vocab.strings.__getitem__)


def found(kb, text, nlp=None, **settings):
    doc = (nlp or spacy.blank("en"))(text)
    spans = NameFinder(kb, **settings).find(tokens(doc))
    return [doc[start:end].text for start, end in spans.tolist()]


def brute_force(finder, doc):
    """Every span of whole tokens whose normal form is a name; then the longest."""
    spans = []
    for start in range(len(doc)):
        for end in range(start + 1, len(doc) + 1):
            span = doc[start:end]
            if span[0].is_space or span[-1].is_space or not span.text.strip():
                continue
            key = finder.key(span.text)
            wanted = len(key) >= finder.min_length and key not in finder.stop_names
            if wanted and finder.kb.lookup(key, cased=not finder.fold_case):
                spans.append(span)
    return [(span.start, span.end) for span in filter_spans(spans)]


WORDS = ["new", "York", "O'Brien", "city", "the", "of", "light", "Straße", "Ünal", "co-op", "x"]
SPACES = [" ", "  ", "\n", " \t ", ", "]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), min_size=1, max_size=10),
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=25),
    st.sampled_from(["exact", "ignore"]),
    st.integers(1, 4),
)
@settings(max_examples=80)
def test_agrees_with_brute_force(tmp_path_factory, names, words, case, min_length):
    kb = make_kb(tmp_path_factory.mktemp("kb"), [" ".join(name) for name in names])
    doc = spacy.blank("en")("".join(word + space for word, space in words))
    finder = NameFinder(kb, case=case, min_length=min_length, stop_names=["the", "of light"])
    spans = [tuple(span) for span in finder.find(tokens(doc)).tolist()]
    assert spans == brute_force(finder, doc)


def test_agrees_with_entity_ruler(tmp_path):
    entities = [json.loads(line) for line in (ASSETS / "kb.jsonl").read_text("utf8").splitlines()]
    names = sorted({n for e in entities for n in (e["title"], *e["aliases"]) if len(n) > 1})
    kb = make_kb(tmp_path, names)
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "X", "pattern": name} for name in names])
    finder = NameFinder(kb, case="exact")
    for text in read_corpus(ASSETS / "dev.jsonl"):
        doc = nlp(text.text)
        spans = [tuple(span) for span in finder.find(tokens(doc)).tolist()]
        assert spans == [(ent.start, ent.end) for ent in doc.ents], doc.text


def test_whole_words_and_longest(tmp_path):
    kb = make_kb(tmp_path, ["New York", "York", "New York City", "Parisian"])
    assert found(kb, "Yorkshire, new york city and York") == ["new york city", "York"]
    assert found(kb, "Paris is not Parisian") == ["Parisian"]


def test_case(tmp_path):
    kb = make_kb(tmp_path, ["US", "Turkey"])
    assert found(kb, "US, us, turkey", case="ignore") == ["US", "us", "turkey"]
    assert found(kb, "US, us, turkey", case="exact") == ["US"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in New\nYork today", ["New\nYork"]),
        ("in New\u00a0York today", ["New\u00a0York"]),
        ("O’Brien’s and O'Brien", ["O’Brien", "O'Brien"]),
        ("Cafe\u0301 Müller … STRASSE", ["Cafe\u0301 Müller", "STRASSE"]),
        ("straße", ["straße"]),
        ("ＮＥＷ ＹＯＲＫ", ["ＮＥＷ ＹＯＲＫ"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_spelling(tmp_path, text, expected):
    kb = make_kb(tmp_path, ["New York", "O'Brien", "Café Müller", "Straße"])
    assert found(kb, text) == expected


def test_languages_without_spaces(tmp_path):
    kb = make_kb(tmp_path, ["東京", "東京大学"])
    assert found(kb, "私は東京大学と東京が好き", spacy.blank("zh")) == ["東京大学", "東京"]


def test_turkish(tmp_path):
    kb = make_kb(tmp_path, ["Isparta", "İzmir"], lang="tr")
    nlp = spacy.blank("tr")
    assert found(kb, "ISPARTA ve İZMİR ve isparta", nlp) == ["ISPARTA", "İZMİR"]


def test_changes_to_the_knowledge_base(tmp_path):
    kb = make_kb(tmp_path, ["New York City", "York"])
    doc = spacy.blank("en")("New York City Hall and York")
    finder = NameFinder(kb)

    def names():
        return [doc[s:e].text for s, e in finder.find(tokens(doc)).tolist()]

    assert names() == ["New York City", "York"]
    kb.remove(["E0"])
    assert names() == ["York", "York"]
    kb.add([Entity("H", "city hall"), Entity("Y", "York")])
    assert names() == ["York", "City Hall", "York"]
    kb.remove(["E1"])
    assert names() == ["York", "City Hall", "York"], "another entity has the name"
    kb.rollback(0)
    assert names() == ["New York City", "York"]


def test_taken_tokens_are_left_alone(tmp_path):
    kb = make_kb(tmp_path, ["New York City", "City"])
    doc = spacy.blank("en")("New York City")
    spans = NameFinder(kb).find(tokens(doc), np.array([1, 0, 0], dtype=np.uint8))
    assert spans.tolist() == [[2, 3]]


def test_more_matches_than_expected(tmp_path):
    names = [" ".join(["a"] * n) for n in range(1, 40)]
    kb = make_kb(tmp_path, names)
    doc = spacy.blank("en")(" ".join(["a"] * 200))
    every = NameFinder(kb, min_length=1).find_all(tokens(doc))
    assert len(every) == sum(min(39, 200 - start) for start in range(200))


def test_long_names_do_not_make_long_work(tmp_path):
    long = "Universal Declaration of Human Rights of the United Nations General Assembly"
    kb = make_kb(tmp_path, [long, " ".join(["buffalo"] * 12), "x" * 600])
    nlp = spacy.blank("en")
    nlp.max_length = 10**7
    finder = NameFinder(kb)
    for text in (f"{long} " + "filler words " * 40_000, "buffalo " * 40_000):
        doc = nlp.make_doc(text)
        finder.find(tokens(doc))
        start = time.perf_counter()
        found = finder.find(tokens(doc))
        assert len(found)
        assert time.perf_counter() - start < 5


def test_threads_share_a_finder(tmp_path):
    kb = make_kb(tmp_path, ["New York", "York"])
    nlp = spacy.blank("en")
    texts = [f"New York saw word{i} and York{i % 7} York" for i in range(2000)]
    docs = [tokens(nlp.make_doc(text)) for text in texts]
    expected = [NameFinder(kb).find(doc).tolist() for doc in docs[:50]]
    finder = NameFinder(kb)
    with ThreadPoolExecutor(8) as pool:
        found = [spans.tolist() for spans in pool.map(finder.find, docs)]
    assert found[:50] == expected
    assert all(len(spans) == 2 for spans in found)


def test_bad_case_setting(small_kb):
    with pytest.raises(ValueError, match="'exact' or 'ignore'"):
        NameFinder(small_kb, case="smart")


def test_normal_form_of_key(small_kb):
    assert NameFinder(small_kb).key("CITY of  Light") == normalize_name("city of light")
