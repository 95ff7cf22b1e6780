"""RDF files: their triples sorted by subject on disk, because a file may have them in any order.

Turtle, N-Triples, RDF/XML and the like are parsed by pyoxigraph, which streams; only the predicates
that are asked for are kept, in a temporary SQLite database.
"""

import contextlib
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.formats.reading import Reading
from spacy_xel.jsonlines import DAMAGED, damage, uncompressed
from spacy_xel.progress import byte_progress

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_CACHE_KIB = 64 << 10
_BATCH = 10_000
_COMPRESSED = (".gz", ".bz2", ".xz")
_KINDS = {
    ".ttl": "TURTLE", ".turtle": "TURTLE", ".nt": "N_TRIPLES", ".nq": "N_QUADS", ".n3": "N3",
    ".trig": "TRIG", ".rdf": "RDF_XML", ".owl": "RDF_XML", ".xml": "RDF_XML", ".jsonld": "JSON_LD",
}  # fmt: skip
_MAX_DECLARATIONS = 4 << 20
_ENTITY = b"<!ENTITY"
_HARMLESS = re.compile(rb"""<!ENTITY\s+[\w.-]+\s+(?:"[^"&%<>]{0,200}"|'[^'&%<>]{0,200}')\s*>""")
_TABLES = """
CREATE TABLE subjects (number INTEGER PRIMARY KEY, iri TEXT UNIQUE);
CREATE TABLE triples (subject INTEGER, predicate TEXT, value TEXT, lang TEXT);
"""


class Value(NamedTuple):
    """An object of a triple: a literal's text with its language, or an IRI, which has None."""

    text: str
    lang: str | None = ""


class Subject(NamedTuple):
    """All that a file says about a subject, which has a number by its first place in the file."""

    number: int
    iri: str
    values: Mapping[str, list[Value]]
    problem: str = ""

    def texts(self, predicate: str) -> list[str]:
        """Return the values of a predicate."""
        return [value.text for value in self.values.get(predicate, ())]

    def text(self, predicate: str) -> str:
        """Return the first value of a predicate, or ""."""
        return next(iter(self.texts(predicate)), "")


class Triples:
    """The triples of a file with the predicates asked for."""

    def __init__(self, folder: Path) -> None:
        self.database = sqlite3.connect(folder / "triples.sqlite", isolation_level=None)
        self.database.execute("PRAGMA journal_mode=OFF")
        self.database.execute("PRAGMA synchronous=OFF")
        self.database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        self.database.executescript(_TABLES)

    def load(self, path: Path, predicates: frozenset[str], reading: Reading) -> None:
        """Read a file; statements that cannot be parsed are reported."""
        self.database.execute("BEGIN")
        for iri, predicate, value in _parse(path, reading):
            if predicate in predicates:
                self.database.execute("INSERT OR IGNORE INTO subjects (iri) VALUES (?)", (iri,))
                self.database.execute(
                    "INSERT INTO triples SELECT number, ?, ?, ? FROM subjects WHERE iri = ?",
                    (predicate, value.text, value.lang, iri),
                )
        self.database.execute("COMMIT")
        self.database.execute("CREATE INDEX by_subject ON triples (subject)")

    def subjects(self, skip: int = 0) -> Iterator[Subject]:
        """Yield the subjects in the order of the file, after the first ones."""
        rows = self.database.execute(
            "SELECT number, iri, predicate, value, lang FROM subjects JOIN triples "
            "ON subject = number WHERE number > ? ORDER BY number, triples.rowid",
            (skip,),
        )
        for (number, iri), group in groupby(rows, key=lambda row: (row[0], row[1])):
            values: dict[str, list[Value]] = {}
            for _, _, predicate, text, lang in group:
                values.setdefault(predicate, []).append(Value(text, lang))
            yield Subject(number, iri, values)

    def pointing_to(self, predicate: str, iri: str) -> Iterator[Subject]:
        """Yield the subjects whose value of a predicate is an IRI, in the order of the file."""
        self.database.execute(
            "CREATE INDEX IF NOT EXISTS by_value ON triples (value) WHERE lang IS NULL"
        )
        query = (
            "SELECT DISTINCT subject FROM triples "
            "WHERE value = ? AND lang IS NULL AND predicate = ? ORDER BY subject"
        )
        numbers = [row[0] for row in self.database.execute(query, (iri, predicate))]
        for number in numbers:
            yield next(self.subjects(number - 1))


