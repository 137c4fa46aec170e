"""Galerkin projection on random features: z' = ⟨basis, F(t, u(z))⟩ in a quadrature product, with its exact Jacobian.

Galerkin projection inherits the sign of the operator: ⟨u, F'u⟩ ≤ 0 holds for every combination of basis functions,
whereas a least-squares projection at scattered points has growing modes. Fluxes are integrated by parts,

    z' = ∫ φ source + Σ_x ∫ ∂_x φ flux_x - ∮ φ flux·n .
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import require
from rannpde.network.export import one_layer
from rannpde.network.network import pack_features
from rannpde.pde.discontinuities import averaged_at_jumps
from rannpde.pde.lines.features.basis import FeatureBasis, Rule, build_basis, feature_table
from rannpde.pde.lines.solution import by_component
from rannpde.pde.problem.evolution import Component, Evolution, constraints_of
from rannpde.pde.statement.expression import Jet
from rannpde.pde.time.dynamics import DenseJacobian, random_multiples
from rannpde.pde.time.tableau import stages_for
from rannpde.pde.time.trajectory import Trajectory

BASIS_ARRAYS = ("weights", "lifting", "lifted", "left", "singular_values")
RULE_ARRAYS = ("points", "weights", "boundary", "outward")
"""The arrays of a file."""
LEAST_STAGES = stages_for(1.0)
"""The stages of the method of lowest order; for as many columns, products of matrix and vector take half the time."""
SCALING = ("centre", "halfwidth")
"""The scaling of the coordinates, which features that are exported together share."""


@dataclass(frozen=True, eq=False)
class Galerkin:
    """An evolution projected on bases (field → FeatureBasis): a ``SemiDiscreteSystem``.

    scales : component → size of the solution (root mean square over space), to which errors are relative
    """

    evolution: Evolution
    bases: Mapping[str, FeatureBasis]
    scales: Mapping[Component, float]
    _memory: dict[tuple[Component, bool], Array] = field(default_factory=dict, repr=False)

    @cached_property
    def slices(self) -> dict[Component, slice]:
        """Where each component lies in the state vector."""
        return self.evolution.slices({name: basis.rank for name, basis in self.bases.items()})

    @property
    def unknowns(self) -> int:
        return max(block.stop for block in self.slices.values())

    @cached_property
    def tests(self) -> dict[str, list[Array]]:
        """field → [P (rank, Q) for the source, P_x (rank, Q + B) for each flux].

        Sources have no part on the boundary, where a coefficient such as 1/r may be infinite.
        """
        dim = self.evolution.domain.space.dim
        tests = {}
        for name, rate in self.evolution.rates.items():
            basis = self.bases[name]
            rule = basis.rule
            inside = np.append(rule.weights, np.zeros(len(rule.boundary)))[:, None]
            values = basis.values((0,) * dim)[0]
            matrices = [(values * inside)[: len(rule.weights)]]
            for axis in rate.flux:
                slope = basis.values(_unit(axis, dim))[0] * inside
                slope[len(rule.weights) :] = -rule.outward[:, axis, None] * values[len(rule.weights) :]
                matrices.append(slope)
            tests[name] = [np.ascontiguousarray(matrix.T) for matrix in matrices]
        return tests

    @cached_property
    def _all_nodes(self) -> Array:
        """(Q + B, d, 1): nodes inside and on the boundary, for all times."""
        return self.rule.nodes[:, :, None]

    def initial_state(self) -> Array:
        """z at the first time (n,)."""
        state = np.empty(self.unknowns)
        for component, block in self.slices.items():
            basis, values = self.bases[component.field], partial(self.evolution.initial_values, component)
            nodes, weights = basis.rule.points, basis.rule.weights
            if nodes.shape[1] == 1:
                lower = float(self.evolution.domain.space.bounds[0, 0])
                state[block] = basis.project(averaged_at_jumps(values, nodes[:, 0], weights, lower))
            else:
                state[block] = basis.project(values(nodes))
        return state

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        if np.iscomplexobj(change):
            return self.evolution.size(change, self.slices, self.scales)
        squares = {
            component: np.einsum("n...,n...->...", own := change[b], own) for component, b in self.slices.items()
        }
        largest = max(float(square.max()) ** 0.5 / self.scales[component] for component, square in squares.items())
        return largest / self._root_volume

    def perturbation(self, state: Array, rng: np.random.Generator) -> Array:
        """A random change of a state: see ``Dynamics``."""
        return random_multiples(state, rng)

    @cached_property
    def _root_volume(self) -> float:
        return float(self.evolution.domain.space.volume) ** 0.5

    @cached_property
    def _stacks(self) -> dict[Component, tuple[list[Jet], Array]]:
        """Component → the derivatives of it that the rates need, and [basis, lifting] at all nodes for one after the
        other: one product gives all of them."""
        jets: dict[Component, list[Jet]] = {}
        for jet in self.evolution.jets:
            jets.setdefault(Component.of(jet), []).append(jet)
        return {
            component: (own, np.concatenate([np.hstack(self.bases[jet.field].values(jet.index[1:])) for jet in own]))
            for component, own in jets.items()
        }

    def jet_values(self, times: Array, states: Array) -> dict[Jet, Array]:
        """(Q + B, s): every derivative that the rates need, at s times with states (n, s)."""
        values_of: dict[Jet, Array] = {}
        for component, (jets, stack) in self._stacks.items():
            basis = self.bases[component.field]
            data = basis.data(times, component.level)
            coefficients = basis.coefficients(states[self.slices[component]], data)
            values = _product(stack, np.concatenate([coefficients, data]) if len(data) else coefficients)
            rows = len(self._all_nodes)
            values_of |= {jet: values[k * rows : (k + 1) * rows] for k, jet in enumerate(jets)}
        return values_of

    def rates(self, times: Array, states: Array) -> Array:
        """z' (n, s) at s times."""
        known = self._known(times, states)
        parts = [part.formula for rate in self.evolution.rates.values() for part in rate.parts]
        values = iter(self.evolution.values(parts, known))
        result = np.empty_like(states)
        for component, block in self.slices.items():
            above = self.evolution.above(component)
            if above is not None:
                result[block] = states[self.slices[above]]
                continue
            result[block] = 0.0
            for test in self.tests[component.field]:
                value = next(values)
                if value.ndim or value != 0.0:  # an equation in divergence form may have no source
                    shape = len(self._all_nodes), len(times)
                    value = (value if value.shape == shape else np.broadcast_to(value, shape))[: test.shape[1]]
                    with np.errstate(invalid="ignore"):  # a trial step may leave the domain of the equation
                        result[block] += _product(test, value)
        return result

    def jacobian(self, time: float, state: Array) -> DenseJacobian:
        """∂z'/∂z, exact."""
        return DenseJacobian(self.matrix(time, state))

    def matrix(self, time: float, state: Array) -> Array:
        """∂z'/∂z (n, n)."""
        times = np.array([time])
        known = self._known(times, state[:, None])
        rates = self.evolution.rates
        wanted = [partial for rate in rates.values() for part in rate.parts for partial in part.partials]
        partials = self.evolution.values(wanted, known)
        # a square root has no derivative at 0: Newton's method goes on with an approximation of the Jacobian
        values = iter([np.where(np.isfinite(value), value, 0.0) for value in partials])
        result = np.zeros((len(state), len(state)))
        for component, block in self.slices.items():
            above = self.evolution.above(component)
            if above is not None:
                result[block, self.slices[above]] = np.eye(block.stop - block.start)
                continue
            for part, test in zip(rates[component.field].parts, self.tests[component.field], strict=True):
                combined: dict[Component, Array] = {}
                for jet, value in zip(part.jets, values, strict=False):
                    source = Component.of(jet)
                    basis = self.bases[jet.field].values(jet.index[1:])[0]
                    new = source not in combined
                    term = np.multiply(np.reshape(value, (-1, 1)), basis, out=self._scratch(source, not new))
                    combined[source] = term if new else np.add(combined[source], term, out=combined[source])
                for source, matrix in combined.items():
                    result[block, self.slices[source]] += test @ matrix[: test.shape[1]]
        return result

    def _scratch(self, component: Component, term: bool) -> Array:
        """(Q + B, rank) for a sum of scaled derivatives of a component, or for a term of it: memory that is used again
        by every Jacobian, since new memory of that size takes as long as the product."""
        key = component, term
        if key not in self._memory:
            self._memory[key] = np.empty((len(self._all_nodes), self.bases[component.field].rank))
        return self._memory[key]

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the Jacobian."""
        return float(np.linalg.eigvals(self.matrix(time, state)).real.max())

    @property
    def columns(self) -> int:
        """Random features of the bases."""
        return max(basis.features.columns for basis in self.bases.values())

    @property
    def rank(self) -> int:
        return max(basis.rank for basis in self.bases.values())

    @property
    def memory_per_point(self) -> int:
        return self.columns

    @property
    def rule(self) -> Rule:
        """The quadrature, which all fields share."""
        return next(iter(self.bases.values())).rule

    @property
    def nodes(self) -> Array:
        """The quadrature nodes inside, (Q, d)."""
        return self.rule.points

    @property
    def basis_kind(self) -> str:
        return "features"

    @property
    def label(self) -> str:
        return "adapted random features"

    def with_evolution(self, evolution: Evolution) -> Galerkin:
        """The system on this basis for an evolution that differs in numbers and functions only.

        Bases are built again where the coefficients of boundary conditions differ.
        """
        bases = {}
        for name, basis in self.bases.items():
            rows = constraints_of(evolution, name, basis.boundary_points)
            same = all(
                np.array_equal(one.coefficients[k], other.coefficients.get(k))  # type: ignore[arg-type]
                for one, other in zip(rows, basis.constraints, strict=True)
                for k in one.coefficients
            )
            if same:
                bases[name] = replace(basis, constraints=rows, _last_data={})
                continue
            built = build_basis(
                basis.features, basis.finer or basis.rule, evolution, name,
                cutoff=0.5 * float(basis.singular_values[-1]), boundary_points=basis.boundary_points,
            )  # fmt: skip
            bases[name] = built if basis.finer is None else built.on(basis.rule)
        return Galerkin(evolution, bases, dict(zip(evolution.components, self.scales.values(), strict=True)))

    def derivatives(
        self, trajectory: Trajectory, points: Array, derivatives: Sequence[MultiIndex]
    ) -> dict[MultiIndex, Array]:
        """∂^α of every field along a trajectory at points (M, n)."""
        return by_component(self, trajectory, points, derivatives, _PointValues(self, points[:, 1:]))

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of the bases, for a file."""
        first = next(iter(self.bases.values()))
        layer, arrays = pack_features(first.features)  # type: ignore[arg-type]
        arrays = {f"features.{name}": array for name, array in arrays.items()}
        arrays |= {f"rule.{name}": getattr(first.rule, name) for name in RULE_ARRAYS}
        if first.finer is not None:
            arrays |= {"finer.points": first.finer.points, "finer.weights": first.finer.weights}
        for name, basis in self.bases.items():
            arrays |= {f"basis.{name}.{part}": getattr(basis, part) for part in BASIS_ARRAYS}
        scales = [self.scales[component] for component in self.evolution.components]
        header = {"kind": self.basis_kind, "layer": layer, "weak": self.evolution.weak, "scales": scales}
        return header | {"boundary_points": first.boundary_points}, arrays

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        return _PointValues(self, points)(component, times, states, points, index, order)

    def plain_layer(self) -> tuple[str, Array, Array, Array, Array]:
        """Activation, weights (d, N), biases (N,), centre and halfwidth (d,): the features of all fields, side by side.

        Features of every field are a block of their own; see ``feature_coefficients``.
        """
        features = [basis.features for basis in self.bases.values()]
        layers = [one_layer(one) for one in features]
        same = all(np.array_equal(getattr(one, k), getattr(features[0], k)) for one in features for k in SCALING)
        require(same and len({layer[0] for layer in layers}) == 1, "features", features, "of one kind and one scaling")
        activation, centre, halfwidth = layers[0][0], features[0].centre, features[0].halfwidth  # type: ignore[attr-defined]
        require(activation != "fourier", "features", features[0], "random features", "others cannot be exported")
        weights, biases = np.concatenate([w for _, w, _ in layers], axis=1), np.concatenate([b for _, _, b in layers])
        return activation, weights, biases, centre, halfwidth

    def feature_coefficients(self, times: Array, states: Array) -> Array:
        """(N + 1, fields, M): coefficients of those features, and of 1, for states (n, M) at M times."""
        sizes = [basis.features.columns - basis.features.constant for basis in self.bases.values()]
        coefficients = np.zeros((sum(sizes) + 1, len(self.bases), len(times)))
        for number, (name, basis) in enumerate(self.bases.items()):
            data = basis.data(times)
            own = basis.weights @ basis.coefficients(states[self.slices[Component(name, 0)]], data)
            own = own + basis.lifting @ data if len(data) else own
            first = sum(sizes[:number])
            coefficients[first : first + sizes[number], number] = own[: sizes[number]]
            if basis.features.constant:
                coefficients[-1, number] = own[-1]
        return coefficients

    def on_grid(self, component: Component, times: Array, states: Array, points: Array) -> Array:
        """(s, M): a component at all points (M, d) of space for states (n, s) at all times (s,)."""
        basis = self.bases[component.field]
        values, lifting = basis.at(points, (0,) * points.shape[1])
        data = basis.data(times, 0)
        result = values @ basis.coefficients(states[self.slices[component]], data)
        return np.asarray((result + lifting @ data if len(data) else result).T)

    def _known(self, times: Array, states: Array) -> dict[sympy.Symbol, Array]:
        """Values of all symbols of the rates at the nodes."""
        jets = self.jet_values(times, states)
        known = self.evolution.known(times[None, :], self._all_nodes)
        return known | {symbol: jets[jet] for symbol, jet in self.evolution.symbols.items()}


