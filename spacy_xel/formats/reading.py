"""A reader's place in its source, and the faults it met there.

This is what an import that was killed starts from again: which file of the source, how many of its
records are done with, and what was left out so far.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from spacy_xel.errors import Errors
from spacy_xel.jsonlines import BadLine, Line, parse_json_object, read_lines
from spacy_xel.types import AnnotatedText, Entity

OnError = Literal["stop", "skip"]
MAX_RECORD_BYTES = 64 << 20  # an item of Wikidata has up to several megabytes


class Record(Protocol):
    """A part of a source: its number, which grows, and what is wrong with it, if anything."""

    @property
    def number(self) -> int: ...

    @property
    def problem(self) -> str: ...


AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True)
class Options:
    """What a user can choose about reading a knowledge base; each format takes some of it."""

    langs: tuple[str, ...] = ("en",)
    columns: Mapping[str, str] = field(default_factory=dict)  # our name -> that of the column
    delimiter: str = ""
    header: bool = True  # a table's first row has the names of its columns
    quotes: bool | None = None  # a table's cells may be in quotes; None: unless tabs separate them
    separators: Mapping[str, str] = field(default_factory=dict)  # our name -> between its values
    ids: str = ""  # which of a source's ids to take; each format has its own kinds
    texts: bool = False  # texts with links are wanted too
    only_pages: bool = False  # only items that have a page, which gives them their title


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another name of a page."""

    title: str
    target: str


@dataclass(frozen=True, slots=True)
class Article:
    """An entity with the text about it, whose mentions name other entities by their titles.

    The links that have no place in the text are names all the same: (title, surface). Redirects
    are other titles of the page.
    """

    entity: Entity
    text: AnnotatedText
    links: tuple[tuple[str, str], ...] = ()
    redirects: tuple[str, ...] = ()


Item = Entity | Redirect | Article


class Reading:
    """Records of a file, or of all files in a folder, with an account of them.

    path (Path): A file, or a folder whose files are read in the order of their names.
    on_error (str): "stop" at the first bad record, or "skip" and count it.
    """

    SHOWN = 20

    def __init__(self, path: Path, on_error: OnError = "stop") -> None:
        self.path = path
        self.on_error = on_error
        self.files = source_files(path)
        self.file_number = 0
        self.taken = 0  # the number of the last record of this file that is done with
        self.current = 0  # the number of the record at hand
        self.unit = "line"
        self.left_out: Counter[str] = Counter()  # by design, by reason
        self.problems: Counter[str] = Counter()
        self.first_problems: list[str] = []
        self.on_problem: Callable[[dict[str, Any]], None] | None = None

    def records(
        self, split: Callable[[Path, int], Iterator[AnyRecord]], unit: str = "line"
    ) -> Iterator[AnyRecord]:
        """Yield the records that are not done with; those that cannot be read are reported.

        A reader makes at most one item of a record, as the last thing it does with it.

        split (Callable): Called with a file and the number of the last record to be passed over.
        unit (str): What the records are called in messages.
        """
        self.unit = unit
        while self.file_number < len(self.files):
            for record in split(self.file, self.taken):
                self.current = record.number
                if record.problem:
                    self.problem(record.problem)
                else:
                    yield record
                self.done()
            self.file_number += 1
            self.taken = 0

    def done(self) -> None:
        """Count the record at hand as done with."""
        self.taken = self.current

    def lines(self) -> Iterator[Line]:
        """Yield the lines of text files."""
        return self.records(lines_of_file)

    def json_objects(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of files that have one per line."""
        for line in self.lines():
            try:
                fields = parse_json_object(line.data)
            except BadLine as error:
                self.problem(error)
            else:
                yield fields

    @property
    def file(self) -> Path:
        """The file that is being read."""
        return self.files[min(self.file_number, len(self.files) - 1)]

    def problem(self, problem: object) -> None:
        """Report the record at hand as bad: raise an error, or count it."""
        where = f"{self.file}, {self.unit} {self.current}"
        if self.on_error == "stop":
            raise ValueError(Errors.XE050.format(where=where, problem=problem))
        self.problems[str(problem).split("(")[0].strip()[:80]] += 1
        if len(self.first_problems) < self.SHOWN:
            self.first_problems.append(Errors.XE009.format(where=where, problem=problem))
        if self.on_problem is not None:
            place = {"file": self.file.name, self.unit: self.current}
            self.on_problem({**place, "problem": str(problem)})

    def state(self) -> dict[str, Any]:
        """Return all that is needed to go on from here, as JSON."""
        return {
            "file_number": self.file_number,
            "taken": self.taken,
            "left_out": dict(self.left_out),
            "problems": dict(self.problems),
            "first_problems": self.first_problems,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.file_number = state["file_number"]
        self.taken = state["taken"]
        self.left_out = Counter(state["left_out"])
        self.problems = Counter(state["problems"])
        self.first_problems = list(state["first_problems"])


def lines_of_file(path: Path, skip: int) -> Iterator[Line]:
    """Yield the lines of a file after the first ones."""
    return read_lines(path, f"Reading {path.name}", max_bytes=MAX_RECORD_BYTES, skip=skip)


def source_files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder, in the order of their names."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if files:
            return files
    if not path.is_file():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    return [path]


def make_entity(
    kb_id: str,
    title: str,
    aliases: Iterable[str] = (),
    *,
    description: str = "",
    types: Iterable[str] = (),
    prior: float = 0.0,
) -> Entity:
    """Return an entity whose names are tidy: no spaces around them, none empty, none twice."""
    title = title.strip()
    names = dict.fromkeys(alias.strip() for alias in aliases)
    names.pop("", None)
    names.pop(title, None)
    kinds = dict.fromkeys(filter(None, types))
    return Entity(kb_id, title, tuple(names), description.strip(), tuple(kinds), prior)


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """Return a string, or "" if there is none, or raise BadLine if it is something else."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadLine(f"'{key}' must be a string, but got {type(value).__name__}")
    return value


def list_field(fields: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list, or [] if there is none, or raise BadLine if it is something else."""
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadLine(f"'{key}' must be a list, but got {type(value).__name__}")
    return value


def objects_field(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects, or [] if there is none, or raise BadLine if it is not one."""
    values = list_field(fields, key)
    if not all(isinstance(value, dict) for value in values):
        raise BadLine(f"'{key}' must be a list of objects")
    return values


def object_field(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an object, or {} if there is none, or raise BadLine if it is something else."""
    value = fields.get(key)
    if not value:  # PHP writes an empty object as []
        return {}
    if not isinstance(value, dict):
        raise BadLine(f"'{key}' must be an object, but got {type(value).__name__}")
    return value
