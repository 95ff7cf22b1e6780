"""Corpora with faults: named, or counted while the rest goes on."""

import json

import pytest

from spacy_xel.formats import read_corpus
from spacy_xel.formats.faults import Faults
from tests.formats.dumps import page, write, write_dump

PUBTATOR = "1|t|Troy\n1|a|fell\n1\t0\t4\tTroy\tX\tA\n\n2|t|Rome\n2|a|\n2\t0\t9\tRome\tX\tB\n\n"
AIDA = "-DOCSTART- (1 A)\nTroy\tB\tTroy\tTroy\n\n-DOCSTART- (2 B)\nRome\tI\tRome\tRome\n"
HIPE = (
    "TOKEN\tNE-COARSE-LIT\tNEL-LIT\tMISC\n# document_id = 1\nTroy\tB-loc\tQ1\t_\n"
    "# document_id = 2\nRome\tB-loc\tQ2\n"
)
JSONL = '{"id": "1", "text": "Troy"}\n{"id": "2", "text": 3}\n'
KILT = '{"id": "1", "input": "[START_ENT] Troy [END_ENT]"}\n{"id": "2", "input": "Rome"}\n'
DAMUEL = (
    json.dumps({"qid": "1", "label": "Troy", "wiki": {"text": "Troy", "links": []}}) + "\n"
    '{"qid": "2", "label": "Rome", "wiki": {"text": "Rome", "links": ["x"]}}\n'
)
NIF_HEAD = "@prefix n: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .\n"


def nif(number, text, start, end, surface, more=""):
    """Return a context with one phrase."""
    return (
        f'<http://x/{number}> n:isString "{text}" .\n'
        f'<http://x/{number}#p> n:anchorOf "{surface}" ; '
        f'n:beginIndex "{start}" ; n:endIndex "{end}" ; n:referenceContext <http://x/{number}> '
        f"{more}.\n"
    )


NIF = NIF_HEAD + nif(1, "Troy", 0, 4, "Troy") + nif(2, "Rome", 0, 4, "Romes")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pubtator", PUBTATOR), ("aida", AIDA), ("hipe", HIPE), ("jsonl", JSONL), ("kilt", KILT),
        ("damuel", DAMUEL), ("nif", NIF),
    ],
)  # fmt: skip
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_bad_text_costs_itself(tmp_path, name, content, line_break):
    if name == "nif":
        pytest.importorskip("pyoxigraph", reason="needs the extra 'dumps'")
    path = write(tmp_path / "corpus.ttl", content.replace("\n", line_break))
    with pytest.raises(ValueError, match=r"corpus\.ttl"):
        list(read_corpus(path, name))
    faults = Faults("skip")
    (text,) = read_corpus(path, name, faults)
    assert text.text.startswith("Troy")
    assert faults.count == len(faults.first) == 1


def test_a_bad_page_of_wikipedia_costs_itself(tmp_path):
    pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")
    dump = write_dump(tmp_path / "w.xml", [page("A", "a"), "<page><b></page>", page("C", "c")])
    faults = Faults("skip")
    assert [text.doc_id for text in read_corpus(dump, faults=faults)] == ["A", "C"]
    assert faults.count == 1
    assert "page 2" in faults.first[0]


@pytest.mark.parametrize("cut", [5, 40])
def test_cut_compression_keeps_what_is_whole(tmp_path, cut):
    lines = "".join(f'{{"id": "{i}", "text": "{i * 7919}"}}\n' for i in range(5000))
    path = write(tmp_path / "c.jsonl.gz", lines)
    path.write_bytes(path.read_bytes()[:-cut])
    faults = Faults("skip")
    texts = list(read_corpus(path, faults=faults))
    assert faults.count >= 1
    assert 4000 < len(texts) <= 5000
    assert [text.doc_id for text in texts] == [str(i) for i in range(len(texts))]


def test_nif_offsets_in_utf16_and_same_as(tmp_path):
    pytest.importorskip("pyoxigraph", reason="needs the extra 'dumps'")
    entity = "; <http://www.w3.org/2005/11/its/rdf#taIdentRef> <http://oke/P> "
    same = "<http://oke/P> <http://www.w3.org/2002/07/owl#sameAs> <http://dbpedia.org/P> .\n"
    for start, end in ((2, 7), (3, 8)):
        content = NIF_HEAD + nif(1, "😀 Paris", start, end, "Paris", entity) + same
        (text,) = read_corpus(write(tmp_path / "n.ttl", content))
        (mention,) = text.mentions
        assert text.text[mention.start : mention.end] == "Paris"
        assert mention.kb_ids == ("http://dbpedia.org/P",)


def test_nif_phrases_without_a_context_are_a_fault(tmp_path):
    pytest.importorskip("pyoxigraph", reason="needs the extra 'dumps'")
    content = NIF.replace('<http://x/2> n:isString "Rome" .\n', "")
    faults = Faults("skip")
    assert len(list(read_corpus(write(tmp_path / "n.ttl", content), faults=faults))) == 1
    assert "referenceContext http://x/2" in faults.first[0]


def test_aida_mentions_do_not_jump_and_escapes_are_utf16(tmp_path):
    jump = "-DOCSTART- (1)\nA\tB\tA B\tX\nand\nB\tI\tA B\tX\n"
    with pytest.raises(ValueError, match="line 4"):
        list(read_corpus(write(tmp_path / "a.aida.tsv", jump)))
    escaped = "-DOCSTART- (1)\nA\tB\tA\tX\\ud83d\\ude00\n"
    (text,) = read_corpus(write(tmp_path / "b.aida.tsv", escaped))
    assert text.mentions[0].kb_ids == ("X😀",)


def test_mewsli_counts_line_breaks_as_they_are(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "d").write_bytes("😀 a\r\nParis".encode())
    write(tmp_path / "docs.tsv", "docid\ttitle\nd\tT\n")
    head = "docid\tposition\tlength\tmention\tqid\n"
    write(tmp_path / "mentions.tsv", head + "d\t5\t5\tParis\tQ90\n")
    (text,) = read_corpus(tmp_path, "mewsli")
    assert text.text[text.mentions[0].start : text.mentions[0].end] == "Paris"
