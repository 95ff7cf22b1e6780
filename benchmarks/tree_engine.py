"""Train or query one tree library: tree_engine.py ENGINE train|query DATA MODEL SEED.

Runs under the Python that has the engine (benchmarks/peers.py), so it needs only numpy and scipy
besides. Prints one line of JSON.
"""

import json
import re
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

THREADS = 2
BEAMS = (10, 20)
TOP = 20


class SpacyXel:
    def fit(self, features, labels, folder, seed):
        from spacy_xel.retrieval.label_tree import LabelTree, TreeSettings

        settings = TreeSettings(seed=seed)
        LabelTree.fit(features, labels, settings=settings, threads=THREADS).to_disk(folder)

    def load(self, folder):
        from spacy_xel.retrieval.label_tree import LabelTree

        self.model = LabelTree.from_disk(folder)

    def predict(self, features, beam, threads):
        return self.model.predict(features, k=TOP, beam=beam, threads=threads)


class Pecos:
    """XR-Linear with the settings of its own paper: 16 children, leaves of 100, threshold 0.1."""

    def fit(self, features, labels, folder, seed):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.base import HierarchicalKMeans
        from pecos.xmc.xlinear.model import XLinearModel

        vectors = LabelEmbeddingFactory.create(labels, features, method="pifa")
        how = HierarchicalKMeans.TrainParams(
            nr_splits=16, max_leaf_size=100, seed=seed, threads=THREADS
        )
        tree = Indexer.gen(vectors, train_params=how)
        model = XLinearModel.train(
            features, labels, C=tree, threads=THREADS, nr_splits=16, threshold=0.1, bias=1.0,
            negative_sampling_scheme="tfn", solver_type="L2R_L2LOSS_SVC_DUAL", Cp=1.0, Cn=1.0,
        )  # fmt: skip
        model.save(str(folder))

    def load(self, folder):
        from pecos.xmc.xlinear.model import XLinearModel

        self.model = XLinearModel.load(str(folder), is_predict_only=True)

    def predict(self, features, beam, threads):
        return self.model.predict(features, beam_size=beam, only_topk=TOP, threads=threads)


class NapkinXc:
    """A probabilistic label tree of the same shape."""

    def fit(self, features, labels, folder, seed):
        from napkinxc.models import PLT

        tree = {"tree_type": "hierarchicalKmeans", "arity": 16, "max_leaves": 100}
        PLT(str(folder), threads=THREADS, seed=seed + 1, **tree).fit(features, labels)

    def load(self, folder):
        from napkinxc.models import PLT

        self.model = PLT(str(folder), threads=THREADS)
        self.model.load()

    def predict(self, features, beam, threads):
        self.model.set_params(threads=threads, tree_search_type="beam", beam_search_width=beam)
        rows = self.model.predict(features, top_k=TOP)
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        indices = [label for row in rows for label in row]
        scores = [1 / (1 + place) for row in rows for place in range(len(row))]
        return sparse.csr_matrix((scores, indices, indptr), shape=(len(rows), self.n_labels))


ENGINES = {"spacy_xel": SpacyXel, "pecos": Pecos, "napkinxc": NapkinXc}


def peak_mb():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def read(data, name):
    return sparse.load_npz(data / f"{name}.npz").tocsr().astype(np.float32)


def train(engine, data, folder, seed):
    if isinstance(engine, SpacyXel):  # compile; the first call is measured on its own
        small = sparse.random(300, 50, 0.2, "csr", np.float32, random_state=0)
        engine.fit(small, sparse.eye(300, dtype=np.float32).tocsr(), folder, seed)
    features, labels = read(data, "X_trn"), read(data, "Y_trn")
    if isinstance(engine, Pecos):
        labels = labels.tocsc()
    data_mb = peak_mb()
    start = time.perf_counter()
    engine.fit(features, labels, folder, seed)
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "train_s": seconds, "disk_mb": size / 2**20, "peak_mb": peak_mb(), "data_mb": data_mb
    }  # fmt: skip


def query(engine, data, folder, _seed):
    features, gold = read(data, "X_tst"), read(data, "Y_tst")
    engine.n_labels = gold.shape[1]
    rows = [features[i] for i in range(min(1000, features.shape[0]))]
    start = time.perf_counter()
    engine.load(folder)
    engine.predict(rows[0], 10, 1)
    result = {"load_s": time.perf_counter() - start}
    for beam in BEAMS:
        engine.predict(features[:300], beam, THREADS)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            answer = engine.predict(features, beam, THREADS)
            times.append(time.perf_counter() - start)
        latencies = []
        for row in rows:
            start = time.perf_counter()
            engine.predict(row, beam, 1)
            latencies.append(time.perf_counter() - start)
        result[f"beam{beam}"] = {
            "rows_per_s": features.shape[0] / min(times),
            "latency_ms": 1000 * float(np.median(latencies)),
            **scores(answer, gold),
        }
    return result


def scores(answer, gold):
    """Return precision@1 and the mean share of gold labels among the first 10 and 20."""
    found = {"P@1": [], "R@10": [], "R@20": []}
    for row in range(gold.shape[0]):
        part = slice(answer.indptr[row], answer.indptr[row + 1])
        order = np.argsort(-answer.data[part], kind="stable")
        ranked = answer.indices[part][order].tolist()
        true = set(gold.indices[gold.indptr[row] : gold.indptr[row + 1]].tolist())
        found["P@1"].append(bool(ranked) and ranked[0] in true)
        for k in (10, 20):
            found[f"R@{k}"].append(len(true & set(ranked[:k])) / len(true))
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    name, mode, data, folder, seed = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    run = {"train": train, "query": query}[mode]
    print(json.dumps(run(ENGINES[name](), Path(data), Path(folder), int(seed))))
