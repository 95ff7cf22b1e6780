"""Mewsli-9: per language a folder with docs.tsv, mentions.tsv and the texts in text/DOCID.

Only read. Give the folder of a language, or the one that has them all. The mentions of one language
are held in memory, about 80,000 at most.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults
from spacy_xel.types import AnnotatedText, Mention

_DOCS, _MENTIONS, _TEXTS = "docs.tsv", "mentions.tsv", "text"


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read the documents of all languages in a folder."""
    folders = (
        [path] if (path / _DOCS).is_file() else sorted(p.parent for p in path.glob(f"*/{_DOCS}"))
    )
    if not folders:
        raise ValueError(Errors.XE052.format(path=path, expected=f"files {_DOCS}"))
    for folder in folders:
        yield from _read_language(folder, faults or Faults())


def _read_language(folder: Path, faults: Faults) -> Iterator[AnnotatedText]:
    mentions: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for number, row in _rows(folder / _MENTIONS, ("docid", "position", "length", "mention", "qid")):
        mentions.setdefault(row["docid"], []).append((number, row))

    def document(numbered: tuple[int, dict[str, str]]) -> AnnotatedText:
        number, row = numbered
        rows = mentions.pop(row["docid"], [])
        text = _text(folder, row["docid"], number)
        found = tuple(_mention(r, text, f"{folder / _MENTIONS}, line {n}") for n, r in rows)
        lang = rows[0][1].get("lang", folder.name) if rows else folder.name
        return AnnotatedText(row["docid"], text, found, lang)

    yield from faults.parsed(_rows(folder / _DOCS, ("docid",)), document)
    if mentions:
        number, row = next(iter(mentions.values()))[0]
        where = f"{folder / _MENTIONS}, line {number}"
        problem = f"the document {row['docid']!r} is not in {_DOCS}"
        faults.take(ValueError(Errors.XE009.format(where=where, problem=problem)))


def _text(folder: Path, doc_id: str, number: int) -> str:
    path = folder / _TEXTS / doc_id
    try:
        return path.read_bytes().decode()  # line breaks as they are: they count
    except UnicodeDecodeError as error:
        raise ValueError(Errors.XE009.format(where=path, problem=error)) from error
    except FileNotFoundError as error:
        problem = f"its text {path} is missing; the dataset's script makes it"
        where = f"{folder / _DOCS}, line {number}"
        raise FileNotFoundError(Errors.XE009.format(where=where, problem=problem)) from error


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(encoding="utf8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        missing = [name for name in needed if name not in (rows.fieldnames or ())]
        if missing:
            problem = f"expected a header with the columns {', '.join(missing)}"
            raise ValueError(Errors.XE009.format(where=path, problem=problem))
        for row in rows:
            if any(row[name] is None for name in needed):
                where = f"{path}, line {rows.line_num}"
                raise ValueError(Errors.XE009.format(where=where, problem="columns are missing"))
            yield rows.line_num, row


def _mention(row: dict[str, str], text: str, where: str) -> Mention:
    if not (row["position"].isdecimal() and row["length"].isdecimal()):
        problem = "position and length must be numbers"
        raise ValueError(Errors.XE009.format(where=where, problem=problem))
    start = int(row["position"])
    end = start + int(row["length"])
    if not 0 <= start < end <= len(text):
        raise ValueError(Errors.XE016.format(where=where, start=start, end=end, length=len(text)))
    if text[start:end] != row["mention"]:
        message = Errors.XE058.format(where=where, found=row["mention"], expected=text[start:end])
        raise ValueError(message)
    return Mention(start, end, (row["qid"],) if row["qid"] else ())
