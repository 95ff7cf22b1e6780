"""The knowledge base on disk: entities and names as memory-mapped arrays, never changed."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_xel.errors import Errors
from spacy_xel.kb.key_table import KEY_ARRAYS, KeyTable, view
from spacy_xel.kb.name_index import NAME_ARRAYS, NameIndex
from spacy_xel.storage import MANIFEST, load_array, read_manifest, verify_bytes, verify_files
from spacy_xel.types import Entity, Float32Array, Float64Array

STORE_FORMAT = "spacy-xel-kb-1"
ID_INDEX = "ids"
NAME_INDEXES = ("names_uncased", "names_cased")
ENTITY_ARRAYS = ("id_bytes", "id_offsets", "entity_bytes", "entity_offsets", "priors")
DELTAS = "deltas"
# Stores up to this size are checked against their checksums whenever they are opened.
_ALWAYS_VERIFIED = 64 << 20


class Store:
    """Entities by row and by id, and the two indexes of their names.

    manifest (dict): The manifest of the folder.
    arrays (Mapping[str, ndarray]): Every array, by its path in the folder without ".npy".
    """

    def __init__(self, manifest: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        _check_sizes(arrays)
        self.manifest = manifest
        self.lang: str = manifest["lang"]
        self.priors: Float32Array = arrays["priors"]
        self.ids = KeyTable(arrays[f"{ID_INDEX}/keys"], arrays[f"{ID_INDEX}/directory"])
        self.id_rows = arrays[f"{ID_INDEX}/rows"]
        uncased, cased = (NameIndex(_part(arrays, name, NAME_ARRAYS)) for name in NAME_INDEXES)
        self.names_uncased = uncased
        self.names_cased = cased
        self._id_offsets = view(arrays["id_offsets"])
        self._id_bytes = view(arrays["id_bytes"])
        self._entity_offsets = view(arrays["entity_offsets"])
        self._entity_bytes = view(arrays["entity_bytes"])

    @classmethod
    def open(cls, path: Path, *, verify: bool | None = None) -> "Store":
        """Open the store in a folder.

        verify (bool): Compare every file with its checksum; by default for small stores only.
        """
        manifest = read_manifest(path, STORE_FORMAT)
        size = sum(entry["bytes"] for entry in manifest["files"].values())
        if verify or (verify is None and size <= _ALWAYS_VERIFIED):
            verify_files(path, manifest)
        return cls(manifest, {name: load_array(path / f"{name}.npy") for name in _array_names()})

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> "Store":
        """Open a store whose files are in memory."""
        manifest = json.loads(files[MANIFEST])
        verify_bytes(files, manifest)
        arrays = {
            name: np.load(BytesIO(files[f"{name}.npy"]), allow_pickle=False)
            for name in _array_names()
        }
        return cls(manifest, arrays)

    def __len__(self) -> int:
        return len(self.priors)

    @cached_property
    def identity(self) -> str:
        """What tells this store from any other: a hash of its files' hashes."""
        files = json.dumps(self.manifest["files"], sort_keys=True)
        return hashlib.sha256(files.encode()).hexdigest()

    @cached_property
    def entity_counts(self) -> Float64Array:
        """How often each entity was meant in the corpus that names were counted in; by row."""
        index = self.names_uncased
        counts: Float64Array = np.bincount(index.rows, index.counts, len(self)).astype(np.float64)
        return counts

    def row(self, kb_id: str) -> int:
        """Return the row of an id, or -1."""
        start, end = self.ids.find(kb_id)
        return int(self.id_rows[start]) if start < end else -1

    def kb_id(self, row: int) -> str:
        """Return the id of a row."""
        start, end = self._id_offsets[row], self._id_offsets[row + 1]
        return str(self._id_bytes[start:end], "utf8")

    def entity(self, row: int) -> Entity:
        """Return the entity of a row."""
        start, end = self._entity_offsets[row], self._entity_offsets[row + 1]
        title, aliases, description, types = json.loads(bytes(self._entity_bytes[start:end]))
        return Entity(
            kb_id=self.kb_id(row),
            title=title,
            aliases=tuple(aliases),
            description=description,
            types=tuple(types),
            prior=float(self.priors[row]),
        )


def read_files(path: Path) -> dict[str, bytes]:
    """Return the files of a store, by their path in the folder."""
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def _check_sizes(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise if arrays that belong together do not fit, so that no look-up leaves its array."""
    n = len(arrays["priors"])
    pairs = [
        ("id_offsets", len(arrays["id_offsets"]), n + 1),
        ("id_bytes", len(arrays["id_bytes"]), int(arrays["id_offsets"][-1])),
        ("entity_offsets", len(arrays["entity_offsets"]), n + 1),
        ("entity_bytes", len(arrays["entity_bytes"]), int(arrays["entity_offsets"][-1])),
        ("ids/rows", len(arrays["ids/rows"]), n),
    ]
    for index in NAME_INDEXES:
        keys, rows = arrays[f"{index}/keys"], arrays[f"{index}/rows"]
        pairs += [
            (f"{index}/rows", len(rows), int(keys[-1, 1])),
            (f"{index}/probabilities", len(arrays[f"{index}/probabilities"]), len(rows)),
            (f"{index}/counts", len(arrays[f"{index}/counts"]), len(rows)),
            (f"{index}/nil_counts", len(arrays[f"{index}/nil_counts"]), len(keys) - 1),
        ]
    for name, found, expected in pairs:
        if found != expected:
            problem = f"{name} should have {expected} entries but has {found}"
            raise ValueError(Errors.XE007.format(path="the store", problem=problem))


def _array_names() -> list[str]:
    names = [*ENTITY_ARRAYS, *(f"{ID_INDEX}/{name}" for name in (*KEY_ARRAYS, "rows"))]
    return [*names, *(f"{index}/{name}" for index in NAME_INDEXES for name in NAME_ARRAYS)]


def _part(
    arrays: Mapping[str, npt.NDArray[Any]], folder: str, names: tuple[str, ...]
) -> dict[str, npt.NDArray[Any]]:
    return {name: arrays[f"{folder}/{name}"] for name in names}
