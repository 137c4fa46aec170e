"""Networks of Theorem 1, whose output weights are computed: measured errors, slope, and the exact constant."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import sqrt

from rannpde.errors import require
from rannpde.network.laws import HeavyTailed
from rannpde.studies.cell import Unbiased
from rannpde.studies.run.fit import check_measured
from rannpde.studies.target import TheoremTarget
from rannpde.theory import best_estimator, estimator, measured_errors


@dataclass(frozen=True)
class UnbiasedResult:
    """The record of finished measurements of unbiased networks.

    error : for each width the relative L² error of every pool of networks
    slope, halfwidth : slope of log error against log width, with half its 95 % interval (Student's) from the spread of
        pools
    constant : √N times the relative error, exactly: the root of the variance by quadrature
    """

    error: tuple[tuple[float, ...], ...]
    slope: float
    halfwidth: float
    constant: float
    seconds: float

    def __post_init__(self) -> None:
        lists = isinstance(self.error, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in self.error)
        require(lists and len({len(row) for row in self.error}) == 1, "error", self.error, "a row for each width")
        object.__setattr__(self, "error", tuple(map(tuple, self.error)))
        for value in (value for row in self.error for value in row):
            check_measured("error", value)
        for name in ("halfwidth", "constant", "seconds"):
            check_measured(name, getattr(self, name))
        require(isinstance(self.slope, float), "slope", self.slope, "a number")

    @property
    def last_error(self) -> float:
        """The root-mean-square error at the largest width."""
        return sqrt(sum(error**2 for error in self.error[-1]) / len(self.error[-1]))


def run_unbiased(cell: Unbiased) -> UnbiasedResult:
    """Measure unbiased networks of all widths of the cell. Depends on the cell alone."""
    started = time.perf_counter()
    target, decay = cell.target, cell.decay
    assert isinstance(target, TheoremTarget)  # its curve was checked
    law = HeavyTailed(0.5 + decay, 0.5 * target.space_dim + decay)
    choice = estimator(target.function, law, activation=cell.activation)
    if cell.law == "best":
        choice = best_estimator(choice, target.domain)
    measured = measured_errors(choice, target.domain, cell.widths, pools=cell.pools, rng=cell.seed)
    size = choice.size(target.domain)
    return UnbiasedResult(
        error=tuple(tuple(row) for row in (measured.pools.T / size).tolist()),
        slope=measured.slope,
        halfwidth=measured.halfwidth,
        constant=float(choice.variance(target.domain)) ** 0.5 / size,
        seconds=time.perf_counter() - started,
    )
