"""What a quickstart expects, against what runs of the benchmark took."""

import json

import pytest

from spacy_xel.quickstart.estimate import estimate
from tests.conftest import ROOT

RESULT = ROOT / "benchmarks" / "results" / "quickstart.json"
_MB = 1 << 20


@pytest.mark.parametrize(
    "name", ["places_1000", "places_50000", "wiki_with_corpus", "foldoc_with_corpus"]
)
def test_within_a_factor_of_two(name):
    run = json.loads(RESULT.read_text())["result"][name]
    real = run["real"]
    expected = estimate(run["recipe"], run["instances"], 0, run["characters"])
    for guessed, took in (
        (expected.memory / _MB, real["peak_mb"]),
        (expected.disk / _MB, real["disk_mb"]),
        (expected.seconds, real["seconds"]),
    ):
        assert 1 / 2 < guessed / took < 2
