"""Scores against an example worked out by hand."""

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_xel.evaluation.counts import Prediction, ScoredText, count_texts
from spacy_xel.evaluation.evaluate import evaluate
from spacy_xel.evaluation.scores import intervals, scores
from spacy_xel.pipeline.scorer import score_links
from spacy_xel.types import AnnotatedText, Mention

# Two texts of 100 characters. Gold: five mentions in the KB (one composite) and two NIL.
TEXTS = [
    ScoredText(
        "x" * 100,
        (
            Mention(0, 5, ("A",)),  # right
            Mention(10, 15, ("B", "C")),  # composite; C was predicted, second candidate B
            Mention(20, 25, ("D",)),  # wrong: E; D is the 6th candidate
            Mention(30, 35, ()),  # NIL, predicted NIL
            Mention(40, 45, ("F",)),  # found with other boundaries: 40-48
        ),
        (
            Prediction(0, 5, ("A",), ("A", "Z")),
            Prediction(10, 15, ("C",), ("C", "B")),
            Prediction(20, 25, ("E",), ("E", "G", "H", "I", "J", "D")),
            Prediction(30, 35, ()),
            Prediction(40, 48, ("F",), ("F",)),
            Prediction(60, 65, ("K",), ("K",)),  # no such mention
        ),
    ),
    ScoredText(
        "y" * 100,
        (Mention(0, 5, ("A",)), Mention(10, 15, ())),
        (
            Prediction(0, 5, (), ("B", "A")),  # wrong: abstained; A is the 2nd candidate
            Prediction(10, 15, ("L",), ("L",)),  # wrong: linked what is NIL
        ),
    ),
]


def test_hand_computed_example():
    result = scores(count_texts(TEXTS))
    # 5 gold links; predicted links: A, C, E, F (other boundaries), K, L = 6; exact: A and C.
    assert result["xel_micro_p"] == pytest.approx(2 / 6)
    assert result["xel_micro_r"] == pytest.approx(2 / 5)
    assert result["xel_micro_f"] == pytest.approx(2 * 2 / (6 + 5))
    # Weak matching adds F.
    assert result["xel_weak_p"] == pytest.approx(3 / 6)
    assert result["xel_weak_r"] == pytest.approx(3 / 5)
    # Strictly, the composite mention has two ids and one was given.
    assert result["xel_strict_p"] == pytest.approx(1 / 6)
    assert result["xel_strict_r"] == pytest.approx(1 / 5)
    # Spans: 7 gold, 8 predicted, 6 the same.
    assert result["xel_mention_p"] == pytest.approx(6 / 8)
    assert result["xel_mention_r"] == pytest.approx(6 / 7)
    # NIL: 2 gold; of the gold spans 2 were predicted NIL, one of them rightly.
    assert result["xel_nil_p"] == pytest.approx(1 / 2)
    assert result["xel_nil_r"] == pytest.approx(1 / 2)
    # Of the 4 gold links whose span was found, A and C are right.
    assert result["xel_acc"] == pytest.approx(2 / 4)
    assert result["xel_acc_strict"] == pytest.approx(1 / 4)
    assert result["xel_recall_at_1"] == pytest.approx(2 / 4)
    assert result["xel_recall_at_5"] == pytest.approx(3 / 4)
    assert result["xel_recall_at_10"] == pytest.approx(4 / 4)
    assert result["xel_recall_at_100"] == pytest.approx(4 / 4)


def test_groups():
    def first_text(text, mention):
        return "first" if text.startswith("x") else ""

    result = scores(count_texts(TEXTS, [first_text]))
    assert result["xel_acc_first"] == pytest.approx(2 / 3)
    assert result["xel_micro_r_first"] == pytest.approx(2 / 4)
    assert result["xel_recall_at_5_first"] == pytest.approx(2 / 3)


def test_a_span_annotated_twice_has_the_ids_of_both():
    gold = (Mention(0, 5, ("A",)), Mention(0, 5, ("B",)))
    result = scores(count_texts([ScoredText("x" * 9, gold, (Prediction(0, 5, ("B",)),))]))
    assert result["xel_micro_f"] == 1


def test_nothing_at_all():
    result = scores(count_texts([ScoredText("", (), ())]))
    assert set(result.values()) == {0.0}


