"""A linking component's candidates for an annotated corpus: what calibration is fitted to."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_xel.calibrate.calibrator import Calibrator
from spacy_xel.calibrate.evidence import Evidence, gather
from spacy_xel.calibrate.held_out import HeldOut
from spacy_xel.errors import Errors
from spacy_xel.evaluation.evaluate import GOLD_SPANS, make_doc, use_gold_mentions
from spacy_xel.pipeline.linking import LinkMaker
from spacy_xel.progress import progress
from spacy_xel.types import AnnotatedText

Place = tuple[int, int]


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
    parts: list[tuple[Evidence, np.ndarray]] = []
    gold: list[tuple[int, tuple[str, ...] | None]] = []  # of each mention: document, ids
    with use_gold_mentions(nlp) if gold_mentions else nullcontext():
        before = nlp.pipe_names[: nlp.pipe_names.index(name)]
        with nlp.select_pipes(enable=before):
            docs = nlp.pipe(make_doc(nlp, text, gold_mentions) for text in texts)
            pairs = enumerate(zip(docs, progress(texts, "Linking", total=len(texts)), strict=True))
            for batch in minibatch(pairs, batch_size):  # type: ignore[no-untyped-call]
                docs_of_batch = [doc for _, (doc, _) in batch]
                mentions = component.linking.prepare(component.kb, component.rank(docs_of_batch))
                here = [
                    (number, ids.get((span.start_char, span.end_char)))
                    for (number, (doc, text)), spans in zip(batch, mentions.spans, strict=True)
                    for ids in [_gold_ids(doc, text, gold_mentions)]
                    for span in spans
                ]
                queries = [query for mentioned in mentions.queries for query in mentioned]
                ranked, scores = mentions.batch, mentions.retriever_scores
                ranks = _gold_ranks(component.kb, ranked.rows, [ids for _, ids in here])
                parts.append((gather(component.kb, queries, ranked, scores), ranks))
                gold.extend(here)
    return _held_out(parts, gold, texts)


def calibrate(nlp: Language, name: str, method: str, held_out: HeldOut) -> None:
    """Give a component a calibrator that is fitted to all there is."""
    component: Any = nlp.get_pipe(name)
    component.linking.calibrator = Calibrator.fit(method, held_out.evidence, held_out.gold_ranks)


def set_threshold(nlp: Language, name: str, threshold: float) -> None:
    """Set a component's threshold, also in the config that is saved with the pipeline."""
    component: Any = nlp.get_pipe(name)
    component.linking.threshold = threshold
    nlp.get_pipe_config(name)["threshold"] = threshold


def _gold_ids(doc: Doc, text: AnnotatedText, gold_mentions: bool) -> dict[Place, tuple[str, ...]]:
    """Return the ids of the annotated mentions by their place in the Doc."""
    places: Iterable[Place] = ((mention.start, mention.end) for mention in text.mentions)
    if gold_mentions:  # widened to token boundaries
        places = ((span.start_char, span.end_char) for span in doc.spans[GOLD_SPANS])
    ids: dict[Place, tuple[str, ...]] = {}
    for place, mention in zip(places, text.mentions, strict=True):
        ids[place] = (*ids.get(place, ()), *mention.kb_ids)
    return ids


def _gold_ranks(
    kb: Any, rows: np.ndarray, gold_ids: Sequence[tuple[str, ...] | None]
) -> np.ndarray:
    """Return where in its list of candidates each mention's right one is; -1 for nowhere."""
    ranks = np.full(len(gold_ids), -1, dtype=np.int64)
    for i, (candidates, kb_ids) in enumerate(zip(rows.tolist(), gold_ids, strict=True)):
        wanted = {kb.row(kb_id) for kb_id in kb_ids or ()} - {-1}
        ranks[i] = next((j for j, row in enumerate(candidates) if row in wanted), -1)
    return ranks


def _held_out(
    parts: Sequence[tuple[Evidence, np.ndarray]],
    gold: Sequence[tuple[int, tuple[str, ...] | None]],
    texts: Sequence[AnnotatedText],
) -> HeldOut:
    if not gold:
        raise ValueError(Errors.XE082)
    linked = [bool(mention.kb_ids) for text in texts for mention in text.mentions]
    return HeldOut(
        evidence=Evidence.join([evidence for evidence, _ in parts]),
        gold_ranks=np.concatenate([ranks for _, ranks in parts]),
        documents=np.array([number for number, _ in gold], dtype=np.int64),
        annotated=np.array([ids is not None for _, ids in gold], dtype=np.bool_),
        nil=np.array([ids == () for _, ids in gold], dtype=np.bool_),
        n_linked=sum(linked),
        n_nil=len(linked) - sum(linked),
    )
