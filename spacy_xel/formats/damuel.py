"""DaMuEL: JSON Lines per language, a Wikidata item each, with its Wikipedia article if it has one.

The release is a tar archive of .xz parts; unpack it and give the folder. Links count tokens, and
the tokens have character offsets. Only links that people made (origin "wiki") are mentions; those
that were found automatically are left out, and so are the lemmas and tags.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_xel.formats.faults import Faults
from spacy_xel.formats.reading import (
    Article,
    Item,
    Options,
    Reading,
    list_field,
    make_entity,
    object_field,
    objects_field,
    text_field,
)  # fmt: skip
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import AnnotatedText, Mention

_MADE_BY_PEOPLE = "wiki"


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read the articles as annotated texts."""
    for item in read_entities((faults or Faults()).reading(path), Options()):
        if isinstance(item, Article):
            yield item.text


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read items, with the articles of those that have one."""
    for fields in reading.json_objects():
        try:
            item = _item(fields, reading)
        except BadLine as error:
            reading.problem(error)
            continue
        if item is not None:
            yield item


def _item(fields: dict[str, Any], reading: Reading) -> Item | None:
    wiki = object_field(fields, "wiki")
    names = [text_field(fields, "label"), text_field(wiki, "title")]
    names += [name for name in list_field(fields, "aliases") if isinstance(name, str)]
    names = list(filter(None, names))
    if not names:
        reading.left_out["items without a name"] += 1
        return None
    description = text_field(fields, "description")
    entity = make_entity(text_field(fields, "qid"), names[0], names[1:], description=description)
    if not wiki:
        return entity
    text = text_field(wiki, "text")
    mentions = tuple(_mentions(wiki, text, reading))
    return Article(entity, AnnotatedText(entity.kb_id, text, mentions, text_field(fields, "lang")))


def _mentions(wiki: dict[str, Any], text: str, reading: Reading) -> Iterator[Mention]:
    tokens = objects_field(wiki, "tokens")
    for link in objects_field(wiki, "links"):
        if link.get("origin", _MADE_BY_PEOPLE) != _MADE_BY_PEOPLE:
            reading.left_out["links found automatically"] += 1
            continue
        first, last = link.get("start"), link.get("end")
        if not (
            isinstance(first, int) and isinstance(last, int) and 0 <= first < last <= len(tokens)
        ):
            raise BadLine(f"a link from token {first} to {last} of {len(tokens)}")
        start, end = tokens[first].get("start"), tokens[last - 1].get("end")
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
            raise BadLine(f"a link at {start}-{end} in a text of {len(text)} characters")
        qid = text_field(link, "qid")
        yield Mention(start, end, (qid,) if qid else ())
