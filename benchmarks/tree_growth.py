"""How a label tree over names grows: 10k, 100k, 1M and all of Wikipedia's titles, names alone.

Per size: time, memory and disk to build, latency, and recall@10 of titles with one typo and of
titles without their qualifier. The file has no parts in brackets (whoever made it removed them), so
the qualifier is what follows a comma: "ackworth, iowa". Draws docs/tree_growth.svg, which needs the
extra `plots`.
"""

import gzip
import json
import random
import re
import shutil
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
from common import DATA, ROOT, parse_arguments, write_result
from peers import run_script
from scipy import sparse

SIZES = (10_000, 100_000, 1_000_000, None)
QUERIES = 2_000
ALL_TITLES = 5_902_572
BEAM = 10
TITLES = DATA / "scale" / "dbpedia_titles_lower.txt.gz"


def read_titles(size: int | None) -> list[str]:
    """Return distinct titles: all, or every n-th, without holding more than those."""
    with gzip.open(TITLES, "rt", encoding="utf8") as file:
        lines = (line.rstrip("\n").replace("_", " ") for line in file)
        step = 1 if size is None else ALL_TITLES // size
        titles = list(dict.fromkeys(line for line in islice(lines, 0, None, step) if line.strip()))
    return titles[:size]


def with_typo(title: str, rng: random.Random) -> str:
    """Return a title with one character left out, doubled, changed or swapped with the next."""
    place = rng.randrange(len(title) - 1)
    before, here, after = title[:place], title[place], title[place + 1 :]
    changed = {
        "left out": before + after,
        "doubled": before + here + here + after,
        "changed": before + rng.choice("abcdefghijklmnopqrstuvwxyz") + after,
        "swapped": before + after[0] + here + after[1:],
    }
    return changed[rng.choice(list(changed))]


def measure(size: int | None, folder: Path) -> dict[str, float]:
    """Build a tree over so many titles and ask it."""
    from spacy_xel.features.ngrams import NgramFeatures, NgramSettings
    from spacy_xel.retrieval.label_tree import LabelTree
    from spacy_xel.retrieval.label_tree.retriever import NAME_TREE
    from spacy_xel.types import Query

    titles = read_titles(size)
    start = time.perf_counter()
    settings = NgramSettings(context_words=0.0)
    queries = (Query(title, 0, len(title)) for title in titles)
    features, vectors = NgramFeatures.fit_transform(queries, settings)
    featurized = time.perf_counter()
    labels = sparse.eye(len(titles), dtype=np.float32, format="csr")
    tree = LabelTree.fit(vectors, labels, settings=NAME_TREE)
    trained = time.perf_counter()
    tree.to_disk(folder)
    result = {
        "titles": len(titles),
        "features": features.dimension,
        "features_s": round(featurized - start, 2),
        "tree_s": round(trained - featurized, 2),
        "total_s": round(time.perf_counter() - start, 2),
        "peak_mb": round(peak_mb(), 1),
        "disk_mb": round(sum(f.stat().st_size for f in folder.iterdir()) / 2**20, 1),
        "levels": tree.layout.n_levels,
    }
    rng = random.Random(1)
    rows = rng.sample(range(len(titles)), min(len(titles), 40 * QUERIES))
    long = [row for row in rows if len(titles[row]) >= 5][:QUERIES]
    qualified = [row for row in rows if re.fullmatch(r"[^,]+, .+", titles[row])][:QUERIES]
    asked = {
        "typo": [(with_typo(titles[row], rng), row) for row in long],
        "without_qualifier": [(titles[row].split(", ")[0], row) for row in qualified],
    }
    for kind, pairs in asked.items():
        names = [Query(name, 0, len(name)) for name, _ in pairs]
        best = tree.rank(features.transform(names), k=10, beam=BEAM).nodes
        found = [row in answer for (_, row), answer in zip(pairs, best.tolist(), strict=True)]
        result[f"recall_at_10_{kind}"] = round(float(np.mean(found)), 4)
    vectors = features.transform([Query(name, 0, len(name)) for name, _ in asked["typo"]])
    latencies = []
    for i in range(vectors.shape[0]):
        row = vectors[i]
        start = time.perf_counter()
        tree.rank(row, k=10, beam=BEAM, threads=1)
        latencies.append(time.perf_counter() - start)
    result["latency_ms"] = round(1000 * float(np.median(latencies)), 4)
    result["latency_ms_p95"] = round(1000 * float(np.percentile(latencies, 95)), 4)
    return result


def peak_mb() -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw the curves."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    curves = {
        "seconds to build": ["total_s"],
        "peak memory, MB": ["peak_mb"],
        "on disk, MB": ["disk_mb"],
        "latency, ms": ["latency_ms", "latency_ms_p95"],
        "recall@10": ["recall_at_10_typo", "recall_at_10_without_qualifier"],
    }
    figure, axes = pyplot.subplots(1, len(curves), figsize=(16, 3.2), layout="constrained")
    sizes = [row["titles"] for row in rows]
    for axis, (title, keys) in zip(axes, curves.items(), strict=True):
        for key in keys:
            axis.plot(sizes, [row[key] for row in rows], marker="o", label=key)
        axis.set(title=title, xscale="log", xlabel="titles")
        if "recall" in title:
            axis.set_ylim(0, 1)
        elif "latency" in title:
            axis.set_ylim(0)
        else:
            axis.set_yscale("log")
        if len(keys) > 1:
            axis.legend(fontsize=7)
    matplotlib.rcParams["svg.hashsalt"] = "spacy_xel"
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    rows = []
    for size in SIZES:
        folder = arguments.work / "growth"
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(__file__)
        rows.append(run_script("spacy_xel", arguments.work, script, "measure", size or 0, folder))
        print(rows[-1], flush=True)
    growth = rows[-1]["latency_ms"] / rows[1]["latency_ms"]
    result = {"rows": rows, "latency_all_over_100k": round(growth, 3)}
    write_result("tree_growth", arguments.seed, [TITLES], result)
    draw(rows, ROOT / "docs" / "tree_growth.svg")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(int(sys.argv[2]) or None, Path(sys.argv[3]))))
    else:
        main()
