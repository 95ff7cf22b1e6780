"""An encoder with random weights that is small enough for tests; needs no network."""

import functools
import string
import tempfile
from pathlib import Path

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = ["paris", "troy", "new", "york", "city", "of", "the", "capital", "prince"]
_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed at the end of the session


@functools.cache
def tiny_encoder() -> Path:
    """Return the folder of a BERT with one layer and 16 dimensions."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    _KEPT.append(tempfile.TemporaryDirectory())
    folder = Path(_KEPT[-1].name)
    pieces = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    vocabulary = [*_SPECIAL, *_WORDS, *pieces, *(f"##{piece}" for piece in pieces)]
    (folder / "words.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf8")
    tokenizer = BertTokenizerFast(vocab_file=str(folder / "words.txt"), do_lower_case=True)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=128,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder
