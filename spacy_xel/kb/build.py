"""From a file of entities to a store on disk, in one streaming pass and bounded memory."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

import spacy_xel
from spacy_xel.errors import Errors
from spacy_xel.jsonlines import BadLine, Line, parse_json_object, read_lines
from spacy_xel.kb.arrays import ArrayWriter
from spacy_xel.kb.key_table import KeyTable
from spacy_xel.kb.name_index import write_id_index, write_name_index
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.kb.schema import check_id, parse_entity
from spacy_xel.kb.spool import ALIAS, MENTION, NIL_ROW, TITLE, Spool
from spacy_xel.kb.store import ID_INDEX, NAME_INDEXES, STORE_FORMAT
from spacy_xel.progress import progress
from spacy_xel.storage import load_array, new_folder, write_manifest
from spacy_xel.types import AnnotatedText, Entity, Mention

OnError = Literal["stop", "skip"]
DEFAULT_MAX_RAM = 2 << 30
_PROBLEMS_FILE = "problems.jsonl"
_BATCH = 10_000
_BATCH_CHARACTERS = 4 << 20


@dataclass
class BuildReport:
    """What a build read, kept and left out."""

    entities: int = 0
    names: int = 0  # distinct, case ignored
    ambiguous_names: int = 0
    empty_names: int = 0
    filtered_entities: int = 0
    missing_ids: list[str] = field(default_factory=list)
    mentions_counted: int = 0
    mentions_nil: int = 0
    mentions_unknown_id: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    first_problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        fields = {**vars(self), "problems": dict(self.problems)}
        del fields["first_problems"]
        fields["missing_ids"] = len(self.missing_ids)
        return fields


class Problems:
    """Bad lines: fatal, or written to a file and counted."""

    SHOWN = 20

    def __init__(self, path: Path, on_error: OnError, report: BuildReport) -> None:
        self.path = path
        self.on_error = on_error
        self.report = report

    def add(self, source: Path, line: int, problem: str) -> None:
        where = f"{source}, line {line}"
        if self.on_error == "stop":
            raise ValueError(Errors.XE010.format(where=where, problem=problem))
        self.report.problems[_kind(problem)] += 1
        if len(self.report.first_problems) < self.SHOWN:
            self.report.first_problems.append(Errors.XE009.format(where=where, problem=problem))
        entry = {"file": source.name, "line": line, "problem": problem}
        with self.path.open("a", encoding="utf8") as file:
            file.write(json.dumps(entry, ensure_ascii=True) + "\n")


def build_store(
    source: Path,
    target: Path,
    *,
    corpus: Iterable[AnnotatedText] = (),
    only_ids: Path | None = None,
    lang: str = "",
    on_error: OnError = "stop",
    max_ram: int = DEFAULT_MAX_RAM,
    force: bool = False,
) -> BuildReport:
    """Build a memory-mapped store from a KB file.

    source (Path): JSON Lines, plain or gzipped.
    target (Path): The folder to write; it appears only when everything is in it.
    corpus (Iterable[AnnotatedText]): Annotated texts: their mentions become names with counts.
    only_ids (Path): Keep only these entities: one id, or one JSON object with "id", per line.
    lang (str): Language of the names, for normalize_name.
    on_error (str): "stop" at the first bad line, or "skip" and report it.
    max_ram (int): About how many bytes of memory the builder may use.
    force (bool): Replace an existing target.
    RETURNS (BuildReport): What was read, kept and left out.
    """
    wanted = None if only_ids is None else read_ids(only_ids)
    with new_folder(target, force=force) as folder:
        duplicates: dict[int, str] = {}
        while True:
            builder = _Builder(source, folder, on_error, lang, max_ram, wanted, duplicates)
            builder.read_entities()
            new_duplicates = builder.write_ids()
            if not new_duplicates:
                break
            # Duplicates show only when all ids are sorted: read the file again without them.
            duplicates = duplicates | new_duplicates
            if on_error == "stop":
                line = min(duplicates)
                builder.problems.add(source, line, _duplicate(duplicates[line]))
            shutil.rmtree(folder)
            folder.mkdir()
        builder.read_corpus(corpus)
        builder.write_names()
        builder.finish()
        return builder.report


def read_ids(path: Path) -> set[str]:
    """Return the ids in a file: one per line, or one JSON object with "id" per line."""
    ids = set()
    for line in read_lines(path, "Reading ids"):
        try:
            if line.problem:
                raise BadLine(line.problem)
            data = line.data.strip()
            fields = parse_json_object(data) if data.startswith(b"{") else {"id": data.decode()}
            ids.add(check_id(fields.get("id")))
        except (BadLine, UnicodeDecodeError) as error:
            where = f"{path}, line {line.number}"
            raise ValueError(Errors.XE009.format(where=where, problem=error)) from error
    return ids


class _Builder:
    """The steps of one build, in the order in which they run."""

    def __init__(
        self,
        source: Path,
        folder: Path,
        on_error: OnError,
        lang: str,
        max_ram: int,
        wanted: set[str] | None,
        duplicates: dict[int, str],
    ) -> None:
        self.source = source
        self.folder = folder
        self.lang = lang
        self.wanted = wanted
        self.duplicates = duplicates
        self.report = BuildReport()
        self.problems = Problems(folder / _PROBLEMS_FILE, on_error, self.report)
        self.scratch = folder / "scratch"
        # Three spools are open at a time, and sorting needs room of its own.
        self.ids = Spool(self.scratch / "ids", max_ram // 4)
        self.names = {name: Spool(self.scratch / name, max_ram // 4) for name in NAME_INDEXES}

    def read_entities(self) -> None:
        """Read the KB file; write the entities, spool their ids and names."""
        with (
            ArrayWriter(self.folder / "id_bytes.npy", "u1") as id_bytes,
            ArrayWriter(self.folder / "id_offsets.npy", "<u8") as id_offsets,
            ArrayWriter(self.folder / "entity_bytes.npy", "u1") as entity_bytes,
            ArrayWriter(self.folder / "entity_offsets.npy", "<u8") as entity_offsets,
            ArrayWriter(self.folder / "priors.npy", "<f4") as priors,
            ArrayWriter(self.scratch / "lines.npy", "<u8") as lines,
        ):
            for batch in _batches(self._entities()):
                rows = range(priors.length, priors.length + len(batch))
                ids = [entity.kb_id.encode() for _, entity in batch]
                records = [_record(entity) for _, entity in batch]
                id_offsets.append(_offsets(ids, id_bytes.length))
                entity_offsets.append(_offsets(records, entity_bytes.length))
                id_bytes.append_bytes(b"".join(ids))
                entity_bytes.append_bytes(b"".join(records))
                priors.append([entity.prior for _, entity in batch])
                lines.append([line for line, _ in batch])
                for row, (_, entity) in zip(rows, batch, strict=True):
                    self.ids.add(entity.kb_id, row, ALIAS)
                    self._spool_names(entity, row)
            id_offsets.append([id_bytes.length])
            entity_offsets.append([entity_bytes.length])
            self.report.entities = priors.length
        if self.report.entities == 0:
            raise ValueError(Errors.XE012.format(path=self.source))

    def write_ids(self) -> dict[int, str]:
        """Write the index from id to row; return the lines whose id came before."""
        lines = load_array(self.scratch / "lines.npy")
        rows = write_id_index(self.ids, self.folder / ID_INDEX, self._report_collision)
        ids = load_array(self.folder / "id_bytes.npy")
        offsets = load_array(self.folder / "id_offsets.npy")
        return {
            int(lines[row]): ids[offsets[row] : offsets[row + 1]].tobytes().decode() for row in rows
        }

    def read_corpus(self, corpus: Iterable[AnnotatedText]) -> None:
        """Spool the mentions of annotated texts as names of the entities they were used for."""
        folder = self.folder / ID_INDEX
        ids = KeyTable(load_array(folder / "keys.npy"), load_array(folder / "directory.npy"))
        rows = load_array(folder / "rows.npy")
        for text in progress(corpus, "Counting mentions"):
            for mention in text.mentions:
                self._spool_mention(text.text, mention, ids, rows)

    def write_names(self) -> None:
        """Sort the names into their indexes."""
        priors = load_array(self.folder / "priors.npy")
        for name, spool in self.names.items():
            write_name_index(spool, priors, self.folder / name, self._report_collision)

    def finish(self) -> None:
        """Count, clean up, and write the manifest last."""
        shutil.rmtree(self.scratch)
        keys = load_array(self.folder / NAME_INDEXES[0] / "keys.npy")
        self.report.names = len(keys) - 1
        sizes = np.diff(keys[:, 1].astype(np.int64))
        self.report.ambiguous_names = int(np.count_nonzero(sizes > 1))
        fields = {
            "format": STORE_FORMAT,
            "made_by": f"spacy-xel {spacy_xel.__version__}",
            "source": self.source.name,
            "lang": self.lang,
            "report": self.report.to_json(),
        }
        write_manifest(self.folder, fields)

    def _report_collision(self, one: bytes, other: bytes) -> None:
        problem = (
            f"{other.decode()!r} has the same 64-bit hash as {one.decode()!r} and was left out"
        )
        self.problems.add(self.source, 0, problem)

    def _entities(self) -> Iterator[tuple[int, Entity]]:
        missing = set(self.wanted or ())
        for line in read_lines(self.source, "Reading entities"):
            try:
                entity = self._entity(line)
            except BadLine as error:
                self.problems.add(self.source, line.number, str(error))
                continue
            missing.discard(entity.kb_id)
            if self.wanted is not None and entity.kb_id not in self.wanted:
                self.report.filtered_entities += 1
            else:
                yield line.number, entity
        self.report.missing_ids = sorted(missing)

    def _entity(self, line: Line) -> Entity:
        if line.problem:
            raise BadLine(line.problem)
        if line.number in self.duplicates:
            raise BadLine(_duplicate(self.duplicates[line.number]))
        return parse_entity(line.data)

    def _spool_names(self, entity: Entity, row: int) -> None:
        for kind, name in ((TITLE, entity.title), *((ALIAS, alias) for alias in entity.aliases)):
            cased = normalize_name(name, fold_case=False, lang=self.lang)
            if not cased:
                self.report.empty_names += 1
                continue
            self.names["names_cased"].add(cased, row, kind)
            uncased = normalize_name(name, lang=self.lang)
            self.names["names_uncased"].add(uncased, row, kind)

    def _spool_mention(
        self, text: str, mention: Mention, ids: KeyTable, rows: "np.ndarray[Any, Any]"
    ) -> None:
        surface = text[mention.start : mention.end]
        cased = normalize_name(surface, fold_case=False, lang=self.lang)
        uncased = normalize_name(surface, lang=self.lang)
        if not cased:
            self.report.empty_names += 1
            return
        found = [ids.find(kb_id) for kb_id in mention.kb_ids]
        targets = [int(rows[start]) for start, end in found if start < end]
        self.report.mentions_unknown_id += len(found) - len(targets)
        if not mention.kb_ids:
            self.report.mentions_nil += 1
            targets = [NIL_ROW]
        else:
            self.report.mentions_counted += len(targets)
        for row in targets:
            self.names["names_cased"].add(cased, row, MENTION)
            self.names["names_uncased"].add(uncased, row, MENTION)


def _kind(problem: str) -> str:
    """Return a problem without what is particular about it."""
    general = problem.split(" (", maxsplit=1)[0].split(", but", maxsplit=1)[0]
    return re.sub(r"(['\"]).*\1", "…", general)


def _duplicate(kb_id: str) -> str:
    return f"the id {kb_id[:80]!r} was on an earlier line already"


def _record(entity: Entity) -> bytes:
    """Return what the store keeps of an entity beside its id and prior."""
    fields = [entity.title, entity.aliases, entity.description, entity.types]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _offsets(pieces: list[bytes], first: int) -> "np.ndarray[Any, Any]":
    offsets = np.full(len(pieces), first, dtype=np.uint64)
    offsets[1:] += np.cumsum([len(piece) for piece in pieces[:-1]], dtype=np.uint64)
    return offsets


def _batches(items: Iterator[tuple[int, Entity]]) -> Iterator[list[tuple[int, Entity]]]:
    batch: list[tuple[int, Entity]] = []
    size = 0
    for line, entity in items:
        batch.append((line, entity))
        size += len(entity.description) + sum(map(len, entity.names))
        if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
