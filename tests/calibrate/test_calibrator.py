import json

import numpy as np
import pytest

from spacy_xel.calibrate.calibrator import METHODS, Calibrator
from spacy_xel.calibrate.evidence import FEATURES, Evidence, features, gather, log_scores
from spacy_xel.calibrate.held_out import HeldOut, cross_validate, document_folds, link_scores
from spacy_xel.types import CandidateBatch, Query


def made_up(n=400, k=4, seed=0, confident=1.0):
    """Lists whose scores say how probable candidates are, if confident is 1."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([3.0, 1.0, 0.5, 0.5, 0.4][: k + 1], size=n)
    truth[:, :k] = -np.sort(-truth[:, :k], axis=1)
    ranks = np.array([rng.choice(k + 1, p=row) for row in truth])
    ranks[ranks == k] = -1
    scores = truth[:, :k] ** (1 / confident)
    return evidence_of(scores, rng), ranks


def evidence_of(scores, rng=None):
    rng = rng or np.random.default_rng(0)
    n = len(scores)
    rest = rng.random((5, n))
    first = scores[:, 0] if scores.shape[1] else np.full(n, -np.inf)
    return Evidence(np.asarray(scores, dtype=np.float64), first, *rest)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities(method):
    evidence, ranks = made_up()
    evidence.scores[:50, 2:] = -np.inf
    evidence.scores[:7] = -np.inf
    ranks[:50][ranks[:50] >= 2] = -1
    ranks[:7] = -1
    calibrator = Calibrator.fit(method, evidence, ranks)
    p = calibrator(evidence)
    assert p.shape == evidence.scores.shape
    assert (p[:7] == 0).all()
    assert (p[7:, 0] > 0).all()
    assert (p[~np.isfinite(evidence.scores)] == 0).all()
    assert (np.diff(p, axis=1) <= 0).all()
    assert (p.sum(axis=1) <= 1 + 1e-9).all()
    assert p[7:, 0].mean() == pytest.approx((ranks[7:] == 0).mean(), abs=0.03)
    again = Calibrator.from_json(json.loads(json.dumps(calibrator.to_json(), allow_nan=False)))
    np.testing.assert_array_equal(again(evidence), p)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rank", [0, -1])
def test_all_right_or_all_wrong(method, rank):
    evidence, ranks = made_up(60)
    p = Calibrator.fit(method, evidence, np.full_like(ranks, rank))(evidence)
    assert ((p[:, 0] > 0.9) if rank == 0 else (p[:, 0] < 0.1)).all()
    assert ((p[:, 0] > 0) & (p[:, 0] < 1)).all(), "so few mentions make nobody certain"


@pytest.mark.parametrize("method", METHODS)
def test_odd_scores(method):
    evidence, ranks = made_up(100)
    fitted = Calibrator.fit(method, evidence, ranks)
    odd = evidence_of(np.array([[0, 0, 0, 0], [np.inf, 1, 0, -np.inf], [1e-40, 0, -1, -1]]))
    p = fitted(odd)
    assert np.isfinite(p).all()
    assert (np.diff(p, axis=1) <= 0).all()
    ties = evidence_of(np.full((50, 3), 0.2))
    p = Calibrator.fit(method, ties, np.repeat([0, -1], 25))(ties)
    assert (p[:, 0] == p[0, 0]).all() or method in ("boosted", "tree")
    logits = evidence_of(np.array([[3.0, -1.0], [0.0, -2.0]] * 20))
    p = Calibrator.fit(method, logits, np.array([0, -1] * 20))(logits)
    assert p[0, 0] >= p[1, 0]


def test_nothing_to_fit():
    none = evidence_of(np.full((3, 2), -np.inf))
    with pytest.raises(ValueError, match="no mention of the corpus has a candidate"):
        Calibrator.fit("isotonic", none, np.full(3, -1))
    with pytest.raises(ValueError, match=r"no calibration method 'magic'.*isotonic"):
        Calibrator.fit("magic", none, np.full(3, -1))
    with pytest.raises(ValueError, match="spacy-xel-calibrator-1"):
        Calibrator.from_json({"format": "spacy-xel-calibrator-9", "method": "tree"})


def test_calibration_mends_over_confidence():
    evidence, ranks = made_up(3000, confident=4.0)
    data = held_out(evidence, ranks, np.arange(3000) // 10)
    before = link_scores(data, data.raw_scores, np.zeros(3000))
    assert before["calibration_error"] > 0.1
    for method in METHODS:
        p = cross_validate(data, method).probabilities
        assert link_scores(data, p, np.zeros(3000))["calibration_error"] < 0.04, method


def held_out(evidence, ranks, documents):
    n = len(ranks)
    nil = ranks < 0
    return HeldOut(
        evidence, ranks, documents, np.ones(n, bool), nil, int((~nil).sum()), int(nil.sum())
    )


def test_nobody_judges_what_it_was_fitted_to(monkeypatch):
    evidence, ranks = made_up(90)
    evidence.length[:] = np.arange(90)
    documents = np.arange(90) // 9
    seen = []
    fit = Calibrator.fit.__func__

    class Spy:
        def __init__(self, part, ranks):
            self.fitted_to = set(documents[part.length.astype(int)])
            self.calibrator = fit(Calibrator, "isotonic", part, ranks)

        def __call__(self, part):
            asked = set(documents[part.length.astype(int)])
            assert not asked & self.fitted_to
            seen.extend(part.length)
            return self.calibrator(part)

    monkeypatch.setattr(Calibrator, "fit", lambda method, part, ranks: Spy(part, ranks))
    cross_validate(held_out(evidence, ranks, documents), "isotonic")
    assert sorted(seen) == list(range(90))


def test_folds():
    folds = document_folds(np.array([5, 5, 7, 7, 9]), 5, seed=0)
    assert folds[0] == folds[1]
    assert sorted(set(folds.tolist())) == [0, 1, 2]
    with pytest.raises(ValueError, match="at least 2"):
        document_folds(np.zeros(4, dtype=int), 5, seed=0)


def test_scores_of_links():
    evidence = evidence_of(np.array([[0.9], [0.8], [0.7], [0.2], [-np.inf]]))
    ranks = np.array([0, -1, 0, -1, -1])
    nil = np.array([False, False, False, True, True])
    data = HeldOut(evidence, ranks, np.arange(5), np.ones(5, bool), nil, 3, 2)
    found = link_scores(data, data.raw_scores, np.full(5, 0.75))
    assert found["precision"] == 1 / 2  # of two links
    assert found["recall"] == 1 / 3
    assert found["nil_precision"] == 2 / 3  # the third was right
    assert found["nil_recall"] == 1
    without = HeldOut(evidence, ranks, np.arange(5), np.ones(5, bool), nil & False, 5, 0)
    assert link_scores(without, data.raw_scores, np.zeros(5))["nil_f"] == 0


def test_evidence(small_kb):
    text = "The big apple (BA) and Parys; BA again"
    queries = [Query(text, *place) for place in ((4, 13), (23, 28), (30, 32))]
    row = small_kb.row
    rows = np.array([[row("Q60"), row("Q90")], [row("Q90"), -1], [-1, -1]], dtype=np.int32)
    scores = np.array([[0.9, 0.1], [0.4, -np.inf], [-np.inf, -np.inf]], dtype=np.float32)
    found = gather(small_kb, queries, CandidateBatch(rows, scores))
    assert found.name_similarity[0] == 1
    assert 0.5 < found.name_similarity[1] < 1
    assert found.name_probability.tolist() == [1, 0, 0]
    assert found.meanings.tolist() == [1, 0, 1]
    assert found.frequency.tolist() == [0, 98, 0]
    assert found.found.tolist() == [True, True, False]
    assert np.isfinite(features(found, list(FEATURES), True)).all()
    small_kb.remove(["Q60"])
    assert gather(small_kb, queries, CandidateBatch(rows, scores)).name_similarity[0] == 0
    empty = gather(small_kb, [], CandidateBatch.empty(0, 2))
    assert features(empty, list(FEATURES), True).shape == (0, len(FEATURES))


def test_logarithms():
    scores = np.array([0.0, 1.0, np.inf, -np.inf])
    assert np.isneginf(log_scores(scores, True)[3])
    assert np.isfinite(log_scores(scores, True)[:3]).all()
    assert log_scores(np.array([-2.5]), False).tolist() == [-2.5]
