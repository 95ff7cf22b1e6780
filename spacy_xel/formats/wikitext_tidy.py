"""Plain text tidied where markup has gone, so that places in it can still be found."""

import re
from bisect import bisect_right
from collections.abc import Callable

LIST_ITEM = "\x01"  # XML and JSON dumps cannot have these characters in a text
HEADING = "\x02"
_QUOTES = re.compile(r"'{2,}")
# What is tidied when markup has gone: blank lines, spaces, and brackets that became empty.
_UNTIDY = re.compile(
    r"\s*\n\s*\n\s*|[ \t\x01\x02]*\n[ \t\x01\x02]*|[ \t]{2,}"
    r"|[ \t]*\([\s;,:/–-]*\)|[\x01\x02]+[ \t]*"
)


def tidy(raw: str) -> tuple[str, Callable[[int], int]]:
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


def first_paragraph(raw: str) -> str:
    """Return the first paragraph in front of the first heading, list items passed over."""
    for paragraph in raw.partition(HEADING)[0].split("\n\n"):
        lines = [line.strip() for line in paragraph.split("\n")]
        prose = [line for line in lines if line and not line.startswith(LIST_ITEM)]
        text = tidy(" ".join(prose))[0].strip()
        if any(character.isalpha() for character in text):
            return text
    return ""


def one_line(text: str) -> str:
    return " ".join(text.replace(LIST_ITEM, " ").split())


def without_quotes(text: str) -> str:
    """Return text without the runs of apostrophes that make it bold or italic."""
    return _QUOTES.sub(_apostrophes, text)


def _apostrophes(match: re.Match[str]) -> str:
    """Return what is left of a run of apostrophes when bold and italics are taken off."""
    length = len(match.group())
    return "'" * (1 if length == 4 else max(0, length - 5))
