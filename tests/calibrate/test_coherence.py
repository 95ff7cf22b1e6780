import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_xel.calibrate.coherence import Coherence
from spacy_xel.types import CandidateBatch
from tests.mentions.test_same_name import mentions


def batch_of(*lists):
    batch = CandidateBatch.empty(len(lists), max(map(len, lists)))
    for i, candidates in enumerate(lists):
        for j, (row, score) in enumerate(candidates):
            batch.rows[i, j], batch.scores[i, j] = row, score
    return batch


def test_one_sense_per_document():
    queries = mentions("{Paris} fell. {PARIS} and {Troy}")
    batch = batch_of([(1, 0.9), (2, 0.1)], [(2, 0.5), (1, 0.4)], [(2, 0.3)])
    changed, order = Coherence(same_name=1.0)([queries], batch)
    assert changed.rows[:, 0].tolist() == [1, 1, 2]
    np.testing.assert_allclose(changed.scores[1], [0.65, 0.3], rtol=1e-6)
    assert order.tolist() == [[0, 1], [1, 0], [0, 1]]
    elsewhere, _ = Coherence(same_name=1.0)([queries[:1], queries[1:]], batch)
    assert elsewhere.rows[:, 0].tolist() == [1, 2, 2], "documents do not inform each other"


def test_abbreviations_inform_what_they_stand_for():
    queries = mentions("{atrial fibrillation} ({AF})")
    batch = batch_of([(1, 0.9)], [(2, 0.6), (1, 0.5)])
    assert Coherence()([queries], batch)[0].rows[1, 0] == 1


def test_agreement():
    queries = mentions("{renal failure}, {kidney failure}, {kidney failure}")
    batch = batch_of([(1, 0.9), (2, 0.1)], [(2, 0.5), (1, 0.4)], [(2, 0.5), (1, 0.4)])
    changed, _ = Coherence(agreement=0.5)([queries], batch)
    assert changed.rows[:, 0].tolist() == [1, 1, 1]
    assert changed.scores[1, 0] == pytest.approx(1 - 0.6 * (1 - 0.5 * 0.9))
    assert changed.scores[0, 1] == pytest.approx(1 - 0.9 * (1 - 0.5 * 0.5))
    assert Coherence()([queries], batch)[0].rows[1, 0] == 2


def test_longer_names():
    queries = mentions("{Barack Obama}, {Obama}, {Michelle}")
    batch = batch_of([(1, 0.9)], [(2, 0.5), (1, 0.4)], [(2, 0.5), (1, 0.4)])
    changed, _ = Coherence(longer_name=0.5)([queries], batch)
    assert changed.rows[:, 0].tolist() == [1, 1, 2]


def test_nothing_to_change():
    same, _ = Coherence(0.7, 0.7, 0.7)([[], mentions("{a} {b}")], CandidateBatch.empty(2, 3))
    assert (same.rows == -1).all()
    empty, _ = Coherence()([[]], CandidateBatch.empty(0, 3))
    assert empty.rows.shape == (0, 3)
    Coherence()([mentions("{a}")], CandidateBatch.empty(1, 0))


def test_bad_settings():
    with pytest.raises(ValueError, match="agreement must be between 0 and 1"):
        Coherence(agreement=2)
    with pytest.raises(ValueError, match="scores between 0 and 1"):
        Coherence()([mentions("{a}")], batch_of([(1, -3.0)]))


@given(
    st.lists(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), min_size=4, max_size=4),
    st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3),
)
def test_still_scores(scores, settings):
    queries = mentions("{John Smith}, {Smith}, {Mary}, {Smith}")
    rows = [[1, 2, 3], [2, 3, 4], [1, 4, -1], [3, 1, 2]]
    lists = [
        list(zip(r, sorted(s, reverse=True), strict=True))
        for r, s in zip(rows, scores, strict=True)
    ]
    batch = batch_of(*lists)
    batch.scores[2, 2] = -np.inf
    changed, _ = Coherence(*settings)([queries], batch)
    found = changed.scores[np.isfinite(changed.scores)]
    assert ((found >= 0) & (found <= 1 + 1e-6)).all()
    assert (np.sort(changed.rows, axis=1) == np.sort(batch.rows, axis=1)).all()
    assert all(list(row) == sorted(row, reverse=True) for row in changed.scores.tolist())
    if settings == (0.0, 0.0, 0.0):
        np.testing.assert_allclose(changed.scores, batch.scores, rtol=1e-6)


def test_many_mentions():
    queries = mentions(" ".join(f"{{Number{i % 2000} Street}} {{Street}}" for i in range(5000)))
    rows = np.random.default_rng(0).permuted(np.tile(np.arange(3000), (10_000, 1)), axis=1)[:, :20]
    scores = np.tile(np.linspace(0.9, 0.1, 20, dtype=np.float32), (10_000, 1))
    changed, _ = Coherence(0.5, 0.5, 0.5)([queries], CandidateBatch(rows.astype(np.int32), scores))
    assert changed.rows.shape == (10_000, 20)
