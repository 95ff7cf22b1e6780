"""Which mentions of a text name the same thing, as far as their words tell."""

from collections.abc import Sequence

from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.types import Query


def group_by_name(queries: Sequence[Query]) -> list[int]:
    """Return a group number per mention of one text: the same name, or short for the same.

    Groups are numbered in the order of their first mention.
    """
    numbers: dict[str, int] = {}
    names = [normalize_name(query.mention) for query in spell_out(queries)]
    return [numbers.setdefault(name, len(numbers)) for name in names]


def longer_names(names: Sequence[str]) -> list[list[int]]:
    """Return for each name which of the others end in its words: "John Smith" for "Smith"."""
    words = [tuple(normalize_name(name).split()) for name in names]
    ending_in: dict[tuple[str, ...], list[int]] = {}
    for i, name in enumerate(words):
        for start in range(1, len(name)):
            ending_in.setdefault(name[start:], []).append(i)
    return [ending_in.get(name, []) for name in words]


def cluster_mentions(queries: Sequence[Query], labels: Sequence[str] = ()) -> list[int]:
    """Return a cluster number per mention of one text; those of the same thing share one.

    The same name, an abbreviation and what the text says it stands for, and a proper name and the
    only longer one that ends in it ("John Smith", then "Smith"). Other words that end alike are
    kinds of each other ("acute renal failure", "renal failure"), not the same.

    labels (Sequence[str]): The mentions' labels; different ones are different things.
    """
    groups = group_by_name(queries)
    if labels:
        numbers: dict[tuple[int, str], int] = {}
        pairs = zip(groups, labels, strict=True)
        groups = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
    first = {group: i for i, group in reversed(list(enumerate(groups)))}
    names = [queries[i].mention for _, i in sorted(first.items())]
    label_of = [labels[i] if labels else "" for _, i in sorted(first.items())]
    parent = list(range(len(names)))
    for group, longer in enumerate(longer_names(names)):
        fitting = [
            other
            for other in longer
            if label_of[other] == label_of[group]
            and _is_proper(names[other])
            and _is_proper(names[group])
        ]
        if len(fitting) == 1:
            parent[group] = fitting[0]
    return _numbered([_root(parent, group) for group in groups])


def _is_proper(name: str) -> bool:
    """Tell whether every word of a name begins with a capital and goes on in small letters."""
    return all(word[:1].isupper() and not word[1:].isupper() for word in name.split())


def _root(parent: Sequence[int], group: int) -> int:
    while parent[group] != group:  # a longer name each time, so it ends
        group = parent[group]
    return group


def _numbered(roots: Sequence[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root, len(numbers)) for root in roots]
