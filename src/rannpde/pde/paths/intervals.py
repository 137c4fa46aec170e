"""Intervals of values whose estimate has a standard error and a bias of known size.

An estimate that is normal with standard error e and a bias of at most B is within h of the value with probability c for

    P(|N(B, e²)| ≤ h) = c ,

whatever the bias is up to B. It is the usual quantile times e for B = 0, and B + e Φ⁻¹(c) for B ≫ e: less than the sum
of both, as a bias has one sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from rannpde.arrays import Array
from rannpde.pde.monitor import Status
from rannpde.pde.tolerance import CONFIDENCE


def half_width(bias: float, error: float, confidence: float) -> float:
    """h for a bias of at most ``bias`` and a standard error.

    >>> round(half_width(0.0, 1.0, 0.95), 2), round(half_width(1.0, 1.0, 0.95), 2), half_width(2.0, 0.0, 0.95)
    (1.96, 2.65, 2.0)
    """
    if not (isfinite(bias) and isfinite(error)):
        return inf
    if error == 0:
        return bias
    ratio = bias / error
    one_sided, two_sided = float(ndtri(confidence)), float(ndtri(0.5 + 0.5 * confidence))

    def excess(beyond: float) -> float:
        """The probability less c at h = B + beyond·e: not positive for the one-sided quantile, not negative for the
        two-sided one, up to rounding.
        """
        return float(ndtr(beyond) - ndtr(-beyond - 2 * ratio)) - confidence

    low, high = excess(one_sided), excess(two_sided)
    if low >= 0 or high <= 0 or low == high:  # the other side is below rounding; or there is no bias
        return bias + error * (one_sided if abs(low) < abs(high) else two_sided)
    return bias + error * float(brentq(excess, one_sided, two_sided, xtol=1e-12))


def allowed_error(bias: float, wanted: float, confidence: float) -> float:
    """The standard error with which an interval has the half-width ``wanted``; 0 where the bias alone is as large.

    >>> round(half_width(0.3, allowed_error(0.3, 1.0, 0.95), 0.95), 6)
    1.0
    """
    if not bias < wanted:
        return 0.0
    upper = wanted / float(ndtri(0.5 + 0.5 * confidence))
    return float(brentq(lambda error: half_width(bias, error, confidence) - wanted, 1e-9 * upper, upper * (1 + 1e-9)))


@dataclass(frozen=True)
class PathsIteration:
    """One iteration: resolution, the value, and the three errors; ``sampling`` is the half-width that they alone
    would have at the confidence asked for, the other two are bounds of a bias.
    """

    steps: int
    width: int
    training: int
    paths: int
    value: float
    in_time: float
    regression: float
    sampling: float
    seconds: float
    confidence: float = CONFIDENCE

    @property
    def bias(self) -> float:
        return self.in_time + self.regression

    @property
    def standard_error(self) -> float:
        return self.sampling / float(ndtri(0.5 + 0.5 * self.confidence))

    @property
    def half_width(self) -> float:
        return half_width(self.bias, self.standard_error, self.confidence)

    def __str__(self) -> str:
        errors = f"time {self.in_time:.1e}, regression {self.regression:.1e}, sampling {self.sampling:.1e}"
        size = f"{self.steps} steps, {self.width} neurons on {self.training} paths, {self.paths} fresh paths"
        return f"{size}: {self.value:.8g} ± {self.half_width:.1e} ({errors})"


@dataclass(frozen=True)
class PointValue:
    """The result at one point: value, gradient and bounds.

    value ± half_width at the confidence asked for; scale : what tol is relative to; gradient, gradient_error (d,)
    bounds : the lower and upper bound of optimal stopping
    """

    value: float
    standard_error: float
    half_width: float
    scale: float
    gradient: Array
    gradient_error: Array
    iterations: tuple[PathsIteration, ...]
    status: Status
    detail: str
    bounds: tuple[float, float] | None = None

    @property
    def estimate(self) -> float:
        return self.half_width / self.scale if self.scale > 0 else inf
