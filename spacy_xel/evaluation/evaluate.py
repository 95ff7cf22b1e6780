"""A pipeline run over an annotated corpus and scored."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import filter_spans

from spacy_xel.errors import Errors
from spacy_xel.evaluation.counts import Group, Prediction, ScoredText, count_texts
from spacy_xel.evaluation.scores import Interval, Scores, intervals, scores
from spacy_xel.extensions import link_record
from spacy_xel.formats.docbin import DEFAULT_LABEL, split_ids, widened_span
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.sources import span_source
from spacy_xel.progress import progress
from spacy_xel.types import AnnotatedText, Mention

LINKERS = ("xel_retriever", "xel_reranker", "xel_reader", "entity_linker")
_LINKED_SPANS = "xel"
GOLD_SPANS = "xel_gold_mentions"
_NOT_LINKED = Prediction(0, 0)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of a pipeline on a corpus, their confidence intervals, and the sizes of things."""

    scores: Scores
    intervals: dict[str, Interval]
    sizes: dict[str, int] = field(default_factory=dict)
    speed: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        named = {name: list(interval) for name, interval in self.intervals.items()}
        return {
            "scores": self.scores,
            "intervals": named,
            "sizes": self.sizes,
            "speed": self.speed,
        }


def evaluate(
    nlp: Language,
    corpus: Iterable[AnnotatedText],
    *,
    gold_mentions: bool = False,
    training_ids: frozenset[str] | None = None,
    batch_size: int = 64,
    seed: int = 0,
) -> Evaluation:
    """Run a pipeline over a corpus and score its links.

    gold_mentions (bool): Give the pipeline the annotated mentions instead of letting it find them.
    training_ids (frozenset[str]): Ids seen in training: scores are split by it.
    """
    check_linkers(nlp)
    texts = list(corpus)
    kb = find_kb(nlp)
    linked = linked_texts(nlp, texts, gold_mentions=gold_mentions, batch_size=batch_size)
    start = time.perf_counter()
    scored = [
        ScoredText(text.text, text.mentions, predictions)
        for text, predictions in progress(linked, "Evaluating", total=len(texts))
    ]
    speed = _speed(scored, time.perf_counter() - start)
    counts = count_texts(scored, _groups(kb, training_ids))
    return Evaluation(scores(counts), intervals(counts, seed=seed), _sizes(texts, kb), speed)


def linked_texts(
    nlp: Language, texts: Iterable[AnnotatedText], *, gold_mentions: bool, batch_size: int = 64
) -> Iterator[tuple[AnnotatedText, tuple[Prediction, ...]]]:
    """Run a pipeline over texts; yield each with its links.

    gold_mentions (bool): Link the annotated mentions; there is a prediction for each, in order.
    """
    with use_gold_mentions(nlp) if gold_mentions else nullcontext():
        pairs = ((make_doc(nlp, text, gold_mentions), text) for text in texts)
        for doc, text in nlp.pipe(pairs, as_tuples=True, batch_size=batch_size):
            yield text, _predictions(doc, text, gold_mentions)


def check_linkers(nlp: Language) -> None:
    """Raise if a pipeline has no component that links."""
    if not any(nlp.get_pipe_meta(name).factory in LINKERS for name in nlp.pipe_names):
        raise ValueError(Errors.XE021.format(pipeline=nlp.meta.get("name"), expected=LINKERS))


def find_kb(nlp: Language) -> XelKnowledgeBase | None:
    """Return the first knowledge base of a pipeline's components."""
    for _, component in nlp.pipeline:
        kb = getattr(component, "_kb", None) or getattr(component, "kb", None)
        if isinstance(kb, XelKnowledgeBase):
            return kb
    return None


def predictions_of_doc(doc: Doc) -> tuple[Prediction, ...]:
    """Return the linked mentions of a Doc: doc.spans["xel"] if there is such a group, else ents."""
    spans = doc.spans.get(_LINKED_SPANS, doc.ents)
    return tuple(
        Prediction(span.start_char, span.end_char, split_ids(span.kb_id_), _candidates(span))
        for span in spans
    )


