"""Mentions of one document inform each other: their candidates' scores are changed and sorted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacy_xel.errors import Errors, raise_at_wrong
from spacy_xel.mentions.same_name import group_by_name, longer_names
from spacy_xel.types import CandidateBatch, Float32Array, Int32Array, Int64Array, Query

Scores = dict[int, float]  # by row of the knowledge base


@dataclass(frozen=True, slots=True)
class Coherence:
    """How much the mentions of a document say about each other, 0 for nothing to 1.

    same_name (float): The same name, or short for the same, means the same in one document: how
        much of a candidate's score is the mean over all such mentions.
    agreement (float): A candidate that a mention of another name is linked to is more probable.
    longer_name (float): A candidate that a longer name is linked to which ends in this one
        ("Barack Obama", then "Obama") is more probable.
    """

    same_name: float = 0.5
    agreement: float = 0.0
    longer_name: float = 0.0

    def __post_init__(self) -> None:
        expected = "between 0 and 1"
        names = ("same_name", "agreement", "longer_name")
        raise_at_wrong(
            self, {name: (0.0 <= getattr(self, name) <= 1.0, expected) for name in names}
        )

    def __call__(
        self, queries: Sequence[Sequence[Query]], batch: CandidateBatch
    ) -> tuple[CandidateBatch, Int64Array]:
        """Return the candidates with new scores, the best first, and where each was before.

        queries (Sequence[Sequence[Query]]): The mentions of each document.
        batch (CandidateBatch): Their candidates; scores are between 0 and 1.
        """
        found = np.isfinite(batch.scores)
        if ((batch.scores[found] < 0) | (batch.scores[found] > 1 + 1e-6)).any():
            raise ValueError(Errors.XE085)
        scores = batch.scores.copy()
        first = 0
        for mentions in queries:
            last = first + len(mentions)
            self._change_document(mentions, batch.rows[first:last], scores[first:last])
            first = last
        # Stable, so that candidates stay in order where nothing is known.
        order = np.argsort(-scores, axis=1, kind="stable")
        rows = np.take_along_axis(batch.rows, order, axis=1)
        return CandidateBatch(rows, np.take_along_axis(scores, order, axis=1)), order

    def _change_document(
        self, queries: Sequence[Query], rows: Int32Array, scores: Float32Array
    ) -> None:
        """Change the scores of one document's mentions in place."""
        if not len(queries) or not rows.shape[1]:
            return
        groups = group_by_name(queries)
        pooled = _pool(groups, rows, scores)
        best = [max(found.items(), key=_by_score) if found else (-1, 0.0) for found in pooled]
        linked_to = _two_best_groups(best)
        above = self._above(queries, groups, best)
        for i, (group, row_list) in enumerate(zip(groups, rows.tolist(), strict=True)):
            changed = scores[i].tolist()
            for j, row in enumerate(row_list):
                if row not in pooled[group]:  # an unused slot
                    continue
                own = changed[j] + self.same_name * (pooled[group][row] - changed[j])
                elsewhere = max((s for s, g in linked_to.get(row, ()) if g != group), default=0.0)
                # Either of them may be the reason why the candidate is right.
                doubt = 1 - self.agreement * elsewhere
                doubt *= 1 - self.longer_name * above[group].get(row, 0.0)
                changed[j] = 1 - (1 - own) * doubt
            scores[i] = changed

    def _above(
        self, queries: Sequence[Query], groups: Sequence[int], best: Sequence[tuple[int, float]]
    ) -> list[Scores]:
        """Return per group what the longer names that end in its name are linked to."""
        above: list[Scores] = [{} for _ in best]
        if not self.longer_name:
            return above
        names = {group: queries[i].mention for i, group in reversed(list(enumerate(groups)))}
        longer = longer_names([names[group] for group in range(len(best))])
        for found, others in zip(above, longer, strict=True):
            for row, score in (best[other] for other in others):
                found[row] = max(score, found.get(row, 0.0))
        return above


def _pool(groups: Sequence[int], rows: Int32Array, scores: Float32Array) -> list[Scores]:
    """Return the mean score of each candidate over the mentions of each group."""
    sizes = np.bincount(groups)
    pooled: list[Scores] = [{} for _ in sizes]
    for group, row_list, score_list in zip(groups, rows.tolist(), scores.tolist(), strict=True):
        mean, size = pooled[group], float(sizes[group])
        for row, score in zip(row_list, score_list, strict=True):
            if row >= 0 and math.isfinite(score):
                mean[row] = mean.get(row, 0.0) + score / size
    return pooled


def _by_score(candidate: tuple[int, float]) -> tuple[float, int]:
    row, score = candidate
    return score, -row


def _two_best_groups(best: Sequence[tuple[int, float]]) -> dict[int, list[tuple[float, int]]]:
    """Return per entity the two groups most surely linked to it: one is not the asker's own."""
    groups: dict[int, list[tuple[float, int]]] = {}
    for group, (row, score) in enumerate(best):
        groups[row] = sorted([*groups.get(row, ()), (score, group)], reverse=True)[:2]
    return groups
