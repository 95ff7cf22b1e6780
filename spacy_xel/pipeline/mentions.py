"""The component xel_mentions: the knowledge base's names, found in text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from spacy.attrs import ORTH, SPACY
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_xel.mentions.gazetteer import NameFinder, Tokens
from spacy_xel.pipeline.annotate import annotate_mentions
from spacy_xel.pipeline.base import CorpusReader, KBLoader, KnowledgeBasePipe
from spacy_xel.types import AnnotatedText, UInt8Array

DEFAULT_MENTIONS = {
    "kb_source": None,
    "case": "ignore",
    "min_length": 2,
    "min_link_rate": 0.1,
    "min_occurrences": 3,
    "label": "ENTITY",
    "spans_key": None,
}


@Language.factory("xel_mentions", assigns=["doc.ents"], default_config=DEFAULT_MENTIONS)
def make_mentions(
    nlp: Language,
    name: str,
    kb_source: str | None,
    case: str,
    min_length: int,
    min_link_rate: float,
    min_occurrences: int,
    label: str,
    spans_key: str | None,
) -> "NameMentions":
    """Create the component xel_mentions."""
    return NameMentions(
        nlp,
        name,
        kb_source=kb_source,
        case=case,
        min_length=min_length,
        min_link_rate=min_link_rate,
        min_occurrences=min_occurrences,
        label=label,
        spans_key=spans_key,
    )


class NameMentions(KnowledgeBasePipe):
    """Mark the names of the knowledge base as mentions.

    kb_source (str): The component whose knowledge base to use, or None for one of its own.
    case (str): "exact" or "ignore".
    min_length (int): The smallest number of characters of a name.
    min_link_rate (float): A name that a training corpus links more rarely than this, of all the
        times it occurs, is a common word there and not marked any more.
    min_occurrences (int): How often a name must occur for that.
    label (str): The label of the mentions.
    spans_key (str): Write to doc.spans[spans_key] instead of doc.ents.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "xel_mentions",
        *,
        kb_source: str | None = None,
        case: str = "ignore",
        min_length: int = 2,
        min_link_rate: float = 0.1,
        min_occurrences: int = 3,
        label: str = "ENTITY",
        spans_key: str | None = None,
    ) -> None:
        super().__init__(nlp, name, kb_source)
        self.case = case
        self.min_length = min_length
        self.min_link_rate = min_link_rate
        self.min_occurrences = min_occurrences
        self.label = label
        self.spans_key = spans_key
        self.stop_names: list[str] = []
        self._finder: NameFinder | None = None

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb_loader: KBLoader | None = None,
        corpus: CorpusReader | None = None,
        stop_names: list[str] | None = None,
    ) -> None:
        """Load the knowledge base and learn which of its names are not worth marking.

        kb_loader: Loads a knowledge base; not needed with kb_source.
        corpus: Annotated texts to learn from, instead of get_examples.
        stop_names: More names not to mark; by default the language's stop words.
        """
        if kb_loader is not None:
            self.set_kb(kb_loader)
        pipeline = nlp or self._nlp
        if stop_names is None:
            stop_names = sorted(pipeline.Defaults.stop_words) if pipeline is not None else []
        self.stop_names = stop_names
        self._finder = None
        texts = self.training_texts(get_examples, nlp, corpus)
        rare = self._rarely_linked(texts, pipeline) if pipeline is not None else []
        self.stop_names = sorted({*stop_names, *rare})
        self._finder = None

    def __call__(self, doc: Doc) -> Doc:
        spans = self.finder.find(_tokens(doc), self._taken(doc))
        annotate_mentions(doc, spans.tolist(), self.label, self.spans_key)
        return doc

    @property
    def finder(self) -> NameFinder:
        """The gazetteer over the current knowledge base."""
        kb = self.kb
        if self._finder is None or self._finder.kb is not kb:
            self._finder = NameFinder(
                kb, case=self.case, min_length=self.min_length, stop_names=self.stop_names
            )
        return self._finder

    def state(self) -> dict[str, Any]:
        return {"stop_names": self.stop_names}

    def set_state(self, state: dict[str, Any]) -> None:
        self.stop_names = state["stop_names"]
        self._finder = None

    def worker_state(self) -> dict[str, Any]:
        return {**super().worker_state(), "_finder": None}

    def _taken(self, doc: Doc) -> UInt8Array | None:
        """Mark the tokens of entities that another component has set."""
        if self.spans_key is not None or not doc.ents:
            return None
        taken = np.zeros(len(doc), dtype=np.uint8)
        for ent in doc.ents:
            taken[ent.start : ent.end] = 1
        return taken

    def _rarely_linked(self, texts: Iterable[AnnotatedText], nlp: Language) -> list[str]:
        """Return names that occur in the texts but are hardly ever annotated there."""
        occurrences: Counter[str] = Counter()
        linked: Counter[str] = Counter()
        for found, is_mention in self._occurrences(texts, nlp):
            occurrences[found] += 1
            linked[found] += is_mention
        return [
            name
            for name, count in occurrences.items()
            if count >= self.min_occurrences and linked[name] < self.min_link_rate * count
        ]

    def _occurrences(
        self, texts: Iterable[AnnotatedText], nlp: Language
    ) -> Iterator[tuple[str, bool]]:
        """Yield each name found in the texts, and whether it is annotated there."""
        for text in texts:
            if not text.mentions:
                continue
            doc = nlp.make_doc(text.text)
            gold = {(mention.start, mention.end) for mention in text.mentions}
            for first, last in self.finder.find(_tokens(doc)).tolist():
                span = doc[first:last]
                yield self.finder.key(span.text), (span.start_char, span.end_char) in gold


def _tokens(doc: Doc) -> Tokens:
    array = doc.to_array([ORTH, SPACY]).astype(np.uint64, copy=False).reshape(-1, 2)
    keys, spaces = np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])
    return Tokens(keys, spaces, doc.vocab.strings.__getitem__)
