"""The re-ranking model: encoder, tokenizer and network; scoring, and saving without pickle."""

import importlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.rerank.inputs import Pair, PairMaker
from spacy_xel.rerank.settings import NetworkSettings
from spacy_xel.storage import new_folder, read_manifest, verify_files, write_manifest
from spacy_xel.types import Float32Array

RERANKER_FORMAT = "spacy-xel-reranker-1"
_WEIGHTS = "network.safetensors"
_ENCODER = "encoder"


class RerankModel:
    """A network with what it needs to read pairs.

    settings (NetworkSettings): How it is made.
    tokenizer, network: Of Hugging Face, and a RerankNetwork.
    """

    def __init__(self, settings: NetworkSettings, tokenizer: Any, network: Any) -> None:
        self.settings = settings
        self.tokenizer = tokenizer
        self.network = network
        length = min(settings.max_length, _longest(network.encoder))
        self.pairs = PairMaker(tokenizer, length, settings.context)
        self._process = os.getpid()
        self._quantized: Any = None

    @classmethod
    def create(cls, settings: NetworkSettings, n_features: int, seed: int) -> "RerankModel":
        """Load the encoder and put a new head on it."""
        import torch

        from spacy_xel.rerank.network import RerankNetwork

        encoder, tokenizer = _load_encoder(encoder_folder(settings.encoder))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = RerankNetwork(encoder, n_features, settings.pooling)
        return cls(settings, tokenizer, network.eval())

    # Scoring

    def base_scores(self, features: Float32Array) -> Float32Array:
        """Return a score per candidate from its features alone."""
        import torch

        self._be_alone_after_fork()
        with torch.inference_mode():
            scores: Float32Array = self.network.base_scores(torch.from_numpy(features)).numpy()
        return scores

    def corrections(
        self,
        pairs: Sequence[Pair],
        features: Float32Array,
        *,
        batch_size: int,
        quantize: bool = False,
        mixed_precision: bool = False,
    ) -> Float32Array:
        """Return what the encoder adds to the score of each candidate.

        Equal pairs are encoded once, and pairs of similar length together.
        """
        import torch

        self._be_alone_after_fork()
        distinct = sorted(set(pairs), key=lambda pair: (len(pair.tokens), pair))
        place = {pair: i for i, pair in enumerate(distinct)}
        encode = self._quantized_network().encode if quantize else self.network.encode
        with torch.inference_mode():
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed_precision):
                parts = [
                    encode(self.batch(distinct[i : i + batch_size]))
                    for i in range(0, len(distinct), batch_size)
                ]
            if not parts:
                return np.zeros(0, dtype=np.float32)
            vectors = torch.cat(parts).float()[[place[pair] for pair in pairs]]
            values = self.network.corrections(vectors, torch.from_numpy(features))
        result: Float32Array = values.numpy()
        return result

    def batch(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        """Return pairs as the encoder wants them, padded to the longest."""
        import torch

        width = max(len(pair.tokens) for pair in pairs)
        padding = self.tokenizer.pad_token_id or 0
        tokens = np.full((len(pairs), width), padding, dtype=np.int64)
        mask = np.zeros((len(pairs), width), dtype=np.int64)
        kinds = np.zeros((len(pairs), width), dtype=np.int64)
        for i, pair in enumerate(pairs):
            tokens[i, : len(pair.tokens)] = pair.tokens
            mask[i, : len(pair.tokens)] = 1
            kinds[i, pair.second : len(pair.tokens)] = 1
        arrays = {"input_ids": tokens, "attention_mask": mask}
        if getattr(self.network.encoder.config, "type_vocab_size", 0) > 1:
            arrays["token_type_ids"] = kinds
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def weights_changed(self) -> None:
        """Forget what was made of older weights."""
        self._quantized = None

    def _quantized_network(self) -> Any:
        if self._quantized is None:
            import torch

            quantize: Any = torch.ao.quantization.quantize_dynamic
            self._quantized = quantize(self.network, {torch.nn.Linear}, dtype=torch.qint8).eval()
        return self._quantized

    def _be_alone_after_fork(self) -> None:
        """In a forked process use one thread: the others were not forked, and are waited for."""
        if os.getpid() != self._process:
            import torch

            torch.set_num_threads(1)
            self._process = os.getpid()

    # Saving

    def to_disk(self, path: Path, extra: dict[str, Any]) -> None:
        """Write a folder with the weights, the encoder's settings and words, and extra JSON."""
        from safetensors.torch import save_file

        with new_folder(path, force=True) as folder:
            tensors = {k: v.contiguous().clone() for k, v in self.network.state_dict().items()}
            save_file(tensors, folder / _WEIGHTS)
            self.tokenizer.save_pretrained(folder / _ENCODER)
            self.network.encoder.config.to_json_file(folder / _ENCODER / "config.json")
            (folder / "extra.json").write_text(json.dumps(extra), encoding="utf8")
            header = {"settings": self.settings.to_json(), "features": self._n_features()}
            write_manifest(folder, {"format": RERANKER_FORMAT, **header})

    @classmethod
    def from_disk(
        cls, path: Path, settings: NetworkSettings
    ) -> tuple["RerankModel", dict[str, Any]]:
        """Read a saved model, and its extra JSON; the encoder's own folder is not needed."""
        from safetensors.torch import load_file

        from spacy_xel.rerank.network import RerankNetwork

        manifest = read_manifest(path, RERANKER_FORMAT)
        verify_files(path, manifest)
        saved, wanted = manifest["settings"], settings.to_json()
        if {**saved, "encoder": ""} != {**wanted, "encoder": ""}:
            raise ValueError(Errors.XE066.format(path=path, saved=saved, config=wanted))
        folder = str(path / _ENCODER)
        hub = _transformers()
        config = hub.AutoConfig.from_pretrained(folder, local_files_only=True)
        encoder = hub.AutoModel.from_config(config)
        tokenizer = hub.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = RerankNetwork(encoder, manifest["features"], settings.pooling)
        network.load_state_dict(load_file(path / _WEIGHTS))
        extra = json.loads((path / "extra.json").read_text(encoding="utf8"))
        return cls(settings, tokenizer, network.eval()), extra

    def to_bytes(self, extra: dict[str, Any]) -> dict[str, bytes]:
        """Return the files that to_disk writes."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            self.to_disk(folder, extra)
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    @classmethod
    def from_bytes(
        cls, files: dict[str, bytes], settings: NetworkSettings
    ) -> tuple["RerankModel", dict[str, Any]]:
        """Read what to_bytes returned."""
        with tempfile.TemporaryDirectory() as scratch:
            for name, data in files.items():
                (Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / name).write_bytes(data)
            return cls.from_disk(Path(scratch), settings)

    def _n_features(self) -> int:
        return int(self.network.means.shape[0])


def encoder_folder(name: str) -> Path:
    """Return the folder of an encoder: a folder, or a package that says where its own is."""
    folder = Path(name)
    if not folder.is_dir() and name.isidentifier() and importlib.util.find_spec(name):
        package = importlib.import_module(name)
        if not hasattr(package, "get_model_path"):
            raise ValueError(Errors.XE067.format(path=name, problem="it has no get_model_path()"))
        folder = Path(package.get_model_path())
    if not folder.is_dir():
        raise FileNotFoundError(Errors.XE068.format(path=name))
    return folder


def _load_encoder(folder: Path) -> tuple[Any, Any]:
    hub = _transformers()
    if not (folder / "config.json").is_file():
        problem = "it has no config.json"
        raise ValueError(Errors.XE067.format(path=folder, problem=problem))
    try:
        tokenizer = hub.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        encoder = hub.AutoModel.from_pretrained(
            str(folder), local_files_only=True, use_safetensors=True
        )
    except Exception as error:
        raise ValueError(Errors.XE067.format(path=folder, problem=error)) from error
    if tokenizer.sep_token_id is None or getattr(encoder.config, "is_encoder_decoder", False):
        problem = "it is not an encoder such as BERT, with a separator between parts"
        raise ValueError(Errors.XE067.format(path=folder, problem=problem))
    return encoder, tokenizer


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        name = "transformers"
        message = Errors.XE051.format(what="xel_reranker", package=name, extra=name)
        raise MissingExtra(message) from error


def _longest(encoder: Any) -> int:
    positions = getattr(encoder.config, "max_position_embeddings", None) or 100_000
    # RoBERTa counts positions from the padding's number on.
    return int(positions) - (2 if encoder.config.model_type in ("roberta", "xlm-roberta") else 0)
