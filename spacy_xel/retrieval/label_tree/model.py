"""The label tree for anybody with a sparse matrix: fit, predict, save, load (XMRED section 2)."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.retrieval.label_tree.cluster import Tree, build_tree, label_vectors
from spacy_xel.retrieval.label_tree.inputs import (
    Rows,
    check_features,
    check_labels,
    check_weights,
)
from spacy_xel.retrieval.label_tree.layout import LAYOUT_ARRAYS, Layout
from spacy_xel.retrieval.label_tree.rankers import RankerTrainer, rows_by_node
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.storage import load_array, new_folder, read_manifest, verify_files, write_manifest
from spacy_xel.types import Float32Array, Int32Array

TREE_FORMAT = "spacy-xel-label-tree-2"
DEFAULT_THREADS = 2
_BLOCK = 256  # rows that a thread takes at a time
_KINDS = {"l3_hinge": 0, "sigmoid": 1}


class Beam(NamedTuple):
    """The best nodes per query, best first."""

    nodes: Int32Array  # (n, width)
    scores: Float32Array  # (n, width): logarithms
    counts: Int32Array  # (n,): how many there are

    @classmethod
    def empty(cls, n_rows: int, width: int) -> "Beam":
        return cls(
            np.zeros((n_rows, width), dtype=np.int32),
            np.full((n_rows, width), -np.inf, dtype=np.float32),
            np.zeros(n_rows, dtype=np.int32),
        )


class LabelTree:
    """A tree of linear rankers over labels.

    settings (TreeSettings): How it was made.
    order (int32[n_labels]): The labels in the order of the tree's leaves.
    layout (Layout): The rankers.
    dimension (int): The number of features.
    """

    def __init__(
        self, settings: TreeSettings, order: Int32Array, layout: Layout, dimension: int
    ) -> None:
        self.settings = settings
        self.order = order
        self.layout = layout
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
        rows = check_features(features)
        labels = check_labels(labels, rows.shape[0])
        weights = check_weights(weights, rows.shape[0])
        with ThreadPoolExecutor(max_workers=threads) as pool:
            if tree is None:
                tree = build_tree(
                    label_vectors(rows, labels, pool),
                    branching=settings.branching,
                    max_leaf=settings.max_leaf,
                    iterations=settings.cluster_iterations,
                    seed=settings.seed,
                    pool=pool,
                )
            tree.check(labels.shape[1])
            trainer = RankerTrainer(rows, labels, weights, tree, settings, pool)
            dimension = rows.shape[1]
            n_levels = len(tree.bounds) - 1
            if settings.negatives == "tfn":
                levels = trainer.train(range(n_levels))
                return cls(settings, tree.order, Layout.from_levels(levels, dimension), dimension)
            levels = trainer.train([0])
            for level in range(1, n_levels):
                above = cls(settings, tree.order, Layout.from_levels(levels, dimension), dimension)
                beam = above.search(rows, width=10, threads=threads)
                confused = rows_by_node(beam.nodes, beam.counts, len(tree.bounds[level]) - 1)
                levels += trainer.train([level], confused)
        return cls(settings, tree.order, Layout.from_levels(levels, dimension), dimension)

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
        return answer_matrix(best, self.n_labels)

    def rank(
        self,
        features: sparse.csr_matrix | Rows,
        k: int = 20,
        beam: int = 10,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> Beam:
        """Return the k best labels per row as arrays; scores are logarithms."""
        if k < 1 or beam < 1:
            raise ValueError(Errors.XE001.format(value=min(k, beam)))
        rows = check_features(features, self.dimension)
        best = self.search(rows, width=beam, last_width=k, threads=threads)
        return Beam(self.order[best.nodes], best.scores, best.counts)

    def search(
        self,
        rows: Rows,
        *,
        width: int,
        last_width: int | None = None,
        n_levels: int | None = None,
        threads: int = DEFAULT_THREADS,
    ) -> Beam:
        """Return the best nodes of the lowest level per row.

        rows (Rows): Queries.
        width, last_width (int): How many nodes to keep on each level, and on the last.
        n_levels (int): How far to go down, by default to the labels.
        """
        from spacy_xel.retrieval.label_tree.search_kernels import search

        n_levels = n_levels or self.layout.n_levels
        width = min(width, self.layout.most_nodes)
        last_width = min(last_width or width, self.layout.n_nodes(n_levels))
        n_rows = rows.shape[0]
        found = Beam.empty(n_rows, last_width)
        layout = self.layout

        def run(first: int) -> None:
            search(
                first, min(first + _BLOCK, n_rows),
                rows.indptr, rows.indices, rows.data, n_levels, self.dimension,
                layout.level_start, layout.child_start, layout.bias, layout.scale,
                layout.pair_start, layout.pair_node, layout.pair_size, layout.word_start,
                layout.words, _KINDS[self.settings.score], width, last_width, *found,
            )  # fmt: skip

        blocks = range(0, n_rows, _BLOCK)
        if threads == 1 or len(blocks) <= 1:
            for first in blocks:
                run(first)
        else:
            with ThreadPoolExecutor(max_workers=threads) as pool:
                list(pool.map(run, blocks))
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        return {"order": self.order, **self.layout.arrays()}

    @classmethod
    def from_arrays(
        cls, settings: TreeSettings, arrays: Mapping[str, npt.NDArray[Any]], dimension: int
    ) -> "LabelTree":
        """Make a tree of what arrays() returned."""
        try:
            layout = Layout(**{name: arrays[name] for name in LAYOUT_ARRAYS})
            layout.check(len(arrays["order"]), dimension)
        except (KeyError, TypeError, IndexError) as error:
            problem = f"an array is missing or of the wrong kind ({error!r})"
            raise ValueError(Errors.XE007.format(path="the label tree", problem=problem)) from error
        return cls(settings, arrays["order"], layout, dimension)

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


def answer_matrix(best: Beam, n_labels: int) -> sparse.csr_matrix:
    """Return the best labels per row with their scores, best first."""
    kept = np.arange(best.nodes.shape[1]) < best.counts[:, None]
    indptr = np.concatenate([[0], np.cumsum(best.counts)])
    shape = (len(best.counts), n_labels)
    return sparse.csr_matrix((np.exp(best.scores[kept]), best.nodes[kept], indptr), shape=shape)
