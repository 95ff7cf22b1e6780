"""CirrusSearch dumps of Wikipedia: two lines per page, one that says where it goes, and the page.

The page has its plain text, its redirects, the number of links to it, its item of Wikidata and, in
`source_text`, its wikitext: links and contexts are read from that if texts are wanted. The dump
does not say what the wiki calls its namespaces, so their English names are taken.
"""

from collections.abc import Iterator
from typing import Any, cast

from spacy_xel.formats.reading import (
    Article,
    Item,
    Options,
    Reading,
    list_field,
    make_entity,
    text_field,
)  # fmt: skip
from spacy_xel.formats.wiki_titles import page_kind, templates_of
from spacy_xel.formats.wikitext import parse_wikitext
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import AnnotatedText, Entity, Mention

_MAX_DESCRIPTION = 2000  # the opening text has several paragraphs, run together


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read articles. Disambiguation pages and lists are left out, and counted."""
    for fields in reading.json_objects():
        if "index" in fields and "title" not in fields:
            continue
        try:
            item: Item | None = _entity(fields, options.ids, reading)
            if item is not None and options.texts:
                item = _article(cast(Entity, item), fields)
        except BadLine as error:
            reading.problem(error)
            continue
        if item is not None:
            yield item


def _article(entity: Entity, fields: dict[str, Any]) -> Article:
    """Return an entity with the text that its wikitext makes."""
    parsed = parse_wikitext(text_field(fields, "source_text"))
    mentions = tuple(Mention(link.start, link.end, (link.target,)) for link in parsed.links)
    return Article(
        entity,
        AnnotatedText(entity.title, parsed.text, mentions, text_field(fields, "language")),
        tuple((link.target, link.surface) for link in parsed.loose_links),
        entity.aliases,
    )


def _entity(fields: dict[str, Any], ids: str, reading: Reading) -> Entity | None:
    if fields.get("namespace") != 0:
        reading.left_out["pages of other namespaces"] += 1
        return None
    title = text_field(fields, "title")
    kind = page_kind(title, templates_of(map(str, list_field(fields, "template"))))
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
