"""`xel quickstart` on tables of 1,000 and 50,000 places, and on a corpus: expected against real.

The constants in spacy_xel/quickstart/estimate.py come from here. Only the process itself is
measured for memory: the one that makes the wheel needs less. The wheel is not installed.
"""

import csv
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from common import DATA, parse_arguments, run_measured, write_result

PLACES = DATA / "geonames" / "kb.jsonl.gz"
PAGES = DATA / "foldoc" / "kb.jsonl.gz"
TEXTS = DATA / "foldoc" / "train.jsonl.gz"
RUN = """
from spacy_xel.cli.main import app
import resource
start = time.perf_counter()
app(["quickstart", *sys.argv[1:], "--no-install", "--yes"], standalone_mode=False)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
result = {"seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(cpu, 1)}
"""


def write_table(path: Path, rows: int) -> None:
    """Write the first places as a table like that of GeoNames."""
    with gzip.open(PLACES, "rt", encoding="utf8") as source, path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["geonameid", "name", "alternatenames", "feature", "population"])
        for _, line in zip(range(rows), source, strict=False):
            place = json.loads(line)
            names = [name for name in place.get("aliases", []) if "," not in name]
            types = "|".join(place.get("types", []))
            prior = int(place.get("prior", 0))
            table.writerow([place["id"], place["title"], ",".join(names), types, prior])


def measure(work: Path, *arguments: object) -> dict[str, Any]:
    """Return what was expected of a run, and what it took."""
    from spacy_xel.quickstart.corpus import survey_corpus
    from spacy_xel.quickstart.estimate import estimate
    from spacy_xel.quickstart.survey import survey

    output = work / "quickstart_output"
    shutil.rmtree(output, ignore_errors=True)
    real = run_measured(RUN, *arguments, "--output", output)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    real["disk_mb"] = round(size / (1 << 20), 1)
    recipe = json.loads((output / "quickstart.json").read_text())["purpose"]["recipe"]
    shutil.rmtree(output)
    looked = survey(Path(str(arguments[0])))
    corpus = survey_corpus(Path(str(arguments[1]))) if len(arguments) > 1 else None
    mentions, characters = (corpus.mentions, corpus.characters) if corpus else (0, 0)
    expected = estimate(recipe, looked.names, mentions, looked.characters + characters)
    return {
        "recipe": recipe,
        "rows": looked.rows,
        "instances": looked.names + mentions,
        "characters": looked.characters + characters,
        "expected": {
            "seconds": round(expected.seconds, 1),
            "peak_mb": round(expected.memory / (1 << 20)),
            "disk_mb": round(expected.disk / (1 << 20)),
        },
        "real": real,
    }


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    results = {}
    for rows in (1_000, 50_000):
        table = arguments.work / f"places_{rows}.csv"
        write_table(table, rows)
        results[f"places_{rows}"] = measure(arguments.work, table)
    wiki = Path("assets/wiki")
    results["wiki_with_corpus"] = measure(arguments.work, wiki / "kb.jsonl", wiki / "train.jsonl")
    results["foldoc_with_corpus"] = measure(arguments.work, PAGES, TEXTS)
    write_result("quickstart", arguments.seed, [PLACES, PAGES, TEXTS], results)


if __name__ == "__main__":
    main()
