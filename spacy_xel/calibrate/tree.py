"""A decision tree over both scores and the frequency of the label (ELIAS++, section 3.5)."""

from typing import Any

from spacy_xel.calibrate.forest import Forest
from spacy_xel.types import BoolArray, Float64Array

_MAX_DEPTH = 5
_SMALLEST_LEAF = 50


class DecisionTree:
    """The share of right ones among mentions that fall into the same leaf.

    forest (Forest): The one tree.
    """

    FEATURES = ("score", "retriever_score", "frequency")

    def __init__(self, forest: Forest) -> None:
        self.forest = forest

    @classmethod
    def fit(cls, features: Float64Array, right: BoolArray) -> "DecisionTree":
        """Fit by scikit-learn.

        features (ndarray): Columns as in FEATURES, (n, 3).
        right (ndarray): Whether the candidate is right, (n,).
        """
        from sklearn.tree import DecisionTreeRegressor

        # Squared error on 0 and 1 is Gini impurity, and a leaf's mean its share.
        model = DecisionTreeRegressor(
            max_depth=_MAX_DEPTH, min_samples_leaf=_SMALLEST_LEAF, random_state=0
        )
        model.fit(features, right)
        return cls(Forest.of_trees([model.tree_], lambda tree: tree.value[:, 0, 0]))

    def __call__(self, features: Float64Array) -> Float64Array:
        """Return P(right), (n,)."""
        return self.forest(features)[:, 0]

    def to_json(self) -> dict[str, Any]:
        return self.forest.to_json()

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "DecisionTree":
        return cls(Forest.from_json(fields))
