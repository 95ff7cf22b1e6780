"""Our own corpus format: one JSON object per line, plain or gzipped, offsets in characters."""

import gzip
import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults
from spacy_xel.jsonlines import BadLine, Line, checked_unicode, parse_json_object, read_lines
from spacy_xel.kb.schema import check_id
from spacy_xel.types import AnnotatedText, Mention

MAX_TEXT_BYTES = 256 << 20


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read annotated texts; a line that cannot be read ends with an error that names it."""
    lines = read_lines(path, f"Reading {path.name}", max_bytes=MAX_TEXT_BYTES)
    return (faults or Faults()).parsed(lines, partial(_text, path=path))


def _text(line: Line, path: Path) -> AnnotatedText:
    where = f"{path}, line {line.number}"
    try:
        if line.problem:
            raise BadLine(line.problem)
        return _parse(parse_json_object(line.data), where)
    except BadLine as error:
        raise ValueError(Errors.XE009.format(where=where, problem=error)) from error


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write annotated texts; gzipped if the path ends in .gz."""
    with _open_for_writing(path) as file:
        for text in texts:
            file.write(json.dumps(to_json(text), ensure_ascii=False) + "\n")


def to_json(text: AnnotatedText) -> dict[str, Any]:
    """Return an annotated text as the object of a corpus line."""
    mentions = [
        {"start": m.start, "end": m.end, "kb_ids": list(m.kb_ids), "label": m.label}
        for m in text.mentions
    ]
    return {"id": text.doc_id, "lang": text.lang, "text": text.text, "mentions": mentions}


def _parse(fields: dict[str, Any], where: str) -> AnnotatedText:
    text = fields.get("text")
    if not isinstance(text, str):
        raise BadLine("'text' must be a string")
    checked_unicode(text, "text")
    mentions = fields.get("mentions") or []
    if not isinstance(mentions, list) or not all(isinstance(m, dict) for m in mentions):
        raise BadLine("'mentions' must be a list of objects")
    return AnnotatedText(
        doc_id=_optional(fields, "id"),
        text=text,
        mentions=tuple(_parse_mention(mention, text, where) for mention in mentions),
        lang=_optional(fields, "lang"),
    )


def _parse_mention(fields: dict[str, Any], text: str, where: str) -> Mention:
    start, end = fields.get("start"), fields.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise BadLine("'start' and 'end' of a mention must be whole numbers")
    if not 0 <= start < end <= len(text):
        raise ValueError(Errors.XE016.format(where=where, start=start, end=end, length=len(text)))
    kb_ids = fields.get("kb_ids") or []
    if not isinstance(kb_ids, list):
        raise BadLine("'kb_ids' must be a list of strings")
    checked = tuple(dict.fromkeys(check_id(kb_id) for kb_id in kb_ids))
    return Mention(start, end, checked, _optional(fields, "label"))


def _optional(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return "" if value is None else checked_unicode(str(value), key)


def _open_for_writing(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf8")
    return path.open("w", encoding="utf8")
