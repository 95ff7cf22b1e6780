"""What differs between two knowledge bases, or two versions of one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spacy_xel.errors import Errors
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.schema import entity_to_json
from spacy_xel.progress import progress
from spacy_xel.types import Entity


@dataclass(frozen=True, slots=True)
class Change:
    """An entity that was added (no old), removed (no new) or changed."""

    kb_id: str
    old: Entity | None
    new: Entity | None

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def fields(self) -> list[str]:
        """The fields that differ, for an entity that is in both."""
        if self.old is None or self.new is None:
            return []
        names = ("title", "aliases", "description", "types", "prior")
        return [name for name in names if getattr(self.old, name) != getattr(self.new, name)]

    def to_json(self) -> dict[str, Any]:
        old, new = (None if e is None else entity_to_json(e) for e in (self.old, self.new))
        return {"change": self.kind, "id": self.kb_id, "old": old, "new": new}


def at_version(kb: XelKnowledgeBase, version: int) -> XelKnowledgeBase:
    """Return a knowledge base as it was at a version, to be read."""
    if not 0 <= version <= kb.version:
        raise ValueError(Errors.XE113.format(first=0, last=kb.version, version=version))
    return XelKnowledgeBase(kb.vocab, store=kb.built, deltas=kb.log.deltas[:version])


def diff(old: XelKnowledgeBase, new: XelKnowledgeBase) -> Iterator[Change]:
    """Yield the entities that differ: those of old in its order, then those only in new."""
    for kb_id in _ids(old, new):
        change = Change(kb_id, _entity(old, kb_id), _entity(new, kb_id))
        if change.old != change.new:
            yield change
    for kb_id in _ids(new, old):
        if not old.contains_entity(kb_id):
            yield Change(kb_id, None, _entity(new, kb_id))


def _ids(kb: XelKnowledgeBase, other: XelKnowledgeBase) -> Iterable[str]:
    """Return the ids of a knowledge base whose entities may differ from the other's."""
    if kb.built.identity != other.built.identity:
        return (kb.kb_id(row) for row in progress(kb.rows(), "Comparing", total=len(kb)))
    built = kb.overlay.removed_rows ^ other.overlay.removed_rows
    changed = [kb.built.kb_id(row) for row in sorted(built)]
    candidates = dict.fromkeys([*changed, *kb.overlay.rows, *other.overlay.rows])
    return (kb_id for kb_id in candidates if kb.contains_entity(kb_id))


def _entity(kb: XelKnowledgeBase, kb_id: str) -> Entity | None:
    row = kb.row(kb_id)
    return None if row < 0 else kb.entity(row)
