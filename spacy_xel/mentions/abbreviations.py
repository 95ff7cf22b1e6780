"""Abbreviations that a text defines itself: "atrial fibrillation (AF)".

The algorithm of Schwartz and Hearst (2003): the letters of what stands in brackets are looked for,
from the last to the first, in the words before the bracket; its first must begin a word.
"""

import re
from collections.abc import Sequence

from spacy_xel.types import Query

_BRACKETS = re.compile(r"[(\[]([^()\[\]]{2,12})[)\]]")
_WORD_START = re.compile(r"\S+")


def find_definitions(text: str) -> dict[str, tuple[int, int]]:
    """Return the abbreviations that a text defines, with the offsets of what they stand for."""
    found: dict[str, tuple[int, int]] = {}
    for match in _BRACKETS.finditer(text):
        short = match[1].strip()
        if not _may_be_abbreviation(short):
            continue
        end = len(text[: match.start()].rstrip())
        start = _long_form_start(short, text, end)
        if start is not None:
            found.setdefault(short, (start, end))
    return found


def spell_out(queries: Sequence[Query]) -> list[Query]:
    """Return queries whose mention is an abbreviation moved to where the text defines it."""
    definitions: dict[str, dict[str, tuple[int, int]]] = {}
    result = []
    for query in queries:
        if query.text not in definitions:
            definitions[query.text] = find_definitions(query.text)
        place = definitions[query.text].get(query.mention)
        result.append(query if place is None else Query(query.text, *place))
    return result


def _may_be_abbreviation(short: str) -> bool:
    has_capital = any(character.isupper() for character in short)
    return 2 <= len(short) <= 10 and short[0].isalnum() and has_capital and " " not in short


def _long_form_start(short: str, text: str, end: int) -> int | None:
    """Return where what an abbreviation stands for begins, or None if the letters do not fit."""
    most_words = min(len(short) + 5, 2 * len(short))
    window = text[max(0, end - 30 * most_words) : end]
    offset = end - len(window)
    words = [match.start() for match in _WORD_START.finditer(window)]
    earliest = words[-most_words] if len(words) >= most_words else 0
    letters = [character.lower() for character in short if character.isalnum()]
    place = len(window)
    for number, letter in enumerate(reversed(letters)):
        is_first = number == len(letters) - 1
        place -= 1
        while place >= earliest and not (
            window[place].lower() == letter
            and (not is_first or place == 0 or not window[place - 1].isalnum())
        ):
            place -= 1
        if place < earliest:
            return None
    long_form = window[place:]
    if len(long_form) <= len(short) or short in long_form.split():
        return None
    return offset + place
