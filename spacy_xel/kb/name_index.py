"""Names and the entities they may mean: built from a spool, read from flat arrays."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_xel.kb.arrays import ArrayWriter
from spacy_xel.kb.key_table import KEY_ARRAYS, LAST_HASH, KeyTable, hash_name, make_directory, view
from spacy_xel.kb.spool import MENTION, NIL_ROW, PARTS, TITLE, Part, Spool
from spacy_xel.progress import progress
from spacy_xel.storage import load_array
from spacy_xel.types import Float32Array, Float64Array, Int64Array, UInt32Array, UInt64Array

NAME_ARRAYS = (*KEY_ARRAYS, "prefix_filter", "rows", "probabilities", "counts", "nil_counts")
_FILTER_BITS_PER_NAME = 16


class NameIndex:
    """From a normalised name to rows of the KB, the most probable first.

    table (KeyTable): The names; a key's values are its stretch of the three arrays below.
    rows (uint32[:]): Entities.
    probabilities (float32[:]): P(entity | name).
    counts (uint32[:]): How often a corpus used the name for the entity.
    nil_counts (uint32[:]): One per name: how often a corpus used it for something not in the KB.
    prefix_filter (uint64[:]): A bit field over the beginnings of names, see name_kernels.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays
        self.table = KeyTable(arrays["keys"], arrays["directory"])
        self.rows: UInt32Array = arrays["rows"]
        self.probabilities: Float32Array = arrays["probabilities"]
        self.counts: UInt32Array = arrays["counts"]
        self.nil_counts: UInt32Array = arrays["nil_counts"]
        self.prefix_filter: UInt64Array = arrays["prefix_filter"]
        self._rows = view(self.rows)
        self._probabilities = view(self.probabilities)
        self.get: Callable[[str], list[tuple[int, float]]] = self._make_get()

    def __len__(self) -> int:
        return len(self.table)

    def get_batch(self, keys: Sequence[str]) -> list[list[tuple[int, float]]]:
        """Return what get returns, for many keys at a time; keys may not contain line breaks."""
        from spacy_xel.kb.name_kernels import find_lines

        data = np.frombuffer("\n".join(keys).encode("utf8", "replace"), dtype=np.uint8)
        values = np.zeros((len(keys), 2), dtype=np.int64)
        table = self.table
        find_lines(data, table.keys, table.directory, np.uint64(table.shift), values)
        rows, probabilities = self._rows, self._probabilities
        return [
            [(rows[start], probabilities[start])]
            if end - start == 1
            else [(rows[i], probabilities[i]) for i in range(start, end)]
            for start, end in values.tolist()
        ]

    def evidence(self, key: str) -> tuple[dict[int, int], int]:
        """Return the mention counts per row of this name, and its count of NIL."""
        start, end = self.table.find(key)
        if start == end:
            return {}, 0
        rows, counts = self.rows[start:end].tolist(), self.counts[start:end].tolist()
        return dict(zip(rows, counts, strict=True)), int(self.nil_counts[self.table.position(key)])

    def names_of_only(self, rows: Collection[int], heirs: Mapping[int, int]) -> Int64Array:
        """Return the positions of names that none but these rows have.

        heirs: Rows that others have replaced; a name that a corpus used is not theirs alone.
        """
        if not rows:
            return np.empty(0, dtype=np.int64)
        gone = np.isin(self.rows, np.fromiter(rows, dtype=np.uint32))
        inherited = np.isin(self.rows, np.fromiter(heirs, dtype=np.uint32)) & (self.counts > 0)
        starts = self.table.keys[:, 1].astype(np.int64)
        left = np.concatenate([[0], np.cumsum(~gone | inherited)])
        return np.flatnonzero(left[starts[1:]] == left[starts[:-1]])

    def _make_get(self) -> Callable[[str], list[tuple[int, float]]]:
        # A closure for speed, like KeyTable.find.
        find, rows, probabilities = self.table.find, self._rows, self._probabilities

        def get(key: str) -> list[tuple[int, float]]:
            """Return (row, probability) of the entities with this name."""
            start, end = find(key)
            if end - start == 1:  # by far the most
                return [(rows[start], probabilities[start])]
            return [(rows[i], probabilities[i]) for i in range(start, end)]

        return get

    def count_ambiguous(self) -> int:
        """Return how many names have more than one entity."""
        return int(np.count_nonzero(np.diff(self.table.keys[:, 1].astype(np.int64)) > 1))