@contextlib.contextmanager
def open_triples(path: Path, predicates: frozenset[str], reading: Reading) -> Iterator[Triples]:
    """Read a file; yield the triples with the predicates given."""
    with tempfile.TemporaryDirectory(prefix="xel-rdf-") as folder:
        triples = Triples(Path(folder))
        try:
            triples.load(path, predicates, reading)
            yield triples
        finally:
            triples.database.close()


def _parse(path: Path, reading: Reading) -> Iterator[tuple[str, str, Value]]:
    """Yield the triples of a file as subject, predicate and value."""
    oxigraph = import_oxigraph()
    kind = _kind(path)
    with path.open("rb") as raw, byte_progress(path.stat().st_size, f"Reading {path.name}") as bar:
        file: Any = uncompressed(raw)
        if kind == "RDF_XML":
            file = _WithoutBombs(file, path)
        base = path.resolve().as_uri()
        parser = oxigraph.parse(file, getattr(oxigraph.RdfFormat, kind), base_iri=base)
        count = 0
        while True:
            try:
                quad = next(parser)
            except StopIteration:
                return
            except SyntaxError as error:
                _report(reading, error.lineno or 0, f"the RDF cannot be parsed ({error.msg})")
                if kind == "RDF_XML":
                    return  # there is no knowing where the next statement begins
                continue
            except DAMAGED as error:
                _report(reading, 0, damage(path, error))
                return
            count += 1
            if count % _BATCH == 0:
                bar.update(raw.tell() - bar.n)
            found = quad.object
            if isinstance(found, oxigraph.Literal):
                value = Value(found.value, found.language or "")
            else:
                value = Value(str(found.value), None)
            yield str(quad.subject.value), quad.predicate.value, value


def _report(reading: Reading, line: int, problem: str) -> None:
    """Report a fault at a line, while the records are subjects."""
    unit, current = reading.unit, reading.current
    reading.unit, reading.current = "line", line
    reading.problem(problem)
    reading.unit, reading.current = unit, current


class _WithoutBombs:
    """XML that is refused if it declares entities that contain others, or long ones.

    The parser puts entities into each other without a limit: 12 lines became all of the memory.
    Ontologies declare short ones, for the beginnings of IRIs.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.head = file.read(_MAX_DECLARATIONS)
        self.tail = b""
        if self.head.count(_ENTITY) != len(_HARMLESS.findall(self.head)):
            raise ValueError(Errors.XE063.format(path=path))

    def read(self, size: int = -1) -> bytes:
        if self.head:
            end = len(self.head) if size < 0 else size
            data, self.head = self.head[:end], self.head[end:]
            self.tail = data[-len(_ENTITY) :]
            return data
        data = self.file.read(size)
        if _ENTITY in self.tail + data:
            raise ValueError(Errors.XE063.format(path=self.path))
        self.tail = data[-len(_ENTITY) :]
        return data


def import_oxigraph() -> Any:
    """Return pyoxigraph, or raise an error that says how to get it."""
    try:
        import pyoxigraph
    except ImportError as error:
        message = Errors.XE051.format(what="RDF", package="pyoxigraph", extra="dumps")
        raise MissingExtra(message) from error
    return pyoxigraph


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    kind = _KINDS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        problem = "its name has no known ending"
        known = ", ".join(_KINDS)
        raise ValueError(Errors.XE057.format(path=path, problem=problem, known=known))
    return kind
