"""Scripts without spaces between words, whose names need a tokenizer of their language."""

import re
from collections import Counter
from collections.abc import Mapping

_SCRIPTS = {  # the language to suggest -> its script; Japanese has Chinese characters too
    "ja": re.compile("[\u3041-\u30ff]"),
    "zh": re.compile("[\u3400-\u9fff]"),
    "th": re.compile("[\u0e01-\u0e5b]"),
}
_COVERED = {"ja": {"ja", "zh"}, "zh": {"zh"}, "th": {"th"}}
_WORTH_SAYING = 0.05  # of the names


def count_unspaced(name: str, counts: Counter[str]) -> None:
    """Count a name under the language to suggest for it, if its script has no spaces."""
    for lang, script in _SCRIPTS.items():
        if script.search(name):
            counts[lang] += 1
            return


def unfit_language(lang: str, shares: Mapping[str, float]) -> tuple[str, float] | None:
    """Return a language to choose instead, and the share of names that need it; None if it fits.

    shares (dict): Of the names, by the language to suggest for them.
    """
    needed = {
        other: share for other, share in shares.items() if other not in _COVERED.get(lang, ())
    }
    if sum(needed.values()) < _WORTH_SAYING:
        return None
    has_kana = needed.get("ja", 0.0) >= _WORTH_SAYING
    best = "ja" if has_kana else max(needed, key=lambda other: needed[other])
    return best, sum(needed.values())
