"""From a dump to our own files, in bounded memory, in steps that survive a kill.

While an import runs, what it has read is in a folder beside the target: entities and texts as they
come, and in SQLite what has to be looked at again. An import that finds such a folder goes on where
that one stopped. At the end the entities get their aliases and priors, and the target appears.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats import jsonl
from spacy_xel.formats.link_store import MAX_PENDING, LinkStore
from spacy_xel.formats.reading import Article, Item, OnError, Options, Reading, Redirect
from spacy_xel.jsonlines import BadLine, read_lines
from spacy_xel.kb.schema import entity_to_json, parse_entity
from spacy_xel.progress import progress
from spacy_xel.storage import new_file
from spacy_xel.types import AnnotatedText, Entity, Mention

SECONDS_BETWEEN_COMMITS = 2.0
_ENTITIES, _TEXTS, _PROBLEMS, _DATABASE = (
    "entities.jsonl", "texts.jsonl", "problems.jsonl", "links.sqlite",
)  # fmt: skip


class KBFormat(NamedTuple):
    """How to read a knowledge base, and which of the options mean something to it."""

    read: Callable[[Reading, Options], Iterator[Item]]
    options: frozenset[str]
    description: str
    links_are_ids: bool = False  # mentions name entities by id, not by title
    types_are_ids: bool = False  # types are entities of the knowledge base
    find_source: Callable[[Path], Path] = lambda source: source  # from what the user names


@dataclass
class ImportReport:
    """What an import read, kept and left out."""

    entities: int = 0
    texts: int = 0
    mentions: int = 0
    unknown_targets: int = 0  # mentions of pages that did not become entities
    redirects: int = 0
    rare_names: int = 0  # surfaces of links that were too rare to become aliases
    left_out: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    first_problems: list[str] = field(default_factory=list)
    resumed_at: int = 0  # entities that an earlier run had read


def import_kb(
    source: Path,
    target: Path,
    kb_format: KBFormat,
    options: Options,
    *,
    corpus: Path | None = None,
    on_error: OnError = "stop",
    min_count: int = 2,
    restart: bool = False,
) -> ImportReport:
    """Turn a dump into a KB file, and its texts with their links into a corpus.

    source (Path): The dump, plain or compressed, or a folder of its parts.
    target (Path): The KB file to write, gzipped if its name ends in .gz.
    kb_format (KBFormat): The format of the dump.
    corpus (Path): Where to write the texts, if they are wanted.
    on_error (str): "stop" at the first bad record, or "skip" and report it.
    min_count (int): Surfaces of links become aliases if there are so many of them.
    restart (bool): Begin anew, even if there is an unfinished import.
    RETURNS (ImportReport): What was read, kept and left out.
    """
    reading = Reading(source, on_error)
    work = target.parent / f".{target.name}.import"
    if restart:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    purpose = _fingerprint(reading, kb_format, options, corpus is not None)
    with contextlib.closing(_Import(work, reading, kb_format, purpose)) as running:
        running.read(kb_format.read(reading, options), keep_texts=corpus is not None)
        report = running.finish(target, corpus, min_count)
    shutil.rmtree(work)
    return report


def _fingerprint(reading: Reading, kb_format: KBFormat, options: Options, texts: bool) -> str:
    """Return what must be the same for an import to go on: the source and how it is read."""
    files = [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in reading.files]
    what = [files, kb_format.read.__module__, asdict(options), texts]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=dict).encode()).hexdigest()


class _Import:
    """One import: the files it appends to, and the store of what is looked at again."""

    def __init__(self, work: Path, reading: Reading, kb_format: KBFormat, purpose: str) -> None:
        self.work = work
        self.reading = reading
        self.kb_format = kb_format
        self.purpose = purpose
        self.report = ImportReport()
        self.store = LinkStore(work / _DATABASE)
        self.files: dict[str, IO[bytes]] = {}
        state = self.store.state()
        if state is not None and state["purpose"] != purpose:
            self.close()
            raise ValueError(Errors.XE054.format(path=work))
        for name in (_ENTITIES, _TEXTS, _PROBLEMS):
            self.files[name] = (work / name).open("ab")
            # What was written after the last commit will be read again.
            self.files[name].truncate(0 if state is None else state["sizes"][name])
            self.files[name].seek(0, io.SEEK_END)
        if state is not None:
            reading.restore(state["reader"])
            self.report = ImportReport(**state["report"])
            self.report.resumed_at = self.report.entities
        reading.on_problem = self._note

    def _note(self, problem: dict[str, Any]) -> None:
        # Names of files and values from them need not be Unicode.
        self.files[_PROBLEMS].write(json.dumps(problem).encode() + b"\n")

    def close(self) -> None:
        self.store.close()
        for file in self.files.values():
            file.close()

    def read(self, items: Iterator[Item], *, keep_texts: bool) -> None:
        """Take all items; commit from time to time."""
        committed = time.monotonic()
        for item in items:
            try:
                self._take(item, keep_texts)
            except (BadLine, UnicodeEncodeError) as error:
                self.reading.problem(error)
            self.reading.done()
            due = time.monotonic() - committed > SECONDS_BETWEEN_COMMITS
            if due or self.store.pending > MAX_PENDING:
                self.commit()
                committed = time.monotonic()
        self.commit()

    def commit(self) -> None:
        sizes = {}
        for name, file in self.files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[name] = file.tell()
        state = {"purpose": self.purpose, "sizes": sizes, "reader": self.reading.state()}
        self.store.commit({**state, "report": vars(self.report)})

    def _take(self, item: Item, keep_texts: bool) -> None:
        if isinstance(item, Redirect):
            self.store.add_redirect(item.title, item.target)
            self.report.redirects += 1
            return
        entity = item.entity if isinstance(item, Article) else item
        line = json_line(entity_to_json(entity))
        parse_entity(line)  # what the builder would not take is a problem here already
        if isinstance(item, Article):
            text = item.text.text
            if keep_texts:
                self.files[_TEXTS].write(json_line(jsonl.to_json(item.text)))
            for title in item.redirects:
                self.store.add_redirect(title, entity.title)
            self.report.redirects += len(item.redirects)
            self.store.add_links(item.links)
            self.store.add_links(
                (title, text[mention.start : mention.end])
                for mention in item.text.mentions
                for title in mention.kb_ids
            )
        if isinstance(item, Article) or self.kb_format.links_are_ids:
            self.store.add_page(self._key(entity), entity.kb_id)
        self.files[_ENTITIES].write(line)
        self.report.entities += 1
        if self.kb_format.types_are_ids:
            self.store.add_types(entity.types)

    def _key(self, entity: Entity) -> str:
        """Return what mentions call an entity."""
        return entity.kb_id if self.kb_format.links_are_ids else entity.title

    def finish(self, target: Path, corpus: Path | None, min_count: int) -> ImportReport:
        """Write the target from what was read."""
        report = self.report
        self.store.prepare()
        if self.store.has_types:
            self._label_types()
        if corpus is not None:
            with new_file(corpus) as scratch:
                write_lines((jsonl.to_json(text) for text in self._texts()), scratch)
        problems = target.parent / f"{target.name}.problems.jsonl"
        problems.unlink(missing_ok=True)
        if self.files[_PROBLEMS].tell():
            shutil.copyfile(self.work / _PROBLEMS, problems)
        with new_file(target) as scratch:
            write_lines(map(entity_to_json, self._entities(min_count)), scratch)
        report.left_out = dict(self.reading.left_out)
        report.problems = dict(self.reading.problems)
        report.first_problems = self.reading.first_problems
        return report

    def _label_types(self) -> None:
        """Find the names of the types, which are entities too, where they are in the source."""
        labels = (
            (entity.kb_id, entity.title)
            for entity in self._read_entities("Naming the types")
            if self.store.is_type(entity.kb_id)
        )
        self.store.label_types(labels)

    def _entities(self, min_count: int) -> Iterator[Entity]:
        linked, typed = self.store.has_links, self.store.has_types
        label = lru_cache(100_000)(self.store.type_label)
        for entity in self._read_entities("Writing entities"):
            if linked:
                entity = self._with_names(entity, min_count)
            if typed:
                labels = (name for kb_id in entity.types for name in (kb_id, label(kb_id)))
                entity = replace(entity, types=tuple(dict.fromkeys(filter(None, labels))))
            yield entity

    def _with_names(self, entity: Entity, min_count: int) -> Entity:
        """Give an entity what redirects and links say: aliases, and their number as prior."""
        key = self._key(entity)
        redirects = self.store.redirects_to(key)
        names = self.store.names_of([key, *redirects])
        frequent = [name for name, count in names.items() if count >= min_count and name]
        self.report.rare_names += len(names) - len(frequent)
        # The most frequent first; sorted, so that the order is the same in every run.
        frequent.sort(key=lambda name: (-names[name], name))
        aliases = dict.fromkeys([*entity.aliases, *redirects, *frequent])
        aliases.pop(entity.title, None)
        prior = max(entity.prior, float(names.total()))
        return replace(entity, aliases=tuple(aliases), prior=prior)

    def _texts(self) -> Iterator[AnnotatedText]:
        """Yield the texts, the titles in their mentions replaced by ids."""
        page = lru_cache(200_000)(self.store.page)
        texts = jsonl.read(self.work / _TEXTS) if self.files[_TEXTS].tell() else iter(())
        for text in progress(texts, "Writing texts", total=None):
            mentions = []
            for mention in text.mentions:
                kb_ids = tuple(filter(None, map(page, mention.kb_ids)))
                self.report.unknown_targets += not kb_ids and bool(mention.kb_ids)
                mentions.append(Mention(mention.start, mention.end, kb_ids, mention.label))
            self.report.texts += 1
            self.report.mentions += len(mentions)
            yield replace(text, mentions=tuple(mentions))

    def _read_entities(self, description: str) -> Iterator[Entity]:
        for line in read_lines(self.work / _ENTITIES, description, max_bytes=jsonl.MAX_TEXT_BYTES):
            yield parse_entity(line.data)


def read_entities(path: Path, kb_format: KBFormat, options: Options) -> Iterator[Entity]:
    """Read a knowledge base that needs no second look: entities as they come.

    Of articles, this yields the entities without aliases and priors; see import_kb.
    """
    for item in kb_format.read(Reading(path), options):
        if isinstance(item, Article):
            yield item.entity
        elif isinstance(item, Entity):
            yield item


def json_line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


class LineWriter(contextlib.AbstractContextManager["LineWriter"]):
    """Writes JSON Lines, gzipped if the path ends in .gz, the same bytes at any time."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("wb")
        self._file: Any = self._raw
        if path.suffix == ".gz":
            self._file = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._raw, mtime=0)

    def write(self, fields: dict[str, Any]) -> None:
        self._file.write(json_line(fields))

    def __exit__(self, *_: object) -> None:
        if self._file is not self._raw:
            self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()


def write_lines(objects: Iterable[dict[str, Any]], path: Path) -> None:
    """Write JSON Lines."""
    with LineWriter(path) as writer:
        for fields in objects:
            writer.write(fields)
