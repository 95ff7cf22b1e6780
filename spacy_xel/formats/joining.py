"""Pages of Wikipedia and items of Wikidata made one, by the title of the page.

The items are in SQLite on disk while this runs, so memory does not grow with them.
"""

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.formats import jsonl
from spacy_xel.formats.importing import json_line, write_lines
from spacy_xel.jsonlines import BadLine, read_lines
from spacy_xel.kb.schema import entity_to_json, parse_entity
from spacy_xel.progress import progress
from spacy_xel.storage import new_file
from spacy_xel.types import AnnotatedText, Entity

_CACHE_KIB = 64 << 10


@dataclass
class JoinReport:
    """What became of pages, items and mentions."""

    entities: int = 0
    pages_without_item: int = 0
    items_without_page: int = 0
    texts: int = 0
    mentions: int = 0
    mentions_without_item: int = 0  # they are NIL


def join_kbs(
    pages: Path,
    items: Path,
    target: Path,
    *,
    corpus: Path | None = None,
    corpus_target: Path | None = None,
) -> JoinReport:
    """Write the pages that have an item, with its id; give the mentions of a corpus these ids too.

    pages (Path): KB file whose ids are titles, with names, first paragraphs and priors.
    items (Path): KB file with ids of Wikidata, whose titles are those of pages.
    target (Path): KB file to write.
    corpus (Path): Texts whose mentions have titles for ids.
    corpus_target (Path): Where to write them with ids of Wikidata.
    """
    report = JoinReport()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".join-", dir=target.parent) as folder:
        database = sqlite3.connect(Path(folder) / "items.sqlite", isolation_level=None)
        with contextlib.closing(database):
            _load(database, items)
            if corpus is not None and corpus_target is not None:
                texts = _with_ids(jsonl.read(corpus), _finder(database), report)
                with new_file(corpus_target) as scratch:
                    write_lines(map(jsonl.to_json, texts), scratch)
            with new_file(target) as scratch:
                write_lines(map(entity_to_json, _joined(database, pages, report)), scratch)
            (total,) = database.execute("SELECT count(*) FROM items").fetchone()
    report.items_without_page = total - report.entities
    return report


def join_entities(page: Entity, item: Entity) -> Entity:
    """Return what page and item say together, under the id of the item."""
    aliases = dict.fromkeys([*page.aliases, item.title, *item.aliases])
    aliases.pop(page.title, None)
    description = ". ".join(filter(None, (item.description, page.description)))
    types = item.types or page.types
    return replace(
        page, kb_id=item.kb_id, aliases=tuple(aliases), description=description, types=types
    )


def _load(database: sqlite3.Connection, items: Path) -> None:
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("PRAGMA synchronous=OFF")
    database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    database.execute("CREATE TABLE items (title TEXT PRIMARY KEY, id TEXT, line BLOB)")
    rows = ((item.title, item.kb_id, json_line(entity_to_json(item))) for item in _entities(items))
    database.execute("BEGIN")
    database.executemany("INSERT OR IGNORE INTO items VALUES (?, ?, ?)", rows)
    database.execute("COMMIT")


def _entities(path: Path) -> Iterator[Entity]:
    for line in read_lines(path, f"Reading {path.name}", max_bytes=jsonl.MAX_TEXT_BYTES):
        try:
            if line.problem:
                raise BadLine(line.problem)
            yield parse_entity(line.data)
        except BadLine as error:
            where = f"{path}, line {line.number}"
            raise ValueError(Errors.XE009.format(where=where, problem=error)) from error


def _joined(database: sqlite3.Connection, pages: Path, report: JoinReport) -> Iterator[Entity]:
    for page in _entities(pages):
        row = database.execute("SELECT line FROM items WHERE title = ?", (page.title,)).fetchone()
        if row is None:
            report.pages_without_item += 1
        else:
            report.entities += 1
            yield join_entities(page, parse_entity(row[0]))


def _finder(database: sqlite3.Connection) -> Callable[[str], str | None]:
    @lru_cache(200_000)
    def find(title: str) -> str | None:
        row = database.execute("SELECT id FROM items WHERE title = ?", (title,)).fetchone()
        return None if row is None else str(row[0])

    return find


def _with_ids(
    texts: Iterator[AnnotatedText], find: Callable[[str], str | None], report: JoinReport
) -> Iterator[AnnotatedText]:
    for text in progress(texts, "Ids of mentions", total=None):
        mentions = []
        for mention in text.mentions:
            kb_ids = tuple(filter(None, map(find, mention.kb_ids)))
            report.mentions_without_item += bool(mention.kb_ids) and not kb_ids
            mentions.append(replace(mention, kb_ids=kb_ids))
        report.texts += 1
        report.mentions += len(mentions)
        yield replace(text, mentions=tuple(mentions))
