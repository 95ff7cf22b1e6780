"""The entities whose names look most like the mention: names known, and names seen in training."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import srsly

from spacy_xel.errors import Errors
from spacy_xel.features.ngrams import FEATURE_ARRAYS, NgramFeatures, NgramSettings
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.progress import progress
from spacy_xel.storage import (
    load_array,
    new_folder,
    read_manifest,
    verify_bytes,
    verify_files,
    write_manifest,
)
from spacy_xel.types import AnnotatedText, CandidateBatch, Query

NEAREST_NAMES_FORMAT = "spacy-xel-nearest-names-1"
_FOLDER = "nearest_names"
_INDEX_ARRAYS = ("starts", "names", "inverse_norms", "name_rows")
CHARACTERS = NgramSettings(
    mention_words=0.0, context_words=0.0, shortest_characters=3, longest_characters=4
)


class NearestNames:
    """Find entities by the cosine of character n-grams of their names with the mention's.

    features (NgramSettings): Which n-grams; an n-gram counts by its idf, however often it occurs.
    abbreviations (bool): Take an abbreviation for what the text says it stands for.
    budget (int): How many entries of the index to read for a mention, rare n-grams first.
    shortlist (int): How many of the names found to compare in full.
    """

    def __init__(
        self,
        *,
        features: NgramSettings = CHARACTERS,
        abbreviations: bool = True,
        budget: int = 100_000,
        shortlist: int = 200,
    ) -> None:
        if min(budget, shortlist) < 1:
            raise ValueError(Errors.XE001.format(value=min(budget, shortlist)))
        self.settings = features
        self.abbreviations = abbreviations
        self.budget = budget
        self.shortlist = shortlist
        self.features: NgramFeatures | None = None
        self.index: dict[str, npt.NDArray[Any]] = {}
        self.store_identity = ""

    def initialize(self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]) -> None:
        """Index the names of the knowledge base, and those by which texts call its entities."""
        from spacy_xel.retrieval.nearest_names.kernels import invert, square_sums

        rows: list[int] = []
        seen: set[tuple[str, int]] = set()

        def instances() -> Iterator[Query]:
            for name, row in chain(_kb_names(kb), self._text_names(kb, texts)):
                normal = normalize_name(name)
                if normal and (normal, row) not in seen:
                    seen.add((normal, row))
                    rows.append(row)
                    yield Query(name, 0, len(name))

        self.features, vectors = NgramFeatures.fit_transform(instances(), self.settings)
        vectors.sum_duplicates()
        starts = np.zeros(self.features.dimension + 1, dtype=np.int64)
        np.cumsum(np.bincount(vectors.indices, minlength=self.features.dimension), out=starts[1:])
        names = np.empty(len(vectors.indices), dtype=np.int32)
        indptr = vectors.indptr.astype(np.int64)
        invert(indptr, vectors.indices, starts, names)
        norms = np.empty(len(rows), dtype=np.float32)
        square_sums(indptr, vectors.indices, self.features.idf, norms)
        with np.errstate(divide="ignore"):
            inverse_norms = np.where(norms > 0, norms**-0.5, 0).astype(np.float32)
        self.store_identity = kb.built.identity
        self.index = {
            "starts": starts,
            "names": names,
            "inverse_norms": inverse_norms,
            "name_rows": np.array(rows, dtype=np.int32),
        }

    def attach(self, kb: XelKnowledgeBase) -> None:
        """Check that the rows are those of the names."""
        if self.features is not None and kb.built.identity != self.store_identity:
            raise ValueError(Errors.XE041.format(path=kb.path))

    def __call__(self, queries: Sequence[Query], k: int) -> CandidateBatch:
        if k < 1:
            raise ValueError(Errors.XE001.format(value=k))
        if self.features is None:
            raise ValueError(Errors.XE002.format(name="NearestNames"))
        from spacy_xel.retrieval.nearest_names.kernels import search_rows

        if self.abbreviations:
            queries = spell_out(queries)
        # The same name is looked for once.
        places: dict[str, int] = {}
        which = [places.setdefault(query.mention, len(places)) for query in queries]
        distinct = [Query(name, 0, len(name)) for name in places]
        batch = CandidateBatch.empty(len(distinct), k)
        if distinct:
            vectors = self.features.transform(distinct)
            vectors.sum_duplicates()
            index = self.index
            search_rows(
                vectors.indptr.astype(np.int64), vectors.indices, index["starts"], index["names"],
                self.features.idf, index["inverse_norms"], index["name_rows"],
                self.budget, self.shortlist, *batch,
            )  # fmt: skip
        return CandidateBatch(batch.rows[which], batch.scores[which])

    def to_disk(self, path: Path) -> None:
        if self.features is None:
            return
        # A new folder, because the arrays may be mapped from the one that is there.
        with new_folder(path / _FOLDER, force=True) as folder:
            for name, values in self._arrays().items():
                np.save(folder / f"{name}.npy", values)
            write_manifest(folder, {"format": NEAREST_NAMES_FORMAT, **self._header()})

    def from_disk(self, path: Path) -> None:
        folder = path / _FOLDER
        manifest = read_manifest(folder, NEAREST_NAMES_FORMAT)
        verify_files(folder, manifest)
        names = (*FEATURE_ARRAYS, *_INDEX_ARRAYS)
        self._restore(manifest, {name: load_array(folder / f"{name}.npy") for name in names})

    def to_bytes(self) -> bytes:
        if self.features is None:
            return b""
        arrays = self._arrays()
        header = self._header()
        header["types"] = {name: array.dtype.str for name, array in arrays.items()}
        data = {name: array.tobytes() for name, array in arrays.items()}
        data["header"] = json.dumps(header).encode()
        files = {n: {"sha256": hashlib.sha256(part).hexdigest()} for n, part in data.items()}
        return bytes(srsly.msgpack_dumps({"files": files, "data": data}))

    def from_bytes(self, data: bytes) -> None:
        if not data:
            return
        content = srsly.msgpack_loads(data)
        verify_bytes(content["data"], content)
        header = json.loads(content["data"]["header"])
        arrays = {
            name: np.frombuffer(content["data"][name], dtype=dtype).copy()
            for name, dtype in header["types"].items()
        }
        self._restore(header, arrays)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        saved, config = header["settings"], self._header()["settings"]
        if saved != config:
            raise ValueError(Errors.XE064.format(saved=saved, config=config))
        self.store_identity = header["store"]
        self.features = NgramFeatures.from_arrays(self.settings, arrays)
        self.index = {name: arrays[name] for name in _INDEX_ARRAYS}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        own = self.features.arrays() if self.features is not None else {}
        return {**own, **self.index}

    def _header(self) -> dict[str, Any]:
        return {"store": self.store_identity, "settings": self.settings.to_json()}

    def _text_names(
        self, kb: XelKnowledgeBase, texts: Iterable[AnnotatedText]
    ) -> Iterator[tuple[str, int]]:
        for text in texts:
            queries = [Query(text.text, mention.start, mention.end) for mention in text.mentions]
            spelled_out = spell_out(queries) if self.abbreviations else queries
            for mention, *both in zip(text.mentions, queries, spelled_out, strict=True):
                for row in (row for row in map(kb.row, mention.kb_ids) if row >= 0):
                    yield from ((query.mention, row) for query in both)


def _kb_names(kb: XelKnowledgeBase) -> Iterator[tuple[str, int]]:
    for row in progress(kb.rows(), "N-grams of names", total=kb.n_rows):
        yield from ((name, row) for name in kb.entity(row).names)


def make_nearest_names(
    abbreviations: bool = True,
    budget: int = 100_000,
    shortlist: int = 200,
    features: dict[str, Any] | None = None,
) -> NearestNames:
    """spacy-xel.NearestNames.v1: candidates whose names have the most similar n-grams.

    features (dict): Settings that differ from CHARACTERS.
    """
    from dataclasses import replace

    return NearestNames(
        features=replace(CHARACTERS, **(features or {})),
        abbreviations=abbreviations,
        budget=budget,
        shortlist=shortlist,
    )
