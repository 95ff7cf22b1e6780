"""Tables: CSV and TSV files, and a map from our names to those of the columns.

Columns of a table without a header are called by their numbers, counted from 1.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import Item, Options, Reading, lines_of_file, make_entity
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import Entity

FIELDS = ("id", "title", "aliases", "description", "types", "prior")
LIST_SEPARATOR = "|"  # between several names in one cell
ROW_NUMBER = "#"  # as the column of ids: the number of the row, counted from 1
_MAX_CELL = 16 << 20
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE | re.DOTALL)


class Row(NamedTuple):
    """A row: the number of its last line, and its cells by the names of the columns."""

    number: int
    cells: dict[str, str]
    problem: str = ""
    place: int = 0  # counted from 1, without the header


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read a row as an entity. Columns are those named, or else those of the same name as ours."""
    unknown = set(options.columns) - set(FIELDS)
    if unknown:
        raise ValueError(Errors.XE055.format(names=sorted(unknown), expected=FIELDS))

    def split(path: Path, skip: int) -> Iterator[Row]:
        delimiter = options.delimiter or guess_delimiter(path)
        return read_rows(path, skip, delimiter, header=options.header, quotes=options.quotes)

    for row in reading.records(split):
        try:
            entity = entity_of_row(row, options)
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity


def guess_delimiter(path: Path) -> str:
    """Return what separates columns, by the file's name."""
    endings = {suffix.lower() for suffix in path.suffixes}
    return "\t" if endings & {".tsv", ".tab"} else ","


def declared_delimiter(line: str) -> str:
    """Return what Excel's first line "sep=;" says that separates columns; "" for any other line."""
    found = _SEPARATOR_LINE.fullmatch(line)
    return found[1] if found else ""


def split_rows(
    lines: Iterable[str], delimiter: str, quotes: bool | None = None
) -> "Iterator[list[str]]":
    """Return the cells of rows, by the csv module."""
    csv.field_size_limit(_MAX_CELL)
    if quotes is None:  # TSV files have no quotes, and names may have one
        quotes = delimiter != "\t"
    if not quotes:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def read_rows(
    path: Path, skip: int, delimiter: str, *, header: bool = True, quotes: bool | None = None
) -> Iterator[Row]:
    """Yield the rows of a file, without those that have nothing in them.

    A column without a name is called by its number, and one with another's name gets its number
    added.

    header (bool): The first row has the names of the columns.
    quotes (bool): Cells may be in quotes; by default unless tabs separate them.
    """
    lines = _TextLines(path)
    rows = split_rows(lines, delimiter, quotes)
    names: list[str] | None = None
    index = 0
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except (csv.Error, BadLine) as error:
            index += names is not None
            if lines.number > skip:
                yield Row(lines.number, {}, _problem_of(error))
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if names is None:
            names = _names_of(cells if header else [""] * len(cells))
            if header:
                continue
        index += 1
        if lines.number <= skip:
            continue
        if len(cells) != len(names):
            first = "header" if header else "first row"
            problem = f"{len(cells)} cells, where the {first} has {len(names)}"
            yield Row(lines.number, {}, problem)
        else:
            yield Row(lines.number, dict(zip(names, cells, strict=True)), place=index)


def _problem_of(error: Exception) -> str:
    if "new-line character seen" in str(error):
        return "a carriage return in a cell without quotes"
    return str(error)


def _names_of(cells: list[str]) -> list[str]:
    """Return a name for each column, no two the same."""
    names: dict[str, None] = {}
    for number, cell in enumerate(cells, 1):
        name = cell.strip() or str(number)
        while name in names:
            name = f"{name}_{number}"
        names[name] = None
    return list(names)


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
            text = line.data.decode()
        except UnicodeDecodeError as error:
            raise BadLine(f"not UTF-8 ({error.reason} at byte {error.start})") from error
        return next(self) if line.number == 1 and declared_delimiter(text) else text


def entity_of_row(row: Row, options: Options) -> Entity:
    """Return the entity in a row, or raise BadLine."""
    cells = row.cells
    values = {}
    for name in FIELDS:
        column = options.columns.get(name, name)
        if column in cells:
            values[name] = cells[column]
        elif name == "id" and column == ROW_NUMBER:
            values[name] = str(row.place)
        elif name in options.columns or name in ("id", "title"):
            raise ValueError(Errors.XE056.format(name=name, column=column, known=list(cells)))
    try:
        prior = float(values.get("prior") or 0.0)
    except ValueError as error:
        raise BadLine(f"'prior' must be a number, but got {values['prior']!r}") from error
    several = {
        name: values.get(name, "").split(options.separators.get(name) or LIST_SEPARATOR)
        for name in ("aliases", "types")
    }
    return make_entity(
        values["id"].strip(),
        values["title"],
        several["aliases"],
        description=values.get("description", ""),
        types=[kind.strip() for kind in several["types"]],
        prior=prior,
    )
