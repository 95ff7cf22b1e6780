"""OBO ontologies: a stanza of "tag: value" lines per term.

Terms become entities: name, synonyms but for the broader ones, definition, namespace as type.
Obsolete terms are left out, and counted. The format is read by hand because the libraries for it
make a graph of the whole file, and only a handful of tags are needed.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import Item, Options, Reading, lines_of_file, make_entity
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import Entity

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(\w*)')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "W": " ", "t": "\t"}
_NOT_A_NAME = ("BROAD",)


class Stanza(NamedTuple):
    """A stanza: the number of its first line, its kind, and its tags in order."""

    number: int
    kind: str
    tags: list[tuple[str, str]]
    problem: str = ""


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read terms."""
    for stanza in reading.records(read_stanzas):
        if stanza.kind != "Term":
            if stanza.kind:
                reading.left_out[f"stanzas of the kind {stanza.kind}"] += 1
            continue
        try:
            entity = _entity(stanza)
        except BadLine as error:
            reading.problem(error)
            continue
        if entity is not None:
            yield entity
        else:
            reading.left_out["obsolete terms"] += 1


def read_stanzas(path: Path, skip: int) -> Iterator[Stanza]:
    """Yield the stanzas of a file; the header is one without a kind."""
    stanza = Stanza(1, "", [])
    for line in lines_of_file(path, 0):
        try:
            text = line.data.decode().strip()
        except UnicodeDecodeError as error:
            line = line._replace(problem=f"not UTF-8 ({error.reason} at byte {error.start})")
        if line.problem:
            if line.number > skip:
                yield Stanza(line.number, stanza.kind, [], line.problem)
        elif text.startswith("[") and text.endswith("]"):
            if stanza.number > skip:
                yield stanza
            stanza = Stanza(line.number, text[1:-1], [])
        elif text and not text.startswith("!"):
            tag, _, value = text.partition(":")
            stanza.tags.append((tag.strip(), value.strip()))
    if stanza.number == 1 and not stanza.kind:
        raise ValueError(Errors.XE052.format(path=path, expected="[Term] stanzas"))
    if stanza.number > skip:
        yield stanza


def _entity(stanza: Stanza) -> Entity | None:
    kb_id = name = definition = ""
    synonyms, types = [], []
    for tag, value in stanza.tags:
        match tag:
            case "id":
                kb_id = _plain(value)
            case "name":
                name = _plain(value)
            case "def":
                definition = _quoted(tag, value)[0]
            case "synonym":
                synonym, scope = _quoted(tag, value)
                if scope not in _NOT_A_NAME:
                    synonyms.append(synonym)
            case "exact_synonym" | "narrow_synonym" | "related_synonym":  # OBO 1.0
                synonyms.append(_quoted(tag, value)[0])
            case "namespace":
                types.append(_plain(value))
            case "is_obsolete":
                if _plain(value) == "true":
                    return None
    if not kb_id:
        raise BadLine("the term has no id")
    return make_entity(kb_id, name, synonyms, description=definition, types=types)


def _plain(value: str) -> str:
    """Return an unquoted value without comment and qualifiers."""
    value = re.split(r"(?<!\\)\s!\s|(?<!\\)\s\{", value, maxsplit=1)[0]
    return _unescaped(value.strip())


def _quoted(tag: str, value: str) -> tuple[str, str]:
    """Return a quoted value, and the word after it."""
    match = _QUOTED.match(value)
    if match is None:
        raise BadLine(f"'{tag}' has no quoted value: {value[:80]}")
    return _unescaped(match[1]), match[2]


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), value)
