"""Changes to a store that is never rewritten: a log of additions, removals and rollbacks.

Version 0 is the store as it was built; every change makes the next version. A rollback is a
change too, so the log only grows and every version can be had again.
"""

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy_xel.errors import Errors
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.kb.schema import entity_to_json, parse_entity
from spacy_xel.kb.store import Store
from spacy_xel.types import Entity

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Delta:
    """One change: entities removed and added, or (rollback_to) the version to go back to."""

    added: tuple[Entity, ...] = ()
    removed: tuple[str, ...] = ()
    rollback_to: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "added": [entity_to_json(entity) for entity in self.added],
            "removed": list(self.removed),
            "rollback_to": self.rollback_to,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Delta":
        added = tuple(parse_entity(json.dumps(entity).encode()) for entity in fields["added"])
        return cls(added, tuple(fields["removed"]), fields["rollback_to"])


class DeltaLog:
    """The changes of one store: files in a folder, or a list in memory if there is no folder."""

    def __init__(self, folder: Path | None, deltas: Iterable[Delta] = ()) -> None:
        self.folder = folder
        self.deltas = list(deltas)
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> bool:
        """Read changes that others have made; return whether there were any."""
        if self.folder is None or not self._path(len(self.deltas) + 1).exists():
            return False
        with self._lock:
            before = len(self.deltas)
            while (path := self._path(len(self.deltas) + 1)).exists():
                self.deltas.append(_read(path, len(self.deltas)))
            return len(self.deltas) > before

    def append(self, delta: Delta) -> bool:
        """Add a change, on disk when this returns; False if somebody else added one first."""
        with self._lock:
            if self.folder is not None:
                self.folder.mkdir(exist_ok=True)
                if not _write(self._path(len(self.deltas) + 1), delta):
                    return False
            self.deltas.append(delta)
            return True

    def overlay(self, store: Store) -> "Overlay":
        """Return the sum of all changes so far."""
        overlay = Overlay()
        first_rows = [len(store)]
        for delta in self.deltas:
            first_rows.append(first_rows[-1] + len(delta.added))
        for position in self._effective():
            delta = self.deltas[position]
            for kb_id in delta.removed:
                overlay.remove(kb_id, store)
            # An entity keeps its row whatever is removed or rolled back.
            for row, entity in enumerate(delta.added, first_rows[position]):
                overlay.add(entity, row, store)
        return overlay

    def _effective(self) -> list[int]:
        """Return the positions of the changes that are in force, rollbacks resolved."""
        result: list[int] = []
        version = len(self.deltas)
        while version > 0:
            rollback_to = self.deltas[version - 1].rollback_to
            if rollback_to is None:
                result.append(version - 1)
            version = version - 1 if rollback_to is None else rollback_to
        return result[::-1]

    def _path(self, version: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{version:08}{_SUFFIX}"


@dataclass
class Overlay:
    """The sum of a version's changes, as look-ups beside the store's own."""

    removed_rows: set[int] = field(default_factory=set)
    entities: dict[int, Entity] = field(default_factory=dict)  # by row, after the store's rows
    rows: dict[str, int] = field(default_factory=dict)  # by id
    heirs: dict[int, int] = field(default_factory=dict)  # built row -> row that replaces it
    names_uncased: dict[str, list[int]] = field(default_factory=dict)
    names_cased: dict[str, list[int]] = field(default_factory=dict)

    def add(self, entity: Entity, row: int, store: Store) -> None:
        self.entities[row] = entity
        self.rows[entity.kb_id] = row
        built_row = store.row(entity.kb_id)
        if built_row >= 0:
            self.heirs[built_row] = row
        for key, index in self._keys(entity, store.lang):
            if row not in index.setdefault(key, []):
                index[key].append(row)

    def remove(self, kb_id: str, store: Store) -> None:
        built_row = store.row(kb_id)
        self.heirs.pop(built_row, None)
        row = self.rows.pop(kb_id, None)
        if row is None:
            if built_row >= 0:
                self.removed_rows.add(built_row)
            return
        for key, index in self._keys(self.entities.pop(row), store.lang):
            rows = [other for other in index.pop(key, []) if other != row]
            if rows:
                index[key] = rows

    def _keys(self, entity: Entity, lang: str) -> Iterator[tuple[str, dict[str, list[int]]]]:
        for name in entity.names:
            for index, fold_case in ((self.names_uncased, True), (self.names_cased, False)):
                if key := normalize_name(name, fold_case=fold_case, lang=lang):
                    yield key, index


def _read(path: Path, version: int) -> Delta:
    """Read a change that was made to this version."""
    try:
        fields = json.loads(path.read_text(encoding="utf8"))
        body = json.dumps(fields["delta"], sort_keys=True)
        if _checksum(body) != fields["sha256"]:
            raise ValueError("its contents do not match their checksum")
        delta = Delta.from_json(fields["delta"])
        target = delta.rollback_to
        if target is not None and not (isinstance(target, int) and 0 <= target < version):
            raise ValueError(f"it goes back from version {version} to {target!r}")
        if not all(isinstance(kb_id, str) for kb_id in delta.removed):
            raise ValueError("it removes something that is not an id")
    except (ValueError, KeyError, TypeError) as error:
        problem = f"the change {path.name} cannot be read ({error})"
        raise ValueError(Errors.XE007.format(path=path.parent.parent, problem=problem)) from error
    return delta


def _write(path: Path, delta: Delta) -> bool:
    """Write a change under a name that nobody has taken; return False if somebody has."""
    body = json.dumps(delta.to_json(), sort_keys=True)
    text = json.dumps({"delta": delta.to_json(), "sha256": _checksum(body)}, sort_keys=True)
    scratch = path.parent / f".{secrets.token_hex(8)}.partial"
    with scratch.open("w", encoding="utf8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(scratch, path)  # unlike rename, fails if path exists
    except FileExistsError:
        return False
    finally:
        scratch.unlink()
    return True


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
