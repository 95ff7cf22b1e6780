"""Wikidata's JSON dumps: a JSON array with one item per line.

Names come from labels, aliases and sitelinks in the languages chosen; types are the ids in
"instance of" (P31); the prior is the number of sitelinks. Disambiguation pages, lists, categories
and templates are about no one thing and are left out, as are properties and lexemes.
"""

from collections.abc import Iterator
from typing import Any

from spacy_xel.formats.reading import (
    Item,
    Options,
    Reading,
    make_entity,
    object_field,
    objects_field,
    text_field,
)  # fmt: skip
from spacy_xel.jsonlines import BadLine, parse_json_object
from spacy_xel.types import Entity

INSTANCE_OF = "P31"
ANY_LANGUAGE = "mul"  # labels that hold in every language
_NOT_ENTITIES = {
    "Q4167410": "disambiguation pages",
    "Q22808320": "disambiguation pages",
    "Q13406463": "lists",
    "Q4167836": "categories",
    "Q11266439": "templates",
    "Q15184295": "modules",
}

# Wikipedias whose name is not the code of their language.
_WIKIS = {
    "be-tarask": "be-x-old", "gsw": "als", "lzh": "zh-classical", "nan": "zh-min-nan", "nb": "no",
    "rup": "roa-rup", "sgs": "bat-smg", "vro": "fiu-vro", "yue": "zh-yue",
}  # fmt: skip


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read items; those without a name in the languages chosen are left out, and counted."""
    for line in reading.lines():
        data = line.data.strip().removesuffix(b",")
        if data in (b"[", b"]"):
            continue
        try:
            fields = parse_json_object(data)
            reason = _reason_to_leave_out(fields)
            entity = None if reason else _entity(fields, options)
        except BadLine as error:
            reading.problem(error)
            continue
        if entity is not None:
            yield entity
        else:
            missing = "page" if options.only_pages else "name"
            reading.left_out[reason or f"items without a {missing} in the languages chosen"] += 1


def _reason_to_leave_out(fields: dict[str, Any]) -> str:
    if fields.get("type") != "item":
        return f"{text_field(fields, 'type') or 'unknown'} entries, which are not items"
    return next((_NOT_ENTITIES[kb_id] for kb_id in _types(fields) if kb_id in _NOT_ENTITIES), "")


def _entity(fields: dict[str, Any], options: Options) -> Entity | None:
    langs = options.langs
    labels, sitelinks = object_field(fields, "labels"), object_field(fields, "sitelinks")
    aliases, descriptions = object_field(fields, "aliases"), object_field(fields, "descriptions")
    names = [_value(labels, lang) for lang in (*langs, ANY_LANGUAGE)]
    pages = [text_field(object_field(sitelinks, wiki_of(lang)), "title") for lang in langs]
    found = list(filter(None, [*names, *pages]))
    if options.only_pages:
        if not pages[0]:
            return None
        found = [pages[0], *found]
    if not found:
        return None
    for lang in (*langs, ANY_LANGUAGE):
        found += [text_field(alias, "value") for alias in objects_field(aliases, lang)]
    described = filter(None, (_value(descriptions, lang) for lang in langs))
    return make_entity(
        text_field(fields, "id"),
        found[0],
        found[1:],
        description=next(described, ""),
        types=_types(fields),
        prior=float(len(sitelinks)),
    )


def wiki_of(lang: str) -> str:
    """Return what sitelinks call the Wikipedia in a language of labels."""
    return f"{_WIKIS.get(lang, lang).replace('-', '_')}wiki"


def _value(texts: dict[str, Any], lang: str) -> str:
    return text_field(object_field(texts, lang), "value")


def _types(fields: dict[str, Any]) -> list[str]:
    """Return what an item is an instance of: the preferred statements if there are such."""
    statements = objects_field(object_field(fields, "claims"), INSTANCE_OF)
    by_rank: dict[str, list[str]] = {"preferred": [], "normal": []}
    for statement in statements:
        snak = object_field(statement, "mainsnak")
        value = object_field(snak, "datavalue").get("value")
        if snak.get("snaktype") == "value" and isinstance(value, dict):
            kb_id = text_field(value, "id")
            if not kb_id and isinstance(value.get("numeric-id"), int):  # dumps before 2017
                kb_id = f"Q{value['numeric-id']}"
            by_rank.setdefault(str(statement.get("rank", "normal")), []).append(kb_id)
    return by_rank["preferred"] or by_rank["normal"]
