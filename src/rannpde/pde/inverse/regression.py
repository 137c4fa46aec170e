"""Least squares for the unknowns: bounded Levenberg–Marquardt.

The equations hold exactly for every value of the unknowns, so that what is left is a regression of the measured values
d = q(θ) + noise. With residuals over the noise r, their derivative -J and a prior of precision Λ on rough parts,

    minimise |r(θ)|² + cᵀΛc .
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.inverse.evidence import Evidence, Prior, determined, posterior, typical
from rannpde.pde.inverse.models import Model
from rannpde.pde.inverse.rows import DataRows, Noise, pinned, predict, predicted
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.problem.problem import Problem

MOST_STEPS = 60
DAMPING = 1e-3
"""Of the first step from a guess, relative to what the rows change by."""
LEAST_DAMPING, HELD_BACK = 1e-15, 1e-5
"""Of a search that goes well, and at least after a step that led up."""
SWIFT = 0.1
"""A step that is so much smaller than the last tells how small the next would be."""


NEGLIGIBLE = 0.01
"""Change of what is predicted, in standard deviations of the noise, all values together, that is not worth a step."""
ROUGH = 100.0
"""A step of so many tolerances that leads up may do so because marches differ by more: the search ends there."""


class OutOfTime(InputError):
    """The time allowed was used up before the model answered once."""


@dataclass(frozen=True, eq=False)
class Regressed:
    """Where the search ended.

    vector (p,), covariance (p, p) without what is free; priors : function → order and strength λ
    rows : residuals there, and noise
    free : directions (k, p) that the data do not determine; effective : γ, how many of the unknowns they determine
    """

    vector: Array
    covariance: Array
    rows: DataRows
    noise: Noise
    priors: dict[str, Prior]
    free: Array
    effective: float
    steps: int
    settled: bool

    @property
    def count(self) -> int:
        """Measured values."""
        return sum(len(r) for r in self.rows.residuals)

    @property
    def freedom(self) -> float:
        """Degrees of freedom that are left for the noise."""
        return max(self.count - self.effective, 1.0)

    def misfit(self, number: int) -> float:
        """Root mean square of a set's residuals over its noise."""
        return float(np.sqrt(np.mean(np.square(self.rows.residuals[number]))))


