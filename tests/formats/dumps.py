"""Small dumps in the formats of the large ones, written for these tests."""

import bz2
import gzip
import json
import lzma
from pathlib import Path
from xml.sax.saxutils import escape

from spacy_xel.formats import KB_FORMATS
from spacy_xel.formats.importing import import_kb
from spacy_xel.formats.reading import Options

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <namespaces>
      <namespace key="-1" case="first-letter">Spezial</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""


def page(title, wikitext="", *, page_id=1, namespace=0, redirect="", model="wikitext"):
    """Return a page as it is in pages-articles.xml."""
    to = f'    <redirect title="{escape(redirect)}" />\n' if redirect else ""
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n    <ns>{namespace}</ns>\n"
        f"    <id>{page_id}</id>\n{to}    <revision>\n      <id>9{page_id}</id>\n"
        f"      <contributor>\n        <username>Someone</username>\n        <id>7</id>\n"
        f"      </contributor>\n      <model>{model}</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="1" xml:space="preserve">{escape(wikitext)}</text>\n'
        f"    </revision>\n  </page>\n"
    )


PAGES = [
    page("Paris", "'''Paris''' is a town on the [[Seine]], in [[France]].", page_id=10),
    page("Seine", "The '''Seine''' flows through [[Paris|the town]] and [[Paris]].", page_id=11),
    page("Lutetia", redirect="Paris", page_id=12),
    page(
        "Troy", "[[Paris (mythology)|Paris]] fled. See [[Lutetia|old Paris]], [[Atlantis]].",
        page_id=13,
    ),
    page("Paris (disambiguation)", "* [[Paris]]\n* [[Paris (mythology)]]\n{{disambig}}"),
    page("Mercury", "Many things.\n{{Disambiguation|geo}}"),
    page("List of towns", "* [[Paris]]"),
    page("Wikipedia:About", "About [[Paris]].", namespace=4),
    page("Paris (mythology)", "'''Paris''' was a prince of [[Troy]].", page_id=15),
    page("Data", "{}", model="json"),
]  # fmt: skip


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, compressed as its name says."""
    data = content.encode() if isinstance(content, str) else content
    openers = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    path.write_bytes(openers.get(path.suffix, bytes)(data))
    return path


def write_dump(path: Path, pages=PAGES) -> Path:
    return write(path, HEADER + "".join(pages) + "</mediawiki>\n")


def json_lines(objects) -> str:
    return "".join(json.dumps(fields, ensure_ascii=False) + "\n" for fields in objects)


def imported(source, name, *, target=None, corpus=None, on_error="stop", min_count=2, **options):
    """Import a dump; return the report and the lines of the KB file by id."""
    target = target or source.parent / "kb.jsonl"
    kb_format = KB_FORMATS[name]
    report = import_kb(
        source, target, kb_format, Options(**options), corpus=corpus, on_error=on_error,
        min_count=min_count,
    )  # fmt: skip
    lines = [json.loads(line) for line in target.read_text("utf8").splitlines()]
    return report, {line["id"]: line for line in lines}
