"""Which column of a table is what: by the words in its name, and by what is in it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.table import FIELDS, LIST_SEPARATOR, ROW_NUMBER
from spacy_xel.quickstart.dialect import is_number
from spacy_xel.quickstart.headers import PLAIN_IDS, WORDS, is_list_name, words_of

NOT_USED = "-"
SEPARATORS = ("|", ";", ",")
_SURE, _LIKELY, _LEAST = 3.0, 1.5, 1.0
# Prices, areas, shares, sizes and dates: they never repeat in many a table, but are no ids.
_QUANTITY = re.compile(
    r"[-+<>~]?\s*[€$£¥]?\s*\d[\d.,'’ ]*([eE][-+]?\d+)?\s*([%‰€$£¥°²³]|[a-zA-Z]{1,2}[²³]?)?"
    r"|\d{4}-\d\d?-\d\d?([T ].*)?|\d+/\d+/\d+.*|\d\d?:\d\d.*"
)


@dataclass(frozen=True, slots=True)
class Column:
    """What is in a column; shares are of the cells that are not empty."""

    name: str
    place: int
    filled: float  # share of all cells
    distinct: float
    numbers: float
    codes: float  # share with a digit that are no numbers, prices or dates
    length: float  # mean number of characters
    words: float  # mean number of words
    separated: Mapping[str, float] = field(default_factory=dict)  # share with each separator
    twice: float = 0.0  # share with two commas or more
    example: str = ""


class Guess(NamedTuple):
    """The columns of fields, what separates several values in their cells, and why."""

    columns: dict[str, str]
    separators: dict[str, str]
    reasons: dict[str, str]


def describe(names: Sequence[str], rows: Iterable[Mapping[str, str]]) -> list[Column]:
    """Return what is in each column of some rows."""
    table = list(rows)
    return [
        _describe(name, place, [row[name] for row in table]) for place, name in enumerate(names)
    ]


def _describe(name: str, place: int, cells: list[str]) -> Column:
    values = [value for value in map(str.strip, cells) if value]
    n = max(1, len(values))
    return Column(
        name=name,
        place=place,
        filled=len(values) / max(1, len(cells)),
        distinct=len(set(values)) / n,
        numbers=sum(map(is_number, values)) / n,
        codes=sum(map(_is_code, values)) / n,
        length=sum(map(len, values)) / n,
        words=sum(len(value.split()) for value in values) / n,
        separated={s: sum(s in value for value in values) / n for s in SEPARATORS},
        twice=sum(value.count(",") > 1 for value in values) / n,
        example=values[0] if values else "",
    )


def _is_code(value: str) -> bool:
    return any(c.isdigit() for c in value) and not _QUANTITY.fullmatch(value)


def guess_columns(
    columns: Sequence[Column],
    chosen: Mapping[str, str] | None = None,
    separators: Mapping[str, str] | None = None,
    *,
    header: bool = True,
) -> Guess:
    """Return which column is what.

    chosen (dict): Columns that the user named, by field; NOT_USED for none.
    separators (dict): Separators that the user named, by field.
    header (bool): The columns have names; else they have numbers.
    """
    known = {column.name: column for column in columns}
    taken, reasons = _take_chosen(known, chosen or {})
    free = [column for column in columns if column.name not in taken.values()]
    scored = [
        (_score(name, column, header), -FIELDS.index(name), -column.place, name, column)
        for name in FIELDS
        for column in free
        if name not in taken
    ]
    for score, _, _, name, column in sorted(scored, key=lambda s: s[:3], reverse=True):
        if score >= _LEAST and name not in taken and column.name not in taken.values():
            taken[name] = column.name
            by_name = header and _header_score(name, column.name) > 0
            reasons[name] = "its name" if by_name else "what is in it"
    if taken.get("title", NOT_USED) == NOT_USED:
        raise ValueError(Errors.XE091.format(known=list(known)))
    if taken.get("id", NOT_USED) == NOT_USED:
        taken["id"] = ROW_NUMBER
        reasons["id"] = "no column has ids: rows are numbered"
    used = {name: taken[name] for name in FIELDS if taken.get(name, NOT_USED) != NOT_USED}
    several: dict[str, str] = {
        name: (separators or {}).get(name) or guess_separator(known[used[name]])
        for name in ("aliases", "types")
        if name in used
    }
    return Guess(used, several, reasons)


def _take_chosen(
    known: Mapping[str, Column], chosen: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    for name, column in chosen.items():
        if name not in FIELDS:
            raise ValueError(Errors.XE055.format(names=[name], expected=FIELDS))
        special = column == NOT_USED or (name == "id" and column == ROW_NUMBER)
        if column not in known and not special:
            raise ValueError(Errors.XE056.format(name=name, column=column, known=list(known)))
    return dict(chosen), dict.fromkeys(chosen, "you said so")


def guess_separator(column: Column) -> str:
    """Return what is between several names in a cell."""
    for separator in ("|", ";"):
        if column.separated.get(separator, 0.0) >= 0.01:
            return separator
    # A single comma may belong to a name, "Paris, Texas".
    if column.separated.get(",", 0.0) > 0 and (is_list_name(column.name) or column.twice >= 0.05):
        return ","
    return LIST_SEPARATOR


def _header_score(field_name: str, name: str) -> float:
    words = words_of(name)
    if name.strip() == ROW_NUMBER and field_name == "id":
        return _LIKELY
    if not words:
        return 0.0
    if "".join(words) in WORDS[field_name]:
        return _SURE
    if words[-1] in WORDS[field_name]:
        return _LIKELY
    return _LIKELY / 2 if words[0] in WORDS[field_name] else 0.0


def _score(field_name: str, column: Column, header: bool) -> float:
    """Return how well a column fits a field; 0 if it cannot be."""
    by_name = _header_score(field_name, column.name) if header else 0.0
    return _CONTENT[field_name](column, by_name)


def _score_id(column: Column, by_name: float) -> float:
    if column.length > 200:
        return 0.0
    unique = column.distinct >= 0.999 and column.filled == 1.0
    if by_name == _SURE and "".join(words_of(column.name)) in PLAIN_IDS:
        # Rows where it is empty are bad rows, which is said; other ids instead would be no help.
        return by_name + unique if column.filled >= 0.5 and column.distinct >= 0.05 else 0.0
    if column.filled < (0.9 if by_name == _SURE else 0.99):
        return 0.0
    if column.distinct < 0.9 or column.words > 1.5:
        return 0.0
    if by_name:
        return by_name + unique
    # Codes that never repeat; a word that never repeats is rather a name, a number anything.
    return 1.5 if unique and column.codes >= 0.9 and column.words <= 1.05 else 0.0


def _score_title(column: Column, by_name: float) -> float:
    if column.filled < 0.9 or column.numbers > 0.1 or column.length > 100:
        return 0.0
    fits = (column.distinct >= 0.5) + 0.5 * (column.words <= 8)
    return by_name + fits if by_name else 0.8 * fits


def _score_aliases(column: Column, by_name: float) -> float:
    if column.filled == 0.0 or column.numbers > 0.5:
        return 0.0
    separated = max(column.separated.get("|", 0.0), column.separated.get(";", 0.0))
    fits = 1.0 * (separated >= 0.2 and column.distinct > 0.1)
    return by_name + fits if by_name >= _LIKELY else 1.1 * fits


def _score_description(column: Column, by_name: float) -> float:
    if column.filled == 0.0 or column.numbers > 0.5:
        return 0.0
    long = column.words >= 5 and column.length >= 30
    return by_name + long if by_name else 1.2 * long


def _score_types(column: Column, by_name: float) -> float:
    if column.filled == 0.0 or column.numbers > 0.5 or column.words > 4:
        return 0.0
    few = column.distinct <= 0.1
    return by_name + few if by_name else 1.05 * (few and column.filled >= 0.5)


def _score_prior(column: Column, by_name: float) -> float:
    # Numbers can be anything, years or prices: only the name says that they are counts.
    return by_name if column.filled > 0 and column.numbers >= 0.99 else 0.0


_CONTENT = {
    "id": _score_id,
    "title": _score_title,
    "aliases": _score_aliases,
    "description": _score_description,
    "types": _score_types,
    "prior": _score_prior,
}
