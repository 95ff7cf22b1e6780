"""Calibration judged by cross-validation: every document by what was fitted to the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_xel.calibrate.calibrator import Calibrator
from spacy_xel.calibrate.evidence import Evidence
from spacy_xel.calibrate.reliability import calibration_error, reliability
from spacy_xel.calibrate.threshold import Threshold, choose_threshold
from spacy_xel.errors import Errors
from spacy_xel.types import BoolArray, Float64Array, Int64Array


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a linker says of texts that it was not trained on, and what is right.

    evidence (Evidence): One row per mention that the linker was given or found.
    gold_ranks (ndarray): Where in its list the right candidate is, (n,); -1 for nowhere.
    documents (ndarray): The number of each mention's document, (n,).
    annotated (ndarray): Whether the corpus has such a mention, (n,).
    nil (ndarray): Whether it has, without an id, (n,).
    n_linked (int): How many mentions with an id the corpus has, found or not.
    n_nil (int): How many without.
    """

    evidence: Evidence
    gold_ranks: Int64Array
    documents: Int64Array
    annotated: BoolArray
    nil: BoolArray
    n_linked: int
    n_nil: int

    @property
    def right(self) -> BoolArray:
        """Whether the first candidate is right."""
        right: BoolArray = self.gold_ranks == 0
        return right

    @property
    def raw_scores(self) -> Float64Array:
        """What the linker says without a calibrator, (n,)."""
        scores = self.evidence.scores
        first = scores[:, 0] if scores.shape[1] else np.full(len(scores), -np.inf)
        return np.where(np.isfinite(first), first, 0.0)


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Probabilities by calibrators that have not seen the document; thresholds likewise."""

    probabilities: Float64Array  # (n,)
    thresholds: Float64Array  # (n,)
    threshold: Threshold | None  # chosen on all of them: the one to use from now on


def cross_validate(
    held_out: HeldOut,
    method: str,
    *,
    target_precision: float | None = None,
    confidence: float | None = None,
    threshold: float = 0.0,
    folds: int = 5,
    seed: int = 0,
) -> CrossValidation:
    """Calibrate each part of the documents by the others.

    method (str): A calibration method.
    target_precision, confidence: Choose a threshold, see choose_threshold.
    threshold (float): The threshold if there is no target_precision.
    folds (int): How many parts.
    """
    fold_of = document_folds(held_out.documents, folds, seed)
    probabilities = np.zeros(len(fold_of))
    for fold in np.unique(fold_of).tolist():
        here = fold_of == fold
        calibrator = Calibrator.fit(
            method, held_out.evidence.take(~here), held_out.gold_ranks[~here]
        )
        probabilities[here] = calibrator(held_out.evidence.take(here))[:, 0]
    thresholds = np.full(len(fold_of), threshold)
    if target_precision is None:
        return CrossValidation(probabilities, thresholds, None)

    def chosen_on(rows: BoolArray) -> Threshold:
        return choose_threshold(
            probabilities[rows], held_out.right[rows], target_precision, confidence
        )

    for fold in np.unique(fold_of).tolist():
        thresholds[fold_of == fold] = chosen_on(fold_of != fold).value
    everything = np.ones(len(fold_of), dtype=np.bool_)
    return CrossValidation(probabilities, thresholds, chosen_on(everything))


def document_folds(documents: Int64Array, folds: int, seed: int) -> Int64Array:
    """Return the part, 0 to folds - 1, of each mention; a document is in one part as a whole."""
    names, document_of = np.unique(documents, return_inverse=True)
    if len(names) < 2:
        raise ValueError(Errors.XE084.format(documents=len(names)))
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of: Int64Array = (order % min(folds, len(names))).astype(np.int64)
    return fold_of[document_of]


def link_scores(
    held_out: HeldOut, probabilities: Float64Array, thresholds: Float64Array
) -> dict[str, Any]:
    """Score the links and the abstentions that thresholds give, and how far to trust them.

    RETURNS (dict): The precision, recall and F of links (of NIL likewise, with nil_ in front), the
        share of mentions that are linked, the expected calibration error and the curve.
    """
    linked = (probabilities >= thresholds) & held_out.evidence.found
    hits = int((linked & held_out.right).sum())
    nil = ~linked & held_out.annotated
    curve = reliability(probabilities, held_out.right)
    links = _scores("", hits, int(linked.sum()), held_out.n_linked)
    nils = _scores("nil_", int((nil & held_out.nil).sum()), int(nil.sum()), held_out.n_nil)
    return {
        **links,
        **nils,
        "linked": float(linked.mean()) if len(linked) else 0.0,
        "calibration_error": calibration_error(curve),
        "curve": [part._asdict() for part in curve],
    }


def _scores(prefix: str, hits: int, predicted: int, gold: int) -> dict[str, float]:
    precision = hits / predicted if predicted else 0.0
    recall = hits / gold if gold else 0.0
    f = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}f": f}
