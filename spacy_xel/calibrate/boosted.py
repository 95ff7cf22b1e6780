"""Boosted trees over all that is known of the first candidate: scores, names, frequency."""

from typing import Any

import numpy as np

from spacy_xel.calibrate.evidence import FEATURES
from spacy_xel.calibrate.forest import Forest
from spacy_xel.types import BoolArray, Float64Array

# Chosen by cross-validation on BC5CDR dev, see benchmarks/calibration.py.
_TREES = 100
_MAX_DEPTH = 4
_RATE = 0.05
_SMALLEST_LEAF = 30


class Boosted:
    """P(right) = sigmoid(base + rate * sum over trees).

    base (float): The log-odds of all mentions together.
    rate (float): What a tree's answer is multiplied by.
    forest (Forest): The trees.
    """

    FEATURES = tuple(FEATURES)

    def __init__(self, base: float, rate: float, forest: Forest) -> None:
        self.base = base
        self.rate = rate
        self.forest = forest

    @classmethod
    def fit(cls, features: Float64Array, right: BoolArray) -> "Boosted":
        """Fit by scikit-learn.

        features (ndarray): Columns as in FEATURES, (n, n_features).
        right (ndarray): Whether the candidate is right, (n,).
        """
        from sklearn.ensemble import GradientBoostingClassifier

        # If all are right, or all wrong: as if there had been one more of each.
        share = (right.sum() + 1) / (len(right) + 2)
        if right.all() or not right.any():
            return cls(float(np.log(share / (1 - share))), _RATE, Forest.of_trees([], np.asarray))
        model = GradientBoostingClassifier(
            n_estimators=_TREES, max_depth=_MAX_DEPTH, learning_rate=_RATE,
            min_samples_leaf=_SMALLEST_LEAF, random_state=0,
        )  # fmt: skip
        model.fit(features, right)
        share = float(model.init_.class_prior_[1])
        trees = [estimator.tree_ for estimator in model.estimators_[:, 0]]
        forest = Forest.of_trees(trees, lambda tree: tree.value[:, 0, 0])
        return cls(float(np.log(share / (1 - share))), _RATE, forest)

    def __call__(self, features: Float64Array) -> Float64Array:
        """Return P(right), (n,)."""
        logits = self.base + self.rate * self.forest(features).sum(axis=1)
        probabilities: Float64Array = 1.0 / (1.0 + np.exp(-logits))
        return probabilities

    def to_json(self) -> dict[str, Any]:
        return {"base": self.base, "rate": self.rate, "forest": self.forest.to_json()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Boosted":
        return cls(fields["base"], fields["rate"], Forest.from_json(fields["forest"]))