class Regression:
    """One or several experiments that share their unknowns.

    changed : values in the place of the measured ones, set by set, for a bootstrap
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        unknowns: Unknowns,
        models: Sequence[Model],
        changed: Sequence[Array] | None = None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problems, self.unknowns, self.models, self.over = problems, unknowns, models, over
        self.sets = [(k, one) for k, problem in enumerate(problems) for one in problem.measurements]
        self.values = [one.values for _, one in self.sets] if changed is None else list(changed)
        self.bounded = [n for n in unknowns.bases if np.isfinite(unknowns.unknown[n].limits).any()]
        self.inside = problems[0].domain.sample(2000, rng=11)
        self.evidence = Evidence(unknowns, self.inside)

    def rows(self, vector: Array, noise: Noise) -> DataRows:
        """All residuals and slopes at these unknowns."""
        responses = [model.respond(vector) for model in self.models]
        residuals, slopes = [], []
        for (k, one), values, scale, shape in zip(self.sets, self.values, noise.scales, noise.shapes, strict=True):
            prediction, slope = predict(self.problems[k], one, self.unknowns, responses[k], vector)
            spread = scale * shape
            residuals.append((values - prediction) / spread)
            slopes.append(slope / spread[:, None])
        known = [pinned(problem, self.unknowns, vector) for problem in self.problems]
        losses = tuple(one.loss for _, one in self.sets)
        return DataRows(
            tuple(residuals), tuple(slopes), np.concatenate([r for r, _ in known]),
            np.concatenate([s for _, s in known]), losses, tuple(responses),
        )  # fmt: skip

    def residuals(self, vector: Array, noise: Noise) -> list[Array]:
        """Measured minus predicted over the noise (N,), set by set: solutions without their derivatives."""
        solutions, residuals = [model.solution(vector) for model in self.models], []
        known = lambda jet, points: self.unknowns.value(jet, points, vector)  # noqa: E731
        for (k, one), values, scale, shape in zip(self.sets, self.values, noise.scales, noise.shapes, strict=True):
            residuals.append((values - predicted(self.problems[k], one, solutions[k], known)) / (scale * shape))
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
    ) -> Regressed:
        """From a start (p,); fixed (p,): which unknowns stay; learn: whether noise and priors are found.

        It ends where a step, or the step that would come after it, is below ``tol`` of the unknowns, or far below the
        noise; that last step is taken on the word of the derivatives.
        """
        priors = dict(priors or self.evidence.plain())
        vector, moving = np.array(vector, dtype=float), np.ones(self.unknowns.count, dtype=bool)
        if fixed is not None:
            moving &= ~fixed
        rows = self.rows(vector, noise)
        if not rows.finite and self.over():
            raise OutOfTime("the time allowed was used up before the model answered once; allow more seconds")
        if not rows.finite:
            raise InputError("the model gives no finite prediction where the search begins; give better guesses")
        settled, step, last = False, 0, np.inf
        while step < MOST_STEPS and not settled and not self.over():
            step += 1
            if learn:
                noise, priors, rows = self.evidence.learned(vector, rows, noise, priors)
            right, matrix = self.evidence.with_prior(vector, rows, priors)
            before = rows.cost() + self._prior_cost(vector, priors)
            scale = self._scale(rows, matrix)
            change = self._step(vector, right, matrix, scale, damping, moving)
            size = self._size(change, vector + change, scale)
            if not np.isfinite(size):  # the derivatives lead nowhere: what there is was not found to be the best
                break
            swift = size < tol or (size < SWIFT * last < np.inf and size * size / last < tol)
            if swift or (damping <= HELD_BACK and np.linalg.norm(matrix @ change) < NEGLIGIBLE):
                vector, rows, settled = vector + change, rows.moved(change), True
                break
            ahead = self.rows(vector + change, noise)
            after = ahead.cost() + self._prior_cost(vector + change, priors) if ahead.finite else np.inf
            if after <= before:
                settled = size < 1e3 * tol and before - after <= 1e-9 * before
                vector, rows, last = vector + change, ahead, size
                damping = max(damping / 10, LEAST_DAMPING)
            else:
                near = size < max(1e-6, ROUGH * tol) or after - before < 1e-8 * before
                settled = (near and ahead.finite and damping > LEAST_DAMPING) or damping > 1e12
                damping = max(damping * 10, HELD_BACK)
        right, matrix = self.evidence.with_prior(vector, rows, priors)
        covariance, free = posterior(matrix, moving)
        effective = sum(determined(slopes, covariance) for slopes in rows.slopes)
        if learn and settled and priors and fixed is None:
            change, covariance = self.evidence.averaged(vector, rows, priors, covariance)
            change = np.clip(vector + change, *self.unknowns.limits) - vector
            change *= min((self.unknowns.least(n, self.inside, vector, change) for n in self.bounded), default=1.0)
            vector, rows = vector + change, rows.moved(change)
        return Regressed(vector, covariance, rows, noise, priors, free, effective, step, settled)

    def shift(self, fit: Regressed, residuals: Sequence[Array]) -> Array:
        """How far the best unknowns (p,) move where another discretisation leaves these residuals at those of a fit."""
        rows = DataRows(tuple(residuals), fit.rows.slopes, fit.rows.pinned, fit.rows.pins, fit.rows.losses, ())
        right, matrix = self.evidence.with_prior(fit.vector, rows, fit.priors)
        if fit.priors:  # an average over priors is the best for none of them
            right = right - self.evidence.with_prior(fit.vector, fit.rows, fit.priors)[0]
        lower, upper = self.unknowns.limits
        covariance, _ = posterior(matrix, (fit.vector > lower) & (fit.vector < upper))  # a bound holds the others
        return covariance @ (matrix.T @ right)

    @staticmethod
    def _scale(rows: DataRows, matrix: Array) -> Array:
        """What each unknown changes by to change data and prior by one (p,): pins are much sharper, and hold anyway."""
        first = sum(map(len, rows.residuals))
        return typical(np.delete(matrix, slice(first, first + len(rows.pinned)), axis=0))

    def _size(self, change: Array, vector: Array, scale: Array) -> float:
        """The largest share of itself, or of what matters to the rows, that an unknown changes by.

        Weights of a function count together: those of rough parts are small and change by much.
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
        """The damped least-squares step within the bounds of numbers, shortened where a function would leave its."""
        rows = np.concatenate([matrix * scale, np.sqrt(damping) * np.eye(len(scale))])
        target = np.concatenate([right, np.zeros(len(scale))])
        lower, upper = (limit - vector for limit in self.unknowns.limits)
        change, free = np.zeros(len(vector)), moving.copy()
        for _ in range(len(vector)):  # those that would leave their bounds stay there, and the others are solved again
            rest = target - rows[:, ~free] @ (change[~free] / scale[~free])
            change[free] = np.linalg.lstsq(rows[:, free], rest, rcond=None)[0] * scale[free]
            outside = free & ((change < lower) | (change > upper))
            if not outside.any():
                break
            change[outside] = np.clip(change, lower, upper)[outside]
            free &= ~outside
        share = min((self.unknowns.least(n, self.inside, vector, change) for n in self.bounded), default=1.0)
        return share * change

    def _prior_cost(self, vector: Array, priors: dict[str, Prior]) -> float:
        return float(np.square(self.evidence.roots(priors) @ vector).sum())


def replace_values(regression: Regression, values: Sequence[Array]) -> Regression:
    """The same with other measured values, set by set."""
    return Regression(regression.problems, regression.unknowns, regression.models, values, regression.over)
