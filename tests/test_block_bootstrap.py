"""Seeds and rows: the standard error of both together against closed forms."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import ttest_1samp

from costscape.block_bootstrap import (
    at_least_two,
    block_length,
    difference_over_seeds,
    resampled,
    seeds_and_rows,
    standard_error,
)


def autoregressive(shape, phi, rng):
    e = rng.normal(size=shape)
    e[..., 0] /= (1 - phi**2) ** 0.5
    return lfilter([1.0], [1.0, -phi], e)


def series(rng, s, n, phi, shared, sd_seeds=0.0, sd_rows=1.0, sd_noise=0.0):
    """m = 0, seed effects, row effects (one series, or one for each seed), noise of each."""
    rows = autoregressive((n,) if shared else (s, n), phi, rng)
    noise = autoregressive((s, n), phi, rng)
    return sd_seeds * rng.normal(size=(s, 1)) + sd_rows * rows + sd_noise * noise


def expected(found):
    """The root of the mean of the estimated variances."""
    return np.mean([one.seeds + one.rows for one in found]) ** 0.5


@pytest.mark.parametrize("block", [1, 4, 7])
def test_the_standard_error_is_the_spread_of_resampled_means(block):
    d = np.random.default_rng(0).normal(size=40).cumsum()
    assert standard_error(d, block) == pytest.approx(resampled(d, block).std(), rel=0.05)


@pytest.mark.parametrize(
    ("block", "rows", "length"), [(2, 2, 1), (2, 3, 1), (1, 1, 1), (7, 64, 7)]
)
def test_a_block_is_at_most_half_of_the_rows(block, rows, length):
    assert at_least_two(block, rows) == length


@pytest.mark.parametrize(("sd_seeds", "sd_rows"), [(0.3, 2.0), (0.0, 2.0), (0.3, 0.0)])
def test_independent_rows_shared_by_all_seeds_have_the_analytic_error(sd_seeds, sd_rows):
    rng, s, n = np.random.default_rng(0), 10, 400
    found = [
        seeds_and_rows(series(rng, s, n, 0.0, True, sd_seeds, sd_rows), 1, True)
        for _ in range(150)
    ]
    analytic = (sd_rows**2 / n + sd_seeds**2 / s) ** 0.5
    assert expected(found) == pytest.approx(analytic, rel=0.07)


@pytest.mark.parametrize("sd_seeds", [0.3, 0.0])
def test_independent_rows_of_each_seed_average_out_over_seeds(sd_seeds):
    rng, s, n = np.random.default_rng(0), 10, 400
    found = [
        seeds_and_rows(series(rng, s, n, 0.0, False, sd_seeds, 2.0), 1, False) for _ in range(150)
    ]
    analytic = ((sd_seeds**2 + 2.0**2 / n) / s) ** 0.5
    # where seeds do not differ, an estimate that cannot be negative is a little too large
    assert expected(found) == pytest.approx(analytic, rel=0.07 if sd_seeds else 0.12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("phi", [0.3, 0.6])
def test_rows_that_follow_their_neighbours_raise_it_by_the_known_factor(phi, shared):
    d = series(np.random.default_rng(1), 4, 20_000, phi, shared)
    d = d - d.mean(1, keepdims=True)  # no seed effect at all
    found = seeds_and_rows(d, block_length(20_000), shared)
    independent = d.std() / (20_000 if shared else 4 * 20_000) ** 0.5
    assert found.seeds == 0
    factor = ((1 + phi) / (1 - phi)) ** 0.5
    assert found.rows**0.5 / independent == pytest.approx(factor, rel=0.1)


def test_noise_of_each_seed_is_not_counted_as_a_seed_effect():
    rng = np.random.default_rng(2)
    found = [
        seeds_and_rows(series(rng, 5, 400, 0.0, True, 0.0, 0.0, 1.0), 1, True) for _ in range(150)
    ]
    assert np.mean([one.means for one in found]) == pytest.approx(1 / 2000, rel=0.1)
    assert np.mean([one.rows for one in found]) == pytest.approx(1 / 2000, rel=0.1)
    assert np.mean([one.seeds for one in found]) < 0.35 / 2000


def test_without_row_noise_the_interval_is_student_s_over_seeds():
    means = np.array([0.3, 0.5, -0.1, 0.4])
    for shared in (True, False):
        found = difference_over_seeds(np.tile(means[:, None], 50), 4, shared)
        student = ttest_1samp(means, 0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((student.low, student.high))
        assert found.mean == pytest.approx(means.mean())


def test_equal_methods_have_an_interval_without_width():
    found = difference_over_seeds(np.zeros((3, 20)), 3, True)
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert not found.clear


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seeds", [3, 10])
@pytest.mark.parametrize("sd_seeds", [0.0, 0.2])
def test_intervals_hold_the_truth_about_as_often_as_they_say(shared, seeds, sd_seeds):
    rng = np.random.default_rng(0)
    held = [
        not difference_over_seeds(
            series(rng, seeds, 300, 0.4, shared, sd_seeds, 1.0, 0.5), 7, shared
        ).clear
        for _ in range(200)
    ]
    assert 0.89 <= np.mean(held) <= 0.995


def test_student_over_seeds_alone_is_far_too_sure_where_rows_are_shared():
    rng = np.random.default_rng(0)
    drawn = [series(rng, 10, 300, 0.4, True, 0.0, 1.0, 0.5) for _ in range(200)]
    assert np.mean([ttest_1samp(d.mean(1), 0).pvalue > 0.05 for d in drawn]) < 0.5
