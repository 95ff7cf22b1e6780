"""Entities added to a knowledge base after a tree was fitted: a small tree beside the large one."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse

from spacy_xel.features.ngrams import NgramFeatures
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.retrieval.label_tree.ensemble import LabelTreeEnsemble
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.types import CandidateBatch, Entity, Int32Array, Query

LOOK_ALIKES = 20  # entities that the large tree takes a new name for, to be told apart from it
BYSTANDERS = 500  # entities drawn at random: what a mention usually is, if not a new name


class AddedEntities:
    """A tree over added entities, their look-alikes and some others; it answers with the added.

    rows (Int32Array): The row of each of its labels.
    n_added (int): How many of them, the first, are added entities.
    trees (LabelTreeEnsemble): Over these labels.
    strange (dict[str, list[int]]): Added names without a single known n-gram, and their rows.
    """

    def __init__(
        self,
        rows: Int32Array,
        n_added: int,
        trees: LabelTreeEnsemble,
        strange: dict[str, list[int]],
    ) -> None:
        self.rows = rows
        self.n_added = n_added
        self.trees = trees
        self.strange = strange

    @classmethod
    def fit(
        cls,
        added: Sequence[int],
        kb: XelKnowledgeBase,
        features: NgramFeatures,
        trees: LabelTreeEnsemble,
        settings: TreeSettings,
    ) -> "AddedEntities":
        """Train with what the knowledge base says of the added entities and of others.

        added (Sequence[int]): The rows of the added entities.
        trees (LabelTreeEnsemble): The large tree.
        """
        queries = [query for row in added for query in kb_queries(kb.entity(row))]
        near = trees.rank(features.transform(queries), LOOK_ALIKES, threads=1).nodes
        rng = np.random.default_rng(settings.seed)
        built = trees.trees[0].n_labels
        drawn = rng.choice(built, size=min(BYSTANDERS, built), replace=False)
        others = np.unique(np.concatenate([near[near >= 0], drawn]))
        rows = np.array([*added, *(row for row in others.tolist() if kb.has_row(row))], np.int32)
        queries, labels = [], []
        for label, row in enumerate(rows.tolist()):
            names = kb_queries(kb.entity(row))
            queries += names
            labels += [label] * len(names)
        matrix = _one_label_each(labels, len(rows))
        vectors = features.transform(queries)
        strange: dict[str, list[int]] = {}
        for i in np.flatnonzero(np.diff(vectors.indptr) == 0).tolist():
            if labels[i] < len(added):
                row = int(rows[labels[i]])
                strange.setdefault(normalize_name(queries[i].mention), []).append(row)
        small = LabelTreeEnsemble.fit(
            vectors, matrix, n_trees=len(trees.trees), settings=settings, threads=1
        )
        return cls(rows, len(added), small, strange)

    def search(
        self, queries: Sequence[Query], vectors: sparse.csr_matrix, k: int, beam: int
    ) -> list[CandidateBatch]:
        """Return added entities for each query, by their n-grams and by names that have none."""
        best = self.trees.rank(vectors, k + LOOK_ALIKES, beam, threads=1)
        batch = CandidateBatch.empty(*best.nodes.shape)
        is_added = (best.nodes < self.n_added) & (best.nodes >= 0)
        is_added &= np.arange(best.nodes.shape[1]) < best.counts[:, None]
        batch.rows[is_added] = self.rows[best.nodes[is_added]]
        batch.scores[is_added] = np.exp(best.scores[is_added])
        return [batch, *self._search_strange(queries)]

    def _search_strange(self, queries: Sequence[Query]) -> list[CandidateBatch]:
        if not self.strange:
            return []
        batch = CandidateBatch.empty(len(queries), max(map(len, self.strange.values())))
        for i, query in enumerate(queries):
            rows = self.strange.get(normalize_name(query.mention), [])
            batch.rows[i, : len(rows)] = rows
            batch.scores[i, : len(rows)] = 1 / max(len(rows), 1)
        return [batch]


def merge(batches: Sequence[CandidateBatch], heirs: dict[int, int], k: int) -> CandidateBatch:
    """Return the k best of all candidates; an entity that was replaced hands its score on.

    heirs (dict[int, int]): For the row of an entity that was replaced, the row of the new one.
    """
    merged = CandidateBatch.empty(len(batches[0].rows), k)
    for i in range(len(merged.rows)):
        scores: dict[int, float] = {}
        for batch in batches:
            for row, score in zip(batch.rows[i].tolist(), batch.scores[i].tolist(), strict=True):
                if row >= 0:
                    heir = heirs.get(row, row)
                    scores[heir] = max(score, scores.get(heir, -np.inf))
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        for j, (row, score) in enumerate(best):
            merged.rows[i, j], merged.scores[i, j] = row, score
    return merged


def kb_queries(entity: Entity) -> list[Query]:
    """Return what a knowledge base itself says of an entity as queries, one per name."""
    return [
        Query(f"{name} {entity.description}", 0, len(name))
        for name in entity.names
        if normalize_name(name)
    ]


def _one_label_each(labels: Iterable[int], n_labels: int) -> sparse.csr_matrix:
    indices = np.fromiter(labels, dtype=np.int32)
    indptr = np.arange(len(indices) + 1)
    data = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_matrix((data, indices, indptr), shape=(len(indices), n_labels))
