"""Evolution on boxes of two and three dimensions, in products of one-dimensional bases.

    u(t, x) = Σ U_{jkl}(t) E_j(x) E_k(y) E_l(z)

with a basis E of each axis' own (``axis``): as fine along an axis as the solution is along that axis. The state holds
z = ⟨φ_j φ_k φ_l, u⟩ for the functions φ that satisfy the homogeneous conditions. Coefficients of the other products are
what the boundary conditions prescribe, the boundary values themselves projected on the products of the other axes; on
edges, where two sides meet, their mean. As in ``galerkin``, the liftings' products with φ are taken off z first.

Terms with constant coefficients act on U by one small matrix an axis; all others are formed at the nodes of the product
of the rules, reached and left by one matrix product an axis (sum factorisation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.pde.lines.products.axis import Axis, along, values_on
from rannpde.pde.lines.products.kronecker import KroneckerBlocks
from rannpde.pde.lines.products.linearised import Linearised
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.evolution import Component, Constraint, Evolution, wall_rows
from rannpde.pde.statement.expression import Jet, constant

Orders = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Products:
    """An evolution (in strong form) on products of axes (field → one Axis a coordinate); a ``Dynamics``.

    weak : second derivatives with constant factors by parts, without what flows through the sides
    """

    evolution: Evolution
    axes: Mapping[str, tuple[Axis, ...]]
    scales: Mapping[Component, float]
    tuning: LinesTuning = field(default_factory=LinesTuning)
    weak: bool = False

    @property
    def dim(self) -> int:
        return self.evolution.domain.space.dim

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """field → (r_1, …, r_d)."""
        return {name: tuple(axis.rank for axis in axes) for name, axes in self.axes.items()}

    @cached_property
    def slices(self) -> dict[Component, slice]:
        """Where each component lies in the state vector."""
        return self.evolution.slices({name: int(np.prod(shape)) for name, shape in self.shapes.items()})

    @property
    def unknowns(self) -> int:
        return max(block.stop for block in self.slices.values())

    @property
    def columns(self) -> int:
        """Features along all axes."""
        return max(sum(axis.columns for axis in axes) for axes in self.axes.values())

    @property
    def rank(self) -> int:
        return max(int(np.prod(shape)) for shape in self.shapes.values())

    @property
    def held(self) -> int:
        return self.rank

    @property
    def first(self) -> tuple[Axis, ...]:
        """The axes of the first field; all fields share their nodes."""
        return next(iter(self.axes.values()))

    @cached_property
    def nodes(self) -> Array:
        """The product of the nodes, (Q, d)."""
        return combinations(axis.nodes for axis in self.first)

    @cached_property
    def weights(self) -> Array:
        """(Q_1, …, Q_d)."""
        return reduce(np.multiply.outer, [axis.weights for axis in self.first])

    def initial_state(self) -> Array:
        """z at the first time (n,); 0 of fields that begin with nothing."""
        shape = tuple(len(axis.nodes) for axis in self.first)
        state = np.zeros(self.unknowns)
        for component, block in self.slices.items():
            if component not in self.evolution.initial:
                continue
            values = self.evolution.initial_values(component, self.nodes).reshape(shape)
            state[block] = self.project(component.field, values).ravel()
        return state

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        return self.evolution.size(change, self.slices, self.scales)

    def project(self, name: str, values: Array) -> Array:
        """Node values (Q_1, …, Q_d, …) → products with φ (r_1, …, r_d, …)."""
        for axis, one in enumerate(self.axes[name]):
            values = along(one.tests, values, axis)
        return values

    # ------------------------------------------------------------------------------------------------ coefficients

    @cached_property
    def faces(self) -> dict[str, list[tuple[int, int, Constraint]]]:
        """field → (axis, row of that axis, its values) of the conditions, none where all values are 0."""
        found: dict[str, list[tuple[int, int, Constraint]]] = {}
        for name, axes in self.axes.items():
            faces, rows = wall_rows(self.evolution, name) or [], [0] * self.dim
            own = []
            for face in faces:
                own.append((face.axis, rows[face.axis], values_on(face, self.evolution, name, axes)))
                rows[face.axis] += 1
            found[name] = own if any(values.value != 0 for _, _, values in own) else []
        return found

    def coefficients(self, component: Component, times: Array, states: Array, order: int | None = None) -> Array:
        """U (R_1, …, R_d, s) of states (n, s); (r_1, …, r_d, s) where all boundary values are 0."""
        name = component.field
        inside = states[self.slices[component]].reshape(*self.shapes[name], -1)
        if not self.faces[name]:
            return inside
        whole, lifted = self._lifting(name, times, component.level if order is None else order)
        whole[tuple(slice(0, r) for r in self.shapes[name])] = inside - lifted
        return whole

    def _lifting(self, name: str, times: Array, order: int) -> tuple[Array, Array]:
        """What the boundary prescribes (R_1, …, R_d, s), to be filled, and its products with φ (r_1, …, r_d, s).

        The last is kept: the iterations of a step ask at the same times. Equal times are computed once.
        """
        key = name, order
        if key not in self._last or not np.array_equal(self._last[key][0], times):
            distinct, back = np.unique(times, return_inverse=True)
            whole = self.boundary_part(name, distinct, order)
            lifted = whole
            for axis, one in enumerate(self.axes[name]):
                if one.functions > one.rank:
                    lifted = along(self.small(name, name, axis, 0), lifted, axis)
            self._last[key] = times.copy(), whole[..., back], lifted[..., back]
        return self._last[key][1].copy(), self._last[key][2]

    @cached_property
    def _last(self) -> dict[tuple[str, int], tuple[Array, Array, Array]]:
        return {}

    def boundary_part(self, name: str, times: Array, order: int) -> Array:
        """(R_1, …, R_d, s): the coefficients that the boundary values (or their time derivatives) prescribe."""
        axes = self.axes[name]
        whole = np.zeros((*(one.functions for one in axes), len(times)))
        count = np.zeros((*whole.shape[:-1], 1))
        for axis, row, values in self.faces[name]:
            shape = tuple(1 if k == axis else len(one.nodes) for k, one in enumerate(axes))
            data = values.values(times, order).reshape(*shape, len(times))
            for k, one in enumerate(axes):
                data = along(one.fit, data, k) if k != axis else data
            place = axes[axis].rank + row
            slab = (slice(None),) * axis + (slice(place, place + 1),)
            whole[slab] += data
            count[slab] += 1.0
        whole /= np.maximum(count, 1.0)
        return whole

    def small(self, row: str, column: str, axis: int, order: int) -> Array:
        """(r, R): what a derivative along an axis does to the coefficients of a field, seen by another's tests."""
        key = row, column, axis, order
        if key not in self._kept:
            own, other = self.axes[row][axis], self.axes[column][axis]
            if self.weak and order == 2:
                matrix = -(own.values(1)[:, : own.rank] * own.weights[:, None]).T @ other.values(1)
            else:
                matrix = own.tests @ other.values(order)
            if order == 0 and row == column:
                matrix[:, : own.rank] = np.eye(own.rank)
            self._kept[key] = matrix
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[tuple[str, str, int, int], Array]:
        return {}

    def act(self, row: str, column: str, orders: Orders, tensor: Array) -> Array:
        """A derivative of U, seen by the tests of a field: (r_1, …, r_d, …)."""
        for axis, order in enumerate(orders):
            if order or row != column or tensor.shape[axis] != self.shapes[row][axis]:
                tensor = along(self.small(row, column, axis, order)[:, : tensor.shape[axis]], tensor, axis)
        return tensor

    def spread(self, name: str, orders: Orders, tensor: Array, kept: dict[tuple[str, Orders], Array]) -> Array:
        """A derivative of U at the nodes (Q_1, …, Q_d, …); ``kept`` holds what derivatives share, from the last on."""
        start = next((k for k in range(self.dim) if (name, orders[k:]) in kept), self.dim)
        found = kept[name, orders[start:]] if start < self.dim else tensor
        for axis in range(start - 1, -1, -1):
            found = along(self.axes[name][axis].values(orders[axis])[:, : found.shape[axis]], found, axis)
            kept[name, orders[axis:]] = found
        return found

    # ----------------------------------------------------------------------------------------------------- rates

    @cached_property
    def split(self) -> dict[str, tuple[dict[Jet, float], sympy.Expr]]:
        """field → its rate as (jet → constant coefficient, the rest)."""
        found = {}
        for name, rate in self.evolution.rates.items():
            expression, linear = rate.source, {}
            for symbol, partial in zip(expression.symbols, expression.partials, strict=True):
                number = constant(partial)
                if number is not None and np.isfinite(number):
                    linear[symbol] = number
            rest = expression.formula.subs(dict.fromkeys(linear, 0))
            found[name] = {expression.symbols[symbol]: number for symbol, number in linear.items()}, rest
        return found

    def rates(self, times: Array, states: Array) -> Array:
        """z' (n, s) at s times."""
        tensors = {c: self.coefficients(c, times, states) for c in self.slices}
        result = np.empty_like(states)
        rests = self._rests(times, tensors)
        for component, block in self.slices.items():
            above = self.evolution.above(component)
            if above is not None:
                result[block] = states[self.slices[above]]
                continue
            name = component.field
            total = rests[name] if name in rests else np.zeros((*self.shapes[name], len(times)))
            for jet, number in self.split[name][0].items():
                source = Component.of(jet)
                total = total + number * self.act(name, jet.field, jet.index[1:], tensors[source])
            result[block] = total.reshape(-1, len(times))
        return result

    def _rests(self, times: Array, tensors: Mapping[Component, Array]) -> dict[str, Array]:
        """field → what is not linear with constant coefficients, projected (r_1, …, r_d, s)."""
        rests = {name: rest for name, (_, rest) in self.split.items() if rest != 0}
        used = set().union(*(rest.free_symbols for rest in rests.values())) if rests else set()
        known = self.known(times) | self.jets(tensors, used)
        values = self.evolution.values(rests.values(), known)
        shape = (*self.weights.shape, len(times))
        with np.errstate(invalid="ignore"):  # a trial step may leave the domain of the equation
            return {
                name: self.project(name, np.broadcast_to(value, shape))
                for name, value in zip(rests, values, strict=True)
            }

    def jets(self, tensors: Mapping[Component, Array], used: set[sympy.Symbol]) -> dict[sympy.Symbol, Array]:
        found: dict[sympy.Symbol, Array] = {}
        kept: dict[Component, dict[tuple[str, Orders], Array]] = {}
        for symbol, jet in self.evolution.symbols.items():
            if symbol in used:
                component = Component.of(jet)
                shared = kept.setdefault(component, {})
                found[symbol] = self.spread(jet.field, jet.index[1:], tensors[component], shared)
        return found

    def known(self, times: Array) -> dict[sympy.Symbol, Array]:
        known = {self.evolution.clock: times}
        for axis, symbol in enumerate(self.evolution.problem.vocabulary.symbols[1:]):
            shape = tuple(-1 if k == axis else 1 for k in range(self.dim + 1))
            known[symbol] = self.first[axis].nodes.reshape(shape)
        return known

    # --------------------------------------------------------------------------------------------------- Jacobian

    def jacobian(self, time: float, state: Array) -> KroneckerBlocks:
        """J₀ of every field, with the exact product behind it."""
        return self.linearised(time, state).operator()

    def linearised(self, time: float, state: Array) -> Linearised:
        """∂rate/∂jet at a state (n,)."""
        times, rates = np.array([time]), self.evolution.rates
        partials = [p for rate in rates.values() for p in rate.source.partials]
        used = set().union(*(p.free_symbols for p in partials)) if partials else set()
        tensors = {c: self.coefficients(c, times, state[:, None]) for c in self.slices} if used else {}
        known = self.known(times) | self.jets(tensors, used)
        values = iter(self.evolution.values(partials, known))
        found: dict[str, dict[Jet, Any]] = {name: {} for name in rates}
        for name, rate in rates.items():
            for jet in rate.source.jets:
                value = np.nan_to_num(next(values))
                varies = value.size > 1
                found[name][jet] = np.broadcast_to(value[..., 0], self.weights.shape) if varies else float(value.item())
        return Linearised(self, found)

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of J₀."""
        return max(block.growth() for block in self.jacobian(time, state).blocks)

    # ------------------------------------------------------------------------------------------------- anywhere

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        tensor = self.coefficients(component, times, states, order)
        for axis, one in enumerate(self.axes[component.field]):
            rows = one.at(points[:, axis], index[axis])[:, : len(tensor)]
            tensor = np.einsum("mr,r...m->...m", rows, tensor)
        return tensor

    def grids(self, component: Component, times: Array, states: Array, orders: Orders) -> Array:
        """(Q_1, …, Q_d, s): a derivative of a component at the nodes."""
        return self.spread(component.field, orders, self.coefficients(component, times, states), {})
