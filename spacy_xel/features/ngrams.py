"""Mentions and their contexts as sparse vectors: hashed n-grams with tf-idf (XMRED section 2.1)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spacy_xel.errors import raise_at_wrong
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.progress import progress
from spacy_xel.types import Float32Array, Int32Array, Int64Array, Query, UInt8Array, UInt64Array

_BATCH = 4_096
_WORD = re.compile(r"[0-9a-zA-Z\u0080-\U0010ffff]+")
FEATURE_ARRAYS = ("vocabulary", "idf")
# The kinds of n-grams, as the two lowest bits of their hashes.
MENTION_WORDS, CONTEXT_WORDS, MENTION_CHARACTERS, MENTION_NAME = range(4)
_NOTHING: UInt8Array = np.empty(0, dtype=np.uint8)


class _Part(NamedTuple):
    """Some rows of a CSR matrix."""

    columns: Int32Array
    values: Float32Array
    lengths: Int64Array


@dataclass(frozen=True, slots=True)
class NgramSettings:
    """Which n-grams, and how much each kind counts; 0 leaves a kind out.

    mention_words, context_words, mention_characters, mention_name (float): Length of each kind's
        vector. The last kind is the mention as a whole.
    longest_words (int): Words of an n-gram at most.
    context_stem (int): So many characters of a longer word of the context count as well, to make
        one of "destroyed" and "destruction"; 0 for none.
    shortest_characters, longest_characters (int): Characters of an n-gram.
    window (int): Characters of context on each side of the mention.
    min_count (int): In how many instances an n-gram must occur.
    """

    mention_words: float = 1.0
    context_words: float = 0.7
    mention_characters: float = 1.0
    mention_name: float = 0.0
    longest_words: int = 2
    context_stem: int = 0
    shortest_characters: int = 3
    longest_characters: int = 4
    window: int = 200
    min_count: int = 1

    def __post_init__(self) -> None:
        kinds = ("mention_words", "context_words", "mention_characters", "mention_name")
        checks = {kind: (0 <= getattr(self, kind) < 1e6, "from 0 to 1e6") for kind in kinds}
        checks |= {
            "longest_words": (1 <= self.longest_words <= 8, "from 1 to 8"),
            "context_stem": (self.context_stem >= 0, "at least 0"),
            "shortest_characters": (self.shortest_characters >= 1, "at least 1"),
            "longest_characters": (
                self.shortest_characters <= self.longest_characters <= 64,
                "from shortest_characters to 64",
            ),
            "window": (self.window >= 0, "at least 0"),
            "min_count": (self.min_count >= 1, "at least 1"),
        }
        raise_at_wrong(self, checks)

    @property
    def weights(self) -> Float32Array:
        """Return the weights in the order of the kinds' numbers."""
        kinds = (
            self.mention_words, self.context_words, self.mention_characters, self.mention_name
        )  # fmt: skip
        return np.array(kinds, dtype=np.float32)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Hashes(NamedTuple):
    """The n-grams of some queries."""

    hashes: UInt64Array  # sorted within each query
    row_ends: Int64Array  # (n_queries,): where each query's end


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
        self._weights = settings.weights
        size = 1 << max(4, (2 * len(vocabulary)).bit_length())
        self._table = np.zeros((size, 2), dtype=np.uint64)
        fill_table(vocabulary, self._table)

    @classmethod
    def fit(
        cls, queries: Iterable[Query], settings: NgramSettings | None = None
    ) -> "NgramFeatures":
        """Count n-grams and keep those that are frequent enough."""
        settings = settings or NgramSettings()
        counter = _Counter()
        for batch in _batches(queries):
            counter.add(hash_queries(batch, settings))
        return cls(settings, *counter.vocabulary(settings.min_count))

    @classmethod
    def fit_transform(
        cls, queries: Iterable[Query], settings: NgramSettings | None = None
    ) -> tuple["NgramFeatures", sparse.csr_matrix]:
        """Do both in one pass over the queries."""
        settings = settings or NgramSettings()
        counter = _Counter()
        hashed = []
        for batch in _batches(queries):
            hashed.append(hash_queries(batch, settings))
            counter.add(hashed[-1])
        features = cls(settings, *counter.vocabulary(settings.min_count))
        hashed.reverse()
        parts = []
        for _ in progress(range(len(hashed)), "N-gram weights", total=len(hashed)):
            parts.append(features._weigh(hashed.pop()))  # freed when it has been used
        return features, features._stack(parts)

    @property
    def dimension(self) -> int:
        return len(self.vocabulary)

    def transform(self, queries: Sequence[Query], *, threads: int = 1) -> sparse.csr_matrix:
        """Return one row per query."""

        def run(batch: Sequence[Query]) -> _Part:
            return self._weigh(hash_queries(batch, self.settings))

        if threads == 1 or len(queries) <= _BATCH:
            return self._stack([run(batch) for batch in _batches(queries)])
        with ThreadPoolExecutor(max_workers=threads) as pool:
            return self._stack(list(pool.map(run, _batches(queries))))

    def _weigh(self, hashed: Hashes) -> _Part:
        from spacy_xel.features.ngram_kernels import weigh_rows

        columns = np.empty(len(hashed.hashes), dtype=np.int32)
        values = np.empty(len(hashed.hashes), dtype=np.float32)
        lengths = np.empty(len(hashed.row_ends), dtype=np.int64)
        size = weigh_rows(*hashed, self._table, self.idf, self._weights, columns, values, lengths)
        return _Part(columns[:size], values[:size], lengths)

    def _stack(self, parts: Sequence[_Part]) -> sparse.csr_matrix:
        nothing = _Part(np.empty(0, np.int32), np.empty(0, np.float32), np.zeros(1, np.int64))
        columns = np.concatenate([part.columns for part in (nothing, *parts)])
        values = np.concatenate([part.values for part in (nothing, *parts)])
        indptr = np.concatenate([part.lengths for part in (nothing, *parts)])
        np.cumsum(indptr, out=indptr)
        shape = (len(indptr) - 1, self.dimension)
        return sparse.csr_matrix((values, columns, indptr), shape=shape)

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


