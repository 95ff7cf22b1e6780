"""The label tree as a retriever: n-grams of mentions and of the knowledge base's own names."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from scipy import sparse

from spacy_xel.errors import Errors
from spacy_xel.features.ngrams import FEATURE_ARRAYS, NgramFeatures, NgramSettings, ngram_names
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.progress import progress
from spacy_xel.retrieval.label_tree.additions import AddedEntities, inherit, kb_queries
from spacy_xel.retrieval.label_tree.ensemble import LabelTreeEnsemble
from spacy_xel.retrieval.label_tree.explain import Explanation, explain
from spacy_xel.retrieval.label_tree.settings import TreeSettings
from spacy_xel.storage import (
    load_array,
    new_folder,
    read_manifest,
    verify_bytes,
    verify_files,
    write_manifest,
)
from spacy_xel.types import AnnotatedText, CandidateBatch, Query

RETRIEVER_FORMAT = "spacy-xel-label-tree-retriever-1"
_FOLDER = "label_tree"
# Names are short: small weights tell them apart.
NAME_TREE = TreeSettings(threshold=0.05)


class LabelTreeRetriever:
    """Find entities by a tree of linear rankers (XMRED sections 2.1 to 2.3).

    features (NgramSettings): How mentions become vectors.
    tree (TreeSettings): How the tree is made.
    trees (int): How many trees, with different seeds, to ask.
    beam (int): How many nodes to follow on each level.
    abbreviations (bool): Take an abbreviation for what the text says it stands for.
    """

    def __init__(
        self,
        *,
        features: NgramSettings | None = None,
        tree: TreeSettings | None = None,
        trees: int = 1,
        beam: int = 10,
        abbreviations: bool = True,
    ) -> None:
        if min(beam, trees) < 1:
            raise ValueError(Errors.XE001.format(value=min(beam, trees)))
        self.feature_settings = features or NgramSettings()
        self.tree_settings = tree or NAME_TREE
        self.n_trees = trees
        self.beam = beam
        self.abbreviations = abbreviations
        self.features: NgramFeatures | None = None
        self.trees: LabelTreeEnsemble | None = None
        self.store_identity = ""
        self.kb: XelKnowledgeBase | None = None
        self._added: AddedEntities | None = None
        self._added_version = 0

    def initialize(self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> None:
        """Learn from the names and descriptions of the knowledge base, and from texts."""
        labels = _Labels()
        queries = chain(_kb_instances(kb, labels), self._text_instances(kb, texts, labels))
        self.features, vectors = NgramFeatures.fit_transform(queries, self.feature_settings)
        self.store_identity = kb.built.identity
        matrix = labels.matrix(kb.n_rows)
        self.kb, self._added, self._added_version = kb, None, 0
        self.trees = LabelTreeEnsemble.fit(
            vectors, matrix, n_trees=self.n_trees, settings=self.tree_settings
        )

    def _text_instances(
        self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText], labels: "_Labels"
    ) -> Iterator[Query]:
        """Yield an instance per mention of a known entity."""
        for text in progress(texts, "N-grams of texts"):
            queries: list[Query] = []
            instances: list[list[int]] = []
            for mention in text.mentions:
                rows = [row for row in map(kb.row, mention.kb_ids) if row >= 0]
                if rows:
                    queries.append(Query(text.text, mention.start, mention.end))
                    labels.add(rows)
                    yield queries[-1]
                    instances.append(rows)
            # An abbreviation is learnt both as it is and as what it stands for.
            for query, spelled_out, rows in zip(
                queries, self._prepare(queries), instances, strict=True
            ):
                if spelled_out != query:
                    labels.add(rows)
                    yield spelled_out

    def attach(self, kb: XelKnowledgeBase) -> None:
        """Check that the rows are those that the tree was fitted to."""
        if self.trees is not None and kb.built.identity != self.store_identity:
            raise ValueError(Errors.XE041.format(path=kb.path))
        self.kb, self._added, self._added_version = kb, None, 0

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        if self.features is None or self.trees is None:
            raise ValueError(Errors.XE002.format(name="LabelTree"))
        batch = CandidateBatch.empty(len(queries), k)
        if not queries:
            return batch
        # One thread: components may run in processes that were forked.
        queries = self._prepare(queries)
        vectors = self.features.transform(queries)
        best = self.trees.rank(vectors, k, self.beam, threads=1)
        width = best.nodes.shape[1]
        found = np.arange(width) < best.counts[:, None]
        batch.rows[:, :width][found] = best.nodes[found]
        batch.scores[:, :width][found] = np.exp(best.scores[found])
        if self.kb is None or not self.kb.overlay.entities:
            return batch
        batch = inherit(batch, self.kb.overlay.heirs)
        added = self._added_entities(self.kb, self.features, self.trees)
        return batch if added is None else added.merge_into(batch, queries, vectors, self.beam)

    def _added_entities(
        self, kb: XelKnowledgeBase, features: NgramFeatures, trees: LabelTreeEnsemble
    ) -> AddedEntities | None:
        """Return the tree of what was added since the large one was fitted, made anew if needed."""
        if self._added_version != kb.version:
            known = trees.trees[0].n_labels
            rows = [row for row in kb.overlay.entities if row >= known]
            settings = self.tree_settings
            self._added = AddedEntities.fit(rows, kb, features, trees, settings) if rows else None
            self._added_version = kb.version
        return self._added

    def explain(self, query: Query, row: int) -> "tuple[Explanation, dict[int, str]]":
        """Return the way to an entity through the first tree, and the names of the query's n-grams.

        query (Query): The mention.
        row (int): The entity's row in the knowledge base.
        """
        if self.features is None or self.trees is None:
            raise ValueError(Errors.XE002.format(name="LabelTree"))
        if row >= self.trees.trees[0].n_labels:
            raise ValueError(Errors.XE045.format(row=row))
        (query,) = self._prepare([query])
        vector = self.features.transform([query])
        names = self.features.columns(ngram_names(query, self.feature_settings))
        return explain(self.trees.trees[0], vector, row, self.beam), names

    def _prepare(self, queries: Sequence[Query]) -> Sequence[Query]:
        return spell_out(queries) if self.abbreviations else queries

    def to_disk(self, path: Path) -> None:
        if self.features is None or self.trees is None:
            return
        # A new folder, because the arrays may be mapped from the one that is there.
        with new_folder(path / _FOLDER, force=True) as folder:
            self.trees.to_disk(folder / "trees")
            for name, values in self.features.arrays().items():
                np.save(folder / f"{name}.npy", values)
            write_manifest(folder, {"format": RETRIEVER_FORMAT, **self._header()})

    def from_disk(self, path: Path) -> None:
        folder = path / _FOLDER
        manifest = read_manifest(folder, RETRIEVER_FORMAT)
        verify_files(folder, manifest)
        self._check_header(manifest, folder)
        arrays = {name: load_array(folder / f"{name}.npy") for name in FEATURE_ARRAYS}
        self.features = NgramFeatures.from_arrays(self.feature_settings, arrays)
        self.trees = LabelTreeEnsemble.from_disk(folder / "trees", verify=False)

    def to_bytes(self) -> bytes:
        if self.features is None or self.trees is None:
            return b""
        arrays = {**self.features.arrays(), **self.trees.arrays()}
        header = self._header()
        header["shapes"] = {n: [array.dtype.str, list(array.shape)] for n, array in arrays.items()}
        header["dimension"] = self.features.dimension
        data = {name: array.tobytes() for name, array in arrays.items()}
        data["header"] = json.dumps(header).encode()
        files = {n: {"sha256": hashlib.sha256(part).hexdigest()} for n, part in data.items()}
        return bytes(srsly.msgpack_dumps({"files": files, "data": data}))

    def from_bytes(self, data: bytes) -> None:
        if not data:
            return
        content = srsly.msgpack_loads(data)
        verify_bytes(content["data"], content)
        header = json.loads(content["data"]["header"])
        self._check_header(header, "the data")
        arrays: dict[str, Any] = {
            name: np.frombuffer(content["data"][name], dtype=dtype).reshape(shape).copy()
            for name, (dtype, shape) in header["shapes"].items()
        }
        self.features = NgramFeatures.from_arrays(self.feature_settings, arrays)
        self.trees = LabelTreeEnsemble.from_arrays(self.tree_settings, arrays, header["dimension"])

    def _header(self) -> dict[str, Any]:
        """Return what a saved tree has to agree with: the knowledge base and the settings."""
        settings = {
            "features": self.feature_settings.to_json(),
            "tree": self.tree_settings.to_json(),
            "trees": self.n_trees,
        }
        return {"store": self.store_identity, "settings": settings}

    def _check_header(self, header: Mapping[str, Any], path: Path | str) -> None:
        saved, config = header["settings"], self._header()["settings"]
        if saved != config:
            raise ValueError(Errors.XE044.format(path=path, saved=saved, config=config))
        self.store_identity = header["store"]


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
    for row in progress(kb.rows(), "N-grams of names", total=kb.n_rows):
        for query in kb_queries(kb.entity(row)):
            labels.add((row,))
            yield query


def make_label_tree(
    trees: int = 1,
    beam: int = 10,
    abbreviations: bool = True,
    features: dict[str, Any] | None = None,
    tree: dict[str, Any] | None = None,
) -> LabelTreeRetriever:
    """spacy-xel.LabelTree.v1: candidates from a tree of linear rankers over names and contexts.

    features, tree (dict): Settings that differ from NgramSettings and from NAME_TREE.
    """
    return LabelTreeRetriever(
        features=NgramSettings(**(features or {})),
        tree=replace(NAME_TREE, **(tree or {})),
        trees=trees,
        beam=beam,
        abbreviations=abbreviations,
    )
