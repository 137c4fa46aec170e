"""Least squares for the unknowns: bounded Levenberg–Marquardt, noise and smoothness by evidence, covariance.

The equations hold exactly for every value of the unknowns, so that what is left is a regression of the measured values
d = q(θ) + noise. With residuals over the noise r, their derivative -J and a prior of precision Λ on rough parts,

    minimise |r(θ)|² + cᵀΛc ,      covariance  C = (JᵀJ + Λ)⁻¹ .

Noise that is not given, and the strength λ of a smoothness prior Λ = λ·roughness, maximise the evidence (MacKay's fixed
point): σ² = |d - q|²/(N - γ), λ as in ``Regression._strength``, γ being what the data determine of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.inverse.models import Model, Response
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.problem.measurements import Measurement
from rannpde.pde.problem.problem import Problem

HUBER = 1.345
"""Residuals beyond so many standard deviations count by their size only; 95 % as good as squares for normal noise."""
MOST_STEPS = 60
PIN = 1e-5
"""How exactly a function meets what is known of it beforehand, relative to its size."""
PIN_POINTS = 48
PLAIN_STRENGTH = 1e-4
"""Of the smoothness prior before anything is known, for noise of size 1."""
DOUBT = 1e-3
"""Weight of the pseudo-observation that a function may be as rough as it is large; bands are a little wide with it."""
FREE = 1e-4
"""Share of the largest singular value of the pins below which they say nothing of a direction."""
RIDGE = 1e-12
"""Share of the largest singular value below which the data say nothing, up to rounding."""


@dataclass(frozen=True)
class Noise:
    """Standard deviation of each set of measurements, relative noise within a set, and which of them are estimated."""

    scales: tuple[float, ...]
    shapes: tuple[Array, ...]
    estimated: tuple[bool, ...]

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Noise:
        """As given; 1 % of the spread of the values as a first guess of what is to be estimated."""
        scales, shapes, estimated = [], [], []
        for one in measurements:
            free = one.noise is None or not one.noise.any()
            spread = float(np.std(one.values)) or float(np.abs(one.values).max()) or 1.0
            scales.append(0.01 * spread if free else 1.0)
            shapes.append(np.ones(len(one.values)) if free or one.noise is None else one.noise)
            estimated.append(free)
        return cls(tuple(scales), tuple(shapes), tuple(estimated))


@dataclass(frozen=True, eq=False)
class Rows:
    """Residuals over noise (N,), and the derivative of what the model predicts over noise (N, p), set by set."""

    residuals: tuple[Array, ...]
    slopes: tuple[Array, ...]
    pinned: Array
    pins: Array
    losses: tuple[str, ...]
    responses: tuple[Response, ...]

    def weights(self, number: int) -> Array:
        """Square roots of robust weights of a set."""
        size = np.abs(self.residuals[number])
        if self.losses[number] == "squares":
            return np.ones(len(size))
        return np.sqrt(np.minimum(1.0, HUBER / np.maximum(size, 1e-300)))

    @property
    def finite(self) -> bool:
        """Whether the model answered everywhere."""
        return all(np.isfinite(part).all() for part in (*self.residuals, *self.slopes))

    def cost(self) -> float:
        """Σ r², or Huber's loss."""
        total = float(np.square(self.pinned).sum())
        for r, loss in zip(self.residuals, self.losses, strict=True):
            size = np.abs(r)
            plain = loss == "squares"
            total += float(np.where(plain | (size <= HUBER), size**2, 2 * HUBER * size - HUBER**2).sum())
        return total

    def stacked(self) -> tuple[Array, Array]:
        """All rows, robust weights applied: (N,), (N, p)."""
        roots = [self.weights(k) for k in range(len(self.residuals))]
        right = [root * r for root, r in zip(roots, self.residuals, strict=True)]
        matrix = [root[:, None] * s for root, s in zip(roots, self.slopes, strict=True)]
        return np.concatenate([*right, self.pinned]), np.concatenate([*matrix, self.pins])


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the search ended.

    vector (p,), covariance (p, p) without what is free; strengths : function → λ; rows : residuals there, and noise
    free : directions (k, p) that the data do not determine; effective : γ, how many of the unknowns they determine
    """

    vector: Array
    covariance: Array
    rows: Rows
    noise: Noise
    strengths: dict[str, float]
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
        self.pins = [_pin_points(problem) for problem in problems]
        self.bounded = [n for n in unknowns.bases if np.isfinite(unknowns.unknown[n].limits).any()]
        self.inside = problems[0].domain.sample(2000, rng=11)

    # -------------------------------------------------------------------------------------------------------- rows

    def rows(self, vector: Array, noise: Noise) -> Rows:
        """All residuals and slopes at these unknowns."""
        responses = [model.respond(vector) for model in self.models]
        residuals, slopes = [], []
        for (k, one), values, scale, shape in zip(self.sets, self.values, noise.scales, noise.shapes, strict=True):
            predicted, slope = predict(self.problems[k], one, self.unknowns, responses[k], vector)
            spread = scale * shape
            residuals.append((values - predicted) / spread)
            slopes.append(slope / spread[:, None])
        pinned, pins = self._pinned(vector)
        losses = tuple(one.loss for _, one in self.sets)
        return Rows(tuple(residuals), tuple(slopes), pinned, pins, losses, tuple(responses))

    def _pinned(self, vector: Array) -> tuple[Array, Array]:
        """What is known of unknown functions beforehand, met to a small share of their size."""
        residuals, slopes = [np.empty(0)], [np.empty((0, self.unknowns.count))]
        for problem, terms in zip(self.problems, self.pins, strict=True):
            for term, points, share in terms:
                known = term.known(points, problem.vocabulary)
                jets = {jet: self.unknowns.value(jet, points, vector) for jet in term.expression.jets}
                value, partials = term.expression.linearised(known, jets)
                slope = np.zeros((len(points), self.unknowns.count))
                for jet, partial in zip(term.expression.jets, partials, strict=True):
                    table = self.unknowns.table(jet, points)
                    slope[:, self.unknowns.slices[jet.field]] += np.broadcast_to(partial, len(points))[:, None] * table
                size = max(float(np.abs(jets[term.expression.jets[0]]).max()), 1e-12)
                spread = PIN * size / np.sqrt(share)
                residuals.append(-np.broadcast_to(value, len(points)) / spread)
                slopes.append(slope / spread)
        return np.concatenate(residuals), np.concatenate(slopes)

    # ------------------------------------------------------------------------------------------------------ search

    def fit(
        self,
        vector: Array,
        noise: Noise,
        strengths: dict[str, float] | None = None,
        fixed: Array | None = None,
        learn: bool = True,
        tol: float = 1e-12,
    ) -> Fit:
        """From a start (p,); fixed (p,): which unknowns stay; learn: whether noise and strengths are estimated."""
        strengths = dict(strengths or dict.fromkeys(self.unknowns.bases, PLAIN_STRENGTH))
        vector, moving = np.array(vector, dtype=float), np.ones(self.unknowns.count, dtype=bool)
        if fixed is not None:
            moving &= ~fixed
        rows = self.rows(vector, noise)
        if not rows.finite and self.over():
            raise InputError("the time allowed was used up before the model answered once; allow more seconds")
        if not rows.finite:
            raise InputError("the model gives no finite prediction where the search begins; give better guesses")
        damping, settled, step = 1e-3, False, 0
        while step < MOST_STEPS and not settled and not self.over():
            step += 1
            if learn:
                noise, strengths, rows = self._learned(vector, rows, noise, strengths)
            right, matrix = self._with_prior(vector, rows, strengths)
            before = float(rows.cost() + self._prior_cost(vector, strengths))
            change = self._step(vector, right, matrix, damping, moving)
            trial = vector + change
            size = float(np.max(np.abs(change) / np.maximum(np.abs(vector), self._typical(matrix)), initial=0.0))
            if not np.isfinite(size) or size < tol:
                settled = True
                break
            ahead = self.rows(trial, noise)
            after = float(ahead.cost() + self._prior_cost(trial, strengths)) if ahead.finite else np.inf
            if after <= before:
                settled = size < 1e3 * tol and before - after <= 1e-9 * before
                vector, rows, damping = trial, ahead, max(damping / 10, 1e-15)
            else:
                near = size < 1e-6 or after - before < 1e-8 * before
                settled = near and damping > 1e-9
                damping = max(damping * 10, 1e-9)
                settled = settled or damping > 1e12
        covariance, free, effective = self._covariance(vector, rows, strengths, moving)
        return Fit(vector, covariance, rows, noise, strengths, free, effective, step, settled)

    def _step(self, vector: Array, right: Array, matrix: Array, damping: float, moving: Array) -> Array:
        """The damped least-squares step within the bounds of numbers, shortened where a function would leave its."""
        scale = self._typical(matrix)
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

    @staticmethod
    def _typical(matrix: Array) -> Array:
        """What each unknown changes by to change the rows by one: (p,)."""
        norms = np.linalg.norm(matrix, axis=0)
        return 1.0 / np.maximum(norms, max(float(norms.max(initial=0.0)) * 1e-14, 1e-300))

    # --------------------------------------------------------------------------------------------- prior and noise

    def _prior(self, strengths: dict[str, float]) -> Array:
        """Square roots of the precisions (p,), 0 for numbers."""
        roots = np.zeros(self.unknowns.count)
        for name, basis in self.unknowns.bases.items():
            roots[self.unknowns.slices[name]] = np.sqrt(strengths[name] * basis.roughness)
        return roots

    def _prior_cost(self, vector: Array, strengths: dict[str, float]) -> float:
        return float(np.square(self._prior(strengths) * vector).sum())

    def _with_prior(self, vector: Array, rows: Rows, strengths: dict[str, float]) -> tuple[Array, Array]:
        right, matrix = rows.stacked()
        roots = self._prior(strengths)
        held = roots > 0
        return np.append(right, -(roots * vector)[held]), np.concatenate([matrix, np.diag(roots)[held]])

    def _learned(
        self, vector: Array, rows: Rows, noise: Noise, strengths: dict[str, float]
    ) -> tuple[Noise, dict[str, float], Rows]:
        """Noise and strengths of the largest evidence, with the rows linearised as they are."""
        if not (any(noise.estimated) or strengths):
            return noise, strengths, rows
        everything = np.ones(self.unknowns.count, dtype=bool)
        covariance, _, _ = self._covariance(vector, rows, strengths, everything)
        covariance = np.where(np.isfinite(covariance), covariance, 0.0)
        scales = list(noise.scales)
        for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
            if noise.estimated[k]:
                used = float(np.einsum("ij,jk,ik->", slope, covariance, slope))
                left = max(len(r) - min(used, len(r) - 1.0), 1.0)
                factor = float(np.sqrt(np.square(r).sum() / left))
                if rows.losses[k] == "huber":
                    factor = 1.4826 * float(np.median(np.abs(r)))
                least = 1e-15 * float(np.abs(self.values[k]).max()) / scales[k]
                scales[k] *= max(factor, least, 1e-8)
        learned = dict(strengths)
        for name in self.unknowns.bases:
            wanted = self._strength(name, vector, rows.pins, strengths[name], covariance)
            learned[name] = float(np.clip(wanted, 0.1 * strengths[name], 10 * strengths[name]))
        changed = replace(noise, scales=tuple(scales))
        factors = [old / new for old, new in zip(noise.scales, scales, strict=True)]
        again = replace(
            rows, residuals=tuple(f * r for f, r in zip(factors, rows.residuals, strict=True)),
            slopes=tuple(f * s for f, s in zip(factors, rows.slopes, strict=True)),
        )  # fmt: skip
        return changed, learned, again

    def _strength(self, name: str, vector: Array, pins: Array, strength: float, covariance: Array) -> float:
        """λ of the largest evidence for what an unknown function adds to the smoothest one that meets its pins.

        What is known beforehand does not vote: an analytic rim would call the inside as smooth as itself. Where the
        data determine nothing, one pseudo-observation makes the prior as wide as the function is large.
        """
        part, rough = self.unknowns.slices[name], self.unknowns.bases[name].roughness
        rows = pins[:, part]
        _, singular, right = np.linalg.svd(rows[np.abs(rows).any(axis=1)], full_matrices=True)
        held = int((singular > FREE * singular.max(initial=0.0)).sum())
        left = right[held:]  # (k, m): directions that no pin holds
        energy = (left * rough) @ left.T
        values, vectors = np.linalg.eigh(energy)
        rises = values > FREE**2 * rough.max()
        if not rises.any():  # pins hold everything that the prior could
            return strength
        along = vectors[:, rises].T @ (left @ (rough * vector[part]))
        bend = float((along**2 / values[rises]).sum())
        gamma = max(int(rises.sum()) - strength * float(rough @ np.diag(covariance)[part]), 0.0)
        size = float(np.mean(self.unknowns.bases[name].function(vector[part])(self._places(name)) ** 2)) or 1.0
        widest = float((1 / values[rises]).sum()) / size
        return (gamma + DOUBT) / (bend + DOUBT / widest)

    def _places(self, name: str) -> Array:
        """Points of the coordinates of an unknown function."""
        chosen = [self.unknowns.coordinates.index(c) for c in self.unknowns.unknown[name].of]
        return self.inside[:, chosen]

    def _covariance(
        self, vector: Array, rows: Rows, strengths: dict[str, float], moving: Array
    ) -> tuple[Array, Array, float]:
        """C (p, p), directions that are left free (k, p), and γ = tr(J C Jᵀ)."""
        _, matrix = self._with_prior(vector, rows, strengths)
        scale = self._typical(matrix)
        chosen = np.flatnonzero(moving)
        _, singular, right = np.linalg.svd(matrix[:, chosen] * scale[chosen], full_matrices=False)
        known = singular > RIDGE * singular.max(initial=0.0)
        spread = right[known].T / singular[known]
        inner = spread @ spread.T * np.outer(scale[chosen], scale[chosen])
        covariance = np.zeros((self.unknowns.count, self.unknowns.count))
        covariance[np.ix_(chosen, chosen)] = inner
        free = np.zeros((int((~known).sum()), self.unknowns.count))
        free[:, chosen] = right[~known] * scale[chosen]
        data = np.concatenate(rows.slopes) if rows.slopes else matrix[:0]
        return covariance, free, float(np.einsum("ij,jk,ik->", data, covariance, data))


def predict(
    problem: Problem, measured: Measurement, unknowns: Unknowns, response: Response, vector: Array
) -> tuple[Array, Array]:
    """What a model predicts of a measurement (N,), and its derivative by the unknowns (N, p)."""
    points, expression = measured.points, measured.expression
    jets, tables, kept = {}, [], {}
    for jet in expression.jets:
        if jet.field in unknowns.slices:
            jets[jet] = unknowns.value(jet, points, vector)
            table = np.zeros((len(points), unknowns.count))
            table[:, unknowns.slices[jet.field]] = unknowns.table(jet, points)
        else:
            if jet.index not in kept:
                kept[jet.index] = response.jets(points, jet.index)
            number = problem.fields.index(jet.field)
            values, changes = kept[jet.index]
            jets[jet], table = values[:, number], changes[:, :, number]
        tables.append(table)
    known = dict(zip(problem.vocabulary.symbols, points.T, strict=True))
    value, partials = expression.linearised(known, jets)
    slope = np.zeros((len(points), unknowns.count))
    for partial, table in zip(partials, tables, strict=True):
        slope += np.broadcast_to(partial, len(points))[:, None] * table
    return measured.gathered(np.broadcast_to(value, len(points))), measured.gathered(slope)


def _pin_points(problem: Problem) -> list[tuple]:  # type: ignore[type-arg]
    """(term, points, weight of each) of what is known of unknown functions beforehand."""
    found = []
    for term in problem.pins:
        region = term.region
        assert region is not None
        points = region.sample(1 if getattr(region, "is_point", False) else PIN_POINTS, rng=0)
        found.append((term, points, 1.0))
    return found
