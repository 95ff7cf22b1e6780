"""Isotonic regression: the share of right ones among mentions with about this score."""

from typing import Any

import numpy as np

from spacy_xel.types import BoolArray, Float64Array


class Isotonic:
    """A rising line through points, flat beyond the first and the last.

    scores, probabilities (ndarray): The points.
    """

    FEATURES = ("score",)

    def __init__(self, scores: Float64Array, probabilities: Float64Array) -> None:
        self.scores = scores
        self.probabilities = probabilities

    @classmethod
    def fit(cls, features: Float64Array, right: BoolArray) -> "Isotonic":
        """Fit by scikit-learn.

        features (ndarray): Scores, (n, 1).
        right (ndarray): Whether the candidate is right, (n,).
        """
        from sklearn.isotonic import IsotonicRegression

        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        model.fit(features[:, 0], right.astype(np.float64))
        return cls(model.X_thresholds_, model.y_thresholds_)

    def __call__(self, features: Float64Array) -> Float64Array:
        """Return P(right), (n,)."""
        values: Float64Array = np.interp(features[:, 0], self.scores, self.probabilities)
        return values

    def to_json(self) -> dict[str, Any]:
        return {"scores": self.scores.tolist(), "probabilities": self.probabilities.tolist()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Isotonic":
        return cls(
            np.array(fields["scores"], dtype=np.float64),
            np.array(fields["probabilities"], dtype=np.float64),
        )
