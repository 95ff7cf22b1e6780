"""The only code that writes links to a Doc."""

from collections.abc import Sequence

from spacy.tokens import Doc, Span, SpanGroup

import spacy_xel.extensions  # noqa: F401  # registers doc._.xel_links
from spacy_xel.types import Link

SPANS_KEY = "xel"


def annotate_links(doc: Doc, links: Sequence[Link]) -> None:
    """Write links to a Doc: ent.kb_id_, doc.spans["xel"] and doc._.xel_links.

    doc (Doc): The document; its entities keep their boundaries and labels.
    links (Sequence[Link]): One per mention.
    """
    ordered = sorted(links, key=lambda link: (link.start, link.end))
    ents = {(ent.start, ent.end) for ent in doc.ents}
    spans = []
    for link in ordered:
        spans.append(Span(doc, link.start, link.end, label=link.label, kb_id=link.kb_id))
        if (link.start, link.end) in ents:
            for token in doc[link.start : link.end]:
                token.ent_kb_id_ = link.kb_id
    doc.spans[SPANS_KEY] = SpanGroup(doc, name=SPANS_KEY, spans=spans)
    doc._.xel_links = [
        {
            "start": link.start,
            "end": link.end,
            "kb_id": link.kb_id,
            "score": link.score,
            "candidates": [[kb_id, score] for kb_id, score in link.candidates],
            "label": link.label,
            "kb_version": link.kb_version,
            "nil_cluster": link.nil_cluster,
        }
        for link in ordered
    ]


def read_links(doc: Doc) -> list[Link]:
    """Return the links that annotate_links wrote."""
    return [
        Link(
            start=record["start"],
            end=record["end"],
            kb_id=record["kb_id"],
            score=record["score"],
            candidates=tuple((kb_id, score) for kb_id, score in record["candidates"]),
            label=record["label"],
            kb_version=record["kb_version"],
            nil_cluster=record.get("nil_cluster"),
        )
        for record in doc._.xel_links or []
    ]


def annotate_mentions(
    doc: Doc, spans: Sequence[tuple[int, int]], label: str, spans_key: str | None
) -> None:
    """Write mentions to doc.ents beside those already there, or to a span group."""
    found = [Span(doc, start, end, label=label) for start, end in spans]
    if spans_key is None:
        if found:
            doc.set_ents(found, default="unmodified")
    else:
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=found)
