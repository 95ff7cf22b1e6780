"""What training texts say of names, entities and kinds of mentions, as counts."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.types import AnnotatedText

Counts = dict[str, Counter[str]]


class Evidence:
    """Counts of (name, entity), of entities, and of (label of mention, type of entity)."""

    def __init__(self) -> None:
        self.names: Counts = {}
        self.entities: Counter[str] = Counter()
        self.types: Counts = {}

    @classmethod
    def of_texts(cls, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> "Evidence":
        """Count the mentions of texts."""
        evidence = cls()
        for text in texts:
            for mention in text.mentions:
                name = normalize_name(text.text[mention.start : mention.end])
                for kb_id in mention.kb_ids:
                    row = kb.row(kb_id)
                    if row >= 0:
                        evidence.names.setdefault(name, Counter())[kb_id] += 1
                        evidence.entities[kb_id] += 1
                        kinds = entity_kinds(kb.entity(row).types)
                        evidence.types.setdefault(mention.label, Counter()).update(kinds)
        return evidence

    def share(self, name: str, kb_id: str, own: "Evidence | None") -> tuple[int, int]:
        """Return how often a name means an entity, and how often it occurs, but for one's own."""
        counts = self.names.get(name, _NOTHING)
        hits, total = counts[kb_id], counts.total()
        if own is not None and name in own.names:
            hits -= own.names[name][kb_id]
            total -= own.names[name].total()
        return hits, total

    def popularity(self, kb_id: str, own: "Evidence | None") -> int:
        """Return how often an entity is mentioned, but for one's own text."""
        return self.entities[kb_id] - (own.entities[kb_id] if own is not None else 0)

    def agreement(self, label: str, types: tuple[str, ...]) -> float:
        """Return how common entities of such types are among mentions with a label."""
        counts = self.types.get(label)
        if not counts:
            return 0.5
        most = max(counts.values())
        return max(counts[kind] for kind in entity_kinds(types)) / most

    def to_json(self) -> dict[str, Any]:
        return {"names": self.names, "entities": self.entities, "types": self.types}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Evidence":
        evidence = cls()
        evidence.names = {name: Counter(counts) for name, counts in fields["names"].items()}
        evidence.entities = Counter(fields["entities"])
        evidence.types = {label: Counter(counts) for label, counts in fields["types"].items()}
        return evidence


_NOTHING: Counter[str] = Counter()


def entity_kinds(types: tuple[str, ...]) -> set[str]:
    """Return the types of an entity, without the numbers that classifications give them."""
    return {kind.rstrip("0123456789.") or kind for kind in types} or {""}
