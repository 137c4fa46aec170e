"""Least squares for the unknowns: bounded Levenberg–Marquardt.

The equations hold exactly for every value of the unknowns, so that the problem is a regression of the measured values
d = q(θ) + noise. With residuals over the noise r, their derivative -J and a prior of precision Λ on rough parts,

    minimise |r(θ)|² + cᵀΛc .
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.forward_model import ForwardModel
from rannpde.pde.inverse.evidence import Evidence, Prior, determined, posterior, typical
from rannpde.pde.inverse.rows import DataRows, Noise, constraint_rows, predict, predicted
from rannpde.pde.inverse.settings import IdentificationSettings
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import ALGEBRA_SHARE, ILL_POSED_RATIO, NONLINEAR_SHARE
from rannpde.rounding import ROOT_ROUNDED

MOST_STEPS = 60
DAMPING = 1e-3
"""Levenberg–Marquardt damping of the first step from a guess, relative to the norms of the columns, and the least one
after a rejected step."""
LEAST_DAMPING = 1e-15
"""Least damping, which is reached where no step is rejected."""


class NoEvaluation(InputError):
    """The time allowed was used up before the first evaluation of the model."""


@dataclass(frozen=True, eq=False)
class RegressionResult:
    """The result of a search.

    vector (p,), covariance (p, p) without the undetermined directions; priors : function → order and λ
    rows : residuals there; noise : estimated or given
    free : directions (k, p) that the data do not determine; effective : γ, the effective degrees of freedom
    """

    vector: Array
    covariance: Array
    rows: DataRows
    noise: Noise
    priors: dict[str, Prior]
    free: Array
    effective: float
    steps: int
    converged: bool

    @property
    def count(self) -> int:
        """The number of measured values."""
        return sum(len(r) for r in self.rows.residuals)

    @property
    def freedom(self) -> float:
        """Degrees of freedom that remain for the noise."""
        return max(self.count - self.effective, 1.0)

    def misfit(self, number: int) -> float:
        """Root mean square of a set's residuals over its noise."""
        return float(np.sqrt(np.mean(np.square(self.rows.residuals[number]))))


