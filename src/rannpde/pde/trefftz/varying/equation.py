"""An equation of order two in the plane whose coefficients vary, or that is linearised at a state: the values of its
coefficients, and how fast solutions vary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.exit_times import EXIT_GRID_POINTS
from rannpde.pde.functions import State, Zero
from rannpde.pde.intrinsic import WAVE_DAMPING
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, jets_of
from rannpde.pde.statement.expression import Jet, constant
from rannpde.pde.trapping import turning_amplification
from rannpde.pde.trefftz.geometry import JOINED_ENDS, PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.segments import BoundarySegment

SYMBOL_GRID = round(EXIT_GRID_POINTS**0.5)
"""Points along each axis of the grid at which coefficients are evaluated."""


@dataclass(frozen=True)
class LayerWall:
    """A side of the domain across an axis: its position, the direction ±1 into the domain, and the largest rate at
    which solutions may grow towards it."""

    axis: int
    position: float
    inward: float
    rate: float


@dataclass(frozen=True, eq=False)
class VaryingEquation:
    """Σ a_α(x) ∂^α u = f on a shape made of boxes, with one condition on every segment of its boundary.

    singular : points of the boundary with the exponent λ < 1 of solutions r^λ there
    state : where an equation that is not linear is linearised, so that a_α = ∂F/∂(∂^α u); None for zero
    shift : of the coefficient of u, in units of the diffusion: with it the equation is an implicit step of 1/shift in
        the time of u_t = ± F(u), from the state on
    """

    problem: Problem
    term: Term
    segments: tuple[BoundarySegment, ...]
    singular: tuple[tuple[Array, float], ...] = ()
    state: State | None = None
    shift: float = 0.0

    @property
    def linear(self) -> bool:
        return self.term.expression.linear

    def at(self, state: State) -> VaryingEquation:
        """This equation, linearised at a state."""
        return replace(self, state=state)

    @property
    def bounds(self) -> Array:
        return np.asarray(self.problem.domain.bounds, dtype=float)

    @cached_property
    def length(self) -> float:
        """The length of the boundary."""
        return float(sum(segment.length for segment in self.segments))

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
        here = jets_of(self.state or Zero(1), self.problem.fields, points, jets)
        value, partials = self.term.expression.linearised(self.term.known(points, self.problem.vocabulary), here)
        coefficients = {
            jet.index: np.broadcast_to(np.asarray(partial, dtype=float), (len(points),))
            for jet, partial in zip(jets, partials, strict=True)
        }
        source = -np.broadcast_to(np.asarray(value, dtype=float), (len(points),))
        if self.state is not None:
            source = source + sum(coefficients[jet.index] * here[jet] for jet in jets)
        if self.shift:
            still, more = Jet(self.problem.fields[0], (0, 0)), -self.shift * np.sign(coefficients[2, 0])
            coefficients[0, 0] = coefficients[0, 0] + more
            source = source + more * here[still]
        return coefficients, source

    @property
    def slowed(self) -> VaryingEquation:
        """An implicit step from the state, so short that nothing grows: it has a maximum principle."""
        values, _ = self.coefficients(self.sample_points)
        rates = values.get((0, 0), np.zeros(1)) * np.sign(values[2, 0])
        return replace(self, shift=max(float(rates.max()), 0.0))

    @cached_property
    def sample_grid(self) -> tuple[Array, Array]:
        """A grid (G, G, 2) of points of the bounding box, and which of them (G, G) are inside the domain."""
        axes = [low + (high - low) * (np.arange(SYMBOL_GRID) + 0.5) / SYMBOL_GRID for low, high in self.bounds]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        return grid, np.asarray(self.problem.domain.contains(grid.reshape(-1, 2))).reshape(grid.shape[:2])

    @property
    def sample_points(self) -> Array:
        """The points (M, 2) of the grid inside the domain."""
        grid, inside = self.sample_grid
        return np.asarray(grid[inside])

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
        largest, (_, inside) = [], self.sample_grid
        for axis in range(2):
            roots, table = self.roots(self.sample_points, axis), np.zeros(inside.shape)
            rates = np.abs(roots.imag) * (np.abs(roots.real) <= WAVE_DAMPING * np.abs(roots.imag))
            table[inside] = rates.max(axis=0)
            largest.append(table.max(axis=1 - axis))
        return largest[0], largest[1]

    @cached_property
    def walls(self) -> tuple[LayerWall, ...]:
        """All sides, with the rates of layers.

        Along the other axis solutions are constant or change over its length: between walls along which a flow carries
        a solution, layers have the rate √(b/(ε length)).
        """
        walls = []
        for segment in self.segments:
            points = segment.points((np.arange(SYMBOL_GRID) + 0.5) / SYMBOL_GRID)
            tangent = segment.slopes(np.array([0.5]))[0]
            axis = int(np.abs(tangent[0]) > np.abs(tangent[1]))
            inward = float(np.sign(tangent[0] if axis == 1 else -tangent[1]))  # the domain is on the left
            length, rate = float(np.ptp(self.bounds[1 - axis])), 0.0
            for along in (0.0, 1 / length, -1 / length):
                roots = self.roots(points, axis, along)
                damped = np.abs(roots.real) > WAVE_DAMPING * np.abs(roots.imag)
                rate = max(rate, float(np.where(damped, -inward * roots.real, 0.0).max()))
            walls.append(LayerWall(axis, float(points[0, axis]), inward, rate))
        return tuple(walls)

    @cached_property
    def layers(self) -> Array:
        """The largest rates (2, 2) across each axis towards sides below and above the domain."""
        rates = np.zeros((2, 2))
        for wall in self.walls:
            end = 0 if wall.inward > 0 else 1
            rates[wall.axis, end] = max(rates[wall.axis, end], wall.rate)
        return rates

    @cached_property
    def turning(self) -> float:
        """The factor by which turning points of a flow amplify residuals; 1 where nothing flows."""
        flows = (1, 0) in self.indices or (0, 1) in self.indices
        return turning_amplification(self.problem, self.state or Zero(1)) if flows else 1.0

    @property
    def oscillates(self) -> bool:
        """Whether a side is longer than a wavelength, or than 2π times the thickness of a layer."""
        rates = np.maximum([own.max() for own in self.waves], self.layers.max(axis=1))
        return bool((rates * np.ptp(self.bounds, axis=1) > 2 * np.pi).any())


def varying_equation(problem: Problem, start: State | None = None) -> VaryingEquation | str:
    """The equation of a problem on a shape made of boxes, or the reason why it is none of this kind.

    start : where an equation that is not linear is linearised first; zero unless given
    """
    (term, *others) = problem.interior
    what = "its coefficients vary" if term.expression.linear else "it is not linear"
    if problem.domain.dim != 2:
        return f"{what}, and the domain is not in the plane"
    if len(problem.fields) != 1 or others:
        return f"{what}, and it has several fields"
    if not all(one.expression.linear for one in problem.constraints):
        return "a condition is not linear"
    if problem.kinked or any(one.expression.kinked for one in problem.constraints):
        return f"{what}, and something in it has kinks or jumps"
    if any(one.kind != "boundary" for one in problem.constraints):
        return f"{what}, and it has conditions at single points"
    if max(jet.order for jet in term.expression.jets) != 2:
        return f"{what}, and it is not of order two"
    fields = set(term.expression.symbols)
    partials = zip(term.expression.jets, term.expression.partials, strict=True)
    if any(jet.order == 2 and partial.free_symbols & fields for jet, partial in partials):
        return "it is not linear, and its highest derivatives have coefficients that depend on the solution"
    plain = CanonicalForm(np.eye(2), problem.domain.bounds.mean(axis=1), np.zeros(2), 0.0, 1.0, 0.0)
    boundary = plane_boundary(problem.domain, problem.constraints, plain)
    if isinstance(boundary, str):
        return boundary
    if not all(segment.straight and _along_axis(segment) for segment in boundary.segments):
        return f"{what}, and the domain is not made of boxes"
    if any(jet.order > 1 for segment in boundary.segments for one in segment.terms for jet in one.expression.jets):
        return f"{what}, and a condition is of order two"
    equation = VaryingEquation(problem, term, boundary.segments, _singular_points(boundary), start)
    if len(equation.constants) == len(equation.indices):
        return "its coefficients are constant"
    if not len(equation.sample_points):
        return f"{what}, and the domain is thinner than the grid on which coefficients are sampled"
    values, source = equation.coefficients(equation.sample_points.reshape(-1, 2))
    if not all(np.isfinite(one).all() for one in (*values.values(), source)):
        return f"{what}, and coefficients are not finite everywhere"
    zero = np.zeros(len(source))
    xx, xy, yy = (values.get(index, zero) for index in ((2, 0), (1, 1), (0, 2)))
    definite = 4 * xx * yy - xy**2 > 0
    if not (definite.all() and len(set(np.sign(xx).tolist())) == 1):
        return f"{what}, and it is not elliptic"
    return equation


def _along_axis(segment: BoundarySegment) -> bool:
    """Whether a straight segment is parallel to an axis."""
    slope = np.abs(segment.slopes(np.array([0.5]))[0])
    return bool(slope.min() <= JOINED_ENDS * slope.max())


def _singular_points(boundary: PlaneBoundary) -> tuple[tuple[Array, float], ...]:
    """Where solutions are like r^λ with λ < 1: re-entrant corners, and changes of the kind of condition.

    λ is that of Laplace's equation at an opening ω, π/ω, or half of it where values meet slopes; an operator that is
    not isotropic has another one, which refinement finds.
    """
    points = []
    for number, corner in enumerate(boundary.corners):
        exponent = np.pi / corner.angle / (2 if boundary.kind_changes(number) else 1)
        if exponent < 1 - JOINED_ENDS:
            points.append((boundary.segments[0].form.back(corner.point[None, :])[0], float(exponent)))
    return tuple(points)
