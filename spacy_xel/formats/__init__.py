"""Corpora in outside formats: one module each, with read(path) and write(texts, path)."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats import docbin, jsonl, pubtator
from spacy_xel.storage import new_file
from spacy_xel.types import AnnotatedText


class Format(NamedTuple):
    """How to read and write a format, and the file names by which it is known."""

    read: Callable[[Path], Iterator[AnnotatedText]]
    write: Callable[[Iterable[AnnotatedText], Path], None]
    suffixes: tuple[str, ...]


FORMATS = {
    "jsonl": Format(jsonl.read, jsonl.write, (".jsonl", ".jsonl.gz")),
    "spacy": Format(docbin.read, docbin.write, (".spacy",)),
    "pubtator": Format(pubtator.read, pubtator.write, (".pubtator", ".pubtator.txt")),
}


def guess_format(path: Path) -> str:
    """Return the name of the format that a file's name stands for."""
    for name, known in FORMATS.items():
        if path.name.endswith(known.suffixes):
            return name
    message = Errors.XE015.format(
        path=path, format="a corpus", problem="its name has no known ending", known=list(FORMATS)
    )
    raise ValueError(message)


def read_corpus(path: Path, format_name: str | None = None) -> Iterator[AnnotatedText]:
    """Read annotated texts, in the format named or the one that the file's name stands for."""
    if not path.exists():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    return FORMATS[format_name or guess_format(path)].read(path)


def write_corpus(
    texts: Iterable[AnnotatedText], path: Path, format_name: str | None = None
) -> None:
    """Write annotated texts, in the format named or the one that the file's name stands for."""
    write = FORMATS[format_name or guess_format(path)].write
    with new_file(path) as scratch:
        write(texts, scratch)
