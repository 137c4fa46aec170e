"""Rows of the regression: measured minus predicted values over the noise, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.pde.forward_model import Response
from rannpde.pde.functions import State
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.problem.measurements import Measurement
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet
from rannpde.pde.tolerance import CONFIDENCE, MUCH_SMALLER, RESIDUAL_TOLERANCE


def huber_threshold(efficiency: float) -> float:
    """Standard deviations beyond which residuals count linearly, for an efficiency at normal noise.

    The efficiency is that of Huber's estimate of a mean, relative to least squares (Huber, Ann. Math. Statist. 35,
    1964).

    >>> round(huber_threshold(0.95), 3)
    1.345
    """
    normal = NormalDist()

    def missed(k: float) -> float:
        inside = 2 * normal.cdf(k) - 1
        return efficiency - inside**2 / (inside - 2 * k * normal.pdf(k) + k**2 * (1 - inside))

    return float(brentq(missed, MUCH_SMALLER, 1 / MUCH_SMALLER))


HUBER = huber_threshold(CONFIDENCE)
"""Standard deviations beyond which residuals count linearly."""
CONSTRAINT_POINTS = 48
"""Points of a region at which a condition on an unknown function is imposed."""
ZERO_FUNCTION = 1e-12
"""A function that is nowhere larger comes from a guess of 0, and has no size yet."""


@dataclass(frozen=True)
class Noise:
    """Standard deviation of each set of measurements, relative noise within a set, and which of them are estimated."""

    scales: tuple[float, ...]
    shapes: tuple[Array, ...]
    estimated: tuple[bool, ...]

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Noise:
        """The noise that is given; where it is to be estimated, 1 % of the spread of the values as a first guess."""
        scales, shapes, estimated = [], [], []
        for one in measurements:
            free = one.noise is None or not one.noise.any()
            spread = float(np.std(one.values)) or float(np.abs(one.values).max()) or 1.0
            scales.append(RESIDUAL_TOLERANCE * spread if free else 1.0)
            shapes.append(np.ones(len(one.values)) if free or one.noise is None else one.noise)
            estimated.append(free)
        return cls(tuple(scales), tuple(shapes), tuple(estimated))


@dataclass(frozen=True, eq=False)
class DataRows:
    """Residuals over noise (N,), and the derivatives of the predictions over noise (N, p), set by set.

    constraint_residuals, constraint_slopes : the same for the conditions on unknown functions
    responses : responses of the models
    """

    residuals: tuple[Array, ...]
    slopes: tuple[Array, ...]
    constraint_residuals: Array
    constraint_slopes: Array
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
        """Whether the evaluation of the model succeeded everywhere."""
        return all(np.isfinite(part).all() for part in (*self.residuals, *self.slopes))

    def cost(self) -> float:
        """Σ r², or Huber's loss."""
        total = float(np.square(self.constraint_residuals).sum())
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
        return np.concatenate([*right, self.constraint_residuals]), np.concatenate([*matrix, self.constraint_slopes])

    def moved(self, change: Array) -> DataRows:
        """The rows after a small change of the unknowns (p,), by the derivatives."""
        left = tuple(r - s @ change for r, s in zip(self.residuals, self.slopes, strict=True))
        return replace(
            self, residuals=left, constraint_residuals=self.constraint_residuals - self.constraint_slopes @ change
        )

    def scaled(self, factors: Sequence[float]) -> DataRows:
        """The rows of each set multiplied by a factor, as for another noise."""
        residuals = tuple(f * r for f, r in zip(factors, self.residuals, strict=True))
        return replace(
            self, residuals=residuals, slopes=tuple(f * s for f, s in zip(factors, self.slopes, strict=True))
        )


Known = Callable[[Jet, Array], Array]
"""A derivative of an unknown at points (M, n): (M,)."""


def predicted(problem: Problem, measured: Measurement, function: State, known: Known) -> Array:
    """The prediction of a measurement (N,) by fields and unknowns."""
    points, jets = measured.points, dict[Jet, Array]()
    for jet in measured.expression.jets:
        if jet.field in problem.fields:
            jets[jet] = function.derivative(points, jet.index)[:, problem.fields.index(jet.field)]
        else:
            jets[jet] = known(jet, points)
    value = measured.expression.value(problem.vocabulary.at(points), jets)
    return measured.gathered(np.broadcast_to(value, len(points)))


def predict(
    problem: Problem, measured: Measurement, unknowns: Unknowns, response: Response, vector: Array
) -> tuple[Array, Array]:
    """The prediction of a measurement (N,) by a model, and its derivative by the unknowns (N, p)."""
    points, expression = measured.points, measured.expression
    jets, tables, responses_of = {}, [], {}
    for jet in expression.jets:
        if jet.field in unknowns.slices:
            jets[jet] = unknowns.value(jet, points, vector)
            table = np.zeros((len(points), unknowns.count))
            table[:, unknowns.slices[jet.field]] = unknowns.table(jet, points)
        else:
            if jet.index not in responses_of:
                responses_of[jet.index] = response.jets(points, jet.index)
            number = problem.fields.index(jet.field)
            values, changes = responses_of[jet.index]
            jets[jet], table = values[:, number], changes[:, :, number]
        tables.append(table)
    known = problem.vocabulary.at(points)
    value, partials = expression.linearised(known, jets)
    slope = np.zeros((len(points), unknowns.count))
    for partial, table in zip(partials, tables, strict=True):
        slope += np.broadcast_to(partial, len(points))[:, None] * table
    return measured.gathered(np.broadcast_to(value, len(points))), measured.gathered(slope)


def constraint_rows(problem: Problem, unknowns: Unknowns, vector: Array, tolerance: float) -> tuple[Array, Array]:
    """Residuals and derivatives of the conditions on unknown functions, over their size times a tolerance."""
    residuals, slopes = [np.empty(0)], [np.empty((0, unknowns.count))]
    for term in problem.pins:
        assert term.region is not None
        points = term.region.sample(1 if getattr(term.region, "is_point", False) else CONSTRAINT_POINTS, rng=0)
        jets = {jet: unknowns.value(jet, points, vector) for jet in term.expression.jets}
        value, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        slope = np.zeros((len(points), unknowns.count))
        for jet, partial in zip(term.expression.jets, partials, strict=True):
            table = unknowns.table(jet, points)
            slope[:, unknowns.slices[jet.field]] += np.broadcast_to(partial, len(points))[:, None] * table
        spread = tolerance * _size(unknowns, term.expression.jets[0].field, vector)
        residuals.append(-np.broadcast_to(value, len(points)) / spread)
        slopes.append(slope / spread)
    return np.concatenate(residuals), np.concatenate(slopes)


def _size(unknowns: Unknowns, name: str, vector: Array) -> float:
    """The largest value of an unknown function, or 1 where it is still zero; at the conditions themselves it may
    vanish."""
    own = unknowns.values(vector)[name]
    size = abs(own) if isinstance(own, float) else float(np.abs(own(own.basis.cell.points)).max())
    return size if size > ZERO_FUNCTION else 1.0
