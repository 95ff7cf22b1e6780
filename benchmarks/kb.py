"""The knowledge-base store at the size of Wikipedia: build, open, look up.

python benchmarks/kb.py

Builds a store of all 5,902,572 titles in scale/, opens it in a fresh process, and looks names up
in turns with spaCy's InMemoryLookupKB holding 50,000 names.
"""

import gzip
import json
import random
import shutil
from pathlib import Path

from common import DATA, best_of, parse_arguments, run_measured, write_result
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_xel.kb.knowledge_base import XelKnowledgeBase

TITLES = DATA / "scale" / "dbpedia_titles_lower.txt.gz"
PEER_NAMES = 50_000
QUERIES = 20_000
BATCH = 256

BUILD = """
from spacy_xel.kb.build import build_store
start = time.perf_counter()
report = build_store(Path(sys.argv[1]), Path(sys.argv[2]), force=True, max_ram=int(sys.argv[3]))
result = {"seconds": round(time.perf_counter() - start, 1), **report.to_json()}
"""
OPEN = """
import psutil
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
before = psutil.Process().memory_info().rss
start = time.perf_counter()
kb = XelKnowledgeBase.open(sys.argv[1])
found = kb.lookup("paris")
result = {"seconds": round(time.perf_counter() - start, 4), "found": len(found)}
result["added_mb"] = round((psutil.Process().memory_info().rss - before) / 2**20, 1)
"""


def write_titles(path: Path) -> None:
    """Write the titles as a KB file."""
    with gzip.open(TITLES, "rt", encoding="utf8") as lines, path.open("w", encoding="utf8") as out:
        for number, line in enumerate(lines):
            title = line.rstrip("\n").replace("_", " ")
            out.write(json.dumps({"id": f"T{number}", "title": title}, ensure_ascii=False) + "\n")


def make_peer(names: list[str]) -> InMemoryLookupKB:
    """Return spaCy's own knowledge base with these names."""
    peer = InMemoryLookupKB(Vocab(), entity_vector_length=1)
    ids = [f"T{i}" for i in range(len(names))]
    peer.set_entities(ids, [1.0] * len(names), [[0.0]] * len(names))
    for kb_id, name in zip(ids, names, strict=True):
        peer.add_alias(name, [kb_id], [1.0])
    return peer


def main() -> None:
    arguments = parse_arguments("Knowledge-base store against spaCy's InMemoryLookupKB")
    source, store = arguments.work / "titles.jsonl", arguments.work / "kb_titles"
    write_titles(source)
    build = run_measured(BUILD, source, store, 2 << 30)
    low_ram = run_measured(BUILD, source, arguments.work / "kb_low_ram", 300 << 20)
    shutil.rmtree(arguments.work / "kb_low_ram")
    opened = run_measured(OPEN, store)

    kb = XelKnowledgeBase.open(store)
    rng = random.Random(arguments.seed)
    rows = rng.sample(range(len(kb)), PEER_NAMES)
    names = list(dict.fromkeys(kb.entity(row).title for row in rows))
    peer = make_peer(names)
    queries = rng.sample(names, QUERIES)
    batches = [queries[i : i + BATCH] for i in range(0, QUERIES, BATCH)]
    peer_time, single, candidates, batched = best_of(
        arguments.repeats,
        lambda: [peer.get_alias_candidates(name) for name in queries],
        lambda: [kb.lookup(name) for name in queries],
        lambda: [kb.get_alias_candidates(name) for name in queries],
        lambda: [kb.lookup_batch(batch) for batch in batches],
    )
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    result = {
        "build": build,
        "build_with_max_ram_300M": low_ram,
        "open_to_first_answer": opened,
        "store_mb": round(size / 2**20, 1),
        "lookups_per_second": {
            "InMemoryLookupKB.get_alias_candidates, 50k names": round(QUERIES / peer_time),
            "lookup, 5.9M names": round(QUERIES / single),
            "get_alias_candidates, 5.9M names": round(QUERIES / candidates),
            f"lookup_batch of {BATCH}, 5.9M names": round(QUERIES / batched),
        },
        "ratio_to_peer": {
            "lookup": round(peer_time / single, 2),
            "get_alias_candidates": round(peer_time / candidates, 2),
            "lookup_batch": round(peer_time / batched, 2),
        },
    }
    write_result("kb", arguments.seed, [TITLES], result)


if __name__ == "__main__":
    main()
