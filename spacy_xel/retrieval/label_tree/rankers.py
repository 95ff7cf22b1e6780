"""Training of a tree's rankers, level by level (XMRED section 2.3)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.progress import progress
from spacy_xel.retrieval.label_tree.cluster import Tree
from spacy_xel.retrieval.label_tree.layer import Layer, NodeWeights
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.types import Float32Array, Int32Array

_NONE: Int32Array = np.empty(0, dtype=np.int32)


class RankerTrainer:
    """Trains the rankers of a tree's levels.

    features (csr_matrix): Instances.
    labels (csr_matrix): Their labels; values below 1 are soft targets.
    weights (float32[n]): How much each instance counts.
    """

    def __init__(
        self,
        features: sparse.csr_matrix,
        labels: sparse.csr_matrix,
        weights: Float32Array,
        tree: Tree,
        settings: TreeSettings,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.tree = tree
        self.settings = settings
        self.pool = pool
        self.n_rows, self.dimension = features.shape
        by_label = labels.tocsc()[:, tree.order]
        self.label_ptr = by_label.indptr.astype(np.int64)
        self.label_rows = by_label.indices.astype(np.int32)
        self.label_values = by_label.data.astype(np.float32)
        self.indptr = features.indptr.astype(np.int64)
        self.indices, self.data = features.indices, features.data
        self.row_cost = (settings.cost * weights).astype(np.float32)
        self._scratch = threading.local()

    def train_level(self, level: int, confused: list[Int32Array] | None = None) -> Layer:
        """Train the rankers of a level's nodes.

        confused (list of int32[:]): Per node, more instances to learn from as negatives.
        """
        n_nodes = len(self.tree.bounds[level]) - 1
        bounds = [self.tree.children(level, node) for node in range(n_nodes)]
        extra = confused or [_NONE] * n_nodes
        # Largest first, so that no thread is left with a large one at the end.
        sizes = [self.label_ptr[b[-1]] - self.label_ptr[b[0]] for b in bounds]
        order = np.argsort(-np.array(sizes), kind="stable").tolist()
        jobs = self.pool.map(lambda node: self._train_node(bounds[node], extra[node]), order)
        description = f"Rankers, level {level + 1} of {len(self.tree.bounds) - 1}"
        trained = dict(zip(order, progress(jobs, description, total=n_nodes), strict=True))
        nodes = [trained[node] for node in range(n_nodes)]
        return Layer.from_nodes(self.tree.child_starts(level), nodes, self.dimension)

    def _train_node(self, bounds: npt.NDArray[np.int64], extra: Int32Array) -> NodeWeights:
        from spacy_xel.retrieval.label_tree.ranker_kernels import train_node

        if not hasattr(self._scratch, "row_slot"):
            self._scratch.row_slot = np.full(self.n_rows, -1, dtype=np.int32)
            self._scratch.feature_slot = np.full(self.dimension, -1, dtype=np.int32)
        settings = self.settings
        squared = np.float32(settings.loss == "squared_hinge")
        found: tuple[Any, ...] = train_node(
            bounds, self.label_ptr, self.label_rows, self.label_values, extra,
            self.indptr, self.indices, self.data, self.row_cost,
            squared, np.float32(settings.tolerance), settings.max_passes,
            np.float32(settings.threshold), settings.seed,
            self._scratch.row_slot, self._scratch.feature_slot,
        )  # fmt: skip
        return NodeWeights(*found)


def rows_by_node(nodes: Int32Array, counts: Int32Array, n_nodes: int) -> list[Int32Array]:
    """Return per node the rows whose beam it is in."""
    rows = np.repeat(np.arange(len(nodes), dtype=np.int32), counts)
    in_beam = np.arange(nodes.shape[1]) < counts[:, None]
    flat = nodes[in_beam]
    order = np.argsort(flat, kind="stable")
    edges = np.searchsorted(flat[order], np.arange(n_nodes + 1))
    return np.split(rows[order], edges[1:-1])
