"""Names on their way into the index: more than fit in memory, sorted by hash.

Names are collected, sorted in memory chunk by chunk, and appended to one of 64 parts by the
leading bits of their hash. The parts are read back one at a time; one after the other they are
the whole in order.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_xel.errors import Errors
from spacy_xel.kb.key_table import hash_name
from spacy_xel.types import UInt64Array

PART_BITS = 6
PARTS = 1 << PART_BITS
BYTES_PER_NAME = 210  # at the peak of sorting; 144 while they are collected (DBpedia titles)
_RECORD = np.dtype([("hash", "<u8"), ("row", "<u4"), ("kind", "<u2"), ("length", "<u4")])

ALIAS, TITLE, MENTION = 0, 1, 2
NIL_ROW = 0xFFFFFFFF


class Part(NamedTuple):
    """Names in the order of their hash; those of equal hash in the order of arrival."""

    records: npt.NDArray[Any]  # (n,) of _RECORD
    names: list[bytes]


class Spool:
    """Collect (name, row, kind) and give them back sorted by the name's hash."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.max_bytes = max_bytes
        self.chunk_size = int(np.clip(max_bytes // (4 * BYTES_PER_NAME), 1_000, 500_000))
        self.size = 0
        self._bytes = 0
        self._hashes: list[int] = []
        self._rows: list[int] = []
        self._kinds: list[int] = []
        self._keys: list[bytes] = []

    def add(self, key: str, row: int, kind: int) -> None:
        self._hashes.append(hash_name(key))
        self._rows.append(row)
        self._kinds.append(kind)
        encoded = key.encode()
        self._keys.append(encoded)
        self._bytes += len(encoded)
        self.size += 1
        if len(self._keys) >= self.chunk_size or self._bytes > self.max_bytes // 8:
            self._flush()

    def parts(self, on_collision: Callable[[bytes, bytes], None]) -> Iterator[Part]:
        """Yield the parts in order, each once, deleting what has been read.

        on_collision: Called with two names that have the same hash; the second is left out.
        """
        self._flush()
        for part in range(PARTS):
            records_path, keys_path = self._paths(part)
            if not records_path.exists():
                continue
            self._check_size(records_path, keys_path)
            records = np.fromfile(records_path, dtype=_RECORD)
            data = keys_path.read_bytes()
            ends = np.cumsum(records["length"], dtype=np.int64)
            order = np.argsort(records["hash"], kind="stable")
            keys = [data[ends[i] - records["length"][i] : ends[i]] for i in order.tolist()]
            records_path.unlink()
            keys_path.unlink()
            yield _without_collisions(Part(records[order], keys), on_collision)

    def _flush(self) -> None:
        if not self._keys:
            return
        hashes: UInt64Array = np.array(self._hashes, dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        keys = [self._keys[i] for i in order.tolist()]
        records = np.empty(len(keys), dtype=_RECORD)
        records["hash"] = hashes[order]
        records["row"] = np.array(self._rows, dtype=np.uint32)[order]
        records["kind"] = np.array(self._kinds, dtype=np.uint16)[order]
        records["length"] = [len(key) for key in keys]
        firsts = np.arange(PARTS + 1, dtype=np.uint64) << np.uint64(64 - PART_BITS)
        bounds = [*np.searchsorted(records["hash"], firsts[:-1]).tolist(), len(keys)]
        for part, (start, end) in enumerate(pairwise(bounds)):
            if start < end:
                records_path, keys_path = self._paths(part)
                with records_path.open("ab") as file:
                    file.write(records[start:end].tobytes())
                with keys_path.open("ab") as file:
                    file.write(b"".join(keys[start:end]))
        for values in (self._hashes, self._rows, self._kinds, self._keys):
            values.clear()
        self._bytes = 0

    def _paths(self, part: int) -> tuple[Path, Path]:
        return self.folder / f"{part:02}.records", self.folder / f"{part:02}.keys"

    def _check_size(self, records_path: Path, keys_path: Path) -> None:
        names = records_path.stat().st_size // _RECORD.itemsize
        need = 2 * (names * BYTES_PER_NAME // 4 + keys_path.stat().st_size)
        if need > self.max_bytes:
            message = Errors.XE011.format(
                parts=PARTS, need_mb=need >> 20, cap_mb=self.max_bytes >> 20
            )
            raise MemoryError(message)


def _without_collisions(part: Part, on_collision: Callable[[bytes, bytes], None]) -> Part:
    """Leave out names that have the same hash as another name, which is not expected to happen."""
    hashes = part.records["hash"]
    again = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    kept = np.ones(len(hashes), dtype=bool)
    names = part.names
    for i in again.tolist():
        if names[i] != names[i - 1]:
            on_collision(names[i - 1], names[i])
            kept[i] = False
            names[i] = names[i - 1]
    if kept.all():
        return part
    return Part(part.records[kept], [names[i] for i in np.flatnonzero(kept).tolist()])
