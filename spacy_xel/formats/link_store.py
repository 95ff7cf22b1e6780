"""What an import has to look at again: redirects, names of pages, types; on disk, in SQLite.

The state of the reader is committed together with what was read, so that after a kill both are of
the same moment. Counts are collected in memory between commits, and no more than MAX_PENDING.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy_xel.errors import Errors

MAX_PENDING = 200_000
_CACHE_KIB = 64 << 10
_TABLES = """
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (title TEXT PRIMARY KEY, kb_id TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS redirects (title TEXT PRIMARY KEY, target TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS names
    (target TEXT, surface TEXT, count INTEGER, PRIMARY KEY (target, surface)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS types (kb_id TEXT PRIMARY KEY, label TEXT) WITHOUT ROWID;
"""


class LinkStore:
    """Pages, redirects, links and types, and the state of the reader that found them."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None, timeout=0.5)
        try:
            self.database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self.database.execute("PRAGMA journal_mode=WAL")
            self.database.execute("PRAGMA synchronous=NORMAL")
            self.database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            self.database.executescript(_TABLES)
            self.database.execute("BEGIN IMMEDIATE")
            self.database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self.database.close()
            raise BlockingIOError(Errors.XE053.format(path=path.parent, error=error)) from error
        self._pages: dict[str, str] = {}
        self._redirects: dict[str, str] = {}
        self._names: Counter[tuple[str, str]] = Counter()
        self._types: set[str] = set()

    def close(self) -> None:
        self.database.close()

    def add_page(self, title: str, kb_id: str) -> None:
        self._pages[title] = kb_id

    def add_redirect(self, title: str, target: str) -> None:
        self._redirects[title] = target

    def add_links(self, links: Iterable[tuple[str, str]]) -> None:
        """Count links, given as (title, surface)."""
        self._names.update(links)

    def add_types(self, kb_ids: Iterable[str]) -> None:
        self._types.update(kb_ids)

    @property
    def pending(self) -> int:
        """How many rows are in memory only."""
        return len(self._names) + len(self._redirects) + len(self._pages) + len(self._types)

    def commit(self, state: dict[str, Any]) -> None:
        """Write all that was added, and the state of the reader, in one transaction."""
        run = self.database
        run.execute("BEGIN IMMEDIATE")
        insert = "INSERT OR REPLACE INTO {} VALUES (?, ?)"
        run.executemany(insert.format("pages"), sorted(self._pages.items()))
        run.executemany(insert.format("redirects"), sorted(self._redirects.items()))
        run.executemany(
            "INSERT INTO names VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET count = count + excluded.count",
            ((target, surface, count) for (target, surface), count in sorted(self._names.items())),
        )
        types = ((kb_id,) for kb_id in sorted(self._types))
        run.executemany("INSERT OR IGNORE INTO types VALUES (?, NULL)", types)
        run.execute(insert.format("state"), ("reader", json.dumps(state)))
        run.execute("COMMIT")
        for rows in (self._pages, self._redirects, self._names, self._types):
            rows.clear()

    def state(self) -> dict[str, Any] | None:
        """Return the state of the last commit, if there was one."""
        row = self.database.execute("SELECT value FROM state WHERE key = 'reader'").fetchone()
        return None if row is None else json.loads(row[0])

    def prepare(self) -> None:
        """Get ready for the questions below, when all has been added."""
        self.database.execute("CREATE INDEX IF NOT EXISTS targets ON redirects (target, title)")

    @property
    def has_links(self) -> bool:
        return self._any("names") or self._any("redirects")

    @property
    def has_types(self) -> bool:
        return self._any("types")

    def page(self, title: str) -> str | None:
        """Return the id of a page, found by its title or a redirect; None if there is none."""
        for _ in range(3):
            row = self._one("SELECT kb_id FROM pages WHERE title = ?", title)
            if row is not None:
                return str(row[0])
            row = self._one("SELECT target FROM redirects WHERE title = ?", title)
            if row is None:
                return None
            title = row[0]
        return None

    def redirects_to(self, title: str) -> list[str]:
        """Return the titles of redirects to a page, and of those to these."""
        query = "SELECT title FROM redirects WHERE target = ? ORDER BY title"
        found: dict[str, None] = {}
        for _ in range(2):
            for target in [title, *found]:
                found |= {row[0]: None for row in self.database.execute(query, (target,))}
        found.pop(title, None)
        return list(found)

    def names_of(self, titles: Iterable[str]) -> Counter[str]:
        """Return how often each surface links to a page, given its title and its redirects."""
        names: Counter[str] = Counter()
        query = "SELECT surface, count FROM names WHERE target = ?"
        for title in titles:
            for surface, count in self.database.execute(query, (title,)):
                names[surface] += count
        return names

    def is_type(self, kb_id: str) -> bool:
        return self._one("SELECT 1 FROM types WHERE kb_id = ?", kb_id) is not None

    def label_types(self, labels: Iterable[tuple[str, str]]) -> None:
        """Keep the names of types, given as (id, name)."""
        self.database.execute("BEGIN IMMEDIATE")
        for kb_id, label in labels:
            self.database.execute("UPDATE types SET label = ? WHERE kb_id = ?", (label, kb_id))
        self.database.execute("COMMIT")

    def type_label(self, kb_id: str) -> str:
        row = self._one("SELECT label FROM types WHERE kb_id = ?", kb_id)
        return "" if row is None or row[0] is None else str(row[0])

    def _one(self, query: str, value: str) -> Any:
        return self.database.execute(query, (value,)).fetchone()

    def _any(self, table: str) -> bool:
        return self.database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
