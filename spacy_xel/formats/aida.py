"""AIDA-YAGO2: a token per line, with B or I, the mention, and what it is linked to.

Only read, because the corpus has no spaces of its own to be kept: tokens are joined by spaces, and
sentences by line breaks. The ids are titles of Wikipedia, as in the knowledge base that is imported
from its dump; "--NME--" is NIL.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults, blocks_of_lines, decoded
from spacy_xel.formats.tokens import TextBuilder
from spacy_xel.formats.wiki_titles import clean_title
from spacy_xel.jsonlines import Line
from spacy_xel.types import AnnotatedText

_NIL_MARK = "--NME--"
_DOCUMENT = re.compile(r"-DOCSTART-\s*\(?(.*?)\)?\s*$")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read documents."""
    blocks = blocks_of_lines(path, lambda data: data.startswith(b"-DOCSTART-"))
    return (faults or Faults()).parsed(blocks, partial(_document, path=path))


def _document(block: list[Line], path: Path) -> AnnotatedText | None:
    builder: TextBuilder | None = None
    last = block[0].number
    for line in block:
        where, content = decoded(line, path)
        if match := _DOCUMENT.match(content):
            builder = TextBuilder(match[1], "en")
        elif builder is None:
            problem = "expected -DOCSTART- at the beginning"
            raise ValueError(Errors.XE009.format(where=where, problem=problem))
        else:
            # Lines that are empty end sentences; the reader passes over them.
            if line.number > last + 1:
                builder.separator = "\n" if builder.parts else ""
            _add(builder, content.split("\t"), where)
        last = line.number
    return builder.finish() if builder is not None and builder.parts else None


def _add(builder: TextBuilder, columns: list[str], where: str) -> None:
    goes_on = builder.in_mention
    place = builder.add(columns[0])
    position = columns[1] if len(columns) > 1 else ""
    if position == "B" and len(columns) >= 4:
        builder.begin_mention(place, _ids(columns), "")
    elif position == "I" and goes_on:
        builder.extend_mention(place[1])
    elif position:
        problem = "expected a token, or a token with B or I, a mention and an entity"
        raise ValueError(Errors.XE009.format(where=where, problem=problem))


def _ids(columns: list[str]) -> tuple[str, ...]:
    if columns[3] == _NIL_MARK:
        return ()
    url = columns[4] if len(columns) > 4 else ""
    if "/wiki/" in url:
        return (clean_title(url.rpartition("/wiki/")[2]),)
    return (clean_title(_ESCAPES.sub(_unescaped, columns[3])),)


def _unescaped(match: re.Match[str]) -> str:
    """Return the characters of a run of escapes, which are UTF-16 as in Java."""
    units = bytes.fromhex(match.group().replace("\\u", ""))
    return units.decode("utf-16-be", errors="replace")
