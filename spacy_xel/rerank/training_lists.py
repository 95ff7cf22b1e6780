"""Candidates for the gold mentions of training texts, from retrievers that have not seen them."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.rerank.lists import MentionList
from spacy_xel.types import AnnotatedText, CandidateBatch, Query, Retriever


def training_candidates(
    kb: XelKnowledgeBase,
    texts: Sequence[AnnotatedText],
    asked: Sequence[AnnotatedText],
    retriever: Retriever,
    make_retriever: Callable[[], Retriever],
    *,
    k: int,
    folds: int,
) -> CandidateBatch:
    """Return candidates for all mentions of the texts asked about, in order.

    A retriever knows the answers to what it was fitted on: its scores there say nothing about its
    scores elsewhere, and a re-ranker that learns from them trusts it too much. So each part of
    the texts is answered by a retriever that was fitted to the others.

    texts (Sequence[AnnotatedText]): What retrievers are fitted to; includes those asked about.
    retriever (Retriever): The one fitted to all texts, used if folds is 1.
    make_retriever (Callable): Makes another that is not fitted yet.
    """
    queries = [[Query(t.text, m.start, m.end) for m in t.mentions] for t in asked]
    if folds < 2 or len(texts) < folds:
        return retriever([query for of_text in queries for query in of_text], k)
    parts = np.array([_part(text, folds) for text in asked])
    answers: list[CandidateBatch | None] = [None] * len(asked)
    for part in range(folds):
        chosen = np.flatnonzero(parts == part).tolist()
        if not chosen:
            continue
        fitted = make_retriever()
        fitted.initialize(kb, [text for text in texts if _part(text, folds) != part])
        batch = fitted([query for i in chosen for query in queries[i]], k)
        start = 0
        for i in chosen:
            end = start + len(queries[i])
            answers[i] = CandidateBatch(batch.rows[start:end], batch.scores[start:end])
            start = end
    found = [answer for answer in answers if answer is not None]
    return CandidateBatch(
        np.concatenate([answer.rows for answer in found]),
        np.concatenate([answer.scores for answer in found]),
    )


def text_lists(
    kb: XelKnowledgeBase, text: AnnotatedText, batch: CandidateBatch, start: int
) -> list[MentionList]:
    """Return the lists of a text, whose candidates begin at a place of a batch."""
    queries = [Query(text.text, mention.start, mention.end) for mention in text.mentions]
    lists = []
    for number, (mention, query, long) in enumerate(
        zip(text.mentions, queries, spell_out(queries), strict=True)
    ):
        rows, scores = batch.rows[start + number].tolist(), batch.scores[start + number].tolist()
        candidates = [
            (kb.kb_id(row), score)
            for row, score in zip(rows, scores, strict=True)
            if kb.has_row(row)
        ]
        lists.append(MentionList(query, long, mention.label, candidates, frozenset(mention.kb_ids)))
    return lists


def _part(text: AnnotatedText, folds: int) -> int:
    """Return the part that a text belongs to: the same whenever the text is the same."""
    return hashlib.sha256(text.text.encode("utf8", "replace")).digest()[0] % folds
