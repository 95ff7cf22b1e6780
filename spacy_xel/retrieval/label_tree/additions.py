"""Entities added to a knowledge base after a tree was fitted: a small tree beside the large one."""

from collections.abc import Container, Iterable, Sequence

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
_TINY = 1e-9


class AddedEntities:
    """A tree over added entities, their look-alikes and some others; it answers with the added.

    rows (Int32Array): The row of each of its labels.
    n_added (int): How many of them, the first, are added entities.
    trees (LabelTreeEnsemble): Over these labels.
    """

    def __init__(
        self, rows: Int32Array, n_added: int, trees: LabelTreeEnsemble, kb: XelKnowledgeBase
    ) -> None:
        self.rows = rows
        self.added = frozenset(rows[:n_added].tolist())
        self.trees = trees
        self.kb = kb
        self._replaced = {new: old for old, new in kb.overlay.heirs.items()}

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
        names = [query for row in added for query in kb_queries(kb.entity(row))]
        near = trees.rank(features.transform(names), LOOK_ALIKES, threads=1).nodes
        namesakes = [row for name in names for row, _ in kb.lookup(name.mention)]
        built = trees.trees[0].n_labels
        rng = np.random.default_rng(settings.seed)
        drawn = rng.choice(built, size=min(BYSTANDERS, built), replace=False)
        others = np.unique(np.concatenate([near[near >= 0], drawn, np.array(namesakes, int)]))
        known = set(added)
        kept = [row for row in others.tolist() if row not in known and kb.has_row(row)]
        rows = np.array([*added, *kept], dtype=np.int32)
        queries, labels = [], []
        for label, row in enumerate(rows.tolist()):
            instances = kb_queries(kb.entity(row))
            queries += instances
            labels += [label] * len(instances)
        small = LabelTreeEnsemble.fit(
            features.transform(queries),
            _one_label_each(labels, len(rows)),
            n_trees=len(trees.trees),
            settings=settings,
            threads=1,
        )
        return cls(rows, len(added), small, kb)

    def merge_into(
        self,
        large: CandidateBatch,
        queries: Sequence[Query],
        vectors: sparse.csr_matrix,
        beam: int,
    ) -> CandidateBatch:
        """Return the large tree's answers with the added entities among them."""
        k = large.rows.shape[1]
        best = self.trees.rank(vectors, k + LOOK_ALIKES, beam, threads=1)
        merged = CandidateBatch(large.rows.copy(), large.scores.copy())
        for i, query in enumerate(queries):
            count = int(best.counts[i])
            small = dict(
                zip(
                    self.rows[best.nodes[i, :count]].tolist(),
                    np.exp(best.scores[i, :count]).tolist(),
                    strict=True,
                )
            )
            answers = answers_of(large, i)
            exact = self._exact(query, small, answers)
            added = {row: score for row, score in small.items() if row in self.added}
            added = {row: score for row, score in (added | exact).items() if score > 0}
            if added:
                write_answers(merged, i, {**answers, **added}, exact)
        return merged

    def _exact(
        self, query: Query, small: dict[int, float], large: dict[int, float]
    ) -> dict[int, float]:
        """Return the scores of added entities that have exactly the name of the query.

        Where only added entities have it, the name decides. Where others do too, the small tree
        tells how much better than them an added one suits the text, the names' counts how much
        rarer it is; the scale is the large tree's, which has learnt from texts.
        """
        key = normalize_name(query.mention, lang=self.kb.built.lang)
        mine = [row for row in self.kb.overlay.names_uncased.get(key, ()) if row in self.added]
        if not mine:
            return {}
        probabilities = dict(self.kb.lookup(query.mention))
        rivals = [row for row in probabilities if row not in self.added]
        if not rivals:
            return {row: max(probabilities[row], small.get(row, 0.0)) for row in mine}
        rival = max(rivals, key=lambda row: probabilities[row])
        scale = large.get(rival, min(large.values(), default=1.0)) / probabilities[rival]
        rival_fit = max(small.get(rival, min(small.values(), default=1.0)), _TINY)
        result = {}
        for row in mine:
            # What the large tree says of an entity that was replaced holds for its old names.
            old = self._replaced.get(row)
            if old is not None and key in _keys(self.kb.built.entity(old), self.kb.built.lang):
                result[row] = large.get(row, 0.0)
                continue
            fit = small.get(row, 0.0) / rival_fit
            if not self.kb.entity(row).description:
                fit = min(fit, 1.0)  # nothing is known of it that a text could suit
            result[row] = min(1.0, scale * fit * probabilities[row])
        return result


def inherit(batch: CandidateBatch, heirs: dict[int, int]) -> CandidateBatch:
    """Return answers in which entities that replaced others have taken their places."""
    if not heirs or not np.isin(batch.rows, list(heirs)).any():
        return batch
    rows = [[heirs.get(row, row) for row in found] for found in batch.rows.tolist()]
    return CandidateBatch(np.array(rows, dtype=np.int32).reshape(batch.rows.shape), batch.scores)


def answers_of(batch: CandidateBatch, i: int) -> dict[int, float]:
    """Return the scores of a query's candidates by row."""
    pairs = zip(batch.rows[i].tolist(), batch.scores[i].tolist(), strict=True)
    return {row: score for row, score in pairs if row >= 0}


def write_answers(
    batch: CandidateBatch, i: int, scores: dict[int, float], first: Container[int]
) -> None:
    """Write the best of the candidates of a query; at equal scores, those in first come first."""
    k = batch.rows.shape[1]
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0] not in first, pair[0]))
    batch.rows[i, : len(ranked)] = [row for row, _ in ranked[:k]]
    batch.scores[i, : len(ranked)] = [score for _, score in ranked[:k]]


def _keys(entity: Entity, lang: str) -> set[str]:
    return {normalize_name(name, lang=lang) for name in entity.names}


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
