"""An evolution on a periodic box, projected on Fourier modes: a linear part for every wave vector, the rest on a grid.

The modes are an orthogonal basis already, so that nothing is drawn and nothing compressed. The state holds the tables
of coefficients of every component; what is not linear with constant coefficients is formed on a grid. Fields without a
time derivative are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.lines.periodic.elimination import Eliminated, Parted, acting, eliminate
from rannpde.pde.lines.periodic.equations import Equations
from rannpde.pde.lines.periodic.kept import KeptStep
from rannpde.pde.lines.periodic.modes import Modes
from rannpde.pde.lines.periodic.wavematrix import WaveMatrix
from rannpde.pde.lines.radau import Polynomial
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.statement.expression import Jet

ROUNDING = float(np.finfo(float).eps)
HIGH = 0.875
"""Modes above this share of the highest one are looked at."""


@dataclass(frozen=True, eq=False)
class ModeBlocks:
    """A Jacobian that does not mix modes; states are (components · modes,)."""

    matrix: WaveMatrix
    modes: Modes

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        size, shape = self.matrix.rows, (self.matrix.rows, *self.modes.shape)
        inverse = (WaveMatrix.identity(size, self.modes.shape) * shift + self.matrix * -1.0).inverse()
        return lambda right: inverse.apply(right.reshape(shape)).ravel()


@dataclass(frozen=True, eq=False)
class Spectral:
    """A ``Dynamics`` with complex state (components · modes,)."""

    equations: Equations
    modes: Modes
    scales: Mapping[Component, float]

    @property
    def evolution(self) -> Evolution:
        return self.equations.evolution

    @property
    def columns(self) -> int:
        return self.modes.count

    rank = columns

    @property
    def held(self) -> int:
        """For a point: a wave along each axis, and a table summed along the first."""
        shape = self.modes.shape
        return 2 * sum(shape) + (self.modes.count // shape[0] if self.modes.dim > 1 else 0)

    @cached_property
    def transforms(self) -> int:
        """Of the grid, for one evaluation of the rates."""
        parts = [part for parts in self.equations.rates.values() for part in parts if not part.trivial]
        parts += [part for part in self.equations.constraints if not part.trivial]
        return len({jet for part in parts for jet in part.symbols.values()}) + len(parts) or 1

    @property
    def nodes(self) -> Array:
        return self.modes.points

    @property
    def parts(self) -> tuple[Component, ...]:
        """What is kept of a march: the components, and the fields that have no time derivative."""
        return (*self.evolution.components, *self.evolution.algebraic)

    @cached_property
    def matrices(self) -> Eliminated:
        return eliminate(self.evolution, self.equations.rates, list(self.equations.constraints), self.modes)

    def initial_state(self) -> Array:
        """Coefficients at the first time: of the interpolant on a finer grid, cut at K, as the constraints demand."""
        finer = 8 if self.modes.dim == 1 else 2
        fine = Modes(self.modes.bounds, tuple(finer * high for high in self.modes.highest))
        values = [self.evolution.initial_values(c, fine.points) for c in self.evolution.components]
        tables = self.modes.fitted(fine.to_tables(np.stack(values).reshape(-1, *fine.grid_shape)), fine.highest)
        if self.equations.constraints:
            own, data = self.matrices.start
            time = np.array([self.evolution.domain.time[0]])
            tables = own.apply(tables) + data.apply(self._constraint_rests(time, tables[None])[0])
        return tables.ravel()

    # --------------------------------------------------------------------------------------------------- sizes

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        return float((self.modes.norms(self._tables(change)) / self._scales).max())

    @cached_property
    def _scales(self) -> Array:
        return np.array([self.scales[component] for component in self.evolution.components])

    def _tables(self, state: Array) -> Array:
        return state.reshape(-1, *self.modes.shape)

    def tails(self, state: Array) -> Array:
        """(d,): share of the highest eighth of the modes of each axis in the solution: what K leaves out is below."""
        tables, found = self._tables(state), []
        for axis, (numbers, high) in enumerate(zip(self.modes.numbers, self.modes.highest, strict=True)):
            chosen = np.flatnonzero(np.abs(numbers) > HIGH * high)
            part = np.take(tables, chosen, axis=1 + axis)
            weights = self.modes.multiplicity if axis < self.modes.dim - 1 else self.modes.multiplicity[chosen]
            squares = (np.abs(part) ** 2 @ weights).reshape(len(tables), -1).sum(axis=1)
            found.append((np.sqrt(squares) / self._scales).max())
        return np.array(found)

    # --------------------------------------------------------------------------------------------------- rates

    def rates(self, times: Array, states: Array) -> Array:
        """Rates of change (c · modes, s) at s times."""
        tables = np.ascontiguousarray(states.T).reshape(len(times), -1, *self.modes.shape)
        found = self.matrices.A.apply(tables) + self._remainder(times, tables)
        return self.modes.real(found).reshape(len(times), -1).T

    def remainder_of(self, linear: WaveMatrix) -> Callable[[float, Array], Array]:
        """(time, state) → what of the rates (n,) is not that linear part."""
        further = None if linear is self.matrices.A else self.matrices.A + linear * -1.0

        def remainder(time: float, state: Array) -> Array:
            tables = self._tables(state)
            found = self._remainder(np.array([time]), tables[None])[0]
            return self.modes.real(found if further is None else found + further.apply(tables)).ravel()

        return remainder

    def _remainder(self, times: Array, tables: Array) -> Array:
        N, Q, dot = self._rests(times, tables)
        found = self.matrices.G.apply(N) if self.equations.constraints else N
        if Q is not None:
            found = found + self.matrices.E.apply(Q)
        return found if dot is None else found + self.matrices.E_dot.apply(dot)

    def _rests(self, times: Array, tables: Array) -> tuple[Array, Array | None, Array | None]:
        """N (s, c, …) and, of constraints, Q and Q' (s, fields, …); None where they vanish."""
        Q = dot = None
        if any(not part.trivial for part in self.equations.constraints):
            Q = self._constraint_rests(times, tables)
        if any(moving != 0 for moving in self.equations.moving):
            dot = self._transformed(times, tables[:, :0], [(k, m, {}) for k, m in enumerate(self.equations.moving)])
        everything = tables
        if self.equations.early:
            everything = np.concatenate([tables, self._algebraic(tables, None, Q, None)], axis=1)
        N = np.zeros_like(tables)
        parts = [(row, part) for row, c in enumerate(self.evolution.components) for part in self.equations.rates[c]]
        parts = [(row, part) for row, part in parts if not part.trivial]
        if parts:
            found = self._transformed(times, everything, [(k, p.rest, p.symbols) for k, (_, p) in enumerate(parts)])
            for k, (row, part) in enumerate(parts):
                N[:, row] += found[:, k] if part.axis is None else -self._slopes[part.axis] * found[:, k]
        return N, Q, dot

    def _constraint_rests(self, times: Array, tables: Array) -> Array:
        parts = self.equations.constraints
        return self._transformed(times, tables, [(k, part.rest, part.symbols) for k, part in enumerate(parts)])

    @cached_property
    def _slopes(self) -> list[Array]:
        dim = self.modes.dim
        return [self.modes.factor(tuple(int(k == axis) for k in range(dim))) for axis in range(dim)]

    @cached_property
    def _coordinates(self) -> list[Array]:
        """The coordinates of the grid, open: (n, 1), (1, m)."""
        axes = []
        for axis, ((lower, upper), count) in enumerate(zip(self.modes.bounds, self.modes.grid_shape, strict=True)):
            values = lower + (upper - lower) * np.arange(count) / count
            axes.append(values.reshape(tuple(-1 if k == axis else 1 for k in range(self.modes.dim))))
        return axes

    def _known(self, times: Array, tables: Array, symbols: Mapping[sympy.Symbol, Jet]) -> dict[sympy.Symbol, Array]:
        """Values on the grid (s, *grid), all transformed together."""
        parts = self.parts
        known = {self.evolution.clock: times.reshape(-1, *(1,) * self.modes.dim)}
        known |= dict(zip(self.evolution.problem.vocabulary.symbols[1:], self._coordinates, strict=True))
        jets = list(dict.fromkeys(symbols.values()))
        if not jets:
            return known
        wanted = np.empty((len(jets), len(times), *self.modes.shape), dtype=complex)
        for k, jet in enumerate(jets):
            np.multiply(tables[:, parts.index(Component.of(jet))], self.modes.factor(jet.index[1:]), out=wanted[k])
        values = self.modes.to_grid(wanted.reshape(-1, *self.modes.shape))
        grids = dict(zip(jets, values.reshape(len(jets), len(times), *self.modes.grid_shape), strict=True))
        return known | {symbol: grids[jet] for symbol, jet in symbols.items()}

    def _transformed(
        self, times: Array, tables: Array, formulas: Sequence[tuple[int, sympy.Expr, Mapping[sympy.Symbol, Jet]]]
    ) -> Array:
        """(s, formulas, *shape): the tables of formulas of the grid's values."""
        symbols = {symbol: jet for _, _, own in formulas for symbol, jet in own.items()}
        known = self._known(times, tables, symbols)
        values = self.evolution.values([formula for _, formula, _ in formulas], known)
        whole = (len(times), *self.modes.grid_shape)
        found = np.empty((len(times), len(values), *self.modes.shape), dtype=complex)
        for k, value in enumerate(values):
            found[:, k] = self.modes.to_tables(np.broadcast_to(value, whole))
        return found

    # ----------------------------------------------------------------------------------- fields without a rate

    def _algebraic(self, tables: Array, N: Array | None, Q: Array | None, dot: Array | None) -> Array:
        """(s, fields, …): the fields without a time derivative from everything else."""
        found = self.matrices.of_u.apply(tables)
        for matrix, rest in ((self.matrices.of_N, N), (self.matrices.of_Q, Q), (self.matrices.of_Q_dot, dot)):
            if rest is not None:
                found = found + matrix.apply(rest)
        return found

    def completed(self, times: Array, states: Array) -> Array:
        """States (n, s) with the tables of the fields without a time derivative behind them, levels as measured."""
        if not self.equations.constraints:
            return states
        tables = np.ascontiguousarray(states.T).reshape(len(times), -1, *self.modes.shape)
        found = self._algebraic(tables, *self._rests(times, tables))
        for k, component in enumerate(self.evolution.algebraic):
            level = self.equations.levels.get(component.field)
            if level is not None:
                waves = self.modes.waves(level.place[None])
                there = self.modes.at(found[:, k], waves, [(0,) * self.modes.dim])[:, 0, 0]
                wanted = np.array([level(float(time)) for time in times])
                found[:, k].reshape(len(times), -1)[:, 0] += wanted - there
        return np.concatenate([tables, found], axis=1).reshape(len(times), -1).T

    def kept(self, step: Polynomial, tol: float = ROUNDING) -> KeptStep:
        """What is kept of a step, without what is below ``tol`` of the scales."""
        completed = self.completed if self.equations.constraints else None
        return KeptStep.of(step, self.modes, self._scales, tol, completed)

    # ------------------------------------------------------------------------------------------------ Jacobian

    def frozen(self, time: float, state: Array, of: Callable[[Array], float], least: int = 0) -> WaveMatrix | None:
        """What the rest gives for derivatives of order ``least`` or more, each coefficient replaced by one number.

        of : values of a coefficient on the grid → that number; None where the rest holds no such derivative
        """
        tables = self._tables(state)[None]
        if self.equations.early:
            Q = self._constraint_rests(np.array([time]), tables) if self.equations.constraints else None
            tables = np.concatenate([tables, self._algebraic(tables, None, Q, None)], axis=1)
        entries: dict[tuple[int, int], Array] = {}
        components = list(self.evolution.components)
        for row, component in enumerate(components):
            for part in self.equations.rates[component]:
                linear = self._means(time, tables, part, of, least)
                outer = 1.0 if part.axis is None else -self._slopes[part.axis]
                for column, entry in acting(linear, self.modes, components).items():
                    entries[row, column] = entries.get((row, column), 0.0) + outer * entry
        if not entries:
            return None
        found = WaveMatrix(len(components), len(components), entries, self.modes.dim)
        return self.matrices.G @ found if self.equations.constraints else found

    def _means(
        self, time: float, tables: Array, part: Parted, of: Callable[[Array], float], least: int
    ) -> dict[Jet, float]:
        algebraic = {component.field for component in self.evolution.algebraic}
        outer = 0 if part.axis is None else 1
        chosen = [
            (jet, slope)
            for jet, slope in zip(part.symbols.values(), part.slopes, strict=True)
            if sum(jet.index[1:]) + outer >= least and jet.field not in algebraic
        ]
        if not chosen:
            return {}
        used = {s: jet for s, jet in part.symbols.items() if any(s in slope.free_symbols for _, slope in chosen)}
        known = self._known(np.array([time]), tables, used)
        values = self.evolution.values([slope for _, slope in chosen], known)
        # a root has no slope at 0
        return {jet: of(np.where(np.isfinite(v), v, 0.0)) for (jet, _), v in zip(chosen, values, strict=True)}

    def jacobian(self, time: float, state: Array) -> ModeBlocks:
        """∂f/∂y with every coefficient replaced by its mean over space."""
        mean = self.frozen(time, state, lambda values: float(np.mean(values)))
        return ModeBlocks(self.matrices.A if mean is None else self.matrices.A + mean, self.modes)

    def linear_part(self, time: float, state: Array) -> WaveMatrix:
        """The linear part with which steps are made: of what varies, derivatives of second and higher order by the
        middle of their range: the rest then pulls less than that, and no stiffness is left in it."""
        stiff = self.frozen(time, state, lambda values: 0.5 * float(values.min() + values.max()), least=2)
        return self.matrices.A if stiff is None else self.matrices.A + stiff

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the frozen-mean Jacobian."""
        matrix = self.jacobian(time, state).matrix
        if matrix.diagonal:
            return max((float(entry.real.max()) for entry in matrix.entries.values()), default=0.0)
        return float(np.linalg.eigvals(matrix.dense(self.modes.count)).real.max())

    # -------------------------------------------------------------------------------------------------- values

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); there are no boundary data."""
        place, found = self.parts.index(component), np.empty(len(points))
        same = states.strides[1] == 0 or len(points) == 1
        for rows in [np.arange(len(points))] if same else np.arange(len(points))[:, None]:
            state = states[:, rows[0]]
            if len(state) < len(self.parts) * self.modes.count:
                state = self.completed(times[rows[:1]], state[:, None])[:, 0]
            waves = self.modes.waves(points[rows])
            found[rows] = self.modes.at(self._tables(state)[place : place + 1], waves, [index])[0, 0]
        return found
