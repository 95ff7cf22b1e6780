"""SKOS vocabularies and other RDF with labels: thesauri, OWL ontologies.

A subject with a label becomes an entity, unless it is a scheme, a collection, a property or
deprecated. Labels as things of their own (SKOS-XL) are not read.
"""

from collections.abc import Iterator
from pathlib import Path

from spacy_xel.formats.rdf import RDF_TYPE, Subject, open_triples
from spacy_xel.formats.reading import Item, Options, Reading, make_entity

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_OBO = "http://www.geneontology.org/formats/oboInOwl#"
_TITLES = (f"{_SKOS}prefLabel", f"{_RDFS}label")
_ALIASES = (
    f"{_SKOS}altLabel", f"{_SKOS}hiddenLabel", f"{_OBO}hasExactSynonym",
    f"{_OBO}hasNarrowSynonym", f"{_OBO}hasRelatedSynonym",
)  # fmt: skip
_DESCRIPTIONS = (
    f"{_SKOS}definition", "http://purl.obolibrary.org/obo/IAO_0000115", f"{_SKOS}scopeNote",
    f"{_RDFS}comment",
)  # fmt: skip
_DEPRECATED = f"{_OWL}deprecated"
_PREDICATES = frozenset((*_TITLES, *_ALIASES, *_DESCRIPTIONS, _DEPRECATED, RDF_TYPE))
_NOT_ENTITIES = {
    f"{_SKOS}ConceptScheme", f"{_SKOS}Collection", f"{_SKOS}OrderedCollection", f"{_OWL}Ontology",
    f"{_OWL}ObjectProperty", f"{_OWL}DatatypeProperty", f"{_OWL}AnnotationProperty",
    f"{_RDF}Property",
}  # fmt: skip
_SAYS_NOTHING = {f"{_SKOS}Concept", f"{_OWL}Class", f"{_RDFS}Class", f"{_OWL}NamedIndividual"}


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read labelled subjects, with labels in the languages chosen or in none."""

    def split(path: Path, skip: int) -> Iterator[Subject]:
        with open_triples(path, _PREDICATES, reading) as triples:
            yield from triples.subjects(skip)

    for subject in reading.records(split, "subject"):
        types = subject.texts(RDF_TYPE)
        titles = _in_languages(subject, _TITLES, options.langs)
        if _NOT_ENTITIES.intersection(types):
            reading.left_out["schemes, collections and properties"] += 1
        elif subject.text(_DEPRECATED) in ("true", "1"):
            reading.left_out["deprecated subjects"] += 1
        elif not titles:
            reading.left_out["subjects without a label in the languages chosen"] += 1
        else:
            yield make_entity(
                local_name(subject.iri) if options.ids == "local" else subject.iri,
                titles[0],
                [*titles[1:], *_in_languages(subject, _ALIASES, options.langs)],
                description=next(iter(_in_languages(subject, _DESCRIPTIONS, options.langs)), ""),
                types=[local_name(iri) for iri in types if iri not in _SAYS_NOTHING],
            )


def _in_languages(
    subject: Subject, predicates: tuple[str, ...], langs: tuple[str, ...]
) -> list[str]:
    """Return the values of several predicates: by language first, those of no language last."""
    found = []
    for lang in (*langs, ""):
        for predicate in predicates:
            for value in subject.values.get(predicate, ()):
                # "en" takes "en-GB" too.
                if (value.lang or "").lower().partition("-")[0] == lang or value.lang == lang:
                    found.append(value.text)
    return found


def local_name(iri: str) -> str:
    """Return the last part of an IRI."""
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2]
