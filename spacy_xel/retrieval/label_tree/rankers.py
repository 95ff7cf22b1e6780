"""Training of a tree's rankers, level by level (XMRED section 2.3)."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from spacy_xel.progress import progress
from spacy_xel.retrieval.label_tree.cluster import Tree
from spacy_xel.retrieval.label_tree.inputs import Rows
from spacy_xel.retrieval.label_tree.layout import Level, NodeWeights
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.types import Float32Array, Int32Array, Int64Array

_TINY = 1e-12  # what is no larger is 0
_NONE: Int32Array = np.empty(0, dtype=np.int32)


class RankerTrainer:
    """Trains the rankers of a tree's levels.

    features (Rows): Instances.
    labels (csr_matrix): Their labels; values below 1 are soft targets.
    weights (float32[n]): How much each instance counts.
    """

    def __init__(
        self,
        features: Rows,
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
        self.indptr = features.indptr
        self.indices, self.data = features.indices, features.data
        self.row_cost = (settings.cost * weights).astype(np.float32)
        self._scratch = threading.local()

    def train(self, levels: Sequence[int], confused: list[Int32Array] | None = None) -> list[Level]:
        """Train the rankers of the nodes of some levels.

        confused (list of int32[:]): Per node, more instances to learn from as negatives.
        """
        bounds = {level: self.tree.all_children(level) for level in levels}
        jobs = [(level, node) for level in levels for node in range(len(bounds[level]))]
        # The most work first, so that no thread is left with a lot of it at the end.
        work = [self._rows_times_children(bounds[level][node]) for level, node in jobs]
        jobs = [jobs[i] for i in np.argsort(-np.array(work), kind="stable").tolist()]

        def run(job: tuple[int, int]) -> NodeWeights:
            level, node = job
            return self._train_node(bounds[level][node], confused[node] if confused else _NONE)

        bar = progress(self.pool.map(run, jobs), "Rankers", total=len(jobs))
        trained = dict(zip(jobs, bar, strict=True))
        return [
            Level(
                self.tree.child_starts(level),
                [trained.pop((level, node)) for node in range(len(bounds[level]))],
            )
            for level in levels
        ]

    def _rows_times_children(self, bounds: Int64Array) -> int:
        return int(self.label_ptr[bounds[-1]] - self.label_ptr[bounds[0]]) * len(bounds)

    def _train_node(self, bounds: Int64Array, extra: Int32Array) -> NodeWeights:
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
            np.float32(max(settings.threshold, _TINY)), settings.seed,
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
