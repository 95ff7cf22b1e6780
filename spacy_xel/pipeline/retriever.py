"""The component xel_retriever: candidates for every mention, and the best of them as its link."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_xel.calibrate.coherence import Coherence
from spacy_xel.errors import Errors
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.store import Store
from spacy_xel.mentions.sources import check_source, get_mentions
from spacy_xel.pipeline.annotate import annotate_links
from spacy_xel.pipeline.base import CorpusReader, KBLoader, KnowledgeBasePipe, pipe_in_batches
from spacy_xel.pipeline.linking import LinkMaker, RankedMentions, mention_queries
from spacy_xel.types import Link, Retriever

_RETRIEVER_FOLDER = "retriever"
Scorer = Callable[..., dict[str, Any]]

DEFAULT_RETRIEVER = {
    "retriever": {"@misc": "spacy-xel.AliasTable.v1"},
    "kb_source": None,
    "top_k": 20,
    "threshold": 0.0,
    "coherence": None,
    "mentions": "ents",
    "scorer": {"@scorers": "spacy-xel.scorer.v1"},
}
SCORE_WEIGHTS: dict[str, float | None] = {
    "xel_micro_f": 1.0,
    "xel_micro_p": 0.0,
    "xel_micro_r": 0.0,
    "xel_acc": 0.0,
    "xel_recall_at_10": 0.0,
}


@Language.factory(
    "xel_retriever",
    requires=["doc.ents"],
    assigns=["token.ent_kb_id", "doc.spans"],
    default_config=DEFAULT_RETRIEVER,
    default_score_weights=SCORE_WEIGHTS,
)
def make_retriever(
    nlp: Language,
    name: str,
    retriever: Retriever,
    kb_source: str | None,
    top_k: int,
    threshold: float,
    coherence: dict[str, float] | None,
    mentions: str,
    scorer: Scorer | None,
) -> "CandidateRetriever":
    """Create the component xel_retriever."""
    return CandidateRetriever(
        nlp,
        name,
        retriever,
        kb_source=kb_source,
        top_k=top_k,
        threshold=threshold,
        coherence=None if coherence is None else Coherence(**coherence),
        mentions=mentions,
        scorer=scorer,
    )


class CandidateRetriever(KnowledgeBasePipe):
    """Link mentions to a knowledge base by what a retriever finds.

    retriever (Retriever): Finds candidates.
    kb_source (str): The component whose knowledge base to use, or None for one of its own.
    top_k (int): How many candidates to keep per mention.
    threshold (float): A mention whose best score is lower is NIL.
    coherence (Coherence): Lets the mentions of a document inform each other; None for not.
    mentions (str): "ents", or "spans:KEY".
    scorer (Callable): Scores predictions, see evaluation/.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        retriever: Retriever,
        *,
        kb_source: str | None = None,
        top_k: int = 20,
        threshold: float = 0.0,
        coherence: Coherence | None = None,
        mentions: str = "ents",
        scorer: Scorer | None = None,
    ) -> None:
        super().__init__(nlp, name, kb_source)
        if top_k < 1:
            raise ValueError(Errors.XE001.format(value=top_k))
        self.retriever = retriever
        self.top_k = top_k
        self.linking = LinkMaker(threshold=threshold, coherence=coherence)
        self.mentions = check_source(mentions)
        self.scorer = scorer
        self._attached: Store | None = None

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb_loader: KBLoader | None = None,
        corpus: CorpusReader | None = None,
    ) -> None:
        """Load the knowledge base and fit the retriever.

        kb_loader: Loads the knowledge base, e.g. spacy-xel.KnowledgeBase.v1.
        corpus: Annotated texts to learn from, instead of get_examples.
        """
        if kb_loader is not None:
            self.set_kb(kb_loader)
        self._attached = self.kb.store
        self.retriever.initialize(self.kb, self.training_texts(get_examples, nlp, corpus))

    def __call__(self, doc: Doc) -> Doc:
        self._process([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        return pipe_in_batches(self, stream, batch_size, self._process)

    def predict(self, docs: list[Doc]) -> list[list[Link]]:
        """Return the links of each document; nothing is written."""
        kb = self._attach()
        return self.linking(kb, self.rank(docs))

    def rank(self, docs: list[Doc]) -> RankedMentions:
        """Return the mentions of documents with the candidates that the retriever finds."""
        self._attach()
        spans = [get_mentions(doc, self.mentions) for doc in docs]
        queries = [query for mentioned in spans for query in mention_queries(mentioned)]
        return RankedMentions(spans, self.retriever(queries, self.top_k))

    def state(self) -> dict[str, Any]:
        return self.linking.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.linking.set_state(state)

    # Saving

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        super().to_disk(path, exclude=exclude)
        (Path(path) / _RETRIEVER_FOLDER).mkdir(exist_ok=True)
        self.retriever.to_disk(Path(path) / _RETRIEVER_FOLDER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "CandidateRetriever":
        super().from_disk(path, exclude=exclude)
        self.retriever.from_disk(Path(path) / _RETRIEVER_FOLDER)
        self._attached = None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        fields = {"base": super().to_bytes(exclude=exclude), "retriever": self.retriever.to_bytes()}
        return bytes(srsly.msgpack_dumps(fields))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "CandidateRetriever":
        fields = srsly.msgpack_loads(data)
        super().from_bytes(fields["base"], exclude=exclude)
        self.retriever.from_bytes(fields["retriever"])
        self._attached = None
        return self

    def worker_state(self) -> dict[str, Any]:
        return {**super().worker_state(), "_attached": None}

    # Inside

    def _attach(self) -> XelKnowledgeBase:
        """Give the retriever the knowledge base, which may have been loaded or built anew since."""
        kb = self.kb
        if kb.store is not self._attached:
            self.retriever.attach(kb)
            self._attached = kb.store
        return kb

    def _process(self, docs: list[Doc]) -> None:
        for doc, links in zip(docs, self.predict(docs), strict=True):
            annotate_links(doc, links)
