"""Imports of dumps: megabytes per second, peak memory, and whether a killed one ends the same.

Dumps are written from scale/enwiki_sample_wikitext, over and over: Wikipedia XML (1 GB), and 200 MB
each of CirrusSearch (with and without reading the links of its wikitext) and of items shaped like
those of Wikidata. Then an import of 60 MB of XML is killed and started again; its files must be
those of one that was not.
"""

import gzip
import hashlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from common import DATA, parse_arguments, run_measured, write_result

ARTICLES = DATA / "scale" / "enwiki_sample_wikitext.jsonl.gz"
IMPORT = """
from spacy_xel.formats import KB_FORMATS
from spacy_xel.formats.importing import import_kb
from spacy_xel.formats.reading import Options
source, name, texts = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == 'texts'
size = source.stat().st_size
start = time.perf_counter()
folder = source.parent
report = import_kb(source, folder / 'kb.jsonl', KB_FORMATS[name], Options(texts=texts),
                   corpus=folder / 'texts.jsonl' if texts else None, restart=len(sys.argv) < 5)
seconds = time.perf_counter() - start
result = {'mb': round(size / 1e6, 1), 'entities': report.entities, 'mentions': report.mentions,
          'seconds': round(seconds, 1), 'mb_per_second': round(size / 1e6 / seconds, 2),
          'resumed_at': report.resumed_at}
"""


def copies() -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield articles for ever, each time with other titles."""
    with gzip.open(ARTICLES, "rt", encoding="utf8") as file:
        articles = [json.loads(line) for line in file]
    for number in itertools.count():
        for i, article in enumerate(articles):
            yield f"{article['title']} {number}", number * len(articles) + i, article


def xml_page(title: str, number: int, article: dict[str, Any]) -> str:
    to = f'<redirect title="{escape(article["redirect"])}" />' if "redirect" in article else ""
    text = escape(article.get("wikitext", ""))
    return (
        f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>{to}"
        f"<revision><text>{text}</text></revision></page>\n"
    )


def cirrus_page(title: str, number: int, article: dict[str, Any]) -> str:
    text = article.get("wikitext", "")
    page = {
        "namespace": 0, "title": title, "redirect": [], "template": [], "incoming_links": 1,
        "wikibase_item": f"Q{number}", "opening_text": text[:500], "text": text,
        "source_text": text, "language": "en",
    }  # fmt: skip
    return json.dumps({"index": {"_id": str(number)}}) + "\n" + json.dumps(page) + "\n"


def wikidata_item(title: str, number: int, article: dict[str, Any]) -> str:
    """Return an item of some 20 kB: names in 30 languages, 40 statements with references."""
    codes = [f"{a}{b}" for a in "adefk" for b in "aeimno"]
    snak = {"snaktype": "value", "property": "P31", "hash": "0" * 40, "datatype": "wikibase-item"}
    snak["datavalue"] = {"value": {"entity-type": "item", "numeric-id": 5, "id": "Q5"}}  # type: ignore[assignment]
    statement = {"mainsnak": snak, "type": "statement", "rank": "normal", "references": [snak]}
    item = {
        "type": "item", "id": f"Q{number}",
        "labels": {code: {"language": code, "value": title} for code in ["en", *codes]},
        "descriptions": {code: {"language": code, "value": title} for code in ["en", *codes]},
        "aliases": {"en": [{"language": "en", "value": f"{title} {i}"} for i in range(3)]},
        "claims": {f"P{31 + i}": [statement] for i in range(40)},
        "sitelinks": {"enwiki": {"site": "enwiki", "title": title, "badges": []}},
    }  # fmt: skip
    return json.dumps(item) + ",\n"


def write_dump(path: Path, megabytes: int, record: Any, head: str = "", tail: str = "") -> None:
    with path.open("w", encoding="utf8") as file:
        file.write(head)
        for title, number, article in copies():
            file.write(record(title, number, article))
            if number % 100 == 0 and file.tell() > megabytes * 1e6:
                break
        file.write(tail)


def killed_and_resumed(dump: Path, seconds: float) -> dict[str, Any]:
    """Import twice, once with a kill in the middle; compare the files."""
    names = ("kb.jsonl", "texts.jsonl")
    run_measured(IMPORT, dump, "wikipedia", "texts")
    whole = [hashlib.sha256((dump.parent / n).read_bytes()).hexdigest() for n in names]
    for name in names:
        (dump.parent / name).unlink()
    code = f"import json, sys, time\nfrom pathlib import Path\n{IMPORT}"
    command = [sys.executable, "-c", code, str(dump), "wikipedia", "texts"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.kill()
    process.wait()
    resumed = run_measured(IMPORT, dump, "wikipedia", "texts", "resume")
    again = [hashlib.sha256((dump.parent / n).read_bytes()).hexdigest() for n in names]
    return {"resumed_at": resumed["resumed_at"], "same_bytes": whole == again}


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    work = arguments.work
    result: dict[str, Any] = {}
    jobs = [
        ("Wikidata", "wikidata", "names", 200, wikidata_item, "[\n", "]\n"),
        ("CirrusSearch", "cirrus", "names", 200, cirrus_page, "", ""),
        ("CirrusSearch with texts", "cirrus", "texts", 200, cirrus_page, "", ""),
        ("Wikipedia XML with texts", "wikipedia", "texts", 100, xml_page, "", ""),
        ("Wikipedia XML with texts, 1 GB", "wikipedia", "texts", 1000, xml_page, "", ""),
    ]
    for name, format_name, texts, megabytes, record, head, tail in jobs:
        dump = work / "dump"
        write_dump(dump, megabytes, record, head, tail)
        result[name] = run_measured(IMPORT, dump, format_name, texts)
        print(name, result[name], flush=True)
        dump.unlink()
    dump = work / "dump"
    write_dump(dump, 60, xml_page)
    result["killed after 8 s"] = killed_and_resumed(dump, 8.0)
    for path in (dump, work / "kb.jsonl", work / "texts.jsonl"):
        path.unlink()
    write_result("dump_readers", arguments.seed, [ARTICLES], result)


if __name__ == "__main__":
    main()
