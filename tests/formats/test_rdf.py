"""RDF: SKOS vocabularies as knowledge bases, NIF as a corpus."""

import pytest

from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.types import AnnotatedText, Mention
from tests.formats.dumps import imported, write

pytest.importorskip("pyoxigraph", reason="needs the extra 'dumps'")

SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix e: <http://example.org/> .
e:c1 skos:altLabel "automobile"@en-GB, "Auto"@de .
e:scheme a skos:ConceptScheme ; skos:prefLabel "Things"@en .
e:c1 a skos:Concept ; skos:prefLabel "car"@en, "Wagen"@de ; skos:definition "It drives."@en .
e:c2 a skos:Concept, e:Animal ; skos:prefLabel "cat" ; skos:broader e:c1 .
e:c3 a skos:Concept ; skos:prefLabel "chien"@fr .
e:c4 a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
"""
OWL = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#"
  xmlns:oio="http://www.geneontology.org/formats/oboInOwl#">
  <owl:Class rdf:about="http://example.org/X_1"><rdfs:label>thumb</rdfs:label>
    <oio:hasExactSynonym>pollex</oio:hasExactSynonym></owl:Class>
  <owl:ObjectProperty rdf:about="http://example.org/p"><rdfs:label>part</rdfs:label></owl:ObjectProperty>
</rdf:RDF>
"""


def test_skos(tmp_path):
    source = write(tmp_path / "v.ttl.gz", SKOS)
    report, kb = imported(source, "skos")
    assert kb["http://example.org/c1"] == {
        "id": "http://example.org/c1", "title": "car", "aliases": ["automobile"],
        "description": "It drives.",
    }  # fmt: skip
    assert kb["http://example.org/c2"]["types"] == ["Animal"]
    assert report.left_out == {
        "schemes, collections and properties": 1, "deprecated subjects": 1,
        "subjects without a label in the languages chosen": 1,
    }  # fmt: skip
    _, kb = imported(source, "skos", langs=("de", "en"), ids="local")
    assert kb["c1"]["title"] == "Wagen"
    assert kb["c1"]["aliases"] == ["car", "Auto", "automobile"]


def test_owl(tmp_path):
    _, kb = imported(write(tmp_path / "o.owl", OWL), "skos", ids="local")
    assert kb == {"X_1": {"id": "X_1", "title": "thumb", "aliases": ["pollex"]}}


def test_bad_rdf(tmp_path):
    broken = SKOS.replace("e:c2 a skos:Concept,", "e:c2 a a a skos:Concept,")
    source = write(tmp_path / "v.ttl", broken)
    with pytest.raises(ValueError, match="line 7: the RDF cannot be parsed"):
        imported(source, "skos")
    report, kb = imported(source, "skos", on_error="skip")
    assert sum(report.problems.values()) >= 1
    assert "http://example.org/c1" in kb
    with pytest.raises(ValueError, match="no known ending"):
        imported(write(tmp_path / "v.txt", SKOS), "skos")


def test_entity_bomb(tmp_path):
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "hahahahaha">'
    bomb += "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(12)) + "]>"
    data = OWL.replace('<?xml version="1.0"?>', bomb).replace("thumb", "&a12;")
    for ending in ("owl", "owl.gz"):
        with pytest.raises(ValueError, match="entities that contain others"):
            imported(write(tmp_path / f"o.{ending}", data), "skos", on_error="skip")
    late = OWL.replace("?>", "?><!--" + " " * (5 << 20) + "-->" + bomb[21:]).replace(
        "thumb", "&a12;"
    )
    with pytest.raises(ValueError, match="entities that contain others"):
        imported(write(tmp_path / "late.owl", late), "skos", on_error="skip")


def test_entities_for_namespaces_are_fine(tmp_path):
    start = '<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY ex "http://example.org/">]>'
    data = OWL.replace('<?xml version="1.0"?>', start).replace("http://example.org/X", "&ex;X")
    _, kb = imported(write(tmp_path / "o.owl", data), "skos")
    assert list(kb) == ["http://example.org/X_1"]


NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix its: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://ex.org/d1#char=3,8> a nif:Phrase ; nif:referenceContext <http://ex.org/d1#char=0,14> ;
  nif:beginIndex "3"^^xsd:nonNegativeInteger ; nif:endIndex "8"^^xsd:nonNegativeInteger ;
  nif:anchorOf "Paris" ; its:taIdentRef <http://dbpedia.org/resource/Paris> .
<http://ex.org/d1#char=0,14> a nif:Context ; nif:isString "So Paris fled." ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "14"^^xsd:nonNegativeInteger .
<http://ex.org/d1#char=0,2> a nif:Phrase ; nif:referenceContext <http://ex.org/d1#char=0,14> ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "2"^^xsd:nonNegativeInteger ;
  its:taIdentRef <http://aksw.org/notInWiki/So> .
"""


def test_nif_as_others_write_it(tmp_path):
    (text,) = read_corpus(write(tmp_path / "c.ttl", NIF))
    paris = Mention(3, 8, ("http://dbpedia.org/resource/Paris",))
    assert text == AnnotatedText("http://ex.org/d1", "So Paris fled.", (Mention(0, 2), paris))


def test_nif_round_trip(tmp_path):
    texts = [
        AnnotatedText("d 1/#", 'A "b"\n\t\\ ü😀', (
            Mention(0, 1, ("Q1", "http://x.org/y"), "PER"), Mention(2, 5), Mention(2, 5, ("B",)),
        ), "en"),
        AnnotatedText("2", "x", (), ""),
    ]  # fmt: skip
    write_corpus(texts, tmp_path / "c.ttl")
    assert list(read_corpus(tmp_path / "c.ttl")) == texts


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('endIndex "8"', 'endIndex "80"', "does not fit"),
        ('anchorOf "Paris"', 'anchorOf "Pari"', "the text has 'Paris'"),
        ('beginIndex "3"', 'beginIndex "x"', "must be numbers"),
        ("nif:anchorOf", "nif anchorOf", "cannot be parsed"),
    ],
)
def test_bad_nif(tmp_path, old, new, problem):
    with pytest.raises(ValueError, match=problem):
        list(read_corpus(write(tmp_path / "c.ttl", NIF.replace(old, new))))
