"""The network: a small one over the features, and an encoder whose head corrects its score."""

from typing import Any

import torch
from torch import nn

_HIDDEN = 64


class RerankNetwork(nn.Module):
    """Score candidates: score = base(features) + head(encoder's vector, features).

    The head begins at zero, so that an encoder without training changes nothing.

    encoder: A Hugging Face encoder.
    n_features (int): How many features a candidate has.
    pooling (str): "cls", the vector of the first token, or "mean", of all.
    """

    means: torch.Tensor
    scales: torch.Tensor

    def __init__(self, encoder: Any, n_features: int, pooling: str, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.register_buffer("means", torch.zeros(n_features))
        self.register_buffer("scales", torch.ones(n_features))
        # Without training, the first feature, the retriever's score, decides.
        self.linear = nn.Linear(n_features, 1)
        _start_at_zero(self.linear)
        self.linear.weight.data[0, 0] = 1.0
        self.base = nn.Sequential(
            nn.Linear(n_features, _HIDDEN), nn.GELU(), nn.Linear(_HIDDEN, _HIDDEN), nn.GELU(),
            nn.Linear(_HIDDEN, 1),
        )  # fmt: skip
        _start_at_zero(self.base[-1])
        width = encoder.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(width + n_features, 2 * _HIDDEN), nn.GELU(),
            nn.Linear(2 * _HIDDEN, 1),
        )  # fmt: skip
        _start_at_zero(self.head[-1])

    def set_scales(self, features: torch.Tensor) -> None:
        """Learn the means and deviations of features."""
        self.means.copy_(features.mean(dim=0))
        self.scales.copy_(features.std(dim=0, unbiased=False).clamp_min(1e-3))

    def standardize(self, features: torch.Tensor) -> torch.Tensor:
        # What training never saw must not run away with the score.
        return ((features - self.means) / self.scales).clamp(-5, 5)

    def base_scores(self, features: torch.Tensor) -> torch.Tensor:
        """Return a score per candidate (n,) without the encoder."""
        values = self.standardize(features)
        scores: torch.Tensor = (self.linear(values) + self.base(values))[:, 0]
        return scores

    def encode(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return a vector per pair."""
        states = self.encoder(**inputs).last_hidden_state
        if self.pooling == "cls":
            vectors: torch.Tensor = states[:, 0]
            return vectors
        mask = inputs["attention_mask"][:, :, None].to(states.dtype)
        means: torch.Tensor = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return means

    def corrections(self, vectors: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Return what the encoder adds to the score of each candidate (n,)."""
        both = torch.cat((vectors, self.standardize(features)), dim=1)
        corrections: torch.Tensor = self.head(both)[:, 0]
        return corrections


def _start_at_zero(layer: Any) -> None:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
