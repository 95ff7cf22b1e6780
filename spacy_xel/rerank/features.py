"""Numbers that describe a candidate: the retriever's score, names, evidence, the document."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.rerank.evidence import Evidence
from spacy_xel.rerank.lists import MentionList
from spacy_xel.types import Entity, Float32Array

_WORD = re.compile(r"[^\W_]+")
_MAX_REMEMBERED = 500_000
_MAX_NAMES = 100  # of an entity with more, only the first are compared
_NAME_FEATURES = 8

FEATURE_NAMES = (
    "log_score", "score_gap", "reciprocal_rank", "is_retrieved", "log_list_length",
    *(f"{form}_{name}" for form in ("mention", "spelled_out") for name in (
        "ratio", "sorted_ratio", "set_ratio", "title_ratio", "is_name", "is_title", "initials",
        "characters",
    )),
    "log_hits", "hit_share", "log_occurrences", "spelled_out_share", "log_popularity", "agreement",
    "log_prior", "log_names", "log_mention_length", "has_description",
    "bracket", "top_elsewhere",
)  # fmt: skip


class FeatureMaker:
    """Compute the features of candidates; name comparisons are remembered.

    kb (XelKnowledgeBase): Where the candidates' names are.
    evidence (Evidence): Counts of the training texts.
    """

    def __init__(self, kb: XelKnowledgeBase, evidence: Evidence) -> None:
        self.kb = kb
        self.evidence = evidence
        self._version = kb.version
        self._similarities: dict[tuple[str, str], tuple[float, ...]] = {}
        self._names: dict[str, list[str]] = {}

    def __call__(
        self, lists: Sequence[MentionList], own: Evidence | None = None
    ) -> list[Float32Array]:
        """Return an array (n_candidates, n_features) per mention.

        lists (Sequence[MentionList]): The mentions of one text.
        own (Evidence): The counts of this text itself, when it is one of the training texts.
        """
        if self._version != self.kb.version:
            self._version = self.kb.version
            self._similarities.clear()
            self._names.clear()
        tops = Counter(item.candidates[0][0] for item in lists if item.candidates)
        return [self._features_of(item, tops, own) for item in lists]

    def _features_of(
        self, item: MentionList, tops: Counter[str], own: Evidence | None
    ) -> Float32Array:
        values = np.zeros((len(item.candidates), len(FEATURE_NAMES)), dtype=np.float32)
        mention = normalize_name(item.query.mention)
        spelled_out = normalize_name(item.spelled_out.mention)
        best = item.candidates[0][1] if item.candidates else 0.0
        length = math.log1p(len(item.candidates))
        for rank, (kb_id, score) in enumerate(item.candidates):
            entity = self.kb.get_entity(kb_id)
            hits, total = self.evidence.share(mention, kb_id, own)
            long_hits, long_total = self.evidence.share(spelled_out, kb_id, own)
            neighbour = (item.neighbours or {}).get(kb_id)
            values[rank] = (
                math.log(max(score, 1e-7)),
                score - best,
                1 / (1 + rank),
                score > 0,
                length,
                *self._similarity(mention, entity),
                *self._similarity(spelled_out, entity),
                math.log1p(hits),
                hits / (total + 0.5),
                math.log1p(total),
                long_hits / (long_total + 0.5),
                math.log1p(self.evidence.popularity(kb_id, own)),
                self.evidence.agreement(item.label, entity.types),
                math.log1p(max(entity.prior, 0.0)),
                math.log1p(len(entity.aliases)),
                math.log1p(len(mention)),
                bool(entity.description),
                0.0 if neighbour is None else 1 / (1 + neighbour),
                math.log1p(tops[kb_id] - (rank == 0)),
            )
        return values

    def names(self, entity: Entity) -> list[str]:
        """Return the normalized names of an entity, its title first."""
        if entity.kb_id not in self._names:
            if len(self._names) >= _MAX_REMEMBERED:
                self._names.clear()
            names = [normalize_name(name) for name in entity.names[:_MAX_NAMES]]
            self._names[entity.kb_id] = names
        return self._names[entity.kb_id]

    def _similarity(self, mention: str, entity: Entity) -> tuple[float, ...]:
        key = (mention, entity.kb_id)
        if key not in self._similarities:
            if len(self._similarities) >= _MAX_REMEMBERED:
                self._similarities.clear()
            self._similarities[key] = name_similarity(mention, self.names(entity))
        return self._similarities[key]


def name_similarity(mention: str, names: Sequence[str]) -> tuple[float, ...]:
    """Compare a mention with the names of an entity, all normalized, the title first."""
    pieces = _trigrams(mention)
    return (
        max(fuzz.ratio(mention, name) for name in names) / 100,
        max(fuzz.token_sort_ratio(mention, name) for name in names) / 100,
        max(fuzz.token_set_ratio(mention, name) for name in names) / 100,
        fuzz.ratio(mention, names[0]) / 100,
        mention in names,
        mention == names[0],
        any(initials(name) == mention for name in names),
        max(_overlap(pieces, _trigrams(name)) for name in names),
    )


def initials(name: str) -> str:
    """Return the first letters of the words of a name."""
    return "".join(word[0] for word in _WORD.findall(name))


def most_similar_name(mention: str, entity: Entity) -> str:
    """Return the alias that looks most like the mention, "" if there is none."""
    if not entity.aliases:
        return ""
    name = normalize_name(mention)
    aliases = entity.aliases[:_MAX_NAMES]
    return max(aliases, key=lambda alias: fuzz.ratio(name, normalize_name(alias)))


def _trigrams(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[i : i + 3] for i in range(max(1, len(padded) - 2))}


def _overlap(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second)
