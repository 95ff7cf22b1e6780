"""Why a label tree answers what it answers: exact, because every ranker is linear."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.retrieval.label_tree.layer import Layer
from spacy_xel.retrieval.label_tree.model import LabelTree, check_features
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
    lost_at: int | None  # the level at which the beam loses the label, or None


def explain(model: LabelTree, features: sparse.csr_matrix, label: int, beam: int) -> Explanation:
    """Explain the score of a label for one query.

    features (csr_matrix): One row.
    label (int): The label.
    beam (int): The width of the search that might lose it.
    """
    features = check_features(features, model.dimension)
    if features.shape[0] != 1 or not 0 <= label < model.n_labels:
        raise ValueError(Errors.XE039.format(rows=features.shape[0], label=label))
    path = node_path(model, label)
    steps = []
    score = 0.0
    for layer, node, parent in zip(model.layers, path[1:], path, strict=False):
        contributions = _contributions(layer, features, parent, node)
        margin = float(layer.bias[node] + contributions.sum())
        score += _log_score(margin, model.settings.score)
        order = np.argsort(-np.abs(contributions), kind="stable")
        used = order[contributions[order] != 0]
        steps.append(
            Step(
                node=node,
                margin=margin,
                score=float(np.exp(score)),
                features=features.indices[used],
                contributions=contributions[used],
                bias=float(layer.bias[node]),
            )
        )
    return Explanation(tuple(steps), _lost_at(model, features, path, beam))


def node_path(model: LabelTree, label: int) -> list[int]:
    """Return the nodes from the root to a label, one per level."""
    path = [int(np.flatnonzero(model.order == label)[0])]
    for layer in reversed(model.layers):
        path.insert(0, int(np.searchsorted(layer.child_start, path[0], side="right")) - 1)
    return path


def node_labels(model: LabelTree, level: int, node: int) -> Int32Array:
    """Return the labels under a node; level 0 is the root."""
    first, last = node, node + 1
    for layer in model.layers[level:]:
        first, last = int(layer.child_start[first]), int(layer.child_start[last])
    return model.order[first:last]


def strongest_features(
    model: LabelTree, level: int, node: int, count: int
) -> list[tuple[int, float]]:
    """Return the features with the largest weights of a node's ranker; level 0 has none."""
    if level == 0:
        return []
    layer = model.layers[level - 1]
    parent = int(np.searchsorted(layer.child_start, node, side="right")) - 1
    child = node - int(layer.child_start[parent])
    places = np.flatnonzero(layer.nodes == parent)
    found = []
    for place in places.tolist():
        entries = layer.entries[layer.entry_starts[place] : layer.entry_starts[place + 1]]
        for entry in entries[(entries & 255) == child].tolist():
            feature = int(np.searchsorted(layer.node_ptr, place, side="right")) - 1
            found.append((feature, _value(entry) * float(layer.scale[node])))
    return sorted(found, key=lambda pair: -pair[1])[:count]


def _contributions(
    layer: Layer, features: sparse.csr_matrix, parent: int, node: int
) -> Float32Array:
    child = node - int(layer.child_start[parent])
    values = np.zeros(features.nnz, dtype=np.float32)
    for i, feature in enumerate(features.indices.tolist()):
        first, last = int(layer.node_ptr[feature]), int(layer.node_ptr[feature + 1])
        place = first + int(np.searchsorted(layer.nodes[first:last], parent))
        if place == last or layer.nodes[place] != parent:
            continue
        entries = layer.entries[layer.entry_starts[place] : layer.entry_starts[place + 1]]
        for entry in entries[(entries & 255) == child].tolist():
            values[i] = features.data[i] * _value(entry) * layer.scale[node]
    return values


def _value(entry: int) -> int:
    value = entry >> 8
    return value - 256 if value > 127 else value


def _log_score(margin: float, kind: str) -> float:
    if kind == "sigmoid":
        return float(-np.logaddexp(0.0, -margin))
    return -(max(1.0 - margin, 0.0) ** 3)


def _lost_at(
    model: LabelTree, features: sparse.csr_matrix, path: list[int], beam: int
) -> int | None:
    """Return the first level whose beam does not hold the path, of the inner levels."""
    for level in range(1, len(model.layers)):
        part = LabelTree(model.settings, model.order, model.layers[:level], model.dimension)
        found = part.search(features, width=beam, threads=1)
        if path[level] not in found.nodes[0, : found.counts[0]]:
            return level
    return None
