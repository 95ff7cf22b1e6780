"""Corpora with a token per line, and Mewsli-9."""

import pytest

from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.formats.hipe import COLUMNS
from spacy_xel.types import AnnotatedText, Mention
from tests.formats.dumps import write


def row(token, tag="O", link="_", misc="_"):
    cells = dict.fromkeys(COLUMNS, "O")
    cells |= {"TOKEN": token, "NE-COARSE-LIT": tag, "NEL-LIT": link, "NEL-METO": "_", "MISC": misc}
    return "\t".join(cells[name] for name in COLUMNS) + "\n"


HIPE = (
    "\t".join(COLUMNS) + "\n# hipe2022:document_id = d-1\n# hipe2022:date = 1900-01-01\n"
    "# hipe2022:language = fr\n" + row("A") + row("Saint", "B-loc", "Q1", "NoSpaceAfter")
    + row("-", "I-loc", "Q1", "NoSpaceAfter") + row("Paul", "I-loc", "Q1", "EndOfLine")
    + row("vit") + row("#", misc="NoSpaceAfter") + row("Jean", "B-pers", "NIL", "NoSpaceAfter")
    + row(".", misc="EndOfSentence") + "\n# hipe2022:document_id = d-2\n" + row("Fin")
)  # fmt: skip


def test_hipe(tmp_path):
    first, second = read_corpus(write(tmp_path / "h.hipe.tsv", HIPE))
    assert first == AnnotatedText(
        "d-1", "A Saint-Paul\nvit #Jean.",
        (Mention(2, 12, ("Q1",), "loc"), Mention(18, 22, (), "pers")), "fr",
    )  # fmt: skip
    assert second == AnnotatedText("d-2", "Fin")
    write_corpus([first, second], tmp_path / "again.hipe.tsv")
    assert list(read_corpus(tmp_path / "again.hipe.tsv")) == [first, second]


def test_hipe_counts_what_it_cannot_hold(tmp_path):
    text = AnnotatedText(
        "1", "pre-Paris  x", (Mention(0, 9, ("A",), "L"), Mention(4, 9, ("B",), "L"))
    )
    with pytest.warns(UserWarning, match="Spaces|overlap") as warned:
        write_corpus([text], tmp_path / "h.hipe.tsv")
    assert [str(w.message)[:12] for w in warned] == ["Spaces of 1 ", "1 of 2 menti"]
    (back,) = read_corpus(tmp_path / "h.hipe.tsv")
    assert back.text == "pre-Paris x"
    assert back.mentions == text.mentions[:1]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("TOKEN\t", "WORD\t", "line 1: expected a header"),
        ("B-loc", "I-loc", "line 6: an entity goes on"),
        ("vit\t", "vit", "line 9: 9 columns"),
    ],
)
def test_bad_hipe(tmp_path, old, new, problem):
    with pytest.raises(ValueError, match=problem):
        list(read_corpus(write(tmp_path / "h.hipe.tsv", HIPE.replace(old, new))))


AIDA = (
    "-DOCSTART- (1 TROY)\nParis\tB\tParis\tParis_(mythology)\t"
    "http://en.wikipedia.org/wiki/Paris_(mythology)\t15\t/m/01\nfled\n.\n\n"
    "New\tB\tNew Zembla\t--NME--\nZembla\tI\tNew Zembla\t--NME--\nand\n"
    "Bebe\tB\tBebe\tB\\u00e9b\\u00e9\n\n-DOCSTART- (2 X)\nEnd\n"
)


def test_aida(tmp_path):
    first, second = read_corpus(write(tmp_path / "a.aida.tsv", AIDA))
    assert first.text == "Paris fled .\nNew Zembla and Bebe"
    assert [(first.text[m.start : m.end], m.kb_ids) for m in first.mentions] == [
        ("Paris", ("Paris (mythology)",)), ("New Zembla", ()), ("Bebe", ("Bébé",)),
    ]  # fmt: skip
    assert (first.doc_id, second.doc_id, second.text) == ("1 TROY", "2 X", "End")
    with pytest.raises(ValueError, match="can be read, but not written"):
        write_corpus([first], tmp_path / "b.aida.tsv")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"Paris\n", "expected -DOCSTART-"),
        (b"-DOCSTART- (1)\nParis\tX\n", "line 2: expected a token"),
        (b"-DOCSTART- (1)\nPar\xffis\n", "line 2: not UTF-8"),
    ],
)
def test_bad_aida(tmp_path, data, problem):
    with pytest.raises(ValueError, match=problem):
        list(read_corpus(write(tmp_path / "a.aida.tsv", data)))


def mewsli(folder, mention="Troie", position="3"):
    (folder / "fr" / "text").mkdir(parents=True)
    (folder / "fr" / "text" / "fr-1").write_text("À « Troie » on joue.".replace("« ", ""))
    (folder / "fr" / "docs.tsv").write_text(
        "docid\ttitle\tcurid\trevid\turl\ttext_md5\nfr-1\tT\t1\t1\thttp://x\tm\n"
    )
    (folder / "fr" / "mentions.tsv").write_text(
        "docid\tposition\tlength\tmention\turl\tlang\tqid\tqid_in_refs\tfreq_bin\n"
        f'fr-1\t{position}\t5\t{mention}\thttp://y?"\tfr\tQ22647\tTrue\t3\n'
    )
    return folder


def test_mewsli(tmp_path):
    folder = mewsli(tmp_path / "m", position="2")
    (text,) = read_corpus(folder, "mewsli")
    assert (text.doc_id, text.lang) == ("fr-1", "fr")
    assert [(text.text[m.start : m.end], m.kb_ids) for m in text.mentions] == [
        ("Troie", ("Q22647",))
    ]
    assert list(read_corpus(folder / "fr", "mewsli")) == [text]
    (folder / "fr" / "text" / "fr-1").unlink()
    with pytest.raises(FileNotFoundError, match="fr-1 is missing"):
        list(read_corpus(folder, "mewsli"))


@pytest.mark.parametrize(
    ("mention", "position", "problem"),
    [
        ("Troyes", "2", "the text has 'Troie'"),
        ("Troie", "99", "does not fit"),
        ("Troie", "x", "numbers"),
    ],
)
def test_bad_mewsli(tmp_path, mention, position, problem):
    with pytest.raises(ValueError, match=f"mentions.tsv, line 2.*{problem}"):
        list(read_corpus(mewsli(tmp_path / "m", mention, position), "mewsli"))
