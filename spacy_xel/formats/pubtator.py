"""PubTator: title and abstract lines, then one tab-separated line per mention.

Ids of a composite mention are joined by "|" (or ";"); "-1" or "-" is NIL. Lines of relations (four
columns) are not mentions and are passed over. The format knows no language, and no line breaks
within a text: on writing, each becomes a space, so that offsets stay right, and a warning counts
the texts.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from spacy_xel.errors import Errors, Warnings
from spacy_xel.formats.faults import Faults, blocks_of_lines, decoded
from spacy_xel.jsonlines import Line
from spacy_xel.types import ID_SEPARATOR, AnnotatedText, Mention

_TEXT_LINE = re.compile(r"^([^|\t]+)\|([ta])\|(.*)$")
_BEGINS = re.compile(rb"([^|\t]+)\|([ta])\|")
_NIL_ID = "-1"
_ID_SEPARATORS = re.compile(r"[|;]")


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read annotated texts."""
    return (faults or Faults()).parsed(_blocks(path), partial(_text, path=path))


def _blocks(path: Path) -> Iterator[list[Line]]:
    """Cut a file into blocks: a title begins one, and so does the line of another text."""
    current = b""

    def begins(data: bytes) -> bool:
        nonlocal current
        match = _BEGINS.match(data)
        if match is None or (match[2] == b"a" and match[1] == current):
            return False
        current = match[1]
        return True

    return blocks_of_lines(path, begins)


def _text(block: list[Line], path: Path) -> AnnotatedText:
    builder = _TextBuilder()
    for line in block:
        where, content = decoded(line, path)
        if match := _TEXT_LINE.match(content):
            builder.doc_id = match[1]
            builder.parts.append(match[3])
        else:
            builder.add_mention(content.split("\t"), where)
    return builder.finish()


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write annotated texts; the first line of a text is its title."""
    changed = 0
    with path.open("w", encoding="utf8", newline="\n") as file:
        for number, text in enumerate(texts):
            where = f"text {number + 1}"
            doc_id = _checked_id(text.doc_id or str(number), where)
            changed += _one_line(text.text) != text.text
            title, _, abstract = text.text.partition("\n")
            if not title or not abstract:
                title, abstract = text.text, ""
            file.write(f"{doc_id}|t|{_one_line(title)}\n")
            file.write(f"{doc_id}|a|{_one_line(abstract)}\n")
            for mention in text.mentions:
                surface = _one_line(text.text[mention.start : mention.end])
                ids = [_checked_id(kb_id, where) for kb_id in mention.kb_ids]
                label = _one_line(mention.label)
                columns = [doc_id, str(mention.start), str(mention.end), surface, label]
                file.write("\t".join([*columns, ID_SEPARATOR.join(ids) or _NIL_ID]) + "\n")
            file.write("\n")
    if changed:
        warnings.warn(Warnings.XW004.format(count=changed), stacklevel=2)


class _TextBuilder:
    def __init__(self) -> None:
        self.doc_id = ""
        self.parts: list[str] = []
        self.mentions: list[Mention] = []

    def add_mention(self, columns: list[str], where: str) -> None:
        if len(columns) == 4 and not columns[1].isdigit():
            return  # a relation between entities
        numbers = len(columns) >= 5 and columns[1].isdecimal() and columns[2].isdecimal()
        if not numbers or columns[0] != self.doc_id:
            problem = "expected 'ID|t|title', 'ID|a|abstract' or a mention in tab-separated columns"
            raise ValueError(Errors.XE009.format(where=where, problem=problem))
        start, end = int(columns[1]), int(columns[2])
        text = self._text()
        if not 0 <= start < end <= len(text):
            message = Errors.XE016.format(where=where, start=start, end=end, length=len(text))
            raise ValueError(message)
        if text[start:end] != columns[3]:
            raise ValueError(
                Errors.XE037.format(where=where, found=columns[3], expected=text[start:end])
            )
        found = _ID_SEPARATORS.split(columns[5]) if len(columns) > 5 else []
        kb_ids = tuple(dict.fromkeys(kb_id for kb_id in found if kb_id not in ("", "-", _NIL_ID)))
        self.mentions.append(Mention(start, end, kb_ids, columns[4]))

    def finish(self) -> AnnotatedText:
        return AnnotatedText(self.doc_id, self._text(), tuple(self.mentions))

    def _text(self) -> str:
        return " ".join(part for part in self.parts if part)


def _one_line(text: str) -> str:
    return re.sub(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text)


def _checked_id(value: str, where: str) -> str:
    if re.search(r"[|;\t\n\r]", value) or value in ("-", _NIL_ID):
        raise ValueError(Errors.XE038.format(where=where, value=value))
    return value
