"""A corpus looked at, and divided into a part to learn from and a part to be judged by."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.progress import progress
from spacy_xel.types import AnnotatedText

MAX_HELD_OUT = 1000
# Texts hardly longer than their mentions are lists of names: there is no context in them.
_LEAST_CONTEXT = 2.0


@dataclass
class CorpusSurvey:
    """How much there is of a corpus, and whether its contexts tell something."""

    documents: int = 0
    mentions: int = 0  # that have an id
    characters: int = 0
    ambiguous: float = 0.0  # share of mentions whose text stands for several entities here
    has_contexts: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def survey_corpus(path: Path, format_name: str | None = None) -> CorpusSurvey:
    """Read a corpus and count."""
    result = CorpusSurvey()
    meanings: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    mentioned = 0
    for text in progress(read_corpus(path, format_name), "Looking at the corpus"):
        result.documents += 1
        result.characters += len(text.text)
        for mention in text.mentions:
            if mention.kb_ids:
                name = text.text[mention.start : mention.end]
                mentioned += len(name)
                meanings[normalize_name(name)][mention.kb_ids] += 1
    counts = meanings.values()
    result.mentions = sum(count.total() for count in counts)
    several = sum(count.total() for count in counts if len(count) > 1)
    result.ambiguous = several / max(1, result.mentions)
    result.has_contexts = result.characters >= _LEAST_CONTEXT * max(1, mentioned)
    return result


def split_corpus(
    path: Path,
    train: Path,
    held_out: Path,
    *,
    share: float = 0.1,
    seed: int = 0,
    format_name: str | None = None,
) -> tuple[int, int]:
    """Write a random part of the documents apart; return how many there are in each part.

    Documents with the same text stay together. Of a single document nothing can be held out.

    share (float): Of the documents to hold out, MAX_HELD_OUT at most.
    """
    texts = list(dict.fromkeys(map(_key, read_corpus(path, format_name))))
    wanted = min(MAX_HELD_OUT, round(share * len(texts)))
    if share > 0 and len(texts) > 1:
        wanted = max(1, wanted)
    chosen = np.random.default_rng(seed).choice(len(texts), size=wanted, replace=False)
    apart = {texts[place] for place in chosen.tolist()}
    counts = [0, 0]
    for part, target in enumerate((train, held_out)):
        kept = (t for t in read_corpus(path, format_name) if (_key(t) in apart) == bool(part))
        write_corpus(_counted(kept, counts, part), target, "jsonl")
    return counts[0], counts[1]


def example_ids(texts: Iterable[AnnotatedText], limit: int = 3) -> list[str]:
    """Return the first few ids of a corpus."""
    found: dict[str, None] = {}
    for text in texts:
        for mention in text.mentions:
            found.update(dict.fromkeys(mention.kb_ids))
        if len(found) >= limit:
            break
    return list(found)[:limit]


def _key(text: AnnotatedText) -> bytes:
    return hashlib.sha256(text.text.encode()).digest()


def _counted(
    texts: Iterable[AnnotatedText], counts: list[int], part: int
) -> Iterator[AnnotatedText]:
    for text in texts:
        counts[part] += 1
        yield text
