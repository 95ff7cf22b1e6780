"""From the scores of candidates to the probabilities that they are right."""

from typing import Any

import numpy as np

from spacy_xel.calibrate.boosted import Boosted
from spacy_xel.calibrate.evidence import Evidence, features, log_scores
from spacy_xel.calibrate.isotonic import Isotonic
from spacy_xel.calibrate.temperature import Temperature
from spacy_xel.calibrate.tree import DecisionTree
from spacy_xel.errors import Errors
from spacy_xel.types import Float64Array, Int64Array

CALIBRATOR_FORMAT = "spacy-xel-calibrator-1"


Method = Isotonic | DecisionTree | Boosted
METHODS: dict[str, type[Method] | None] = {
    "temperature": None,  # what every calibrator has for the rest of the list
    "isotonic": Isotonic,
    "tree": DecisionTree,
    "boosted": Boosted,
}


class Calibrator:
    """Gives the first candidate the probability that it is right, and the others what is left.

    method (str): One of METHODS.
    top (Method): Says how probable the first candidate is; None for temperature.
    lists (Temperature): Says how the rest is shared out between the others, and none of them.
    logarithmic (bool): Whether scores are like probabilities, so that their logarithms add up.
    n_mentions (int): How many mentions it was fitted to.
    """

    def __init__(
        self,
        method: str,
        top: Method | None,
        lists: Temperature,
        logarithmic: bool,
        n_mentions: int,
    ) -> None:
        self.method = method
        self.top = top
        self.lists = lists
        self.logarithmic = logarithmic
        self.n_mentions = n_mentions

    @classmethod
    def fit(cls, method: str, evidence: Evidence, gold_ranks: Int64Array) -> "Calibrator":
        """Fit to mentions of texts that the linker was not trained on.

        method (str): One of METHODS.
        evidence (Evidence): What the linker found.
        gold_ranks (ndarray): Where in its list the right candidate is, (n,); -1 for nowhere, as
            for mentions of what is not in the knowledge base.
        """
        if method not in METHODS:
            raise ValueError(Errors.XE081.format(method=method, known=", ".join(METHODS)))
        found = evidence.found
        evidence, gold_ranks = evidence.take(found), gold_ranks[found]
        if not len(gold_ranks):
            raise ValueError(Errors.XE082)
        logarithmic = not bool((evidence.scores[np.isfinite(evidence.scores)] < 0).any())
        lists = Temperature.fit(log_scores(evidence.scores, logarithmic), gold_ranks)
        chosen = METHODS[method]
        top = None
        if chosen is not None:
            columns = features(evidence, chosen.FEATURES, logarithmic)
            top = chosen.fit(columns, gold_ranks == 0)
        return cls(method, top, lists, logarithmic, len(gold_ranks))

    def __call__(self, evidence: Evidence) -> Float64Array:
        """Return the probability of each candidate, (n, k), still the best first; 0 for none.

        What a row lacks to 1 is the probability that none of its candidates is right.
        """
        probabilities = np.zeros(evidence.scores.shape)
        found = evidence.found
        if not found.any():
            return probabilities
        evidence = evidence.take(found)
        shares = self.lists(log_scores(evidence.scores, self.logarithmic))
        top = shares[:, 0]
        if self.top is not None:
            top = self.top(features(evidence, self.top.FEATURES, self.logarithmic))
        # So many mentions cannot tell more: the rule of succession.
        doubt = 1.0 / (self.n_mentions + 2)
        top = np.clip(top, doubt, 1.0 - doubt)
        left = (1.0 - top) / np.maximum(1.0 - shares[:, 0], 1e-12)
        rest = np.minimum(shares[:, 1:] * left[:, None], top[:, None])
        probabilities[found] = np.column_stack([top, rest])
        return probabilities

    @property
    def needs_names(self) -> bool:
        """Whether it asks for more than scores."""
        return self.top is not None and self.top.FEATURES != ("score",)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": CALIBRATOR_FORMAT,
            "method": self.method,
            "top": None if self.top is None else self.top.to_json(),
            "lists": self.lists.to_json(),
            "logarithmic": self.logarithmic,
            "n_mentions": self.n_mentions,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Calibrator":
        if fields.get("format") != CALIBRATOR_FORMAT or fields.get("method") not in METHODS:
            raise ValueError(
                Errors.XE006.format(
                    path="The calibrator",
                    found=(fields.get("format"), fields.get("method")),
                    expected=CALIBRATOR_FORMAT,
                )
            )
        chosen = METHODS[fields["method"]]
        top = None if chosen is None else chosen.from_json(fields["top"])
        lists = Temperature.from_json(fields["lists"])
        return cls(fields["method"], top, lists, fields["logarithmic"], fields["n_mentions"])
