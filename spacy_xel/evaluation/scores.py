"""Scores from counts, with bootstrap confidence intervals."""

import numpy as np

from spacy_xel.evaluation.counts import ALL, COLUMN, GROUP_COLUMN, RECALL_AT, Counts
from spacy_xel.types import Float64Array

Scores = dict[str, float]
Interval = tuple[float, float]


def scores(counts: Counts) -> Scores:
    """Return every score of all documents together."""
    named = _scores(counts.totals.sum(axis=0), _group_sums(counts))
    return {name: float(value) for name, value in named.items()}


def intervals(
    counts: Counts, *, samples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> dict[str, Interval]:
    """Return a confidence interval of every score, by drawing documents with replacement."""
    n_documents = len(counts.totals)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n_documents, np.full(n_documents, 1 / n_documents), size=samples)
    groups = {name: weights @ array for name, array in counts.groups.items()}
    named = _scores(weights @ counts.totals, groups)
    margin = (1 - confidence) / 2
    result = {}
    for name, values in named.items():
        low, high = np.quantile(values, [margin, 1 - margin])
        result[name] = (float(low), float(high))
    return result


def _group_sums(counts: Counts) -> dict[str, Float64Array]:
    return {name: array.sum(axis=0) for name, array in counts.groups.items()}


def _scores(totals: Float64Array, groups: dict[str, Float64Array]) -> dict[str, Float64Array]:
    """Return scores of sums of counts; the last axis has the columns."""

    def column(name: str) -> Float64Array:
        values: Float64Array = totals[..., COLUMN[name]]
        return values

    result: dict[str, Float64Array] = {}
    for name, hits, predicted, gold in (
        ("micro", "exact", "predicted", "gold"),
        ("weak", "weak", "predicted", "gold"),
        ("strict", "strict", "predicted", "gold"),
        ("mention", "exact_spans", "predicted_spans", "gold_spans"),
        ("nil", "exact_nil", "predicted_nil", "gold_nil"),
    ):
        precision = _ratio(column(hits), column(predicted))
        recall = _ratio(column(hits), column(gold))
        result[f"xel_{name}_p"] = precision
        result[f"xel_{name}_r"] = recall
        result[f"xel_{name}_f"] = _ratio(2 * precision * recall, precision + recall)
    for group, sums in groups.items():
        result.update(_group_scores(sums, "" if group == ALL else f"_{group}"))
    return result


def _group_scores(sums: Float64Array, suffix: str) -> dict[str, Float64Array]:
    found = sums[..., GROUP_COLUMN["found"]]
    result = {
        f"xel_acc{suffix}": _ratio(sums[..., GROUP_COLUMN["right"]], found),
        f"xel_acc_strict{suffix}": _ratio(sums[..., GROUP_COLUMN["right_strict"]], found),
    }
    for k in RECALL_AT:
        result[f"xel_recall_at_{k}{suffix}"] = _ratio(sums[..., GROUP_COLUMN[f"at_{k}"]], found)
    if suffix:
        gold = sums[..., GROUP_COLUMN["gold"]]
        result[f"xel_micro_r{suffix}"] = _ratio(sums[..., GROUP_COLUMN["exact"]], gold)
    return result


def _ratio(numerator: Float64Array, denominator: Float64Array) -> Float64Array:
    zero = np.zeros_like(np.asarray(numerator, dtype=np.float64))
    return np.divide(numerator, denominator, out=zero, where=np.asarray(denominator) > 0)
