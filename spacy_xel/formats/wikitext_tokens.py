"""Wikitext cut into tokens by mwparserfromhell, guarded against texts that would take for ever."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from spacy_xel.errors import Errors, MissingExtra
from spacy_xel.jsonlines import BadLine

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


def tokenize(wikitext: str) -> list[Any]:
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
