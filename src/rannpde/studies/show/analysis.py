"""From records to statements: curves with their spread, slopes with confidence intervals, where a straight line begins.

How the interval is made. With y_i the mean over seeds of log error at width N_i, the slope is the least-squares line
of y against log N. Its 95 % interval is Student's with K - 2 degrees of freedom from the scatter of the K means about
the line. That scatter holds both the spread of the seeds and the curve's departure from a straight line, so the
interval answers "which slope would other widths and seeds give", and widens where there is no single slope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from rannpde.arrays import Array
from rannpde.pde.tolerance import CONFIDENCE
from rannpde.rounding import ROUNDED
from rannpde.studies.cell import Fit, MeasurementCell, StudyCell
from rannpde.studies.curves import StudyCurve
from rannpde.studies.run.cell import Result
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.measured import MeasuredResult
from rannpde.studies.run.records import Record
from rannpde.studies.run.unbiased import UnbiasedResult
from rannpde.studies.study import Study

Ratio = tuple[float, float, float]
"""Geometric mean, least and largest over the seeds."""

LINE_TEST_LEVEL = 0.01
"""The level at which the lack-of-fit F test rejects a straight line."""
FEWEST_WIDTHS = 3
"""A line through two points has no scatter from which an interval could come."""
FEWEST_FOR_A_RATE = 5
"""Fewest widths of a fit's asymptotic part for which a rate is stated: two octaves in steps of √2."""
CRUDE = 0.5
"""A relative error above this says that the function is not resolved (the zero function has 1): no regime of any
rate."""
SMALLEST_ERROR = float(np.finfo(float).tiny)
"""What replaces an error of exactly 0, which has no logarithm."""


@dataclass(frozen=True)
class Slope:
    """log error ≈ log constant + value · log N on widths from ``first`` to ``last``; low, high: 95 % interval."""

    value: float
    low: float
    high: float
    constant: float
    first: int
    last: int

    def contains(self, value: float) -> bool:
        """Whether the interval covers that slope, up to rounding: without scatter it has no width."""
        return self.low - ROUNDED <= value <= self.high + ROUNDED


@dataclass(frozen=True)
class Series:
    """The finished cells of one curve."""

    curve: StudyCurve
    cells: tuple[StudyCell, ...]
    results: Mapping[str, Result]
    """By the key of the cell; cells that failed are missing."""

    @property
    def label(self) -> str:
        return self.curve.label

    @property
    def space_dim(self) -> int:
        return self.cells[0].target.space_dim

    @property
    def first_fit(self) -> Fit:
        """The first cell of a curve of fits, for the parameters that its cells share."""
        return next(cell for cell in self.cells if isinstance(cell, Fit))

    @cached_property
    def widths(self) -> Array:
        """(K,): widths with at least one finished cell, increasing."""
        return np.array(sorted({n for cell in self.cells if cell.key in self.results for n in cell.widths}), dtype=int)

    def values(self, quantity: str = "error") -> list[Array]:
        """For each width the quantity of every finished seed, or of every pool of unbiased networks."""
        by_width: dict[int, list[float]] = {int(n): [] for n in self.widths}
        for cell in self.cells:
            if cell.key in self.results:
                result = self.results[cell.key]
                if isinstance(result, MeasuredResult):
                    rows = [np.asarray(row) for row in result.quantities[quantity]]
                else:
                    rows = list(np.atleast_2d(getattr(result, quantity)))
                for width, row in zip(cell.widths, rows, strict=True):
                    by_width[width] += row.tolist()
        least = SMALLEST_ERROR if quantity == "error" else -np.inf
        return [np.maximum(row, least) for row in by_width.values()]

    def fits_at(self, width: int) -> dict[int, FitResult]:
        """The finished fits of that width by seed."""
        pairs = [(cell, self.results.get(cell.key)) for cell in self.cells if width in cell.widths]
        return {cell.seed: result for cell, result in pairs if isinstance(result, FitResult)}

    def mean(self, quantity: str = "error") -> Array:
        """(K,) means over the seeds."""
        return np.array([v.mean() for v in self.values(quantity)])

    def deviation(self, quantity: str = "error") -> Array:
        """(K,) standard deviations over the seeds, 0 for a single one."""
        return np.array([v.std(ddof=1) if len(v) > 1 else 0.0 for v in self.values(quantity)])

    def least(self, quantity: str) -> Array:
        """(K,) least values over the seeds: for run times, where everything else on the machine only adds."""
        return np.array([v.min() for v in self.values(quantity)])

    def quantiles(self, share: float, quantity: str = "error") -> Array:
        """(K,) quantiles over the realisations: the least value that a share of them does not exceed."""
        return np.array([np.quantile(v, share, method="inverted_cdf") for v in self.values(quantity)])

    @property
    def unbiased(self) -> UnbiasedResult | None:
        """The measurements of an unbiased curve, which is a single cell; None for a curve of fits."""
        return next((result for result in self.results.values() if isinstance(result, UnbiasedResult)), None)

    @cached_property
    def slope(self) -> Slope | None:
        """Over all widths; None with fewer than three."""
        result = self.unbiased
        if result is None:
            return fit_slope(self.widths, self.values())
        # its widths share their neurons, so that the scatter about a line says little; that of the pools does
        low, high = result.slope - result.halfwidth, result.slope + result.halfwidth
        return Slope(result.slope, low, high, result.constant, int(self.widths[0]), int(self.widths[-1]))

    @cached_property
    def straight_slope(self) -> Slope | None:
        """Over the longest run of the largest widths on which a straight line is not rejected."""
        return straight_tail(self.widths, self.values()) if self.unbiased is None else self.slope

    @property
    def relative(self) -> bool:
        """Whether errors are shares of the function's size, so that 1 is the error of the zero function."""
        return not any(isinstance(cell, MeasurementCell) and not cell.relative for cell in self.cells)

    @cached_property
    def resolved(self) -> Array:
        """(K,) bool: widths from which on every mean error is at most CRUDE; all where errors are not relative."""
        if not self.relative:
            return np.ones(len(self.widths), dtype=bool)
        crude = np.flatnonzero(self.mean() > CRUDE)
        return np.arange(len(self.widths)) > (crude[-1] if len(crude) else -1)

    @cached_property
    def asymptotic_slope(self) -> Slope | None:
        """The straight tail over widths that resolve the function; None with fewer than five of them.

        Unbiased networks have their rate at every width.
        """
        if self.unbiased is not None:
            return self.slope
        values = [v for v, good in zip(self.values(), self.resolved, strict=True) if good]
        return straight_tail(self.widths[self.resolved], values, FEWEST_FOR_A_RATE)

    @property
    def constant(self) -> float:
        """C of the curve C/√N that fits best in the logarithm."""
        logs = [np.log(v).mean() + 0.5 * np.log(n) for n, v in zip(self.widths, self.values(), strict=True)]
        return float(np.exp(np.mean(logs)))


