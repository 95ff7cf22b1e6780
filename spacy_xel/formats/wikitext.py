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
from collections.abc import Callable
from typing import Any

from spacy_xel.formats.linked_text import Link, LinkedText, LooseLink
from spacy_xel.formats.wiki_titles import Site
from spacy_xel.formats.wikitext_buffers import Buffer, Frame
from spacy_xel.formats.wikitext_tidy import (
    HEADING,
    LIST_ITEM,
    first_paragraph,
    one_line,
    tidy,
    without_quotes,
)
from spacy_xel.formats.wikitext_tokens import tokenize
from spacy_xel.jsonlines import BadLine

MAX_DEPTH = 200
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


def parse_wikitext(wikitext: str, site: Site | None = None) -> LinkedText:
    """Return the plain text of an article in wikitext, with its links to other articles.

    site (Site): The names of the wiki's namespaces.
    """
    return _Converter(site or Site()).convert(tokenize(wikitext))


class _Converter:
    """Reads tokens one by one; the frames are the constructs that are open."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.result = LinkedText()
        self.buffer = Buffer()
        self.frames = [Frame("text", self.buffer)]
        self.asides: list[Buffer] = []
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
            text = without_quotes(text)
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
        buffer = around if shared else Buffer()
        self.frames.append(Frame(kind, buffer, name, around.length if shared else 0))

    def pop(self) -> Frame:
        return self.frames.pop()

    def set_loose(self, buffer: Buffer, place: str) -> None:
        """Keep the links of a text that is left out."""
        if buffer.links:
            text = "".join(buffer.parts)
            for start, end, target in buffer.links:
                surface = one_line(text[start:end])
                self.result.loose_links.append(LooseLink(place, target, surface))
        buffer.clear()

    # Templates

    def open_template(self, token: Any) -> None:
        self.push("template")

    def next_argument(self, token: Any) -> None:
        frame = self.frames[-1]
        frame.arguments.append(frame.buffer)
        frame.buffer = Buffer()

    def name_argument(self, token: Any) -> None:
        self.set_loose(self.frames[-1].buffer, "template")

    def close_template(self, token: Any) -> None:
        self.next_argument(token)
        arguments = self.pop().arguments
        name = one_line("".join(arguments[0].parts))
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

    def add_caption(self, arguments: list[Buffer]) -> None:
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
                self.feed(tokenize(caption))
                frame = self.pop()
                self.add_caption([*frame.arguments, frame.buffer])

    def add_aside(self, buffer: Buffer) -> None:
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
        self.frames[-1].buffer.add("\n\n" + HEADING)

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
            self.frames[-1].buffer.add(LIST_ITEM)
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
        self.result.first_paragraph = first_paragraph("".join(body.parts))
        for aside in self.asides:
            body.add("\n\n")
            body.extend(aside)
        raw = "".join(body.parts)
        text, place = tidy(raw)
        self.result.text = text
        for start, end, target in body.links:
            surface = one_line(raw[start:end])
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
