"""xel_reranker: training, resuming, budgets, bad input."""

import shutil

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_xel.kb.knowledge_base import knowledge_base_loader
from spacy_xel.pipeline.annotate import read_links
from spacy_xel.rerank.scorer import Budget
from tests.tiny_encoder import tiny_encoder

TRAINING = {"folds": 2, "base_epochs": 2, "sure": 1.0, "warmup": 1, "mixed_precision": False}
SENTENCES = [
    ("The prince Paris judged the goddesses.", "Paris", "Q167646"),
    ("Trains leave Paris for the Seine.", "Paris", "Q90"),
    ("Paris in Lamar County is a town.", "Paris", "Q830149"),
    ("Prince Paris left Troy by ship.", "Paris", "Q167646"),
    ("The capital, Paris, is in France.", "Paris", "Q90"),
    ("New York never sleeps.", "New York", "Q60"),
]


def make_nlp(store, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions"}).initialize(nlp=nlp)
    network = {"encoder": str(tiny_encoder()), **settings.pop("network", {})}
    config = {"kb_source": "xel_mentions", "network": network, "training": TRAINING, **settings}
    nlp.add_pipe("xel_reranker", config=config)
    return nlp


def make_examples(nlp):
    examples = []
    for text, name, kb_id in SENTENCES:
        predicted, reference = nlp.make_doc(text), nlp.make_doc(text)
        start = text.index(name)
        span = reference.char_span(start, start + len(name), label="X", kb_id=kb_id)
        reference.ents = [span]
        examples.append(Example(predicted, reference))
    return examples


def train(store, steps, **initialize):
    nlp = make_nlp(store)
    pipe, examples = nlp.get_pipe("xel_reranker"), make_examples(nlp)
    pipe.initialize(lambda: examples, nlp=nlp, **initialize)
    for step in range(steps):
        losses = pipe.update(examples[step % 2 :: 2], drop=0.1, sgd=True)
        assert losses["xel_reranker"] > 0
    return nlp


def links(nlp, text="The prince Paris and Paris, New York"):
    return read_links(nlp(text))


def test_training_learns_and_repeats(small_store):
    first, second = train(small_store, 4), train(small_store, 4)
    assert links(first) == links(second)
    a, b = (nlp.get_pipe("xel_reranker").to_bytes() for nlp in (first, second))
    assert a == b, "the same seed, the same bytes"
    assert links(first) != links(train(small_store, 0))
    losses = []
    pipe, examples = first.get_pipe("xel_reranker"), make_examples(first)
    for _ in range(40):
        losses.append(pipe.update(examples, sgd=True)["xel_reranker"])
    assert losses[-1] < losses[0] * 0.9


def test_gradients_are_added_up(small_store):
    nlps = [train(small_store, 0) for _ in range(2)]
    for nlp, parts in zip(nlps, (1, 2), strict=True):
        pipe, examples = nlp.get_pipe("xel_reranker"), make_examples(nlp)[:4]
        for _ in range(2):
            for i in range(parts):
                pipe.update(examples[i::parts], drop=0.0, sgd=None)
            pipe.finish_update(None)
        assert pipe._fit.trainer.step == 2


def test_goes_on_after_a_kill(small_store, tmp_path):
    whole = train(small_store, 6)
    folder = tmp_path / "checkpoint"
    train(small_store, 5, checkpoint=folder, checkpoint_every=2)  # killed after the fifth step
    again = make_nlp(small_store)
    pipe, examples = again.get_pipe("xel_reranker"), make_examples(again)
    pipe.initialize(lambda: examples, nlp=again, checkpoint=folder, checkpoint_every=2)
    assert pipe._fit.trainer.step == 4
    for step in range(6):
        losses = pipe.update(examples[step % 2 :: 2], drop=0.1, sgd=True)
        assert (losses["xel_reranker"] == 0) == (step < 4), "steps made before are skipped"
    assert pipe.to_bytes() == whole.get_pipe("xel_reranker").to_bytes()
    other = make_nlp(small_store, network={"context": 7})
    with pytest.raises(ValueError, match="is of another run"):
        other.get_pipe("xel_reranker").initialize(lambda: examples, nlp=other, checkpoint=folder)


def test_without_training_the_retriever_decides(small_store):
    nlp = make_nlp(small_store)
    nlp.get_pipe("xel_reranker").initialize(nlp=nlp)
    doc = nlp("Paris and New York")
    assert [ent.kb_id_ for ent in doc.ents] == ["Q90", "Q1384"]


def test_budgets(small_store):
    nlp = train(small_store, 6)
    pipe = nlp.get_pipe("xel_reranker")
    full = links(nlp)
    pipe.budget = Budget(early_exit=0.0)
    features_alone = links(nlp)
    assert features_alone != full
    pipe.budget = Budget(budget_ms=0)
    assert links(nlp) == features_alone
    pipe.budget = Budget(budget_ms=1e6)
    assert [link.kb_id for link in links(nlp)] == [link.kb_id for link in full]
    pipe.budget = Budget(quantize=True)
    for one, other in zip(links(nlp), full, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.1)
    pipe.budget = Budget(top_k=1)
    for link in links(nlp):
        scores = [score for _, score in link.candidates]
        assert scores == sorted(scores, reverse=True)


def test_pipe_is_call_after_training(small_store):
    nlp = train(small_store, 6)
    texts = [text for text, _, _ in SENTENCES] + ["", "Paris " * 30]
    called = [links(nlp, text) for text in texts]
    for n_process in (1, 2):
        for doc, expected in zip(
            nlp.pipe(texts, n_process=n_process, batch_size=3), called, strict=True
        ):
            found = read_links(doc)
            assert [link.kb_id for link in found] == [link.kb_id for link in expected]
            scores = [link.score for link in found]  # the last digits depend on the batch
            assert scores == pytest.approx([link.score for link in expected], abs=1e-5)


def test_softmax_and_cls(small_store, tmp_path):
    nlp = make_nlp(small_store, network={"loss": "softmax", "pooling": "cls"})
    pipe, examples = nlp.get_pipe("xel_reranker"), make_examples(nlp)
    pipe.initialize(lambda: examples, nlp=nlp)
    pipe.update(examples, sgd=True)
    for link in links(nlp):
        assert sum(score for _, score in link.candidates) == pytest.approx(1.0, abs=1e-4)
    nlp.to_disk(tmp_path / "nlp")
    assert links(spacy.load(tmp_path / "nlp")) == links(nlp)


def test_spacy_trains_it(small_store):
    nlp = make_nlp(small_store)
    examples = make_examples(nlp)
    nlp.get_pipe("xel_reranker").initialize(lambda: examples, nlp=nlp)
    losses = nlp.update(examples, sgd=nlp.create_optimizer())
    assert losses["xel_reranker"] > 0
    assert nlp.get_pipe("xel_reranker")._fit.trainer.step == 1
    assert 0 <= nlp.evaluate(examples)["xel_acc"] <= 1


def test_many_mentions(small_store):
    nlp = train(small_store, 1)
    doc = nlp.make_doc("Paris " * 10_000)
    doc.ents = [Span(doc, i, i + 1, label="X") for i in range(10_000)]
    with nlp.select_pipes(disable="xel_mentions"):
        nlp.get_pipe("xel_reranker").budget = Budget(budget_ms=100)
        assert all(ent.kb_id_ != "" for ent in nlp(doc).ents)


def test_long_mention_is_counted(small_store):
    nlp = train(small_store, 1)
    doc = nlp.make_doc("Paris" + " and Troy" * 200)
    doc.ents = [
        Span(doc, 0, len(doc), label="X"),
    ]
    pipe = nlp.get_pipe("xel_retriever")
    linked = pipe(doc)
    records = linked._.xel_links
    records[0]["candidates"] = [["Q90", 0.5], ["Q22647", 0.4]]
    nlp.get_pipe("xel_reranker")(linked)
    with pytest.warns(UserWarning, match="2 mentions were cut"):
        nlp.get_pipe("xel_reranker").warn_of_truncation()


def test_no_candidates(small_store):
    nlp = train(small_store, 1)
    doc = nlp.make_doc("Atlantis sank")
    doc.ents = [Span(doc, 0, 1, label="X")]
    doc = nlp(doc)
    assert (doc.ents[0].kb_id_, doc.ents[0]._.xel_score) == ("NIL", 0.0)


def test_no_retriever(small_store):
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=knowledge_base_loader(small_store))
    config = {"kb_source": "xel_mentions", "network": {"encoder": str(tiny_encoder())}}
    nlp.add_pipe("xel_reranker", config=config)
    with pytest.raises(ValueError, match="'xel_retriever', which is not in this pipeline"):
        nlp.get_pipe("xel_reranker").initialize(nlp=nlp)
    full = train(small_store, 0)
    with full.select_pipes(disable="xel_retriever"), pytest.raises(ValueError, match="in front"):
        full("Paris")


