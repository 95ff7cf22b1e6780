"""How a label tree is made."""

from dataclasses import asdict, dataclass
from typing import Any

from spacy_xel.errors import raise_at_wrong


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """Settings of a label tree.

    branching (int): Children of an inner node, a power of two (K of XMRED).
    max_leaf (int): Labels of a leaf node at most (B of XMRED).
    cluster_iterations (int): Of balanced k-means, per split.
    loss (str): "squared_hinge" or "hinge".
    cost (float): C of the support vector machines.
    tolerance (float): When to stop optimizing.
    max_passes (int): Over the instances of a node at most.
    threshold (float): Weights below are dropped.
    negatives (str): "tfn", the other instances of the parent, or "tfn+man", also those that the
        levels above confuse with it.
    score (str): "l3_hinge" or "sigmoid", what a node's margin becomes a score by.
    seed (int): Of clustering and optimization.
    """

    branching: int = 16
    max_leaf: int = 100
    cluster_iterations: int = 10
    loss: str = "squared_hinge"
    cost: float = 1.0
    tolerance: float = 0.1
    max_passes: int = 100
    threshold: float = 0.1
    negatives: str = "tfn"
    score: str = "l3_hinge"
    seed: int = 0

    def __post_init__(self) -> None:
        powers = [1 << i for i in range(1, 9)]
        checks = {
            "branching": (self.branching in powers, f"one of {powers}"),
            "max_leaf": (2 <= self.max_leaf <= 256, "from 2 to 256"),
            "cluster_iterations": (self.cluster_iterations >= 1, "at least 1"),
            "loss": (self.loss in ("squared_hinge", "hinge"), "squared_hinge or hinge"),
            "cost": (self.cost > 0, "larger than 0"),
            "tolerance": (self.tolerance > 0, "larger than 0"),
            "max_passes": (self.max_passes >= 1, "at least 1"),
            "threshold": (self.threshold >= 0, "at least 0"),
            "negatives": (self.negatives in ("tfn", "tfn+man"), "tfn or tfn+man"),
            "score": (self.score in ("l3_hinge", "sigmoid"), "l3_hinge or sigmoid"),
            "seed": (0 <= self.seed < 1 << 31, "from 0 to 2147483647"),
        }
        raise_at_wrong(self, checks)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
