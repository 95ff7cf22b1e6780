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
