"""The plain values that travel between the stages; no spaCy, no heavy imports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spacy_xel.kb.knowledge_base import XelKnowledgeBase

NIL = "NIL"
ID_SEPARATOR = "|"  # joins the ids of a composite mention in kb_id_, as PubTator does

BoolArray = npt.NDArray[np.bool_]
UInt8Array = npt.NDArray[np.uint8]
UInt32Array = npt.NDArray[np.uint32]
UInt64Array = npt.NDArray[np.uint64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entity:
    """One entry of a knowledge base."""

    kb_id: str
    title: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    types: tuple[str, ...] = ()
    prior: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The title and the aliases."""
        return (self.title, *self.aliases)


@dataclass(frozen=True, slots=True)
class Mention:
    """An annotated stretch of text; no ids means NIL, several mean a composite mention."""

    start: int
    end: int
    kb_ids: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class AnnotatedText:
    """A document of a corpus, with character offsets."""

    doc_id: str
    text: str
    mentions: tuple[Mention, ...] = ()
    lang: str = ""


class Query(NamedTuple):
    """A mention in its text."""

    text: str
    start: int  # character offsets of the mention in text
    end: int

    @property
    def mention(self) -> str:
        return self.text[self.start : self.end]


class CandidateBatch(NamedTuple):
    """Top-k rows per query; unused slots hold row -1 and score -inf."""

    rows: Int32Array  # (n_queries, k)
    scores: Float32Array  # (n_queries, k), descending

    @classmethod
    def empty(cls, n_queries: int, k: int) -> "CandidateBatch":
        """Return a batch without a single candidate."""
        rows = np.full((n_queries, k), -1, dtype=np.int32)
        return cls(rows, np.full((n_queries, k), -np.inf, dtype=np.float32))


class Retriever(Protocol):
    """Finds candidate entities for mentions. See CONTRIBUTING.md, "add a retriever"."""

    def initialize(self, kb: "XelKnowledgeBase", texts: Iterable[AnnotatedText]) -> None:
        """Fit to a knowledge base and, where there is one, a training corpus."""

    def attach(self, kb: "XelKnowledgeBase") -> None:
        """Use this knowledge base; raise if it is not the one that the state was fitted to."""

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        """Return the k best rows per query, aligned with the input."""

    def to_disk(self, path: Path) -> None:
        """Write the fitted state into the folder path."""

    def from_disk(self, path: Path) -> None:
        """Read the fitted state from the folder path."""

    def to_bytes(self) -> bytes:
        """Return the fitted state."""

    def from_bytes(self, data: bytes) -> None:
        """Read the fitted state."""


@dataclass(frozen=True, slots=True)
class Link:
    """What the linker says about one mention: token offsets, the best id, all candidates.

    Mentions of one document that are NIL and name the same thing share a nil_cluster.
    """

    start: int
    end: int
    kb_id: str = NIL
    score: float = 0.0
    candidates: tuple[tuple[str, float], ...] = ()
    label: str = ""
    kb_version: str = ""  # XelKnowledgeBase.revision of the knowledge base that was asked
    nil_cluster: int | None = None
