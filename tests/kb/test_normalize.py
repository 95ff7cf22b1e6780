"""Names in normal form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_xel.kb.normalize import normalize_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Paris", "paris"),
        ("  New \t York\n City ", "new york city"),
        ("O\u2019Brien", "o'brien"),
        ("Jean\u2010Luc", "jean-luc"),
        ("2010\u20132012", "2010-2012"),
        ("ﬁle", "file"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        ("\u00a0Ångström\u3000unit", "ångström unit"),
        ("soft\u00adhyphen", "softhyphen"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("", ""),
        ("\u200b ", ""),
    ],
)
def test_examples(name, expected):
    assert normalize_name(name) == expected


def test_case_can_be_kept():
    assert normalize_name("O\u2019Brien  & Söhne", fold_case=False) == "O'Brien & Söhne"


def test_turkish_pairs_dotless_i():
    assert normalize_name("ISPARTA", lang="tr") == "ısparta"
    assert normalize_name("İzmir", lang="tr") == "izmir"
    assert normalize_name("ISPARTA") == "isparta"


@given(st.text(), st.booleans(), st.sampled_from(["", "tr"]))
def test_twice_is_once(text, fold_case, lang):
    once = normalize_name(text, fold_case=fold_case, lang=lang)
    assert normalize_name(once, fold_case=fold_case, lang=lang) == once


@given(st.text())
def test_case_is_folded(text):
    assert normalize_name(text.lower()) == normalize_name(text.lower().casefold())
