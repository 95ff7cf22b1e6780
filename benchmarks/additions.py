"""Entities added to a fitted tree against a tree fitted with them: MeSH, mentions of BC5CDR dev.

Half of the ids that only the dev set uses are left out of the knowledge base and added later. The
peer is a tree that was fitted with all of them.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, parse_arguments, write_result
from tree_quality import NAMES, ask, gold_mentions

from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.retrieval.label_tree.retriever import make_label_tree


def run(work: Path, seed: int) -> dict[str, Any]:
    folder = DATA / "bc5cdr"
    train, dev = (list(read_corpus(folder / f"{part}.jsonl.gz")) for part in ("train", "dev"))
    used = [
        {kb_id for text in texts for mention in text.mentions for kb_id in mention.kb_ids}
        for texts in (train, dev)
    ]
    new = np.random.default_rng(seed).permutation(sorted(used[1] - used[0]))
    held_out = set(new[: len(new) // 2].tolist())
    source = folder / "kb_mesh.jsonl.gz"
    build_store(source, work / "all", corpus=train, force=True)
    whole = XelKnowledgeBase.open(work / "all")
    kept = work / "kept_ids.txt"
    ids = (whole.kb_id(row) for row in whole.rows())
    kept.write_text("".join(f"{kb_id}\n" for kb_id in ids if kb_id not in held_out))
    build_store(source, work / "part", corpus=train, only_ids=kept, force=True)
    part = XelKnowledgeBase.open(work / "part")
    gold = gold_mentions(dev)
    is_new = np.array([bool(true & held_out) for _, true in gold])
    result: dict[str, Any] = {
        "entities_added": len(held_out),
        "mentions_of_added": int(is_new.sum()),
        "mentions_of_others": int((~is_new).sum()),
    }

    def score(name: str, tree: Any, kb: XelKnowledgeBase) -> None:
        first, ten = ask(tree, kb, gold)
        for group, chosen in (("added", is_new), ("others", ~is_new)):
            result[f"{name}_{group}_accuracy"] = round(float(first[chosen].mean()), 4)
            result[f"{name}_{group}_recall_at_10"] = round(float(ten[chosen].mean()), 4)

    for name, kb in (("fitted_with", whole), ("fitted_without", part)):
        tree = make_label_tree(**NAMES)
        tree.initialize(kb, train)
        score(name, tree, kb)
    entities = [whole.get_entity(kb_id) for kb_id in sorted(held_out) if whole.row(kb_id) >= 0]
    start = time.perf_counter()
    part.add(entities)
    tree([gold[0][0]], 10)
    result["seconds_to_first_answer"] = round(time.perf_counter() - start, 2)
    score("added_later", tree, part)
    return result


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    work = arguments.work / "additions"
    work.mkdir(exist_ok=True)
    data = sorted((DATA / "bc5cdr").glob("*.gz"))
    write_result("additions", arguments.seed, data, run(work, arguments.seed))


if __name__ == "__main__":
    main()
