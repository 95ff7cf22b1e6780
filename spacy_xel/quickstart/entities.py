"""Rows of somebody's table as a KB file: those with one id become one entity, nothing is lost."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spacy_xel.errors import Errors
from spacy_xel.formats import KB_FORMATS
from spacy_xel.formats.reading import Reading, make_entity
from spacy_xel.jsonlines import BadLine
from spacy_xel.kb.schema import entity_to_json, parse_entity
from spacy_xel.quickstart.survey import Survey
from spacy_xel.storage import new_file
from spacy_xel.types import Entity

TOLERATED = 0.1  # share of rows that may be bad
_SHOWN = 5


@dataclass
class EntityReport:
    """What became of the rows."""

    rows: int = 0
    entities: int = 0
    merged_rows: int = 0  # rows that had the id of an earlier one
    repeated_ids: list[str] = field(default_factory=list)  # the first few of them
    other_titles: int = 0  # merged rows whose title became an alias
    bad_rows: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    first_problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def write_entities(survey: Survey, target: Path, problems: Path) -> EntityReport:
    """Write a KB file of the rows that a survey describes.

    Rows with one id become one entity: the first row's title, all other names as aliases. They come
    at the end of the file, so that only their ids and themselves have to be in memory.

    target (Path): The KB file, JSON Lines.
    problems (Path): Where the rows that cannot be used are listed, if there are any.
    """
    report = EntityReport()
    seen: set[str] = set()
    repeated: Counter[str] = Counter()
    noted: list[dict[str, Any]] = []
    for entity in _read(survey, report, noted):
        report.rows += 1
        if entity.kb_id in seen:
            repeated[entity.kb_id] += 1
        seen.add(entity.kb_id)
    report.rows += report.bad_rows
    if report.bad_rows > TOLERATED * report.rows:
        raise ValueError(
            Errors.XE092.format(
                bad=report.bad_rows,
                total=report.rows,
                path=survey.path,
                first=report.first_problems[0],
            )
        )
    report.entities = len(seen)
    report.merged_rows = repeated.total()
    report.repeated_ids = list(repeated)[:_SHOWN]
    problems.unlink(missing_ok=True)
    if noted:
        problems.write_text("".join(json.dumps(entry) + "\n" for entry in noted), encoding="utf8")
    with new_file(target) as scratch, scratch.open("w", encoding="utf8") as file:
        for entity in _merged(_read(survey, EntityReport(), []), frozenset(repeated), report):
            file.write(json.dumps(entity_to_json(entity), ensure_ascii=False) + "\n")
    return report


def _read(survey: Survey, report: EntityReport, noted: list[dict[str, Any]]) -> Iterator[Entity]:
    """Yield the entities of rows that can be used; note the others."""
    reading = Reading(survey.path, "skip")
    reading.on_problem = noted.append
    for item in KB_FORMATS[survey.kind].read(reading, survey.options):
        assert isinstance(item, Entity)
        try:
            entity = parse_entity(json.dumps(entity_to_json(item)).encode())
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity
    report.bad_rows = reading.problems.total()
    report.problems = dict(reading.problems)
    report.first_problems = reading.first_problems[:_SHOWN]


def _merged(
    entities: Iterator[Entity], repeated: frozenset[str], report: EntityReport
) -> Iterator[Entity]:
    groups: dict[str, list[Entity]] = {}
    for entity in entities:
        if entity.kb_id in repeated:
            groups.setdefault(entity.kb_id, []).append(entity)
        else:
            yield entity
    for group in groups.values():
        report.other_titles += sum(other.title != group[0].title for other in group[1:])
        yield merge(group)


def merge(group: list[Entity]) -> Entity:
    """Return one entity of several: all their names, descriptions and types, the largest prior."""
    first = group[0]
    descriptions = dict.fromkeys(entity.description for entity in group if entity.description)
    return make_entity(
        first.kb_id,
        first.title,
        [name for entity in group for name in entity.names],
        description=" ".join(descriptions),
        types=[kind for entity in group for kind in entity.types],
        prior=max(entity.prior for entity in group),
    )
