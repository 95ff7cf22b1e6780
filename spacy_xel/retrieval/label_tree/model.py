"""The label tree for anybody with a sparse matrix: fit, predict, save, load (XMRED section 2)."""

import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.errors import Errors, Warnings
from spacy_xel.retrieval.label_tree.cluster import Tree, build_tree, label_vectors
from spacy_xel.retrieval.label_tree.layer import LAYER_ARRAYS, Layer
from spacy_xel.retrieval.label_tree.rankers import RankerTrainer, rows_by_node
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.storage import load_array, new_folder, read_manifest, verify_files, write_manifest
from spacy_xel.types import Float32Array, Int32Array

TREE_FORMAT = "spacy-xel-label-tree-1"
DEFAULT_THREADS = 2
_BLOCK = 256  # rows that a thread takes at a time
_KINDS = {"l3_hinge": 0, "sigmoid": 1}


class Beam(NamedTuple):
    """The best nodes per query, best first."""

    nodes: Int32Array  # (n, width)
    scores: Float32Array  # (n, width): logarithms
    counts: Int32Array  # (n,): how many there are


class LabelTree:
    """A tree of linear rankers over labels.

    settings (TreeSettings): How it was made.
    order (int32[n_labels]): The labels in the order of the tree's leaves.
    layers (list[Layer]): From the root down.
    dimension (int): The number of features.
    """

    def __init__(
        self, settings: TreeSettings, order: Int32Array, layers: list[Layer], dimension: int
    ) -> None:
        self.settings = settings
        self.order = order
        self.layers = layers
        self.dimension = dimension

    @property
    def n_labels(self) -> int:
        return len(self.order)

    @classmethod
    def fit(
        cls,
        features: sparse.csr_matrix,
        labels: sparse.csr_matrix,
        *,
        settings: TreeSettings | None = None,
        weights: Float32Array | None = None,
        tree: Tree | None = None,
        threads: int = DEFAULT_THREADS,
    ) -> "LabelTree":
        """Cluster the labels and train the rankers.

        features (csr_matrix): Instances by features, not negative.
        labels (csr_matrix): Instances by labels; 1, or less for soft targets.
        settings (TreeSettings): How to make it.
        weights (float32[n]): How much each instance counts; by default all the same.
        tree (Tree): Labels already clustered.
        threads (int): The result does not depend on it.
        """
        settings = settings or TreeSettings()
        features = check_features(features)
        labels = _check_labels(labels, features.shape[0])
        weights = _check_weights(weights, features.shape[0])
        with ThreadPoolExecutor(max_workers=threads) as pool:
            if tree is None:
                tree = build_tree(
                    label_vectors(features, labels, pool),
                    branching=settings.branching,
                    max_leaf=settings.max_leaf,
                    iterations=settings.cluster_iterations,
                    seed=settings.seed,
                    pool=pool,
                )
            trainer = RankerTrainer(features, labels, weights, tree, settings, pool)
            model = cls(settings, tree.order, [], features.shape[1])
            for level in range(len(tree.bounds) - 1):
                confused = None
                if settings.negatives == "tfn+man" and level > 0:
                    beam = model.search(features, width=10, threads=threads)
                    n_nodes = len(tree.bounds[level]) - 1
                    confused = rows_by_node(beam.nodes, beam.counts, n_nodes)
                model.layers.append(trainer.train_level(level, confused))
        return model

    def predict(
        self,
        features: sparse.csr_matrix,
        k: int = 20,
        beam: int = 10,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> sparse.csr_matrix:
        """Return the k best labels per row with their scores, best first.

        features (csr_matrix): Queries.
        k (int): How many labels to return.
        beam (int): How many nodes to follow on each level.
        """
        best = self.rank(features, k, beam, threads=threads)
        kept = np.arange(best.nodes.shape[1]) < best.counts[:, None]
        indptr = np.concatenate([[0], np.cumsum(best.counts)])
        shape = (len(best.counts), self.n_labels)
        scores = np.exp(best.scores[kept])
        return sparse.csr_matrix((scores, best.nodes[kept], indptr), shape=shape)

    def rank(
        self,
        features: sparse.csr_matrix,
        k: int = 20,
        beam: int = 10,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> Beam:
        """Return the k best labels per row as arrays; scores are logarithms."""
        if k < 1 or beam < 1:
            raise ValueError(Errors.XE001.format(value=min(k, beam)))
        features = check_features(features, self.dimension)
        best = self.search(features, width=beam, last_width=k, threads=threads)
        # A query without a known feature would get the same answer as any other.
        counts = np.where(np.diff(features.indptr) > 0, best.counts, 0).astype(np.int32)
        return Beam(self.order[best.nodes], best.scores, counts)

    def search(
        self,
        features: sparse.csr_matrix,
        *,
        width: int,
        last_width: int | None = None,
        threads: int = DEFAULT_THREADS,
    ) -> Beam:
        """Return the best nodes of the lowest level per row."""
        n_rows = features.shape[0]
        current = _new_beam(n_rows, 1)
        current.nodes[:] = 0
        current.scores[:] = 0
        current.counts[:] = 1
        beams = [current]
        for number, layer in enumerate(self.layers):
            is_last = number == len(self.layers) - 1
            wide = last_width if is_last and last_width is not None else width
            beams.append(_new_beam(n_rows, min(wide, layer.n_children)))
        blocks = range(0, n_rows, _BLOCK)
        if threads == 1 or len(blocks) <= 1:
            for first in blocks:
                self._search_block(features, beams, first, min(first + _BLOCK, n_rows))
            return beams[-1]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            run = lambda first: self._search_block(  # noqa: E731
                features, beams, first, min(first + _BLOCK, n_rows)
            )
            list(pool.map(run, blocks))
        return beams[-1]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        arrays: dict[str, npt.NDArray[Any]] = {"order": self.order}
        for number, layer in enumerate(self.layers):
            arrays |= {f"layer{number}.{name}": a for name, a in layer.arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, settings: TreeSettings, arrays: Mapping[str, npt.NDArray[Any]], dimension: int
    ) -> "LabelTree":
        """Make a tree of what arrays() returned."""
        layers: list[Layer] = []
        while f"layer{len(layers)}.bias" in arrays:
            prefix = f"layer{len(layers)}"
            layers.append(Layer(**{name: arrays[f"{prefix}.{name}"] for name in LAYER_ARRAYS}))
        return cls(settings, arrays["order"], layers, dimension)

    def to_disk(self, path: str | Path) -> None:
        """Write the tree into a folder, whole or not at all."""
        with new_folder(Path(path), force=True) as folder:
            for name, array in self.arrays().items():
                np.save(folder / f"{name}.npy", array)
            fields: dict[str, Any] = {
                "format": TREE_FORMAT,
                "settings": self.settings.to_json(),
                "dimension": self.dimension,
            }
            write_manifest(folder, fields)

    @classmethod
    def from_disk(cls, path: str | Path, *, verify: bool = True) -> "LabelTree":
        """Map a saved tree into memory.

        verify (bool): Compare every file with its checksum first.
        """
        folder = Path(path)
        manifest = read_manifest(folder, TREE_FORMAT)
        if verify:
            verify_files(folder, manifest)
        arrays = {Path(name).stem: load_array(folder / name) for name in manifest["files"]}
        settings = TreeSettings(**manifest["settings"])
        return cls.from_arrays(settings, arrays, manifest["dimension"])

    def _search_block(
        self, features: sparse.csr_matrix, beams: list[Beam], first: int, last: int
    ) -> None:
        from spacy_xel.retrieval.label_tree.search_kernels import search_layer

        kind = _KINDS[self.settings.score]
        for layer, above, below in zip(self.layers, beams, beams[1:], strict=False):
            search_layer(
                first, last, features.indptr, features.indices, features.data,
                above.nodes, above.scores, above.counts,
                layer.child_start, layer.bias, layer.scale, layer.node_ptr, layer.nodes,
                layer.entry_starts, layer.entries, kind, below.nodes.shape[1],
                below.nodes, below.scores, below.counts,
            )  # fmt: skip


def check_features(features: Any, dimension: int | None = None) -> sparse.csr_matrix:
    """Return features as the one matrix type that the kernels are compiled for."""
    matrix = sparse.csr_matrix(features, dtype=np.float32)
    if dimension is not None and matrix.shape[1] != dimension:
        raise ValueError(Errors.XE028.format(expected=dimension, value=matrix.shape[1]))
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0):
        raise ValueError(Errors.XE029)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    matrix.indptr = matrix.indptr.astype(np.int64, copy=False)
    return matrix


def _check_labels(labels: Any, n_rows: int) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(labels, dtype=np.float32)
    if matrix.shape[0] != n_rows:
        raise ValueError(Errors.XE030.format(features=n_rows, labels=matrix.shape[0]))
    if matrix.shape[1] == 0 or n_rows == 0:
        raise ValueError(Errors.XE031.format(rows=n_rows, labels=matrix.shape[1]))
    if matrix.nnz and not ((matrix.data > 0) & (matrix.data <= 1)).all():
        raise ValueError(Errors.XE032)
    without = int(np.count_nonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]) == 0))
    if without:
        warnings.warn(Warnings.XW003.format(count=without, total=matrix.shape[1]), stacklevel=3)
    return matrix


def _check_weights(weights: Any, n_rows: int) -> Float32Array:
    if weights is None:
        return np.ones(n_rows, dtype=np.float32)
    array = np.asarray(weights, dtype=np.float32)
    if array.shape != (n_rows,) or not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(Errors.XE033.format(rows=n_rows))
    return array


def _new_beam(n_rows: int, width: int) -> Beam:
    nodes = np.zeros((n_rows, width), dtype=np.int32)
    scores = np.full((n_rows, width), -np.inf, dtype=np.float32)
    return Beam(nodes, scores, np.zeros(n_rows, dtype=np.int32))
