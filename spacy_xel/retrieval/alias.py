"""The alias table: entities by exact name, ranked by how often the name means them.

Algorithms 1 and 2 of the thesis on multilingual linking (section 3.3). The counts are those
the knowledge base was built with: priors, and mentions where a corpus was given.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from spacy_xel.errors import Errors
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import AnnotatedText, CandidateBatch, Query


class AliasTable:
    """Look mentions up in the names of a knowledge base.

    top_k (int): How many entities a name keeps at most (K of algorithm 2).
    cased (bool): Whether upper and lower case make different names.
    """

    def __init__(self, *, top_k: int = 100, cased: bool = False) -> None:
        if top_k < 1:
            raise ValueError(Errors.XE001.format(value=top_k))
        self.top_k = top_k
        self.cased = cased
        self.kb: XelKnowledgeBase | None = None

    def initialize(self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> None:
        """Use a knowledge base; its names are the table, so there is nothing to fit."""
        self.attach(kb)

    def attach(self, kb: XelKnowledgeBase) -> None:
        self.kb = kb

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        if k < 1:
            raise ValueError(Errors.XE001.format(value=k))
        if self.kb is None:
            raise ValueError(Errors.XE002.format(name="AliasTable"))
        batch = CandidateBatch.empty(len(queries), k)
        names = [query.mention for query in queries]
        limit = min(k, self.top_k)
        for i, found in enumerate(self.kb.lookup_batch(names, cased=self.cased)):
            for j, (row, probability) in enumerate(found[:limit]):
                batch.rows[i, j] = row
                batch.scores[i, j] = np.float32(probability)
        return batch

    def to_disk(self, path: Path) -> None:
        """There is no state beside the knowledge base."""

    def from_disk(self, path: Path) -> None:
        """There is no state beside the knowledge base."""

    def to_bytes(self) -> bytes:
        """There is no state beside the knowledge base."""
        return b""

    def from_bytes(self, data: bytes) -> None:
        """There is no state beside the knowledge base."""


def make_alias_table(top_k: int = 100, cased: bool = False) -> AliasTable:
    """spacy-xel.AliasTable.v1: candidates by exact name and prior."""
    return AliasTable(top_k=top_k, cased=cased)
