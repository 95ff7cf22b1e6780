"""Texts in normal form, put together from the remembered normal forms of their tokens.

A text has far fewer different tokens than tokens: each is normalised once, and whole texts are
put together by a compiled kernel.
"""

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spacy_xel.types import Int32Array, Int64Array, UInt8Array, UInt64Array

_FIRST_TABLE = 1 << 12
_MOST_FORMS = 1 << 20  # then forget them all, so that memory stays bounded


class NormalText(NamedTuple):
    """A text in normal form and its tokens' places in it; white space ends where it starts."""

    data: UInt8Array
    starts: Int64Array
    ends: Int64Array


class TokenForms:
    """Normal forms of tokens, by key.

    normalize (Callable[[str], str]): Returns the normal form of a token's text.
    """

    _keys: UInt64Array  # (n,): the tokens, in the order of arrival
    _starts: Int64Array  # (n + 1,): where their forms start in _bytes
    _bytes: UInt8Array
    _is_space: UInt8Array  # (n,)
    _table_keys: UInt64Array  # an open-addressed table from key to position
    _table_slots: Int32Array

    def __init__(self, normalize: Callable[[str], str]) -> None:
        self.normalize = normalize
        self._lock = threading.Lock()
        self._forget()

    def join(
        self, keys: UInt64Array, spaces: UInt64Array, text_of: Callable[[int], str]
    ) -> NormalText:
        """Return the normal form of a text.

        keys (uint64[:]): Per token a number that tells it apart.
        spaces (uint64[:]): Per token whether white space follows.
        text_of (Callable): Returns the text of a key.
        """
        with self._lock:  # threads share the forms
            return self._join(keys, spaces, text_of)

    def _join(
        self, keys: UInt64Array, spaces: UInt64Array, text_of: Callable[[int], str]
    ) -> NormalText:
        from spacy_xel.kb.name_kernels import join_forms

        slots = self._slots(keys, text_of)
        size = int(np.sum(self._starts[slots + 1] - self._starts[slots])) + len(keys)
        data = np.empty(size, dtype=np.uint8)
        starts, ends = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
        used = join_forms(
            slots, spaces, self._starts, self._bytes, self._is_space, data, starts, ends
        )
        return NormalText(data[:used], starts, ends)

    def _slots(self, keys: UInt64Array, text_of: Callable[[int], str]) -> Int32Array:
        from spacy_xel.kb.name_kernels import find_slots

        slots = np.empty(len(keys), dtype=np.int32)
        find_slots(keys, self._table_keys, self._table_slots, slots)
        new = np.unique(keys[slots < 0])
        if len(new):
            if len(self._keys) + len(new) > _MOST_FORMS:
                self._forget()
                new = np.unique(keys)
            self._add(new, text_of)
            find_slots(keys, self._table_keys, self._table_slots, slots)
        return slots

    def _add(self, new: UInt64Array, text_of: Callable[[int], str]) -> None:
        from spacy_xel.kb.name_kernels import add_slots

        texts = [text_of(key) for key in new.tolist()]
        forms = [self.normalize(text).encode("utf8", "replace") for text in texts]
        is_space = np.array([text.isspace() for text in texts], dtype=np.uint8)
        self._is_space = np.concatenate([self._is_space, is_space])
        ends = np.cumsum([len(form) for form in forms], dtype=np.int64)
        first_slot = len(self._keys)
        self._starts = np.concatenate([self._starts, self._starts[-1] + ends])
        self._bytes = np.concatenate([self._bytes, np.frombuffer(b"".join(forms), np.uint8)])
        self._keys = np.concatenate([self._keys, new])
        if 2 * len(self._keys) > len(self._table_keys):
            size = 1 << (4 * len(self._keys)).bit_length()
            self._table_keys = np.zeros(size, dtype=np.uint64)
            self._table_slots = np.full(size, -1, dtype=np.int32)
            new, first_slot = self._keys, 0
        add_slots(new, first_slot, self._table_keys, self._table_slots)

    def _forget(self) -> None:
        self._keys = np.empty(0, dtype=np.uint64)
        self._starts = np.zeros(1, dtype=np.int64)
        self._bytes = np.empty(0, dtype=np.uint8)
        self._is_space = np.empty(0, dtype=np.uint8)
        self._table_keys = np.zeros(_FIRST_TABLE, dtype=np.uint64)
        self._table_slots = np.full(_FIRST_TABLE, -1, dtype=np.int32)
