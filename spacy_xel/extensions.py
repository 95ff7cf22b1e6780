"""What the package adds to Doc and Span: plain lists on the Doc, getters on the Span.

Registered on import, which spaCy does when it looks for factories.
"""

from bisect import bisect_left
from typing import Any

from spacy.tokens import Doc, Span

from spacy_xel.types import NIL

LinkRecord = dict[str, Any]


def register_extensions() -> None:
    """Register doc._.xel_links and the getters of spans; safe to call twice."""
    # A list of plain dicts, because Doc.to_bytes cannot write dataclasses.
    Doc.set_extension("xel_links", default=None, force=True)
    Span.set_extension("xel_kb_id", getter=_kb_id, force=True)
    Span.set_extension("xel_score", getter=_score, force=True)
    Span.set_extension("xel_candidates", getter=_candidates, force=True)
    Span.set_extension("xel_kb_version", getter=_kb_version, force=True)
    Span.set_extension("xel_nil_cluster", getter=_nil_cluster, force=True)


def link_record(span: Span) -> LinkRecord | None:
    """Return what the linker wrote about exactly this span, or None."""
    records: list[LinkRecord] = span.doc._.xel_links or []
    place = [span.start, span.end]
    position = bisect_left(records, place, key=lambda record: [record["start"], record["end"]])
    if position < len(records):
        record = records[position]
        if [record["start"], record["end"]] == place:
            return record
    return None


def _kb_id(span: Span) -> str:
    record = link_record(span)
    return NIL if record is None else str(record["kb_id"])


def _score(span: Span) -> float:
    record = link_record(span)
    return 0.0 if record is None else float(record["score"])


def _candidates(span: Span) -> list[tuple[str, float]]:
    record = link_record(span)
    return [] if record is None else [(kb_id, score) for kb_id, score in record["candidates"]]


def _kb_version(span: Span) -> str:
    record = link_record(span)
    return "" if record is None else str(record["kb_version"])


def _nil_cluster(span: Span) -> int | None:
    record = link_record(span)
    return None if record is None else record.get("nil_cluster")


register_extensions()
