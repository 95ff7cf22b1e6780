"""How good the label tree is with gold mentions: BC5CDR, nLab, FOLDOC; trained, and zero-shot.

The peer is the alias table, the share of each entity among the mentions of a name, trained on the
same data. Tuned on dev only; settings that differ from the defaults are in the result.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, parse_arguments, write_result

from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.retrieval.alias import make_alias_table
from spacy_xel.retrieval.label_tree.retriever import make_label_tree
from spacy_xel.types import AnnotatedText, Query, Retriever

K = 20
# In MeSH the name decides, elsewhere also what stands around it. Chosen on dev.
NAMES = {"features": {"context_words": 0.0, "mention_name": 0.5}, "tree": {"cost": 10.0}}
SEVERAL = {
    "features": {"context_words": 0.0}, "tree": {"cost": 3.0, "branching": 64}, "trees": 3
}  # fmt: skip
CONTEXT = {
    "features": {"context_words": 1.0, "longest_words": 1, "context_stem": 4},
    "tree": {"cost": 10.0},
}
TASKS: dict[str, dict[str, Any]] = {
    "bc5cdr": {"kb": "kb_mesh", "settings": NAMES},
    "bc5cdr_3_trees": {"data": "bc5cdr", "kb": "kb_mesh", "settings": SEVERAL},
    "bc5cdr_zero_shot": {
        "data": "bc5cdr", "kb": "kb_mesh", "settings": NAMES, "zero_shot": True
    },
    "foldoc": {"kb": "kb", "settings": CONTEXT},
    "foldoc_zero_shot": {"data": "foldoc", "kb": "kb", "settings": NAMES, "zero_shot": True},
    "nlab": {"kb": "kb", "settings": CONTEXT},
}  # fmt: skip


def gold_mentions(texts: Sequence[AnnotatedText]) -> list[tuple[Query, set[str]]]:
    return [
        (Query(text.text, mention.start, mention.end), set(mention.kb_ids))
        for text in texts
        for mention in text.mentions
        if mention.kb_ids
    ]


def ask(
    retriever: Retriever, kb: XelKnowledgeBase, gold: Sequence[tuple[Query, set[str]]]
) -> tuple[Any, Any]:
    """Return per mention whether the first is right, and whether one of the first ten is."""
    rows = retriever([query for query, _ in gold], K).rows
    ids = [[kb.kb_id(row) for row in answer if row >= 0] for answer in rows.tolist()]
    first = [bool(found) and found[0] in true for found, (_, true) in zip(ids, gold, strict=True)]
    ten = [bool(set(found[:10]) & true) for found, (_, true) in zip(ids, gold, strict=True)]
    return np.array(first), np.array(ten)


def run(name: str, work: Path) -> dict[str, Any]:
    task = TASKS[name]
    folder = DATA / task.get("data", name)
    train = [] if task.get("zero_shot") else list(read_corpus(folder / "train.jsonl.gz"))
    gold = gold_mentions(list(read_corpus(folder / "dev.jsonl.gz")))
    build_store(folder / f"{task['kb']}.jsonl.gz", work / name, corpus=train, force=True)
    kb = XelKnowledgeBase.open(work / name)
    meanings = defaultdict(set)
    for query, true in gold_mentions(train):
        meanings[normalize_name(query.mention)] |= true
    ambiguous = np.array([len(meanings[normalize_name(query.mention)]) > 1 for query, _ in gold])
    known = np.array([any(kb.row(kb_id) >= 0 for kb_id in true) for _, true in gold])
    result: dict[str, Any] = {
        "mentions": len(gold),
        "in_kb": round(float(known.mean()), 4),
        "ambiguous": int(ambiguous.sum()),
        "settings": task["settings"],
    }
    table = make_alias_table()
    table.attach(kb)
    tree = make_label_tree(**task["settings"])
    start = time.perf_counter()
    tree.initialize(kb, train)
    result["train_s"] = round(time.perf_counter() - start, 1)
    for kind, retriever in {"alias_table": table, "label_tree": tree}.items():
        start = time.perf_counter()
        first, ten = ask(retriever, kb, gold)
        result[kind] = {
            "mentions_per_s": round(len(gold) / (time.perf_counter() - start)),
            "accuracy": round(float(first.mean()), 4),
            "recall_at_10": round(float(ten.mean()), 4),
        }
        if ambiguous.any():
            result[kind]["accuracy_ambiguous"] = round(float(first[ambiguous].mean()), 4)
            result[kind]["recall_at_10_ambiguous"] = round(float(ten[ambiguous].mean()), 4)
    return result


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    work = arguments.work / "quality"
    work.mkdir(exist_ok=True)
    result = {}
    for name in TASKS:
        result[name] = run(name, work)
        print(name, result[name], flush=True)
    folders = {task.get("data", name) for name, task in TASKS.items()}
    data = [path for folder in sorted(folders) for path in sorted((DATA / folder).glob("*.gz"))]
    write_result("tree_quality", arguments.seed, data, result)


if __name__ == "__main__":
    main()
