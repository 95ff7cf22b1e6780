"""The component xel_reranker: the retriever's candidates, scored again."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model

from spacy_xel.calibrate.coherence import Coherence
from spacy_xel.errors import Errors, Warnings
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.mentions.abbreviations import spell_out
from spacy_xel.pipeline.annotate import annotate_links, read_links
from spacy_xel.pipeline.base import CorpusReader, KBLoader, KnowledgeBasePipe, pipe_in_batches
from spacy_xel.pipeline.linking import LinkMaker, RankedMentions
from spacy_xel.pipeline.retriever import CandidateRetriever, Scorer
from spacy_xel.rerank.evidence import Evidence
from spacy_xel.rerank.features import FeatureMaker
from spacy_xel.rerank.lists import MentionList
from spacy_xel.rerank.scorer import Budget, ListScorer
from spacy_xel.rerank.settings import NetworkSettings, TrainingSettings
from spacy_xel.types import CandidateBatch, Float32Array, Link, Query, Retriever

if TYPE_CHECKING:
    from spacy_xel.rerank.fitting import Fit
    from spacy_xel.rerank.model import RerankModel

_MODEL_FOLDER = "reranker"
DEFAULT_RERANKER = {
    "retriever": "xel_retriever",
    "kb_source": None,
    "top_k": 20,
    "threshold": 0.0,
    "coherence": None,
    "early_exit": None,
    "budget_ms": None,
    "quantize": False,
    "mixed_precision": False,
    "batch_size": 64,
    "brackets": 5,
    "network": {},
    "training": {},
    "scorer": {"@scorers": "spacy-xel.scorer.v1"},
}
SCORE_WEIGHTS: dict[str, float | None] = {
    "xel_acc": 1.0,
    "xel_micro_f": 0.0,
    "xel_micro_p": 0.0,
    "xel_micro_r": 0.0,
    "xel_recall_at_10": 0.0,
}


@Language.factory(
    "xel_reranker",
    requires=["doc.spans"],
    assigns=["token.ent_kb_id", "doc.spans"],
    default_config=DEFAULT_RERANKER,
    default_score_weights=SCORE_WEIGHTS,
)
def make_reranker(
    nlp: Language,
    name: str,
    retriever: str,
    kb_source: str | None,
    top_k: int,
    threshold: float,
    coherence: dict[str, float] | None,
    early_exit: float | None,
    budget_ms: float | None,
    quantize: bool,
    mixed_precision: bool,
    batch_size: int,
    brackets: int,
    network: dict[str, Any],
    training: dict[str, Any],
    scorer: Scorer | None,
) -> "CandidateReranker":
    """Create the component xel_reranker."""
    budget = Budget(
        top_k=top_k,
        early_exit=early_exit,
        budget_ms=budget_ms,
        quantize=quantize,
        mixed_precision=mixed_precision,
        batch_size=batch_size,
        brackets=brackets,
    )
    return CandidateReranker(
        nlp,
        name,
        retriever=retriever,
        kb_source=kb_source,
        threshold=threshold,
        coherence=None if coherence is None else Coherence(**coherence),
        budget=budget,
        network=NetworkSettings(**network),
        training=TrainingSettings(**training),
        scorer=scorer,
    )


class CandidateReranker(KnowledgeBasePipe, TrainablePipe):
    """Link mentions to the best of their candidates by a cross-encoder (XMRED section 2.4).

    retriever (str): The component whose candidates are re-ranked; asked for more in training.
    kb_source (str): The component whose knowledge base to use; by default the retriever's.
    threshold (float): A mention whose best score is lower is NIL.
    coherence (Coherence): Lets mentions of a document inform each other; None for not.
    budget (Budget): What may be spent on a document; may be replaced at any time.
    network (NetworkSettings), training (TrainingSettings): How the model is made and trained.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "xel_reranker",
        *,
        retriever: str = "xel_retriever",
        kb_source: str | None = None,
        threshold: float = 0.0,
        coherence: Coherence | None = None,
        budget: Budget | None = None,
        network: NetworkSettings | None = None,
        training: TrainingSettings | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        KnowledgeBasePipe.__init__(self, nlp, name, kb_source)
        self.retriever = retriever
        self.linking = LinkMaker(threshold=threshold, coherence=coherence)
        self.budget = budget or Budget()
        self.network = network or NetworkSettings()
        self.training = training or TrainingSettings()
        self.scorer = scorer
        self.cfg: dict[str, Any] = {}
        # spaCy wants a thinc model of what it trains; the weights are in self.reranker.
        self.model: Model[Any, Any] = Model("xel_reranker", _forward)
        self.reranker: RerankModel | None = None
        self.evidence = Evidence()
        self._features: FeatureMaker | None = None
        self._fit: Fit | None = None
        self._checkpoint: Path | None = None
        self._checkpoint_every = 0
        self._calls = 0

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb_loader: KBLoader | None = None,
        corpus: CorpusReader | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 20,
    ) -> None:
        """Load the encoder, collect candidates for the training texts, train on their features.

        kb_loader: Loads a knowledge base; not needed with kb_source.
        corpus: Annotated texts to learn from, instead of get_examples.
        checkpoint (Path): A folder to save the training in, and to go on from after an
            interruption; the same number of steps is then skipped.
        checkpoint_every (int): Steps between two checkpoints.
        """
        from spacy_xel.rerank.fitting import fit_reranker

        if kb_loader is not None:
            self.set_kb(kb_loader)
        pipe = self._retriever_pipe(nlp)
        texts = list(self.training_texts(get_examples, nlp, corpus))
        self._fit = fit_reranker(
            self.kb,
            texts,
            pipe.retriever,
            lambda: self._new_retriever(nlp),
            network=self.network,
            training=self.training,
            retrieved=pipe.top_k,
            brackets=self.budget.brackets,
        )
        self.reranker, self.evidence = self._fit.model, self._fit.evidence
        self._features = None
        self._calls = 0
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._checkpoint_every = checkpoint_every
        if self._checkpoint is not None:
            self._fit.trainer.load_checkpoint(self._checkpoint, self._fit.run, self.name)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Add the gradients of the examples' hard mentions; with sgd, make the step too.

        sgd: Says when to make a step; the optimizer is the component's own (AdamW).
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        if self._fit is None:
            raise ValueError(Errors.XE072.format(name=self.name))
        if not self._is_behind():
            kb = self.kb
            lists = [
                item
                for example in examples
                for item in self._fit.training_lists(example.reference.text, kb)
            ]
            if lists:
                losses[self.name] += self._fit.trainer.accumulate(lists, drop)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Any) -> None:
        """Change the weights by the gradients so far."""
        if self._fit is None:
            raise ValueError(Errors.XE072.format(name=self.name))
        behind = self._is_behind()
        self._calls += 1
        if behind:
            return
        self._fit.trainer.finish_step()
        is_due = self._checkpoint_every > 0 and self._calls % self._checkpoint_every == 0
        if self._checkpoint is not None and is_due:
            self._fit.trainer.save_checkpoint(self._checkpoint, self._fit.run)

    def _is_behind(self) -> bool:
        """Tell whether a step was made before an interruption already."""
        return self._fit is not None and self._calls < self._fit.trainer.step

    # Linking

    def __call__(self, doc: Doc) -> Doc:
        self._process([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 32) -> Iterator[Doc]:
        yield from pipe_in_batches(self, stream, min(batch_size, 32), self._process)

    def predict(self, docs: Iterable[Doc]) -> list[list[Link]]:
        """Return the links of each document; nothing is written."""
        return self.linking(self.kb, self.rank(list(docs)))

    def rank(self, docs: Sequence[Doc]) -> RankedMentions:
        """Return the retriever's candidates in the order of their new scores."""
        kb = self.kb
        if self.reranker is None:
            raise ValueError(Errors.XE002.format(name=self.name))
        if self._features is None or self._features.kb is not kb:
            self._features = FeatureMaker(kb, self.evidence)
        links = [self._read_links(doc) for doc in docs]
        lists = [_mention_lists(kb, doc, found) for doc, found in zip(docs, links, strict=True)]
        score = ListScorer(kb, self.reranker, self._features, self.budget)
        scored = [
            (item, self._probabilities(scores))
            for found, all_scores in zip(lists, score(lists), strict=True)
            for item, scores in zip(found, all_scores, strict=True)
        ]
        spans = [
            [Span(doc, link.start, link.end, label=link.label) for link in found]
            for doc, found in zip(docs, links, strict=True)
        ]
        return RankedMentions(list(spans), *_ranked(kb, scored))

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[list[Link]]) -> None:
        """Write what predict returned."""
        for doc, links in zip(docs, scores, strict=True):
            annotate_links(doc, links)

    def warn_of_truncation(self) -> None:
        """Warn if titles, descriptions or mentions had to be cut since the last call."""
        if self.reranker is None:
            return
        cut = self.reranker.pairs.truncation
        if cut.titles or cut.descriptions or cut.mentions:
            warnings.warn(
                Warnings.XW060.format(
                    name=self.name,
                    pairs=cut.pairs,
                    titles=cut.titles,
                    descriptions=cut.descriptions,
                    mentions=cut.mentions,
                    length=self.reranker.pairs.max_length,
                ),
                stacklevel=2,
            )
        self.reranker.pairs.reset()

    def _process(self, docs: list[Doc]) -> None:
        self.set_annotations(docs, self.predict(docs))

    def _read_links(self, doc: Doc) -> list[Link]:
        if doc._.xel_links is None:
            raise ValueError(Errors.XE069.format(name=self.name))
        return read_links(doc)

    def _probabilities(self, scores: Float32Array) -> Float32Array:
        values = scores.astype(np.float64)
        if self.network.loss == "softmax" and len(values):
            values = np.exp(values - values.max())
            values /= values.sum()
        else:
            values = 1 / (1 + np.exp(-values))
        probabilities: Float32Array = values.astype(np.float32)
        return probabilities

    # Saving

    def state(self) -> dict[str, Any]:
        return self.linking.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.linking.set_state(state)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        KnowledgeBasePipe.to_disk(self, path, exclude=exclude)
        if self.reranker is not None:
            self.reranker.to_disk(Path(path) / _MODEL_FOLDER, self.evidence.to_json())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "CandidateReranker":
        from spacy_xel.rerank.model import RerankModel

        KnowledgeBasePipe.from_disk(self, path, exclude=exclude)
        folder = Path(path) / _MODEL_FOLDER
        if folder.exists():
            self._restore_model(*RerankModel.from_disk(folder, self.network))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        model = None if self.reranker is None else self.reranker.to_bytes(self.evidence.to_json())
        fields = {"base": KnowledgeBasePipe.to_bytes(self, exclude=exclude), "model": model}
        return bytes(srsly.msgpack_dumps(fields))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "CandidateReranker":
        from spacy_xel.rerank.model import RerankModel

        fields = srsly.msgpack_loads(data)
        KnowledgeBasePipe.from_bytes(self, fields["base"], exclude=exclude)
        if fields["model"] is not None:
            self._restore_model(*RerankModel.from_bytes(fields["model"], self.network))
        return self

    def _restore_model(self, model: "RerankModel", evidence: dict[str, Any]) -> None:
        self.reranker, self.evidence = model, Evidence.from_json(evidence)
        self._features = None
        self._fit = None

    # Inside

    def _retriever_pipe(self, nlp: Language | None) -> CandidateRetriever:
        pipeline = nlp or self._nlp
        pipe = dict(pipeline.components).get(self.retriever) if pipeline is not None else None
        if not isinstance(pipe, CandidateRetriever):
            raise ValueError(Errors.XE070.format(name=self.name, retriever=self.retriever))
        return pipe

    def _new_retriever(self, nlp: Language | None) -> Retriever:
        pipeline = nlp or self._nlp
        assert pipeline is not None
        config = pipeline.get_pipe_config(self.retriever)["retriever"]
        retriever: Retriever = registry.resolve({"retriever": config})["retriever"]
        return retriever


