"""Corpora read and written."""

import json
from dataclasses import replace

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_xel.formats import guess_format, read_corpus, write_corpus
from spacy_xel.formats.docbin import Misfits, doc_of_text, text_of_doc
from spacy_xel.types import AnnotatedText, Mention

TEXTS = [
    AnnotatedText("1", "Naloxone reverses clonidine.", (
        Mention(0, 8, ("D009270",), "Chemical"), Mention(18, 27, ("D003000", "D1"), "Chemical"),
    ), "en"),
    AnnotatedText("2", "Nothing here.", (), "en"),
    AnnotatedText("3", "pre-treatment with X", (
        Mention(0, 3, (), "Part"), Mention(0, 13, ("D2",), "Whole"), Mention(4, 13, ("D3",), ""),
    ), "en"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.spacy", "c.pubtator"])
@pytest.mark.filterwarnings("ignore:.*mentions in")
def test_round_trip(tmp_path, name):
    write_corpus(TEXTS, tmp_path / name)
    lang = "" if name.endswith("pubtator") else "en"
    assert list(read_corpus(tmp_path / name)) == [replace(text, lang=lang) for text in TEXTS]


MENTIONS = st.lists(st.tuples(st.integers(0, 19), st.integers(1, 6)), max_size=4)


@given(st.text(st.sampled_from("ab é-\n\t"), min_size=20, max_size=40), MENTIONS)
@settings(max_examples=60)
def test_docs_keep_every_mention(text, places):
    nlp = spacy.blank("en")
    mentions = tuple(
        Mention(start, min(start + length, len(text)), (f"E{i}",), "L")
        for i, (start, length) in enumerate(places)
    )
    original = AnnotatedText("d", text, mentions, "en")
    assert text_of_doc(doc_of_text(original, nlp)) == original


def test_misaligned_and_overlapping_mentions_are_counted(tmp_path):
    parisian = AnnotatedText("1", "Parisian", (Mention(0, 5, ("A",)),))
    misfits = Misfits()
    for text in (TEXTS[2], parisian, parisian):
        doc = doc_of_text(text, spacy.blank("xx"), misfits)
    assert len(doc.ents) == len(doc.spans["xel"]) == 1
    assert (misfits.mentions, misfits.misaligned, misfits.overlapping) == (5, 2, 2)
    with pytest.warns(UserWarning, match="in the corpus") as warned:
        write_corpus([TEXTS[2], parisian], tmp_path / "c.spacy")
    assert [str(w.message).split(" mentions")[0] for w in warned] == ["1 of 4", "2 of 4"]


def test_gold_docs_carry_composite_ids_and_nil():
    doc = doc_of_text(TEXTS[0], spacy.blank("en"))
    assert [ent.kb_id_ for ent in doc.ents] == ["D009270", "D003000|D1"]
    nil = doc_of_text(AnnotatedText("1", "Xanadu", (Mention(0, 6),)), spacy.blank("en"))
    assert nil.ents[0].kb_id_ == "NIL"


def test_pubtator_as_others_write_it(tmp_path):
    path = tmp_path / "c.pubtator"
    path.write_text(
        "354896|t|Lidocaine-induced cardiac asystole.\r\n"
        "354896|a|Intravenous use\r\n"
        "354896\t0\t9\tLidocaine\tChemical\tD008012\r\n"
        "354896\t18\t34\tcardiac asystole\tDisease\tD006323|D1\r\n"
        "354896\t36\t47\tIntravenous\tOther\t-1\r\n"
        "354896\tCID\tD008012\tD006323\r\n\r\n"
        "2|t|Second\n2|a|\n"
    )
    first, second = read_corpus(path)
    assert first.text == "Lidocaine-induced cardiac asystole. Intravenous use"
    assert [m.kb_ids for m in first.mentions] == [("D008012",), ("D006323", "D1"), ()]
    assert [first.text[m.start : m.end] for m in first.mentions][2] == "Intravenous"
    assert second == AnnotatedText("2", "Second", ())


def test_pubtator_keeps_offsets_across_lines(tmp_path):
    text = AnnotatedText("1", "Title\nOne\ttwo\nthree", (Mention(14, 19, ("A",)),), "en")
    with pytest.warns(UserWarning, match="1 texts became spaces"):
        write_corpus([text], tmp_path / "c.pubtator")
    (back,) = read_corpus(tmp_path / "c.pubtator")
    assert back.text == "Title One two three"
    assert back.mentions == text.mentions


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": 3}', "'text' must be a string"),
        ('{"text": "ab", "mentions": [{"start": 0, "end": 3}]}', "does not fit"),
        ('{"text": "ab", "mentions": [{"start": 1, "end": 1}]}', "does not fit"),
        ('{"text": "ab", "mentions": [{"start": -1, "end": 1}]}', "does not fit"),
        ('{"text": "ab", "mentions": [{"start": "0", "end": 1}]}', "whole numbers"),
        ('{"text": "ab", "mentions": [{"start": 0, "end": 1, "kb_ids": "A"}]}', "list of strings"),
        ('{"text": "ab", "mentions": [{"start": 0, "end": 1, "kb_ids": ["A|B"]}]}', "reserved"),
        ('{"text": "ab", "mentions": [{"start": 0, "end": 1, "kb_ids": ["NIL"]}]}', "reserved"),
        (
            '{"text": "ab", "mentions": [{"start": 0, "end": 1, "kb_ids": ["\\ud800"]}]}',
            "surrogate",
        ),
        ('{"text": "ab", "mentions": {}', "not valid JSON"),
        ('{"text": "a\\ud800"}', "lone surrogate"),
    ],
)
def test_bad_corpus_lines_are_named(tmp_path, line, problem):
    path = tmp_path / "c.jsonl"
    path.write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(ValueError, match=problem) as error:
        list(read_corpus(path))
    assert "line 2" in str(error.value)


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_corpus(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="Known formats"):
        guess_format(tmp_path / "c.docx")
    (tmp_path / "c.spacy").write_bytes(b"not a DocBin")
    with pytest.raises(ValueError, match="DocBin"):
        list(read_corpus(tmp_path / "c.spacy"))
    (tmp_path / "c.pubtator").write_text("1|t|Title\n1\tx\ty\n")
    with pytest.raises(ValueError, match="line 2"):
        list(read_corpus(tmp_path / "c.pubtator"))


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "c.jsonl"
    write_corpus(TEXTS[:1], path)

    def broken():
        yield TEXTS[1]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_corpus(broken(), path)
    assert [json.loads(line)["id"] for line in path.open()] == ["1"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1\t0\tx\tTitle\tX\tA", "tab-separated"),
        ("1\t0\t5\tWrong\tX\tA", "the text has 'Title'"),
        ("1\t0\t50\tTitle\tX\tA", "does not fit"),
        ("2\t0\t5\tTitle\tX\tA", "tab-separated"),
    ],
)
def test_bad_pubtator_lines_are_named(tmp_path, line, problem):
    (tmp_path / "c.pubtator").write_text(f"1|t|Title\n1|a|\n{line}\n")
    with pytest.raises(ValueError, match=problem) as error:
        list(read_corpus(tmp_path / "c.pubtator"))
    assert "line 3" in str(error.value)


