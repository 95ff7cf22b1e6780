"""How good and how fast the re-ranker is on dev with gold mentions: BC5CDR, its closed KB, nLab.

Trains configs/hybrid_rerank.cfg with `spacy train`, as users do, in a process of its own whose
wall-clock and processor time are in the result; `--pipeline TASK=FOLDER` takes a trained one.
Accuracy is that of tree_quality.py. The curve is over thresholds of early_exit; its throughput
is measured on the first mentions of dev, one thread, and includes features but not retrieval.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from common import DATA, ROOT, write_result

from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.rerank.features import FeatureMaker
from spacy_xel.rerank.lists import MentionList
from spacy_xel.rerank.scorer import Budget, ListScorer
from spacy_xel.rerank.training_lists import text_lists
from spacy_xel.types import AnnotatedText, Query

CONTEXT = [
    "--components.xel_retriever.retriever.retrievers.tree.trees", "1",
    "--components.xel_retriever.retriever.retrievers.tree.features.context_words", "1.0",
    "--components.xel_retriever.retriever.retrievers.tree.tree.cost", "10.0",
    "--components.xel_reranker.network.max_length", "96",
    "--components.xel_reranker.network.context", "150",
]  # fmt: skip
TASKS: dict[str, dict[str, Any]] = {
    "bc5cdr": {"folder": "bc5cdr", "kb": "kb_mesh", "options": []},
    "bc5cdr_closed": {"folder": "bc5cdr", "kb": "kb_mesh", "only": "kb_closed_ids", "options": []},
    "nlab": {"folder": "nlab", "kb": "kb", "options": CONTEXT},
    "foldoc": {"folder": "foldoc", "kb": "kb", "options": CONTEXT},
}
EXITS: list[float | None] = [0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, None]
LENGTHS = [2, 5, 10, 15, 20]


def train(name: str, work: Path) -> tuple[Path, dict[str, float]]:
    """Train a pipeline; return its folder and what it took."""
    task = TASKS[name]
    folder = DATA / task["folder"]
    corpus = folder / "train.jsonl.gz"
    only = folder / f"{task['only']}.jsonl.gz" if "only" in task else None
    texts = list(read_corpus(corpus))
    build_store(
        folder / f"{task['kb']}.jsonl.gz", work / f"{name}_kb", corpus=texts, force=True,
        only_ids=only,
    )  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [
        sys.executable, "-m", "spacy", "train", str(ROOT / "configs" / "hybrid_rerank.cfg"),
        "--output", str(work / name), "--paths.kb", str(work / f"{name}_kb"),
        "--paths.train", str(corpus), "--paths.dev", str(folder / "dev.jsonl.gz"),
        *task["options"],
    ]  # fmt: skip
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    took = {"wall_s": round(time.perf_counter() - start), "cpu_s": round(cpu)}
    return work / name / "model-last", took


class Dev:
    """The candidates of a dev set, and how right answers are."""

    def __init__(self, nlp: Any, texts: Sequence[AnnotatedText], train: Sequence[AnnotatedText]):
        self.pipe = nlp.get_pipe("xel_reranker")
        retriever = nlp.get_pipe("xel_retriever")
        self.kb = self.pipe.kb
        queries = [Query(t.text, m.start, m.end) for t in texts for m in t.mentions]
        start = time.perf_counter()
        batch = retriever.retriever(queries, retriever.top_k)
        self.retriever_s = time.perf_counter() - start
        meanings = defaultdict(set)
        for text in train:
            for m in text.mentions:
                meanings[normalize_name(text.text[m.start : m.end])] |= set(m.kb_ids)
        self.documents, self.ambiguous = [], []
        place = 0
        for text in texts:
            self.documents.append(text_lists(self.kb, text, batch, place))
            place += len(text.mentions)
            self.ambiguous += [
                len(meanings[normalize_name(item.query.mention)]) > 1
                for item in self.documents[-1]
                if item.gold
            ]

    def copy(self, n_documents: int | None = None) -> list[list[MentionList]]:
        return [[replace(i) for i in document] for document in self.documents[:n_documents]]

    def score(self, budget: Budget, n_documents: int | None = None) -> dict[str, Any]:
        """Return accuracy and speed within a budget."""
        documents = self.copy(n_documents)
        maker = FeatureMaker(self.kb, self.pipe.evidence)
        scorer = ListScorer(self.kb, self.pipe.reranker, maker, budget)
        start = time.perf_counter()
        batches = [documents[i : i + 32] for i in range(0, len(documents), 32)]
        scores = [part for batch in batches for part in scorer(batch)]
        seconds = time.perf_counter() - start
        right, found = [], []
        for document, parts in zip(documents, scores, strict=True):
            for item, part in zip(document, parts, strict=True):
                if item.gold:
                    ids = [kb_id for kb_id, _ in item.candidates]
                    right.append(bool(ids) and ids[int(part.argmax())] in item.gold)
                    found.append(not item.gold.isdisjoint(ids))
        return {
            "accuracy": round(float(np.mean(right)), 4),
            "accuracy_ambiguous": self._ambiguous(right),
            "upper_bound": round(float(np.mean(found)), 4),
            "encoded": round(scorer.encoded / max(1, scorer.seen), 4),
            "mentions_per_s": round(scorer.seen / seconds, 1),
        }

    def retrieved(self) -> dict[str, Any]:
        """Return the accuracy of the retriever alone."""
        lists = [item for document in self.documents for item in document if item.gold]
        ids = [[kb_id for kb_id, _ in item.candidates] for item in lists]
        first = [bool(f) and f[0] in i.gold for f, i in zip(ids, lists, strict=True)]
        result: dict[str, Any] = {
            "accuracy": round(float(np.mean(first)), 4),
            "accuracy_ambiguous": self._ambiguous(first),
            "mentions_per_s": round(sum(map(len, self.documents)) / self.retriever_s, 1),
        }
        for k in (10, 20, 30):
            hits = [not i.gold.isdisjoint(f[:k]) for f, i in zip(ids, lists, strict=True)]
            result[f"recall_at_{k}"] = round(float(np.mean(hits)), 4)
        return result

    def _ambiguous(self, right: Sequence[bool]) -> float | None:
        chosen = np.array(self.ambiguous[: len(right)])
        return round(float(np.array(right)[chosen].mean()), 4) if chosen.any() else None


def run(name: str, folder: Path, n_documents: int, quick: bool) -> dict[str, Any]:
    """Evaluate a trained pipeline; if quick, the encoder only on as many texts as the curve."""
    task = TASKS[name]
    nlp = spacy.load(folder)
    data = DATA / task["folder"]
    limit = None if task["folder"] == "bc5cdr" else 200
    texts = [text for text in read_corpus(data / "dev.jsonl.gz") if text.mentions][:limit]
    dev = Dev(nlp, texts, list(read_corpus(data / "train.jsonl.gz")))
    own = nlp.get_pipe("xel_reranker").budget
    result: dict[str, Any] = {"texts": len(texts), "retriever": dev.retrieved()}
    result["features_alone"] = dev.score(replace(own, early_exit=0.0))
    print(name, result, flush=True)
    fast = replace(own, mixed_precision=True)
    result["as_configured_texts"] = n_documents if quick else len(texts)
    result["as_configured"] = dev.score(fast, n_documents if quick else None)
    print(name, result["as_configured"], flush=True)
    result["curve_texts"] = n_documents
    result["curve"] = []
    for early_exit in EXITS:
        point = dev.score(replace(fast, early_exit=early_exit), n_documents)
        result["curve"].append({"early_exit": early_exit, **point})
        print(name, result["curve"][-1], flush=True)
    result["by_length"] = {
        str(k): dev.score(replace(fast, top_k=k), n_documents)["accuracy"] for k in LENGTHS
    }
    result["quantized"] = dev.score(replace(own, quantize=True), n_documents)
    return result


def plot(result: dict[str, Any]) -> None:
    """Draw accuracy against speed."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rerank"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, task in result.items():
        points = task["curve"]
        speeds = [point["mentions_per_s"] for point in points]
        axes.plot(speeds, [point["accuracy"] for point in points], marker="o", label=name)
        for point, speed in zip(points, speeds, strict=True):
            label = "all" if point["early_exit"] is None else f"{point['early_exit']:g}"
            axes.annotate(label, (speed, point["accuracy"]), fontsize=6)
    axes.set(xscale="log", xlabel="mentions/s (one thread)", ylabel="accuracy, gold mentions, dev")
    axes.set_title("early_exit: accuracy against speed", fontsize=10)
    axes.legend(fontsize=7)
    folder = ROOT / "docs" / "results"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "rerank.svg", metadata={"Date": None}, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / ".benchmarks" / "rerank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--pipeline", nargs="*", default=[], help="TASK=FOLDER of a trained one")
    parser.add_argument("--texts", type=int, default=60, help="dev texts that the curve is of")
    parser.add_argument("--quick", action="store_true", help="encode no other texts than those")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    given = dict(item.split("=", 1) for item in arguments.pipeline)
    result, paths = {}, []
    for name in arguments.tasks:
        took: dict[str, float] = {}
        folder = Path(given[name]) if name in given else None
        if folder is None:
            folder, took = train(name, arguments.work)
        result[name] = {"training": took, **run(name, folder, arguments.texts, arguments.quick)}
        paths += sorted((DATA / TASKS[name]["folder"]).glob("*.gz"))
        write_result("rerank", arguments.seed, paths, result)
        plot(result)


if __name__ == "__main__":
    main()
