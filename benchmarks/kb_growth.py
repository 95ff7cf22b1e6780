"""How the knowledge-base store grows: 10k, 100k, 1M and all of Wikipedia's titles.

Per size: time and peak memory to build with --max-ram 2G, size on disk, time from opening the store
in a fresh process to the first answer, and look-ups per second. Draws docs/kb_growth.svg, which
needs the extra `plots`.
"""

import json
import random
import shutil
from pathlib import Path

from common import DATA, ROOT, best_of, parse_arguments, run_measured, write_result
from kb import BATCH, BUILD, OPEN, QUERIES
from tree_growth import read_titles

from spacy_xel.kb.knowledge_base import XelKnowledgeBase

SIZES = (10_000, 100_000, 1_000_000, None)
MAX_RAM = 2 << 30
TITLES = DATA / "scale" / "dbpedia_titles_lower.txt.gz"


def write_titles(size: int | None, path: Path) -> None:
    """Write so many titles as a KB file."""
    with path.open("w", encoding="utf8") as out:
        for number, title in enumerate(read_titles(size)):
            out.write(json.dumps({"id": f"T{number}", "title": title}, ensure_ascii=False) + "\n")


def measure(size: int | None, work: Path, repeats: int, seed: int) -> dict[str, float]:
    """Build a store of so many titles, open it, and look names up."""
    source, store = work / "growth.jsonl", work / "kb_growth"
    write_titles(size, source)
    built = run_measured(BUILD, source, store, MAX_RAM)
    opened = run_measured(OPEN, store)
    kb = XelKnowledgeBase.open(store)
    rows = random.Random(seed).sample(range(len(kb)), min(QUERIES, len(kb)))
    names = [kb.entity(row).title for row in rows]
    batches = [names[i : i + BATCH] for i in range(0, len(names), BATCH)]
    single, batched = best_of(
        repeats,
        lambda: [kb.lookup(name) for name in names],
        lambda: [kb.lookup_batch(batch) for batch in batches],
    )
    disk = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    result = {
        "titles": len(kb),
        "file_mb": round(source.stat().st_size / 2**20, 1),
        "build_s": built["seconds"],
        "build_peak_mb": built["peak_mb"],
        "disk_mb": round(disk / 2**20, 1),
        "open_to_first_answer_ms": round(1000 * opened["seconds"], 2),
        "lookups_per_s": round(len(names) / single),
        "lookups_in_batches_per_s": round(len(names) / batched),
    }
    source.unlink()
    shutil.rmtree(store)
    return result


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw the curves."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    curves = {
        "seconds to build": ["build_s"],
        "peak memory, MB": ["build_peak_mb"],
        "on disk, MB": ["disk_mb"],
        "open to first answer, ms": ["open_to_first_answer_ms"],
        "look-ups per second": ["lookups_per_s", "lookups_in_batches_per_s"],
    }
    figure, axes = pyplot.subplots(1, len(curves), figsize=(16, 3.2), layout="constrained")
    sizes = [row["titles"] for row in rows]
    for axis, (title, keys) in zip(axes, curves.items(), strict=True):
        for key in keys:
            axis.plot(sizes, [row[key] for row in rows], marker="o", label=key)
        axis.set(title=title, xscale="log", xlabel="titles")
        if "second" in title or "disk" in title:
            axis.set_yscale("log")
        else:
            axis.set_ylim(0)
        if len(keys) > 1:
            axis.set_yscale("linear")
            axis.set_ylim(0)
            axis.legend(fontsize=7)
    matplotlib.rcParams["svg.hashsalt"] = "spacy_xel"
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    rows = []
    for size in SIZES:
        rows.append(measure(size, arguments.work, arguments.repeats, arguments.seed))
        print(rows[-1], flush=True)
    write_result("kb_growth", arguments.seed, [TITLES], {"max_ram": "2G", "rows": rows})
    draw(rows, ROOT / "docs" / "kb_growth.svg")


if __name__ == "__main__":
    main()
