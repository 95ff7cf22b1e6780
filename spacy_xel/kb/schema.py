"""Entities as lines of a knowledge-base file: read, checked, and written."""

import json
import math
from typing import Any

from spacy_xel.errors import Errors
from spacy_xel.jsonlines import BadLine, checked_unicode, parse_json_object
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.types import ID_SEPARATOR, NIL, Entity


def parse_entity(data: bytes) -> Entity:
    """Return the entity on a line of a KB file, or raise BadLine."""
    fields = parse_json_object(data)
    title = _text(fields, "title")
    if not normalize_name(title):
        raise BadLine("the title is empty")
    return Entity(
        kb_id=check_id(fields.get("id")),
        title=title,
        aliases=_texts(fields, "aliases"),
        description=_text(fields, "description", required=False),
        types=_texts(fields, "types"),
        prior=_prior(fields.get("prior", 0.0)),
    )


def check_entity(entity: Entity) -> Entity:
    """Return an entity as it would be read from a file, or raise a ValueError."""
    try:
        return parse_entity(json.dumps(entity_to_json(entity)).encode())
    except BadLine as error:
        where = f"the entity {str(entity.kb_id)[:80]!r}"
        raise ValueError(Errors.XE009.format(where=where, problem=error)) from error


def check_id(value: object) -> str:
    """Return an entity id that can be stored, or raise BadLine."""
    if value is None:
        raise BadLine("'id' is missing")
    if not isinstance(value, str) or not value.strip():
        raise BadLine(f"'id' must be a string that is not empty, but got {value!r}")
    if value == NIL or ID_SEPARATOR in value or any(character < " " for character in value):
        raise BadLine(
            f"the id {value[:80]!r} is reserved or has a character ids may not have "
            f"('{ID_SEPARATOR}', line breaks, control characters)"
        )
    return checked_unicode(value, "id")


def entity_to_json(entity: Entity) -> dict[str, Any]:
    """Return an entity as the object of a KB line."""
    fields: dict[str, Any] = {"id": entity.kb_id, "title": entity.title}
    if entity.aliases:
        fields["aliases"] = list(entity.aliases)
    if entity.description:
        fields["description"] = entity.description
    if entity.types:
        fields["types"] = list(entity.types)
    if entity.prior:
        fields["prior"] = entity.prior
    return fields


def _text(fields: dict[str, Any], key: str, *, required: bool = True) -> str:
    value = fields.get(key)
    if value is None:
        if required:
            raise BadLine(f"'{key}' is missing")
        return ""
    if not isinstance(value, str):
        raise BadLine(f"'{key}' must be a string, but got {type(value).__name__}")
    return checked_unicode(value, key)


def _texts(fields: dict[str, Any], key: str) -> tuple[str, ...]:
    values = fields.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadLine(f"'{key}' must be a list of strings")
    return tuple(dict.fromkeys(checked_unicode(value, key) for value in values))


def _prior(value: object) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLine(f"'prior' must be a number, but got {value!r}")
    try:
        prior = float(value)
    except OverflowError as error:
        raise BadLine("'prior' is too large") from error
    if not math.isfinite(prior) or not 0 <= prior < 1e30:
        raise BadLine(f"'prior' must be a finite number of at least 0, but got {value!r}")
    return prior
