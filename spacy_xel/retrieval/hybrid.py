"""Several retrievers asked together, their answers fused."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from spacy_xel.errors import Errors
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import AnnotatedText, CandidateBatch, Float32Array, Query, Retriever

FUSIONS = ("mean", "reciprocal_rank")
_RANK_OFFSET = 60  # of reciprocal rank fusion, as Cormack et al. (2009) chose it


class Hybrid:
    """Ask several retrievers and rank what any of them finds.

    retrievers (dict[str, Retriever]): By name; the name is the folder that each is saved in.
    fusion (str): "mean" of the scores, 0 where one does not find an entity; or "reciprocal_rank",
        for scores that cannot be compared.
    """

    def __init__(self, retrievers: dict[str, Retriever], *, fusion: str = "mean") -> None:
        if not retrievers:
            raise ValueError(Errors.XE065)
        if fusion not in FUSIONS:
            raise ValueError(
                Errors.XE027.format(name="fusion", expected=f"one of {FUSIONS}", value=fusion)
            )
        self.retrievers = dict(sorted(retrievers.items()))
        self.fusion = fusion

    def initialize(self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> None:
        """Fit each of the retrievers."""
        known = list(texts)
        for retriever in self.retrievers.values():
            retriever.initialize(kb, known)

    def attach(self, kb: XelKnowledgeBase) -> None:
        for retriever in self.retrievers.values():
            retriever.attach(kb)

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        if k < 1:
            raise ValueError(Errors.XE001.format(value=k))
        batch = CandidateBatch.empty(len(queries), k)
        if not queries:
            return batch
        answers = [retriever(queries, k) for retriever in self.retrievers.values()]
        rows = np.concatenate([answer.rows for answer in answers], axis=1)
        scores = np.concatenate([self._scores(answer) for answer in answers], axis=1)
        for i, (found, given) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
            sums: dict[int, float] = {}
            for row, score in zip(found, given, strict=True):
                if row >= 0:
                    sums[row] = sums.get(row, 0.0) + score
            best = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
            for j, (row, score) in enumerate(best):
                batch.rows[i, j] = row
                batch.scores[i, j] = score
        return batch

    def _scores(self, answer: CandidateBatch) -> Float32Array:
        if self.fusion == "mean":
            return answer.scores / np.float32(len(self.retrievers))
        ranks = np.arange(1, answer.rows.shape[1] + 1, dtype=np.float32)
        return np.broadcast_to(1 / (_RANK_OFFSET + ranks), answer.rows.shape)

    def to_disk(self, path: Path) -> None:
        for name, retriever in self.retrievers.items():
            (path / name).mkdir(exist_ok=True)
            retriever.to_disk(path / name)

    def from_disk(self, path: Path) -> None:
        for name, retriever in self.retrievers.items():
            retriever.from_disk(path / name)

    def to_bytes(self) -> bytes:
        parts = {name: retriever.to_bytes() for name, retriever in self.retrievers.items()}
        return bytes(srsly.msgpack_dumps(parts))

    def from_bytes(self, data: bytes) -> None:
        for name, part in srsly.msgpack_loads(data).items():
            self.retrievers[name].from_bytes(part)


def make_hybrid(retrievers: dict[str, Any], fusion: str = "mean") -> Hybrid:
    """spacy-xel.Hybrid.v1: what any of several retrievers finds."""
    return Hybrid(retrievers, fusion=fusion)
