"""The label tree against PECOS and napkinXC: training, search, size, quality, same data, same run.

Synthetic data of ../shared/bench/gen_xmc.py, and MeSH: names train, mentions of BC5CDR dev test.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, parse_arguments, run_measured, write_result
from peers import run_script
from scipy import sparse

from spacy_xel.features.ngrams import NgramFeatures, NgramSettings
from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import Query

ENGINE = Path(__file__).parent / "tree_engine.py"
GENERATOR = DATA.parent / "bench" / "gen_xmc.py"
MESH = DATA / "bc5cdr"


def make_synthetic(folder: Path) -> None:
    """Generate 100k labels and 200k rows."""
    if not (folder / "Y_tst.npz").exists():
        subprocess.run([sys.executable, GENERATOR, folder], check=True)


def make_mesh(folder: Path) -> None:
    """Write n-gram vectors of MeSH's names, and of the mentions of BC5CDR dev."""
    if (folder / "Y_tst.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    store = work_store(folder)
    entities = [store.entity(row) for row in store.rows()]
    row_of = {entity.kb_id: row for row, entity in enumerate(entities)}
    names = [(name, row) for row, entity in enumerate(entities) for name in entity.names]
    queries = [Query(name, 0, len(name)) for name, _ in names]
    features, matrix = NgramFeatures.fit_transform(queries, NgramSettings(context_words=0.0))
    sparse.save_npz(folder / "X_trn.npz", matrix)
    labels = label_matrix([[row] for _, row in names], len(entities))
    sparse.save_npz(folder / "Y_trn.npz", labels)
    tests: list[tuple[Query, list[int]]] = []
    for text in read_corpus(MESH / "dev.jsonl.gz"):
        for mention in text.mentions:
            rows = [row_of[kb_id] for kb_id in mention.kb_ids if kb_id in row_of]
            if rows:
                tests.append((Query(text.text, mention.start, mention.end), rows))
    matrix = features.transform([query for query, _ in tests])
    sparse.save_npz(folder / "X_tst.npz", matrix)
    labels = label_matrix([rows for _, rows in tests], len(entities))
    sparse.save_npz(folder / "Y_tst.npz", labels)


def work_store(folder: Path) -> XelKnowledgeBase:
    """Build MeSH as a knowledge base, for its entities in a fixed order."""
    build_store(MESH / "kb_mesh.jsonl.gz", folder / "kb", force=True)
    return XelKnowledgeBase.open(folder / "kb")


def label_matrix(rows: list[list[int]], n_labels: int) -> sparse.csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = [label for row in rows for label in row]
    data = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_matrix((data, indices, indptr), shape=(len(rows), n_labels))


def compare(work: Path, data: Path, engines: dict[str, int]) -> dict[str, Any]:
    """Train and query each engine with as many seeds as it is given, interleaved."""
    runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
    for seed in range(max(engines.values())):
        for engine, seeds in engines.items():
            if seed < seeds:
                folder = work / "models" / engine
                shutil.rmtree(folder, ignore_errors=True)
                trained = run_script(engine, work, ENGINE, engine, "train", data, folder, seed)
                asked = run_script(engine, work, ENGINE, engine, "query", data, folder, seed)
                runs[engine].append(trained | asked)
                print(data.name, engine, seed, runs[engine][-1], flush=True)
    result: dict[str, Any] = {engine: summarize(runs[engine]) for engine in engines}
    result["ours_over_pecos"] = ratios(result["spacy_xel"], result["pecos"])
    return result


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median over runs; of qualities, which depend on the seed, the mean."""
    summary: dict[str, Any] = {"runs": len(runs)}
    for key, value in runs[0].items():
        if isinstance(value, dict):
            summary[key] = summarize([run[key] for run in runs])
            del summary[key]["runs"]
            continue
        middle = statistics.mean if "@" in key else statistics.median
        summary[key] = round(middle([run[key] for run in runs]), 4)
    return summary


def ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return ours over theirs; of qualities, the difference."""
    found: dict[str, Any] = {}
    for key, value in ours.items():
        if isinstance(value, dict):
            found[key] = ratios(value, theirs[key])
        elif key not in ("runs", "data_mb"):
            other = theirs[key]
            found[key] = round(value - other if "@" in key else value / other, 4)
    return found


# Process start is not counted, imports are.
FIRST_ANSWER = """
start = time.perf_counter()
from scipy import sparse
from spacy_xel.retrieval.label_tree import LabelTree
tree = LabelTree.from_disk(sys.argv[1])
row = sparse.load_npz(sys.argv[2]).tocsr()[0]
tree.predict(row)
result = {"seconds": round(time.perf_counter() - start, 3)}
"""
FIRST_FIT = """
import numpy as np
from scipy import sparse
start = time.perf_counter()
from spacy_xel.retrieval.label_tree import LabelTree
eye = sparse.eye(300, dtype=np.float32, format="csr")
LabelTree.fit(eye, eye)
result = {"seconds": round(time.perf_counter() - start, 3)}
"""


def first_calls(work: Path) -> dict[str, float]:
    """Return seconds to a first answer and a first fit, with an empty and with a warm cache."""
    found = {}
    with tempfile.TemporaryDirectory(dir=work) as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        for state in ("compiling", "warm"):
            query = run_measured(FIRST_ANSWER, work / "models/spacy_xel", work / "xmc/X_tst.npz")
            found[f"first_answer_{state}_s"] = query["seconds"]
            found[f"first_fit_{state}_s"] = run_measured(FIRST_FIT)["seconds"]
        del os.environ["NUMBA_CACHE_DIR"]
    return found


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    work = arguments.work
    make_synthetic(work / "xmc")
    make_mesh(work / "mesh")
    seeds = arguments.repeats
    result = {
        "synthetic": compare(
            work, work / "xmc", {"pecos": seeds, "spacy_xel": seeds, "napkinxc": 1}
        ),
        "first_calls": first_calls(work),
        "mesh": compare(work, work / "mesh", {"pecos": min(2, seeds), "spacy_xel": min(5, seeds)}),
    }
    data = [GENERATOR, MESH / "kb_mesh.jsonl.gz", MESH / "dev.jsonl.gz"]
    write_result("label_tree", arguments.seed, data, result)


if __name__ == "__main__":
    main()
