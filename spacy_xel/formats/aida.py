"""AIDA-YAGO2: a token per line, with B or I, the mention, and what it is linked to.

Only read, because the corpus has no spaces of its own to be kept: tokens are joined by spaces, and
sentences by line breaks. The ids are titles of Wikipedia, as in the knowledge base that is imported
from its dump; "--NME--" is NIL.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import lines_of_file
from spacy_xel.formats.tokens import TextBuilder
from spacy_xel.formats.wiki_titles import clean_title
from spacy_xel.types import AnnotatedText

_NIL_MARK = "--NME--"
_DOCUMENT = re.compile(r"-DOCSTART-\s*\(?(.*?)\)?\s*$")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def read(path: Path) -> Iterator[AnnotatedText]:
    """Read documents."""
    builder: TextBuilder | None = None
    for number, content in _all_lines(path):
        where = f"{path}, line {number}"
        if match := _DOCUMENT.match(content):
            if builder is not None and builder.parts:
                yield builder.finish()
            builder = TextBuilder(match[1], "en")
        elif builder is None:
            problem = "expected -DOCSTART- at the beginning"
            raise ValueError(Errors.XE009.format(where=where, problem=problem))
        elif not content:
            builder.separator = "\n" if builder.parts else ""
        else:
            _add(builder, content.split("\t"), where)
    if builder is not None and builder.parts:
        yield builder.finish()


def _all_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield all lines; those that are empty end sentences, and the reader passes over them."""
    last = 0
    for line in lines_of_file(path, 0):
        problem = line.problem
        try:
            content = line.data.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            problem = str(error)
        if problem:
            where = f"{path}, line {line.number}"
            raise ValueError(Errors.XE009.format(where=where, problem=problem))
        if line.number > last + 1:
            yield line.number - 1, ""
        yield line.number, content
        last = line.number


def _add(builder: TextBuilder, columns: list[str], where: str) -> None:
    place = builder.add(columns[0])
    position = columns[1] if len(columns) > 1 else ""
    if position == "B" and len(columns) >= 4:
        builder.begin_mention(place, _ids(columns), "")
    elif position == "I" and builder.mentions:
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
    name = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), columns[3])
    return (clean_title(name),)
