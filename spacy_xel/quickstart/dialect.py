"""What kind of file somebody's knowledge base is, and how its rows are cut into cells."""

import codecs
import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.table import guess_delimiter, split_rows
from spacy_xel.jsonlines import uncompressed

Kind = Literal["jsonl", "csv"]
DELIMITERS = (",", ";", "\t", "|")
SAMPLE_BYTES = 256 << 10
_SAVE_AS = "Save it as CSV in UTF-8"
_STARTS = {
    b"PK\x03\x04": ("a zip archive or a spreadsheet", f"{_SAVE_AS}, or unpack it"),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet or document", _SAVE_AS),
    b"\xff\xfe": ("text in UTF-16", _SAVE_AS),
    b"\xfe\xff": ("text in UTF-16", _SAVE_AS),
    b"%PDF": ("a PDF document", "Take the table that it was made from"),
    b"<": ("XML or HTML", "See `xel kb import --help` for formats of ontologies and dumps"),
    b"[": ("a JSON array", "Write one JSON object per line, with 'id' and 'title'"),
}
_CONSISTENT = 0.9  # of the rows must have the same number of cells


class Dialect(NamedTuple):
    """How to cut rows into cells."""

    delimiter: str
    quotes: bool


def read_start(path: Path) -> str:
    """Return the first lines of a text file, or raise an error that says what it is instead."""
    if not path.is_file():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    with path.open("rb") as raw:
        try:
            data = uncompressed(raw).read(SAMPLE_BYTES)
        except (EOFError, OSError) as error:
            raise _unfit(path, f"damaged ({error})", "Get it again") from error
    if not data.strip(codecs.BOM_UTF8 + b" \t\r\n"):
        raise _unfit(path, "empty", "Is it the right file?")
    for start, (found, hint) in _STARTS.items():
        if data.lstrip().startswith(start):
            raise _unfit(path, found, hint)
    if b"\0" in data:
        raise _unfit(path, "binary data", "Is it the right file?")
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(data)  # a character that is cut off at the end is no error
    except UnicodeDecodeError as error:
        found = f"not in UTF-8 ({error.reason} at byte {error.start})"
        raise _unfit(path, found, "Convert it, for example: iconv -f latin1 -t utf8") from error
    whole_lines = text if len(data) < SAMPLE_BYTES else text[: text.rfind("\n") + 1]
    return whole_lines or text


def guess_kind(start: str) -> Kind:
    """Return whether a file has JSON Lines or a table, by its first lines."""
    return "jsonl" if start.lstrip().startswith("{") else "csv"


def guess_dialect(start: str, path: Path, delimiter: str = "") -> Dialect:
    """Return the delimiter that gives all rows the same number of cells, more than one.

    delimiter (str): Take this one, and guess only whether there are quotes.
    """
    if delimiter:
        return Dialect(delimiter, _has_quotes(start, delimiter))
    by_name = guess_delimiter(path)
    found: dict[str, tuple[float, int, bool]] = {}
    for candidate in DELIMITERS:
        share, cells = _consistency(start, candidate, _has_quotes(start, candidate))
        if cells > 1 and share >= _CONSISTENT:
            found[candidate] = (round(share, 2), cells, candidate == by_name)
    if found:
        best = max(found, key=lambda candidate: found[candidate])
        return Dialect(best, _has_quotes(start, best))
    if _consistency(start, ",", True) == (1.0, 1):
        return Dialect(",", True)
    # One name per line, some of them with commas: nothing to cut.
    return Dialect("\t", False)


def first_rows(start: str, dialect: Dialect, limit: int = 1000) -> list[list[str]]:
    """Return the rows of the first lines, without those that cannot be cut."""
    rows = split_rows(start.splitlines(keepends=True), *dialect)
    cut: list[list[str]] = []
    while len(cut) < limit:
        try:
            cells = next(rows)
        except StopIteration:
            break
        except csv.Error:
            continue
        if any(cell.strip() for cell in cells):
            cut.append(cells)
    return cut


def _consistency(start: str, delimiter: str, quotes: bool) -> tuple[float, int]:
    """Return the share of rows that have the most frequent number of cells, and that number."""
    counts = Counter(map(len, first_rows(start, Dialect(delimiter, quotes))))
    if not counts:
        return 0.0, 0
    cells, rows = max(counts.items(), key=lambda item: (item[1], item[0]))
    return rows / counts.total(), cells


def _has_quotes(start: str, delimiter: str) -> bool:
    """Return whether quotes are around cells; in TSV files they often belong to names."""
    if delimiter != "\t":
        return True
    raw = [cell for row in first_rows(start, Dialect(delimiter, False)) for cell in row]
    opened = [cell for cell in raw if cell.startswith('"')]
    closed = [cell for cell in opened if len(cell) > 1 and cell.endswith('"')]
    return bool(closed) and len(closed) == len(opened)


def has_header(rows: Sequence[Sequence[str]], known: Sequence[bool]) -> bool:
    """Return whether the first row has names of columns.

    If in doubt it has not: a header taken for an entity does less harm than the reverse.

    known (Sequence[bool]): Per cell of the first row, whether it is a usual name of a column.
    """
    first, rest = rows[0], rows[1:]
    if any(is_number(cell) for cell in first) or len(set(first)) < len(first):
        return False
    if any(known):
        return True
    for place, cell in enumerate(first):
        below = [row[place] for row in rest if place < len(row) and row[place].strip()]
        if not below or cell in below:
            continue
        if all(map(is_number, below)):
            return True
        shapes = {_shape(value) for value in below}
        if (
            len(below) > 2
            and len(shapes) == 1
            and _shape(cell) not in shapes
            and "0" in "".join(shapes)
        ):
            return True
    return False


def is_number(text: str) -> bool:
    """Return whether a cell has a finite number that is not negative."""
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False


def _shape(text: str) -> str:
    """Return a cell with letters as A and digits as 0, runs made one: "Q90" is A0."""
    kinds = ["0" if c.isdigit() else "A" if c.isalpha() else c for c in text.strip()]
    return "".join(kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind)


def _unfit(path: Path, found: str, hint: str) -> ValueError:
    return ValueError(Errors.XE090.format(path=path, found=found, hint=hint))
