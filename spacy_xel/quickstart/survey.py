"""A first look at a knowledge base: how it is read, and how much there is of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import Options, lines_of_file
from spacy_xel.formats.table import ROW_NUMBER, Row, declared_delimiter, entity_of_row, read_rows
from spacy_xel.jsonlines import BadLine
from spacy_xel.kb.schema import parse_entity
from spacy_xel.quickstart.columns import Column, Guess, describe, guess_columns
from spacy_xel.quickstart.dialect import (
    Kind,
    first_rows,
    guess_dialect,
    guess_kind,
    has_header,
    read_start,
)
from spacy_xel.quickstart.scripts import count_unspaced
from spacy_xel.types import Entity

SAMPLE_ROWS = 20_000


@dataclass(frozen=True)
class Survey:
    """How to read a knowledge base, and what to expect in it."""

    path: Path
    kind: Kind
    options: Options
    rows: int
    names: int  # estimated from a sample
    characters: int  # of names and descriptions, estimated
    described: bool  # there are descriptions
    columns: list[Column] = field(default_factory=list)
    guess: Guess | None = None
    unspaced: dict[str, float] = field(default_factory=dict)  # share of titles, by language

    @property
    def numbered(self) -> bool:
        """Whether rows have their numbers as ids."""
        return self.options.columns.get("id") == ROW_NUMBER


def survey(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    separators: Mapping[str, str] | None = None,
    delimiter: str = "",
    header: bool | None = None,
) -> Survey:
    """Look at a KB file: guess what the user did not say.

    columns, separators (dict): By field, what the user said.
    header (bool): Whether the first row has names of columns; None to guess.
    """
    start = read_start(path)
    if guess_kind(start) == "jsonl":
        given = {"--column": columns, "--separator": separators, "--delimiter": delimiter}
        for option in [name for name, value in given.items() if value]:
            help_text = "Its fields have names already."
            raise ValueError(Errors.XE060.format(format="jsonl", option=option, help=help_text))
        return _survey_lines(path)
    return _survey_table(path, start, columns, separators, delimiter, header)


def _survey_table(
    path: Path,
    start: str,
    columns: Mapping[str, str] | None,
    separators: Mapping[str, str] | None,
    delimiter: str,
    header: bool | None,
) -> Survey:
    first_line, _, rest = start.partition("\n")
    declared = declared_delimiter(first_line)
    start = rest if declared else start
    dialect = guess_dialect(start, path, delimiter or declared)
    if header is None:
        rows = first_rows(start, dialect)
        header = bool(rows) and has_header(rows)
    stream = read_rows(path, 0, dialect.delimiter, header=header, quotes=dialect.quotes)
    sample = list(islice(stream, SAMPLE_ROWS))
    good = [row for row in sample if not row.problem]
    if not good:
        found = f"a table without a good row ({sample[0].problem})" if sample else "only a header"
        raise ValueError(Errors.XE090.format(path=path, found=found, hint="Is it the right file?"))
    described = describe(list(good[0].cells), (row.cells for row in good))
    guess = guess_columns(described, columns, separators, header=header)
    options = Options(
        columns=guess.columns,
        delimiter=dialect.delimiter,
        header=header,
        quotes=dialect.quotes,
        separators=guess.separators,
    )
    n_rows = len(sample) + sum(1 for _ in stream)
    entities = _entities_of_rows(good, options)
    return _measure(path, "csv", options, n_rows, len(sample), entities, described, guess)


def _survey_lines(path: Path) -> Survey:
    lines = lines_of_file(path, 0)
    sample = list(islice(lines, SAMPLE_ROWS))
    n_rows = len(sample) + sum(1 for _ in lines)

    def entities() -> Iterator[Entity]:
        for line in sample:
            try:
                yield parse_entity(line.data)
            except BadLine:
                continue

    return _measure(path, "jsonl", Options(), n_rows, len(sample), entities())


def _entities_of_rows(rows: list[Row], options: Options) -> Iterator[Entity]:
    for row in rows:
        try:
            yield entity_of_row(row, options)
        except BadLine:
            continue


def _measure(
    path: Path,
    kind: Kind,
    options: Options,
    rows: int,
    sampled: int,
    entities: Iterator[Entity],
    columns: list[Column] | None = None,
    guess: Guess | None = None,
) -> Survey:
    names = characters = described = titles = 0
    unspaced: Counter[str] = Counter()
    for entity in entities:
        titles += 1
        count_unspaced(entity.title, unspaced)
        names += len(entity.names)
        characters += len(entity.description) + sum(map(len, entity.names))
        described += bool(entity.description)
    scale = rows / max(1, sampled)
    return Survey(
        path=path,
        kind=kind,
        options=options,
        rows=rows,
        names=round(names * scale),
        characters=round(characters * scale),
        described=described > 0,
        columns=columns or [],
        guess=guess,
        unspaced={lang: count / titles for lang, count in unspaced.items()},
    )
