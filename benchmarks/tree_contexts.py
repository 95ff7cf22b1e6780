"""What training contexts cost a label tree: time, memory and disk against their number.

The nLab's knowledge base (20,729 pages) with none, 50k, 100k, 200k, 400k and all of the linked
mentions of its training texts, with the settings of configs/tree.cfg. Names of entities are
instances too; they are the same at every size, so the differences are what the contexts cost.
"""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import DATA, parse_arguments, write_result
from peers import run_script
from tree_growth import peak_mb

SIZES = (0, 50_000, 100_000, 200_000, 400_000, 1_000_000)
NLAB = DATA / "nlab"
SETTINGS = Path(__file__).parent.parent / "configs" / "tree.cfg"


def first_texts(path: Path, mentions: int) -> Iterator[object]:
    """Yield texts until so many mentions are there."""
    from spacy_xel.formats import read_corpus

    seen = 0
    for text in read_corpus(path):
        if seen >= mentions:
            return
        seen += sum(bool(mention.kb_ids) for mention in text.mentions)
        yield text


def measure(mentions: int, store: Path, folder: Path) -> dict[str, float]:
    """Train a tree on so many mentions."""
    from spacy.util import load_config, registry

    from spacy_xel.kb.knowledge_base import XelKnowledgeBase

    settings = load_config(SETTINGS)["components"]["xel_retriever"]["retriever"]
    retriever = registry.resolve({"retriever": settings})["retriever"]
    kb = XelKnowledgeBase.open(store)
    texts = list(first_texts(NLAB / "train.jsonl.gz", mentions))
    before = peak_mb()
    start = time.perf_counter()
    retriever.initialize(kb, texts)
    seconds = time.perf_counter() - start
    folder.mkdir(parents=True)
    retriever.to_disk(folder)
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "texts": len(texts),
        "mentions": sum(bool(m.kb_ids) for text in texts for m in text.mentions),
        "features": retriever.features.dimension,
        "train_s": round(seconds, 1),
        "texts_in_memory_mb": round(before, 1),
        "peak_mb": round(peak_mb(), 1),
        "disk_mb": round(disk / 2**20, 1),
    }


def main() -> None:
    from spacy_xel.kb.build import build_store

    arguments = parse_arguments(__doc__ or "")
    store = arguments.work / "kb_nlab_contexts"
    build_store(NLAB / "kb.jsonl.gz", store, force=True)
    rows = []
    for size in SIZES:
        folder = arguments.work / "contexts"
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(__file__)
        rows.append(run_script("spacy_xel", arguments.work, script, "measure", size, store, folder))
        print(rows[-1], flush=True)
    mentions = [row["mentions"] for row in rows]
    slopes = {
        key: round(float(np.polyfit(mentions, [row[key] for row in rows], 1)[0]) * scale, 3)
        for key, scale in (("train_s", 1e6), ("peak_mb", 1e6), ("disk_mb", 1e6))
    }
    result = {"rows": rows, "per_million_mentions": slopes}
    write_result("tree_contexts", arguments.seed, [NLAB / "train.jsonl.gz"], result)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))))
    else:
        main()
