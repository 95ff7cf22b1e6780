"""Scores of mention lists within a budget: features first, the encoder where they are unsure."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacy_xel.errors import raise_at_wrong
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.rerank.features import FeatureMaker
from spacy_xel.rerank.lists import MentionList, add_bracket_candidates
from spacy_xel.rerank.model import RerankModel
from spacy_xel.types import Float32Array

_LISTS_AT_A_TIME = 8  # between two looks at the clock


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is spent on a document.

    top_k (int): How many candidates the encoder compares per mention (R of XMRED).
    early_exit (float): A mention whose best candidate has this probability by its features alone
        is not shown to the encoder; None shows it all.
    budget_ms (float): Time of the encoder per document, the most unsure mentions first; None for
        no limit.
    quantize (bool): Use an encoder with weights of 8 bits.
    mixed_precision (bool): Multiply in 16 bits (bfloat16); scores then depend a little on which
        mentions are scored together.
    batch_size (int): How many pairs go through the encoder at a time.
    brackets (int): How many candidates a mention takes over from its neighbour in brackets.
    """

    top_k: int = 20
    early_exit: float | None = None
    budget_ms: float | None = None
    quantize: bool = False
    mixed_precision: bool = False
    batch_size: int = 64
    brackets: int = 5

    def __post_init__(self) -> None:
        checks = {
            "top_k": (self.top_k >= 1, "at least 1"),
            "early_exit": (
                self.early_exit is None or 0 <= self.early_exit <= 1, "from 0 to 1, or null"
            ),
            "budget_ms": (self.budget_ms is None or self.budget_ms >= 0, "at least 0, or null"),
            "batch_size": (self.batch_size >= 1, "at least 1"),
            "brackets": (self.brackets >= 0, "at least 0"),
        }  # fmt: skip
        raise_at_wrong(self, checks)


class ListScorer:
    """Score the candidates of documents.

    encoded (int): How many mentions were shown to the encoder so far.
    seen (int): How many were scored.
    """

    def __init__(
        self, kb: XelKnowledgeBase, model: RerankModel, features: FeatureMaker, budget: Budget
    ) -> None:
        self.kb = kb
        self.model = model
        self.features = features
        self.budget = budget
        self.encoded = 0
        self.seen = 0

    def __call__(self, documents: Sequence[list[MentionList]]) -> list[list[Float32Array]]:
        """Return scores per document, mention and candidate; brackets may add candidates."""
        lists: list[MentionList] = []
        values: list[Float32Array] = []
        for document in documents:
            add_bracket_candidates(document, self.budget.brackets)
            values.extend(self.features(document))
            lists.extend(document)
        scores = self._base_scores(values)
        unsure = self._unsure(scores)
        self.seen += len(lists)
        if self.budget.budget_ms is None:
            self._correct(lists, values, scores, unsure)
        else:
            self._correct_in_time(documents, lists, values, scores, unsure)
        result = iter(scores)
        return [[next(result) for _ in document] for document in documents]

    def _base_scores(self, values: list[Float32Array]) -> list[Float32Array]:
        if not values or not sum(map(len, values)):
            return [np.zeros(0, dtype=np.float32) for _ in values]
        scores = self.model.base_scores(np.concatenate(values))
        return np.split(scores.copy(), np.cumsum([len(part) for part in values])[:-1])

    def _unsure(self, scores: list[Float32Array]) -> list[int]:
        limit = 2.0 if self.budget.early_exit is None else self.budget.early_exit
        return [
            number
            for number, part in enumerate(scores)
            if len(part) > 1 and best_share(part) < limit
        ]

    def _correct(
        self,
        lists: list[MentionList],
        values: list[Float32Array],
        scores: list[Float32Array],
        chosen: list[int],
    ) -> None:
        """Let the encoder correct the best candidates of some lists."""
        pairs, features, places = [], [], []
        for number in chosen:
            best = np.argsort(-scores[number], kind="stable")[: self.budget.top_k]
            candidates = [lists[number].candidates[i][0] for i in best.tolist()]
            entities = [self.kb.get_entity(kb_id) for kb_id in candidates]
            pairs.extend(self.model.pairs(lists[number], entities))
            features.append(values[number][best])
            places.append(best)
        if not pairs:
            return
        corrections = self.model.corrections(
            pairs,
            np.concatenate(features),
            batch_size=self.budget.batch_size,
            quantize=self.budget.quantize,
            mixed_precision=self.budget.mixed_precision,
        )
        start = 0
        for number, best in zip(chosen, places, strict=True):
            scores[number][best] += corrections[start : start + len(best)]
            start += len(best)
            # What was not compared stays behind what was.
            others = np.setdiff1d(np.arange(len(scores[number])), best)
            if len(others):
                least = scores[number][best].min()
                scores[number][others] = np.minimum(scores[number][others], least)
        self.encoded += len(chosen)

    def _correct_in_time(
        self,
        documents: Sequence[list[MentionList]],
        lists: list[MentionList],
        values: list[Float32Array],
        scores: list[Float32Array],
        unsure: list[int],
    ) -> None:
        wanted = set(unsure)
        start = 0
        for document in documents:
            chosen = [i for i in range(start, start + len(document)) if i in wanted]
            chosen.sort(key=lambda i: best_share(scores[i]))
            start += len(document)
            end = time.perf_counter() + (self.budget.budget_ms or 0) / 1000
            for i in range(0, len(chosen), _LISTS_AT_A_TIME):
                if time.perf_counter() >= end:
                    break
                self._correct(lists, values, scores, chosen[i : i + _LISTS_AT_A_TIME])


def best_share(scores: Float32Array) -> float:
    """Return the probability of the best of a list, by softmax."""
    return float(1 / np.exp(scores - scores.max()).sum())