def test_bad_encoders(small_store, tmp_path):
    def initialize(encoder):
        nlp = make_nlp(small_store, network={"encoder": str(encoder)})
        nlp.get_pipe("xel_reranker").initialize(nlp=nlp)

    with pytest.raises(FileNotFoundError, match="neither a folder nor an installed package"):
        initialize(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"no config\.json"):
        initialize(tmp_path)
    shutil.copytree(tiny_encoder(), tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="no encoder that can be used"):
        initialize(tmp_path / "broken")
    with pytest.raises(ValueError, match="no get_model_path"):
        initialize("json")


def test_update_before_initialize(small_store):
    nlp = make_nlp(small_store)
    pipe = nlp.get_pipe("xel_reranker")
    with pytest.raises(ValueError, match="before it is initialized"):
        pipe.update([], sgd=None)
    with pytest.raises(ValueError, match="before it is initialized"):
        pipe.finish_update(None)


def test_a_damaged_model_is_refused(small_store, tmp_path):
    nlp = train(small_store, 0)
    nlp.to_disk(tmp_path / "nlp")
    path = tmp_path / "nlp" / "xel_reranker" / "reranker" / "extra.json"
    path.write_text(path.read_text().replace("q", "p").replace("Q", "P"))
    with pytest.raises(ValueError, match="damaged"):
        spacy.load(tmp_path / "nlp")
