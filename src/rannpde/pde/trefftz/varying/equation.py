"""A linear equation of order two in the plane whose coefficients vary: their values, and how fast solutions vary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import is_box
from rannpde.pde.functions import Zero
from rannpde.pde.intrinsic import TURNING_SAMPLES, WAVE_DAMPING, turning_amplification
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import constant
from rannpde.pde.trefftz.geometry import plane_boundary
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.segments import BoundarySegment

SYMBOL_GRID = round(TURNING_SAMPLES**0.5)
"""Points along each axis of the grid at which coefficients are evaluated."""


@dataclass(frozen=True, eq=False)
class VaryingEquation:
    """Σ a_α(x) ∂^α u = f on a box, with one condition on every segment of its boundary."""

    problem: Problem
    term: Term
    segments: tuple[BoundarySegment, ...]

    @property
    def bounds(self) -> Array:
        return np.asarray(self.problem.domain.bounds, dtype=float)

    @cached_property
    def indices(self) -> tuple[MultiIndex, ...]:
        """The derivatives of the equation."""
        return tuple(jet.index for jet in self.term.expression.jets)

    @cached_property
    def constants(self) -> dict[MultiIndex, float]:
        """The coefficients that do not vary."""
        known = {i: constant(p) for i, p in zip(self.indices, self.term.expression.partials, strict=True)}
        return {index: value for index, value in known.items() if value is not None}

    def coefficients(self, points: Array) -> tuple[dict[MultiIndex, Array], Array]:
        """All coefficients and the source, each (M,), at points (M, 2)."""
        jets = self.term.expression.jets
        nothing = {jet: np.zeros(len(points)) for jet in jets}
        value, partials = self.term.expression.linearised(self.term.known(points, self.problem.vocabulary), nothing)
        coefficients = {
            jet.index: np.broadcast_to(np.asarray(partial, dtype=float), (len(points),))
            for jet, partial in zip(jets, partials, strict=True)
        }
        return coefficients, -np.broadcast_to(np.asarray(value, dtype=float), (len(points),))

    @cached_property
    def sample_points(self) -> Array:
        """A grid (G, G, 2) of points inside the box."""
        axes = [low + (high - low) * (np.arange(SYMBOL_GRID) + 0.5) / SYMBOL_GRID for low, high in self.bounds]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    def roots(self, points: Array, axis: int, along: float = 0.0) -> Array:
        """The roots λ (2, M) of the symbol at points (M, 2): solutions there vary like exp(λ x + μ y), where x is the
        coordinate of an axis and μ = ``along`` the given rate along the other one."""
        values, _ = self.coefficients(points)
        powers = [np.zeros(len(points)) for _ in range(3)]
        for index, value in values.items():
            powers[index[axis]] = powers[index[axis]] + value * along ** index[1 - axis]
        c, b, a = powers
        root = np.sqrt((b**2 - 4 * a * c).astype(complex))
        return np.asarray(np.stack([-b - root, root - b]) / (2 * a))

    @cached_property
    def waves(self) -> tuple[Array, Array]:
        """The largest wavenumbers (G,) of undamped waves along each axis, by their position on it."""
        largest = []
        for axis in range(2):
            roots = self.roots(self.sample_points.reshape(-1, 2), axis)
            rates = np.abs(roots.imag) * (np.abs(roots.real) <= WAVE_DAMPING * np.abs(roots.imag))
            largest.append(rates.max(axis=0).reshape(SYMBOL_GRID, SYMBOL_GRID).max(axis=1 - axis))
        return largest[0], largest[1]

    @cached_property
    def layers(self) -> Array:
        """The largest rates (2, 2) at which solutions may grow across each axis towards its lower and its upper side.

        Along the other axis they are constant or change over its length: between walls along which a flow carries a
        solution, layers have the rate √(b/(ε length)).
        """
        rates = np.zeros((2, 2))
        for axis in range(2):
            length = float(np.ptp(self.bounds[1 - axis]))
            for end, direction in ((0, -1.0), (1, 1.0)):
                side = np.take(self.sample_points, -end, axis=axis)
                side[:, axis] = self.bounds[axis, end]
                for along in (0.0, 1 / length, -1 / length):
                    roots = self.roots(side, axis, along)
                    damped = np.abs(roots.real) > WAVE_DAMPING * np.abs(roots.imag)
                    rates[axis, end] = max(rates[axis, end], np.where(damped, direction * roots.real, 0.0).max())
        return rates

    @cached_property
    def turning(self) -> float:
        """The factor by which turning points of a flow amplify what is missed; 1 where nothing flows."""
        flows = (1, 0) in self.indices or (0, 1) in self.indices
        return turning_amplification(self.problem, Zero(1)) if flows else 1.0

    @property
    def oscillates(self) -> bool:
        """Whether more than a wave stands along a side, or layers are thinner than a side by as much."""
        rates = np.maximum([own.max() for own in self.waves], self.layers.max(axis=1))
        return bool((rates * np.ptp(self.bounds, axis=1) > 2 * np.pi).any())


def varying_equation(problem: Problem) -> VaryingEquation | str:
    """The equation of a problem on a box, or the reason why it is none of this kind."""
    if problem.domain.dim != 2 or not is_box(problem.domain):
        return "its coefficients vary, and the domain is no box in the plane"
    if len(problem.fields) != 1 or len(problem.interior) != 1:
        return "its coefficients vary, and it has several fields"
    (term,) = problem.interior
    if not term.expression.linear:
        return "it is not linear"
    if problem.kinked or any(one.expression.kinked for one in problem.constraints):
        return "its coefficients vary, and something in it has kinks or jumps"
    if any(one.kind != "boundary" for one in problem.constraints):
        return "its coefficients vary, and it has conditions at single points"
    if max(jet.order for jet in term.expression.jets) != 2:
        return "its coefficients vary, and it is not of order two"
    plain = CanonicalForm(np.eye(2), problem.domain.bounds.mean(axis=1), np.zeros(2), 0.0, 1.0, 0.0)
    boundary = plane_boundary(problem.domain, problem.constraints, plain)
    if isinstance(boundary, str):
        return boundary
    if any(jet.order > 1 for segment in boundary.segments for one in segment.terms for jet in one.expression.jets):
        return "its coefficients vary, and a condition is of order two"
    equation = VaryingEquation(problem, term, boundary.segments)
    if len(equation.constants) == len(equation.indices):
        return "its coefficients are constant"
    values, source = equation.coefficients(equation.sample_points.reshape(-1, 2))
    if not all(np.isfinite(one).all() for one in (*values.values(), source)):
        return "its coefficients vary, and are not finite everywhere"
    zero = np.zeros(SYMBOL_GRID**2)
    xx, xy, yy = (values.get(index, zero) for index in ((2, 0), (1, 1), (0, 2)))
    definite = 4 * xx * yy - xy**2 > 0
    if not (definite.all() and len(set(np.sign(xx).tolist())) == 1):
        return "its coefficients vary, and it is not elliptic"
    return equation
