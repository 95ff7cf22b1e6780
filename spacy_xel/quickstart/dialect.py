"""What kind of file somebody's knowledge base is, and how its rows are cut into cells."""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.table import guess_delimiter, split_rows
from spacy_xel.jsonlines import uncompressed
from spacy_xel.quickstart.headers import is_usual_name

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
_MOSTLY = 0.5  # of the rows, if something else says that the delimiter is right


class Dialect(NamedTuple):
    """How to cut rows into cells."""

    delimiter: str
    quotes: bool


class _Cut(NamedTuple):
    """What becomes of the first rows with a delimiter."""

    share: float  # of the rows that have the most frequent number of cells
    cells: int  # that number
    first: int  # number of cells in the first row
    usual: int  # how many of these are usual names of columns

    @property
    def consistent(self) -> bool:
        return self.cells > 1 and self.share >= _CONSISTENT

    @property
    def mostly(self) -> bool:
        return self.cells > 1 and self.share >= _MOSTLY and self.first == self.cells

    def rank(self) -> tuple[float, int, int]:
        return (
            (round(self.share, 2), self.cells, self.usual)
            if self.consistent
            else (0.0, self.usual, 0)
        )


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
    if b"\r" in data.strip() and b"\n" not in data:
        raise _unfit(path, "text with the line ends of old Macs", "Convert it: tr '\\r' '\\n'")
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

    One that cuts a header into usual names is taken even if rows have odd numbers of cells: they
    are reported as bad rows then, rather than each line taken for a name.

    delimiter (str): Take this one, and guess only whether there are quotes.
    """
    if delimiter:
        return Dialect(delimiter, _has_quotes(start, delimiter))
    cuts = {candidate: _cut(start, candidate) for candidate in DELIMITERS}
    endings = {suffix.lower() for suffix in path.suffixes}
    by_name = guess_delimiter(path) if endings & {".csv", ".tsv", ".tab"} else ""
    choices: tuple[Callable[[str, _Cut], bool], ...] = (
        lambda _, cut: cut.consistent and cut.usual > 0,
        lambda _, cut: cut.usual > 1 or (cut.usual == 1 and cut.mostly),
        lambda _, cut: cut.consistent,
        lambda candidate, cut: candidate == by_name and cut.mostly,
    )
    for is_good in choices:
        good = [candidate for candidate, cut in cuts.items() if is_good(candidate, cut)]
        if good:
            best = max(good, key=lambda c: (*cuts[c].rank(), c == guess_delimiter(path)))
            return Dialect(best, _has_quotes(start, best))
    if (cuts[","].share, cuts[","].cells) == (1.0, 1):
        return Dialect(",", True)
    # One name per line, some of them with commas: nothing to cut.
    return Dialect("\t", False)


def first_rows(start: str, dialect: Dialect, limit: int = 1000) -> list[list[str]]:
    """Return the rows of the first lines, without those that cannot be cut."""
    rows = split_rows(io.StringIO(start, newline="\n"), *dialect)
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


def _cut(start: str, delimiter: str) -> _Cut:
    rows = first_rows(start, Dialect(delimiter, _has_quotes(start, delimiter)))
    counts = Counter(map(len, rows))
    if not counts:
        return _Cut(0.0, 0, 0, 0)
    cells, most = max(counts.items(), key=lambda item: (item[1], item[0]))
    usual = sum(map(is_usual_name, rows[0])) if len(rows[0]) > 1 else 0
    return _Cut(most / counts.total(), cells, len(rows[0]), usual)


def _has_quotes(start: str, delimiter: str) -> bool:
    """Return whether quotes are around cells; in TSV files they often belong to names."""
    if delimiter != "\t":
        return True
    raw = [cell for row in first_rows(start, Dialect(delimiter, False)) for cell in row]
    opened = [cell for cell in raw if cell.startswith('"')]
    closed = [cell for cell in opened if len(cell) > 1 and cell.endswith('"')]
    return bool(closed) and len(closed) == len(opened)


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names of columns.

    If in doubt it has not: a header taken for an entity does less harm than the reverse.
    """
    first = {place: cell.strip() for place, cell in enumerate(rows[0]) if cell.strip()}
    usual = sum(map(is_usual_name, first.values()))
    has_numbers = any(map(is_number, first.values()))
    if usual > 1 or (usual and not has_numbers):
        return True
    if has_numbers or len(set(first.values())) < len(first):
        return False
    return any(_stands_out(cell, _below(rows, place)) for place, cell in first.items())


def _below(rows: Sequence[Sequence[str]], place: int) -> list[str]:
    return [row[place] for row in rows[1:] if place < len(row) and row[place].strip()]


def _stands_out(cell: str, below: list[str]) -> bool:
    """Return whether a cell is unlike all others of its column."""
    if not below or cell in below:
        return False
    if all(map(is_number, below)):
        return True
    shapes = {_shape(value) for value in below}
    alike = len(below) > 2 and len(shapes) == 1 and "0" in "".join(shapes)
    return alike and _shape(cell) not in shapes


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
