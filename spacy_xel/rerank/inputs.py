"""Pairs of mention and candidate as token numbers for the encoder (XMRED equation 9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spacy_xel.rerank.features import most_similar_name
from spacy_xel.rerank.lists import MentionList
from spacy_xel.types import Entity

_MAX_REMEMBERED = 200_000
_CHARACTERS_PER_TOKEN = 8  # more than any text needs; what is cut here would be cut anyway


class Pair(NamedTuple):
    """The tokens of a pair, and where the mention's side begins."""

    tokens: tuple[int, ...]
    second: int


@dataclass(slots=True)
class Truncation:
    """How many pairs were cut to the encoder's length, and by which part."""

    pairs: int = 0
    titles: int = 0
    descriptions: int = 0
    mentions: int = 0


class PairMaker:
    """Make the encoder's inputs: title [SEP] name and description [SEP] mention [SEP] context.

    tokenizer: Of the encoder.
    max_length (int): Tokens of a pair at most.
    context (int): Characters of context on each side of the mention at most.
    """

    def __init__(self, tokenizer: Any, max_length: int, context: int) -> None:
        self.max_length = max_length
        self.context = context
        self.truncation = Truncation()
        self._tokenizer = tokenizer
        self._first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else None
        self._separator = tokenizer.sep_token_id
        self._remembered: dict[tuple[str, bool], list[int]] = {}

    def __call__(self, item: MentionList, entities: Sequence[Entity]) -> list[Pair]:
        """Return a pair per candidate."""
        room = self.max_length - 5  # [CLS] and four [SEP]
        left, mention, right = self._mention_side(item)
        mention_cut = len(mention) > room // 3
        mention = mention[: room // 3]
        pairs = []
        for entity in entities:
            title = self._tokens(entity.title, room)
            alias = self._tokens(most_similar_name(item.spelled_out.mention, entity), room // 6)
            description = self._tokens(entity.description, room)
            rest = room - len(mention)
            short_title = title[: rest // 3]
            short_alias = alias[: rest // 6] if alias != title else []
            rest -= len(short_title) + len(short_alias)
            wanted = len(left) + len(right)
            short_description = description[: max(rest // 2, rest - wanted)]
            rest -= len(short_description)
            before, after = _centred(left, right, rest)
            self.truncation.pairs += 1
            self.truncation.titles += len(short_title) < len(title)
            self.truncation.descriptions += len(short_description) < len(description)
            self.truncation.mentions += mention_cut
            first = self._join(short_title, [*short_alias, *short_description])
            second = self._join(mention, [*before, *mention, *after][: max(rest, 0)])
            start = [] if self._first is None else [self._first]
            pairs.append(Pair((*start, *first, *second), len(start) + len(first)))
        return pairs

    def reset(self) -> None:
        """Count what is cut anew."""
        self.truncation = Truncation()

    def _mention_side(self, item: MentionList) -> tuple[list[int], list[int], list[int]]:
        query, spelled_out = item.query, item.spelled_out
        name = query.mention
        if spelled_out != query:
            name = f"{spelled_out.mention} ({name})"
        left = query.text[max(0, query.start - self.context) : query.start]
        right = query.text[query.end : query.end + self.context]
        return (
            self._tokens(left, self.max_length, keep_end=True),
            self._tokens(name, self.max_length),
            self._tokens(right, self.max_length),
        )

    def _join(self, *parts: list[int]) -> list[int]:
        return [token for part in parts for token in (*part, self._separator)]

    def _tokens(self, text: str, most: int, *, keep_end: bool = False) -> list[int]:
        """Return the tokens of a text; beyond twice the number needed it is not looked at."""
        size = 2 * most * _CHARACTERS_PER_TOKEN
        text = text[-size:] if keep_end else text[:size]
        key = (text, keep_end)
        if key not in self._remembered:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            encoded = self._tokenizer(text, add_special_tokens=False, verbose=False)
            self._remembered[key] = encoded["input_ids"]
        return self._remembered[key]


def _centred(left: list[int], right: list[int], room: int) -> tuple[list[int], list[int]]:
    """Return as much of both sides as there is room for, the same of each where both have it."""
    room = max(room, 0)
    before = min(len(left), max(room // 2, room - len(right)))
    return left[len(left) - before :], right[: room - before]