def test_pubtator_texts_without_titles_stay_apart(tmp_path):
    (tmp_path / "c.pubtator").write_text("1|a|first\n2|a|second\n2\t0\t6\tsecond\tX\tA\n")
    first, second = read_corpus(tmp_path / "c.pubtator")
    assert (first.text, second.text, len(second.mentions)) == ("first", "second", 1)


@pytest.mark.parametrize("bad", ["a|b", "a;b", "-1", "a\tb"])
def test_pubtator_refuses_ids_it_could_not_read_back(tmp_path, bad):
    with pytest.raises(ValueError, match="cannot be written"):
        write_corpus([AnnotatedText(bad, "x")], tmp_path / "c.pubtator")
    with pytest.raises(ValueError, match="cannot be written"):
        write_corpus([AnnotatedText("1", "x", (Mention(0, 1, (bad,)),))], tmp_path / "c.pubtator")


def test_missing_values_and_unknown_languages(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": null, "lang": null, "text": "a"}\n{"text": "b"}\n')
    assert [(t.doc_id, t.lang) for t in read_corpus(tmp_path / "c.jsonl")] == [("", "")] * 2
    with pytest.warns(UserWarning, match="any language"):
        write_corpus([AnnotatedText("1", "x", (), "tlh")], tmp_path / "c.spacy")
    assert [t.lang for t in read_corpus(tmp_path / "c.spacy")] == ["tlh"]


def test_long_texts_can_be_read_back(tmp_path):
    write_corpus([AnnotatedText("1", "long " * 1_000_000)], tmp_path / "c.jsonl")
    (text,) = read_corpus(tmp_path / "c.jsonl")
    assert len(text.text) == 5_000_000
