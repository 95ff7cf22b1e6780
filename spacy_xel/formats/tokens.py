"""Formats with a token per line: the text put together from them, and taken apart again."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from spacy_xel.types import AnnotatedText, Mention

_TOKEN = re.compile(r"\w+|[^\w\s]")


class TextBuilder:
    """Puts a text together from tokens, with mentions that begin and go on at tokens."""

    def __init__(self, doc_id: str = "", lang: str = "") -> None:
        self.doc_id = doc_id
        self.lang = lang
        self.parts: list[str] = []
        self.length = 0
        self.separator = ""
        self.mentions: list[Mention] = []
        self.in_mention = False  # the last token is in a mention

    def add(self, token: str, separator: str = " ") -> tuple[int, int]:
        """Add a token, and what comes between it and the next; return its offsets."""
        self.parts += (self.separator, token)
        start = self.length + len(self.separator)
        self.length = start + len(token)
        self.separator = separator
        self.in_mention = False
        return start, self.length

    def begin_mention(self, place: tuple[int, int], kb_ids: tuple[str, ...], label: str) -> None:
        self.mentions.append(Mention(*place, kb_ids, label))
        self.in_mention = True

    def extend_mention(self, end: int) -> None:
        last = self.mentions[-1]
        self.mentions[-1] = Mention(last.start, end, last.kb_ids, last.label)
        self.in_mention = True

    def finish(self) -> AnnotatedText:
        return AnnotatedText(self.doc_id, "".join(self.parts), tuple(self.mentions), self.lang)


class Token(NamedTuple):
    """A token of a text, with the mention that it is in, and what comes behind it."""

    text: str
    mention: Mention | None
    begins: bool  # it is the first of its mention
    gap: str


def tokens_of(text: AnnotatedText) -> tuple[list[Token], int]:
    """Cut a text into words and signs, and where mentions begin and end.

    RETURNS (tuple): The tokens, and how many mentions overlap others and are not in them; the
        longer ones are kept.
    """
    kept: list[Mention] = []
    for longest in sorted(text.mentions, key=lambda m: (m.start - m.end, m.start)):
        if all(longest.end <= other.start or other.end <= longest.start for other in kept):
            kept.append(longest)
    kept.sort(key=lambda mention: mention.start)
    spans = list(_spans(text.text, kept))
    ends = [start for start, _, _ in spans[1:]] + [len(text.text)]
    tokens = []
    before: Mention | None = None
    for (start, end, mention), next_start in zip(spans, ends, strict=True):
        begins = mention is not None and mention is not before
        tokens.append(Token(text.text[start:end], mention, begins, text.text[end:next_start]))
        before = mention
    return tokens, len(text.mentions) - len(kept)


def _spans(text: str, mentions: list[Mention]) -> Iterator[tuple[int, int, Mention | None]]:
    position = 0
    rest: list[Mention | None] = [*mentions, None]
    for mention in rest:
        until = len(text) if mention is None else mention.start
        for match in _TOKEN.finditer(text, position, until):
            yield match.start(), match.end(), None
        if mention is not None:
            for match in _TOKEN.finditer(text, mention.start, mention.end):
                yield match.start(), match.end(), mention
            position = mention.end
