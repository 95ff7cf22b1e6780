"""Fitted decision trees as flat arrays, which can be saved as numbers and asked all at once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spacy_xel.errors import Errors
from spacy_xel.types import Float64Array, Int64Array


class Forest:
    """Decision trees: go left where the feature is at most the threshold.

    roots (int[:]): The first node of each tree.
    features, left, right (int[:]): Per node; a leaf is its own child.
    thresholds, values (float[:]): Per node; a leaf's value is what its tree answers.
    """

    def __init__(
        self,
        roots: Int64Array,
        features: Int64Array,
        thresholds: Float64Array,
        left: Int64Array,
        right: Int64Array,
        values: Float64Array,
    ) -> None:
        self.roots = roots
        self.features = features
        self.thresholds = thresholds
        self.left = left
        self.right = right
        self.values = values
        self._depth = self._check()

    @classmethod
    def of_trees(cls, trees: Sequence[Any], value: Callable[[Any], Float64Array]) -> "Forest":
        """Take over trees of scikit-learn.

        trees (Sequence[Tree]): The tree_ of each estimator.
        value (Callable): Returns one number per node of such a tree.
        """
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[:-1]
        parts: dict[str, list[Any]] = {
            name: [] for name in ("features", "thresholds", "left", "right", "values")
        }
        for root, tree in zip(roots.tolist(), trees, strict=True):
            leaf = tree.children_left < 0
            own = np.arange(tree.node_count)
            parts["features"].append(np.where(leaf, 0, tree.feature))
            parts["thresholds"].append(np.where(leaf, 0.0, tree.threshold))
            parts["left"].append(root + np.where(leaf, own, tree.children_left))
            parts["right"].append(root + np.where(leaf, own, tree.children_right))
            parts["values"].append(value(tree))
        return cls(roots, **{name: _joined(name, arrays) for name, arrays in parts.items()})

    def __call__(self, features: Float64Array) -> Float64Array:
        """Return each tree's value for each row, (n, n_trees)."""
        # In 32 bits, as scikit-learn compares.
        columns = features.astype(np.float32)
        rows = np.arange(len(columns))[:, None]
        nodes = np.broadcast_to(self.roots, (len(columns), len(self.roots)))
        for _ in range(self._depth):
            goes_left = columns[rows, self.features[nodes]] <= self.thresholds[nodes]
            nodes = np.where(goes_left, self.left[nodes], self.right[nodes])
        values: Float64Array = self.values[nodes]
        return values

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in _FIELDS}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Forest":
        return cls(**{name: _joined(name, [fields[name]]) for name in _FIELDS})

    def _check(self) -> int:
        """Return the depth of the deepest tree, after a check that every path ends."""
        n_nodes = len(self.values)
        own = np.arange(n_nodes)
        sizes = {len(getattr(self, name)) for name in _FIELDS if name != "roots"}
        sound = sizes == {n_nodes} and all(
            ((array >= 0) & (array < n_nodes)).all()
            for array in (self.roots, self.left, self.right)
        )
        # A child comes after its parent, so no path returns.
        if not sound or (self.left < own).any() or (self.right < own).any():
            raise ValueError(Errors.XE080)
        depth = np.zeros(n_nodes, dtype=np.int64)
        for node in range(n_nodes - 1, -1, -1):
            if self.left[node] != node:
                depth[node] = 1 + max(depth[self.left[node]], depth[self.right[node]])
        return int(depth[self.roots].max()) if len(self.roots) else 0


_FIELDS = ("roots", "features", "thresholds", "left", "right", "values")


def _joined(name: str, arrays: Sequence[Any]) -> Any:
    dtype = np.float64 if name in ("thresholds", "values") else np.int64
    return np.concatenate([np.asarray(array, dtype=dtype) for array in arrays] or [np.empty(0)])
