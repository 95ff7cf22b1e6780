import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from spacy_xel.calibrate.reliability import calibration_error, plot_reliability, reliability
from spacy_xel.calibrate.threshold import choose_threshold, wilson_bound


def obvious(probabilities, right, target, fewest):
    """Try every threshold."""
    fitting = []
    for value in sorted(set(probabilities)):
        linked = [r for p, r in zip(probabilities, right, strict=True) if p >= value]
        if value > 0 and len(linked) >= fewest and sum(linked) / len(linked) >= target:
            fitting.append(value)
    return min(fitting) if fitting else None


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 0.9]), st.booleans()), max_size=30),
    st.sampled_from([0.5, 0.75, 0.8]),
)
def test_smallest_threshold(mentions, target):
    probabilities = np.array([p for p, _ in mentions], dtype=float)
    right = np.array([r for _, r in mentions], dtype=bool)
    found = choose_threshold(probabilities, right, target)
    expected = obvious(probabilities, right, target, min(len(mentions), round(1 / (1 - target))))
    assert found.reached == (expected is not None)
    if expected is not None:
        assert found.value == expected
        assert found.precision == right[probabilities >= expected].mean()


def test_a_few_right_ones_prove_nothing():
    probabilities = np.linspace(1, 0.01, 100)
    right = np.arange(100) < 10
    assert not choose_threshold(probabilities, right, 0.95).reached
    assert choose_threshold(probabilities, np.arange(100) < 20, 0.95).reached
    assert choose_threshold(probabilities, right, 0.5).linked == 20


def test_unreachable():
    found = choose_threshold(np.array([0.9, 0.5]), np.array([False, False]), 0.9)
    assert (found.reached, found.precision) == (False, 0.0)
    assert choose_threshold(np.zeros(3), np.zeros(3, bool), 0.9) == (1.0, 0.0, 0, False)
    assert not choose_threshold(np.zeros(0), np.zeros(0, bool), 0.9).reached
    with pytest.raises(ValueError, match="target_precision must be between"):
        choose_threshold(np.zeros(3), np.zeros(3, bool), 95)
    with pytest.raises(ValueError, match="confidence must be between"):
        choose_threshold(np.zeros(3), np.zeros(3, bool), 0.9, 1.5)


def test_confidence_asks_for_more():
    rng = np.random.default_rng(0)
    probabilities = rng.random(500)
    right = rng.random(500) < probabilities
    plain = choose_threshold(probabilities, right, 0.8)
    sure = choose_threshold(probabilities, right, 0.8, confidence=0.95)
    assert plain.reached
    assert sure.reached
    assert sure.value > plain.value
    bound = wilson_bound(np.array([90]), np.array([100]), 0.95)
    interval = binomtest(90, 100).proportion_ci(confidence_level=0.9, method="wilson")
    assert bound[0] == pytest.approx(interval.low)


def test_reliability():
    curve = reliability(np.array([0.0, 0.1, 0.95, 1.0]), np.array([0, 1, 1, 1], bool), bins=5)
    assert [(part.mentions, part.accuracy) for part in curve] == [(2, 0.5), (2, 1.0)]
    assert calibration_error(curve) == pytest.approx((0.45 * 2 + 0.025 * 2) / 4)
    assert calibration_error(reliability(np.zeros(0), np.zeros(0, bool))) == 0
    assert len(reliability(np.array([np.nan, 7.0]), np.zeros(2, bool))) == 2


def test_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    curve = reliability(np.linspace(0, 1, 50), np.linspace(0, 1, 50) > 0.5)
    for name in ("a", "b"):
        plot_reliability({"raw": curve}, tmp_path / f"{name}.svg", "a title")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<svg" in (tmp_path / "a.svg").read_text()
