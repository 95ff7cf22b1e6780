"""Abbreviations that texts define."""

import pytest

from spacy_xel.mentions.abbreviations import find_definitions, spell_out
from spacy_xel.types import Query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("patients with atrial fibrillation (AF) were", {"AF": "atrial fibrillation"}),
        ("The neuroleptic malignant syndrome (NMS) is", {"NMS": "neuroleptic malignant syndrome"}),
        ("streptozotocin (STZ)-induced", {"STZ": "streptozotocin"}),
        ("subarachnoid hemorrhage [SAH]", {"SAH": "subarachnoid hemorrhage"}),
        ("5-hydroxytryptamine (5-HT)", {"5-HT": "5-hydroxytryptamine"}),
        ("given twice (see Table 2)", {}),
        ("in Paris (1889) and Rome (Italy)", {}),
        ("nothing fits here (XYZ)", {}),
        ("(AF) at the beginning", {}),
        ("AF (AF)", {}),
        ("", {}),
    ],
)
def test_examples(text, expected):
    found = find_definitions(text)
    assert {short: text[slice(*place)] for short, place in found.items()} == expected


def test_queries_move_to_the_definition():
    text = "Atrial fibrillation (AF) is common; AF and MI kill."
    start = text.rindex("AF")
    moved, kept = spell_out([Query(text, start, start + 2), Query(text, 43, 45)])
    assert moved.mention == "Atrial fibrillation"
    assert kept.mention == "MI"


def test_hostile_brackets_stay_fast():
    text = "(" * 20_000 + "A" * 20_000 + "(AB)" * 20_000
    assert isinstance(find_definitions(text), dict)
