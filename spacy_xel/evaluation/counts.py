"""What is counted of each document; every score is a ratio of sums of these counts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spacy_xel.types import Float64Array, Mention

RECALL_AT = (1, 5, 10, 20, 100)
Group = Callable[[str, Mention], str]

_COLUMNS = (
    "gold", "predicted", "exact", "weak", "strict",  # links to the KB, end to end
    "gold_spans", "predicted_spans", "exact_spans",  # mentions, whatever they are linked to
    "gold_nil", "predicted_nil", "exact_nil",
)  # fmt: skip
_GROUP_COLUMNS = (
    "gold", "exact", "found", "right", "right_strict", *(f"at_{k}" for k in RECALL_AT)
)  # fmt: skip
COLUMN = {name: i for i, name in enumerate(_COLUMNS)}
GROUP_COLUMN = {name: i for i, name in enumerate(_GROUP_COLUMNS)}
ALL = "all"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted mention: character offsets, ids (none for NIL), and candidates, best first."""

    start: int
    end: int
    kb_ids: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A text with what it should say and what the linker said."""

    text: str
    gold: tuple[Mention, ...]
    predicted: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts per document, over all mentions and per group of mentions."""

    totals: Float64Array  # (n_documents, len(COLUMN))
    groups: dict[str, Float64Array]  # each (n_documents, len(GROUP_COLUMN))


def count_texts(texts: Sequence[ScoredText], groups: Iterable[Group] = ()) -> Counts:
    """Count what is right and what is wrong in each text.

    groups: Functions that name the group of a gold mention, given the text; "" for none.
    """
    group_functions = list(groups)
    totals = np.zeros((len(texts), len(COLUMN)))
    grouped: dict[str, Float64Array] = {}

    def group_counts(name: str) -> Float64Array:
        return grouped.setdefault(name, np.zeros((len(texts), len(GROUP_COLUMN))))

    group_counts(ALL)
    for row, text in enumerate(texts):
        gold = _merge_by_span(text.gold)
        predicted = {(p.start, p.end): p for p in text.predicted}
        totals[row] = _count_links(gold, predicted)
        for mention in gold.values():
            if not mention.kb_ids:
                continue
            counts = _count_mention(mention, predicted.get((mention.start, mention.end)))
            names = [ALL, *(group(text.text, mention) for group in group_functions)]
            for name in filter(None, names):
                group_counts(name)[row] += counts
    return Counts(totals, grouped)


def _merge_by_span(mentions: Iterable[Mention]) -> dict[tuple[int, int], Mention]:
    """Return one mention per span; where a span is annotated twice, with the ids of both."""
    merged: dict[tuple[int, int], Mention] = {}
    for mention in mentions:
        place = (mention.start, mention.end)
        if place in merged:
            ids = dict.fromkeys((*merged[place].kb_ids, *mention.kb_ids))
            mention = Mention(*place, tuple(ids), mention.label)
        merged[place] = mention
    return merged


def _count_links(
    gold: dict[tuple[int, int], Mention], predicted: dict[tuple[int, int], Prediction]
) -> Float64Array:
    counts = np.zeros(len(COLUMN))
    in_kb = {place: mention for place, mention in gold.items() if mention.kb_ids}
    linked = {place: guess for place, guess in predicted.items() if guess.kb_ids}
    counts[COLUMN["gold"]] = len(in_kb)
    counts[COLUMN["predicted"]] = len(linked)
    for place, guess in linked.items():
        mention = in_kb.get(place)
        if mention is not None:
            counts[COLUMN["exact"]] += not set(guess.kb_ids).isdisjoint(mention.kb_ids)
            counts[COLUMN["strict"]] += set(guess.kb_ids) == set(mention.kb_ids)
    counts[COLUMN["weak"]] = _count_overlapping(list(in_kb.values()), list(linked.values()))
    counts[COLUMN["gold_spans"]] = len(gold)
    counts[COLUMN["predicted_spans"]] = len(predicted)
    both = gold.keys() & predicted.keys()
    counts[COLUMN["exact_spans"]] = len(both)
    counts[COLUMN["gold_nil"]] = len(gold) - len(in_kb)
    counts[COLUMN["predicted_nil"]] = sum(not predicted[place].kb_ids for place in both)
    counts[COLUMN["exact_nil"]] = sum(
        not predicted[place].kb_ids and not gold[place].kb_ids for place in both
    )
    return counts


def _count_overlapping(gold: list[Mention], predicted: list[Prediction]) -> int:
    """Count predictions that share a character and an id with a gold mention, one to one."""
    by_id: dict[str, list[Mention]] = {}
    for mention in sorted(gold, key=lambda mention: mention.start):
        for kb_id in mention.kb_ids:
            by_id.setdefault(kb_id, []).append(mention)
    matched: set[tuple[int, int]] = set()
    count = 0
    for guess in sorted(predicted, key=lambda prediction: prediction.start):
        for mention in (mention for kb_id in guess.kb_ids for mention in by_id.get(kb_id, [])):
            overlaps = guess.start < mention.end and mention.start < guess.end
            if overlaps and (mention.start, mention.end) not in matched:
                matched.add((mention.start, mention.end))
                count += 1
                break
    return count


def _count_mention(mention: Mention, guess: Prediction | None) -> Float64Array:
    """Count one gold mention that is in the KB."""
    counts = np.zeros(len(GROUP_COLUMN))
    counts[GROUP_COLUMN["gold"]] = 1
    if guess is None:
        return counts
    right = set(mention.kb_ids)
    counts[GROUP_COLUMN["found"]] = 1
    counts[GROUP_COLUMN["exact"]] = not right.isdisjoint(guess.kb_ids)
    counts[GROUP_COLUMN["right"]] = not right.isdisjoint(guess.kb_ids)
    counts[GROUP_COLUMN["right_strict"]] = right == set(guess.kb_ids)
    candidates = guess.candidates or guess.kb_ids
    rank = next((i for i, kb_id in enumerate(candidates) if kb_id in right), None)
    if rank is not None:
        for k in RECALL_AT:
            counts[GROUP_COLUMN[f"at_{k}"]] = rank < k
    return counts
