"""Wikitext to plain text with links: articles and megabytes per second, and where the time goes.

The peer is mwparserfromhell's own way, its tree of nodes: strip_code() for the text and
filter_wikilinks() for the links, which gives no offsets. Our reader uses its tokenizer, alone here
as the lower bound.
"""

import gzip
import json
from collections import deque
from pathlib import Path

import mwparserfromhell
from common import DATA, best_of, parse_arguments, run_measured, write_result

from spacy_xel.formats.wikitext import parse_wikitext
from spacy_xel.formats.wikitext_tokens import tokenize

ARTICLES = DATA / "scale" / "enwiki_sample_wikitext.jsonl.gz"
IMPORT = """
from xml.sax.saxutils import escape
from spacy_xel.formats import KB_FORMATS
from spacy_xel.formats.importing import import_kb
from spacy_xel.formats.reading import Options
source, work, copies = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
import gzip
dump = work / f'wikitext{copies}.xml'
with gzip.open(source, 'rt') as lines, dump.open('w') as file:
    articles = [json.loads(line) for line in lines]
    for copy in range(copies):
        for i, a in enumerate(articles):
            to = f'<redirect title="{escape(a["redirect"])}" />' if 'redirect' in a else ''
            text = escape(a.get('wikitext', ''))
            file.write(f'<page><title>{escape(a["title"])} {copy}</title><ns>0</ns><id>{i}</id>{to}'
                       f'<revision><text>{text}</text></revision></page>\\n')
size = dump.stat().st_size
del articles, text
start = time.perf_counter()
report = import_kb(dump, work / 'kb.jsonl', KB_FORMATS['wikipedia'], Options(),
                   corpus=work / 'texts.jsonl', restart=True)
seconds = time.perf_counter() - start
result = {'pages': report.entities + report.redirects + sum(report.left_out.values()),
          'entities': report.entities, 'mentions': report.mentions, 'mb': round(size / 1e6, 1),
          'seconds': round(seconds, 2), 'mb_per_second': round(size / 1e6 / seconds, 2)}
"""


def tree_of_nodes(wikitext: str) -> None:
    code = mwparserfromhell.parse(wikitext)
    code.strip_code()
    code.filter_wikilinks()


def main() -> None:
    arguments = parse_arguments(__doc__)
    with gzip.open(ARTICLES, "rt") as file:
        articles = [json.loads(line).get("wikitext", "") for line in file]
    articles = [article for article in articles if article]
    megabytes = sum(len(article.encode()) for article in articles) / 1e6
    ways = {
        "tokenizer alone": tokenize,
        "tokens to text and links (ours)": parse_wikitext,
        "tree, strip_code, filter_wikilinks (mwparserfromhell)": tree_of_nodes,
    }
    # Results are not kept: the garbage collector would count them in.
    runs = [lambda way=way: deque(map(way, articles), maxlen=0) for way in ways.values()]
    times = best_of(arguments.repeats, *runs)
    parsed = [parse_wikitext(article) for article in articles]
    result = {
        "articles": len(articles),
        "megabytes": round(megabytes, 2),
        "links": {
            "[[ in the wikitext": sum(article.count("[[") for article in articles),
            "with a place in the text": sum(len(p.links) for p in parsed),
            "in templates, footnotes and settings": sum(len(p.loose_links) for p in parsed),
            "to files, categories, other wikis": sum(sum(p.other_links.values()) for p in parsed),
        },
        "seconds": {name: round(t, 3) for name, t in zip(ways, times, strict=True)},
        "megabytes_per_second": {
            name: round(megabytes / t, 2) for name, t in zip(ways, times, strict=True)
        },
        "articles_per_second": {
            name: round(len(articles) / t, 1) for name, t in zip(ways, times, strict=True)
        },
        "import of the articles as a dump": run_measured(IMPORT, ARTICLES, arguments.work, 1),
        "import of four copies": run_measured(IMPORT, ARTICLES, arguments.work, 4),
    }
    write_result("wikitext", arguments.seed, [Path(ARTICLES)], result)


if __name__ == "__main__":
    main()
