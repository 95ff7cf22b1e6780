"""The label tree against NumPy and scikit-learn."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from spacy_xel.retrieval.label_tree import LabelTree, TreeSettings
from spacy_xel.retrieval.label_tree.cluster import build_tree, label_vectors
from spacy_xel.retrieval.label_tree.explain import (
    explain,
    node_labels,
    node_path,
    strongest_features,
)
from spacy_xel.retrieval.label_tree.search_kernels import packed_child, packed_value

SMALL = TreeSettings(branching=2, max_leaf=4, tolerance=0.001, max_passes=2000, threshold=0.0)


def make_data(n=120, dimension=60, n_labels=17, seed=0):
    """Instances around label centres, some with several labels, an empty row among them."""
    rng = np.random.default_rng(seed)
    centers = rng.random((n_labels, dimension)) * (rng.random((n_labels, dimension)) < 0.15)
    labels = np.zeros((n, n_labels), dtype=np.float32)
    labels[np.arange(n), np.arange(n) % n_labels] = 1
    labels[rng.random((n, n_labels)) < 0.03] = 1
    noise = rng.random((n, dimension)) * (rng.random((n, dimension)) < 0.05)
    features = labels @ centers + 0.5 * noise
    features[5] = 0
    return (
        sparse.csr_matrix(normalize(features).astype(np.float32)),
        sparse.csr_matrix(labels),
    )


@pytest.fixture(scope="module")
def data():
    return make_data()


def dense_weights(layer, dimension):
    """Return a layer's weights as a matrix (features by children), by its definition."""
    weights = np.zeros((dimension, layer.n_children))
    for feature in range(dimension):
        for i in range(int(layer.node_ptr[feature]), int(layer.node_ptr[feature + 1])):
            first = layer.child_start[layer.nodes[i]]
            for e in range(int(layer.entry_starts[i]), int(layer.entry_starts[i + 1])):
                column = first + packed_child(layer.entries[e])
                weights[feature, column] = packed_value(layer.entries[e]) * layer.scale[column]
    return weights


def reference_rank(model, features, k, beam):
    """Beam search with whole matrices (XMRED algorithm 2), scores by eq. 8."""
    dense = features.toarray()
    answers = []
    margins = [dense @ dense_weights(layer, model.dimension) + layer.bias for layer in model.layers]
    for row in range(len(dense)):
        nodes = {0: 0.0}
        for number, layer in enumerate(model.layers):
            below = {}
            for node, score in nodes.items():
                for child in range(layer.child_start[node], layer.child_start[node + 1]):
                    margin = margins[number][row, child]
                    if model.settings.score == "sigmoid":
                        own = -np.log1p(np.exp(-margin))
                    else:
                        own = -(max(1 - margin, 0) ** 3)
                    below[child] = score + own
            width = k if number == len(model.layers) - 1 else beam
            nodes = dict(sorted(below.items(), key=lambda item: (-item[1], item[0]))[:width])
        answers.append({int(model.order[node]): score for node, score in nodes.items()})
    return answers


@pytest.mark.parametrize("score", ["l3_hinge", "sigmoid"])
@pytest.mark.parametrize(("k", "beam"), [(5, 2), (1, 1), (50, 50), (3, 100)])
def test_search_agrees_with_whole_matrices(data, score, k, beam):
    settings = TreeSettings(branching=2, max_leaf=4, score=score)
    model = LabelTree.fit(*data, settings=settings)
    expected = reference_rank(model, data[0], k, beam)
    found = model.predict(data[0], k=k, beam=beam)
    assert found.shape == data[1].shape
    for row, answer in enumerate(expected):
        start, end = found.indptr[row : row + 2]
        if data[0][row].nnz == 0:
            assert start == end
            continue
        assert list(found.indices[start:end]) == list(answer)
        assert np.log(found.data[start:end]) == pytest.approx(list(answer.values()), abs=1e-4)


