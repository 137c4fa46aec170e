"""Slopes with intervals, tests of straightness, ratios: on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.studies.curves import FittedCurve, UnbiasedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.records import Record
from rannpde.studies.run.unbiased import UnbiasedResult
from rannpde.studies.show.analysis import Series, collect, fit_slope, line_test, paired_ratio, straight_tail
from rannpde.studies.show.report import reading
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium, SmoothBump

WIDTHS = np.array([16, 32, 64, 128, 256, 512])


def noisy(curve: np.ndarray, rng: np.random.Generator, seeds: int = 5, spread: float = 0.1) -> list[np.ndarray]:
    return [value * np.exp(spread * rng.standard_normal(seeds)) for value in curve]


def result(error: float, seconds: float = 1.0) -> FitResult:
    return FitResult(error, {"u": error}, error, 1e-5, 1.0, "dense", 100, 10, seconds, seconds)


def test_an_exact_power_law_has_its_slope_and_no_interval() -> None:
    slope = fit_slope(WIDTHS, [np.full(3, 2.0 * n**-0.5) for n in WIDTHS])
    assert slope is not None
    assert slope.value == pytest.approx(-0.5, abs=1e-12)
    assert slope.constant == pytest.approx(2.0, rel=1e-12)
    assert slope.high - slope.low < 1e-10
    assert (slope.first, slope.last) == (16, 512)


def test_the_interval_covers_the_true_slope_in_95_of_100_cases() -> None:
    """2,000 draws: the share covered is within 4.5 standard errors (0.022) of 0.95, false alarm below 1e-5."""
    rng = np.random.default_rng(0)
    covered = [fit_slope(WIDTHS, noisy(WIDTHS**-0.5, rng)).contains(-0.5) for _ in range(2000)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.022)


def test_a_bend_widens_the_interval() -> None:
    rng = np.random.default_rng(1)
    bent = np.maximum(WIDTHS**-1.0, 128.0**-1)
    wide, narrow = fit_slope(WIDTHS, noisy(bent, rng)), fit_slope(WIDTHS, noisy(WIDTHS**-0.5, rng))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_fewer_than_three_widths_have_no_slope() -> None:
    assert fit_slope(WIDTHS[:2], [np.ones(3), np.ones(3)]) is None
    assert straight_tail(WIDTHS[:2], [np.ones(3), np.ones(3)]) is None


def test_the_line_test_rejects_a_line_at_its_level_and_sees_a_bend() -> None:
    """p-values of straight curves are uniform: the share below 0.05 of 1,000 is 0.05 ± 4.5 · 0.0069."""
    rng = np.random.default_rng(2)
    p = np.array([line_test(WIDTHS, noisy(WIDTHS**-0.7, rng)) for _ in range(1000)])
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.031)
    assert line_test(WIDTHS, noisy(np.maximum(WIDTHS**-1.0, 1 / 64), rng, spread=0.02)) < 1e-6


def test_the_straight_tail_begins_after_the_bend() -> None:
    rng = np.random.default_rng(3)
    curve = np.where(WIDTHS < 64, 1.0, (WIDTHS / 64.0) ** -0.5)
    tail = straight_tail(WIDTHS, noisy(curve, rng, spread=0.01))
    assert tail is not None
    assert tail.first in (32, 64)  # from 32 the bend of the first step may hide in the spread
    assert tail.value == pytest.approx(-0.5, abs=0.1)
    assert straight_tail(WIDTHS, noisy(np.exp(-((np.log(WIDTHS)) ** 2)), rng, spread=1e-4)) is None


def study(seeds: tuple[int, ...] = (0, 1, 2)) -> Study:
    curves = (FittedCurve("a"), FittedCurve("b", penalty=1e-9))
    return Study("s", PorousMedium(1), Layer(), widths=(8, 16, 32), seeds=seeds, curves=curves)


def collected(missing: set[tuple[str, int, int]] = frozenset()) -> list[Series]:
    one = study()
    records = {
        cell.key: Record(
            result((1.0 if cell.curve == "a" else 0.5) * cell.width**-0.5 * (1 + 0.01 * cell.seed)), {}, ""
        )
        for cell in one.cells
        if (cell.curve, cell.width, cell.seed) not in missing
    }
    return collect(one, records)


def test_series_hold_means_spreads_and_the_reference_curve() -> None:
    a, _ = collected()
    assert a.widths.tolist() == [8, 16, 32]
    assert a.mean() == pytest.approx(1.01 * a.widths**-0.5)
    assert a.deviation() == pytest.approx(0.01 * a.widths**-0.5)
    assert a.constant == pytest.approx(1.01, rel=1e-3)
    assert a.slope.value == pytest.approx(-0.5)


def test_missing_cells_leave_the_others() -> None:
    a, b = collected({("a", 32, 0), ("a", 32, 1), ("a", 32, 2), ("b", 8, 1)})
    assert a.widths.tolist() == [8, 16]
    assert a.slope is None
    assert [len(v) for v in b.values()] == [2, 3, 3]
    assert collect(study(), {}) == []


def test_an_unbiased_curve_has_the_slope_and_interval_of_its_pools() -> None:
    """Its widths share their neurons: the scatter about a line would promise far too much."""
    curve = UnbiasedCurve("unbiased", SmoothBump(1))
    one = Study("s", SmoothBump(1), Layer(), widths=(8, 16, 32), curves=(curve,))
    error = tuple((n**-0.5, 1.1 * n**-0.5) for n in one.widths)
    (series,) = collect(one, {one.cells[0].key: Record(UnbiasedResult(error, -0.51, 0.02, 1.0, 0.1), {}, "")})
    assert series.widths.tolist() == [8, 16, 32]
    assert series.mean() == pytest.approx(1.05 * series.widths**-0.5)
    assert (series.slope.value, series.slope.low, series.slope.high) == pytest.approx((-0.51, -0.53, -0.49))
    assert series.straight_slope == series.slope
    assert reading(series) == "covers -1/2"


def test_an_error_of_zero_has_a_logarithm() -> None:
    one = study(seeds=(0,))
    series, _ = collect(one, {cell.key: Record(result(0.0), {}, "") for cell in one.cells})
    assert series.slope.value == pytest.approx(0.0)
    assert np.isfinite(series.constant)


def test_ratios_are_paired_by_seed_at_the_largest_width() -> None:
    a, b = collected()
    assert paired_ratio(b, a) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    ("rate", "spread", "words"),
    [
        (-0.5, 0.02, "covers -1/2"),
        (-1.2, 0.02, "steeper than -1/2"),
        (-0.25, 0.02, "flatter than -1/2"),
        (0.0, 0.02, "flat: the width does not limit"),
        (-0.5, 3.0, "interval too wide to tell"),
        (-9.0, 3.0, "steeper than -1/2"),
    ],
)
def test_slopes_are_read_in_words(rate: float, spread: float, words: str) -> None:
    rng = np.random.default_rng(5)
    one = Study("s", PorousMedium(1), Layer(), widths=tuple(int(n) for n in WIDTHS), seeds=(0, 1, 2))
    noise = {cell.key: spread * rng.standard_normal() for cell in one.cells}
    records = {c.key: Record(result(1e-6 * c.width**rate * np.exp(noise[c.key])), {}, "") for c in one.cells}
    assert reading(collect(one, records)[0]) == words


@pytest.mark.parametrize(
    ("widths", "height", "words"),
    [
        ((16, 32, 64, 128, 256), 1.0, "covers -1/2"),
        ((16, 32, 64, 128), 1.0, "no rate: fewer than 5 widths"),
        ((16, 32, 64, 128, 256), 4.4, "no rate: only 2 widths with errors below 0.5"),
        ((16, 32, 64, 128, 256), 40.0, "no rate: the error is above 0.5 up to the last width"),
        ((16, 32, 64, 128, 256, 512, 1024, 2048), 4.4, "covers -1/2"),
    ],
)
def test_no_rate_is_told_outside_the_asymptotic_regime(widths: tuple[int, ...], height: float, words: str) -> None:
    rng = np.random.default_rng(3)
    one = Study("s", PorousMedium(1), Layer(), widths=widths, seeds=(0, 1, 2))
    records = {
        c.key: Record(result(height * c.width**-0.5 * np.exp(0.01 * rng.standard_normal())), {}, "") for c in one.cells
    }
    series = collect(one, records)[0]
    assert reading(series) == words
    assert (series.asymptotic_slope is None) == words.startswith("no rate")
    if series.asymptotic_slope is not None:
        assert series.mean()[list(series.widths).index(series.asymptotic_slope.first)] <= 0.5


def test_a_curve_that_is_straight_too_late_is_said_to_be() -> None:
    """Slope -2 and then -1/2 over the last four widths: one fewer than a rate needs."""
    widths = (16, 32, 64, 128, 256, 512, 1024)
    one = Study("s", PorousMedium(1), Layer(), widths=widths, seeds=(0, 1, 2))
    heights = {n: 0.01 * max((n / 128) ** -2.0, (n / 128) ** -0.5) for n in widths}
    records = {c.key: Record(result(heights[c.width] * (1 + 0.01 * c.seed)), {}, "") for c in one.cells}
    series = collect(one, records)[0]
    assert series.straight_slope is not None
    assert series.straight_slope.first == 128
    assert series.straight_slope.value == pytest.approx(-0.5)
    assert reading(series) == "no rate: straight over the last 4 widths only"
