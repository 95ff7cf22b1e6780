"""The threshold below which a link is not precise enough."""

import math
from typing import NamedTuple

import numpy as np

from spacy_xel.errors import Errors
from spacy_xel.types import BoolArray, Float64Array, Int64Array


class Threshold(NamedTuple):
    """Where to cut, and what that gives on the data it was chosen on."""

    value: float
    precision: float
    linked: int
    reached: bool  # if not: the most precise there is


def choose_threshold(
    probabilities: Float64Array,
    right: BoolArray,
    target_precision: float,
    confidence: float | None = None,
) -> Threshold:
    """Return the smallest threshold with which links are precise enough.

    So few links that a single error would decide prove nothing: there must be at least
    1 / (1 - target_precision) of them, as far as there are mentions (and no more than 100).

    probabilities, right (ndarray): Of mentions that the probabilities were not fitted to, (n,).
    target_precision (float): The share of links that should be right.
    confidence (float): Ask for a precision that holds with this confidence (the lower bound of
        Wilson's interval), instead of the one observed.
    """
    if not 0.0 < target_precision <= 1.0:
        raise ValueError(Errors.XE083.format(name="target_precision", value=target_precision))
    if confidence is not None and not 0.0 < confidence < 1.0:
        raise ValueError(Errors.XE083.format(name="confidence", value=confidence))
    values, counts = np.unique(-probabilities, return_counts=True)
    order = np.argsort(-probabilities, kind="stable")
    linked: Int64Array = np.cumsum(counts, dtype=np.int64)
    hits: Int64Array = np.cumsum(right[order], dtype=np.int64)[linked - 1]
    precision = hits / np.maximum(linked, 1)
    bound = precision if confidence is None else wilson_bound(hits, linked, confidence)
    fewest = min(len(probabilities), math.ceil(round(1.0 / max(1.0 - target_precision, 0.01), 6)))
    usable = (linked >= fewest) & (values < 0)  # mentions without candidates have 0
    enough = np.flatnonzero(usable & (bound >= target_precision))
    if len(enough):
        best = int(enough[-1])
        return Threshold(float(-values[best]), float(precision[best]), int(linked[best]), True)
    if not usable.any():
        return Threshold(1.0, 0.0, 0, False)
    best = int(np.argmax(np.where(usable, bound, -1.0)))
    return Threshold(float(-values[best]), float(bound[best]), int(linked[best]), False)


def wilson_bound(hits: Int64Array, n: Int64Array, confidence: float) -> Float64Array:
    """Return the one-sided lower bound of a share: Wilson's score interval."""
    from scipy.special import ndtri

    z = float(ndtri(confidence))
    n = np.maximum(n, 1)
    share = hits / n
    spread = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    bound: Float64Array = (share + z * z / (2 * n) - spread) / (1 + z * z / n)
    return bound
