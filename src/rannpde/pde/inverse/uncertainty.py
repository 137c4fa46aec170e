"""Intervals beyond the covariance: profile likelihood where the model is non-linear, and the parametric bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.errors import InputError, choose, positive_integer, require
from rannpde.pde.inverse.regression import Regression, RegressionResult, replace_values
from rannpde.pde.tolerance import CONFIDENCE, MUCH_SMALLER, NONLINEAR_SHARE, PILOT_TOLERANCE, SAME_SOLUTION
from rannpde.rounding import ROOT_ROUNDED

LINEAR_BELOW = NONLINEAR_SHARE**2
"""Relative standard deviation below which a model counts as linear within the interval: its second derivative would
have to be 1/NONLINEAR_SHARE of the first to matter."""
PROFILE_REACH = 1 / MUCH_SMALLER
"""Half widths of the linear interval up to which a profile is followed: a longer one says that nothing is known."""
UNCERTAINTIES = ("covariance", "profile", "bootstrap")


@dataclass(frozen=True)
class Uncertainty:
    """How intervals are computed.

    kind : "covariance" (with "profile" for numbers whose model is non-linear within their interval), "profile" for all
        numbers, "bootstrap" for all
    confidence : probability that an interval contains the true value; draws : realisations of the bootstrap
    """

    kind: str = "covariance"
    confidence: float = CONFIDENCE
    draws: int = 100

    def __post_init__(self) -> None:
        choose("uncertainty", self.kind, dict.fromkeys(UNCERTAINTIES))
        inside = isinstance(self.confidence, (int, float)) and 0 < self.confidence < 1
        require(inside, "confidence", self.confidence, "between 0 and 1")
        positive_integer("draws", self.draws)


def profile(
    regression: Regression, fit: RegressionResult, k: int, factor: float, always: bool
) -> tuple[float, float] | None:
    """Where the least cost with unknown k fixed rises by factor²; None where the model is nearly linear.

    always : compute it in that case too
    """
    std = float(np.sqrt(fit.covariance[k, k]))
    value = float(fit.vector[k])
    certain = std <= LINEAR_BELOW * abs(value) or std == 0
    if regression.exhausted() or (not always and (certain or _nearly_linear(regression, fit, k, factor))):
        return None
    base = _cost(regression, fit, k if fit.priors else None, value)[0]  # averages over priors minimise no cost
    lower, upper = (float(limit[k]) for limit in regression.unknowns.limits)

    def end(sign: float) -> float:
        start = fit

        def above(distance: float) -> float:
            if regression.exhausted():  # the time allowed is used up
                return np.inf
            try:
                cost, _ = _cost(regression, start, k, value + sign * distance)
            except InputError:  # no solution exists that far beyond the interval
                return np.inf
            return float(np.sqrt(max(cost - base, 0.0)) - factor)

        far, limit = factor * std, (upper - value if sign > 0 else value - lower)
        while far < limit and far < PROFILE_REACH * factor * std and above(far) < 0:
            far *= 2
        far = min(far, limit)
        if above(far) < 0:
            return value + sign * far
        return value + sign * float(brentq(above, 0.0, far, xtol=SAME_SOLUTION * std, rtol=ROOT_ROUNDED))

    return end(-1.0), end(1.0)


def _nearly_linear(regression: Regression, fit: RegressionResult, k: int, factor: float) -> bool:
    """Whether residuals at both ends of the interval, along the valley, agree with the linear prediction."""
    std = float(np.sqrt(fit.covariance[k, k]))
    along = fit.covariance[:, k] / std
    for sign in (-1.0, 1.0):
        step = np.clip(fit.vector + sign * factor * along, *regression.unknowns.limits) - fit.vector
        deviation = length = 0.0
        ahead = regression.residuals(fit.vector + step, fit.noise)
        for number, (now, slope, then) in enumerate(zip(fit.rows.residuals, fit.rows.slopes, ahead, strict=True)):
            root, predicted = fit.rows.weights(number), slope @ step
            deviation += float(np.square(root * (now - predicted - then)).sum())
            length += float(np.square(root * predicted).sum())
        if not deviation <= NONLINEAR_SHARE**2 * length:  # also where an evaluation failed
            return False
    return True


def _cost(regression: Regression, fit: RegressionResult, k: int | None, value: float) -> tuple[float, RegressionResult]:
    if k is None:
        return fit.rows.cost(), fit
    start, held = fit.vector.copy(), np.zeros(len(fit.vector), dtype=bool)
    start[k], held[k] = value, True
    # the others start on the valley of the cost
    rest = fit.covariance[:, k] / fit.covariance[k, k] * (value - fit.vector[k])
    start = np.clip(np.where(held, start, fit.vector + rest), *regression.unknowns.limits)
    again = regression.fit(start, fit.noise, fit.priors, fixed=held, learn=False, tol=SAME_SOLUTION * PILOT_TOLERANCE)
    return again.rows.cost(), again


def bootstrap(
    regression: Regression, fit: RegressionResult, uncertainty: Uncertainty, rng: np.random.Generator
) -> Array:
    """Unknowns (draws, p) fitted to realisations of the measurements around the prediction of the fit."""
    vectors = []
    predicted = [
        values - r * scale * shape
        for values, r, scale, shape in zip(
            regression.values, fit.rows.residuals, fit.noise.scales, fit.noise.shapes, strict=True
        )
    ]
    noise = replace(fit.noise, estimated=(False,) * len(fit.noise.estimated))
    for _ in range(uncertainty.draws):
        drawn = [
            p + s * shape * rng.standard_normal(len(p))
            for p, s, shape in zip(predicted, noise.scales, noise.shapes, strict=True)
        ]
        again = replace_values(regression, drawn)
        vectors.append(again.fit(fit.vector, noise, fit.priors, learn=False, tol=ROOT_ROUNDED).vector)
        if regression.exhausted():
            break
    return np.array(vectors)
