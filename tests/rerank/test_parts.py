"""The parts of the re-ranker against slow and obvious versions."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.rerank.evidence import Evidence
from spacy_xel.rerank.features import FEATURE_NAMES, FeatureMaker, most_similar_name
from spacy_xel.rerank.inputs import PairMaker
from spacy_xel.rerank.lists import MentionList, add_bracket_candidates
from spacy_xel.rerank.losses.binary import binary_loss
from spacy_xel.rerank.losses.softmax import softmax_loss
from spacy_xel.rerank.settings import NetworkSettings, TrainingSettings
from spacy_xel.types import AnnotatedText, Entity, Mention, Query
from tests.tiny_encoder import tiny_encoder


def mention_list(text: str, name: str, candidates=(), gold=()) -> MentionList:
    start = text.index(name)
    query = Query(text, start, start + len(name))
    return MentionList(query, query, "", list(candidates), frozenset(gold))


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(str(tiny_encoder()))


def read(tokenizer, pair) -> list[str]:
    text = tokenizer.decode(pair.tokens)
    return [part.strip() for part in text.removeprefix("[CLS]").split("[SEP]")]


def test_pair_is_title_description_mention_context(tokenizer):
    item = mention_list("the city of troy of new york", "troy")
    entity = Entity("Q", "troy", ("paris",), "city of the prince")
    (pair,) = PairMaker(tokenizer, 64, 100)(item, [entity])
    title, description, mention, context, end = read(tokenizer, pair)
    assert (title, description) == ("troy", "paris city of the prince")
    assert (mention, context, end) == ("troy", "the city of troy of new york", "")
    kinds = [tokenizer.decode([t]) for t in pair.tokens[pair.second :]]
    assert kinds[0] == "troy", "the second side begins with the mention"


def test_no_description_no_alias(tokenizer):
    (pair,) = PairMaker(tokenizer, 64, 0)(mention_list("troy", "troy"), [Entity("Q", "york")])
    assert read(tokenizer, pair)[:4] == ["york", "", "troy", "troy"]


@pytest.mark.parametrize("length", [16, 17, 40, 64])
def test_length_is_kept_and_cuts_are_counted(tokenizer, length):
    text = "paris " * 50 + "troy york " * 100 + "city " * 50
    item = mention_list(text, "troy york " * 100)
    entity = Entity("Q", "prince " * 50, ("capital " * 50,), "the " * 500)
    maker = PairMaker(tokenizer, length, 100)
    (pair,) = maker(item, [entity])
    assert len(pair.tokens) <= length
    assert maker.truncation.pairs == 1
    assert (maker.truncation.titles, maker.truncation.mentions) == (1, 1)
    assert maker.truncation.descriptions == 1
    maker.reset()
    maker(mention_list("troy", "troy"), [Entity("Q", "york")])
    assert (maker.truncation.pairs, maker.truncation.titles) == (1, 0)


def test_context_is_centred_on_the_mention(tokenizer):
    text = "paris " * 30 + "troy" + " york" * 30
    (pair,) = PairMaker(tokenizer, 20, 1000)(mention_list(text, "troy"), [Entity("Q", "city")])
    context = read(tokenizer, pair)[3].split()
    assert abs(context.count("paris") - context.count("york")) <= 1
    assert "troy" in context


def test_the_most_similar_alias():
    entity = Entity("Q", "Acetylsalicylic acid", ("Aspirin", "Zorprin", "Micristin"))
    assert most_similar_name("aspirine", entity) == "Aspirin"
    assert most_similar_name("aspirine", Entity("Q", "x")) == ""


def test_brackets_share_candidates():
    text = "amrubicin (SM-5887) was given; SM-5887 and aspirin."
    amrubicin = mention_list(text, "amrubicin", [("A", 0.9), ("B", 0.1)])
    code = mention_list(text, "SM-5887", [("X", 0.2)])
    later = mention_list(text, "aspirin", [("C", 1.0)])
    again = MentionList(Query(text, 31, 38), Query(text, 31, 38), "", [("X", 0.2)])
    assert again.query.mention == "SM-5887"
    add_bracket_candidates([amrubicin, code, again, later], 1)
    assert [kb_id for kb_id, _ in code.candidates] == ["X", "A"]
    assert [kb_id for kb_id, _ in again.candidates] == ["X", "A"]
    assert [kb_id for kb_id, _ in amrubicin.candidates] == ["A", "B", "X"]
    assert later.candidates == [("C", 1.0)]


def test_evidence_without_ones_own_text(small_store):
    kb = XelKnowledgeBase.open(small_store)
    texts = [
        AnnotatedText("1", "Paris", (Mention(0, 5, ("Q90",), "GPE"),)),
        AnnotatedText("2", "Paris", (Mention(0, 5, ("Q167646",), "PER"),)),
        AnnotatedText("3", "Paris", (Mention(0, 5, ("nowhere",), "PER"),)),
    ]
    evidence = Evidence.of_texts(kb, texts)
    assert evidence.share("paris", "Q90", None) == (1, 2)
    own = Evidence.of_texts(kb, texts[:1])
    assert evidence.share("paris", "Q90", own) == (0, 1)
    assert evidence.popularity("Q90", own) == 0
    assert evidence.agreement("GPE", ("city",)) == 1
    assert evidence.agreement("PER", ("city",)) == 0
    assert Evidence.from_json(evidence.to_json()).share("paris", "Q90", None) == (1, 2)


def test_features(small_store):
    kb = XelKnowledgeBase.open(small_store)
    item = mention_list("Paris fell", "Paris", [("Q90", 0.6), ("Q167646", 0.3), ("Q22647", 0.0)])
    (values,) = FeatureMaker(kb, Evidence())([item])
    assert values.shape == (3, len(FEATURE_NAMES))
    assert np.isfinite(values).all()
    by_name = dict(zip(FEATURE_NAMES, values.T, strict=True))
    assert by_name["mention_is_title"].tolist() == [1, 0, 0]
    assert by_name["mention_is_name"].tolist() == [1, 1, 0]
    assert by_name["score_gap"] == pytest.approx([0, -0.3, -0.6])


@pytest.mark.parametrize("seed", range(3))
def test_losses_against_loops(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=12) * 5
    right = (rng.random(12) < 0.3).astype(float)
    lists = np.repeat([0, 1, 2], [3, 4, 5])
    tensors = [torch.tensor(scores), torch.tensor(right), torch.tensor(lists)]
    expected = [np.log(1 + np.exp(-s)) if r else np.log(1 + np.exp(s)) for s, r in
                zip(scores, right, strict=True)]  # fmt: skip
    assert float(binary_loss(*tensors)) == pytest.approx(np.mean(expected), rel=1e-5)
    tensors[:2] = [tensor.float() for tensor in tensors[:2]]
    each = []
    for number in range(3):
        shares = np.exp(scores[lists == number])
        hits = shares[right[lists == number] > 0]
        if len(hits):
            each.append(-np.log(hits.sum() / shares.sum()))
    value = float(softmax_loss(*tensors))
    assert value == pytest.approx(np.mean(each) if each else 0.0, rel=1e-4)


def test_bad_settings():
    with pytest.raises(ValueError, match="pooling"):
        NetworkSettings(pooling="max")
    with pytest.raises(ValueError, match="max_length"):
        NetworkSettings(max_length=4)
    with pytest.raises(ValueError, match="folds"):
        TrainingSettings(folds=0)