def reference_ranker(features, target, loss, weights=None):
    machine = LinearSVC(loss=loss, dual=True, C=1.0, tol=1e-6, max_iter=200_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(features, target, sample_weight=weights)
    return machine.coef_[0], machine.intercept_[0]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_rankers_agree_with_linear_svc(data, loss):
    features, labels = data
    settings = TreeSettings(
        branching=2, max_leaf=4, tolerance=0.001, max_passes=5000, threshold=0.0, loss=loss
    )
    model = LabelTree.fit(features, labels, settings=settings)
    dense, by_position = features.toarray(), labels.toarray()[:, model.order]
    starts = [np.arange(model.n_labels + 1)]  # where the labels of each node begin
    for layer in reversed(model.layers):
        starts.insert(0, starts[0][layer.child_start])
    checked = 0
    for level, layer in enumerate(model.layers):
        weights = dense_weights(layer, model.dimension)
        for node in range(len(layer.child_start) - 1):
            first, last = starts[level][node : node + 2]
            rows = by_position[:, first:last].any(axis=1)
            for child in range(layer.child_start[node], layer.child_start[node + 1]):
                span = slice(*starts[level + 1][child : child + 2])
                target = by_position[rows][:, span].any(axis=1)
                if target.all() or not target.any():
                    continue
                coefficients, intercept = reference_ranker(dense[rows], target, loss)
                limit = max(
                    0.02, 1.5 * float(layer.scale[child])
                )  # 8 bits, and hinge has flat places
                assert weights[:, child] == pytest.approx(coefficients, abs=limit)
                assert layer.bias[child] == pytest.approx(intercept, abs=0.03)
                checked += 1
    assert checked > 20


def test_weights_and_soft_targets():
    features, labels = make_data(n=60, n_labels=3, seed=1)
    rng = np.random.default_rng(0)
    weights = rng.random(60).astype(np.float32) + 0.5
    soft = labels.copy()
    soft.data = np.where(rng.random(soft.nnz) < 0.3, 0.5, 1.0).astype(np.float32)
    model = LabelTree.fit(features, soft, settings=SMALL, weights=weights)
    (layer,) = model.layers
    found = dense_weights(layer, model.dimension)
    for column, label in enumerate(model.order):
        target = labels[:, [label]].toarray()[:, 0] > 0
        cost = weights * np.where(target, soft[:, [label]].toarray()[:, 0], 1)
        coefficients, intercept = reference_ranker(
            features.toarray(), target, "squared_hinge", cost
        )
        assert found[:, column] == pytest.approx(coefficients, abs=0.02)
        assert layer.bias[column] == pytest.approx(intercept, abs=0.02)


def test_label_vectors(data):
    features, labels = data
    with ThreadPoolExecutor(2) as pool:
        found = label_vectors(features, labels, pool)
    expected = normalize((normalize(labels).T @ features).toarray())
    assert found.toarray() == pytest.approx(expected, abs=1e-5)


def test_clusters_are_balanced_and_alike():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.arange(8), 10)
    vectors = np.eye(8)[topics] + 0.05 * rng.random((80, 8))
    order = rng.permutation(80)
    matrix = sparse.csr_matrix(normalize(vectors[order]).astype(np.float32))
    with ThreadPoolExecutor(2) as pool:
        tree = build_tree(matrix, branching=2, max_leaf=10, iterations=20, seed=3, pool=pool)
    assert sorted(tree.order.tolist()) == list(range(80))
    assert [len(bounds) - 1 for bounds in tree.bounds] == [1, 2, 4, 8, 80]
    leaves = np.split(topics[order][tree.order], 8)
    purity = np.mean([np.bincount(leaf).max() / len(leaf) for leaf in leaves])
    assert purity > 0.7


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 16, 17, 33])
@pytest.mark.parametrize("branching", [2, 16])
def test_any_number_of_labels(n_labels, branching):
    features, labels = make_data(n=100, n_labels=n_labels)
    settings = TreeSettings(branching=branching, max_leaf=2)
    model = LabelTree.fit(features, labels, settings=settings)
    found = model.predict(features, k=n_labels + 3, beam=100)
    assert found.shape == (100, n_labels)
    rows = np.diff(found.indptr)
    assert set(rows[np.diff(features.indptr) > 0]) == {n_labels}
    for row in range(100):
        scores = found.data[found.indptr[row] : found.indptr[row + 1]]
        assert (np.diff(scores) <= 0).all()


def test_finds_what_it_learnt():
    features, labels = make_data(n=400, dimension=200, n_labels=40)
    model = LabelTree.fit(features, labels, settings=TreeSettings(branching=4, max_leaf=8))
    best = model.rank(features, k=1).nodes[:, 0]
    right = labels.toarray()[np.arange(400), best]
    assert right[np.diff(features.indptr) > 0].mean() > 0.95


