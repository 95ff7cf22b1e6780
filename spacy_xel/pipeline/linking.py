"""From ranked candidates to links: what every linking component does last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from spacy.tokens import Span

from spacy_xel.calibrate.calibrator import Calibrator
from spacy_xel.calibrate.coherence import Coherence
from spacy_xel.calibrate.evidence import Evidence, gather
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.mentions.same_name import cluster_mentions
from spacy_xel.types import NIL, CandidateBatch, Float32Array, Link, Query


@dataclass(frozen=True, slots=True)
class RankedMentions:
    """The mentions of documents, with their candidates as a component ranks them.

    spans (list[Sequence[Span]]): Per document.
    batch (CandidateBatch): One row per mention, of all documents.
    retriever_scores (ndarray): Scores of the same candidates before they were re-ranked, (n, k);
        None if they were not.
    """

    spans: list[Sequence[Span]]
    batch: CandidateBatch
    retriever_scores: Float32Array | None = None

    @property
    def queries(self) -> list[list[Query]]:
        """The mentions in their texts, per document."""
        return [mention_queries(spans) for spans in self.spans]


def mention_queries(spans: Sequence[Span]) -> list[Query]:
    """Return the mentions of one Doc as queries."""
    if not len(spans):
        return []
    text = spans[0].doc.text  # once: spaCy joins it anew each time
    return [Query(text, span.start_char, span.end_char) for span in spans]


class LinkMaker:
    """Decides which candidate a mention is linked to, how sure that is, and when to abstain.

    threshold (float): A mention whose best score is lower is NIL.
    calibrator (Calibrator): Turns scores into probabilities; None to leave them as they are.
    coherence (Coherence): Lets mentions of a document inform each other; None for not.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.0,
        calibrator: Calibrator | None = None,
        coherence: Coherence | None = None,
    ) -> None:
        self.threshold = threshold
        self.calibrator = calibrator
        self.coherence = coherence

    def __call__(self, kb: XelKnowledgeBase, mentions: RankedMentions) -> list[list[Link]]:
        """Return the links of each document."""
        mentions = self.prepare(kb, mentions)
        batch = mentions.batch
        queries = mentions.queries
        if self.calibrator is not None and len(batch.rows):
            probabilities = self.calibrator(self.evidence(kb, mentions))
            batch = CandidateBatch(batch.rows, probabilities.astype(np.float32))
        rows, scores = iter(batch.rows.tolist()), iter(batch.scores.tolist())
        result = []
        for spans, mentioned in zip(mentions.spans, queries, strict=True):
            links = [self._link(kb, span, next(rows), next(scores)) for span in spans]
            result.append(list(_with_nil_clusters(links, mentioned)))
        return result

    def prepare(self, kb: XelKnowledgeBase, mentions: RankedMentions) -> RankedMentions:
        """Return the candidates that are left, in the order that coherence gives them."""
        # A fitted retriever may still know entities that have been removed since.
        there = kb.has_rows(mentions.batch.rows) & ~np.isnan(mentions.batch.scores)
        order = np.argsort(~there, axis=1, kind="stable")
        there = np.take_along_axis(there, order, axis=1)
        rows = np.where(there, np.take_along_axis(mentions.batch.rows, order, axis=1), -1)
        scores = np.take_along_axis(mentions.batch.scores, order, axis=1)
        batch = CandidateBatch(
            rows.astype(np.int32), np.where(there, scores, -np.inf).astype(np.float32)
        )
        before = mentions.retriever_scores
        if before is not None:
            before = np.take_along_axis(before, order, axis=1)
        if self.coherence is not None and len(rows):
            if before is None:
                before = batch.scores
            batch, order = self.coherence(mentions.queries, batch)
            before = np.take_along_axis(before, order, axis=1)
        return RankedMentions(mentions.spans, batch, before)

    def evidence(self, kb: XelKnowledgeBase, prepared: RankedMentions) -> Evidence:
        """Return what calibration knows of candidates that have been prepared."""
        queries = [query for mentioned in prepared.queries for query in mentioned]
        names = self.calibrator is None or self.calibrator.needs_names
        return gather(kb, queries, prepared.batch, prepared.retriever_scores, names=names)

    def state(self) -> dict[str, Any]:
        """Return what has been learnt, as JSON."""
        return {"calibrator": None if self.calibrator is None else self.calibrator.to_json()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take back what state() returned; pipelines of before have no calibrator."""
        fields = state.get("calibrator")
        self.calibrator = None if fields is None else Calibrator.from_json(fields)

    def _link(self, kb: XelKnowledgeBase, span: Span, rows: list[int], scores: list[float]) -> Link:
        candidates = tuple(
            (kb.kb_id(row), score) for row, score in zip(rows, scores, strict=True) if row >= 0
        )
        linked = bool(candidates) and candidates[0][1] >= self.threshold
        return Link(
            start=span.start,
            end=span.end,
            kb_id=candidates[0][0] if linked else NIL,
            score=candidates[0][1] if candidates else 0.0,
            candidates=candidates,
            label=span.label_,
            kb_version=kb.revision,
        )


def _with_nil_clusters(links: Sequence[Link], queries: Sequence[Query]) -> Iterator[Link]:
    """Yield links; those that are NIL with the number of what they have in common."""
    if all(link.kb_id != NIL for link in links):
        yield from links
        return
    unlinked = [i for i, link in enumerate(links) if link.kb_id == NIL]
    labels = [links[i].label for i in unlinked]
    clusters = cluster_mentions([queries[i] for i in unlinked], labels)
    cluster_of = dict(zip(unlinked, clusters, strict=True))
    for i, link in enumerate(links):
        yield replace(link, nil_cluster=cluster_of[i]) if i in cluster_of else link
