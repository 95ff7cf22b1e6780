"""The label tree against NumPy and scikit-learn."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from spacy_xel.retrieval.label_tree import LabelTree, TreeSettings
from spacy_xel.retrieval.label_tree.cluster import Tree, build_tree, label_vectors
from spacy_xel.retrieval.label_tree.explain import (
    explain,
    node_labels,
    node_path,
    strongest_features,
)
from spacy_xel.retrieval.label_tree.inputs import check_features
from spacy_xel.retrieval.label_tree.lanes import make_lane_functions

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


def dense_weights(layout, level, dimension):
    """Return the weights of a level's children as a matrix, by the definition of Layout."""
    first_column = int(layout.level_start[level])
    weights = np.zeros((dimension, layout.n_nodes(level + 1)))
    firsts = np.cumsum([0, *(layout.pair_size.astype(int) + 1)])
    for feature in range(dimension):
        pairs = layout.pair_start[level * dimension + feature :][:2].astype(int)
        for pair in range(*pairs):
            first, last = layout.children(level, int(layout.pair_node[pair]))
            words = layout.words[firsts[pair] : firsts[pair + 1]]
            if len(words) == (last - first + 1) // 2:
                numbers = words.view(np.int8)[: last - first]
                children = range(first, last)
            else:
                numbers = (words >> 8).astype(np.uint8).view(np.int8)
                children = [first + int(word & 255) for word in words]
            for child, number in zip(children, numbers, strict=True):
                weights[feature, child] = number * layout.scale[first_column + child]
    return weights


def level_bias(layout, level):
    return layout.bias[layout.level_start[level] : layout.level_start[level + 1]]


def reference_rank(model, features, k, beam):
    """Beam search with whole matrices (XMRED algorithm 2), scores by eq. 8."""
    dense = features.toarray()
    answers = []
    layout = model.layout
    margins = [
        dense @ dense_weights(layout, level, model.dimension) + level_bias(layout, level)
        for level in range(layout.n_levels)
    ]
    for row in range(len(dense)):
        nodes = {0: 0.0}
        for level in range(layout.n_levels):
            below = {}
            for node, score in nodes.items():
                for child in range(*layout.children(level, node)):
                    margin = margins[level][row, child]
                    if model.settings.score == "sigmoid":
                        own = -np.log1p(np.exp(-margin))
                    else:
                        own = -(max(1 - margin, 0) ** 3)
                    below[child] = score + own
            width = k if level == layout.n_levels - 1 else beam
            nodes = dict(sorted(below.items(), key=lambda item: (-item[1], item[0]))[:width])
        answers.append({int(model.order[node]): score for node, score in nodes.items()})
    return answers


@pytest.mark.parametrize("score", ["l3_hinge", "sigmoid"])
@pytest.mark.parametrize(("k", "beam"), [(5, 2), (1, 1), (50, 50), (3, 100)])
def test_search_agrees_with_whole_matrices(data, score, k, beam):
    check_search(data, TreeSettings(branching=2, max_leaf=4, score=score), k, beam)


@pytest.mark.parametrize("max_leaf", [5, 40, 256])
def test_search_of_wide_trees(max_leaf):
    data = make_data(n=600, dimension=150, n_labels=300)
    check_search(data, TreeSettings(max_leaf=max_leaf, threshold=0.2), k=20, beam=4)


def check_search(data, settings, k, beam):
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
    layout = model.layout
    place = np.argsort(model.order)  # of each label in the tree's order
    checked = 0
    for level in range(layout.n_levels):
        weights = dense_weights(layout, level, model.dimension)
        for node in range(layout.n_nodes(level)):
            below = place[node_labels(model, level, node)]
            rows = by_position[:, below].any(axis=1)
            for child in range(*layout.children(level, node)):
                below = place[node_labels(model, level + 1, child)]
                target = by_position[rows][:, below].any(axis=1)
                if target.all() or not target.any():
                    continue
                coefficients, intercept = reference_ranker(dense[rows], target, loss)
                scale = float(layout.scale[layout.level_start[level] + child])
                limit = max(0.02, 1.5 * scale)  # 8 bits, and hinge has flat places
                assert weights[:, child] == pytest.approx(coefficients, abs=limit)
                assert level_bias(layout, level)[child] == pytest.approx(intercept, abs=0.03)
                checked += 1
    assert checked > 20


