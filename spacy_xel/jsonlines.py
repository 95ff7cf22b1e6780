"""JSON Lines, plain or gzipped, read in bounded memory with every fault named."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from spacy_xel.errors import Errors
from spacy_xel.progress import byte_progress

MAX_LINE_BYTES = 4 << 20
_CHUNK = 1 << 20


class BadLine(ValueError):
    """A line that cannot be used; the message says why."""


class Line(NamedTuple):
    """A line of a file: its number, counted from 1, and its bytes, or why they cannot be had."""

    number: int
    data: bytes
    problem: str = ""


def read_lines(path: Path, description: str, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Read a plain or gzipped file line by line, in bounded memory, with a progress bar.

    Lines that are too long come without their data; a damaged gzip ends with a line that says so.
    """
    if not path.is_file():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    number = 0
    with path.open("rb") as raw, byte_progress(path.stat().st_size, description) as bar:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
        try:
            while data := file.readline(max_bytes + 1):
                number += 1
                if number == 1:
                    data = data.removeprefix(codecs.BOM_UTF8)
                if number % 1000 == 0:
                    bar.update(raw.tell() - bar.n)
                if len(data) > max_bytes:
                    _skip_rest_of_line(file, data)
                    yield Line(number, b"", f"the line is longer than {max_bytes:,} bytes")
                elif data.strip():
                    yield Line(number, data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Line(number + 1, b"", f"the gzip data is damaged or cut short ({error})")


def parse_json_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object on a line, or raise BadLine."""
    try:
        value = json.loads(data)
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise BadLine(f"not valid JSON ({error.msg} at character {error.pos})") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(f"JSON that cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise BadLine(f"expected a JSON object, but got {type(value).__name__}")
    return value


def checked_unicode(value: str, key: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadLine(
            f"'{key}' has a lone surrogate at character {error.start}, which is not text"
        ) from error
    return value


def _skip_rest_of_line(file: BinaryIO, data: bytes) -> None:
    while data and not data.endswith(b"\n"):
        data = file.readline(_CHUNK)
