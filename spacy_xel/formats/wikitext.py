"""Wikitext as plain text, with the places of its links.

mwparserfromhell cuts the text into tokens. They are read here one by one, because making its tree
of nodes takes most of its time (see docs/formats.md). What becomes of the parts of an article:

- prose, headings and list items are the text;
- captions of files and tables follow it, each as a paragraph of its own;
- footnotes and templates are left out, but for a few templates that only format their arguments;
  their links are counted, without a place in the text.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.formats.wiki_titles import Site
from spacy_xel.jsonlines import BadLine

MAX_DEPTH = 200
# The tokenizer's time grows with the square of what is opened and never closed (20,000 times "{{a|"
# took it 171 s), so a text with more of it than any article has is refused.
MAX_UNCLOSED = 1000
_BRACKETS = (
    ("templates", "{{", re.compile(r"(\{\{)|\}\}")),
    ("links", "[[", re.compile(r"(\[\[)|\]\]")),
    ("external links", "[http", re.compile(r"(\[http)|\]")),
    ("tables", "{|", re.compile(r"(\{\|)|\|\}")),
    ("comments", "<!--", re.compile(r"(<!--)|-->")),
    (
        "tags",
        "<",
        re.compile(r"(<(?!br\b|hr\b|li\b|wbr\b)[a-z][^<>]*(?<!/)>)|</[a-z]", re.IGNORECASE),
    ),
)
_LIST_ITEM = "\x01"  # XML and JSON dumps cannot have these characters in a text
_HEADING = "\x02"
_QUOTES = re.compile(r"'{2,}")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_NEWLINE_TAGS = frozenset(("br", "hr", "p", "div", "tr", "center", "blockquote", "poem", "li"))
_LIST_TAGS = frozenset(("li", "dd", "dt"))
_CELL_TAGS = frozenset(("td", "th", "caption"))
_SKIPPED_TAGS = frozenset((
    "ref", "references", "math", "chem", "ce", "gallery", "timeline", "syntaxhighlight", "source",
    "score", "graph", "mapframe", "maplink", "imagemap", "hiero", "style", "templatedata",
    "templatestyles", "section", "indicator", "inputbox",
))  # fmt: skip
# Templates that only format their arguments: which of these, counted from 1, are text.
_TEXT_TEMPLATES = {
    "lang": (2,), "nowrap": (1,), "nobr": (1,), "small": (1,), "big": (1,), "abbr": (1,),
    "convert": (1, 2), "cvt": (1, 2), "quote": (1,), "cquote": (1,), "blockquote": (1,),
    "quotation": (1,), "transl": (2,), "sic": (1,),
}  # fmt: skip
_FILE_SETTING = re.compile(
    r"\s*(?:|thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|baseline|"
    r"middle|sub|super|top|text-top|bottom|text-bottom|upright|[\dx ]+px|"
    r"(?:alt|link|upright|page|class|lang|thumb|thumbtime|start|end|type)\s*=.*)\s*",
    re.DOTALL,
)
# What is tidied when markup has gone: blank lines, spaces, and brackets that became empty.
_UNTIDY = re.compile(
    r"\s*\n\s*\n\s*|[ \t\x01\x02]*\n[ \t\x01\x02]*|[ \t]{2,}"
    r"|[ \t]*\([\s;,:/–-]*\)|[\x01\x02]+[ \t]*"
)


class Link(NamedTuple):
    """A link in plain text; its surface is there at start to end."""

    start: int
    end: int
    target: str
    surface: str


class LooseLink(NamedTuple):
    """A link that has no place in the plain text, and why: "footnote", "template", …"""

    place: str
    target: str
    surface: str


@dataclass
class LinkedText:
    """What an article says: text, its links, and what else there was."""

    text: str = ""
    first_paragraph: str = ""
    links: list[Link] = field(default_factory=list)
    loose_links: list[LooseLink] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    other_links: dict[str, int] = field(default_factory=dict)  # to files, other wikis …, by kind


def parse_wikitext(wikitext: str, site: Site | None = None) -> LinkedText:
    """Return the plain text of an article in wikitext, with its links to other articles.

    site (Site): The names of the wiki's namespaces.
    """
    return _Converter(site or Site()).convert(_tokenize(wikitext))


def _tokenize(wikitext: str) -> list[Any]:
    tokenizer, parser_error = _tokenizer()
    for name, begins, pattern in _BRACKETS:
        if wikitext.count(begins) > MAX_UNCLOSED and _unclosed(wikitext, pattern) > MAX_UNCLOSED:
            raise BadLine(f"more than {MAX_UNCLOSED} {name} are never closed")
    try:
        tokens: list[Any] = tokenizer(wikitext)
    except (parser_error, RecursionError) as error:
        raise BadLine(f"the wikitext cannot be parsed ({error})") from error
    return tokens


def _unclosed(wikitext: str, pattern: re.Pattern[str]) -> int:
    """Count what is opened and never closed; group 1 of the pattern is what opens."""
    unclosed = 0
    for match in pattern.finditer(wikitext):
        unclosed = unclosed + 1 if match[1] else max(0, unclosed - 1)
    return unclosed


@cache
def _tokenizer() -> tuple[Callable[[str], list[Any]], type[Exception]]:
    """Return a function that makes tokens of wikitext: the compiled one where there is one."""
    try:
        from mwparserfromhell.parser import ParserError
    except ImportError as error:
        message = Errors.XE051.format(what="Wikitext", package="mwparserfromhell", extra="dumps")
        raise MissingExtra(message) from error
    try:
        from mwparserfromhell.parser._tokenizer import CTokenizer as Tokenizer
    except ImportError:
        from mwparserfromhell.parser.tokenizer import Tokenizer
    make_tokens = Tokenizer().tokenize
    # Without tags for bold and italics, which are dealt with below, there are fewer tokens.
    return lambda text: make_tokens(text, 0, True), ParserError


class _Buffer:
    """Text in the making, with links: [start, end, target]."""

    __slots__ = ("length", "links", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.links: list[list[Any]] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def extend(self, other: "_Buffer") -> None:
        for start, end, target in other.links:
            self.links.append([start + self.length, end + self.length, target])
        self.parts.extend(other.parts)
        self.length += other.length

    def clear(self) -> None:
        self.parts.clear()
        self.links.clear()
        self.length = 0


class _Frame:
    """A construct that is open: where its text goes, and what to do when it closes."""

    __slots__ = ("arguments", "buffer", "kind", "name", "start")

    def __init__(self, kind: str, buffer: _Buffer, name: str = "", start: int = 0) -> None:
        self.kind = kind
        self.buffer = buffer
        self.name = name
        self.start = start
        self.arguments: list[_Buffer] = []


class _Converter:
    """Reads tokens one by one; the frames are the constructs that are open."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.result = LinkedText()
        self.buffer = _Buffer()
        self.frames = [_Frame("text", self.buffer)]
        self.asides: list[_Buffer] = []
        self.open_link: list[Any] | None = None  # one that letters may follow: "[[cat]]s"
        self.handlers: dict[str, Callable[[Any], None]] = {
            "TemplateOpen": self.open_template,
            "TemplateParamSeparator": self.next_argument,
            "TemplateParamEquals": self.name_argument,
            "TemplateClose": self.close_template,
            "ArgumentOpen": self.open_comment,
            "ArgumentClose": self.close_comment,
            "WikilinkOpen": self.open_wikilink,
            "WikilinkSeparator": self.separate_wikilink,
            "WikilinkClose": self.close_wikilink,
            "ExternalLinkOpen": self.open_external_link,
            "ExternalLinkSeparator": self.separate_external_link,
            "ExternalLinkClose": self.close_external_link,
            "HTMLEntityStart": self.open_entity,
            "HTMLEntityNumeric": self.numeric_entity,
            "HTMLEntityHex": self.hex_entity,
            "HTMLEntityEnd": self.close_entity,
            "HeadingStart": self.open_heading,
            "HeadingEnd": self.close_heading,
            "CommentStart": self.open_comment,
            "CommentEnd": self.close_comment,
            "TagOpenOpen": self.open_tag,
            "TagCloseOpen": self.open_tag_content,
            "TagCloseSelfclose": self.self_close_tag,
            "TagOpenClose": self.close_tag,
            "TagCloseClose": self.close_comment,
        }

    def convert(self, tokens: list[Any]) -> LinkedText:
        self.feed(tokens)
        return self.finish()

    def feed(self, tokens: list[Any]) -> None:
        handlers = self.handlers
        add_text = self.add_text
        for token in tokens:
            name = type(token).__name__
            if name == "Text":
                add_text(token["text"])
            elif name in handlers:
                self.open_link = None
                handlers[name](token)
        self.open_link = None

    def add_text(self, text: str) -> None:
        if self.open_link is not None:
            text = self.add_trail(text)
        frame = self.frames[-1]
        while frame.kind == "file" and "|" in text:
            before, _, text = text.partition("|")
            frame.buffer.add(before)
            self.next_argument(None)
        if "''" in text:
            text = _QUOTES.sub(_apostrophes, text)
        if "__" in text:
            text = _MAGIC_WORD.sub("", text)
        frame.buffer.add(text)

    def add_trail(self, text: str) -> str:
        """Give the letters right behind a link to it, as MediaWiki does; return the rest."""
        link, self.open_link = self.open_link, None
        end = 0
        while end < len(text) and text[end].islower():
            end += 1
        if end and link is not None:
            self.frames[-1].buffer.add(text[:end])
            link[1] += end
        return text[end:]

    def push(self, kind: str, name: str = "", *, shared: bool = False) -> None:
        """Open a construct, with a buffer of its own or the one around it."""
        if len(self.frames) > MAX_DEPTH:
            raise BadLine(f"more than {MAX_DEPTH} constructs of wikitext lie within each other")
        around = self.frames[-1].buffer
        buffer = around if shared else _Buffer()
        self.frames.append(_Frame(kind, buffer, name, around.length if shared else 0))

    def pop(self) -> _Frame:
        return self.frames.pop()

    def set_loose(self, buffer: _Buffer, place: str) -> None:
        """Keep the links of a text that is left out."""
        if buffer.links:
            text = "".join(buffer.parts)
            for start, end, target in buffer.links:
                surface = _one_line(text[start:end])
                self.result.loose_links.append(LooseLink(place, target, surface))
        buffer.clear()

    # Templates

    def open_template(self, token: Any) -> None:
        self.push("template")

    def next_argument(self, token: Any) -> None:
        frame = self.frames[-1]
        frame.arguments.append(frame.buffer)
        frame.buffer = _Buffer()

    def name_argument(self, token: Any) -> None:
        self.set_loose(self.frames[-1].buffer, "template")

    def close_template(self, token: Any) -> None:
        self.next_argument(token)
        arguments = self.pop().arguments
        name = _one_line("".join(arguments[0].parts))
        self.result.templates.append(name)
        shown = _TEXT_TEMPLATES.get(name.casefold(), ())
        for number, argument in enumerate(arguments):
            if number in shown:
                if number != shown[0]:
                    self.frames[-1].buffer.add(" ")
                self.frames[-1].buffer.extend(argument)
            else:
                self.set_loose(argument, "template")

    # Links

    def open_wikilink(self, token: Any) -> None:
        self.push("target")

    def separate_wikilink(self, token: Any) -> None:
        text = "".join(self.pop().buffer.parts)
        kind, title = self.site.target(text)
        if kind in ("file", "category"):
            self.push(kind, title)
        else:
            self.push("link" if kind == "article" else kind, title, shared=True)

    def close_wikilink(self, token: Any) -> None:
        frame = self.pop()
        label = ""
        if frame.kind == "target":
            label = "".join(frame.buffer.parts)
            kind, title = self.site.target(label)
            shared = kind not in ("file", "category")
            self.push("link" if kind == "article" else kind, title, shared=shared)
            frame = self.pop()
            if shared:
                frame.buffer.add(label.strip().removeprefix(":"))
        elif frame.kind == "link" and not frame.buffer.parts:
            frame.buffer.add(frame.name)
        if frame.kind == "link":
            self.open_link = [frame.start, frame.buffer.length, frame.name]
            frame.buffer.links.append(self.open_link)
            return
        self.result.other_links[frame.kind] = self.result.other_links.get(frame.kind, 0) + 1
        if frame.kind == "category":
            self.result.categories.append(frame.name)
            self.set_loose(frame.buffer, "category")
        elif frame.kind == "file":
            self.add_caption([*frame.arguments, frame.buffer])

    def add_caption(self, arguments: list[_Buffer]) -> None:
        """Keep the caption of a file: the last of its arguments that is not a setting."""
        captions = [b for b in arguments if not _FILE_SETTING.fullmatch("".join(b.parts))]
        for buffer in arguments:
            if captions and buffer is captions[-1]:
                self.add_aside(buffer)
            else:
                self.set_loose(buffer, "file setting")

    def add_gallery(self, content: str) -> None:
        """Keep the captions of a gallery, which are wikitext that was not cut into tokens."""
        for line in content.splitlines():
            caption = line.partition("|")[2]
            if caption:
                self.push("file")
                self.feed(_tokenize(caption))
                frame = self.pop()
                self.add_caption([*frame.arguments, frame.buffer])

    def add_aside(self, buffer: _Buffer) -> None:
        """Keep a caption or a table for the end of the text, unless it is in what is left out."""
        skipping = [frame for frame in self.frames if frame.kind in ("skipped", "template")]
        if skipping:
            skipping[-1].buffer.extend(buffer)
        else:
            self.asides.append(buffer)

    def open_external_link(self, token: Any) -> None:
        if token.brackets:
            self.push("url")
        else:
            self.push("link text", shared=True)

    def separate_external_link(self, token: Any) -> None:
        self.pop()
        self.push("link text", shared=True)

    def close_external_link(self, token: Any) -> None:
        self.pop()

    # Characters, headings, comments

    def open_entity(self, token: Any) -> None:
        self.push("entity", "&")

    def numeric_entity(self, token: Any) -> None:
        self.frames[-1].name = "&#"

    def hex_entity(self, token: Any) -> None:
        self.frames[-1].name = "&#x"

    def close_entity(self, token: Any) -> None:
        frame = self.pop()
        character = html.unescape(frame.name + "".join(frame.buffer.parts) + ";")
        self.frames[-1].buffer.add(" " if character.isspace() else character)

    def open_heading(self, token: Any) -> None:
        self.push("heading", shared=True)
        self.frames[-1].buffer.add("\n\n" + _HEADING)

    def close_heading(self, token: Any) -> None:
        self.pop().buffer.add("\n\n")

    def open_comment(self, token: Any) -> None:
        self.push("comment")

    def close_comment(self, token: Any) -> None:
        self.set_loose(self.pop().buffer, "comment")

    # Tags

    def open_tag(self, token: Any) -> None:
        self.push("tag")

    def _tag_name(self) -> str:
        frame = self.pop()
        name = frame.buffer.parts[0] if frame.buffer.parts else ""
        self.set_loose(frame.buffer, "tag")
        return name.strip().casefold()

    def open_tag_content(self, token: Any) -> None:
        name = self._tag_name()
        if name in _SKIPPED_TAGS:
            place = "footnote" if name in ("ref", "references") else "tag"
            self.push("skipped", "gallery" if name == "gallery" else place)
        elif name == "table":
            self.push("table")
        else:
            self.push("content", name, shared=True)

    def self_close_tag(self, token: Any) -> None:
        name = self._tag_name()
        if name in _LIST_TAGS:
            self.frames[-1].buffer.add(_LIST_ITEM)
        elif name in _NEWLINE_TAGS:
            self.frames[-1].buffer.add("\n")

    def close_tag(self, token: Any) -> None:
        frame = self.pop()
        if frame.name == "gallery":
            self.add_gallery("".join(frame.buffer.parts))
        elif frame.kind == "skipped":
            self.set_loose(frame.buffer, frame.name)
        elif frame.kind == "table":
            self.add_aside(frame.buffer)
        elif frame.name in _CELL_TAGS:
            frame.buffer.add("\t")
        elif frame.name in _NEWLINE_TAGS:
            frame.buffer.add("\n")
        self.push("closing tag")

    # The end

    def finish(self) -> LinkedText:
        """Put the parts together and tidy the text, so that the links stay where they are."""
        body = self.buffer
        self.result.first_paragraph = _first_paragraph("".join(body.parts))
        for aside in self.asides:
            body.add("\n\n")
            body.extend(aside)
        raw = "".join(body.parts)
        text, place = _tidy(raw)
        self.result.text = text
        for start, end, target in body.links:
            surface = _one_line(raw[start:end])
            first, last = place(start), place(end)
            while first < last and text[first].isspace():
                first += 1
            while first < last and text[last - 1].isspace():
                last -= 1
            if first < last:
                self.result.links.append(Link(first, last, target, surface))
            else:
                self.result.loose_links.append(LooseLink("no text", target, surface))
        return self.result