class _Counter:
    """Counts in how many queries each n-gram occurs."""

    def __init__(self) -> None:
        self.keys: UInt64Array = np.zeros(1 << 16, dtype=np.uint64)
        self.counts: Int32Array = np.zeros(1 << 16, dtype=np.int32)
        self.used = 0
        self.total = 0

    def add(self, hashed: Hashes) -> None:
        from spacy_xel.features.ngram_kernels import count_hashes, move_counts, unique_in_rows

        hashes, row_ends = hashed.hashes.copy(), hashed.row_ends.copy()
        hashes = hashes[: unique_in_rows(hashes, row_ends)]
        self.total += len(hashed.row_ends)
        needed = 2 * (self.used + len(hashes))
        if needed > len(self.keys):
            old = self.keys, self.counts
            size = 1 << needed.bit_length()
            self.keys = np.zeros(size, dtype=np.uint64)
            self.counts = np.zeros(size, dtype=np.int32)
            move_counts(*old, self.keys, self.counts)
        self.used += count_hashes(hashes, self.keys, self.counts)

    def vocabulary(self, min_count: int) -> tuple[UInt64Array, Float32Array]:
        """Return the n-grams that are frequent enough, sorted, and their idf."""
        kept = self.counts >= max(min_count, 1)
        hashes, counts = self.keys[kept], self.counts[kept]
        order = np.argsort(hashes)
        idf = np.log((1 + self.total) / (1 + counts[order])) + 1
        return hashes[order], idf.astype(np.float32)


def hash_queries(queries: Sequence[Query], settings: NgramSettings) -> Hashes:
    """Return the n-grams of queries."""
    from spacy_xel.features.ngram_kernels import hash_rows

    mentions, mention_ends = _encode([normalize_name(query.mention) for query in queries])
    size = len(mentions) * (settings.longest_words + _n_sizes(settings))
    contexts, context_ends = _NOTHING, mention_ends
    if settings.context_words:
        contexts, context_ends = _encode([_context(query, settings.window) for query in queries])
        size += len(contexts) * (settings.longest_words + 1)
    out = np.empty(size, dtype=np.uint64)
    row_ends = np.empty(len(queries), dtype=np.int64)
    size = hash_rows(
        mentions, mention_ends, contexts, context_ends, settings.weights, settings.longest_words,
        settings.context_stem, settings.shortest_characters, settings.longest_characters,
        out, row_ends,
    )  # fmt: skip
    return Hashes(out[:size], row_ends)


def _n_sizes(settings: NgramSettings) -> int:
    """Return how many sizes n-grams of characters have, and one more for the whole name."""
    return max(0, settings.longest_characters - settings.shortest_characters + 1) + 1


def _encode(texts: Sequence[str]) -> tuple[UInt8Array, Int64Array]:
    """Return texts as UTF-8, a space before each and after the last, and where each ends."""
    joined = f" {' '.join(texts)} "
    if joined.isascii():
        lengths = list(map(len, texts))
    else:
        lengths = [len(text.encode("utf8", "replace")) for text in texts]
    ends = np.array(lengths, dtype=np.int64) + 1
    data: UInt8Array = np.frombuffer(joined.encode("utf8", "replace"), dtype=np.uint8)
    return data, np.cumsum(ends)


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

    Words of the mention stand in quotation marks, its characters between bars, and the whole of
    it between double bars.
    """
    mention, context = normalize_name(query.mention), _context(query, settings.window)
    names: dict[int, str] = {}
    padded = f" {mention} "
    for n in range(settings.shortest_characters, settings.longest_characters + 1):
        for piece in (padded[i : i + n] for i in range(len(padded) - n + 1)):
            names[_hash_of(piece, MENTION_CHARACTERS)] = f"|{piece}|"
    names[_hash_of(mention, MENTION_NAME)] = f"||{mention}||"
    for n in range(1, settings.longest_words + 1):
        for piece in _word_ngrams(context, n):
            names[_hash_of(piece, CONTEXT_WORDS, n)] = piece
            stem = settings.context_stem
            if n == 1 and 0 < stem < len(piece):
                names[_hash_of(piece, CONTEXT_WORDS, n, stem)] = f"{piece[:stem]}-"
        for piece in _word_ngrams(mention, n):
            names[_hash_of(piece, MENTION_WORDS, n)] = f'"{piece}"'
    return names


def _word_ngrams(text: str, n: int) -> list[str]:
    words = _WORD.findall(text)
    return [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]


def _hash_of(piece: str, kind: int, n_words: int = 1, stem: int = 0) -> int:
    """Return the hash of one n-gram, or of the stem of a word."""
    from spacy_xel.features.ngram_kernels import hash_characters, hash_name, hash_words

    data: UInt8Array = np.frombuffer(piece.encode("utf8", "replace"), dtype=np.uint8)
    out = np.empty((n_words + 1) * (len(data) + 1), dtype=np.uint64)
    if kind == MENTION_CHARACTERS:
        size = hash_characters(data, 0, len(data), kind, len(piece), len(piece), out, 0)
    elif kind == MENTION_NAME:
        size = hash_name(data, 0, len(data), kind, out, 0)
    else:  # the longest n-gram of the last word comes last
        size = hash_words(data, 0, len(data), kind, n_words, stem, out, 0)
    if stem:
        return int(out[0])
    return int(out[size - 1]) if size else 0