@pytest.mark.parametrize("negatives", ["tfn", "tfn+man"])
def test_same_bytes_at_any_number_of_threads(data, negatives, tmp_path):
    settings = TreeSettings(branching=4, max_leaf=4, negatives=negatives)
    models = [LabelTree.fit(*data, settings=settings, threads=threads) for threads in (1, 2, 3)]
    for model in models[1:]:
        for name, array in models[0].arrays().items():
            assert array.tobytes() == model.arrays()[name].tobytes(), name
    answers = [models[0].predict(data[0], threads=threads) for threads in (1, 2)]
    assert (answers[0] != answers[1]).nnz == 0
    other = LabelTree.fit(*data, settings=TreeSettings(branching=4, max_leaf=4, seed=1))
    assert other.order.tobytes() != models[0].order.tobytes()


def test_disk_round_trip_and_damage(data, tmp_path):
    model = LabelTree.fit(*data, settings=SMALL)
    model.to_disk(tmp_path / "tree")
    copy = LabelTree.from_disk(tmp_path / "tree")
    assert copy.settings == model.settings
    assert (copy.predict(data[0]) != model.predict(data[0])).nnz == 0
    path = tmp_path / "tree" / "layer0.entries.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        LabelTree.from_disk(tmp_path / "tree")
    path.write_bytes(content[:-4])
    with pytest.raises(ValueError, match="bytes"):
        LabelTree.from_disk(tmp_path / "tree")
    path.unlink()
    with pytest.raises(ValueError, match="damaged"):
        LabelTree.from_disk(tmp_path / "tree")


def test_bad_input(data):
    features, labels = data
    broken = features.copy()
    broken.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LabelTree.fit(broken, labels)
    with pytest.raises(ValueError, match="not negative"):
        LabelTree.fit(-features, labels)
    with pytest.raises(ValueError, match="rows"):
        LabelTree.fit(features[:-1], labels)
    with pytest.raises(ValueError, match="needs instances"):
        LabelTree.fit(features[:0], labels[:0])
    with pytest.raises(ValueError, match="soft targets"):
        LabelTree.fit(features, labels * 2)
    with pytest.raises(ValueError, match="weights"):
        LabelTree.fit(features, labels, weights=np.zeros(len(labels.indptr) - 1))
    model = LabelTree.fit(features, labels)
    with pytest.raises(ValueError, match="60 features"):
        model.predict(features[:, :-1])
    with pytest.raises(ValueError, match="at least 1"):
        model.predict(features, k=0)
    assert model.predict(features[:0]).shape == (0, 17)


def test_labels_without_instances_are_counted():
    features, labels = make_data(n_labels=5)
    empty = sparse.csr_matrix((labels.shape[0], 2), dtype=np.float32)
    with pytest.warns(UserWarning, match="2 of 7 labels"):
        model = LabelTree.fit(features, sparse.hstack([labels, empty]).tocsr())
    assert model.predict(features).shape[1] == 7


def test_explanations_are_exact(data):
    features, labels = data
    settings = TreeSettings(branching=2, max_leaf=4, score="sigmoid")
    model = LabelTree.fit(features, labels, settings=settings)
    lost = 0
    for row in (0, 1, 7, 50):
        query = features[row]
        answers = model.predict(query, k=17, beam=100)
        score_of = dict(zip(answers.indices.tolist(), answers.data.tolist(), strict=True))
        narrow = set(model.predict(query, k=17, beam=1).indices.tolist())
        for label in range(17):
            steps, lost_at = explain(model, query, label, beam=1)
            assert len(steps) == len(model.layers)
            assert steps[-1].score == pytest.approx(score_of[label], rel=1e-3)
            for step in steps:
                assert step.bias + step.contributions.sum() == pytest.approx(step.margin, abs=1e-4)
            assert (lost_at is None) == (label in narrow)
            lost += lost_at is not None
    assert lost


def test_nodes_and_their_features(data):
    model = LabelTree.fit(*data, settings=SMALL)
    for label in (0, 5, 16):
        path = node_path(model, label)
        assert path[0] == 0
        for level, node in enumerate(path):
            assert label in node_labels(model, level, node)
        assert node_labels(model, len(path) - 1, path[-1]).tolist() == [label]
        for level, node in enumerate(path[1:], 1):
            weights = dense_weights(model.layers[level - 1], model.dimension)[:, node]
            found = strongest_features(model, level, node, 5)
            best = np.argsort(-weights, kind="stable")[:5]
            assert [value for _, value in found] == pytest.approx(weights[best].tolist(), abs=1e-5)
    assert strongest_features(model, 0, 0, 5) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("branching", 3), ("max_leaf", 300), ("loss", "log"), ("cost", 0), ("score", "softmax")],
)
def test_bad_settings(name, value):
    with pytest.raises(ValueError, match=name):
        TreeSettings(**{name: value})
