"""KILT's scores."""

import json

import pytest

from spacy_xel.evaluation.kilt import predict, score_rankings
from spacy_xel.formats.kilt import Ranking
from spacy_xel.types import AnnotatedText, Mention


def gold(*pages, answer="A"):
    return Ranking((answer,), tuple((page,) for page in pages))


def guess(*pages, answer="A"):
    return Ranking((answer,), (pages,) if pages else ())


def test_scores():
    right = {"1": gold("a"), "2": gold("b"), "3": gold("c"), "4": gold("d"), "5": Ranking((), ())}
    predicted = {
        "1": guess("a", "x"),
        "2": guess("x", "y", "z", "v", "b", answer="B"),
        "3": guess("x", "y", "z", "v", "w", "c", answer="B"),
        "9": guess("a"),
    }
    result = score_rankings(right, predicted)
    assert result.scores == {"page_accuracy": 0.25, "recall_at_5": 0.5, "answer_accuracy": 0.25}
    assert result.queries == 4
    assert result.without_gold == 1
    assert result.without_prediction == ["4"]
    assert result.without_query == ["9"]


def test_several_right_pages():
    right = {"1": Ranking(("A",), (("a", "b"), ("c",)))}
    assert score_rankings(right, {"1": guess("c", "a")}).scores["recall_at_5"] == 0.5
    assert score_rankings(right, {"1": guess("a", "b", "c")}).scores["recall_at_5"] == 1
    assert score_rankings(right, {"1": guess()}).scores["page_accuracy"] == 0
    assert score_rankings({}, {}).scores["page_accuracy"] == 0


def test_predictions_of_a_pipeline(linker):
    queries = [
        AnnotatedText("q1", "So Paris fled.", (Mention(3, 8, ("Q167646",)),)),
        AnnotatedText("q2", "In Atlantis.", (Mention(3, 11, ("X",)),)),
    ]
    first, second = map(json.loads, predict(linker, queries))
    assert first["id"] == "q1"
    pages = first["output"][0]["provenance"]
    assert first["output"][0]["answer"] == pages[0]["title"] == "Paris"
    assert {p["wikipedia_id"] for p in pages} == {"Q90", "Q167646", "Q830149"}
    assert second["output"] == [{"answer": "", "provenance": []}]


def test_against_a_plain_count():
    import random

    rng = random.Random(0)
    right = {str(i): gold(str(rng.randrange(9))) for i in range(200)}
    predicted = {i: guess(*dict.fromkeys(str(rng.randrange(9)) for _ in range(12))) for i in right}
    result = score_rankings(right, predicted).scores
    ranks = [predicted[i].pages[0].index(right[i].pages[0][0])
             if right[i].pages[0][0] in predicted[i].pages[0] else 99 for i in right]  # fmt: skip
    assert result["page_accuracy"] == pytest.approx(sum(r == 0 for r in ranks) / 200)
    assert result["recall_at_5"] == pytest.approx(sum(r < 5 for r in ranks) / 200)