class _PointValues:
    """``Galerkin.at`` at fixed points (M, d): features that fields or time derivatives share are evaluated once."""

    def __init__(self, system: Galerkin, points: Array) -> None:
        self.system, self.points = system, points
        self.rows: Array | None = None
        whole = points[:, 0] if points.shape[1] == 1 else points
        distinct, rows = np.unique(whole, axis=0, return_inverse=True)
        if 2 * len(distinct) <= len(points):  # points at several times each
            self.points, self.rows = distinct.reshape(-1, points.shape[1]), rows.ravel()
        self.index: MultiIndex | None = None
        self.tables: dict[int, Array] = {}  # of features, by their identity, for the last index
        self.values: dict[int, tuple[Array, Array]] = {}  # of bases, likewise

    def __call__(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        basis = self.system.bases[component.field]
        if index != self.index:
            self.index, self.tables, self.values = index, {}, {}
        design = self.tables.get(id(basis.features))
        if design is None:
            design = self.tables[id(basis.features)] = feature_table(basis.features, self.points, index)
        data = basis.data(times, order)
        own = basis.coefficients(states[self.system.slices[component]], data)
        if len(times) and (times == times[0]).all():  # one time has one coefficient for each feature
            single = design @ (basis.weights @ own[:, 0] + basis.lifting @ data[:, 0])
            return single if self.rows is None else single[self.rows]
        if id(basis) not in self.values:
            self.values[id(basis)] = design @ basis.weights, design @ basis.lifting
        values, lifting = self.values[id(basis)]
        if self.rows is not None:
            values, lifting = values[self.rows], lifting[self.rows]
        result = np.einsum("mr,rm->m", values, own)
        return result + np.einsum("mk,km->m", lifting, data) if len(data) else result


def _product(matrix: Array, columns: Array) -> Array:
    """matrix (m, n) times columns (n, s): a few one by one, since a product of matrices begins by copying them; more
    as rows, which BLAS takes a quarter less time for."""
    if columns.shape[1] > LEAST_STAGES:
        return (columns.T @ matrix.T).T
    result = np.empty((columns.shape[1], len(matrix)))
    for row, column in zip(result, columns.T, strict=True):
        np.dot(matrix, column, out=row)
    return result.T


def _unit(axis: int, dim: int) -> tuple[int, ...]:
    return tuple(int(k == axis) for k in range(dim))
