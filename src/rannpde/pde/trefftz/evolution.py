"""Linear evolutions with constant coefficients between walls: which eigenfunctions, how many, and their error.

The equation and the conditions on the walls hold exactly; the error is that of the initial values, carried along by
exp(M(w)t). For the heat equation the maximum principle bounds it everywhere by the largest error at the start; waves
conserve its energy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from rannpde.arrays import Array, combinations
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import Ball, Box, SpaceTime
from rannpde.pde.problem.evolution import Component, Evolution, WallRow, constraints_of
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import constant
from rannpde.pde.trefftz.modal import ModalFlow, ModalNetwork
from rannpde.pde.trefftz.modes import AxisModes, BoxModes, DiscModes, SpatialModes
from rannpde.pde.trefftz.particular import NoPart, ParticularPart, PolynomialPart

MOST = {1: 2048, 2: 40_000, 3: 400_000}
"""Eigenfunctions at most, by the dimension of space: with more, other methods are faster."""
FIRST_COUNT, FIRST_RADIUS = 12, 16.0
"""Eigenfunctions of an axis, and α radius of the last eigenfunction of a disc, that are tried first."""
GROWTH = 1.4
"""Factor by which they grow from one trial to the next."""
LINES = 12
"""Lines along each axis on which it is tried how many eigenfunctions the axis needs."""
FRESH_POINTS = 1500
"""Points at which initial values are looked at again."""
NEGLIGIBLE = 0.01
"""Share of the tolerance that coefficients which are left out may make together."""


@dataclass(frozen=True, eq=False)
class Walls:
    """Homogeneous conditions u_n + h u = 0: h for both ends of each axis, or one for a circle; infinite for u = 0.

    lift : the value on all walls that is subtracted first, or for each end of an interval
    """

    box: tuple[tuple[float, float], ...]
    circle: float | None
    lift: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ModalProblem:
    """An evolution that eigenfunctions solve: its walls, and M(w) as coefficients of multipliers.

    symbols : (row, column) of components → space multi-index → coefficient
    """

    evolution: Evolution
    walls: Walls
    symbols: dict[tuple[int, int], dict[tuple[int, ...], float]]
    lift: tuple[ParticularPart, ...]

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

    def slowest(self, frequency: float) -> float:
        """The least |s| of waves with this |w| along one axis, up to the rates of all others."""
        size = len(self.evolution.components)
        found = np.zeros((self.domain.space.dim, size, size))
        for (row, column), symbol in self.symbols.items():
            for index, value in symbol.items():
                for axis in range(len(found)):
                    own = index[axis]
                    found[axis, row, column] += value * (-(frequency**2)) ** (own // 2) if own == sum(index) else 0.0
        return max(float(np.abs(np.linalg.eigvals(found)).min()), 1e-300)

    def matrices(self, modes: SpatialModes) -> Array:
        """M(w) (N, J, J)."""
        size = len(self.evolution.components)
        found = np.zeros((modes.count, size, size))
        for (row, column), symbol in self.symbols.items():
            if isinstance(modes, DiscModes):
                laplacian = symbol.get((2, 0), 0.0)
                found[:, row, column] = symbol.get((0, 0), 0.0) - laplacian * modes.negative_laplacian
                continue
            for index, value in symbol.items():
                multiplier = modes.multiplier(index)
                assert multiplier is not None
                found[:, row, column] += value * multiplier
        return found

    def modes(self, tol: float, rng: np.random.Generator) -> Iterator[SpatialModes]:
        """Eigenfunctions, more and more of them, beginning with as many as single lines need."""
        space = self.domain.space
        most = MOST[space.dim]
        if self.walls.circle is not None:
            assert isinstance(space, Ball)
            reach = min(self._reach(tol, rng), 0.6 * np.sqrt(most))
            while reach**2 / 4 < most / 8:  # Weyl's law of their number; radial functions cost more than cosines
                yield DiscModes.below(np.asarray(space.centre), float(space.radius), self.walls.circle, reach)
                reach *= GROWTH
            return
        counts = [self._count(axis, tol, rng) for axis in range(space.dim)]
        if np.prod(counts) > most:  # they are not resolved: as many as are allowed
            counts = [max(int(count * (most / np.prod(counts)) ** (1 / space.dim)), 1) for count in counts]
        while np.prod(counts) <= most:
            yield BoxModes(tuple(self._axis(axis, count) for axis, count in enumerate(counts)))
            counts = [ceil(GROWTH * count) for count in counts]

    def resolved(self, tol: float, rng: np.random.Generator) -> bool:
        """Whether eigenfunctions converge fast enough: initial values suit the walls with all their derivatives."""
        if self.walls.circle is not None:
            return self._reach(tol, rng) < 0.6 * np.sqrt(MOST[2])
        counts = [self._count(axis, tol, rng) for axis in range(self.domain.space.dim)]
        return bool(np.prod(counts) <= MOST[self.domain.space.dim])

    def _axis(self, axis: int, count: int) -> AxisModes:
        low, high = self.domain.space.bounds[axis].tolist()
        return AxisModes.between((low, high), self.walls.box[axis], count)

    def _count(self, axis: int, tol: float, rng: np.random.Generator) -> int:
        """Eigenfunctions that one axis of a box needs."""
        starts = self.domain.space.sample(LINES, rng=rng, method="sobol")
        stops = starts.copy()
        starts[:, axis], stops[:, axis] = self.domain.space.bounds[axis]
        return max(int(self._on_lines(starts, stops, self.walls.box[axis], tol).max()) + 2, 4)

    def _reach(self, tol: float, rng: np.random.Generator) -> float:
        """α radius that a disc needs, by chords through points of it."""
        space, end = self.domain.space, self.walls.circle
        assert isinstance(space, Ball) and end is not None
        centre, radius = np.asarray(space.centre), float(space.radius)
        turn = np.arange(LINES) * np.pi / LINES
        along = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        here = 0.8 * (space.sample(LINES, rng=rng, method="sobol") - centre)
        middle = here - np.sum(here * along, axis=1, keepdims=True) * along
        half = np.sqrt(radius**2 - np.square(middle).sum(axis=1, keepdims=True))
        needed = self._on_lines(centre + middle - half * along, centre + middle + half * along, (end, end), tol)
        return max(1.1 * float((needed * np.pi / (2 * half[:, 0]) * radius).max()), FIRST_RADIUS)

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

            found, loads = [sizes(self.initial(points))], self.load(points)
            if loads.any():
                acting = [min(duration, 1 / self.slowest(float(w / lengths.min()))) for w in own.frequencies]
                found.append(sizes(loads) * acting)
            every = np.concatenate(found)
            largest = np.maximum(every.max(axis=(1, 2), keepdims=True), 1e-300)
            above = (every > 0.01 * tol * largest).any(axis=0)
            needed = np.where(above.any(axis=1), count - np.argmax(above[:, ::-1], axis=1), 0)
            if needed.max() <= 0.8 * count or count > MOST[dim] ** (1 / dim):
                return needed
            count = ceil(GROWTH * count)

    def initial(self, points: Array) -> Array:
        """Initial values of the components (M, J) at points (M, d) of space, without the lift."""
        timed = np.concatenate([np.full((len(points), 1), self.domain.time[0]), points], axis=1)
        still = (0,) * timed.shape[1]
        found = []
        for component in self.evolution.components:
            value = self.evolution.initial_values(component, points)
            if component.level == 0:
                number = self.evolution.problem.fields.index(component.field)
                value = value - self.lift[number].derivative(timed, still)
            found.append(value)
        return np.stack(found, axis=1)

    def load(self, points: Array) -> Array:
        """The constant part of the rates (M, J), with what the lift adds."""
        found = np.zeros((len(points), len(self.evolution.components)))
        timed = np.concatenate([np.full((len(points), 1), self.domain.time[0]), points], axis=1)
        known = self.evolution.known(self.domain.time[0], points)
        for name, rate in self.evolution.rates.items():
            last = Component(name, self.evolution.orders[name] - 1)
            row = self.evolution.components.index(last)
            formula = rate.source.formula.subs(dict.fromkeys(rate.source.symbols, 0))
            found[:, row] = self.evolution.values([formula], known)[0]
            for column, component in enumerate(self.evolution.components):
                if component.level == 0:
                    part = self.lift[self.evolution.problem.fields.index(component.field)]
                    for index, value in self.symbols.get((row, column), {}).items():
                        found[:, row] += value * part.derivative(timed, (0, *index))
        return found


def modal_problem(problem: Problem) -> ModalProblem | str:
    """The problem in eigenfunctions, or the reason why it is none."""
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
    found = [_walls(evolution, name) for name in problem.fields]
    for one in found:
        if isinstance(one, str):
            return one
    walls = [one for one in found if isinstance(one, Walls)]
    if any((one.box, one.circle) != (walls[0].box, walls[0].circle) for one in walls):
        return "the fields have different conditions"
    if set(evolution.initial) != set(evolution.components):
        return "initial values are not given by formulas"
    if any(term.expression.kinked for term in problem.constraints):
        return "initial values have kinks or jumps"
    return ModalProblem(evolution, walls[0], symbols, tuple(_lift(one, space.bounds) for one in walls))


def _symbols(evolution: Evolution, round_space: bool) -> dict[tuple[int, int], dict[tuple[int, ...], float]] | str:
    found: dict[tuple[int, int], dict[tuple[int, ...], float]] = {}
    for row, component in enumerate(evolution.components):
        above = evolution.above(component)
        if above is not None:
            found[row, evolution.components.index(above)] = {(0,) * evolution.domain.space.dim: 1.0}
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
                found.setdefault((row, evolution.components.index(Component.of(jet))), {})[index] = value
    for symbol in found.values():
        if round_space and symbol.get((2, 0), 0.0) != symbol.get((0, 2), 0.0):
            return "diffusion is not isotropic"
    return found


def _walls(evolution: Evolution, name: str) -> Walls | str:
    """The conditions of a field."""
    space = evolution.domain.space
    terms = evolution.boundary(name)
    if isinstance(space, Ball) and space.dim > 1:
        return _circle(evolution, name)
    rows = [WallRow.of(evolution, term) for term in terms]
    box, values = [], []
    for axis in range(space.dim):
        ends = []
        for normal in (-1.0, 1.0):
            own = [row for row in rows if row is not None and row.axis == axis and row.normal == normal]
            if len(own) != 1 or None in rows:
                return "walls have other conditions than one of values and normal derivatives each"
            coefficients = own[0].row.coefficients
            if set(coefficients) - {0, 1}:
                return "walls have conditions of higher order"
            value, slope = coefficients.get(0, 0.0), normal * coefficients.get(1, 0.0)
            height = np.inf if slope == 0 else value / slope
            if height < 0:
                return "a wall feeds what leaves it: u_n + h u = 0 with h < 0"
            given = constant(own[0].value)
            if given is None or (given and not np.isinf(height)):
                return "conditions on walls vary, or fluxes are given"
            ends.append(height)
            values.append(given / value if given else 0.0)
        box.append((ends[0], ends[1]))
    if any(values) and space.dim > 1 and len(set(values)) > 1:
        return "values on walls differ"
    if any(values) and not all(np.isinf(h) for pair in box for h in pair):
        return "values are given beside fluxes"
    return Walls(tuple(box), None, tuple(values))


def _circle(evolution: Evolution, name: str) -> Walls | str:
    conditions = constraints_of(evolution, name, 4)
    if len(conditions) != 1:
        return "the circle has other conditions than one"
    one = conditions[0]
    value, given = one.coefficients.get((0, 0)), constant(one.value)
    slopes = [one.coefficients.get(index) for index in ((1, 0), (0, 1))]
    if given is None or any(sum(index) > 1 for index in one.coefficients):
        return "the condition on the circle varies"
    if slopes[0] is None and slopes[1] is None and value is not None and np.ptp(value) == 0:
        return Walls((), np.inf, (given / float(value[0]),))
    if value is not None or slopes[0] is None or slopes[1] is None or given:
        return "the condition on the circle is neither u = c nor a flux of zero"
    across = slopes[0] * one.normals[:, 0] + slopes[1] * one.normals[:, 1]
    along = slopes[0] * one.normals[:, 1] - slopes[1] * one.normals[:, 0]
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


@dataclass(frozen=True, eq=False)
class ModalResult:
    """A network with its relative error in L², the number of eigenfunctions, and a bound where there is one.

    initial, largest : the relative error of the initial values; amplification : of them, at later times
    """

    network: ModalNetwork
    estimate: float
    initial: float
    largest: float
    amplification: float
    scale: float
    bound: float | None


def modal_solution(given: ModalProblem, tol: float, rng: np.random.Generator) -> Iterator[ModalResult]:
    """Solutions with more and more eigenfunctions, until there are too many."""
    duration = given.domain.time[1] - given.domain.time[0]
    fresh = given.domain.space.sample(FRESH_POINTS, rng=rng, method="sobol")
    wanted, load_wanted = given.initial(fresh), given.load(fresh)
    inside = given.domain.sample(FRESH_POINTS // 4, rng=rng, method="sobol")
    for modes in given.modes(tol, rng):
        checkpoint()
        nodes = modes.nodes()
        values, loads = given.initial(nodes), given.load(nodes)
        every = range(values.shape[1])
        initial = np.stack([modes.projected(values[:, k]) for k in every], axis=1)
        load = np.stack([modes.projected(loads[:, k]) for k in every], axis=1)
        load[np.abs(load) <= 1e-15 * np.abs(loads).max(initial=0.0)] = 0.0
        sizes = [np.abs(one) / np.maximum(np.linalg.norm(one, axis=0), 1e-300) for one in (initial, load)]
        size = np.concatenate(sizes, axis=1).max(axis=1)
        small = size < NEGLIGIBLE * tol / np.sqrt(modes.count)  # all of them together are far below the tolerance
        initial[small], load[small] = 0.0, 0.0
        outer = float(np.sqrt(modes.negative_laplacian.max()))
        modes, kept = modes.trimmed(~small)
        initial, load = initial[kept], load[kept]
        flow = ModalFlow.of(given.matrices(modes))
        if flow.defective_load(load):
            return
        parts = flow.parts(initial, load, modes, given.shown)
        network = ModalNetwork(modes, tuple(parts), given.lift, given.domain.time[0], given.domain.dim)
        amplification = flow.amplification(duration, given.shown)
        yield _judged(given, network, flow, (fresh, wanted, load_wanted), (initial, load), inside, amplification, outer)


def _judged(
    given: ModalProblem,
    network: ModalNetwork,
    flow: ModalFlow,
    fresh: tuple[Array, Array, Array],
    found: tuple[Array, Array],
    inside: Array,
    amplification: Array,
    outer: float,
) -> ModalResult:
    """By the error of initial values and loads at fresh points, amplified as much as any mode amplifies it."""
    points, wanted, load_wanted = fresh
    modes, duration = network.modes, given.domain.time[1] - given.domain.time[0]
    still = (0,) * points.shape[1]
    left = modes.plain(points, still, found[0]) - wanted
    unloaded = modes.plain(points, still, found[1]) - load_wanted
    scale = float(np.sqrt(np.mean(np.square(network(inside)), axis=0)).max()) or 1.0
    # a load of the modes that are left out acts for the time in which these forget it
    acting = min(duration, 2 / given.slowest(outer))
    errors = np.sqrt(np.mean(np.square(left), axis=0)) + acting * np.sqrt(np.mean(np.square(unloaded), axis=0))
    turning = float(np.abs(flow.rates.imag).max(initial=0.0)) if np.iscomplexobj(flow.rates) else 0.0
    size = np.abs(found[0]).max(axis=0)
    rounding = np.finfo(float).eps * (1 + turning * duration) * float(size @ amplification) / scale
    rounding /= np.sqrt(given.domain.space.measure)
    estimate = float(errors @ amplification) / scale + rounding
    bound = None
    if given.diffusive and all(h >= 0 for pair in given.walls.box for h in pair):
        bound = _largest(given, network) + acting * float(np.abs(unloaded).max(initial=0.0))
    largest = float(np.abs(left).max(initial=0.0)) / scale
    return ModalResult(network, estimate, float(errors[0]) / scale, largest, float(amplification.max()), scale, bound)


def _largest(given: ModalProblem, network: ModalNetwork) -> float:
    """The largest error of the initial values: on a grid, and what second differences allow between its points."""
    space = given.domain.space
    count = {1: 2000, 2: 60, 3: 16}[space.dim]
    if isinstance(space, Ball) and space.dim == 2:
        r, turn = np.linspace(0, space.radius, count), np.arange(count) * 2 * np.pi / count
        arrows = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        points = np.asarray(space.centre) + (r[:, None, None] * arrows).reshape(-1, 2)
    else:
        points = combinations([np.linspace(a, b, count) for a, b in space.bounds])
    timed = np.concatenate([np.full((len(points), 1), given.domain.time[0]), points], axis=1)
    exact = given.evolution.initial_values(given.evolution.components[0], points)
    error = (network(timed)[:, 0] - exact).reshape([count] * space.dim)
    between = sum(float(np.abs(np.diff(error, 2, axis=axis)).max(initial=0.0)) for axis in range(space.dim)) / 8
    return float(np.abs(error).max()) + between
