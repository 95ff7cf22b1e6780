"""The label tree: label vectors, and balanced spherical k-means over them (XMRED section 2.2)."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.progress import progress
from spacy_xel.retrieval.label_tree.inputs import Rows
from spacy_xel.types import Int32Array, Int64Array

_BLOCKS = 32
_MOST_CHILDREN = 256


@dataclass(frozen=True, slots=True)
class Tree:
    """Which labels are under which node.

    order (int32[n_labels]): The labels, those of a node side by side.
    bounds (list of int64[n_nodes + 1]): Per level from the root down, where each node's labels
        begin in order; the last level has one node per label.
    """

    order: Int32Array
    bounds: list[Int64Array]

    def check(self, n_labels: int) -> None:
        """Raise an error if this is no tree over so many labels that rankers can be trained for."""
        problem = ""
        if not np.array_equal(np.sort(self.order), np.arange(n_labels)):
            problem = "its order must have each label once"
        elif not np.array_equal(self.bounds[-1], np.arange(n_labels + 1)):
            problem = "its last level must have one node per label"
        elif self.bounds[0].tolist() != [0, n_labels]:
            problem = "its first level must have one node, the root"
        for above, below in pairwise(self.bounds):
            if not (np.isin(above, below).all() and (np.diff(below) > 0).all()):
                problem = "a node must lie within one of the level above"
            elif np.diff(np.searchsorted(below, above)).max() > _MOST_CHILDREN:
                problem = f"a node has more than {_MOST_CHILDREN} children"
        if problem:
            raise ValueError(Errors.XE046.format(labels=n_labels, problem=problem))

    def all_children(self, level: int) -> list[Int64Array]:
        """Return per node of a level the bounds of its children."""
        starts, below = self.child_starts(level), self.bounds[level + 1]
        return [below[first : last + 1] for first, last in pairwise(starts)]

    def child_starts(self, level: int) -> Int32Array:
        """Return where the children of each node of a level begin among the next level's nodes."""
        return np.searchsorted(self.bounds[level + 1], self.bounds[level]).astype(np.int32)


def label_vectors(
    features: Rows, labels: sparse.csr_matrix, pool: ThreadPoolExecutor
) -> sparse.csr_matrix:
    """Return a unit vector per label: the sum of its instances (PIFA, XMRED eq. 2).

    An instance of several labels counts for less in each, as in PECOS.
    """
    from spacy_xel.retrieval.label_tree.cluster_kernels import aggregate_labels

    by_label = labels.tocsc()
    n_labels, dimension = labels.shape[1], features.shape[1]
    label_ptr = by_label.indptr.astype(np.int64)
    rows = by_label.indices.astype(np.int32)
    indptr = features.indptr
    row_weight = (1 / np.sqrt(np.maximum(np.diff(labels.indptr), 1))).astype(np.float32)
    row_lengths = np.concatenate([[0], np.cumsum(np.diff(indptr)[rows])])
    edges = np.searchsorted(label_ptr, np.linspace(0, label_ptr[-1], _BLOCKS + 1))
    edges[0], edges[-1] = 0, n_labels
    lengths = np.zeros(n_labels, dtype=np.int64)
    scratch = threading.local()

    def run(block: int) -> tuple[Int32Array, "np.ndarray[tuple[int], np.dtype[np.float32]]"]:
        if not hasattr(scratch, "total"):
            scratch.total = np.zeros(dimension, dtype=np.float32)
            scratch.seen = np.full(dimension, -1, dtype=np.int32)
        first, last = int(edges[block]), int(edges[block + 1])
        room = int(row_lengths[label_ptr[last]] - row_lengths[label_ptr[first]])
        indices, data = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float32)
        size = aggregate_labels(
            first, last, label_ptr, rows, row_weight, indptr, features.indices, features.data,
            scratch.total, scratch.seen, lengths, indices, data,
        )  # fmt: skip
        return indices[:size].copy(), data[:size].copy()

    parts = list(progress(pool.map(run, range(_BLOCKS)), "Label vectors", total=_BLOCKS))
    indices = np.concatenate([part[0] for part in parts])
    data = np.concatenate([part[1] for part in parts])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_matrix((data, indices, starts), shape=(n_labels, dimension), copy=False)


def build_tree(
    vectors: sparse.csr_matrix,
    *,
    branching: int,
    max_leaf: int,
    iterations: int,
    seed: int,
    pool: ThreadPoolExecutor,
) -> Tree:
    """Split the labels in halves until at most max_leaf are together (XMRED algorithm 1).

    A node of the tree has up to branching children: its labels after log2(branching) splits.
    """
    from spacy_xel.retrieval.label_tree.cluster_kernels import split_in_half

    n_labels, dimension = vectors.shape
    depth = max(0, math.ceil(math.log2(max(n_labels, 1) / max_leaf)))
    order = np.arange(n_labels, dtype=np.int32)
    indptr = vectors.indptr.astype(np.int64)
    scratch = threading.local()

    def split(job: tuple[int, int, int]) -> None:
        if not hasattr(scratch, "center"):
            scratch.center = np.zeros(2 * dimension, dtype=np.float32)
        first, last, number = job
        split_in_half(
            order, first, last, indptr, vectors.indices, vectors.data,
            iterations, seed + number, scratch.center,
        )  # fmt: skip

    bounds = np.array([0, n_labels], dtype=np.int64)
    for level in progress(range(depth), "Clustering", total=depth):
        starts, ends = bounds[:-1], bounds[1:]
        jobs = [
            (int(start), int(end), (1 << level) + i)
            for i, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        list(pool.map(split, jobs))
        halves = starts + (ends - starts) // 2
        bounds = np.append(np.stack([starts, halves], axis=1).ravel(), n_labels)
    return Tree(order, _levels(bounds, branching, n_labels))


def _levels(leaf_bounds: Int64Array, branching: int, n_labels: int) -> list[Int64Array]:
    levels = [leaf_bounds]
    while len(levels[0]) - 1 > 1:
        above = levels[0][::branching]
        if above[-1] != n_labels:
            above = np.append(above, n_labels)
        levels.insert(0, above)
    return [*levels, np.arange(n_labels + 1, dtype=np.int64)]
