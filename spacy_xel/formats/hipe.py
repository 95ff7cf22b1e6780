"""HIPE: a tab-separated line per token, as in the HIPE-2020 and HIPE-2022 shared tasks.

Read are the coarse literal entities (NE-COARSE-LIT) and their Wikidata ids (NEL-LIT); other
columns are not. "NoSpaceAfter" and "EndOfLine" in the column MISC say what is between tokens. Texts
that have anything but one space or line break there are changed by writing, and counted.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from spacy_xel.errors import Errors, Warnings
from spacy_xel.formats.faults import Faults, blocks_of_lines, decoded
from spacy_xel.formats.tokens import TextBuilder, tokens_of
from spacy_xel.jsonlines import Line
from spacy_xel.types import ID_SEPARATOR, NIL, AnnotatedText

COLUMNS = (
    "TOKEN", "NE-COARSE-LIT", "NE-COARSE-METO", "NE-FINE-LIT", "NE-FINE-METO", "NE-FINE-COMP",
    "NE-NESTED", "NEL-LIT", "NEL-METO", "MISC",
)  # fmt: skip
_NEEDED = ("TOKEN", "NE-COARSE-LIT", "NEL-LIT", "MISC")
_METADATA = re.compile(r"#\s*(?:\w+:)?(document_id|language)\s*=\s*(.*)")
_BEGINS = re.compile(rb"#\s*(?:\w+:)?document_id\s*=")
_NO_LABEL = "ent"
_Document = tuple[list[str], list[Line]]


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read documents."""
    return (faults or Faults()).parsed(_documents(path), partial(_document, path=path))


def _documents(path: Path) -> Iterator[_Document]:
    """Yield the lines of each document, with the header that holds for them."""
    header: list[str] = []
    for block in blocks_of_lines(path, lambda data: _BEGINS.match(data) is not None):
        rows = []
        for line in block:
            if not header or line.data.startswith(b"TOKEN\t"):
                header = _header(line, path)
            else:
                rows.append(line)
        if rows:
            yield header, rows


def _header(line: Line, path: Path) -> list[str]:
    where, content = decoded(line, path)
    header = content.split("\t")
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        problem = f"expected a header with the columns {', '.join(missing)}"
        raise ValueError(Errors.XE009.format(where=where, problem=problem))
    return header


def _document(document: _Document, path: Path) -> AnnotatedText | None:
    header, rows = document
    builder = TextBuilder()
    for line in rows:
        where, content = decoded(line, path)
        if match := _METADATA.match(content):
            if match[1] == "document_id":
                builder.doc_id = match[2].strip()
            else:
                builder.lang = match[2].strip()
        elif not content.startswith("# "):
            cells = content.split("\t")
            if len(cells) != len(header):
                problem = f"{len(cells)} columns, where the header has {len(header)}"
                raise ValueError(Errors.XE009.format(where=where, problem=problem))
            _add(builder, dict(zip(header, cells, strict=True)), where)
    return builder.finish() if builder.parts else None


def _add(builder: TextBuilder, cells: dict[str, str], where: str) -> None:
    flags = cells["MISC"].split("|")
    separator = "\n" if "EndOfLine" in flags else " "
    goes_on = builder.in_mention
    place = builder.add(cells["TOKEN"], "" if "NoSpaceAfter" in flags else separator)
    position, _, label = cells["NE-COARSE-LIT"].partition("-")
    if position in ("B", "S"):
        ids = [i for i in cells["NEL-LIT"].split(ID_SEPARATOR) if i not in ("_", "-", "", NIL)]
        builder.begin_mention(place, tuple(dict.fromkeys(ids)), label)
    elif position in ("I", "E"):
        if not goes_on:
            problem = "an entity goes on here that did not begin"
            raise ValueError(Errors.XE009.format(where=where, problem=problem))
        builder.extend_mention(place[1])


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write documents; of mentions that overlap, the longest."""
    changed = overlapping = total = 0
    with path.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for number, text in enumerate(texts):
            file.write(f"# hipe2022:document_id = {text.doc_id or number}\n")
            file.write(f"# hipe2022:language = {text.lang}\n")
            tokens, left_out = tokens_of(text)
            total += len(text.mentions)
            overlapping += left_out
            rebuilt = 0
            for token in tokens:
                ends_line = "\n" in token.gap
                flags = ["EndOfLine"] if ends_line else [] if token.gap else ["NoSpaceAfter"]
                rebuilt += len(token.text) + bool(token.gap)
                row = dict.fromkeys(COLUMNS, "O") | {"TOKEN": token.text, "NEL-METO": "_"}
                row |= {"NEL-LIT": "_", "MISC": "|".join(flags) or "_"}
                if token.mention is not None:
                    position = "B" if token.begins else "I"
                    row["NE-COARSE-LIT"] = f"{position}-{token.mention.label or _NO_LABEL}"
                    row["NEL-LIT"] = ID_SEPARATOR.join(token.mention.kb_ids) or NIL
                file.write("\t".join(row[name] for name in COLUMNS) + "\n")
            changed += rebuilt != len(text.text)
            file.write("\n")
    if changed:
        warnings.warn(Warnings.XW020.format(count=changed), stacklevel=2)
    if overlapping:
        message = Warnings.XW021.format(count=overlapping, total=total, format="HIPE")
        warnings.warn(message, stacklevel=2)
