"""Names of a knowledge base found in text: whole tokens, longest match, millions of names."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from spacy_xel.errors import Errors
from spacy_xel.kb.key_table import KeyTable
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.name_index import make_name_table
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.kb.store import Store
from spacy_xel.mentions.token_forms import TokenForms
from spacy_xel.types import Int32Array, UInt8Array, UInt64Array


class Tokens(NamedTuple):
    """A tokenized text."""

    keys: UInt64Array  # (n,): what tells different tokens apart, such as spaCy's orth
    spaces: UInt64Array  # (n,): whether white space follows
    text_of: Callable[[int], str]  # the text of a key


class NameSet(NamedTuple):
    """Names to look for."""

    table: KeyTable
    prefix_filter: UInt64Array
    blocked: UInt8Array  # (len(table),): 1 for names not to find


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
        self._forms = TokenForms(self.key)
        self._followed: tuple[Store | None, int] = (None, -1)
        self._name_sets: list[NameSet] = []

    def key(self, name: str) -> str:
        """Return the form under which a name is looked up."""
        return normalize_name(name, fold_case=self.fold_case, lang=self.kb.built.lang)

    def find(self, tokens: Tokens, taken: UInt8Array | None = None) -> Int32Array:
        """Return (first token, last token + 1) of the names in a text, in order, none overlapping.

        tokens (Tokens): The text.
        taken (uint8[:]): One entry per token, 1 where no name may lie.
        """
        from spacy_xel.kb.name_kernels import keep_longest

        spans = self.find_all(tokens)
        kept = np.zeros(len(spans), dtype=np.uint8)
        free = np.zeros(len(tokens.keys), dtype=np.uint8) if taken is None else taken.copy()
        keep_longest(spans, free, kept)
        chosen = spans[kept.astype(bool)]
        ordered: Int32Array = chosen[np.argsort(chosen[:, 0], kind="stable")]
        return ordered

    def find_all(self, tokens: Tokens) -> Int32Array:
        """Return (first token, last token + 1) of every name, also where they overlap."""
        from spacy_xel.kb.name_kernels import find_names

        self._follow_changes()
        text = self._forms.join(tokens.keys, tokens.spaces, tokens.text_of)
        results = []
        for names in self._name_sets:
            room = 2 * len(tokens.keys) + 64
            while True:
                out = np.empty((room, 2), dtype=np.int32)
                found = find_names(
                    text.data, text.starts, text.ends,
                    names.table.keys, names.table.directory, np.uint64(names.table.shift),
                    names.prefix_filter, names.blocked, self.min_length, out,
                )  # fmt: skip
                if found <= room:
                    break
                room = found
            results.append(out[:found])
        return results[0] if len(results) == 1 else np.concatenate(results)

    def _follow_changes(self) -> None:
        if self._followed == (self.kb.store, self.kb.version):
            return
        store, overlay = self.kb.built, self.kb.overlay
        index = store.names_uncased if self.fold_case else store.names_cased
        blocked = np.zeros(len(index), dtype=np.uint8)
        blocked[index.names_of_only(overlay.removed_rows, overlay.heirs)] = 1
        for key in self.stop_names:
            position = index.table.position(key)
            if position >= 0:
                blocked[position] = 1
        name_sets = [NameSet(index.table, index.prefix_filter, blocked)]
        added = overlay.names_uncased if self.fold_case else overlay.names_cased
        names = sorted(set(added) - self.stop_names)
        if names:
            table, prefix_filter = make_name_table(names)
            nothing = np.zeros(len(table), dtype=np.uint8)
            name_sets.append(NameSet(table, prefix_filter, nothing))
        self._name_sets = name_sets
        self._followed = (store, self.kb.version)
