"""Mentions and their contexts as sparse vectors: hashed n-grams with tf-idf (XMRED section 2.1)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.kb.normalize import normalize_name
from spacy_xel.types import Float32Array, Int64Array, Query, UInt8Array, UInt64Array

_BATCH = 20_000
_WORD = re.compile(r"[0-9a-zA-Z\u0080-\U0010ffff]+")
_WORDS, _CHARACTERS = 0, 1
FEATURE_ARRAYS = ("vocabulary", "idf")


@dataclass(frozen=True, slots=True)
class NgramSettings:
    """Which n-grams, and how much each kind counts; 0 leaves a kind out.

    mention_words, context_words, mention_characters (float): Length of each kind's vector.
    longest_words (int): Words of an n-gram at most.
    shortest_characters, longest_characters (int): Characters of an n-gram.
    window (int): Characters of context on each side of the mention.
    min_count (int): In how many instances an n-gram must occur.
    """

    mention_words: float = 1.0
    context_words: float = 0.7
    mention_characters: float = 1.0
    longest_words: int = 2
    shortest_characters: int = 3
    longest_characters: int = 4
    window: int = 200
    min_count: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Kind:
    code: int
    seed: int
    weight: float
    shortest: int
    longest: int


class NgramFeatures:
    """Turn mentions in context into sparse vectors.

    settings (NgramSettings): Which n-grams.
    vocabulary (uint64[n]): Hashes of the known n-grams, sorted; the column is the position.
    idf (float32[n]): Their inverse document frequencies.
    """

    def __init__(self, settings: NgramSettings, vocabulary: UInt64Array, idf: Float32Array) -> None:
        from spacy_xel.features.ngram_kernels import fill_table

        self.settings = settings
        self.vocabulary = vocabulary
        self.idf = idf
        size = 1 << max(4, (2 * len(vocabulary)).bit_length())
        self._table_hashes = np.zeros(size, dtype=np.uint64)
        self._table_columns = np.full(size, -1, dtype=np.int32)
        fill_table(vocabulary, self._table_hashes, self._table_columns)

    @classmethod
    def fit(
        cls, queries: Iterable[Query], settings: NgramSettings | None = None
    ) -> "NgramFeatures":
        """Count n-grams and keep those that are frequent enough."""
        settings = settings or NgramSettings()
        hashes: UInt64Array = np.empty(0, dtype=np.uint64)
        counts: Int64Array = np.empty(0, dtype=np.int64)
        total = 0
        for batch in _batches(queries):
            total += len(batch)
            for new in _distinct_hashes(batch, settings):
                merged, places = np.unique(np.concatenate([hashes, new]), return_inverse=True)
                grown = np.bincount(places[len(hashes) :], minlength=len(merged))
                grown[places[: len(hashes)]] += counts
                hashes, counts = merged, grown
        kept = counts >= settings.min_count
        idf = (np.log((1 + total) / (1 + counts[kept])) + 1).astype(np.float32)
        return cls(settings, hashes[kept], idf)

    @property
    def dimension(self) -> int:
        return len(self.vocabulary)

    def transform(self, queries: Sequence[Query]) -> sparse.csr_matrix:
        """Return one row per query."""
        from spacy_xel.features.ngram_kernels import weigh_rows

        parts = []
        for kind, (hashes, row_ends) in _hash_kinds(queries, self.settings):
            columns = np.empty(len(hashes), dtype=np.int32)
            values = np.empty(len(hashes), dtype=np.float32)
            lengths = np.empty(len(queries), dtype=np.int64)
            size = weigh_rows(
                hashes, row_ends, self._table_hashes, self._table_columns, self.idf,
                np.float32(kind.weight), columns, values, lengths,
            )  # fmt: skip
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            shape = (len(queries), self.dimension)
            part = sparse.csr_matrix((values[:size], columns[:size], indptr), shape=shape)
            parts.append(part)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        total.sort_indices()
        return total

    def columns(self, names: Mapping[int, str]) -> dict[int, str]:
        """Return the names of n-grams by column, from their names by hash."""
        hashes = np.array(list(names), dtype=np.uint64)
        places = np.searchsorted(self.vocabulary, hashes)
        return {
            place: name
            for place, value, name in zip(
                places.tolist(), hashes.tolist(), names.values(), strict=True
            )
            if place < self.dimension and int(self.vocabulary[place]) == value
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in FEATURE_ARRAYS}

    @classmethod
    def from_arrays(
        cls, settings: NgramSettings, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> "NgramFeatures":
        return cls(settings, *(arrays[name] for name in FEATURE_ARRAYS))


def _kinds(queries: Sequence[Query], settings: NgramSettings) -> Iterator[tuple[_Kind, list[str]]]:
    """Yield each kind of n-grams with the texts to take them from."""
    mentions = [normalize_name(query.mention) for query in queries]
    longest = settings.longest_words
    if settings.mention_words:
        yield _Kind(_WORDS, 1, settings.mention_words, 1, longest), mentions
    if settings.context_words:
        contexts = [_context(query, settings.window) for query in queries]
        yield _Kind(_WORDS, 2, settings.context_words, 1, longest), contexts
    if settings.mention_characters:
        shortest, longest = settings.shortest_characters, settings.longest_characters
        kind = _Kind(_CHARACTERS, 3, settings.mention_characters, shortest, longest)
        yield kind, [f" {mention} " for mention in mentions]


def _hash_kinds(
    queries: Sequence[Query], settings: NgramSettings
) -> Iterator[tuple[_Kind, tuple[UInt64Array, Int64Array]]]:
    """Yield each kind of n-grams with the queries' hashes and where each query's end."""
    for kind, texts in _kinds(queries, settings):
        yield kind, _hash_texts(texts, kind)


def _hash_texts(texts: Sequence[str], kind: _Kind) -> tuple[UInt64Array, Int64Array]:
    from spacy_xel.features.ngram_kernels import hash_rows

    encoded = [text.encode("utf8", "replace") for text in texts]
    data: UInt8Array = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    ends = np.cumsum([len(piece) for piece in encoded], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    per_byte = kind.longest if kind.code == _WORDS else kind.longest - kind.shortest + 1
    out = np.empty(len(data) * per_byte, dtype=np.uint64)
    row_ends = np.empty(len(texts), dtype=np.int64)
    size = hash_rows(
        data, starts, ends, kind.code, np.uint64(kind.seed), kind.shortest, kind.longest,
        out, row_ends,
    )  # fmt: skip
    return out[:size], row_ends


def _distinct_hashes(batch: Sequence[Query], settings: NgramSettings) -> Iterator[UInt64Array]:
    from spacy_xel.features.ngram_kernels import unique_in_rows

    for _, (hashes, row_ends) in _hash_kinds(batch, settings):
        yield hashes[: unique_in_rows(hashes, row_ends)]


def _context(query: Query, window: int) -> str:
    left = query.text[max(0, query.start - window) : query.start]
    right = query.text[query.end : query.end + window]
    return f"{left} \n {right}".lower()


def _batches(queries: Iterable[Query]) -> Iterator[list[Query]]:
    iterator = iter(queries)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def ngram_names(query: Query, settings: NgramSettings) -> dict[int, str]:
    """Return the n-grams of a query as people read them, by hash.

    Words of the mention stand in quotation marks, its characters between bars.
    """
    names: dict[int, str] = {}
    for kind, (text,) in _kinds([query], settings):
        if kind.code == _CHARACTERS:
            for n in range(kind.shortest, kind.longest + 1):
                for piece in (text[i : i + n] for i in range(len(text) - n + 1)):
                    only = _Kind(_CHARACTERS, kind.seed, kind.weight, n, n)
                    names[int(_hash_texts([piece], only)[0][0])] = f"|{piece}|"
            continue
        words = _WORD.findall(text)
        for n in range(1, kind.longest + 1):
            for i in range(len(words) - n + 1):
                piece = " ".join(words[i : i + n])
                found = set(_hash_texts([piece], kind)[0].tolist())
                shorter = [" ".join(words[i : i + n - 1]), " ".join(words[i + 1 : i + n])]
                known = {h for text in shorter for h in _hash_texts([text], kind)[0].tolist()}
                (value,) = found - known if n > 1 else found
                names[value] = f'"{piece}"' if kind.seed == 1 else piece
    return names
