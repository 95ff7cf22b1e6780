"""Names of a knowledge base found in text: whole tokens, longest match, millions of names."""

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spacy_xel.errors import Errors
from spacy_xel.kb.key_table import KeyTable
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.name_index import make_name_table
from spacy_xel.kb.normalize import (
    INVISIBLE,
    TURKIC_LANGUAGES,
    normalize_name,
    replace_lookalikes,
)
from spacy_xel.types import Int32Array, Int64Array, UInt8Array, UInt64Array

_SPACES_NFKC_KEEPS = "\x85\u1680\u2028\u2029"
_ODD_CHARACTERS = INVISIBLE + _SPACES_NFKC_KEEPS
_cached_normal_form = lru_cache(maxsize=1 << 16)(normalize_name)


class NameSet(NamedTuple):
    """Names to look for."""

    table: KeyTable
    prefix_filter: UInt64Array
    blocked: UInt8Array  # (len(table),): 1 for names not to find


class NormalText(NamedTuple):
    """A text in normal form and its tokens' offsets in it; white space ends where it starts."""

    data: UInt8Array
    starts: Int64Array
    ends: Int64Array


class NameFinder:
    """Find a knowledge base's names in tokenized text.

    kb (XelKnowledgeBase): Where the names are; changes to it take effect with the next call.
    case (str): "exact" to find names only as they are written in the KB, "ignore" for any case.
    min_length (int): The smallest number of characters of a name.
    stop_names (Collection[str]): Names not to find.
    """

    def __init__(
        self,
        kb: XelKnowledgeBase,
        *,
        case: str = "ignore",
        min_length: int = 2,
        stop_names: Collection[str] = (),
    ) -> None:
        if case not in ("exact", "ignore"):
            raise ValueError(Errors.XE017.format(value=case))
        self.kb = kb
        self.fold_case = case == "ignore"
        self.min_length = min_length
        self.stop_names = frozenset(self.key(name) for name in stop_names)
        self._version = -1
        self._name_sets: list[NameSet] = []

    def key(self, name: str) -> str:
        """Return the form under which a name is looked up."""
        return normalize_name(name, fold_case=self.fold_case, lang=self.kb.built.lang)

    def find(
        self, text: str, starts: Int64Array, ends: Int64Array, taken: UInt8Array | None = None
    ) -> Int32Array:
        """Return (first token, last token + 1) of the names in a text, in order, none overlapping.

        text (str): The text.
        starts, ends (int64[:]): Its tokens' character offsets.
        taken (uint8[:]): One entry per token, 1 where no name may lie.
        """
        from spacy_xel.kb.name_kernels import keep_longest

        spans = self.find_all(text, starts, ends)
        kept = np.zeros(len(spans), dtype=np.uint8)
        free = np.zeros(len(starts), dtype=np.uint8) if taken is None else taken.copy()
        keep_longest(spans, free, kept)
        chosen = spans[kept.astype(bool)]
        ordered: Int32Array = chosen[np.argsort(chosen[:, 0], kind="stable")]
        return ordered

    def find_all(self, text: str, starts: Int64Array, ends: Int64Array) -> Int32Array:
        """Return (first token, last token + 1) of every name, also where they overlap."""
        from spacy_xel.kb.name_kernels import find_names

        self._follow_changes()
        normal = self._normal_text(text, starts, ends)
        results = []
        for names in self._name_sets:
            room = 2 * len(starts) + 64
            while True:
                out = np.empty((room, 2), dtype=np.int32)
                found = find_names(
                    normal.data, normal.starts, normal.ends,
                    names.table.keys, names.table.directory, np.uint64(names.table.shift),
                    names.prefix_filter, names.blocked, self.min_length, out,
                )  # fmt: skip
                if found <= room:
                    break
                room = found
            results.append(out[:found])
        return results[0] if len(results) == 1 else np.concatenate(results)

    def _follow_changes(self) -> None:
        if self._version == self.kb.version:
            return
        self._version = self.kb.version
        store, overlay = self.kb.built, self.kb.overlay
        index = store.names_uncased if self.fold_case else store.names_cased
        blocked = np.zeros(len(index), dtype=np.uint8)
        gone = {self.key(name) for row in overlay.removed_rows for name in store.entity(row).names}
        unusable = {key for key in gone if not self.kb.lookup(key, cased=not self.fold_case)}
        for key in self.stop_names | unusable:
            position = index.table.position(key)
            if position >= 0:
                blocked[position] = 1
        self._name_sets = [NameSet(index.table, index.prefix_filter, blocked)]
        added = overlay.names_uncased if self.fold_case else overlay.names_cased
        names = sorted(set(added) - self.stop_names)
        if names:
            table, prefix_filter = make_name_table(names)
            nothing = np.zeros(len(table), dtype=np.uint8)
            self._name_sets.append(NameSet(table, prefix_filter, nothing))

    def _normal_text(self, text: str, starts: Int64Array, ends: Int64Array) -> NormalText:
        from spacy_xel.kb.name_kernels import squeeze_spaces

        folded = self._fold_in_place(text)
        if folded is None:
            return self._normal_tokens(text, starts, ends)
        data = np.frombuffer(folded.encode(), dtype=np.uint8)
        out = np.empty(len(data), dtype=np.uint8)
        byte_starts, byte_ends = np.empty_like(starts), np.empty_like(ends)
        size = squeeze_spaces(data, starts, ends, out, byte_starts, byte_ends)
        return NormalText(out[:size], byte_starts, byte_ends)

    def _fold_in_place(self, text: str) -> str | None:
        """Return the normal form of a text if it has the same characters one by one, or None."""
        if self.kb.built.lang in TURKIC_LANGUAGES:
            return None
        if not text.isascii() and (
            not unicodedata.is_normalized("NFKC", text)
            or any(character in text for character in _ODD_CHARACTERS)
        ):
            return None
        plain = replace_lookalikes(text)
        if not self.fold_case:
            return plain
        folded = plain.casefold()
        same = len(folded) == len(plain) and unicodedata.is_normalized("NFKC", folded)
        return folded if same else None

    def _normal_tokens(self, text: str, starts: Int64Array, ends: Int64Array) -> NormalText:
        """Return the normal form of a text token by token: slower, for any characters."""
        lang = self.kb.built.lang
        pieces: list[bytes] = []
        size, previous_end, needs_space = 0, 0, False
        byte_starts, byte_ends = np.empty_like(starts), np.empty_like(ends)
        for token, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            form = _cached_normal_form(text[start:end], fold_case=self.fold_case, lang=lang)
            piece = form.encode("utf8", "replace")
            needs_space = needs_space or start > previous_end or not piece
            if piece and needs_space and size:
                pieces.append(b" ")
                size += 1
            byte_starts[token], byte_ends[token] = size, size + len(piece)
            if piece:
                pieces.append(piece)
                size += len(piece)
                needs_space = False
            previous_end = end
        return NormalText(np.frombuffer(b"".join(pieces), dtype=np.uint8), byte_starts, byte_ends)
