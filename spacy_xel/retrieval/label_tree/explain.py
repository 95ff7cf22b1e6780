"""Why a label tree answers what it answers: exact, because every ranker is linear."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.retrieval.label_tree.inputs import Rows, check_features
from spacy_xel.retrieval.label_tree.model import LabelTree
from spacy_xel.types import Float32Array, Int32Array


class Step(NamedTuple):
    """One level on the way to a label."""

    node: int  # the number of the node on its level, the children of the root being level 1
    margin: float  # what the node's ranker says
    score: float  # the product of the scores from the root down to here
    features: Int32Array  # the query's features, the largest contribution first
    contributions: Float32Array  # to the margin; with the bias they add up to it
    bias: float


class Explanation(NamedTuple):
    """The way to a label, and where a search would leave it."""

    steps: tuple[Step, ...]
    lost_at: int | None  # the level at which the search loses the label, or None


def explain(
    model: LabelTree, features: sparse.csr_matrix, label: int, beam: int, k: int = 20
) -> Explanation:
    """Explain the score of a label for one query.

    features (csr_matrix): One row.
    label (int): The label.
    beam, k (int): The width of the search that might lose it, and on the last level.
    """
    rows = check_features(features, model.dimension)
    if rows.shape[0] != 1 or not 0 <= label < model.n_labels:
        raise ValueError(Errors.XE039.format(rows=rows.shape[0], label=label))
    path = node_path(model, label)
    steps = []
    score = 0.0
    for level in range(1, len(path)):
        node = path[level]
        bias, weighted, weights = model.layout.ranker(level, node)
        values = np.zeros(model.dimension, dtype=np.float32)
        values[weighted] = weights
        contributions = rows.data * values[rows.indices]
        margin = bias + float(contributions.sum())
        score += _log_score(margin, model.settings.score)
        order = np.argsort(-np.abs(contributions), kind="stable")
        used = order[contributions[order] != 0]
        steps.append(
            Step(
                node=node,
                margin=margin,
                score=float(np.exp(score)),
                features=rows.indices[used],
                contributions=contributions[used],
                bias=bias,
            )
        )
    return Explanation(tuple(steps), _lost_at(model, rows, path, beam, k))


def node_path(model: LabelTree, label: int) -> list[int]:
    """Return the nodes from the root to a label, one per level."""
    path = [int(np.flatnonzero(model.order == label)[0])]
    for level in range(model.layout.n_levels, 0, -1):
        path.insert(0, model.layout.parent(level, path[0]))
    return path


def node_labels(model: LabelTree, level: int, node: int) -> Int32Array:
    """Return the labels under a node; level 0 is the root."""
    first, last = node, node
    for below in range(level, model.layout.n_levels):
        first, last = model.layout.children(below, first)[0], model.layout.children(below, last)[1]
        last -= 1
    return model.order[first : last + 1]


def strongest_features(
    model: LabelTree, level: int, node: int, count: int
) -> list[tuple[int, float]]:
    """Return the features with the largest weights of a node's ranker; level 0 has none."""
    if level == 0:
        return []
    _, features, weights = model.layout.ranker(level, node)
    best = np.argsort(-weights, kind="stable")[:count]
    return [(int(features[i]), float(weights[i])) for i in best]


def _log_score(margin: float, kind: str) -> float:
    if kind == "sigmoid":
        return float(-np.logaddexp(0.0, -margin))
    return -(max(1.0 - margin, 0.0) ** 3)


def _lost_at(model: LabelTree, rows: Rows, path: list[int], beam: int, k: int) -> int | None:
    """Return the first level whose best nodes do not hold the path."""
    n_levels = model.layout.n_levels
    for level in range(1, n_levels + 1):
        width = k if level == n_levels else beam
        found = model.search(rows, width=beam, last_width=width, n_levels=level, threads=1)
        if path[level] not in found.nodes[0, : found.counts[0]]:
            return level
    return None