def _ranked(
    kb: XelKnowledgeBase, scored: Sequence[tuple[MentionList, Float32Array]]
) -> tuple[CandidateBatch, Float32Array]:
    """Return the candidates by their new scores, and the scores that they had before."""
    k = max((len(item.candidates) for item, _ in scored), default=0)
    batch = CandidateBatch.empty(len(scored), k)
    before = np.full((len(scored), k), -np.inf, dtype=np.float32)
    for i, (item, probabilities) in enumerate(scored):
        for j, place in enumerate(np.argsort(-probabilities, kind="stable").tolist()):
            kb_id, score = item.candidates[place]
            batch.rows[i, j] = kb.row(kb_id)
            batch.scores[i, j] = probabilities[place]
            before[i, j] = score
    return batch, before


def _mention_lists(kb: XelKnowledgeBase, doc: Doc, links: Sequence[Link]) -> list[MentionList]:
    text = doc.text
    spans = [doc[link.start : link.end] for link in links]
    queries = [Query(text, span.start_char, span.end_char) for span in spans]
    return [
        # Entities may have been removed since.
        MentionList(query, long, link.label, [c for c in link.candidates if kb.row(c[0]) >= 0])
        for query, long, link in zip(queries, spell_out(queries), links, strict=True)
    ]


def _forward(model: Model[Any, Any], inputs: Any, is_train: bool) -> Any:
    raise NotImplementedError


__all__ = ["CandidateReranker", "make_reranker"]
