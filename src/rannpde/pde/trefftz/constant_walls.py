"""Boxes with constant values on some walls and insulation at the others, read from a problem, and their solutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.domains.domain import Box, SpaceTime
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import constant
from rannpde.pde.trefftz.axis_measures import AxisWalls
from rannpde.pde.trefftz.measures import WallMeasures, wall_measures
from rannpde.pde.trefftz.operator import Symbol, linear_equations


def stationary_walls(problem: Problem) -> WallMeasures | None:
    """The solution of Σ a_i ∂_i² u = κ u on a box for constant values on its walls; None for other problems."""
    box = problem.domain
    if not isinstance(box, Box) or box.dim not in (2, 3) or len(problem.fields) != 1 or problem.free_constants:
        return None
    equations = linear_equations(problem)
    if isinstance(equations, str) or len(equations) != 1 or equations[0].load != 0:
        return None
    symbol = equations[0].symbols.get(problem.fields[0], {})
    sign = -1.0 if any(value < 0 for index, value in symbol.items() if sum(index) == 2) else 1.0
    axes = _axes(problem, box.bounds, {index: sign * value for index, value in symbol.items()}, 0)
    if axes is None or not any(walls.open for walls in axes):
        return None
    return wall_measures(axes, -sign * symbol.get((0,) * box.dim, 0.0), None)


def caloric_walls(problem: Problem, symbol: Symbol, initial: Callable[[Array], Array]) -> WallMeasures | None:
    """The solution of u_t = Σ a_i ∂_i² u - κ u for constant values on walls, where initial values differ from them.

    symbol : space multi-index → coefficient; initial : function of points (M, d). It begins with the constant that
    initial values have on the walls; None where they vary along them, or where walls and initial values agree.
    """
    domain = problem.domain
    assert isinstance(domain, SpaceTime)
    if not isinstance(domain.space, Box):
        return None
    axes = _axes(problem, domain.space.bounds, symbol, 1)
    if axes is None or not any(walls.open for walls in axes):
        return None
    given = [value for walls in axes for value in (walls.low, walls.high) if np.isfinite(value)]
    at_walls = initial(_on_walls(axes))
    size = max(float(np.abs(at_walls).max()), *map(abs, given))
    if np.ptp(at_walls) > 1e-12 * size or np.abs(np.array(given) - at_walls[0]).max() <= 1e-12 * size:
        return None
    return wall_measures(axes, -symbol.get((0,) * len(axes), 0.0), float(at_walls.mean()), domain.time[0])


def _axes(problem: Problem, bounds: Array, symbol: Symbol, offset: int) -> tuple[AxisWalls, ...] | None:
    """Both walls of every axis; None unless diffusion is along the axes and each wall has a value or is insulated.

    offset : coordinates before those of space
    """
    dim = len(bounds)
    units = [tuple(2 * (j == k) for j in range(dim)) for k in range(dim)]
    if set(symbol) - {*units, (0,) * dim} or any(not symbol.get(unit, 0.0) > 0 for unit in units):
        return None
    if symbol.get((0,) * dim, 0.0) > 0:
        return None
    values: dict[tuple[int, float], float] = {}
    for term in problem.constraints:
        if term.kind == "initial":
            continue
        wall = _wall(problem, term)
        if wall is None or (wall[0] - offset, wall[1]) in values:
            return None
        values[wall[0] - offset, wall[1]] = wall[2]
    if len(values) != 2 * dim:
        return None
    rows = zip(range(dim), bounds.tolist(), units, strict=True)
    return tuple(
        AxisWalls(low, high - low, symbol[unit], values[axis, -1.0], values[axis, 1.0])
        for axis, (low, high), unit in rows
    )


def _wall(problem: Problem, term: Term) -> tuple[int, float, float] | None:
    """Axis, outward direction and value of a wall, infinite where it is insulated; None for other conditions."""
    side, expression, words = term.region, term.expression, problem.vocabulary
    if not isinstance(side, FlatSide) or term.kind != "boundary" or expression.kinked or not expression.linear:
        return None
    known = dict.fromkeys(words.normals, 0.0) | {words.normals[side.axis]: float(side.outward)}
    coefficients: Mapping[tuple[int, ...], float | None] = {
        jet.index: constant(partial.subs(known))
        for jet, partial in zip(expression.jets, expression.partials, strict=True)
    }
    given = constant(-expression.formula.subs(dict.fromkeys(expression.symbols, 0)).subs(known))
    acting = {index: value for index, value in coefficients.items() if value != 0.0}
    if given is None or len(acting) != 1 or None in acting.values():
        return None
    (index, factor), *_ = acting.items()
    if not any(index):
        return side.axis, float(side.outward), float(given / factor)  # type: ignore[operator]
    across = tuple(int(k == side.axis) for k in range(len(index)))
    return (side.axis, float(side.outward), inf) if index == across and given == 0 else None


def _on_walls(axes: tuple[AxisWalls, ...], count: int = 64) -> Array:
    """Points (M, d) on the walls that have values, ``count`` on each."""
    rng = np.random.default_rng(0)
    low, length = (np.array([getattr(walls, name) for walls in axes]) for name in ("start", "length"))
    samples = []
    for axis, walls in enumerate(axes):
        for position, value in ((walls.start, walls.low), (walls.start + walls.length, walls.high)):
            if np.isfinite(value):
                points = low + length * rng.uniform(size=(count, len(axes)))
                points[:, axis] = position
                samples.append(points)
    return np.concatenate(samples)
