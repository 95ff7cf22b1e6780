"""Several label trees as one."""

import numpy as np
import pytest

from spacy_xel.retrieval.label_tree import LabelTreeEnsemble, TreeSettings
from tests.retrieval.test_label_tree import make_data

SETTINGS = TreeSettings(branching=2, max_leaf=4)


@pytest.fixture(scope="module")
def data():
    return make_data()


def test_scores_are_means_over_trees(data):
    ensemble = LabelTreeEnsemble.fit(*data, n_trees=3, settings=SETTINGS)
    orders = {tree.order.tobytes() for tree in ensemble.trees}
    assert len(orders) == 3
    single = [tree.predict(data[0], k=6, beam=3).toarray() for tree in ensemble.trees]
    expected = np.mean(single, axis=0)
    found = ensemble.predict(data[0], k=6, beam=3)
    for row in range(found.shape[0]):
        labels = found.indices[found.indptr[row] : found.indptr[row + 1]]
        scores = found.data[found.indptr[row] : found.indptr[row + 1]]
        assert scores == pytest.approx(expected[row][labels], rel=1e-5)
        best = sorted(expected[row][expected[row] > 0], reverse=True)[:6]
        assert scores == pytest.approx(best, rel=1e-5)
        assert len(set(labels.tolist())) == len(labels)


def test_one_tree_is_the_tree(data):
    ensemble = LabelTreeEnsemble.fit(*data, n_trees=1, settings=SETTINGS)
    assert (ensemble.predict(data[0]) != ensemble.trees[0].predict(data[0])).nnz == 0
    with pytest.raises(ValueError, match="at least 1"):
        LabelTreeEnsemble.fit(*data, n_trees=0)


def test_disk_round_trip_and_damage(data, tmp_path):
    ensemble = LabelTreeEnsemble.fit(*data, n_trees=2, settings=SETTINGS)
    ensemble.to_disk(tmp_path / "trees")
    copy = LabelTreeEnsemble.from_disk(tmp_path / "trees")
    assert (copy.predict(data[0]) != ensemble.predict(data[0])).nnz == 0
    other = LabelTreeEnsemble.from_arrays(SETTINGS, ensemble.arrays(), data[0].shape[1])
    assert (other.predict(data[0]) != ensemble.predict(data[0])).nnz == 0
    (tmp_path / "trees" / "1" / "words.npy").unlink()
    with pytest.raises(ValueError, match="damaged"):
        LabelTreeEnsemble.from_disk(tmp_path / "trees")


def test_trees_must_be_alike(data):
    one = LabelTreeEnsemble.fit(*data, n_trees=1).trees[0]
    other = LabelTreeEnsemble.fit(*make_data(dimension=20), n_trees=1).trees[0]
    with pytest.raises(ValueError, match="same features"):
        LabelTreeEnsemble([one, other])
    assert LabelTreeEnsemble([one, one]).predict(data[0], k=10**9).shape == data[1].shape
