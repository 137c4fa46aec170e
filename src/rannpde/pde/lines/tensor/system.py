"""Evolution on boxes of two and three dimensions, projected on a tensor-product basis.

    u(t, x) = Σ U_{jkl}(t) E_j(x) E_k(y) E_l(z)

with a basis E for each axis (``basis``), as fine as the solution is along that axis. The state holds
z = ⟨φ_j φ_k φ_l, u⟩ for the functions φ that satisfy the homogeneous conditions. The coefficients of the other products
are prescribed by the boundary conditions: they are the boundary values, projected on the products of the other axes; on
edges, where two sides meet, the mean of both. As in ``galerkin``, ⟨φ, lifting⟩ is subtracted from z first.

Terms with constant coefficients act on U by one small matrix for each axis; all others are formed at the nodes of the
product of the rules, with one matrix product for each axis there and back (sum factorisation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex, combinations, row_blocks
from rannpde.checkpoints import checkpoint
from rannpde.network.network import pack_features
from rannpde.pde.lines.solution import by_component
from rannpde.pde.lines.tensor.basis import AXIS_ARRAYS, AxisBasis, along, values_on
from rannpde.pde.lines.tensor.kronecker import KroneckerBlocks
from rannpde.pde.lines.tensor.linearisation import LinearisedRates
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.evolution import Component, Constraint, Evolution, wall_rows
from rannpde.pde.statement.expression import Jet, constant
from rannpde.pde.time.dynamics import random_multiples
from rannpde.pde.time.trajectory import Trajectory

Orders = tuple[int, ...]

NODE_BLOCK = 2**20
"""Values at nodes (nodes × times) that are computed at once: 8 MB for each array, a tenth of a second for a formula."""


@dataclass(frozen=True, eq=False)
class TensorSystem:
    """An evolution (in strong form) on a tensor-product basis (field → one AxisBasis for each coordinate).

    weak : whether second derivatives with constant factors are integrated by parts, without boundary terms
    """

    evolution: Evolution
    axes: Mapping[str, tuple[AxisBasis, ...]]
    scales: Mapping[Component, float]
    tuning: LinesTuning = field(default_factory=LinesTuning)
    weak: bool = False

    @property
    def dim(self) -> int:
        return self.evolution.domain.space.dim

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """field → ranks (r_1, …, r_d)."""
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
        """Random features of all axes together."""
        return max(sum(axis.columns for axis in axes) for axes in self.axes.values())

    @property
    def rank(self) -> int:
        return max(int(np.prod(shape)) for shape in self.shapes.values())

    @property
    def memory_per_point(self) -> int:
        return self.rank

    @property
    def first(self) -> tuple[AxisBasis, ...]:
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
        """z at the first time (n,); 0 for fields without initial values."""
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

    def perturbation(self, state: Array, rng: np.random.Generator) -> Array:
        """A random change of a state: see ``Dynamics``."""
        return random_multiples(state, rng)

    def project(self, name: str, values: Array) -> Array:
        """Node values (Q_1, …, Q_d, …) → inner products with φ (r_1, …, r_d, …)."""
        for axis, one in enumerate(self.axes[name]):
            values = along(one.tests, values, axis)
        return values

    # ------------------------------------------------------------------------------------------------ coefficients

    @cached_property
    def faces(self) -> dict[str, list[tuple[int, int, Constraint]]]:
        """field → (axis, row of that axis, its values) of each condition; none where all boundary values are 0."""
        conditions: dict[str, list[tuple[int, int, Constraint]]] = {}
        for name, axes in self.axes.items():
            faces, rows = wall_rows(self.evolution, name) or [], [0] * self.dim
            own = []
            for face in faces:
                own.append((face.axis, rows[face.axis], values_on(face, self.evolution, name, axes)))
                rows[face.axis] += 1
            conditions[name] = own if any(values.value != 0 for _, _, values in own) else []
        return conditions

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
        """The coefficients that the boundary prescribes (R_1, …, R_d, s), and ⟨φ, lifting⟩ (r_1, …, r_d, s).

        Those of the last times are cached, since the Newton iterations of a step ask for the same times. Equal times
        are computed once.
        """
        key = name, order
        if key not in self._last or not np.array_equal(self._last[key][0], times):
            distinct, back = np.unique(times, return_inverse=True)
            whole = self.boundary_part(name, distinct, order)
            lifted = whole
            for axis, one in enumerate(self.axes[name]):
                if one.functions > one.rank:
                    lifted = along(self.axis_matrix(name, name, axis, 0), lifted, axis)
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
            number = axes[axis].rank + row
            slab = (slice(None),) * axis + (slice(number, number + 1),)
            whole[slab] += data
            count[slab] += 1.0
        whole /= np.maximum(count, 1.0)
        return whole

    def axis_matrix(self, row: str, column: str, axis: int, order: int) -> Array:
        """(r, R): the matrix of a derivative along an axis, from coefficients of one field to test functions of
        another."""
        key = row, column, axis, order
        if key not in self._matrices:
            own, other = self.axes[row][axis], self.axes[column][axis]
            if self.weak and order == 2:
                matrix = -(own.values(1)[:, : own.rank] * own.weights[:, None]).T @ other.values(1)
            else:
                matrix = own.tests @ other.values(order)
            if order == 0 and row == column:
                matrix[:, : own.rank] = np.eye(own.rank)
            self._matrices[key] = matrix
        return self._matrices[key]

    @cached_property
    def _matrices(self) -> dict[tuple[str, str, int, int], Array]:
        return {}

    def act(self, row: str, column: str, orders: Orders, tensor: Array) -> Array:
        """A derivative of U, tested with the functions of a field: (r_1, …, r_d, …)."""
        for axis, order in enumerate(orders):
            if order or row != column or tensor.shape[axis] != self.shapes[row][axis]:
                tensor = along(self.axis_matrix(row, column, axis, order)[:, : tensor.shape[axis]], tensor, axis)
        return tensor

    def spread(self, name: str, orders: Orders, tensor: Array, cache: dict[tuple[str, Orders], Array]) -> Array:
        """A derivative of U at the nodes (Q_1, …, Q_d, …); ``cache`` holds partial products that derivatives
        share, from the last axis on."""
        start = next((k for k in range(self.dim) if (name, orders[k:]) in cache), self.dim)
        values = cache[name, orders[start:]] if start < self.dim else tensor
        for axis in range(start - 1, -1, -1):
            values = along(self.axes[name][axis].values(orders[axis])[:, : values.shape[axis]], values, axis)
            cache[name, orders[axis:]] = values
        return values

    # ----------------------------------------------------------------------------------------------------- rates

    @cached_property
    def split(self) -> dict[str, tuple[dict[Jet, float], sympy.Expr]]:
        """field → its rate as (jet → constant coefficient, the rest)."""
        parts = {}
        for name, rate in self.evolution.rates.items():
            expression, linear = rate.source, {}
            for symbol, partial in zip(expression.symbols, expression.partials, strict=True):
                number = constant(partial)
                if number is not None and np.isfinite(number):
                    linear[symbol] = number
            rest = expression.formula.subs(dict.fromkeys(linear, 0))
            parts[name] = {expression.symbols[symbol]: number for symbol, number in linear.items()}, rest
        return parts

    def rates(self, times: Array, states: Array) -> Array:
        """z' (n, s) at s times, as many at once as a block holds; the time allowed is asked between blocks."""
        result = np.empty_like(states)
        for block in row_blocks(len(times), max(1, NODE_BLOCK // self.weights.size)):
            checkpoint()
            result[:, block] = self._rates(times[block], states[:, block])
        return result

    def _rates(self, times: Array, states: Array) -> Array:
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
        """field → the projected terms that are not linear with constant coefficients, (r_1, …, r_d, s)."""
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
        values: dict[sympy.Symbol, Array] = {}
        cache: dict[Component, dict[tuple[str, Orders], Array]] = {}
        for symbol, jet in self.evolution.symbols.items():
            if symbol in used:
                component = Component.of(jet)
                shared = cache.setdefault(component, {})
                values[symbol] = self.spread(jet.field, jet.index[1:], tensors[component], shared)
        return values

    def known(self, times: Array) -> dict[sympy.Symbol, Array]:
        known = {self.evolution.clock: times}
        for axis, symbol in enumerate(self.evolution.problem.vocabulary.symbols[1:]):
            shape = tuple(-1 if k == axis else 1 for k in range(self.dim + 1))
            known[symbol] = self.first[axis].nodes.reshape(shape)
        return known

    # --------------------------------------------------------------------------------------------------- Jacobian

    def jacobian(self, time: float, state: Array) -> KroneckerBlocks:
        """The Kronecker sums J₀ and the exact product with the Jacobian."""
        return self.linearised(time, state).operator()

    def linearised(self, time: float, state: Array) -> LinearisedRates:
        """∂rate/∂jet at a state (n,)."""
        times, rates = np.array([time]), self.evolution.rates
        partials = [p for rate in rates.values() for p in rate.source.partials]
        used = set().union(*(p.free_symbols for p in partials)) if partials else set()
        tensors = {c: self.coefficients(c, times, state[:, None]) for c in self.slices} if used else {}
        known = self.known(times) | self.jets(tensors, used)
        values = iter(self.evolution.values(partials, known))
        slopes: dict[str, dict[Jet, Any]] = {name: {} for name in rates}
        for name, rate in rates.items():
            for jet in rate.source.jets:
                value = np.nan_to_num(next(values))
                varies = value.size > 1
                slopes[name][jet] = (
                    np.broadcast_to(value[..., 0], self.weights.shape) if varies else float(value.item())
                )
        return LinearisedRates(self, slopes)

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of J₀."""
        return max(block.growth() for block in self.jacobian(time, state).blocks)

    # --------------------------------------------------------------------------------------------------- values

    @property
    def basis_kind(self) -> str:
        return "tensor"

    @property
    def label(self) -> str:
        return "products of adapted random features"

    def with_evolution(self, evolution: Evolution) -> TensorSystem:
        """The system on this basis for an evolution that differs in numbers and functions only."""
        scales = dict(zip(evolution.components, self.scales.values(), strict=True))
        return replace(self, evolution=evolution, scales=scales)

    def derivatives(
        self, trajectory: Trajectory, points: Array, derivatives: Sequence[MultiIndex]
    ) -> dict[MultiIndex, Array]:
        """∂^α of every field along a trajectory at points (M, n)."""
        return by_component(self, trajectory, points, derivatives)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file: nodes, weights and functions of each axis of each field, and its features."""
        layers: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        for name, axes in self.axes.items():
            for number, axis in enumerate(axes):
                key = f"axis.{name}.{number}"
                arrays |= {f"{key}.{part}": getattr(axis, part) for part in AXIS_ARRAYS}
                if axis.features is not None:
                    layers[key], own = pack_features(axis.features)
                    arrays |= {f"{key}.features.{part}": array for part, array in own.items()}
        scales = [self.scales[component] for component in self.evolution.components]
        return {"kind": self.basis_kind, "scales": scales, "layers": layers}, arrays

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        axes = self.axes[component.field]
        single = states.strides[1] == 0 and len(points) > 0 and bool((times == times[0]).all())
        if single:
            times, states = times[:1], states[:, :1]
        tensor = self.coefficients(component, times, states, order)
        rows = [one.at(points[:, k], index[k])[:, : tensor.shape[k]] for k, one in enumerate(axes)]
        if single:  # the first axis by a product of matrices for all points
            tensor = np.tensordot(rows[0], tensor[..., 0], axes=1)
            for own in rows[1:]:
                tensor = np.einsum("mr,mr...->m...", own, tensor)
            return tensor
        for own in rows:
            tensor = np.einsum("mr,r...m->...m", own, tensor)
        return tensor

    def grids(self, component: Component, times: Array, states: Array, orders: Orders) -> Array:
        """(Q_1, …, Q_d, s): a derivative of a component at the nodes."""
        return self.spread(component.field, orders, self.coefficients(component, times, states), {})
