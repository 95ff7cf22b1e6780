"""Where the linking components find the mentions of a Doc."""

from collections.abc import Sequence

from spacy.tokens import Doc, Span

from spacy_xel.errors import Errors

ENTS = "ents"
_GROUP_PREFIX = "spans:"


def check_source(source: str) -> str:
    """Return a mention source if it is one: "ents", or "spans:KEY" for doc.spans["KEY"]."""
    if source != ENTS and not source.removeprefix(_GROUP_PREFIX) != source:
        raise ValueError(Errors.XE018.format(value=source))
    return source


def get_mentions(doc: Doc, source: str) -> Sequence[Span]:
    """Return the mentions of a Doc, in the order of the text; a missing span group has none."""
    if source == ENTS:
        return doc.ents
    group = doc.spans.get(source.removeprefix(_GROUP_PREFIX), ())
    return sorted(group, key=lambda span: (span.start, span.end))


def span_source(key: str) -> str:
    """Return the mention source for doc.spans[key]."""
    return f"{_GROUP_PREFIX}{key}"
