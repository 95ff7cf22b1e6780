"""What is known of a mention's candidates before their scores become probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from rapidfuzz.distance import Indel

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.types import BoolArray, CandidateBatch, Float32Array, Float64Array, Query

_LOWEST_LOG = -70.0  # of a score of 0; float32 cannot tell smaller ones apart
_LARGEST = 1e30  # decision trees compare in float32


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row per mention; what has a single value is about its first candidate."""

    scores: Float64Array  # (n, k), best first; -inf in unused slots
    retriever_scores: Float64Array  # (n,): what the candidate had before it was re-ranked
    frequency: Float64Array  # (n,): how often a training corpus meant the entity, and its prior
    name_similarity: Float64Array  # (n,): 0 to 1, of the mention and the entity's nearest name
    name_probability: Float64Array  # (n,): P(entity | the mention as a name) of the KB
    meanings: Float64Array  # (n,): how many entities have the mention as a name
    length: Float64Array  # (n,): characters of the mention

    @property
    def found(self) -> BoolArray:
        """Which mentions have a candidate."""
        found: BoolArray = np.asarray(np.isfinite(self.scores).any(axis=1))
        return found

    def take(self, rows: BoolArray) -> "Evidence":
        """Return the evidence on some of the mentions."""
        return Evidence(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def join(cls, parts: "Sequence[Evidence]") -> "Evidence":
        """Return the evidence of several batches as one."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def gather(
    kb: XelKnowledgeBase,
    queries: Sequence[Query],
    batch: CandidateBatch,
    retriever_scores: Float32Array | None = None,
    *,
    names: bool = True,
) -> Evidence:
    """Return the evidence on candidates.

    queries (Sequence[Query]): The mentions, in their texts.
    batch (CandidateBatch): Their candidates, the best first.
    retriever_scores (ndarray): Scores of the same candidates before they were re-ranked, (n, k).
    names (bool): Compare mentions with the names of entities too; otherwise that is all 0.
    """
    first = batch.rows[:, 0] if batch.rows.shape[1] else np.full(len(queries), -1)
    scores = np.where(batch.rows >= 0, batch.scores.astype(np.float64), -np.inf)
    nothing = np.zeros(len(queries))
    compared = {"similarity": nothing, "probability": nothing, "meanings": nothing}
    if names:
        compared = _name_evidence(kb, queries, first.tolist())
    return Evidence(
        scores=scores,
        retriever_scores=_first(scores if retriever_scores is None else retriever_scores),
        frequency=kb.entity_counts(first),
        name_similarity=compared["similarity"],
        name_probability=compared["probability"],
        meanings=compared["meanings"],
        length=np.array([len(query.mention) for query in queries], dtype=np.float64),
    )


def log_scores(scores: Float64Array, logarithmic: bool) -> Float64Array:
    """Return scores that add up: their logarithms, if they are like probabilities.

    logarithmic (bool): Whether they are. Unused slots (-inf) stay as they are.
    """
    unused = np.isneginf(scores)
    if not logarithmic:
        return np.where(unused, -np.inf, np.clip(scores, -_LARGEST, _LARGEST))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(scores, 0.0))
    return np.where(unused, -np.inf, np.clip(logs, _LOWEST_LOG, -_LOWEST_LOG))


def features(evidence: Evidence, names: Sequence[str], logarithmic: bool) -> Float64Array:
    """Return the columns that a method asks for; every value is finite.

    names (Sequence[str]): Of FEATURES.
    """
    columns = [FEATURES[name](evidence, logarithmic) for name in names]
    table: Float64Array = np.stack(columns, axis=1)
    finite: Float64Array = np.nan_to_num(table, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
    return finite


def _score(evidence: Evidence, logarithmic: bool) -> Float64Array:
    return _first(log_scores(evidence.scores, logarithmic))


def _retriever_score(evidence: Evidence, logarithmic: bool) -> Float64Array:
    return log_scores(evidence.retriever_scores, bool((evidence.retriever_scores >= 0).all()))


def _margin(evidence: Evidence, logarithmic: bool) -> Float64Array:
    """How far the first candidate is ahead of the second; far, if there is none."""
    logs = log_scores(evidence.scores, logarithmic)
    if logs.shape[1] < 2:
        return np.full(len(logs), -_LOWEST_LOG)
    first = np.where(np.isfinite(logs[:, 0]), logs[:, 0], 0.0)
    second = np.where(np.isfinite(logs[:, 1]), logs[:, 1], first + _LOWEST_LOG)
    return first - second


def _count(evidence: Evidence, logarithmic: bool) -> Float64Array:
    counts: Float64Array = np.isfinite(evidence.scores).sum(axis=1).astype(np.float64)
    return counts


FEATURES = {
    "score": _score,
    "retriever_score": _retriever_score,
    "margin": _margin,
    "frequency": lambda evidence, _: np.log1p(np.maximum(evidence.frequency, 0.0)),
    "name_similarity": lambda evidence, _: evidence.name_similarity,
    "name_probability": lambda evidence, _: evidence.name_probability,
    "meanings": lambda evidence, _: evidence.meanings,
    "length": lambda evidence, _: evidence.length,
    "candidates": _count,
}


def _first(scores: Float64Array | Float32Array) -> Float64Array:
    if not scores.shape[1]:
        return np.full(len(scores), -np.inf)
    return scores[:, 0].astype(np.float64)


def _name_evidence(
    kb: XelKnowledgeBase, queries: Sequence[Query], rows: Sequence[int]
) -> dict[str, Float64Array]:
    """Compare mentions, and what they are short for, with names of entities."""
    similarity, probability, meanings = np.zeros((3, len(queries)))
    names_of: dict[int, list[str]] = {}
    for i, (query, spelled_out) in enumerate(zip(queries, spell_out(queries), strict=True)):
        forms = {query.mention, spelled_out.mention}
        found = [dict(kb.lookup(form)) for form in forms]
        meanings[i] = max(map(len, found))
        row = rows[i]
        if not kb.has_row(row):
            continue
        if row not in names_of:
            names_of[row] = [normalize_name(name) for name in kb.entity(row).names]
        probability[i] = max(entities.get(row, 0.0) for entities in found)
        similarity[i] = max(
            Indel.normalized_similarity(normalize_name(form), name)
            for form in forms
            for name in names_of[row]
        )
    return {"similarity": similarity, "probability": probability, "meanings": meanings}