def test_weights_and_soft_targets():
    features, labels = make_data(n=60, n_labels=3, seed=1)
    rng = np.random.default_rng(0)
    weights = rng.random(60).astype(np.float32) + 0.5
    soft = labels.copy()
    soft.data = np.where(rng.random(soft.nnz) < 0.3, 0.5, 1.0).astype(np.float32)
    model = LabelTree.fit(features, soft, settings=SMALL, weights=weights)
    assert model.layout.n_levels == 1
    found = dense_weights(model.layout, 0, model.dimension)
    for column, label in enumerate(model.order):
        target = labels[:, [label]].toarray()[:, 0] > 0
        cost = weights * np.where(target, soft[:, [label]].toarray()[:, 0], 1)
        coefficients, intercept = reference_ranker(
            features.toarray(), target, "squared_hinge", cost
        )
        assert found[:, column] == pytest.approx(coefficients, abs=0.02)
        assert model.layout.bias[column] == pytest.approx(intercept, abs=0.02)


def test_label_vectors(data):
    features, labels = data
    with ThreadPoolExecutor(2) as pool:
        found = label_vectors(check_features(features), labels, pool)
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
    path = tmp_path / "tree" / "words.npy"
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
    for name, value in (("indices", 60), ("indices", -1), ("indptr", 10**6)):
        broken = features.copy()
        getattr(broken, name)[-1] = value
        with pytest.raises(ValueError, match="point outside"):
            model.predict(broken)


def test_labels_without_instances_are_counted():
    features, labels = make_data(n_labels=5)
    empty = sparse.csr_matrix((labels.shape[0], 2), dtype=np.float32)
    settings = TreeSettings(branching=2, max_leaf=2)
    with pytest.warns(UserWarning, match="2 of 7 labels"):
        model = LabelTree.fit(features, sparse.hstack([labels, empty]).tocsr(), settings=settings)
    best = model.rank(features, k=7, beam=7)
    known = np.diff(features.indptr) > 0
    assert set(best.counts[known]) == {7}
    assert set(best.nodes[known, 5:].ravel().tolist()) == {5, 6}  # behind all others


def test_numbers_that_overflow(data):
    features, labels = data
    huge = features.copy()
    huge.data[:] = 3e38
    with pytest.raises(ValueError, match="at most 1e15"):
        LabelTree.fit(huge, labels)
    large = features.copy()
    large.data[:] = 1e15
    model = LabelTree.fit(large, labels, settings=SMALL)
    assert sorted(model.order.tolist()) == list(range(17))
    assert np.isfinite(model.predict(features).data).all()


def test_halves_are_even_whatever_the_numbers():
    vectors = sparse.csr_matrix(np.full((11, 3), np.nan, dtype=np.float32))
    with ThreadPoolExecutor(1) as pool:
        tree = build_tree(vectors, branching=2, max_leaf=2, iterations=5, seed=0, pool=pool)
    assert sorted(tree.order.tolist()) == list(range(11))


def test_given_trees_are_checked(data):
    features, labels = data
    good = Tree(np.arange(17, dtype=np.int32), [np.array([0, 17]), np.arange(18)])
    assert LabelTree.fit(features, labels, tree=good).n_labels == 17
    wrong = {
        "each label once": Tree(np.zeros(17, np.int32), good.bounds),
        "one node per label": Tree(good.order, [np.array([0, 17])]),
        "the root": Tree(good.order, [np.array([0, 5, 17]), np.arange(18)]),
        "within": Tree(good.order, [np.array([0, 17]), np.array([0, 9, 9, 17]), np.arange(18)]),
    }
    for message, tree in wrong.items():
        with pytest.raises(ValueError, match=message):
            LabelTree.fit(features, labels, tree=tree)
    wide = sparse.eye(300, dtype=np.float32, format="csr")
    tree = Tree(np.arange(300, dtype=np.int32), [np.array([0, 300]), np.arange(301)])
    with pytest.raises(ValueError, match="more than 256"):
        LabelTree.fit(wide, wide, tree=tree)


def test_manifest_is_protected(data, tmp_path):
    LabelTree.fit(*data, settings=SMALL).to_disk(tmp_path / "tree")
    path = tmp_path / "tree" / "manifest.json"
    path.write_text(path.read_text("utf8").replace('"dimension": 60', '"dimension": 70'), "utf8")
    with pytest.raises(ValueError, match="checksum"):
        LabelTree.from_disk(tmp_path / "tree")


