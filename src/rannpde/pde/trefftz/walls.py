"""Linear evolutions with constant coefficients between walls, read from a problem: symbols, conditions, lifts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Ball, Box, SpaceTime
from rannpde.pde.problem.evolution import Component, Evolution, WallRow, constraints_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import constant
from rannpde.pde.trefftz.constant_walls import caloric_walls
from rannpde.pde.trefftz.measures import WallMeasures
from rannpde.pde.trefftz.parts import NoPart, ParticularPart, PolynomialPart

ModalSymbols = dict[tuple[int, int], dict[tuple[int, ...], float]]
"""(row, column) of components → space multi-index → coefficient."""


@dataclass(frozen=True, eq=False)
class Walls:
    """Homogeneous conditions u_n + h u = 0: h for both ends of each axis, or one for a circle; infinite for u = 0.

    lift : the value on all walls that is subtracted first, or for each end of an interval
    """

    box: tuple[tuple[float, float], ...]
    circle: float | None
    lift: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ModalStatement:
    """An evolution that eigenfunctions solve: its symbols, its walls, and what is subtracted from each field."""

    evolution: Evolution
    walls: Walls
    symbols: ModalSymbols
    lift: tuple[ParticularPart, ...]


def modal_statement(problem: Problem) -> ModalStatement | str:
    """The problem as one that eigenfunctions solve, or the reason why it is not."""
    domain = problem.domain
    assert isinstance(domain, SpaceTime)
    if problem.obstacles:
        return problem.obstacles[0]
    evolution = problem.forms[False]
    space = domain.space
    if not isinstance(space, Box | Ball) or space.dim > (2 if isinstance(space, Ball) else 3):
        return "space is neither an interval, a box in two or three dimensions nor a disc"
    if evolution.constraints or evolution.algebraic or problem.pairings or problem.periodic:
        return "it has periodic sides, or fields without a time derivative"
    if any(term.kind not in ("initial", "boundary") for term in problem.constraints):
        return "conditions hold inside the domain"
    symbols = _symbols(evolution, isinstance(space, Ball) and space.dim > 1)
    if isinstance(symbols, str):
        return symbols
    measured = _measured(evolution, symbols)
    stated = [_walls(evolution, name, measured is not None) for name in problem.fields]
    for of_field in stated:
        if isinstance(of_field, str):
            return of_field
    walls = [of_field for of_field in stated if isinstance(of_field, Walls)]
    if any((of_field.box, of_field.circle) != (walls[0].box, walls[0].circle) for of_field in walls):
        return "the fields have different conditions"
    if set(evolution.initial) != set(evolution.components):
        return "initial values are not given by formulas"
    if any(term.expression.kinked for term in problem.constraints):
        return "initial values have kinks or jumps"
    lift = tuple(_lift(of_field, space.bounds) for of_field in walls) if measured is None else (measured,)
    return ModalStatement(evolution, walls[0], symbols, lift)


def _measured(evolution: Evolution, symbols: ModalSymbols) -> WallMeasures | None:
    """The solution for constant values on walls that initial values do not have, where one field diffuses."""
    component = evolution.components[0]
    if len(evolution.components) != 1 or component not in evolution.initial:
        return None
    return caloric_walls(
        evolution.problem, symbols.get((0, 0), {}), lambda points: evolution.initial_values(component, points)
    )


def _symbols(evolution: Evolution, round_space: bool) -> ModalSymbols | str:
    symbols: ModalSymbols = {}
    for row, component in enumerate(evolution.components):
        above = evolution.above(component)
        if above is not None:
            symbols[row, evolution.components.index(above)] = {(0,) * evolution.domain.space.dim: 1.0}
            continue
        source = evolution.rates[component.field].source
        if not source.linear or source.kinked:
            return "it is not linear"
        if evolution.clock in source.formula.free_symbols:
            return "the equation varies in time"
        for jet, partial in zip(source.jets, source.partials, strict=True):
            value = constant(partial)
            if value is None or not np.isfinite(value):
                return "a coefficient varies"
            index = tuple(jet.index[1:])
            if value and any(order % 2 for order in index):
                return "there are derivatives of odd order in space, such as advection"
            if value and sum(index) > 2:
                return "there are derivatives of higher order in space"
            if value:
                symbols.setdefault((row, evolution.components.index(Component.of(jet))), {})[index] = value
    for symbol in symbols.values():
        if round_space and symbol.get((2, 0), 0.0) != symbol.get((0, 2), 0.0):
            return "diffusion is not isotropic"
    return symbols


def _walls(evolution: Evolution, name: str, measured: bool) -> Walls | str:
    """The conditions of a field, or the reason why eigenfunctions do not satisfy them.

    measured : whether ``caloric_walls`` has the values on walls, which may then differ
    """
    space = evolution.domain.space
    terms = evolution.boundary(name)
    if isinstance(space, Ball) and space.dim > 1:
        return _circle(evolution, name)
    rows = [WallRow.of(evolution, term) for term in terms]
    box, values = [], []
    for axis in range(space.dim):
        ends = []
        for normal in (-1.0, 1.0):
            at_end = [row for row in rows if row is not None and row.axis == axis and row.normal == normal]
            if len(at_end) != 1 or None in rows:
                return "walls have other conditions than one of values and normal derivatives each"
            coefficients = at_end[0].row.coefficients
            if set(coefficients) - {0, 1}:
                return "walls have conditions of higher order"
            value, slope = coefficients.get(0, 0.0), normal * coefficients.get(1, 0.0)
            height = np.inf if slope == 0 else value / slope
            if height < 0:
                return "a wall feeds what leaves it: u_n + h u = 0 with h < 0"
            given = constant(at_end[0].value)
            if given is None or (given and not np.isinf(height)):
                return "conditions on walls vary, or fluxes are given"
            ends.append(height)
            values.append(given / value if given else 0.0)
        box.append((ends[0], ends[1]))
    if measured:
        return Walls(tuple(box), None, tuple(values))
    if any(values) and space.dim > 1 and len(set(values)) > 1:
        return "values on walls differ"
    if any(values) and not all(np.isinf(h) for pair in box for h in pair):
        return "values are given beside fluxes"
    return Walls(tuple(box), None, tuple(values))


def _circle(evolution: Evolution, name: str) -> Walls | str:
    conditions = constraints_of(evolution, name, 4)
    if len(conditions) != 1:
        return "the circle has other conditions than one"
    condition = conditions[0]
    value, given = condition.coefficients.get((0, 0)), constant(condition.value)
    slopes = [condition.coefficients.get(index) for index in ((1, 0), (0, 1))]
    if given is None or any(sum(index) > 1 for index in condition.coefficients):
        return "the condition on the circle varies"
    if slopes[0] is None and slopes[1] is None and value is not None and np.ptp(value) == 0:
        return Walls((), np.inf, (given / float(value[0]),))
    if value is not None or slopes[0] is None or slopes[1] is None or given:
        return "the condition on the circle is neither u = c nor a flux of zero"
    across = slopes[0] * condition.normals[:, 0] + slopes[1] * condition.normals[:, 1]
    along = slopes[0] * condition.normals[:, 1] - slopes[1] * condition.normals[:, 0]
    if np.abs(along).max() > 1e-12 * np.abs(across).max():
        return "the condition on the circle is neither u = c nor a flux of zero"
    return Walls((), 0.0, (0.0,))


def _lift(walls: Walls, bounds: Array) -> ParticularPart:
    """The constant, or the linear function of an interval, that has the values of the walls; harmonic in any case."""
    if not any(walls.lift):
        return NoPart()
    d = len(bounds)
    powers = np.zeros((2 if d == 1 else 1, 1 + d))
    if d > 1:
        return PolynomialPart(powers, np.array(walls.lift[:1]), np.zeros(1 + d), 1.0)
    powers[1, 1] = 1.0
    left, right = walls.lift
    origin = np.array([0.0, bounds[0, 0]])
    return PolynomialPart(powers, np.array([left, right - left]), origin, float(bounds[0, 1] - bounds[0, 0]))
