"""A linking component's candidates for an annotated corpus: what calibration is fitted to."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_xel.calibrate.calibrator import Calibrator
from spacy_xel.calibrate.evidence import Evidence, gather
from spacy_xel.calibrate.held_out import HeldOut
from spacy_xel.errors import Errors
from spacy_xel.evaluation.evaluate import GOLD_SPANS, make_doc, use_gold_mentions
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.pipeline.linking import LinkMaker, RankedMentions
from spacy_xel.progress import progress
from spacy_xel.types import AnnotatedText, Int32Array, Int64Array

Place = tuple[int, int]
KbIds = tuple[str, ...]


def linking_component(nlp: Language, name: str | None = None) -> str:
    """Return the name of the component to calibrate: the one given, or the last that links."""
    names = [
        pipe_name
        for pipe_name, pipe in nlp.pipeline
        if isinstance(getattr(pipe, "linking", None), LinkMaker)
    ]
    if not names or (name is not None and name not in names):
        raise ValueError(Errors.XE086.format(name=name or "", known=", ".join(names) or "none"))
    return name or names[-1]


def collect(
    nlp: Language,
    name: str,
    texts: Sequence[AnnotatedText],
    *,
    gold_mentions: bool,
    batch_size: int = 64,
) -> HeldOut:
    """Run a pipeline up to a linking component and compare its candidates with the annotation.

    name (str): The component.
    texts (Sequence[AnnotatedText]): Texts that it was not trained on.
    gold_mentions (bool): Link the annotated mentions instead of those that the pipeline finds, of
        which any that is not annotated counts as wrong.
    """
    component: Any = nlp.get_pipe(name)
    parts: list[_Part] = []
    with use_gold_mentions(nlp) if gold_mentions else nullcontext():
        before = nlp.pipe_names[: nlp.pipe_names.index(name)]
        with nlp.select_pipes(enable=before):
            docs = nlp.pipe(make_doc(nlp, text, gold_mentions) for text in texts)
            pairs = zip(docs, progress(texts, "Linking", total=len(texts)), strict=True)
            batches: Iterable[list[tuple[Doc, AnnotatedText]]]
            batches = minibatch(pairs, batch_size)  # type: ignore[no-untyped-call]
            first = 0
            for batch in batches:
                gold = [_gold_ids(doc, text, gold_mentions) for doc, text in batch]
                parts.append(_rank(component, [doc for doc, _ in batch], gold, first))
                first += len(batch)
    return _held_out(parts, texts)


def calibrate(nlp: Language, name: str, method: str, held_out: HeldOut) -> None:
    """Give a component a calibrator that is fitted to all there is."""
    component: Any = nlp.get_pipe(name)
    component.linking.calibrator = Calibrator.fit(method, held_out.evidence, held_out.gold_ranks)


def set_threshold(nlp: Language, name: str, threshold: float) -> None:
    """Set a component's threshold, also in the config that is saved with the pipeline."""
    component: Any = nlp.get_pipe(name)
    component.linking.threshold = threshold
    nlp.get_pipe_config(name)["threshold"] = threshold


def _gold_ids(doc: Doc, text: AnnotatedText, gold_mentions: bool) -> dict[Place, KbIds]:
    """Return the ids of the annotated mentions by their place in the Doc."""
    places: Iterable[Place] = ((mention.start, mention.end) for mention in text.mentions)
    if gold_mentions:  # widened to token boundaries
        places = ((span.start_char, span.end_char) for span in doc.spans[GOLD_SPANS])
    ids: dict[Place, KbIds] = {}
    for place, mention in zip(places, text.mentions, strict=True):
        ids[place] = (*ids.get(place, ()), *mention.kb_ids)
    return ids


class _Part(NamedTuple):
    """What a batch of documents gives; one entry per mention."""

    evidence: Evidence
    gold_ranks: Int64Array
    documents: list[int]
    gold_ids: list[KbIds | None]  # None if the mention is not annotated


def _rank(
    component: Any, docs: list[Doc], gold: Sequence[dict[Place, KbIds]], first_document: int
) -> _Part:
    """Let a component rank candidates, and look for the right ones among them."""
    kb: XelKnowledgeBase = component.kb
    mentions: RankedMentions = component.linking.prepare(kb, component.rank(docs))
    documents, gold_ids = [], []
    for number, (spans, ids) in enumerate(zip(mentions.spans, gold, strict=True)):
        for span in spans:
            documents.append(first_document + number)
            gold_ids.append(ids.get((span.start_char, span.end_char)))
    queries = [query for mentioned in mentions.queries for query in mentioned]
    evidence = gather(kb, queries, mentions.batch, mentions.retriever_scores)
    return _Part(evidence, _gold_ranks(kb, mentions.batch.rows, gold_ids), documents, gold_ids)


def _gold_ranks(
    kb: XelKnowledgeBase, rows: Int32Array, gold_ids: Sequence[KbIds | None]
) -> Int64Array:
    """Return where in its list of candidates each mention's right one is; -1 for nowhere."""
    ranks = np.full(len(gold_ids), -1, dtype=np.int64)
    for i, (candidates, kb_ids) in enumerate(zip(rows.tolist(), gold_ids, strict=True)):
        wanted = {kb.row(kb_id) for kb_id in kb_ids or ()} - {-1}
        ranks[i] = next((j for j, row in enumerate(candidates) if row in wanted), -1)
    return ranks


def _held_out(parts: Sequence[_Part], texts: Sequence[AnnotatedText]) -> HeldOut:
    gold_ids = [ids for part in parts for ids in part.gold_ids]
    if not gold_ids:
        raise ValueError(Errors.XE082)
    linked = [bool(mention.kb_ids) for text in texts for mention in text.mentions]
    return HeldOut(
        evidence=Evidence.join([part.evidence for part in parts]),
        gold_ranks=np.concatenate([part.gold_ranks for part in parts]),
        documents=np.concatenate([np.array(part.documents, dtype=np.int64) for part in parts]),
        annotated=np.array([ids is not None for ids in gold_ids], dtype=np.bool_),
        nil=np.array([ids == () for ids in gold_ids], dtype=np.bool_),
        n_linked=sum(linked),
        n_nil=len(linked) - sum(linked),
    )
