"""The scorer of the linking components, for `spacy evaluate` and `spacy train`."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.training import Example

from spacy_xel.evaluation.counts import ScoredText, count_texts
from spacy_xel.evaluation.evaluate import predictions_of_doc
from spacy_xel.evaluation.scores import scores
from spacy_xel.formats.docbin import text_of_doc


def make_scorer() -> Callable[..., dict[str, Any]]:
    """spacy-xel.scorer.v1: end-to-end and disambiguation scores, see docs/evaluation.md."""
    return score_links


def score_links(examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
    """Score predicted links against the reference Docs, by character offsets."""
    texts = [
        ScoredText(
            example.reference.text,
            text_of_doc(example.reference).mentions,
            predictions_of_doc(example.predicted),
        )
        for example in examples
    ]
    return dict(scores(count_texts(texts)))
