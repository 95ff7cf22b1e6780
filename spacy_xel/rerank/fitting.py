"""From training texts to a model whose base is trained, and the lists that its encoder learns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.progress import progress
from spacy_xel.rerank.evidence import Evidence
from spacy_xel.rerank.features import FEATURE_NAMES, FeatureMaker
from spacy_xel.rerank.lists import MentionList, add_bracket_candidates
from spacy_xel.rerank.model import RerankModel
from spacy_xel.rerank.scorer import best_share
from spacy_xel.rerank.settings import NetworkSettings, TrainingSettings
from spacy_xel.rerank.trainer import RerankTrainer, TrainingList, describe_run
from spacy_xel.rerank.training_lists import text_lists, training_candidates
from spacy_xel.types import AnnotatedText, CandidateBatch, Float32Array, Retriever

Scored = tuple[MentionList, Float32Array, Float32Array]  # with features, and which are right


@dataclass(slots=True)
class Fit:
    """What fitting gives.

    hard (dict[str, list]): Per text, the lists of which the features alone are not sure.
    run (str): A sum of all that the fit depends on.
    """

    model: RerankModel
    trainer: RerankTrainer
    evidence: Evidence
    hard: dict[str, list[Scored]]
    run: str

    def training_lists(self, text: str, kb: XelKnowledgeBase) -> list[TrainingList]:
        """Return the lists of a text, cut to the length that is trained on."""
        result = []
        for item, values, right in self.hard.get(text, []):
            entities = [kb.get_entity(kb_id) for kb_id, _ in item.candidates]
            result.append(TrainingList(self.model.pairs(item, entities), values, right))
        return result


def fit_reranker(
    kb: XelKnowledgeBase,
    texts: Sequence[AnnotatedText],
    retriever: Retriever,
    make_retriever: Callable[[], Retriever],
    *,
    network: NetworkSettings,
    training: TrainingSettings,
    retrieved: int,
    brackets: int,
) -> Fit:
    """Retrieve candidates for gold mentions, train the base, choose what the encoder learns from.

    retrieved (int): How many candidates the retriever gives.
    brackets (int): How many candidates a mention takes over from its neighbour in brackets.
    """
    chosen = [text for text in texts if text.mentions]
    if training.max_texts:
        chosen = chosen[: training.max_texts]
    model = RerankModel.create(network, len(FEATURE_NAMES), training.seed)
    evidence = Evidence.of_texts(kb, texts)
    trainer = RerankTrainer(model, training)
    if not chosen:
        return Fit(model, trainer, evidence, {}, "")
    batch = training_candidates(
        kb, texts, chosen, retriever, make_retriever, k=retrieved, folds=training.folds
    )
    scored = _scored_lists(kb, chosen, batch, evidence, brackets)
    trainer.fit_base([(values, right) for lists in scored.values() for _, values, right in lists])
    hard = {
        text: [item for item in (_hardest(model, one, training) for one in lists) if item]
        for text, lists in scored.items()
    }
    run = describe_run(
        kb.built.identity, network.to_json(), repr(training), len(chosen), batch.rows.sum().item()
    )
    return Fit(model, trainer, evidence, hard, run)


def _scored_lists(
    kb: XelKnowledgeBase,
    texts: Sequence[AnnotatedText],
    batch: CandidateBatch,
    evidence: Evidence,
    brackets: int,
) -> dict[str, list[Scored]]:
    """Return the features of all lists, equal mentions of a text once."""
    make_features = FeatureMaker(kb, evidence)
    start = 0
    result: dict[str, list[Scored]] = {}
    for text in progress(texts, "Features of candidates", total=len(texts)):
        lists = text_lists(kb, text, batch, start)
        start += len(lists)
        add_bracket_candidates(lists, brackets)
        values = make_features(lists, Evidence.of_texts(kb, [text]))
        of_text: dict[tuple[str, frozenset[str]], Scored] = {}
        for item, features in zip(lists, values, strict=True):
            if item.candidates and item.gold:
                right = np.array(
                    [kb_id in item.gold for kb_id, _ in item.candidates], dtype=np.float32
                )
                of_text.setdefault((item.query.mention, item.gold), (item, features, right))
        result[text.text] = list(of_text.values())
    return result


def _hardest(model: RerankModel, scored: Scored, settings: TrainingSettings) -> Scored | None:
    """Return the best candidates of a list with at least one right, if the base is not sure."""
    item, values, right = scored
    if not right.any() or right.all():
        return None
    scores = model.base_scores(values)
    is_sure = right[scores.argmax()] > 0 and best_share(scores) >= settings.sure
    if is_sure:
        return None
    best = np.argsort(-scores, kind="stable")[: settings.candidates]
    if not right[best].any():
        first_right = np.argsort(-np.where(right > 0, scores, -np.inf), kind="stable")[0]
        best[-1] = first_right
    kept = MentionList(
        item.query, item.spelled_out, item.label,
        [item.candidates[i] for i in best.tolist()], item.gold,
    )  # fmt: skip
    return kept, values[best], right[best]