def test_arrays_that_do_not_fit_are_refused(data):
    model = LabelTree.fit(*data, settings=SMALL)
    arrays = model.arrays()
    for name in ("bias", "pair_start", "child_start", "pair_node", "order"):
        with pytest.raises(ValueError, match="damaged"):
            LabelTree.from_arrays(SMALL, {**arrays, name: arrays[name][:-1]}, 60)
    with pytest.raises(ValueError, match="damaged"):
        LabelTree.from_arrays(SMALL, arrays, 70)


def test_wide_beams_and_zero_rows(data):
    model = LabelTree.fit(*data, settings=SMALL)
    wide = model.predict(data[0], k=10**9, beam=10**9)
    assert (wide != model.predict(data[0], k=17, beam=17)).nnz == 0
    zeros = data[0][:2].copy()
    zeros.data[:] = 0
    assert model.predict(zeros).nnz == 0
    with pytest.raises(ValueError, match="60 features"):
        model.rank(check_features(sparse.csr_matrix((1, 99), dtype=np.float32)))


def test_broken_matrices_are_refused(data):
    model = LabelTree.fit(*data, settings=SMALL)
    short = data[0].copy()
    short.indptr = short.indptr[:-5]
    far = data[0].copy()
    far.indices = far.indices.astype(np.int64)
    far.indices[0] += 1 << 32
    for broken in (short, far):
        with pytest.raises(ValueError, match="point outside"):
            model.predict(broken)


def test_weights_of_zero_are_not_kept():
    features = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    model = LabelTree.fit(features, features, settings=SMALL)
    weights = dense_weights(model.layout, 0, 3)
    pairs = int(model.layout.pair_start[-1])
    assert pairs == np.count_nonzero(weights.any(axis=1))


def test_odd_labels(data):
    features, labels = data
    twice = sparse.csr_matrix(
        (np.ones(2, np.float32), np.array([3, 3]), np.array([0, 2] + [2] * 119)), shape=labels.shape
    )
    with pytest.raises(ValueError, match="soft targets"):
        LabelTree.fit(features, twice)
    stored = labels.copy()
    stored.data[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LabelTree.fit(features, stored)


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
            steps, lost_at = explain(model, query, label, beam=1, k=17)
            assert len(steps) == model.layout.n_levels
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
            weights = dense_weights(model.layout, level - 1, model.dimension)[:, node]
            found = strongest_features(model, level, node, 5)
            best = np.argsort(-weights, kind="stable")[:5]
            assert [value for _, value in found] == pytest.approx(weights[best].tolist(), abs=1e-5)
    assert strongest_features(model, 0, 0, 5) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("branching", 3),
        ("max_leaf", 300),
        ("max_leaf", 1),
        ("seed", 1 << 63),
        ("loss", "log"),
        ("cost", 0),
        ("score", "softmax"),
    ],
)
def test_bad_settings(name, value):
    with pytest.raises(ValueError, match=name):
        TreeSettings(**{name: value})


def test_lanes_agree_with_plain_loops():
    rng = np.random.default_rng(0)
    table = rng.random((50, 16), dtype=np.float32)
    indices = rng.integers(0, 50, 30).astype(np.uint32)
    data = rng.random(30, dtype=np.float32)
    row = rng.random(16, dtype=np.float32)
    add_products, add_multiples = make_lane_functions(16)

    @numba.njit
    def products(table, indices, data, start, end, sums):
        add_products(table, indices, data, start, end, sums)

    @numba.njit
    def multiples(table, indices, data, start, end, steps):
        add_multiples(table, indices, data, start, end, steps)

    for start, end in ((0, 30), (3, 4), (7, 7)):
        sums = row.copy()
        products(table.ravel(), indices, data, start, end, sums)
        expected = row + data[start:end] @ table[indices[start:end]]
        assert sums == pytest.approx(expected, rel=1e-5)
        found, plain = table.copy(), table.copy()
        multiples(found.ravel(), indices, data, start, end, row)
        for i in range(start, end):
            plain[indices[i]] += data[i] * row
        assert found == pytest.approx(plain, rel=1e-5)
