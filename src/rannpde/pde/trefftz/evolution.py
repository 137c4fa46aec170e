"""Linear evolutions with constant coefficients between walls: which eigenfunctions, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import Ball, SpaceTime
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import GAIN, SAME_SOLUTION
from rannpde.pde.trefftz.box_modes import AxisModes, BoxModes
from rannpde.pde.trefftz.disc_modes import DiscModes
from rannpde.pde.trefftz.measures import WallMeasures
from rannpde.pde.trefftz.modes import SpatialModes
from rannpde.pde.trefftz.parts import ParticularPart
from rannpde.pde.trefftz.walls import ModalStatement, ModalSymbols, Walls, modal_statement

MOST_EIGENFUNCTIONS = {1: 2048, 2: 40_000, 3: 400_000}
"""Eigenfunctions at most, by the dimension of space: with more, other methods are faster."""
FIRST_COUNT = 12
"""Eigenfunctions of an axis that are tried first."""
FIRST_RADIUS = FIRST_COUNT * np.pi / 2
"""α radius of the last eigenfunction of a disc that is tried first: FIRST_COUNT half waves along a diameter."""
LINES = 12
"""Lines along each axis on which it is tried how many eigenfunctions the axis needs."""


@dataclass(frozen=True, eq=False)
class ModalProblem:
    """An evolution in eigenfunctions: M(w), initial values and loads."""

    statement: ModalStatement

    @property
    def evolution(self) -> Evolution:
        return self.statement.evolution

    @property
    def walls(self) -> Walls:
        return self.statement.walls

    @property
    def symbols(self) -> ModalSymbols:
        return self.statement.symbols

    @property
    def lift(self) -> tuple[ParticularPart, ...]:
        return self.statement.lift

    @property
    def measured(self) -> WallMeasures | None:
        """The part that solves the equation with the values of the walls and jumps at the start, where there is one."""
        return self.lift[0] if isinstance(self.lift[0], WallMeasures) else None

    @property
    def domain(self) -> SpaceTime:
        return self.evolution.domain

    @cached_property
    def shown(self) -> Array:
        """The components that are the fields themselves."""
        names = self.evolution.problem.fields
        return np.array([self.evolution.components.index(Component(name, 0)) for name in names])

    @property
    def diffusive(self) -> bool:
        """Whether a maximum principle holds: one field, first order in time, diffusion, no growth."""
        own = self.symbols.get((0, 0), {})
        return (
            len(self.evolution.components) == 1
            and own.get((0,) * self.domain.space.dim, 0.0) <= 0
            and all(sum(index) == 0 or (sum(index) == 2 and value > 0) for index, value in own.items())
        )

    @cached_property
    def jumps(self) -> bool:
        """Whether something that diffuses begins with other values than its walls have: no method resolves it."""
        if not self.diffusive or not any(np.isinf(h) for h in (*np.ravel(self.walls.box), self.walls.circle or 0.0)):
            return False
        space = self.domain.space
        inside = np.abs(self.initial(space.sample(64, rng=0))).max()
        sides = [side for side in space.sides.values() if self._valued(side)]
        at_walls = [np.abs(self.initial(side.sample(64, rng=0))).max() for side in sides]
        return bool(max(at_walls, default=0.0) > SAME_SOLUTION * inside)

    def _valued(self, side: Side) -> bool:
        if self.walls.circle is not None or not isinstance(side, FlatSide):
            return self.walls.circle == np.inf
        return bool(np.isinf(self.walls.box[side.axis][side.outward > 0]))

    def slowest(self, frequency: float) -> float:
        """The least |s| of waves with this |w| along one axis, up to the rates of all others."""
        size = len(self.evolution.components)
        matrices = np.zeros((self.domain.space.dim, size, size))
        for (row, column), symbol in self.symbols.items():
            for index, value in symbol.items():
                for axis in range(len(matrices)):
                    own = index[axis]
                    matrices[axis, row, column] += value * (-(frequency**2)) ** (own // 2) if own == sum(index) else 0.0
        return max(float(np.abs(np.linalg.eigvals(matrices)).min()), 1e-300)

    def matrices(self, modes: SpatialModes) -> Array:
        """M(w) (N, J, J)."""
        size = len(self.evolution.components)
        matrices = np.zeros((modes.count, size, size))
        for (row, column), symbol in self.symbols.items():
            if isinstance(modes, DiscModes):
                laplacian = symbol.get((2, 0), 0.0)
                matrices[:, row, column] = symbol.get((0, 0), 0.0) - laplacian * modes.negative_laplacian
                continue
            for index, value in symbol.items():
                multiplier = modes.multiplier(index)
                assert multiplier is not None
                matrices[:, row, column] += value * multiplier
        return matrices

    def modes(self, tol: float, rng: np.random.Generator) -> Iterator[SpatialModes]:
        """Eigenfunctions, more and more of them, beginning with as many as single lines need."""
        space = self.domain.space
        most = MOST_EIGENFUNCTIONS[space.dim]
        if self.walls.circle is not None:
            reach = FIRST_RADIUS if self.jumps else self._reach(tol)
            while reach <= self._farthest:
                yield self._disc(reach)
                reach *= np.sqrt(2)
            return
        counts = [self._count(axis, tol, rng) for axis in range(space.dim)]
        if np.prod(counts) > most:  # they are not resolved: as many as are allowed
            counts = [max(int(count * (most / np.prod(counts)) ** (1 / space.dim)), 1) for count in counts]
        while np.prod(counts) <= most:
            yield BoxModes(tuple(self._axis(axis, count) for axis, count in enumerate(counts)))
            counts = [ceil(2 ** (1 / space.dim) * count) for count in counts]  # twice as many of them

    def resolved(self, tol: float, rng: np.random.Generator) -> bool:
        """Whether eigenfunctions converge fast enough: initial values suit the walls with all their derivatives."""
        if self.walls.circle is not None:
            return self._reach(tol) < self._farthest
        counts = [self._count(axis, tol, rng) for axis in range(self.domain.space.dim)]
        return bool(np.prod(counts) <= MOST_EIGENFUNCTIONS[self.domain.space.dim])

    def _axis(self, axis: int, count: int) -> AxisModes:
        low, high = self.domain.space.bounds[axis].tolist()
        return AxisModes.between((low, high), self.walls.box[axis], count)

    def _count(self, axis: int, tol: float, rng: np.random.Generator) -> int:
        """Eigenfunctions that one axis of a box needs."""
        starts = self.domain.space.sample(LINES, rng=rng, method="sobol")
        stops = starts.copy()
        starts[:, axis], stops[:, axis] = self.domain.space.bounds[axis]
        return max(int(self._on_lines(starts, stops, self.walls.box[axis], tol).max()) + 2, 4)

    def _reach(self, tol: float) -> float:
        """α radius that a disc needs, by the decay of coefficients."""
        reach, most = FIRST_RADIUS, self._farthest
        while reach < most:
            checkpoint()
            modes = self._disc(reach)
            nodes = modes.nodes()
            given = np.concatenate([self.initial(nodes), self.load(nodes)], axis=1)
            sizes = np.abs([modes.projected(column) for column in given.T])
            last = np.sqrt(modes.negative_laplacian) * modes.radius > reach / np.sqrt(2)
            largest = np.maximum(sizes.max(axis=1), 1e-300)
            if (sizes[:, last].max(axis=1, initial=0.0) <= SAME_SOLUTION * tol * largest).all():
                return reach
            reach *= np.sqrt(2)
        return most

    @cached_property
    def _turns(self) -> int | None:
        """The highest m of cos mθ in initial values and loads on a disc; None where there is no end of them."""
        space, count = self.domain.space, 4 * ceil(self._reach_of_all)
        angles = np.arange(count) * 2 * np.pi / count
        assert isinstance(space, Ball)
        arrows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        radii = float(space.radius) * np.linspace(0.0, 1.0, LINES + 1)[1:]
        points = np.asarray(space.centre) + (radii[:, None, None] * arrows).reshape(-1, 2)
        given = np.concatenate([self.initial(points), self.load(points)], axis=1).T.reshape(-1, count)
        sizes = np.abs(np.fft.rfft(given, axis=1)).max(axis=0)
        above = np.flatnonzero(sizes > 100 * np.finfo(float).eps * sizes.max(initial=0.0))
        return None if above.max(initial=0) > count // 4 else int(above.max(initial=0))

    @property
    def _reach_of_all(self) -> float:
        """α radius of the last eigenfunction of a disc, of all turns, by Weyl's law of their number."""
        return 2 * float(np.sqrt(MOST_EIGENFUNCTIONS[2] / 8))  # radial functions cost more than cosines

    @property
    def _farthest(self) -> float:
        """The same; where few turns count there are fewer functions, and as large a table of them reaches farther."""
        every = self._reach_of_all
        return every if self._turns is None else max(every, float(np.sqrt(np.pi * every**3 / 8 / (self._turns + 1))))

    def _disc(self, reach: float) -> DiscModes:
        space, end = self.domain.space, self.walls.circle
        assert isinstance(space, Ball)
        assert end is not None
        return DiscModes.below(np.asarray(space.centre), float(space.radius), end, reach, self._turns)

    def _on_lines(self, starts: Array, stops: Array, ends: tuple[float, float], tol: float) -> Array:
        """Cosines or sines that initial values and loads need on each of the lines, by the decay of coefficients."""
        duration, dim = self.domain.time[1] - self.domain.time[0], self.domain.space.dim
        lengths = np.linalg.norm(stops - starts, axis=1)
        scaled = [h if np.isinf(h) else h * float(lengths.mean()) for h in ends]
        count = FIRST_COUNT
        while True:
            checkpoint()
            own = AxisModes.between((0.0, 1.0), scaled, count)
            nodes, weights = own.rule
            points = (starts[:, None] + nodes[:, None] * (stops - starts)[:, None]).reshape(-1, dim)
            matrix = own.values(nodes, 0) * weights[:, None]

            def sizes(values: Array, table: Array = matrix) -> Array:
                """Coefficients (components, lines, K)."""
                return np.abs(np.einsum("qk,lqj->jlk", table, values.reshape(len(starts), len(table), -1)))

            coefficients, loads = [sizes(self.initial(points))], self.load(points)
            if loads.any():
                acting = [min(duration, 1 / self.slowest(float(w / lengths.min()))) for w in own.frequencies]
                coefficients.append(sizes(loads) * acting)
            every = np.concatenate(coefficients)
            largest = np.maximum(every.max(axis=(1, 2), keepdims=True), 1e-300)
            above = (every > SAME_SOLUTION * tol * largest).any(axis=0)
            needed = np.where(above.any(axis=1), count - np.argmax(above[:, ::-1], axis=1), 0)
            if needed.max() <= GAIN * count or count > MOST_EIGENFUNCTIONS[dim] ** (1 / dim):
                return needed
            count *= 2

    def initial(self, points: Array) -> Array:
        """Initial values of the components (M, J) at points (M, d) of space, without the lift."""
        timed = np.concatenate([np.full((len(points), 1), self.domain.time[0]), points], axis=1)
        still = (0,) * timed.shape[1]
        values = []
        for component in self.evolution.components:
            value = self.evolution.initial_values(component, points)
            if component.level == 0:
                number = self.evolution.problem.fields.index(component.field)
                value = value - self.lift[number].derivative(timed, still)
            values.append(value)
        return np.stack(values, axis=1)

    def load(self, points: Array) -> Array:
        """The constant part of the rates (M, J), with what the lift adds."""
        loads = np.zeros((len(points), len(self.evolution.components)))
        timed = np.concatenate([np.full((len(points), 1), self.domain.time[0]), points], axis=1)
        known = self.evolution.known(self.domain.time[0], points)
        for name, rate in self.evolution.rates.items():
            last = Component(name, self.evolution.orders[name] - 1)
            row = self.evolution.components.index(last)
            formula = rate.source.formula.subs(dict.fromkeys(rate.source.symbols, 0))
            loads[:, row] = self.evolution.values([formula], known)[0]
            for column, component in enumerate(self.evolution.components):
                if component.level == 0 and self.measured is None:
                    part = self.lift[self.evolution.problem.fields.index(component.field)]
                    for index, value in self.symbols.get((row, column), {}).items():
                        loads[:, row] += value * part.derivative(timed, (0, *index))
        return loads


@lru_cache(maxsize=1)  # obstacles, drawbacks and the solve of a problem ask in turn
def modal_problem(problem: Problem) -> ModalProblem | str:
    """The problem in eigenfunctions, or the reason why it is none."""
    statement = modal_statement(problem)
    return statement if isinstance(statement, str) else ModalProblem(statement)