class Regression:
    """One or several experiments that share their unknowns.

    resampled : values in place of the measured ones, set by set, for a bootstrap
    exhausted : whether the time allowed is used up; constraint_tolerance : see IdentificationSettings
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        unknowns: Unknowns,
        models: Sequence[ForwardModel],
        resampled: Sequence[Array] | None = None,
        exhausted: Callable[[], bool] = lambda: False,
        constraint_tolerance: float = IdentificationSettings.constraint_tolerance,
    ) -> None:
        self.problems, self.unknowns, self.models, self.exhausted = problems, unknowns, models, exhausted
        self.constraint_tolerance = constraint_tolerance
        self.sets = [(k, data) for k, problem in enumerate(problems) for data in problem.measurements]
        self.values = [data.values for _, data in self.sets] if resampled is None else list(resampled)
        self.bounded = [n for n in unknowns.bases if np.isfinite(unknowns.unknown[n].limits).any()]
        self.inside = problems[0].domain.sample(2000, rng=11)
        self.evidence = Evidence(unknowns, self.inside)

    def rows(self, vector: Array, noise: Noise) -> DataRows:
        """All residuals and slopes at these unknowns."""
        responses = [model.respond(vector) for model in self.models]
        residuals, slopes = [], []
        for (k, data), values, scale, shape in zip(self.sets, self.values, noise.scales, noise.shapes, strict=True):
            prediction, slope = predict(self.problems[k], data, self.unknowns, responses[k], vector)
            spread = scale * shape
            residuals.append((values - prediction) / spread)
            slopes.append(slope / spread[:, None])
        known = [
            constraint_rows(problem, self.unknowns, vector, self.constraint_tolerance) for problem in self.problems
        ]
        losses = tuple(data.loss for _, data in self.sets)
        return DataRows(
            tuple(residuals), tuple(slopes), np.concatenate([r for r, _ in known]),
            np.concatenate([s for _, s in known]), losses, tuple(responses),
        )  # fmt: skip

    def residuals(self, vector: Array, noise: Noise) -> list[Array]:
        """Measured minus predicted over the noise (N,), set by set: solutions without their derivatives."""
        solutions, residuals = [model.solution(vector) for model in self.models], []
        known = lambda jet, points: self.unknowns.value(jet, points, vector)  # noqa: E731
        for (k, data), values, scale, shape in zip(self.sets, self.values, noise.scales, noise.shapes, strict=True):
            residuals.append((values - predicted(self.problems[k], data, solutions[k], known)) / (scale * shape))
        return residuals

    # ------------------------------------------------------------------------------------------------------ search

    def fit(
        self,
        vector: Array,
        noise: Noise,
        priors: dict[str, Prior] | None = None,
        fixed: Array | None = None,
        learn: bool = True,
        tol: float = 1e-12,
        damping: float = DAMPING,
    ) -> RegressionResult:
        """Search from a start (p,); fixed (p,) : unknowns that are not changed; learn : whether noise and priors are
        estimated.

        It ends where a step, or the extrapolated next one, is below ``tol`` of the unknowns, or changes all predictions
        together by less than ALGEBRA_SHARE standard deviations of the noise;
        that last step is taken without another evaluation of the model.
        """
        priors = dict(priors or self.evidence.plain())
        vector, moving = np.array(vector, dtype=float), np.ones(self.unknowns.count, dtype=bool)
        if fixed is not None:
            moving &= ~fixed
        rows = self.rows(vector, noise)
        if not rows.finite and self.exhausted():
            raise NoEvaluation("the time was used up before the first evaluation of the model; allow more seconds")
        if not rows.finite:
            raise InputError("the model gives no finite prediction where the search begins; give better guesses")
        converged, step, last = False, 0, np.inf
        while step < MOST_STEPS and not converged and not self.exhausted():
            step += 1
            if learn:
                noise, priors, rows = self.evidence.with_hyperparameters(vector, rows, noise, priors)
            right, matrix = self.evidence.with_prior(vector, rows, priors)
            before = rows.cost() + self._prior_cost(vector, priors)
            scale = self._scale(rows, matrix)
            change = self._step(vector, right, matrix, scale, damping, moving)
            size = self._size(change, vector + change, scale)
            if not np.isfinite(size):  # the derivatives are not finite here
                break
            small = size < tol or (size < NONLINEAR_SHARE * last < np.inf and size * size / last < tol)
            if small or (damping <= DAMPING and np.linalg.norm(matrix @ change) < ALGEBRA_SHARE):
                vector, rows, converged = vector + change, rows.moved(change), True
                break
            trial = self.rows(vector + change, noise)
            after = trial.cost() + self._prior_cost(vector + change, priors) if trial.finite else np.inf
            if after <= before:
                converged = size < ILL_POSED_RATIO * tol and before - after <= 1e-9 * before
                vector, rows, last = vector + change, trial, size
                damping = max(damping / 10, LEAST_DAMPING)
            else:
                # errors of the model of size tol may cause a rejected step of this size
                near = size < max(ROOT_ROUNDED, ILL_POSED_RATIO * tol) or after - before < 1e-8 * before
                converged = (near and trial.finite and damping > LEAST_DAMPING) or damping > 1e12
                damping = max(damping * 10, DAMPING)
        right, matrix = self.evidence.with_prior(vector, rows, priors)
        covariance, free = posterior(matrix, moving)
        effective = sum(determined(slopes, covariance) for slopes in rows.slopes)
        if learn and converged and priors and fixed is None:
            change, covariance = self.evidence.marginalised(vector, rows, priors, covariance)
            change = np.clip(vector + change, *self.unknowns.limits) - vector
            change *= min(
                (self.unknowns.step_to_bounds(n, self.inside, vector, change) for n in self.bounded), default=1.0
            )
            vector, rows = vector + change, rows.moved(change)
        return RegressionResult(vector, covariance, rows, noise, priors, free, effective, step, converged)

    def shift(self, fit: RegressionResult, residuals: Sequence[Array]) -> Array:
        """The change of the estimate (p,) if another discretisation has these residuals at the unknowns of a fit."""
        rows = DataRows(
            tuple(residuals),
            fit.rows.slopes,
            fit.rows.constraint_residuals,
            fit.rows.constraint_slopes,
            fit.rows.losses,
            (),
        )
        right, matrix = self.evidence.with_prior(fit.vector, rows, fit.priors)
        if fit.priors:  # an average over priors minimises the cost of none of them
            right = right - self.evidence.with_prior(fit.vector, fit.rows, fit.priors)[0]
        lower, upper = self.unknowns.limits
        covariance, _ = posterior(matrix, (fit.vector > lower) & (fit.vector < upper))  # the others are at their bounds
        return covariance @ (matrix.T @ right)

    @staticmethod
    def _scale(rows: DataRows, matrix: Array) -> Array:
        """The change (p,) of each unknown that changes data and prior by one; conditions, whose weights are much
        larger, are left out."""
        first = sum(map(len, rows.residuals))
        return typical(np.delete(matrix, slice(first, first + len(rows.constraint_residuals)), axis=0))

    def _size(self, change: Array, vector: Array, scale: Array) -> float:
        """The largest change of an unknown, relative to its value or to ``scale``, the change that the rows notice.

        The weights of a function are taken together, as those of its rough parts are small and change much.
        """
        shares = [0.0]
        for name in self.unknowns.numbers:
            k = self.unknowns.slices[name].start
            shares.append(float(abs(change[k]) / max(abs(vector[k]), scale[k])))
        for name in self.unknowns.bases:
            part = self.unknowns.slices[name]
            shares.append(float(np.linalg.norm(change[part]) / max(np.linalg.norm(vector[part]), scale[part].min())))
        return float(np.max(shares))

    def _step(self, vector: Array, right: Array, matrix: Array, scale: Array, damping: float, moving: Array) -> Array:
        """The damped least-squares step within the bounds of numbers, shortened where a function would leave its
        bounds."""
        rows = np.concatenate([matrix * scale, np.sqrt(damping) * np.eye(len(scale))])
        target = np.concatenate([right, np.zeros(len(scale))])
        lower, upper = (limit - vector for limit in self.unknowns.limits)
        change, free = np.zeros(len(vector)), moving.copy()
        for _ in range(len(vector)):  # active set: unknowns beyond their bounds are fixed there
            rest = target - rows[:, ~free] @ (change[~free] / scale[~free])
            change[free] = np.linalg.lstsq(rows[:, free], rest, rcond=None)[0] * scale[free]
            outside = free & ((change < lower) | (change > upper))
            if not outside.any():
                break
            change[outside] = np.clip(change, lower, upper)[outside]
            free &= ~outside
        share = min((self.unknowns.step_to_bounds(n, self.inside, vector, change) for n in self.bounded), default=1.0)
        return share * change

    def _prior_cost(self, vector: Array, priors: dict[str, Prior]) -> float:
        return float(np.square(self.evidence.roots(priors) @ vector).sum())


def replace_values(regression: Regression, values: Sequence[Array]) -> Regression:
    """The regression with other measured values, set by set."""
    return Regression(
        regression.problems, regression.unknowns, regression.models, values,
        regression.exhausted, regression.constraint_tolerance,
    )  # fmt: skip
