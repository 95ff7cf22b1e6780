"""Contexts to train on and to test with, taken from a corpus of long texts in one pass.

Whole paragraphs are taken or left, with all of their mentions: were mentions left out one by one,
the text would say that the names of frequent entities are hardly ever links.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from spacy_xel.types import AnnotatedText

_GAP = re.compile(r"\n\s*\n")
_SLOTS = 1 << 26


@dataclass
class Sample:
    """Which paragraphs of a corpus to take.

    dev_share (float): So much of the texts, chosen by their ids, is for testing.
    per_entity (int): Paragraphs are taken for training if they mention an entity that was mentioned
        less often so far; 0 takes all.
    dev_texts (int): So many paragraphs for testing at most; 0 for all.
    """

    dev_share: float = 0.01
    per_entity: int = 0
    dev_texts: int = 0

    def __post_init__(self) -> None:
        # Counts by the hash of the id, in 128 MB whatever the number of entities; two that share a
        # slot share their quota.
        self._counts = np.zeros(_SLOTS if self.per_entity else 1, dtype=np.uint16)
        self._dev = 0
        self.unlinked = 0  # paragraphs left out because nothing in them is linked

    def divide(self, texts: Iterable[AnnotatedText]) -> Iterator[tuple[bool, AnnotatedText]]:
        """Yield the paragraphs taken, each with whether it is for testing."""
        for text in texts:
            is_dev = _hash(text.doc_id) < self.dev_share * 2**64
            for paragraph in paragraphs(text):
                if not any(mention.kb_ids for mention in paragraph.mentions):
                    self.unlinked += 1
                    continue
                if is_dev and not 0 < self.dev_texts <= self._dev:
                    self._dev += 1
                    yield True, paragraph
                elif not is_dev and self._wanted(paragraph):
                    yield False, paragraph

    def _wanted(self, text: AnnotatedText) -> bool:
        if not self.per_entity:
            return True
        slots = [_hash(i) % _SLOTS for mention in text.mentions for i in mention.kb_ids]
        if all(self._counts[slot] >= self.per_entity for slot in slots):
            return False
        for slot in slots:
            self._counts[slot] += self._counts[slot] < np.iinfo(np.uint16).max
        return True


def paragraphs(text: AnnotatedText) -> Iterator[AnnotatedText]:
    """Cut a text at its blank lines, but not within a mention."""
    gaps = [
        match.span()
        for match in _GAP.finditer(text.text)
        if not any(m.start < match.end() and match.start() < m.end for m in text.mentions)
    ]
    starts = [0, *(end for _, end in gaps)]
    ends = [*(start for start, _ in gaps), len(text.text)]
    mentions = sorted(text.mentions, key=lambda mention: mention.start)
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        inside = tuple(
            replace(m, start=m.start - start, end=m.end - start)
            for m in mentions
            if start <= m.start and m.end <= end
        )
        if start < end:
            doc_id = f"{text.doc_id}#{number}"
            yield replace(text, doc_id=doc_id, text=text.text[start:end], mentions=inside)


def _hash(value: str) -> int:
    return int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little")
