"""An evolution on a periodic box, projected on Fourier modes: a linear part for every wave vector, the rest on a grid.

The modes are an orthogonal basis already, so that nothing is sampled and nothing compressed. The state holds the tables
of coefficients of every component; terms that are not linear with constant coefficients are formed on a grid. Fields
without a time derivative are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.lines.fourier.equations import EliminatedSystem, Equations, SplitTerm, eliminate, linear_symbols
from rannpde.pde.lines.fourier.modes import EXACT, FourierBasis, whole_period
from rannpde.pde.lines.fourier.steps import DerivativeRequest, TruncatedStep
from rannpde.pde.lines.fourier.symbol import FourierSymbol, phi_functions
from rannpde.pde.lines.solution import by_component
from rannpde.pde.problem.evolution import Component, Evolution, Parity
from rannpde.pde.statement.expression import Jet
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.dynamics import random_multiples
from rannpde.pde.time.trajectory import Trajectory
from rannpde.pde.tolerance import TAIL_START

ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class FourierJacobian:
    """A Jacobian that does not mix modes; states are (components · modes,)."""

    matrix: FourierSymbol
    modes: FourierBasis

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        size, shape = self.matrix.rows, (self.matrix.rows, *self.modes.shape)
        inverse = (FourierSymbol.identity(size, self.modes.shape) * shift + self.matrix * -1.0).inverse()
        return lambda right: inverse.apply(right.reshape(shape)).ravel()


@dataclass(frozen=True, eq=False)
class FourierSystem:
    """A ``SemiDiscreteSystem`` with complex state (components · modes,); also a ``SplitDynamics``."""

    equations: Equations
    modes: FourierBasis
    scales: Mapping[Component, float]

    @property
    def evolution(self) -> Evolution:
        return self.equations.evolution

    @property
    def columns(self) -> int:
        return self.modes.count

    rank = columns

    @property
    def memory_per_point(self) -> int:
        """Numbers for each point: the exponentials of each axis, and a table summed along the first."""
        shape = self.modes.shape
        return 2 * sum(shape) + (self.modes.count // shape[0] if self.modes.dim > 1 else 0)

    @cached_property
    def transforms(self) -> int:
        """Transforms of the grid in one evaluation of the rates."""
        parts = [part for parts in self.equations.rates.values() for part in parts if not part.trivial]
        parts += [part for part in self.equations.constraints if not part.trivial]
        return len({jet for part in parts for jet in part.symbols.values()}) + len(parts) or 1

    @property
    def nodes(self) -> Array:
        return self.modes.points

    @property
    def parts(self) -> tuple[Component, ...]:
        """The parts of a stored state: the components, and the fields that have no time derivative."""
        return (*self.evolution.components, *self.evolution.algebraic)

    @cached_property
    def matrices(self) -> EliminatedSystem:
        return eliminate(self.evolution, self.equations.rates, list(self.equations.constraints), self.modes)

    def initial_state(self) -> Array:
        """Coefficients at the first time: of the interpolant on a finer grid, truncated, and made to satisfy the
        constraints."""
        finer = 8 if self.modes.dim == 1 else 2
        fine = replace(self.modes, highest=tuple(finer * high for high in self.modes.highest), padding=EXACT)
        components = []
        for number, component in enumerate(self.evolution.components):
            values = self.evolution.initial_values(component, fine.points).reshape(1, *fine.grid_shape)
            components.append(
                self.modes.resized(fine.to_tables(values, fine.parity_of(number, self._still)), fine.highest)
            )
        tables = np.concatenate(components)
        if self.equations.constraints:
            own, data = self.matrices.start
            time = np.array([self.evolution.domain.time[0]])
            tables = own.apply(tables) + data.apply(self._constraint_rests(time, tables[None])[0])
        return tables.ravel()

    # --------------------------------------------------------------------------------------------------- sizes

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        columns = change.T if change.ndim > 1 else change[None]
        return max(float((self.modes.norms(self._tables(one)) / self._scales).max()) for one in columns)

    def perturbation(self, state: Array, rng: np.random.Generator) -> Array:
        """A random change of a state that belongs to a real function: see ``Dynamics``."""
        return self.clean(self._tables(random_multiples(state, rng))).ravel()

    @cached_property
    def _scales(self) -> Array:
        return np.array([self.scales[component] for component in self.evolution.components])

    def _tables(self, state: Array) -> Array:
        return state.reshape(-1, *self.modes.shape)

    def tails(self, state: Array) -> Array:
        """(d,): share of the highest eighth of the modes of each axis in the solution; the truncation error is
        smaller."""
        tables, shares = self._tables(state), []
        for axis, (numbers, high) in enumerate(zip(self.modes.numbers, self.modes.highest, strict=True)):
            chosen = np.flatnonzero(np.abs(numbers) > TAIL_START * high)
            part = np.take(tables, chosen, axis=1 + axis)
            squares = part.real**2 + part.imag**2
            for k, weights in reversed(list(enumerate(self.modes.multiplicities))):
                squares = squares @ (weights[chosen] if k == axis else weights)
            shares.append((np.sqrt(squares) / self._scales).max())
        return np.array(shares)

    # --------------------------------------------------------------------------------------------------- rates

    def rates(self, times: Array, states: Array) -> Array:
        """Rates of change (c · modes, s) at s times."""
        tables = np.ascontiguousarray(states.T).reshape(len(times), -1, *self.modes.shape)
        rates = self.matrices.A.apply(tables) + self._remainder(times, tables)
        return self.modes.real(rates).reshape(len(times), -1).T

    def remainder_of(self, linear: FourierSymbol) -> Callable[[float, Array], Array]:
        """(time, state) → the rates (n,) without that linear part."""
        further = None if linear is self.matrices.A else self.matrices.A + linear * -1.0

        def remainder(time: float, state: Array) -> Array:
            tables = self._tables(state)
            rest = self._remainder(np.array([time]), tables[None])[0]
            return self.modes.real(rest if further is None else rest + further.apply(tables)).ravel()

        return remainder

    def _remainder(self, times: Array, tables: Array) -> Array:
        N, Q, dot = self._rests(times, tables)
        total = self.matrices.G.apply(N) if self.equations.constraints else N
        if Q is not None:
            total = total + self.matrices.E.apply(Q)
        return total if dot is None else total + self.matrices.E_dot.apply(dot)

    def _rests(self, times: Array, tables: Array) -> tuple[Array, Array | None, Array | None]:
        """N (s, c, …) and, of constraints, Q and Q' (s, fields, …); None where they vanish."""
        Q = dot = None
        if any(not part.trivial for part in self.equations.constraints):
            Q = self._constraint_rests(times, tables)
        if any(moving != 0 for moving in self.equations.moving):
            dot = self._transformed(times, tables[:, :0], [(m, {}, ()) for m in self.equations.moving])
        everything = tables
        if self.equations.algebraic_on_grid:
            everything = np.concatenate([tables, self._algebraic(tables, None, Q, None)], axis=1)
        N = np.zeros_like(tables)
        parts = [(row, part) for row, c in enumerate(self.evolution.components) for part in self.equations.rates[c]]
        parts = [(row, part) for row, part in parts if not part.trivial]
        if parts:
            formulas = [(p.rest, p.symbols, self.modes.parity_of(row, self._along(p.axis))) for row, p in parts]
            transformed = self._transformed(times, everything, formulas)
            for k, (row, part) in enumerate(parts):
                N[:, row] += transformed[:, k] if part.axis is None else -self._slopes[part.axis] * transformed[:, k]
        return N, Q, dot

    def _constraint_rests(self, times: Array, tables: Array) -> Array:
        parts = self.equations.constraints  # there are none with reflection symmetry
        return self._transformed(times, tables, [(part.rest, part.symbols, ()) for part in parts])

    @cached_property
    def _slopes(self) -> list[Array]:
        return [self.modes.factor(self._along(axis)) for axis in range(self.modes.dim)]

    def _along(self, axis: int | None) -> MultiIndex:
        """The derivative along an axis, or none."""
        return tuple(int(k == axis) for k in range(self.modes.dim))

    @property
    def _still(self) -> MultiIndex:
        return self._along(None)

    @cached_property
    def _coordinates(self) -> list[Array]:
        """The coordinates of the grid, open: (n, 1), (1, m)."""
        return [self.modes.broadcast_along(values, axis) for axis, values in enumerate(self.modes.grid)]

    def _known(self, times: Array, tables: Array, symbols: Mapping[sympy.Symbol, Jet]) -> dict[sympy.Symbol, Array]:
        """Values on the grid (s, *grid), all transformed together."""
        parts = self.parts
        known = {self.evolution.clock: times.reshape(-1, *(1,) * self.modes.dim)}
        known |= dict(zip(self.evolution.problem.vocabulary.symbols[1:], self._coordinates, strict=True))
        groups: dict[Parity, list[Jet]] = {}
        for jet in dict.fromkeys(symbols.values()):
            groups.setdefault(self.modes.parity_of(parts.index(Component.of(jet)), jet.index[1:]), []).append(jet)
        grids: dict[Jet, Array] = {}
        for parity, jets in groups.items():
            wanted = np.empty((len(jets), len(times), *self.modes.shape), dtype=complex)
            for k, jet in enumerate(jets):
                np.multiply(tables[:, parts.index(Component.of(jet))], self.modes.factor(jet.index[1:]), out=wanted[k])
            values = self.modes.to_grid(wanted.reshape(-1, *self.modes.shape), parity)
            grids |= dict(zip(jets, values.reshape(len(jets), len(times), *self.modes.grid_shape), strict=True))
        return known | {symbol: grids[jet] for symbol, jet in symbols.items()}

    def _transformed(
        self, times: Array, tables: Array, formulas: Sequence[tuple[sympy.Expr, Mapping[sympy.Symbol, Jet], Parity]]
    ) -> Array:
        """(s, formulas, *shape): the tables of formulas of the grid's values, each with its jets and its parity."""
        symbols = {symbol: jet for _, own, _ in formulas for symbol, jet in own.items()}
        known = self._known(times, tables, symbols)
        values = self.evolution.values([formula for formula, _, _ in formulas], known)
        whole = (len(times), *self.modes.grid_shape)
        result = np.empty((len(times), len(values), *self.modes.shape), dtype=complex)
        for k, (value, (_, _, parity)) in enumerate(zip(values, formulas, strict=True)):
            result[:, k] = self.modes.to_tables(np.broadcast_to(value, whole), parity)
        return result

    # ----------------------------------------------------------------------------------- fields without a rate

    def _algebraic(self, tables: Array, N: Array | None, Q: Array | None, dot: Array | None) -> Array:
        """(s, fields, …): the fields without a time derivative, from the components and the non-linear terms."""
        fields = self.matrices.of_u.apply(tables)
        for matrix, rest in ((self.matrices.of_N, N), (self.matrices.of_Q, Q), (self.matrices.of_Q_dot, dot)):
            if rest is not None:
                fields = fields + matrix.apply(rest)
        return fields

    def completed(self, times: Array, states: Array) -> Array:
        """States (n, s) with the tables of the fields without a time derivative appended, at their measured levels."""
        if not self.equations.constraints:
            return states
        tables = np.ascontiguousarray(states.T).reshape(len(times), -1, *self.modes.shape)
        fields = self._algebraic(tables, *self._rests(times, tables))
        for k, component in enumerate(self.evolution.algebraic):
            level = self.equations.levels.get(component.field)
            if level is not None:
                waves = self.modes.exponentials(level.point[None])
                there = self.modes.at(fields[:, k], waves, [(0,) * self.modes.dim])[:, 0, 0]
                wanted = np.array([level(float(time)) for time in times])
                fields[:, k].reshape(len(times), -1)[:, 0] += wanted - there
        return np.concatenate([tables, fields], axis=1).reshape(len(times), -1).T

    def truncated(self, step: LegendreStep, tol: float = ROUNDING) -> TruncatedStep:
        """A step as it is stored: without the modes that are below ``tol`` of the scales."""
        completed = self.completed if self.equations.constraints else None
        return TruncatedStep.of(step, self.modes, self._scales, tol, completed)

    # ------------------------------------------------------------------------------------------------ Jacobian

    def frozen(self, time: float, state: Array, of: Callable[[Array], float], least: int = 0) -> FourierSymbol | None:
        """The symbol of the linearised non-linear terms with frozen coefficients; None where it vanishes.

        of : values of a coefficient on the grid → the number that replaces it; least : lowest order of the derivatives
        """
        tables = self._tables(state)[None]
        if self.equations.algebraic_on_grid:
            Q = self._constraint_rests(np.array([time]), tables) if self.equations.constraints else None
            tables = np.concatenate([tables, self._algebraic(tables, None, Q, None)], axis=1)
        entries: dict[tuple[int, int], Array] = {}
        components = list(self.evolution.components)
        for row, component in enumerate(components):
            for part in self.equations.rates[component]:
                linear = self._means(time, tables, part, of, least)
                outer = 1.0 if part.axis is None else -self._slopes[part.axis]
                for column, entry in linear_symbols(linear, self.modes, components).items():
                    entries[row, column] = entries.get((row, column), 0.0) + outer * entry
        if not entries:
            return None
        symbol = FourierSymbol(len(components), len(components), entries, self.modes.dim)
        return self.matrices.G @ symbol if self.equations.constraints else symbol

    def _means(
        self, time: float, tables: Array, part: SplitTerm, of: Callable[[Array], float], least: int
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
        # a square root has no derivative at 0
        return {jet: of(np.where(np.isfinite(v), v, 0.0)) for (jet, _), v in zip(chosen, values, strict=True)}

    def jacobian(self, time: float, state: Array) -> FourierJacobian:
        """∂f/∂y with every coefficient replaced by its mean over space."""
        mean = self.frozen(time, state, lambda values: float(np.mean(values)))
        return FourierJacobian(self.matrices.A if mean is None else self.matrices.A + mean, self.modes)

    def linear_part(self, time: float, state: Array) -> FourierSymbol:
        """The linear part of ETDRK4: varying coefficients of second and higher derivatives are replaced by the middle
        of their range. The remainder is then smaller than this part, and not stiff."""
        stiff = self.frozen(time, state, lambda values: 0.5 * float(values.min() + values.max()), least=2)
        return self.matrices.A if stiff is None else self.matrices.A + stiff

    @property
    def table_shape(self) -> tuple[int, ...]:
        return self.modes.shape

    def phi_functions(self, linear: FourierSymbol, step: float) -> tuple[FourierSymbol, ...]:
        """φ_0(hA), …, φ_3(hA), which ETDRK4 needs."""
        return phi_functions(linear * step, self.modes.shape)

    def clean(self, tables: Array) -> Array:
        """Tables without the rounding that belongs to no real function."""
        return self.modes.real(tables)

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the frozen-mean Jacobian."""
        matrix = self.jacobian(time, state).matrix
        if matrix.diagonal:
            return max((float(entry.real.max()) for entry in matrix.entries.values()), default=0.0)
        return float(np.linalg.eigvals(matrix.dense(self.modes.count)).real.max())

    # -------------------------------------------------------------------------------------------------- values

    @property
    def basis_kind(self) -> str:
        return "fourier"

    @property
    def label(self) -> str:
        return "sines and cosines of the reflected domain" if self.modes.parities else "Fourier modes"

    def with_evolution(self, evolution: Evolution) -> FourierSystem:
        """The system with these modes, of the whole box, for an evolution that differs in numbers and functions only.

        Data may repeat themselves at some values of the unknowns and not at others: hence the whole box.
        """
        bounds = whole_period(evolution)
        pairs = zip(bounds, self.modes.bounds, self.modes.highest, strict=True)
        highest = tuple(round((b - a) / (d - c)) * high for (a, b), (c, d), high in pairs)
        modes = replace(self.modes, bounds=bounds, highest=highest, padding=EXACT)
        scales = dict(zip(evolution.components, self.scales.values(), strict=True))
        return FourierSystem(Equations.of(evolution), modes, scales)

    def derivatives(
        self, trajectory: Trajectory, points: Array, derivatives: Sequence[MultiIndex]
    ) -> dict[MultiIndex, Array]:
        """∂^α of every field along a trajectory at points (M, n): step by step, all derivatives together."""
        if not isinstance(trajectory.steps[0], TruncatedStep):
            return by_component(self, trajectory, points, derivatives)
        orders = self.evolution.orders
        requests = []
        for index in derivatives:
            for name, order in orders.items():
                level = min(index[0], max(order, 1) - 1)
                part = self.parts.index(Component(name, level))
                requests.append(DerivativeRequest(part, index[0] - level, index[1:]))
        values = np.empty((len(requests), len(points)))
        for step, rows in trajectory.by_step(points[:, 0]):
            assert isinstance(step, TruncatedStep)
            values[:, rows] = step.at(points[rows], requests)
        each = values.reshape(len(derivatives), len(orders), len(points))
        return {index: part.T for index, part in zip(derivatives, each, strict=True)}

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The header for a file; there are no arrays."""
        mirrored = bool(self.modes.parities)
        whole = zip(self.evolution.domain.space.bounds, self.modes.bounds, strict=True)
        repeats = [round((1 + mirrored) * (b - a) / (upper - lower)) for (a, b), (lower, upper) in whole]
        about = {"kind": self.basis_kind, "highest": list(self.modes.highest), "repeats": repeats}
        scales = [self.scales[component] for component in self.evolution.components]
        return about | {"mirrored": mirrored, "scales": scales}, {}

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); there are no boundary data."""
        number, values = self.parts.index(component), np.empty(len(points))
        same = states.strides[1] == 0 or len(points) == 1
        for rows in [np.arange(len(points))] if same else np.arange(len(points))[:, None]:
            state = states[:, rows[0]]
            if len(state) < len(self.parts) * self.modes.count:
                state = self.completed(times[rows[:1]], state[:, None])[:, 0]
            waves = self.modes.exponentials(points[rows])
            values[rows] = self.modes.at(self._tables(state)[number : number + 1], waves, [index], number)[0, 0]
        return values
