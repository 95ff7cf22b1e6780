"""Temperature scaling: a list's scores, and nothing of the list, as one distribution."""

from typing import Any

import numpy as np

from spacy_xel.types import Float64Array, Int64Array

_LOG_BOUNDS = (-5.0, 5.0)  # of the temperature
_NIL_BOUNDS = (-100.0, 100.0)


class Temperature:
    """P(candidate) = exp(score / temperature) / (sum over the list + exp(nil)).

    nil stands for what is not in the list. Without it the only candidate of a list were certain.
    """

    def __init__(self, temperature: float = 1.0, nil: float = 0.0) -> None:
        self.temperature = temperature
        self.nil = nil

    @classmethod
    def fit(cls, scores: Float64Array, gold_ranks: Int64Array) -> "Temperature":
        """Find the most likely values.

        scores (ndarray): Logarithms, (n, k); -inf in unused slots.
        gold_ranks (ndarray): Where in its list the right candidate is, (n,); -1 for nowhere.
        """
        from scipy.optimize import minimize

        rows = np.arange(len(scores))
        in_list = gold_ranks >= 0

        def loss(parameters: Float64Array) -> float:
            model = cls(float(np.exp(parameters[0])), float(parameters[1]))
            logits = np.column_stack([scores / model.temperature, np.full(len(scores), model.nil)])
            chosen = logits[rows, np.where(in_list, gold_ranks, scores.shape[1])]
            return float(np.mean(_log_sum_exp(logits) - chosen))

        if not len(scores):
            return cls()
        bounds = (_LOG_BOUNDS, _NIL_BOUNDS)
        best = minimize(loss, np.zeros(2), method="L-BFGS-B", bounds=bounds)
        return cls(float(np.exp(best.x[0])), float(best.x[1]))

    def __call__(self, scores: Float64Array) -> Float64Array:
        """Return P of each candidate, (n, k); a row adds up to less than 1."""
        logits = np.column_stack([scores / self.temperature, np.full(len(scores), self.nil)])
        probabilities: Float64Array = np.exp(logits - _log_sum_exp(logits)[:, None])[:, :-1]
        return probabilities

    def to_json(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "nil": self.nil}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Temperature":
        return cls(float(fields["temperature"]), float(fields["nil"]))


def _log_sum_exp(logits: Float64Array) -> Float64Array:
    largest = logits.max(axis=1)  # finite, because of nil
    total: Float64Array = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return total
