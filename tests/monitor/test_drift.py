"""PSI by hand, Kolmogorov-Smirnov against scipy, and how often nothing is called drift."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from costscape.monitor.drift import (
    column_drift,
    columns_drift,
    kolmogorov_smirnov,
    population_stability,
)

AT = {"psi_most": 0.2, "ks_most": 0.1, "level": 0.01}
VALUES = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=40).map(np.array)


def test_psi_is_the_sum_by_hand():
    reference = np.arange(100.0)  # ten in each decile
    recent = np.concatenate([np.full(30, -1.0), np.full(10, 95.0)])  # 30 and 10 in the outer bins
    p = [30.5 / 45, *[0.5 / 45] * 8, 10.5 / 45]
    q = [10.5 / 105] * 10
    psi, bins = population_stability(reference, recent)
    assert bins == 10
    assert psi == pytest.approx(sum((a - b) * log(a / b) for a, b in zip(p, q, strict=True)))


@given(VALUES, VALUES)
@settings(max_examples=40, deadline=None)
def test_psi_is_positive_and_zero_for_the_same_values(old, new):
    psi, _ = population_stability(old, new)
    assert np.isfinite(psi)
    assert psi >= 0
    assert population_stability(old, old)[0] == 0
    # units and origin do not matter
    assert population_stability(2 * old + 1, 2 * new + 1)[0] == pytest.approx(psi)


@given(VALUES, VALUES)
@settings(max_examples=20, deadline=None)
def test_ks_is_that_of_scipy(old, new):
    assert kolmogorov_smirnov(old, new)[0] == pytest.approx(
        ks_2samp(old, new, method="asymp").statistic
    )


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_the_p_value_of_ks_is_that_of_scipy_for_many_rows(shift):
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=2000), rng.normal(shift, size=500)
    expected = ks_2samp(old, new, method="asymp").pvalue
    assert kolmogorov_smirnov(old, new)[1] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("other", [-1.0, 1.0])
def test_a_constant_that_changes_is_drift(other):
    found = column_drift("a", np.zeros(50), np.full(40, other), **AT)
    assert found.is_alert
    assert found.psi > 1
    assert found.ks == 1
    assert not column_drift("a", np.zeros(50), np.zeros(40), **AT).is_alert


def test_a_value_that_repeats_and_falls_below_its_range_is_drift():
    rng = np.random.default_rng(0)
    old = np.where(rng.random(300) < 0.4, 0.0, rng.random(300))
    new = np.where(rng.random(200) < 0.4, -1.0, rng.random(200))
    assert column_drift("a", old, new, **AT).is_alert


def test_what_chance_explains_is_no_alert_and_a_shift_is_one():
    """At most one of a hundred sets of ten columns is an alert; 25 small ones show few."""
    rng = np.random.default_rng(0)
    names, wrong = [str(j) for j in range(10)], 0
    for _ in range(25):
        old, new = rng.normal(size=(200, 10)), rng.normal(size=(50, 10))
        wrong += any(one.is_alert for one in columns_drift(names, old, new, **AT))
    assert wrong <= 2
    new[:, 3] += 1.0
    first, *others = columns_drift(names, old, new, **AT)
    assert (first.name, first.is_alert) == ("3", True)
    assert first.recent_mean - first.reference_mean == pytest.approx(1.0, abs=0.5)
    assert not any(one.is_alert for one in others)


def test_the_noise_of_psi_is_its_quantile_by_simulation():
    rng = np.random.default_rng(1)
    old, level = rng.random(5000), 0.1
    found = [population_stability(old, rng.random(400))[0] for _ in range(300)]
    at = {**AT, "level": level}
    noise = column_drift("a", old, rng.random(400), **at).psi_noise
    assert np.mean(np.array(found) > noise) == pytest.approx(level, abs=0.06)