def collect(study: Study, records: Mapping[str, Record]) -> list[Series]:
    """The curves of a study that have at least one finished cell."""
    series = []
    for curve in study.curves:
        cells = study.cells_of(curve)
        results = {cell.key: records[cell.key].result for cell in cells if cell.key in records}
        if results:
            series.append(Series(curve, cells, results))
    return series


def fit_slope(widths: Sequence[int] | Array, errors: Sequence[Array]) -> Slope | None:
    """The slope and its interval, from the errors of all seeds at each width (see the head of this module)."""
    if len(widths) < FEWEST_WIDTHS:
        return None
    x, y = np.log(np.asarray(widths, dtype=float)), np.array([np.log(e).mean() for e in errors])
    line = stats.linregress(x, y)
    # the coverage of these intervals is tested on synthetic curves
    reach = float(stats.t.ppf(0.5 + 0.5 * CONFIDENCE, len(x) - 2) * line.stderr)
    value = float(line.slope)
    return Slope(value, value - reach, value + reach, float(np.exp(line.intercept)), int(widths[0]), int(widths[-1]))


def straight_tail(widths: Sequence[int] | Array, errors: Sequence[Array], fewest: int = FEWEST_WIDTHS) -> Slope | None:
    """The slope from the smallest width on after which no departure from a straight line can be seen."""
    for start in range(len(widths) - fewest + 1):
        if line_test(widths[start:], errors[start:]) >= LINE_TEST_LEVEL:
            return fit_slope(widths[start:], errors[start:])
    return None


def line_test(widths: Sequence[int] | Array, errors: Sequence[Array]) -> float:
    """p-value of the lack-of-fit F test: departure of the means from the line against the spread of the seeds."""
    x, logs = np.log(np.asarray(widths, dtype=float)), [np.log(e) for e in errors]
    counts, means = np.array([len(v) for v in logs]), np.array([v.mean() for v in logs])
    slope, intercept = np.polyfit(x, means, 1, w=np.sqrt(counts))
    departure = float((counts * np.square(means - intercept - slope * x)).sum())
    spread = float(sum(np.square(v - v.mean()).sum() for v in logs))
    above, below = len(x) - 2, int(counts.sum()) - len(x)
    if above == 0 or below == 0 or spread == 0.0:
        return 1.0 if departure <= spread else 0.0
    return float(stats.f.sf(departure / above / (spread / below), above, below))


def paired_ratio(changed: Series, base: Series) -> Ratio | None:
    """error(changed)/error(base), seed by seed, each at its largest width; None where no seed has both."""
    above, below = (curve.fits_at(curve.widths[-1]) for curve in (changed, base))
    ratios = [above[seed].error / below[seed].error for seed in above if seed in below]
    return (float(np.exp(np.mean(np.log(ratios)))), min(ratios), max(ratios)) if ratios else None
