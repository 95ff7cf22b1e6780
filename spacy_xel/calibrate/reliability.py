"""How far probabilities can be trusted: the reliability curve and the calibration error."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.storage import new_file
from spacy_xel.types import BoolArray, Float64Array

BINS = 15


class Bin(NamedTuple):
    """Mentions with about the same probability."""

    low: float
    high: float
    mentions: int
    probability: float  # mean of what was said
    accuracy: float  # share that was right


def reliability(probabilities: Float64Array, right: BoolArray, bins: int = BINS) -> list[Bin]:
    """Return the curve: bins of equal width, those without mentions left out."""
    p = np.clip(np.nan_to_num(probabilities), 0.0, 1.0)
    bin_of = np.minimum((p * bins).astype(np.int64), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    said, true = np.bincount(bin_of, p, bins), np.bincount(bin_of, right, bins)
    return [
        Bin(i / bins, (i + 1) / bins, int(counts[i]), said[i] / counts[i], true[i] / counts[i])
        for i in np.flatnonzero(counts).tolist()
    ]


def calibration_error(curve: Sequence[Bin]) -> float:
    """Return the expected calibration error: the mean distance of the curve from the diagonal."""
    total = sum(part.mentions for part in curve)
    gaps = (part.mentions * abs(part.probability - part.accuracy) for part in curve)
    return float(sum(gaps) / total) if total else 0.0


def plot_reliability(curves: Mapping[str, Sequence[Bin]], path: Path, title: str = "") -> None:
    """Draw curves into an .svg file; needs the extra "plots".

    curves (Mapping): By name; the size of a point is the number of mentions.
    """
    try:
        import matplotlib
    except ImportError as error:
        message = Errors.XE051.format(what="A plot", package="matplotlib", extra="plots")
        raise MissingExtra(message) from error
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    for name, curve in curves.items():
        total = sum(part.mentions for part in curve)
        sizes = [10 + 300 * part.mentions / total for part in curve]
        x, y = [part.probability for part in curve], [part.accuracy for part in curve]
        (line,) = axes.plot(x, y, label=f"{name} (ECE {calibration_error(curve):.3f})")
        axes.scatter(x, y, s=sizes, color=line.get_color(), alpha=0.6)
    axes.set(xlabel="score", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1), title=title)
    axes.legend(loc="upper left")
    # Without the date and random ids, so that the same curve is the same file.
    with (
        matplotlib.rc_context({"svg.hashsalt": "spacy_xel"}),
        new_file(path) as scratch,
    ):
        figure.savefig(scratch, format="svg", metadata={"Date": None})
