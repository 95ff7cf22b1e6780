"""The label tree as a retriever: n-grams of mentions and of the knowledge base's own names."""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.features.ngrams import FEATURE_ARRAYS, NgramFeatures, NgramSettings
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.retrieval.label_tree.model import LabelTree
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.storage import load_array
from spacy_xel.types import AnnotatedText, CandidateBatch, Entity, Query

_STORE_FILE = "store.json"


class LabelTreeRetriever:
    """Find entities by a tree of linear rankers (XMRED sections 2.1 to 2.3).

    features (NgramSettings): How mentions become vectors.
    tree (TreeSettings): How the tree is made.
    beam (int): How many nodes to follow on each level.
    abbreviations (bool): Take an abbreviation for what the text says it stands for.
    """

    def __init__(
        self,
        *,
        features: NgramSettings | None = None,
        tree: TreeSettings | None = None,
        beam: int = 10,
        abbreviations: bool = True,
    ) -> None:
        if beam < 1:
            raise ValueError(Errors.XE001.format(value=beam))
        self.feature_settings = features or NgramSettings()
        self.tree_settings = tree or TreeSettings()
        self.beam = beam
        self.abbreviations = abbreviations
        self.features: NgramFeatures | None = None
        self.tree: LabelTree | None = None
        self.store_identity = ""

    def initialize(self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> None:
        """Learn from the names and descriptions of the knowledge base, and from texts."""
        labels = _Labels()
        queries = chain(_kb_instances(kb, labels), self._text_instances(kb, texts, labels))
        self.features, vectors = NgramFeatures.fit_transform(queries, self.feature_settings)
        self.store_identity = kb.built.identity
        matrix = labels.matrix(kb.n_rows)
        self.tree = LabelTree.fit(vectors, matrix, settings=self.tree_settings)

    def _text_instances(
        self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText], labels: "_Labels"
    ) -> Iterator[Query]:
        """Yield an instance per mention of a known entity."""
        for text in texts:
            queries = []
            for mention in text.mentions:
                rows = [row for row in map(kb.row, mention.kb_ids) if row >= 0]
                if rows:
                    labels.add(rows)
                    queries.append(Query(text.text, mention.start, mention.end))
            yield from self._prepare(queries)

    def attach(self, kb: XelKnowledgeBase) -> None:
        """Check that the rows are those that the tree was fitted to."""
        if self.tree is not None and kb.built.identity != self.store_identity:
            raise ValueError(Errors.XE041.format(path=kb.path))

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        if self.features is None or self.tree is None:
            raise ValueError(Errors.XE002.format(name="LabelTree"))
        batch = CandidateBatch.empty(len(queries), k)
        if not queries:
            return batch
        # One thread: components may run in processes that were forked.
        vectors = self.features.transform(self._prepare(queries))
        best = self.tree.rank(vectors, k, self.beam, threads=1)
        width = best.nodes.shape[1]
        found = np.arange(width) < best.counts[:, None]
        batch.rows[:, :width][found] = best.nodes[found]
        batch.scores[:, :width][found] = np.exp(best.scores[found])
        return batch

    def _prepare(self, queries: Sequence[Query]) -> Sequence[Query]:
        return spell_out(queries) if self.abbreviations else queries

    def to_disk(self, path: Path) -> None:
        if self.features is None or self.tree is None:
            return
        path.mkdir(parents=True, exist_ok=True)
        self.tree.to_disk(path / "tree")
        for name, values in self.features.arrays().items():
            np.save(path / f"{name}.npy", values)
        srsly.write_json(path / _STORE_FILE, {"identity": self.store_identity})

    def from_disk(self, path: Path) -> None:
        self.tree = LabelTree.from_disk(path / "tree")
        self.store_identity = srsly.read_json(path / _STORE_FILE)["identity"]
        arrays = {name: load_array(path / f"{name}.npy") for name in FEATURE_ARRAYS}
        self.features = NgramFeatures.from_arrays(self.feature_settings, arrays)

    def to_bytes(self) -> bytes:
        if self.features is None or self.tree is None:
            return b""
        arrays = {**self.features.arrays(), **self.tree.arrays()}
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        header = {"dimension": self.tree.dimension, "shapes": shapes}
        header["store"] = self.store_identity
        data = {name: array.tobytes() for name, array in arrays.items()}
        return bytes(srsly.msgpack_dumps({"header": json.dumps(header), "data": data}))

    def from_bytes(self, data: bytes) -> None:
        if not data:
            return
        content = srsly.msgpack_loads(data)
        header = json.loads(content["header"])
        self.store_identity = header["store"]
        arrays: dict[str, Any] = {
            name: np.frombuffer(content["data"][name], dtype=dtype).reshape(shape).copy()
            for name, (dtype, shape) in header["shapes"].items()
        }
        self.features = NgramFeatures.from_arrays(self.feature_settings, arrays)
        self.tree = LabelTree.from_arrays(self.tree_settings, arrays, header["dimension"])


class _Labels:
    """The labels of instances, as they come."""

    def __init__(self) -> None:
        self.rows = array("q")
        self.ends = array("q", [0])

    def add(self, rows: Iterable[int]) -> None:
        """Add the labels of an instance."""
        self.rows.extend(set(rows))
        self.ends.append(len(self.rows))

    def matrix(self, n_labels: int) -> sparse.csr_matrix:
        indices = np.array(self.rows, dtype=np.int32)
        indptr = np.array(self.ends, dtype=np.int64)
        data = np.ones(len(indices), dtype=np.float32)
        matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_labels))
        matrix.sort_indices()
        return matrix


def _kb_instances(kb: XelKnowledgeBase, labels: _Labels) -> Iterator[Query]:
    """Yield an instance per name of an entity, its description as the context (zero-shot)."""
    for row in kb.rows():
        for query in kb_queries(kb.entity(row)):
            labels.add((row,))
            yield query


def kb_queries(entity: Entity) -> list[Query]:
    """Return what a knowledge base itself says of an entity as queries, one per name."""
    return [
        Query(f"{name} {entity.description}", 0, len(name))
        for name in entity.names
        if normalize_name(name)
    ]


def make_label_tree(
    beam: int = 10,
    abbreviations: bool = True,
    features: dict[str, Any] | None = None,
    tree: dict[str, Any] | None = None,
) -> LabelTreeRetriever:
    """spacy-xel.LabelTree.v1: candidates from a tree of linear rankers over names and contexts.

    features, tree (dict): Settings that differ from NgramSettings and TreeSettings.
    """
    return LabelTreeRetriever(
        features=NgramSettings(**(features or {})),
        tree=TreeSettings(**(tree or {})),
        beam=beam,
        abbreviations=abbreviations,
    )
