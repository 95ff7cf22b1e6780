"""A mention with its candidates: what the re-ranker is given, from training texts or from Docs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from spacy_xel.types import Query

Candidates = list[tuple[str, float]]
_OPENING = re.compile(r"\s?[(\[]\s?$")


@dataclass(slots=True)
class MentionList:
    """The candidates of one mention, the best first.

    query (Query): The mention in its text.
    spelled_out (Query): Where the text says what it stands for; the same if it is no abbreviation.
    label (str): The kind of mention, such as "Disease".
    candidates (list): Ids and scores.
    gold (frozenset[str]): The right ids, where they are known.
    neighbours (dict[str, int]): Per id that an adjacent bracket suggests, its rank there.
    """

    query: Query
    spelled_out: Query
    label: str
    candidates: Candidates
    gold: frozenset[str] = frozenset()
    neighbours: dict[str, int] | None = None


def add_bracket_candidates(lists: Sequence[MentionList], per_mention: int) -> None:
    """Add to each mention's candidates those of what stands before or in brackets beside it.

    In "amrubicin (SM-5887)" both mean the same, and so does SM-5887 in the rest of the text.

    lists (Sequence[MentionList]): Those of one text.
    per_mention (int): How many candidates of the neighbour to take.
    """
    ordered = sorted(lists, key=lambda item: (item.query.start, item.query.end))
    suggestions: dict[str, dict[str, int]] = {}
    for left, right in pairwise(ordered):
        between = left.query.text[left.query.end : right.query.start]
        if len(between) <= 3 and _OPENING.match(between):
            for one, other in ((left, right), (right, left)):
                found = suggestions.setdefault(one.query.mention.lower(), {})
                for rank, (kb_id, _) in enumerate(other.candidates[:per_mention]):
                    found[kb_id] = min(rank, found.get(kb_id, rank))
    for item in lists:
        item.neighbours = suggestions.get(item.query.mention.lower())
        if item.neighbours:
            present = {kb_id for kb_id, _ in item.candidates}
            new = [kb_id for kb_id in item.neighbours if kb_id not in present]
            item.candidates = [*item.candidates, *((kb_id, 0.0) for kb_id in new)]
