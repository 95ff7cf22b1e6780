"""JSON Lines, plain or compressed, read in bounded memory with every fault named."""

import bz2
import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from spacy_xel.errors import Errors
from spacy_xel.progress import byte_progress

MAX_LINE_BYTES = 4 << 20
_CHUNK = 1 << 20
# What the decompressors raise on damaged data; bz2 and gzip raise kinds of OSError.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)


class BadLine(ValueError):
    """A line that cannot be used; the message says why."""


class Line(NamedTuple):
    """A line of a file: its number, counted from 1, and its bytes, or why they cannot be had."""

    number: int
    data: bytes
    problem: str = ""


def read_lines(
    path: Path, description: str, *, max_bytes: int = MAX_LINE_BYTES, skip: int = 0
) -> Iterator[Line]:
    """Read a plain, gzip, bzip2 or xz file line by line, in bounded memory, with a progress bar.

    Lines that are too long come without their data; damaged compressed data end with a line that
    says so.

    skip (int): Pass over so many lines at the beginning.
    """
    if not path.is_file():
        raise FileNotFoundError(Errors.XE019.format(path=path))
    number = 0
    with path.open("rb") as raw, byte_progress(path.stat().st_size, description) as bar:
        file = uncompressed(raw)
        try:
            while data := file.readline(max_bytes + 1):
                number += 1
                if number == 1:
                    data = data.removeprefix(codecs.BOM_UTF8)
                if number % 1000 == 0:
                    bar.update(raw.tell() - bar.n)
                if len(data) > max_bytes:
                    _skip_rest_of_line(file, data)
                    if number <= skip:
                        continue
                    yield Line(number, b"", f"the line is longer than {max_bytes:,} bytes")
                elif number > skip and data.strip():
                    yield Line(number, data)
        except DAMAGED as error:
            if file is raw:
                raise
            yield Line(number + 1, b"", damage(path, error))


def uncompressed(raw: BinaryIO) -> BinaryIO:
    """Return a file that reads what is in a gzip, bzip2 or xz file, or the file if it is neither.

    It goes by the first bytes, because names are not always right.
    """
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(raw))
    if start == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.LZMAFile(raw))
    return raw


def damage(path: Path, error: Exception) -> str:
    """Return what is wrong with a compressed file that raised an error on reading."""
    kinds = {".bz2": "bzip2", ".xz": "xz"}
    kind = kinds.get(path.suffix, "gzip")
    return f"the {kind} data is damaged or cut short ({error})"


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
