"""N-gram features against PECOS's own vectoriser: MB/s on one thread and two, and latency.

Both take word 1-2-grams and character 3-4-grams of the same names, Wikipedia's titles.
"""

import gzip
import json
import sys
import time
from itertools import islice
from pathlib import Path

TITLES = 200_000
SINGLE = 2_000
CONFIG = {
    "type": "tfidf",
    "kwargs": {
        "base_vect_configs": [
            {"ngram_range": [1, 2], "analyzer": "word"},
            {"ngram_range": [3, 4], "analyzer": "char"},
        ]
    },
}


def read_titles(path):
    with gzip.open(path, "rt", encoding="utf8") as file:
        return [line.rstrip("\n") for line in islice(file, TITLES)]


def measure(titles, fit, transform):
    """Return seconds to fit, MB/s with one thread and two, and the latency of one title."""
    start = time.perf_counter()
    model = fit(titles)
    result = {"fit_s": round(time.perf_counter() - start, 3)}
    size = sum(len(title.encode()) for title in titles) / 1e6
    for threads in (1, 2):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            matrix = transform(model, titles, threads)
            times.append(time.perf_counter() - start)
        result[f"mb_per_s_{threads}"] = round(size / min(times), 3)
    latencies = []
    for title in titles[:SINGLE]:
        start = time.perf_counter()
        transform(model, [title], 1)
        latencies.append(time.perf_counter() - start)
    result["latency_us"] = round(1e6 * sorted(latencies)[SINGLE // 2], 1)
    result["features_per_title"] = round(matrix.nnz / len(titles), 2)
    return result


def measure_pecos(path):
    from pecos.utils.featurization.text.vectorizers import Vectorizer

    return measure(
        read_titles(path),
        lambda titles: Vectorizer.train(titles, CONFIG),
        lambda model, titles, threads: model.predict(titles, threads=threads),
    )


def measure_ours(path):
    from spacy_xel.features.ngrams import NgramFeatures, NgramSettings
    from spacy_xel.types import Query

    settings = NgramSettings(context_words=0.0)

    def queries(titles):  # the peer takes strings, so the time to wrap them is ours
        return [Query(title, 0, len(title)) for title in titles]

    NgramFeatures.fit(queries(["compile"]), settings).transform(queries(["compile"]))
    return measure(
        read_titles(path),
        lambda titles: NgramFeatures.fit(queries(titles), settings),
        lambda model, titles, threads: model.transform(queries(titles), threads=threads),
    )


def main():
    from common import DATA, parse_arguments, write_result
    from peers import run_script

    arguments = parse_arguments(__doc__)
    path = DATA / "scale" / "dbpedia_titles_lower.txt.gz"
    runs = {"spacy_xel": [], "pecos": []}
    for _ in range(arguments.repeats):
        for name, found in runs.items():
            found.append(run_script(name, arguments.work, Path(__file__), name, path))
            print(name, found[-1], flush=True)
    middle = {
        name: {key: sorted(run[key] for run in found)[len(found) // 2] for key in found[0]}
        for name, found in runs.items()
    }
    ratios = {
        key: round(middle["spacy_xel"][key] / value, 3) for key, value in middle["pecos"].items()
    }
    write_result("features", arguments.seed, [path], {**middle, "ours_over_pecos": ratios})


if __name__ == "__main__":
    if sys.argv[1:2] in (["pecos"], ["spacy_xel"]):
        run = measure_pecos if sys.argv[1] == "pecos" else measure_ours
        print(json.dumps(run(Path(sys.argv[2]))))
    else:
        main()
