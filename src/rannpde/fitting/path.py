"""Ridge solutions for every penalty from one factorisation, and the penalty that generalised cross-validation picks.

With the constant column eliminated, A = U √(M s) Vᵀ and y = √M (U γ + rest), the minimiser of
(1/M) |A w - y|² + λ |w|² and its training error are

    w(λ) = V √s γ / (s + λ),        rss(λ) / M = |rest|² + Σ_i (λ / (s_i + λ))² γ_i² .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from rannpde.arrays import Array
from rannpde.errors import InputError, is_real, require


@dataclass(frozen=True)
class LinearFit:
    """Output weights with what is known about them.

    coefficients (columns, outputs); penalty λ; rank; condition of the system that was solved;
    training_error : relative root-mean-square error on the data, all outputs together (absolute for zero data)
    """

    coefficients: Array
    penalty: float
    rank: int
    condition: float
    training_error: float


@dataclass(frozen=True)
class Fitted:
    """A finished fit: the weights with what is known about them, for values divided by ``unit``, and the part's facts.

    validation_error : relative root-mean-square error on held-out folds, where these chose the penalty
    """

    result: LinearFit
    unit: float
    rows: int
    outside: int
    scalar: bool
    solver: str
    validation_error: float | None = None

    @property
    def coefficients(self) -> Array:
        """(columns,) for values that came as one axis, else (columns, outputs), in the values' own unit."""
        coefficients: Array = self.result.coefficients * self.unit
        return coefficients[:, 0] if self.scalar else coefficients


@dataclass(frozen=True)
class PenaltyPath:
    """The family of ridge fits in λ. Build it with ``NormalEquations.path()`` or ``OrthogonalEquations.path()``.

    spectrum s (k,), loadings γ (k, outputs), basis V (columns, k), rest (outputs,): |rest|² of each output;
    offset (columns, outputs) and elimination (columns,): the fit is offset + (I - e_c eliminationᵀ) V √s γ/(s+λ), where
    c is the constant column, if there is one; energy : mean square of the data; smallest : least sensible λ.
    """

    spectrum: Array
    loadings: Array
    basis: Array
    rest: Array
    offset: Array
    elimination: Array | None
    energy: float
    count: float
    smallest: float

    def solve(self, penalty: float) -> LinearFit:
        """The ridge fit for that λ ≥ 0."""
        check_penalty(penalty)
        if len(self.spectrum) == 0:
            return LinearFit(self.offset, penalty, 0, 1.0, relative_error(self.rest.sum(), self.energy))
        filtered = (np.sqrt(self.spectrum) / (self.spectrum + penalty))[:, None] * self.loadings
        coefficients = self.basis @ filtered
        if self.elimination is not None:
            coefficients[-1] = -self.elimination @ coefficients
        condition = float((self.spectrum[0] + penalty) / (self.spectrum[-1] + penalty))
        error = relative_error(float(self.mean_square(np.array([penalty]))[0]), self.energy)
        return LinearFit(coefficients + self.offset, float(penalty), len(self.spectrum), condition, error)

    def mean_square(self, penalties: Array) -> Array:
        """rss(λ)/M summed over the outputs, one for each penalty."""
        shrink = penalties[:, None] / (self.spectrum + penalties[:, None])
        squares: Array = self.rest.sum() + np.square(shrink) @ np.square(self.loadings).sum(axis=1)
        return squares

    def degrees(self, penalties: Array) -> Array:
        """Effective degrees of freedom Σ s_i/(s_i + λ), plus one for the constant."""
        free: Array = (self.spectrum / (self.spectrum + penalties[:, None])).sum(axis=1)
        return free + (self.elimination is not None)

    def gcv(self, penalties: Array) -> Array:
        """The generalised cross-validation score (rss/M) / (1 - degrees/M)²; infinite where degrees reach M."""
        penalties = np.atleast_1d(np.asarray(penalties, dtype=float))
        slack = 1.0 - self.degrees(penalties) / self.count
        with np.errstate(divide="ignore"):
            return np.where(slack > 0, self.mean_square(penalties) / np.square(np.maximum(slack, 0)), np.inf)

    def best(self) -> LinearFit:
        """The fit that minimises the GCV score: a scan over the spectrum's range, polished in log λ."""
        if len(self.spectrum) == 0:
            return self.solve(0.0)
        grid = np.log(np.geomspace(self.smallest, 1e4 * self.spectrum[0], 301))
        scores = self.gcv(np.exp(grid))
        if not np.isfinite(scores).any():
            raise InputError("penalty='gcv' needs more points than effective columns; give more points or a penalty")
        at = int(np.argmin(scores))
        if 0 < at < len(grid) - 1:
            polished = minimize_scalar(
                lambda x: float(self.gcv(np.exp(np.array([x])))[0]),
                bounds=(grid[at - 1], grid[at + 1]),
                method="bounded",
            )
            if polished.fun < scores[at]:
                return self.solve(float(np.exp(polished.x)))
        return self.solve(float(np.exp(grid[at])))

    def solve_all(self, penalties: Sequence[float]) -> list[LinearFit]:
        """One fit for each penalty."""
        return [self.solve(penalty) for penalty in penalties]


def check_penalty(penalty: float) -> None:
    """Refuse anything that is not a finite number ≥ 0."""
    require(is_real(penalty) and 0 <= penalty < np.inf, "penalty", penalty, "a finite number ≥ 0, or 'gcv'")


def relative_error(mean_square: float, energy: float) -> float:
    """√(mean square error / mean square data); the absolute error where the data vanish."""
    return float(np.sqrt(mean_square / energy)) if energy > 0 else float(np.sqrt(mean_square))