def test_intervals_hold_the_score_and_are_repeatable():
    counts = count_texts(TEXTS * 30)
    result, found = scores(counts), intervals(counts, seed=1)
    assert found == intervals(counts, seed=1)
    assert found != intervals(counts, seed=2)
    for name, (low, high) in found.items():
        assert low <= result[name] <= high
    low, high = found["xel_micro_f"]
    assert 0 < high - low < 0.3


def test_scorer_reads_docs():
    nlp = spacy.blank("en")
    reference, predicted = nlp("Paris saw Troy"), nlp("Paris saw Troy")
    reference.ents = [
        Span(reference, 0, 1, "X", kb_id="A|B"),
        Span(reference, 2, 3, "X", kb_id="NIL"),
    ]
    predicted.ents = [Span(predicted, 0, 1, "X", kb_id="B"), Span(predicted, 2, 3, "X", kb_id="C")]
    result = score_links([Example(predicted, reference)])
    assert result["xel_micro_p"] == 0.5
    assert result["xel_micro_r"] == 1.0
    assert result["xel_nil_r"] == 0.0


def test_evaluate_a_pipeline(linker):
    corpus = [
        AnnotatedText("1", "Paris fought for Troy", (
            Mention(0, 5, ("Q167646",)), Mention(17, 21, ("Q22647",)),
        )),
        AnnotatedText("2", "NYC and Xanadu", (Mention(0, 3, ("Q60",)), Mention(8, 14, ()))),
    ]  # fmt: skip
    end_to_end = evaluate(linker, corpus).scores
    assert end_to_end["xel_micro_p"] == pytest.approx(2 / 3)
    assert end_to_end["xel_micro_r"] == pytest.approx(2 / 3)
    gold = evaluate(linker, corpus, gold_mentions=True, training_ids=frozenset({"Q60"}))
    assert gold.scores["xel_acc"] == pytest.approx(2 / 3)
    assert gold.scores["xel_recall_at_5"] == 1
    assert gold.scores["xel_nil_f"] == 1
    assert gold.scores["xel_acc_ambiguous"] == 0
    assert gold.scores["xel_acc_unambiguous"] == 1
    assert gold.scores["xel_acc_seen"] == 1
    assert gold.scores["xel_acc_unseen"] == pytest.approx(1 / 2)
    assert gold.sizes["nil_mentions"] == 1
    assert linker.get_pipe("xel_retriever").mentions == "ents", "the pipeline is as it was"


def test_gold_mentions_need_not_be_tokens(linker):
    corpus = [AnnotatedText("1", "pre-Troy, ParisTroy", (Mention(4, 8, ("Q22647",)),) * 1)]
    result = evaluate(linker, corpus, gold_mentions=True)
    assert result.sizes["mentions"] == 1
    assert result.scores["xel_mention_r"] == 1


def test_gold_mentions_for_spacys_own_linker(small_store):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    config = {"generate_empty_kb": {"@misc": "spacy-xel.EmptyKB.v1"}, "use_gold_ents": False}
    linker = nlp.add_pipe("entity_linker", config=config)
    doc = nlp.make_doc("Paris")
    doc.ents = [Span(doc, 0, 1, "X", kb_id="Q90")]
    loader = {"@misc": "spacy-xel.KnowledgeBase.v1", "path": str(small_store)}
    nlp.config["initialize"]["components"]["entity_linker"] = {"kb_loader": loader}
    nlp.initialize(lambda: [Example(nlp.make_doc("Paris"), doc)])
    corpus = [AnnotatedText("1", "in Troy", (Mention(3, 7, ("Q22647",)), Mention(0, 7, ())))]
    result = evaluate(nlp, corpus, gold_mentions=True)
    assert result.scores["xel_mention_r"] == 1
    assert linker.kb.contains_entity("Q22647")


def test_many_wrong_mentions_stay_fast():
    gold = tuple(Mention(i, i + 1, (f"G{i}",)) for i in range(20_000))
    guesses = tuple(Prediction(i, i + 1, (f"P{i}",)) for i in range(20_000))
    assert scores(count_texts([ScoredText("x" * 20_001, gold, guesses)]))["xel_weak_f"] == 0


def test_evaluating_something_that_does_not_link():
    with pytest.raises(ValueError, match="nothing to evaluate"):
        evaluate(spacy.blank("en"), [])
