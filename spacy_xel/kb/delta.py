"""Changes to a store that is never rewritten: a log of additions, removals and rollbacks.

Version 0 is the store as it was built; every change makes the next version. A rollback is a
change too, so the log only grows and every version can be had again.
"""

import hashlib
import json
import os
import secrets
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
        self.refresh()

    def refresh(self) -> bool:
        """Read changes that others have made; return whether there were any."""
        before = len(self.deltas)
        while self.folder is not None and (path := self._path(len(self.deltas) + 1)).exists():
            self.deltas.append(_read(path))
        return len(self.deltas) > before

    def append(self, delta: Delta) -> None:
        """Add a change; it is on disk when this returns."""
        if self.folder is not None:
            self.folder.mkdir(exist_ok=True)
            while not self._write(self._path(len(self.deltas) + 1), delta):
                self.refresh()  # somebody else was first: take theirs, then ours
        self.deltas.append(delta)

    def overlay(self, store: Store) -> "Overlay":
        """Return the sum of all changes so far."""
        overlay = Overlay()
        first_rows = [len(store)]
        for delta in self.deltas:
            first_rows.append(first_rows[-1] + len(delta.added))
        for position in self._effective(len(self.deltas)):
            delta = self.deltas[position]
            for kb_id in delta.removed:
                overlay.remove(kb_id, store)
            # An entity keeps its row whatever is removed or rolled back.
            for row, entity in enumerate(delta.added, first_rows[position]):
                overlay.add(entity, row, store.lang)
        return overlay

    def _effective(self, version: int) -> list[int]:
        """Return the positions of the changes that make up a version, rollbacks resolved."""
        result: list[int] = []
        for position, delta in enumerate(self.deltas[:version]):
            if delta.rollback_to is None:
                result.append(position)
            else:
                result = self._effective(delta.rollback_to)
        return result

    def _path(self, version: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{version:08}{_SUFFIX}"

    def _write(self, path: Path, delta: Delta) -> bool:
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


@dataclass
class Overlay:
    """The sum of a version's changes, as look-ups beside the store's own."""

    removed_rows: set[int] = field(default_factory=set)
    entities: dict[int, Entity] = field(default_factory=dict)  # by row, after the store's rows
    rows: dict[str, int] = field(default_factory=dict)  # by id
    names_uncased: dict[str, list[int]] = field(default_factory=dict)
    names_cased: dict[str, list[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.removed_rows or self.entities)

    def add(self, entity: Entity, row: int, lang: str) -> None:
        self.entities[row] = entity
        self.rows[entity.kb_id] = row
        for key, index in self._keys(entity, lang):
            if row not in index.setdefault(key, []):
                index[key].append(row)

    def remove(self, kb_id: str, store: Store) -> None:
        row = self.rows.pop(kb_id, None)
        if row is None:
            self.removed_rows.add(store.row(kb_id))
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


def _read(path: Path) -> Delta:
    try:
        fields = json.loads(path.read_text(encoding="utf8"))
        delta = Delta.from_json(fields["delta"])
        body = json.dumps(fields["delta"], sort_keys=True)
        if _checksum(body) != fields["sha256"]:
            raise ValueError("its contents do not match their checksum")
    except (ValueError, KeyError, TypeError) as error:
        problem = f"the change {path.name} cannot be read ({error})"
        raise ValueError(Errors.XE007.format(path=path.parent.parent, problem=problem)) from error
    return delta


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
