"""Annotated texts as spaCy Docs, and as DocBin files (.spacy)."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.util import filter_spans

from spacy_xel.errors import Errors, Warnings
from spacy_xel.formats.faults import Faults
from spacy_xel.types import ID_SEPARATOR, NIL, AnnotatedText, Mention

GOLD_SPANS_KEY = "xel"
DEFAULT_LABEL = "ENTITY"
_DOC_ID = "xel_id"
_LANG = "xel_lang"
_OFFSETS = "xel_offsets"  # character offsets of mentions that are not on token boundaries


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read a DocBin, which can be read as a whole or not at all."""
    try:
        docs = DocBin().from_disk(path)
    except Exception as error:  # zlib, msgpack and spaCy each raise their own
        message = Errors.XE015.format(
            path=path, format="a DocBin", problem=error, known="jsonl, spacy, pubtator"
        )
        raise ValueError(message) from error
    vocab = spacy.blank("xx").vocab
    for doc in docs.get_docs(vocab):
        yield text_of_doc(doc)


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write a DocBin, each text tokenized by its language's blank pipeline."""
    pipelines: dict[str, Language] = {}
    docs = DocBin(store_user_data=True)
    misfits = Misfits()
    for text in texts:
        if text.lang not in pipelines:
            pipelines[text.lang] = _blank_pipeline(text.lang)
        docs.add(doc_of_text(text, pipelines[text.lang], misfits))
    docs.to_disk(path)
    misfits.warn("the corpus")


@dataclass
class Misfits:
    """Mentions that a Doc cannot hold as they are, counted over many texts."""

    mentions: int = 0
    misaligned: int = 0
    overlapping: int = 0

    def warn(self, where: str) -> None:
        """Tell once what there was."""
        if self.misaligned:
            what = "they were widened to them"
            message = Warnings.XW001.format(
                count=self.misaligned, total=self.mentions, where=where, what=what
            )
            warnings.warn(message, stacklevel=3)
        if self.overlapping:
            message = Warnings.XW002.format(
                count=self.overlapping, total=self.mentions, where=where
            )
            warnings.warn(message, stacklevel=3)


def doc_of_text(text: AnnotatedText, nlp: Language, misfits: Misfits | None = None) -> Doc:
    """Return a gold-standard Doc: all mentions in doc.spans["xel"], those that fit in doc.ents.

    A mention that does not lie on token boundaries is widened to them; its own offsets are kept.

    misfits (Misfits): Counts such mentions, and those that overlap others.
    """
    doc = nlp.make_doc(text.text)
    spans: list[Span] = []
    offsets = {}
    for mention in text.mentions:
        kb_id = ID_SEPARATOR.join(mention.kb_ids) or NIL
        span = widened_span(doc, mention, kb_id)
        if (span.start_char, span.end_char) != (mention.start, mention.end):
            offsets[str(len(spans))] = [mention.start, mention.end]
        spans.append(span)
    doc.spans[GOLD_SPANS_KEY] = SpanGroup(doc, name=GOLD_SPANS_KEY, spans=spans)
    doc.user_data[_DOC_ID] = text.doc_id
    doc.user_data[_LANG] = text.lang
    doc.user_data[_OFFSETS] = offsets
    ents = [span for span in filter_spans(spans) if span.text.strip()]
    # spaCy takes an entity without a label for none at all.
    labels = [span.label or DEFAULT_LABEL for span in ents]
    doc.ents = [
        Span(doc, span.start, span.end, label, kb_id=span.kb_id)
        for span, label in zip(ents, labels, strict=True)
    ]
    if misfits is not None:
        misfits.mentions += len(spans)
        misfits.misaligned += len(offsets)
        misfits.overlapping += len(spans) - len(ents)
    return doc


def widened_span(doc: Doc, mention: Mention, kb_id: str = "") -> Span:
    """Return the smallest span of whole tokens around a mention."""
    span = doc.char_span(mention.start, mention.end, mention.label, kb_id, alignment_mode="expand")
    assert span is not None, "a mention lies within its text"
    return span


def text_of_doc(doc: Doc) -> AnnotatedText:
    """Return the annotations of a Doc: doc.spans["xel"] if there is such a group, else doc.ents."""
    offsets = doc.user_data.get(_OFFSETS, {})
    spans = doc.spans.get(GOLD_SPANS_KEY, doc.ents)
    mentions = []
    for i, span in enumerate(spans):
        start, end = offsets.get(str(i), (span.start_char, span.end_char))
        mentions.append(Mention(start, end, split_ids(span.kb_id_), span.label_))
    doc_id = str(doc.user_data.get(_DOC_ID, ""))
    lang = str(doc.user_data.get(_LANG, doc.lang_))
    return AnnotatedText(doc_id, doc.text, tuple(mentions), lang)


def split_ids(kb_id: str) -> tuple[str, ...]:
    """Return the ids in a kb_id_: none for NIL, several for a composite mention."""
    return () if kb_id in ("", NIL) else tuple(kb_id.split(ID_SEPARATOR))


def _blank_pipeline(lang: str) -> Language:
    """Return a tokenizer for a language, or for any if there is none or it is not installed."""
    try:
        return spacy.blank(lang or "xx")
    except ImportError as error:
        reason = str(error).splitlines()[0][:200]
        warnings.warn(Warnings.XW005.format(lang=lang, reason=reason), stacklevel=3)
        return spacy.blank("xx")
