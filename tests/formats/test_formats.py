"""Corpora read and written."""

import json

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_xel.formats import guess_format, read_corpus, write_corpus
from spacy_xel.formats.docbin import doc_of_text, text_of_doc
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
@pytest.mark.filterwarnings("ignore:.*mentions of")
def test_round_trip(tmp_path, name):
    write_corpus(TEXTS, tmp_path / name)
    assert list(read_corpus(tmp_path / name)) == TEXTS


MENTIONS = st.lists(st.tuples(st.integers(0, 19), st.integers(1, 6)), max_size=4)


@given(st.text(st.sampled_from("ab é-\n\t"), min_size=20, max_size=40), MENTIONS)
@settings(max_examples=60)
def test_docs_keep_every_mention(text, places):
    nlp = spacy.blank("en")
    mentions = tuple(
        Mention(start, min(start + length, len(text)), (f"E{i}",), "L")
        for i, (start, length) in enumerate(places)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)
        original = AnnotatedText("d", text, mentions, "en")
        assert text_of_doc(doc_of_text(original, nlp)) == original


def test_misaligned_and_overlapping_mentions_are_counted():
    text = TEXTS[2]
    nlp = spacy.blank("xx")
    with pytest.warns(UserWarning, match="overlap others"):
        doc = doc_of_text(text, nlp)
    assert len(doc.ents) < len(text.mentions) == len(doc.spans["xel"])
    with pytest.warns(UserWarning, match="token boundaries"):
        doc_of_text(AnnotatedText("1", "Parisian", (Mention(0, 5, ("A",)),)), nlp)


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
    assert second == AnnotatedText("2", "Second", (), "en")


def test_pubtator_keeps_offsets_across_lines(tmp_path):
    text = AnnotatedText("1", "Title\nOne\ttwo\nthree", (Mention(14, 19, ("A",)),), "en")
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
