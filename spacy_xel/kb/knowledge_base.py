"""The knowledge base as spaCy knows it: a store, the changes made to it since, and candidates."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.kb import KnowledgeBase
from spacy.tokens import Span
from spacy.vocab import Vocab

from spacy_xel.errors import Errors, UnknownEntity
from spacy_xel.kb.candidate import XelCandidate
from spacy_xel.kb.delta import Delta, DeltaLog, Overlay
from spacy_xel.kb.key_table import hash_name
from spacy_xel.kb.name_index import entity_probabilities
from spacy_xel.kb.normalize import TURKIC_LANGUAGES, normalize_name
from spacy_xel.kb.schema import check_entity
from spacy_xel.kb.store import DELTAS, Store, read_files
from spacy_xel.storage import MANIFEST, copy_folder, new_folder
from spacy_xel.types import BoolArray, Entity, Float32Array, Float64Array, Int32Array

DEFAULT_VECTOR_LENGTH = 64


class XelKnowledgeBase(KnowledgeBase):
    """A memory-mapped knowledge base with live changes.

    vocab (Vocab): The shared vocabulary.
    entity_vector_length (int): Length of the vectors that spaCy's entity_linker asks for.
    store (Store): The built part; None for a knowledge base that is still to be loaded.
    path (Path): The store's folder, or None if it is in memory.
    deltas (Iterable[Delta]): The changes, for a store in memory.
    version (int): How many changes have been made since the store was built.
    """

    version: int

    def __init__(
        self,
        vocab: Vocab,
        entity_vector_length: int = DEFAULT_VECTOR_LENGTH,
        *,
        store: Store | None = None,
        path: Path | None = None,
        deltas: Iterable[Delta] = (),
    ) -> None:
        if entity_vector_length < 1:
            raise ValueError(Errors.XE023.format(value=entity_vector_length))
        super().__init__(vocab, entity_vector_length)
        self._set_store(store, path, deltas)

    @classmethod
    def open(
        cls,
        path: str | Path,
        vocab: Vocab | None = None,
        *,
        entity_vector_length: int = DEFAULT_VECTOR_LENGTH,
        verify: bool | None = None,
    ) -> "XelKnowledgeBase":
        """Open the store in a folder; nothing of it is read into memory before it is needed."""
        folder = Path(path)
        store = Store.open(folder, verify=verify)
        return cls(vocab or Vocab(), entity_vector_length, store=store, path=folder)

    # Reading

    def __len__(self) -> int:
        if self.store is None:
            return 0
        return len(self.store) - len(self.overlay.removed_rows) + len(self.overlay.entities)

    def is_empty(self) -> bool:
        return len(self) == 0

    @property
    def n_rows(self) -> int:
        """One more than the largest row that any version uses."""
        return len(self.built) + sum(len(delta.added) for delta in self.log.deltas)

    @property
    def built(self) -> Store:
        """The store, or an error if there is none yet."""
        if self.store is None:
            raise ValueError(Errors.XE002.format(name="knowledge base"))
        return self.store

    @property
    def revision(self) -> str:
        """Which store, and how many changes to it: what a link is traced back to."""
        return f"{self.built.identity[:12]}.{self.version}"

    def refresh(self) -> bool:
        """Take in changes made by others, or by another process; return whether there were any."""
        stamp = None if self.path is None else _stamp(self.path)
        if self.path is not None and stamp not in (None, self._stamp):  # built anew
            self._set_store(Store.open(self.path), self.path)
            return True
        changed = self.log.refresh() or self.version != len(self.log.deltas)
        if changed:
            self._apply_changes()
        return changed

    def rows(self) -> Iterator[int]:
        """Return the rows of all entities."""
        gone = self.overlay.removed_rows
        return chain((r for r in range(len(self.built)) if r not in gone), self.overlay.entities)

    def row(self, kb_id: str) -> int:
        """Return the row of an id, or -1."""
        if kb_id in self.overlay.rows:
            return self.overlay.rows[kb_id]
        row = self.built.row(kb_id)
        return -1 if row in self.overlay.removed_rows else row

    def kb_id(self, row: int) -> str:
        """Return the id of a row."""
        if self.version and row in self.overlay.entities:
            return self.overlay.entities[row].kb_id
        return self.built.kb_id(row)

    def entity(self, row: int) -> Entity:
        """Return the entity of a row."""
        if row in self.overlay.entities:
            return self.overlay.entities[row]
        return self.built.entity(row)

    def get_entity(self, kb_id: str) -> Entity:
        """Return the entity of an id."""
        row = self.row(kb_id)
        if row < 0:
            raise UnknownEntity(Errors.XE004.format(kb_id=kb_id, path=self.path))
        return self.entity(row)

    def has_row(self, row: int) -> bool:
        """Tell whether there is an entity in a row now."""
        if row >= len(self.built):
            return row in self.overlay.entities
        return row >= 0 and row not in self.overlay.removed_rows

    def has_rows(self, rows: Int32Array) -> BoolArray:
        """Return what has_row returns, for an array of rows."""
        in_store = rows < len(self.built)
        there: BoolArray = (rows >= 0) & in_store
        if self.version:
            there &= ~np.isin(rows, list(self.overlay.removed_rows))
            there |= ~in_store & np.isin(rows, list(self.overlay.entities))
        return there

    def entity_counts(self, rows: Int32Array) -> Float64Array:
        """Return how often entities are meant: mentions in the corpus of the build, and priors.

        rows (ndarray): Rows, or -1 for no entity, which is never meant.
        """
        counts = np.zeros(len(rows))
        built = (rows >= 0) & (rows < len(self.built))
        counts[built] = self.built.entity_counts[rows[built]] + self.built.priors[rows[built]]
        for i in np.flatnonzero(rows >= len(self.built)).tolist():
            counts[i] = self._prior(int(rows[i])) if self.has_row(int(rows[i])) else 0.0
        return counts

    def contains_entity(self, kb_id: str) -> bool:
        return self.row(kb_id) >= 0

    def contains_alias(self, name: str) -> bool:
        return bool(self.lookup(name))

    def lookup(self, name: str, *, cased: bool = False) -> list[tuple[int, float]]:
        """Return (row, P(entity | name)) of the entities with a name, the most probable first."""
        # Nearly every name is in normal form but for its case: try that first.
        found = self._get_cased(name) if cased else self._get_uncased(name.lower())
        if self.version or not found or self._careful:
            return self._lookup_carefully(name, cased)
        return found

    def lookup_batch(
        self, names: Sequence[str], *, cased: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Return what lookup returns, for many names at a time."""
        store = self.built
        if self.version or self._careful or any("\n" in name for name in names):
            return [self.lookup(name, cased=cased) for name in names]
        index = store.names_cased if cased else store.names_uncased
        found = index.get_batch(names if cased else [name.lower() for name in names])
        for i, candidates in enumerate(found):
            if not candidates:
                found[i] = self.lookup(names[i], cased=cased)
        return found

    def get_alias_candidates(self, name: str) -> list[XelCandidate]:
        """Return the candidates for a name, case ignored, the most probable first."""
        return self._candidates(name, self.lookup(name))

    def get_candidates(self, mention: Span) -> list[XelCandidate]:
        self.refresh()
        return self.get_alias_candidates(mention.text)

    def get_candidates_batch(self, mentions: Iterable[Span]) -> list[list[XelCandidate]]:
        self.refresh()
        names = [mention.text for mention in mentions]
        found = self.lookup_batch(names)
        return [self._candidates(*pair) for pair in zip(names, found, strict=True)]

    def get_vector(self, entity: str) -> Float32Array:
        """Return a vector of unit length from the words of an entity's title and description.

        Words are hashed to signed positions, so nothing has to be stored: a fixed target for
        spaCy's entity_linker to learn.
        """
        vector = np.zeros(self.entity_vector_length, dtype=np.float32)
        row = self.row(entity)
        if row < 0:  # as in spaCy's own knowledge base
            return vector
        fields = self.entity(row)
        for word in normalize_name(f"{fields.title} {fields.description}").split():
            value = hash_name(word)
            vector[value % self.entity_vector_length] += 1.0 if value >> 63 else -1.0
        norm = float(np.linalg.norm(vector))
        return vector / np.float32(norm) if norm else vector

    # Changing

    def add(self, entities: Iterable[Entity], *, replace: bool = False) -> int:
        """Add entities, at once and for every process that uses this store; return the version.

        replace (bool): Replace entities that are there; what a corpus said of them stays.
        """
        added = tuple(check_entity(entity) for entity in entities)
        counts = Counter(entity.kb_id for entity in added)
        for kb_id, count in counts.items():
            if count > 1:
                raise ValueError(Errors.XE034.format(kb_id=kb_id))

        def delta() -> Delta:
            present = tuple(kb_id for kb_id in counts if self.contains_entity(kb_id))
            if present and not replace:
                raise ValueError(Errors.XE013.format(kb_id=present[0]))
            return Delta(added=added, removed=present)

        return self._change(delta)

    def remove(self, kb_ids: Iterable[str]) -> int:
        """Remove entities; return the new version."""
        removed = tuple(dict.fromkeys(kb_ids))

        def delta() -> Delta:
            for kb_id in removed:
                if not self.contains_entity(kb_id):
                    raise UnknownEntity(Errors.XE004.format(kb_id=kb_id, path=self.path))
            return Delta(removed=removed)

        return self._change(delta)

    def rollback(self, version: int | None = None) -> int:
        """Go back to an earlier version (by default the one before); return the new version."""
        self.refresh()
        now = self.version
        target = now - 1 if version is None else version
        if not 0 <= target < now:
            raise ValueError(Errors.XE014.format(first=0, last=now, version=target))

        def delta() -> Delta:
            if self.version != now:  # it would undo what its caller has not seen
                raise ValueError(Errors.XE035.format(expected=now, version=self.version))
            return Delta(rollback_to=target)

        return self._change(delta)

    # Saving

    def to_bytes(self, **kwargs: Any) -> bytes:
        deltas = [delta.to_json() for delta in self.log.deltas]
        return bytes(srsly.msgpack_dumps({"files": self._files(), "deltas": deltas}))

    def from_bytes(self, bytes_data: bytes, *, exclude: tuple[str, ...] = ()) -> "XelKnowledgeBase":
        content = srsly.msgpack_loads(bytes_data)
        files = content["files"]
        deltas = [Delta.from_json(fields) for fields in content["deltas"]]
        self._set_store(Store.from_files(files) if files else None, None, deltas, files)
        return self

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Write the store and its changes; hard links where the file system allows."""
        if self.store is None:
            return
        with new_folder(Path(path), force=True) as folder:
            if self.path is not None:
                copy_folder(self.path, folder)
            for name, data in {} if self.path is not None else self.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
            if self.path is None:
                log = DeltaLog(folder / DELTAS)
                for delta in self.log.deltas:
                    log.append(delta)

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> "XelKnowledgeBase":
        folder = Path(path)
        if folder.exists():
            self._set_store(Store.open(folder), folder)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is not None:
            return _reopen, (self.path, self.vocab, self.entity_vector_length)
        return _restore, (self.to_bytes(), self.vocab, self.entity_vector_length)

    # Inside

    def _set_store(
        self,
        store: Store | None,
        path: Path | None,
        deltas: Iterable[Delta] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.store = store
        self.path = path
        self.files = dict(files or {})
        self.log = DeltaLog(None if path is None else path / DELTAS, deltas)
        self._stamp = None if path is None else _stamp(path)
        # Where I pairs with dotless i, str.lower is not a shortcut.
        self._careful = store is not None and store.lang in TURKIC_LANGUAGES
        self._get_cased = store.names_cased.get if store else _no_store
        self._get_uncased = store.names_uncased.get if store else _no_store
        self._apply_changes()

    def _change(self, make_delta: Callable[[], Delta]) -> int:
        """Make a change; if somebody else is quicker, look at theirs and try again."""
        while True:
            self.refresh()
            if self.log.append(make_delta()):
                self._apply_changes()
                return self.version

    def _apply_changes(self) -> None:
        self.overlay = Overlay() if self.store is None else self.log.overlay(self.store)
        self.version = len(self.log.deltas)

    def _lookup_carefully(self, name: str, cased: bool) -> list[tuple[int, float]]:
        """Look up the normal form of a name, and heed the changes made to the store."""
        store = self.built
        index = store.names_cased if cased else store.names_uncased
        key = normalize_name(name, fold_case=not cased, lang=store.lang)
        found = index.get(key)
        names = self.overlay.names_cased if cased else self.overlay.names_uncased
        added = names.get(key, [])
        removed = self.overlay.removed_rows
        if not added and not any(row in removed for row, _ in found):
            return found
        counts, nil_count = index.evidence(key)
        for row in [row for row in counts if row in removed]:
            # What a corpus said of an entity holds for the one that replaces it.
            count, heir = counts.pop(row), self.overlay.heirs.get(row)
            if count and heir is not None:
                counts[heir] = count
        rows = list(dict.fromkeys([*counts, *added]))
        probabilities = entity_probabilities(
            priors=[self._prior(row) for row in rows],
            counts=[counts.get(row, 0) for row in rows],
            nil_counts=[nil_count],
            names=np.zeros(len(rows), dtype=np.int64),
        )
        pairs = zip(rows, probabilities.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])

    def _prior(self, row: int) -> float:
        if row in self.overlay.entities:
            return self.overlay.entities[row].prior
        return float(self.built.priors[row])

    def _candidates(self, name: str, found: list[tuple[int, float]]) -> list[XelCandidate]:
        candidates = []
        for row, prior in found:
            candidate = XelCandidate(self, 0, 0.0, (), 0, prior)
            candidate.name = name
            candidate.row = row
            candidates.append(candidate)
        return candidates

    def _files(self) -> dict[str, bytes]:
        if self.path is None:
            return self.files
        files = read_files(self.path)
        return {name: data for name, data in files.items() if not name.startswith(f"{DELTAS}/")}


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes when a store is replaced; None while it is."""
    try:
        status = os.stat(path / MANIFEST)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _no_store(key: str) -> list[tuple[int, float]]:
    raise ValueError(Errors.XE002.format(name="knowledge base"))


def _reopen(path: Path, vocab: Vocab, vector_length: int) -> XelKnowledgeBase:
    return XelKnowledgeBase.open(path, vocab, entity_vector_length=vector_length)


def _restore(data: bytes, vocab: Vocab, vector_length: int) -> XelKnowledgeBase:
    return XelKnowledgeBase(vocab, vector_length).from_bytes(data)


def knowledge_base_loader(
    path: str | Path, vector_length: int = DEFAULT_VECTOR_LENGTH
) -> Callable[[Vocab], XelKnowledgeBase]:
    """spacy-xel.KnowledgeBase.v1: load a store, for [initialize.components.NAME.kb_loader]."""

    def load(vocab: Vocab) -> XelKnowledgeBase:
        return XelKnowledgeBase.open(path, vocab, entity_vector_length=vector_length)

    return load


def empty_knowledge_base() -> Callable[[Vocab, int], XelKnowledgeBase]:
    """spacy-xel.EmptyKB.v1: generate_empty_kb of spaCy's entity_linker, to be read from disk."""
    return XelKnowledgeBase