def entity_probabilities(
    priors: npt.ArrayLike,  # (n,)
    counts: npt.ArrayLike,  # (n,)
    nil_counts: npt.ArrayLike,  # (n_names,)
    names: npt.ArrayLike,  # (n,): which name each entry belongs to
) -> Float64Array:
    """Return P(entity | name): mention counts, with the prior as one more mention.

    A KB without a corpus gives the share of the entity's prior (plus one, so that none is zero)
    among the entities of the name; a corpus outweighs it as soon as it has counts (the ranking
    of algorithm 2 of the thesis, with the prior to break ties).
    """
    name_of = np.asarray(names, dtype=np.int64)
    n_names = len(np.asarray(nil_counts))
    weight = np.asarray(priors, dtype=np.float64) + 1.0
    share = weight / np.bincount(name_of, weight, n_names)[name_of]
    seen = np.asarray(counts, dtype=np.float64)
    total = np.bincount(name_of, seen, n_names) + np.asarray(nil_counts, dtype=np.float64) + 1.0
    probabilities: Float64Array = (seen + share) / total[name_of]
    return probabilities


def make_name_table(names: Sequence[str]) -> tuple[KeyTable, UInt64Array]:
    """Return a table of a few normalised names, without values, and its prefix filter."""
    from spacy_xel.kb.name_kernels import add_to_prefix_filter

    hashes = np.unique(np.array([hash_name(name) for name in names], dtype=np.uint64))
    keys = _key_rows([*hashes, LAST_HASH], np.zeros(len(hashes) + 1))
    prefix_filter = _empty_prefix_filter(len(names))
    encoded = [name.encode() for name in names]
    add_to_prefix_filter(_ends(encoded), np.frombuffer(b"".join(encoded), np.uint8), prefix_filter)
    return KeyTable(keys, make_directory(hashes)), prefix_filter


def write_name_index(
    spool: Spool, priors: Float32Array, folder: Path, on_collision: Callable[[bytes, bytes], None]
) -> None:
    """Sort the spooled names into the files of a name index.

    on_collision: Called with two names that have the same hash; the second is left out.
    """
    from spacy_xel.kb.name_kernels import add_to_prefix_filter

    folder.mkdir()
    prefix_filter = _empty_prefix_filter(spool.size)
    with (
        ArrayWriter(folder / "keys.npy", "<u8", 2) as keys,
        ArrayWriter(folder / "rows.npy", "<u4") as rows,
        ArrayWriter(folder / "probabilities.npy", "<f4") as probabilities,
        ArrayWriter(folder / "counts.npy", "<u4") as counts,
        ArrayWriter(folder / "nil_counts.npy", "<u4") as nil_counts,
    ):
        for part in progress(spool.parts(on_collision), f"Sorting {folder.name}", total=PARTS):
            block = _index_part(part, priors)
            keys.append(_key_rows(block["hashes"], rows.length + _starts(block["sizes"])))
            rows.append(block["rows"])
            probabilities.append(block["probabilities"])
            counts.append(block["counts"])
            nil_counts.append(block["nil_counts"])
            data = np.frombuffer(b"".join(block["names"]), dtype=np.uint8)
            add_to_prefix_filter(_ends(block["names"]), data, prefix_filter)
        keys.append(_key_rows([LAST_HASH], [rows.length]))
    np.save(folder / "prefix_filter.npy", prefix_filter)
    write_directory(folder)


