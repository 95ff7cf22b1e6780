"""The one definition of when two names are the same name."""

import unicodedata

APOSTROPHES = "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u0060\uff07"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
INVISIBLE = "\u00ad\u200b\u2060\ufeff"  # soft hyphen, zero-width space, word joiner, BOM

TURKIC_LANGUAGES = frozenset({"tr", "az"})


def normalize_name(text: str, *, fold_case: bool = True, lang: str = "") -> str:
    """Return the form of a name under which it is stored and looked up.

    Unicode NFKC, typographic apostrophes and dashes made plain, invisible characters removed,
    runs of white space made one space, and, unless told otherwise, case folded. Applying it
    twice changes nothing.

    text (str): The name as it is written.
    fold_case (bool): Fold upper and lower case together.
    lang (str): Language code; "tr" and "az" pair I with dotless i.
    RETURNS (str): The normal form.
    """
    if text.isascii() and "`" not in text and lang not in TURKIC_LANGUAGES:
        return " ".join((text.lower() if fold_case else text).split())
    # Twice, because folding undoes the normal form of a few characters, and the other way round.
    for _ in range(2):
        text = _fold(unicodedata.normalize("NFKC", _replace_lookalikes(text)), fold_case, lang)
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _replace_lookalikes(text: str) -> str:
    for character in APOSTROPHES:
        text = text.replace(character, "'")
    for character in DASHES:
        text = text.replace(character, "-")
    return text


def _fold(text: str, fold_case: bool, lang: str) -> str:
    text = _replace_lookalikes(text)
    for character in INVISIBLE:
        text = text.replace(character, "")
    if not fold_case:
        return text
    if lang in TURKIC_LANGUAGES:
        text = text.replace("I\u0307", "i").replace("\u0130", "i").replace("I", "\u0131")
    return text.casefold()
