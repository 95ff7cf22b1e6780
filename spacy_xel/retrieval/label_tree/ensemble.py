"""Several label trees as one: each has seen the labels clustered in another way."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.retrieval.label_tree.inputs import check_features
from spacy_xel.retrieval.label_tree.model import DEFAULT_THREADS, Beam, LabelTree, answer_matrix
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.storage import new_folder, read_manifest, verify_files, write_manifest
from spacy_xel.types import Float32Array

ENSEMBLE_FORMAT = "spacy-xel-label-trees-1"


class LabelTreeEnsemble:
    """Trees over the same labels; a label's score is the mean of its scores.

    trees (list[LabelTree]): At least one.
    """

    def __init__(self, trees: Sequence[LabelTree]) -> None:
        self.trees = list(trees)
        found = {(tree.dimension, tree.n_labels) for tree in self.trees}
        if len(found) != 1:
            raise ValueError(Errors.XE047.format(found=sorted(found)))

    @classmethod
    def fit(
        cls,
        features: sparse.csr_matrix,
        labels: sparse.csr_matrix,
        *,
        n_trees: int = 3,
        settings: TreeSettings | None = None,
        weights: Float32Array | None = None,
        threads: int = DEFAULT_THREADS,
    ) -> "LabelTreeEnsemble":
        """Train trees that differ in their seed; the arguments are those of LabelTree.fit."""
        if n_trees < 1:
            raise ValueError(Errors.XE001.format(value=n_trees))
        settings = settings or TreeSettings()
        return cls(
            [
                LabelTree.fit(
                    features,
                    labels,
                    settings=replace(settings, seed=settings.seed + number),
                    weights=weights,
                    threads=threads,
                )
                for number in range(n_trees)
            ]
        )

    def predict(
        self,
        features: sparse.csr_matrix,
        k: int = 20,
        beam: int = 10,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> sparse.csr_matrix:
        """Return the k best labels per row with their scores, best first."""
        best = self.rank(features, k, beam, threads=threads)
        return answer_matrix(best, self.trees[0].n_labels)

    def rank(
        self,
        features: sparse.csr_matrix,
        k: int = 20,
        beam: int = 10,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> Beam:
        """Return the k best labels per row as arrays; scores are logarithms."""
        if len(self.trees) == 1:
            return self.trees[0].rank(features, k, beam, threads=threads)
        rows = check_features(features, self.trees[0].dimension)
        answers = [tree.rank(rows, k, beam, threads=threads) for tree in self.trees]
        return _mean(answers, min(k, self.trees[0].n_labels))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        return {
            f"{number}.{name}": array
            for number, tree in enumerate(self.trees)
            for name, array in tree.arrays().items()
        }

    @classmethod
    def from_arrays(
        cls,
        settings: TreeSettings,
        arrays: Mapping[str, npt.NDArray[Any]],
        dimension: int,
    ) -> "LabelTreeEnsemble":
        """Make an ensemble of what arrays() returned."""
        trees: list[LabelTree] = []
        while f"{len(trees)}.order" in arrays:
            prefix = f"{len(trees)}."
            own = {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            seed = settings.seed + len(trees)
            trees.append(LabelTree.from_arrays(replace(settings, seed=seed), own, dimension))
        return cls(trees)

    def to_disk(self, path: str | Path) -> None:
        """Write the trees into a folder, whole or not at all."""
        with new_folder(Path(path), force=True) as folder:
            for number, tree in enumerate(self.trees):
                tree.to_disk(folder / str(number))
            write_manifest(folder, {"format": ENSEMBLE_FORMAT, "trees": len(self.trees)})

    @classmethod
    def from_disk(cls, path: str | Path, *, verify: bool = True) -> "LabelTreeEnsemble":
        """Map saved trees into memory.

        verify (bool): Compare every file with its checksum first.
        """
        folder = Path(path)
        manifest = read_manifest(folder, ENSEMBLE_FORMAT)
        if verify:
            verify_files(folder, manifest)
        numbers = range(manifest["trees"])
        return cls([LabelTree.from_disk(folder / str(n), verify=False) for n in numbers])


def _mean(answers: Sequence[Beam], k: int) -> Beam:
    """Return the k labels with the highest mean score; where a tree misses one, it counts as 0."""
    n_rows = len(answers[0].counts)
    row_parts, label_parts, score_parts = [], [], []
    for answer in answers:
        found = np.arange(answer.nodes.shape[1]) < answer.counts[:, None]
        row_parts.append(np.nonzero(found)[0])
        label_parts.append(answer.nodes[found])
        score_parts.append(np.exp(answer.scores[found].astype(np.float64)))
    rows, labels = np.concatenate(row_parts), np.concatenate(label_parts)
    order = np.lexsort((labels, rows))
    rows, labels, scores = rows[order], labels[order], np.concatenate(score_parts)[order]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
    firsts = np.flatnonzero(is_first)
    rows, labels = rows[firsts], labels[firsts]
    means = np.add.reduceat(scores, firsts) / len(answers) if len(firsts) else scores
    order = np.lexsort((labels, -means, rows))
    rows, labels, means = rows[order], labels[order], means[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < k
    best = Beam.empty(n_rows, k)
    best.nodes[rows[kept], place[kept]] = labels[kept]
    with np.errstate(divide="ignore"):  # a score so low that its exponential is 0
        best.scores[rows[kept], place[kept]] = np.log(means[kept])
    best.counts[:] = np.bincount(rows[kept], minlength=n_rows)
    return best
