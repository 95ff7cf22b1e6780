"""Tables: CSV and TSV files with a header, and a map from our names to those of the columns."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import Item, Options, Reading, lines_of_file, make_entity
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import Entity

FIELDS = ("id", "title", "aliases", "description", "types", "prior")
LIST_SEPARATOR = "|"  # between several names in one cell
_MAX_CELL = 16 << 20


class Row(NamedTuple):
    """A row: the number of its last line, and its cells by the names of the columns."""

    number: int
    cells: dict[str, str]
    problem: str = ""


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read a row as an entity. Columns are those named, or else those of the same name as ours."""
    unknown = set(options.columns) - set(FIELDS)
    if unknown:
        raise ValueError(Errors.XE055.format(names=sorted(unknown), expected=FIELDS))
    csv.field_size_limit(_MAX_CELL)

    def split(path: Path, skip: int) -> Iterator[Row]:
        return read_rows(path, skip, options.delimiter or guess_delimiter(path))

    for row in reading.records(split):
        try:
            entity = _entity(row.cells, options)
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity


def guess_delimiter(path: Path) -> str:
    """Return what separates columns, by the file's name."""
    endings = {suffix.lower() for suffix in path.suffixes}
    return "\t" if endings & {".tsv", ".tab"} else ","


def read_rows(path: Path, skip: int, delimiter: str) -> Iterator[Row]:
    """Yield the rows of a file that has the names of its columns in the first one."""
    lines = _TextLines(path)
    if delimiter == "\t":  # TSV files have no quotes, and names may have one
        rows = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except (csv.Error, BadLine) as error:
            if lines.number > skip:
                yield Row(lines.number, {}, str(error))
            continue
        if header is None:
            header = [name.strip() for name in cells]
        elif len(cells) != len(header):
            if lines.number > skip:
                problem = f"{len(cells)} cells, where the header has {len(header)}"
                yield Row(lines.number, {}, problem)
        elif lines.number > skip:
            yield Row(lines.number, dict(zip(header, cells, strict=True)))


class _TextLines:
    """The lines of a file as text, for the csv module, with the number of the last one."""

    def __init__(self, path: Path) -> None:
        self.lines = lines_of_file(path, 0)
        self.number = 0

    def __iter__(self) -> "_TextLines":
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.number = line.number
        if line.problem:
            raise BadLine(line.problem)
        try:
            return line.data.decode()
        except UnicodeDecodeError as error:
            raise BadLine(f"not UTF-8 ({error.reason} at byte {error.start})") from error


def _entity(cells: dict[str, str], options: Options) -> Entity:
    values = {}
    for name in FIELDS:
        column = options.columns.get(name, name)
        if column in cells:
            values[name] = cells[column]
        elif name in options.columns or name in ("id", "title"):
            raise ValueError(Errors.XE056.format(name=name, column=column, known=list(cells)))
    try:
        prior = float(values.get("prior") or 0.0)
    except ValueError as error:
        raise BadLine(f"'prior' must be a number, but got {values['prior']!r}") from error
    return make_entity(
        values["id"].strip(),
        values["title"],
        values.get("aliases", "").split(LIST_SEPARATOR),
        description=values.get("description", ""),
        types=[kind.strip() for kind in values.get("types", "").split(LIST_SEPARATOR)],
        prior=prior,
    )
