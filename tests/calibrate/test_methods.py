"""Each method against scikit-learn's own predictions, and after a way through JSON."""

import json

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.tree import DecisionTreeClassifier

from spacy_xel.calibrate import boosted, tree
from spacy_xel.calibrate.boosted import Boosted
from spacy_xel.calibrate.forest import Forest
from spacy_xel.calibrate.isotonic import Isotonic
from spacy_xel.calibrate.temperature import Temperature
from spacy_xel.calibrate.tree import DecisionTree


@pytest.fixture
def made_up():
    """Mentions whose chance to be right grows with the first column; the last has ties."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 3))
    features[:, 2] = np.round(features[:, 2])
    right = rng.random(600) < 1 / (1 + np.exp(-2 * features[:, 0] - features[:, 2]))
    return features, right, rng.normal(size=(500, 3)) * 3


def through_json(method):
    return type(method).from_json(json.loads(json.dumps(method.to_json(), allow_nan=False)))


def test_isotonic(made_up):
    features, right, others = made_up
    oracle = IsotonicRegression(out_of_bounds="clip").fit(features[:, 0], right)
    found = through_json(Isotonic.fit(features[:, :1], right))(others[:, :1])
    np.testing.assert_allclose(found, oracle.predict(others[:, 0]))
    assert (np.diff(found[np.argsort(others[:, 0])]) >= 0).all()


def test_tree(made_up):
    features, right, others = made_up
    oracle = DecisionTreeClassifier(
        max_depth=tree._MAX_DEPTH, min_samples_leaf=tree._SMALLEST_LEAF, random_state=0
    ).fit(features, right)
    found = through_json(DecisionTree.fit(features, right))(others)
    np.testing.assert_allclose(found, oracle.predict_proba(others)[:, 1])
    assert len(np.unique(found)) > 3


def test_boosted(made_up):
    features, right, others = made_up
    oracle = GradientBoostingClassifier(
        n_estimators=boosted._TREES, max_depth=boosted._MAX_DEPTH, learning_rate=boosted._RATE,
        min_samples_leaf=boosted._SMALLEST_LEAF, random_state=0,
    ).fit(features, right)  # fmt: skip
    found = through_json(Boosted.fit(features, right))(others)
    np.testing.assert_allclose(found, oracle.predict_proba(others)[:, 1], rtol=1e-9)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("method", [Isotonic, DecisionTree, Boosted])
@pytest.mark.parametrize("n", [1, 40])
def test_all_right_or_all_wrong(method, value, n):
    fitted = through_json(method.fit(np.ones((n, 3)), np.full(n, value)))
    (probability,) = fitted(np.zeros((1, 3)))
    assert (probability > 0.5) == value


def test_trees_that_lead_nowhere_are_refused(made_up):
    features, right, _ = made_up
    fields = DecisionTree.fit(features, right).to_json()
    for name, value in (("left", 10**6), ("right", -1), ("left", 0)):
        broken = json.loads(json.dumps(fields))
        broken[name][1] = value
        with pytest.raises(ValueError, match="damaged"):
            Forest.from_json(broken)
    with pytest.raises(ValueError, match="damaged"):
        Forest.from_json({**fields, "features": [0]})


def likelihood(temperature, nil, scores, gold_ranks):
    """The slow and obvious mean log-likelihood."""
    total = 0.0
    for row, rank in zip(scores, gold_ranks, strict=True):
        weights = [np.exp(score / temperature) for score in row] + [np.exp(nil)]
        total += np.log(weights[rank] / sum(weights))  # rank -1 is nil
    return total / len(scores)


def test_temperature_is_the_most_likely():
    rng = np.random.default_rng(1)
    scores = -np.sort(rng.exponential(size=(400, 4)), axis=1)
    scores[:100, 2:] = -np.inf
    truth = Temperature(0.4, -1.5)
    p = np.column_stack([truth(scores), 1 - truth(scores).sum(axis=1)])
    ranks = np.array([rng.choice(5, p=row / row.sum()) for row in p])
    ranks[ranks == 4] = -1
    found = through_json(Temperature.fit(scores, ranks))
    best = likelihood(found.temperature, found.nil, scores, ranks)
    for temperature in np.linspace(0.2, 1.0, 9):
        for nil in np.linspace(-3, 0, 7):
            assert best >= likelihood(temperature, nil, scores, ranks) - 1e-6
    assert found.temperature == pytest.approx(0.4, rel=0.3)


def test_temperature_of_extremes():
    scores = np.log([[0.9, 0.1], [0.8, 0.2]])
    sure = Temperature.fit(scores, np.array([0, 0]))(scores)
    never = Temperature.fit(scores, np.array([-1, -1]))(scores)
    assert (sure[:, 0] > 0.9).all()
    assert (never < 0.01).all()
    assert np.isfinite([*sure.ravel(), *never.ravel()]).all()
    assert Temperature()(np.full((1, 2), -np.inf)).tolist() == [[0, 0]]
