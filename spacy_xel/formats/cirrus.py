"""CirrusSearch dumps of Wikipedia: two lines per page, one that says where it goes, and the page.

The page has its plain text, its redirects and the number of links to it, but not the links in the
text: names that only links have, and contexts, come from the XML dump (wikipedia).
"""

from collections.abc import Iterator
from typing import Any

from spacy_xel.formats.reading import (
    Item,
    Options,
    Reading,
    list_field,
    make_entity,
    text_field,
)  # fmt: skip
from spacy_xel.formats.wiki_titles import page_kind
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import Entity

_MAX_DESCRIPTION = 2000  # the opening text has several paragraphs, run together


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read articles. Disambiguation pages and lists are left out, and counted."""
    for fields in reading.json_objects():
        if "index" in fields and "title" not in fields:
            continue
        try:
            entity = _entity(fields, options.ids, reading)
        except BadLine as error:
            reading.problem(error)
            continue
        if entity is not None:
            yield entity


def _entity(fields: dict[str, Any], ids: str, reading: Reading) -> Entity | None:
    if fields.get("namespace") != 0:
        reading.left_out["pages of other namespaces"] += 1
        return None
    title = text_field(fields, "title")
    templates = [str(name).partition(":")[2] for name in list_field(fields, "template")]
    kind = page_kind(title, templates)
    if kind != "article":
        reading.left_out[f"{kind}s"] += 1
        return None
    kb_id = title
    if ids == "wikidata":
        kb_id = text_field(fields, "wikibase_item")
        if not kb_id:
            reading.left_out["articles without an item of Wikidata"] += 1
            return None
    redirects = list_field(fields, "redirect")
    opening = text_field(fields, "opening_text") or text_field(fields, "text")
    links = fields.get("incoming_links") or 0
    if not isinstance(links, int | float):
        raise BadLine(f"'incoming_links' must be a number, but got {links!r}")
    return make_entity(
        kb_id,
        title,
        (
            text_field(r, "title")
            for r in redirects
            if isinstance(r, dict) and not r.get("namespace")
        ),
        description=opening[:_MAX_DESCRIPTION],
        prior=float(links),
    )
