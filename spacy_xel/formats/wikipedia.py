"""Wikipedia's XML dumps (pages-articles): pages with their wikitext.

A page is cut out of the stream between its tags and parsed by itself, so a fault costs one page, no
more than one is held, and those that are done with are passed over without being parsed. Nothing
outside a page is parsed, so declarations of entities have no effect: their use is a fault.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults
from spacy_xel.formats.linked_text import LinkedText
from spacy_xel.formats.reading import Article, Item, Options, Reading, Redirect
from spacy_xel.formats.wiki_titles import Site, clean_title, page_kind
from spacy_xel.formats.wikitext import parse_wikitext
from spacy_xel.jsonlines import DAMAGED, BadLine, damage, uncompressed
from spacy_xel.progress import byte_progress
from spacy_xel.types import AnnotatedText, Entity, Mention

MAX_PAGE_BYTES = 64 << 20
_CHUNK = 1 << 20
_OPEN, _CLOSE = b"<page>", b"</page>"
_NAMESPACE = re.compile(rb'<namespace key="(-?\d+)"[^>]*>([^<]*)</namespace>')
# Dumps before 2011 have an empty <redirect />, and say in the text where it leads.
_REDIRECT = re.compile(r"\s*#(\w+)\s*:?\s*\[\[([^\]|]+)")
_IN_TEXT = "\0"
_LANGUAGE = re.compile(rb'<mediawiki\b[^>]*\bxml:lang="([^"]+)"')


class PageData(NamedTuple):
    """The XML of one page, with its number in the file, counted from 1."""

    number: int
    data: bytes
    problem: str = ""


@dataclass
class Page:
    """What a dump says about a page."""

    title: str = ""
    namespace: str = "0"
    page_id: str = ""
    redirect: str = ""
    model: str = "wikitext"
    wikitext: str = ""


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read articles as annotated texts: each link is a mention, its id the title as it is linked.

    Redirects are not followed, because all of them are known only at the end; an import of the
    knowledge base with --corpus does.
    """
    for item in read_entities((faults or Faults()).reading(path), Options()):
        if isinstance(item, Article):
            yield item.text


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read articles and redirects. Disambiguation pages and lists are left out, and counted."""
    site = read_site(reading.file)
    for data in reading.records(read_pages, "page"):
        try:
            page = parse_page(data.data)
            if page.namespace != "0":
                reading.left_out["pages of other namespaces"] += 1
            elif page.redirect == _IN_TEXT:
                reading.problem("the page is a redirect, but does not say where to")
            elif page.redirect:
                yield Redirect(page.title, clean_title(page.redirect))
            elif page.model != "wikitext":
                reading.left_out[f"pages of {page.model}"] += 1
            else:
                parsed = parse_wikitext(page.wikitext, site)
                kind = page_kind(page.title, parsed.templates, page.wikitext)
                if kind == "article":
                    yield article(page.title, page.page_id, parsed, site, options)
                else:
                    reading.left_out[f"{kind}s"] += 1
        except BadLine as error:
            reading.problem(error)


def article(title: str, page_id: str, parsed: LinkedText, site: Site, options: Options) -> Article:
    """Return an article of Wikipedia from what its wikitext says."""
    kb_id = page_id if options.ids == "page" else title
    mentions = tuple(Mention(link.start, link.end, (link.target,)) for link in parsed.links)
    return Article(
        Entity(kb_id, title, description=parsed.first_paragraph),
        AnnotatedText(title, parsed.text, mentions, site.lang),
        tuple((link.target, link.surface) for link in parsed.loose_links),
    )


def read_site(path: Path) -> Site:
    """Return the language and the namespaces that the header of a dump gives."""
    site = Site()
    with path.open("rb") as raw:
        try:
            header = uncompressed(raw).read(_CHUNK).partition(_OPEN)[0]
        except DAMAGED:
            return site  # the reader will meet the same fault, and report it
    if language := _LANGUAGE.search(header):
        site.lang = language[1].decode(errors="replace")
    for key, name in _NAMESPACE.findall(header):
        site.add_namespace(unescape(name.decode(errors="replace")), int(key))
    return site


def read_pages(path: Path, skip: int) -> Iterator[PageData]:
    """Yield the XML of each page after the first ones, with a progress bar."""
    number = 0
    with path.open("rb") as raw, byte_progress(path.stat().st_size, f"Reading {path.name}") as bar:
        file = uncompressed(raw)
        buffer = bytearray()
        while True:
            start = buffer.find(_OPEN)
            end = buffer.find(_CLOSE, max(start, 0))
            if start >= 0 and end >= 0:
                number += 1
                if number > skip:
                    yield PageData(number, bytes(buffer[start : end + len(_CLOSE)]))
                del buffer[: end + len(_CLOSE)]
                continue
            try:
                chunk = file.read(_CHUNK)
            except DAMAGED as error:
                yield PageData(number + 1, b"", damage(path, error))
                return
            bar.update(raw.tell() - bar.n)
            if not chunk:
                break
            # What lies between pages is not kept; the beginning of a tag may be.
            del buffer[: max(0, start if start >= 0 else len(buffer) - len(_OPEN))]
            buffer += chunk
            if len(buffer) > MAX_PAGE_BYTES:
                number += 1
                if number > skip:
                    yield PageData(number, b"", f"the page has more than {MAX_PAGE_BYTES:,} bytes")
                buffer.clear()
        if _OPEN in buffer and number >= skip:
            yield PageData(number + 1, b"", "the file ends within a page")
        elif not number:
            raise ValueError(Errors.XE052.format(path=path, expected="<page> elements"))


def parse_page(data: bytes) -> Page:
    """Return what the XML of a page says, or raise BadLine."""
    page = Page()
    tags: list[str] = []
    parts: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        tags.append(name)
        parts.clear()
        if tags == ["page", "redirect"]:
            page.redirect = attributes.get("title", _IN_TEXT)

    def end(name: str) -> None:
        text = "".join(parts)
        match tags:
            case ["page", "title"]:
                page.title = text.strip()
            case ["page", "ns"]:
                page.namespace = text.strip()
            case ["page", "id"]:
                page.page_id = text.strip()
            case ["page", "revision", "model"]:
                page.model = text.strip()
            case ["page", "revision", "text"]:
                page.wikitext = text
                target = _REDIRECT.match(text)
                if target and (page.redirect == _IN_TEXT or target[1].casefold() == "redirect"):
                    page.redirect = page.redirect.removeprefix(_IN_TEXT) or target[2]
        tags.pop()

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = parts.append
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BadLine(f"the XML cannot be parsed ({error})") from error
    if not page.title:
        raise BadLine("the page has no title")
    return page