def _tidy(raw: str) -> tuple[str, Callable[[int], int]]:
    """Return the text without what markup left behind, and a function from old places to new."""
    parts: list[str] = []
    olds, news = [0], [0]  # from an old place on, text is moved by the same distance
    done = length = 0
    for match in _UNTIDY.finditer(raw):
        start, end = match.span()
        found = match.group()
        newlines = found.count("\n")
        new = "" if not (start and end < len(raw)) else "\n\n" if newlines > 1 else "\n" * newlines
        if not newlines and found.isspace() and start and end < len(raw):
            new = " "
        parts += (raw[done:start], new)
        length += start - done + len(new)
        done = end
        olds += (start, end)
        news += (length - len(new), length)
    parts.append(raw[done:])

    def place(old: int) -> int:
        i = bisect_right(olds, old) - 1
        # Within what was replaced, all places are its beginning or its end.
        return news[i] if i % 2 else news[i] + old - olds[i]

    return "".join(parts), place


def _first_paragraph(raw: str) -> str:
    """Return the first paragraph in front of the first heading, list items passed over."""
    for paragraph in raw.partition(_HEADING)[0].split("\n\n"):
        lines = [line.strip() for line in paragraph.split("\n")]
        prose = [line for line in lines if line and not line.startswith(_LIST_ITEM)]
        text = _tidy(" ".join(prose))[0].strip()
        if any(character.isalpha() for character in text):
            return text
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.replace(_LIST_ITEM, " ").split())


def _apostrophes(match: re.Match[str]) -> str:
    """Return what is left of a run of apostrophes when bold and italics are taken off."""
    length = len(match.group())
    return "'" * (1 if length == 4 else max(0, length - 5))
