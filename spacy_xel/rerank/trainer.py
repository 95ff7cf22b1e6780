"""Training of the re-ranker: the features' network at once, the encoder step by step."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from spacy_xel.errors import Errors
from spacy_xel.rerank.inputs import Pair
from spacy_xel.rerank.losses.binary import binary_loss
from spacy_xel.rerank.losses.softmax import softmax_loss
from spacy_xel.rerank.model import RerankModel
from spacy_xel.rerank.settings import TrainingSettings
from spacy_xel.storage import MANIFEST, new_folder, read_manifest, verify_files, write_manifest
from spacy_xel.types import Float32Array

CHECKPOINT_FORMAT = "spacy-xel-reranker-checkpoint-1"
_LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "binary": binary_loss,
    "softmax": softmax_loss,
}
_BASE_BATCH = 128  # lists
_BASE_RATE = 1e-3
_BASE_DECAY = 0.1
_MAX_NORM = 1.0


class TrainingList(NamedTuple):
    """A list as the trainer needs it."""

    pairs: list[Pair]
    features: Float32Array  # (n_candidates, n_features)
    is_right: Float32Array  # (n_candidates,)


class RerankTrainer:
    """Train a model.

    model (RerankModel): Changed in place.
    settings (TrainingSettings): How.
    step (int): How many steps the encoder has been trained for.
    """

    def __init__(self, model: RerankModel, settings: TrainingSettings) -> None:
        self.model = model
        self.settings = settings
        self.step = 0
        self.loss = _LOSSES[model.settings.loss]
        network = model.network
        encoder = list(network.encoder.parameters())
        if settings.freeze_embeddings and hasattr(network.encoder, "embeddings"):
            for parameter in network.encoder.embeddings.parameters():
                parameter.requires_grad_(False)
        own = [*network.linear.parameters(), *network.base.parameters(), *network.head.parameters()]
        trained = [parameter for parameter in encoder if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": trained, "lr": settings.learning_rate},
                {"params": own, "lr": settings.head_rate},
            ],
            weight_decay=0.01,
        )

    def fit_base(self, lists: Sequence[tuple[Float32Array, Float32Array]]) -> None:
        """Train the network over features alone on all lists.

        lists: Features (n_candidates, n_features) and which are right (n_candidates,).
        """
        network, settings = self.model.network, self.settings
        if not lists:
            return
        features = torch.from_numpy(np.concatenate([values for values, _ in lists]))
        is_right = torch.from_numpy(np.concatenate([right for _, right in lists]))
        ends = np.cumsum([len(right) for _, right in lists])
        network.set_scales(features)
        parameters = [*network.linear.parameters(), *network.base.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=_BASE_RATE, weight_decay=_BASE_DECAY)
        n_batches = -(-len(lists) // _BASE_BATCH)
        total = settings.base_epochs * n_batches
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
        rng = np.random.default_rng(settings.seed)
        for _ in range(settings.base_epochs):
            order = rng.permutation(len(lists))
            for chosen in np.array_split(order, n_batches):
                places = [np.arange(ends[i] - len(lists[i][1]), ends[i]) for i in chosen]
                which = torch.from_numpy(np.concatenate(places))
                numbers = np.repeat(np.arange(len(chosen)), [len(place) for place in places])
                scores = network.base_scores(features[which])
                loss = self.loss(scores, is_right[which], torch.from_numpy(numbers))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        optimizer.zero_grad(set_to_none=True)  # what the encoder's first step must not find

    def accumulate(self, lists: Sequence[TrainingList], dropout: float) -> float:
        """Add the gradients of some lists; return their mean loss."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads or threads)
        try:
            return self._accumulate(lists, dropout)
        finally:
            torch.set_num_threads(threads)

    def _accumulate(self, lists: Sequence[TrainingList], dropout: float) -> float:
        network = self.model.network
        network.train()
        for module in network.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
        # The same numbers after an interruption, without having to save a generator's state.
        torch.manual_seed(self.settings.seed * 1_000_003 + self.step)
        total = 0.0
        for group in _groups_of_similar_length(lists, self.settings.pairs_per_pass):
            inputs = self.model.batch([pair for item in group for pair in item.pairs])
            features = torch.from_numpy(np.concatenate([item.features for item in group]))
            is_right = torch.from_numpy(np.concatenate([item.is_right for item in group]))
            numbers = np.repeat(np.arange(len(group)), [len(item.pairs) for item in group])
            with torch.autocast("cpu", torch.bfloat16, enabled=self.settings.mixed_precision):
                vectors = network.encode(inputs)
            vectors = vectors.float()
            scores = network.base_scores(features) + network.corrections(vectors, features)
            loss = self.loss(scores, is_right, torch.from_numpy(numbers)) * len(group) / len(lists)
            loss.backward()
            total += float(loss.detach())
        network.eval()
        return total

    def finish_step(self) -> None:
        """Change the weights by the gradients added up so far."""
        self.step += 1
        rate = min(1.0, self.step / max(1, self.settings.warmup))
        if self.settings.total_steps:
            rate *= max(0.0, 1 - self.step / (self.settings.total_steps + 1))
        rates = (self.settings.learning_rate, self.settings.head_rate)
        for group, full in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = full * rate
            torch.nn.utils.clip_grad_norm_(group["params"], _MAX_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.model.weights_changed()

    def save_checkpoint(self, path: Path, run: str) -> None:
        """Write all that is needed to go on from here.

        run (str): What the run is about; a checkpoint of another is refused.
        """
        state = self.optimizer.state_dict()["state"]
        tensors = {f"network.{k}": v for k, v in self.model.network.state_dict().items()}
        for number, moments in state.items():
            for name, value in moments.items():
                tensors[f"optimizer.{number}.{name}"] = value
        with new_folder(path, force=True) as folder:
            tensors = {name: value.contiguous().clone() for name, value in tensors.items()}
            save_file(tensors, folder / "state.safetensors")
            write_manifest(folder, {"format": CHECKPOINT_FORMAT, "run": run, "step": self.step})

    def load_checkpoint(self, path: Path, run: str, name: str) -> bool:
        """Go on from a checkpoint, if there is one."""
        if not (path / MANIFEST).is_file():
            return False
        manifest = read_manifest(path, CHECKPOINT_FORMAT)
        verify_files(path, manifest)
        if manifest["run"] != run:
            problem = "the texts, the knowledge base or the settings have changed"
            raise ValueError(Errors.XE071.format(path=path, problem=problem, name=name))
        tensors = load_file(path / "state.safetensors")
        prefix = "network."
        weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        self.model.network.load_state_dict(weights)
        state: dict[int, dict[str, Any]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, number, moment = key.split(".")
                state.setdefault(int(number), {})[moment] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.step = manifest["step"]
        return True


def describe_run(*parts: Any) -> str:
    """Return a short sum of what a run depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _groups_of_similar_length(
    lists: Sequence[TrainingList], most_pairs: int
) -> list[list[TrainingList]]:
    """Return lists in groups of at most so many pairs (or one list), the short ones first."""
    groups: list[list[TrainingList]] = []
    size = 0
    for item in sorted(lists, key=lambda item: max(len(pair.tokens) for pair in item.pairs)):
        if not groups or size + len(item.pairs) > most_pairs:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += len(item.pairs)
    return groups