def write_id_index(
    spool: Spool, folder: Path, on_collision: Callable[[bytes, bytes], None]
) -> list[int]:
    """Sort the spooled ids into the files of an index from id to row.

    RETURNS (list[int]): The rows whose id an earlier row has; the index is of use only if empty.
    """
    folder.mkdir()
    duplicates: list[int] = []
    with (
        ArrayWriter(folder / "keys.npy", "<u8", 2) as keys,
        ArrayWriter(folder / "rows.npy", "<u4") as rows,
    ):
        for part in progress(spool.parts(on_collision), "Sorting ids", total=PARTS):
            hashes = part.records["hash"]
            again = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
            duplicates.extend(part.records["row"][again].tolist())
            keys.append(_key_rows(hashes, rows.length + np.arange(len(hashes))))
            rows.append(part.records["row"])
        keys.append(_key_rows([LAST_HASH], [rows.length]))
    write_directory(folder)
    return duplicates


def write_directory(folder: Path) -> None:
    """Write the directory that belongs to a folder's keys."""
    keys = load_array(folder / "keys.npy")
    np.save(folder / "directory.npy", make_directory(keys[:-1, 0]))


def _index_part(part: Part, priors: Float32Array) -> dict[str, Any]:
    """Turn (name, row, kind) records into names with their entities, ranked."""
    hashes = part.records["hash"]
    name_of: Int64Array = np.cumsum(np.diff(hashes, prepend=~hashes[:1]) != 0) - 1
    row, kind = part.records["row"], part.records["kind"]
    is_nil = row == NIL_ROW
    n_names = int(name_of[-1]) + 1
    nil_counts = np.bincount(name_of[is_nil], minlength=n_names)
    pair_of, pair_name, pair_row = _unique_pairs(name_of[~is_nil], row[~is_nil])
    counts = np.bincount(pair_of, kind[~is_nil] == MENTION, len(pair_row)).astype(np.uint32)
    is_title = np.bincount(pair_of, kind[~is_nil] == TITLE, len(pair_row)) > 0
    probability = entity_probabilities(priors[pair_row], counts, nil_counts, pair_name)
    order = np.lexsort((pair_row, ~is_title, -probability, pair_name))
    sizes = np.bincount(pair_name, minlength=n_names)
    kept = np.flatnonzero(sizes)  # a name that a corpus only ever used for NIL is not a name
    firsts = np.flatnonzero(np.diff(name_of, prepend=-1))[kept]
    return {
        "hashes": hashes[firsts],
        "names": [part.names[i] for i in firsts.tolist()],
        "sizes": sizes[kept],
        "nil_counts": nil_counts[kept],
        "rows": pair_row[order],
        "probabilities": probability[order],
        "counts": counts[order],
    }


def _unique_pairs(
    name_of: Int64Array, row: UInt32Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return for each record its (name, row) pair, and the pairs in order."""
    combined = (name_of << 32) | row.astype(np.int64)
    pairs, pair_of = np.unique(combined, return_inverse=True)
    return pair_of, pairs >> 32, pairs & 0xFFFFFFFF


def _empty_prefix_filter(n_names: int) -> UInt64Array:
    bits = max(1024, 1 << (n_names * _FILTER_BITS_PER_NAME).bit_length())
    return np.zeros(bits // 64, dtype=np.uint64)


def _ends(names: Sequence[bytes]) -> Int64Array:
    return np.cumsum([len(name) for name in names], dtype=np.int64)


def _key_rows(hashes: npt.ArrayLike, starts: npt.ArrayLike) -> UInt64Array:
    columns = [np.asarray(hashes, dtype=np.uint64), np.asarray(starts, dtype=np.uint64)]
    return np.stack(columns, axis=1)


def _starts(lengths: Int64Array) -> UInt64Array:
    starts = np.zeros(len(lengths), dtype=np.uint64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return starts
