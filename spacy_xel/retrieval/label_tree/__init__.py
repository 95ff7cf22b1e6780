"""The sparse label tree of XMRED: clusters of labels, a linear ranker per node, beam search."""

from spacy_xel.retrieval.label_tree.ensemble import LabelTreeEnsemble
from spacy_xel.retrieval.label_tree.model import LabelTree
from spacy_xel.retrieval.label_tree.settings import TreeSettings

__all__ = ["LabelTree", "LabelTreeEnsemble", "TreeSettings"]