def _candidates(span: Any) -> tuple[str, ...]:
    record = link_record(span)
    return () if record is None else tuple(kb_id for kb_id, _ in record["candidates"])


def make_doc(nlp: Language, text: AnnotatedText, gold_mentions: bool) -> Doc:
    """Return a text as a Doc, with the annotated mentions in doc.spans[GOLD_SPANS] and doc.ents."""
    doc = nlp.make_doc(text.text)
    if gold_mentions:
        spans = [widened_span(doc, mention) for mention in text.mentions]
        doc.spans[GOLD_SPANS] = SpanGroup(doc, name=GOLD_SPANS, spans=spans)
        # spaCy's entity_linker reads doc.ents, which cannot hold mentions that overlap.
        doc.ents = [
            Span(doc, span.start, span.end, span.label or DEFAULT_LABEL)
            for span in filter_spans(spans)
            if span.text.strip()
        ]
    return doc


def _predictions(doc: Doc, text: AnnotatedText, gold_mentions: bool) -> tuple[Prediction, ...]:
    predictions = predictions_of_doc(doc)
    if not gold_mentions:
        return predictions
    # Mentions were widened to token boundaries: give the links back to the mentions as annotated.
    by_place = {(p.start, p.end): p for p in predictions}
    found = []
    for span, mention in zip(doc.spans[GOLD_SPANS], text.mentions, strict=True):
        link = by_place.get((span.start_char, span.end_char), _NOT_LINKED)
        found.append(Prediction(mention.start, mention.end, link.kb_ids, link.candidates))
    return tuple(found)


@contextmanager
def use_gold_mentions(nlp: Language) -> Iterator[None]:
    """Make the linking components read the annotated mentions, and nothing look for others."""
    finders = [
        name
        for name in nlp.pipe_names
        if nlp.get_pipe_meta(name).factory in ("xel_mentions", "ner", "entity_ruler", "span_ruler")
    ]
    linkers = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "mentions")]
    sources = [pipe.mentions for pipe in linkers]
    try:
        for pipe in linkers:
            pipe.mentions = span_source(GOLD_SPANS)
        with nlp.select_pipes(disable=finders):
            yield
    finally:
        for pipe, source in zip(linkers, sources, strict=True):
            pipe.mentions = source


def _groups(kb: XelKnowledgeBase | None, training_ids: frozenset[str] | None) -> list[Group]:
    groups: list[Group] = []
    if kb is not None:

        def by_ambiguity(text: str, mention: Mention) -> str:
            n_entities = len(kb.lookup(text[mention.start : mention.end]))
            return ("unknown_name", "unambiguous")[n_entities] if n_entities < 2 else "ambiguous"

        groups.append(by_ambiguity)
    if training_ids is not None:

        def by_training(text: str, mention: Mention) -> str:
            return "unseen" if training_ids.isdisjoint(mention.kb_ids) else "seen"

        groups.append(by_training)
    return groups


def _speed(texts: Sequence[ScoredText], seconds: float) -> dict[str, float]:
    words = sum(len(text.text.split()) for text in texts)
    mentions = sum(len(text.predicted) for text in texts)
    return {
        "words_per_second": round(words / seconds),
        "mentions_per_second": round(mentions / seconds),
    }


def _sizes(texts: Sequence[AnnotatedText], kb: XelKnowledgeBase | None) -> dict[str, int]:
    mentions = [mention for text in texts for mention in text.mentions]
    sizes = {
        "documents": len(texts),
        "mentions": len(mentions),
        "nil_mentions": sum(not mention.kb_ids for mention in mentions),
        "composite_mentions": sum(len(mention.kb_ids) > 1 for mention in mentions),
        "distinct_names": len(
            {normalize_name(text.text[m.start : m.end]) for text in texts for m in text.mentions}
        ),
    }
    if kb is not None:
        sizes["mentions_not_in_kb"] = sum(
            bool(m.kb_ids) and not any(kb.contains_entity(kb_id) for kb_id in m.kb_ids)
            for m in mentions
        )
    return sizes
