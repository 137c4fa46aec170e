"""The semi-discrete system: z' = ⟨basis, F(t, u(z))⟩ in the quadrature product, with its exact Jacobian.

Projection in the true L² product inherits the sign of the operator: ⟨u, F'u⟩ ≤ 0 stays so for every combination of
basis functions, where a least-squares projection at scattered points has growing modes. Fluxes are integrated by parts,

    z' = ∫ φ source + Σ_x ∫ ∂_x φ flux_x - ∮ φ flux·n .
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.lines.basis import Basis
from rannpde.pde.lines.radau import Dense
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.statement.expression import Jet


@dataclass(frozen=True, eq=False)
class Galerkin:
    """An evolution projected on bases (field → Basis); a ``Dynamics`` of the integrators.

    scales : component → size of the solution (root mean square over space), to which errors are relative
    """

    evolution: Evolution
    bases: Mapping[str, Basis]
    scales: Mapping[Component, float]

    @cached_property
    def slices(self) -> dict[Component, slice]:
        """Where each component lies in the state vector."""
        found, start = {}, 0
        for component in self.evolution.components:
            stop = start + self.bases[component.field].rank
            found[component] = slice(start, stop)
            start = stop
        return found

    @property
    def unknowns(self) -> int:
        return max(block.stop for block in self.slices.values())

    @cached_property
    def _volume(self) -> float:
        return self.evolution.domain.space.volume

    @cached_property
    def _tests(self) -> dict[str, list[Array]]:
        """field → [P for the source, P_x for each flux], each (rank, Q + B)."""
        dim = self.evolution.domain.space.dim
        tests = {}
        for name, rate in self.evolution.rates.items():
            basis = self.bases[name]
            rule = basis.rule
            inside = np.append(rule.weights, np.zeros(len(rule.boundary)))[:, None]
            values = basis.values((0,) * dim)[0]
            matrices = [values * inside]
            for axis in rate.flux:
                slope = basis.values(_unit(axis, dim))[0] * inside
                slope[len(rule.weights) :] = -rule.outward[:, axis, None] * values[len(rule.weights) :]
                matrices.append(slope)
            tests[name] = [np.ascontiguousarray(matrix.T) for matrix in matrices]
        return tests

    def initial_state(self) -> Array:
        """z at the first time (n,)."""
        state = np.empty(self.unknowns)
        for component, block in self.slices.items():
            basis = self.bases[component.field]
            state[block] = basis.project(self.evolution.initial_values(component, basis.rule.points))
        return state

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        sizes = [np.linalg.norm(change[block]) / self.scales[c] for c, block in self.slices.items()]
        return float(max(sizes)) / float(np.sqrt(self._volume))

    def jet_values(self, times: Array, states: Array) -> dict[Jet, Array]:
        """(Q + B, s): every derivative that the rates need, at s times with states (n, s)."""
        found: dict[Jet, Array] = {}
        parts: dict[Component, tuple[Array, Array]] = {}
        for jet in self.evolution.jets:
            component, basis = Component(jet.field, jet.index[0]), self.bases[jet.field]
            if component not in parts:
                data = basis.data(times, component.level)
                parts[component] = basis.coefficients(states[self.slices[component]], data), data
            coefficients, data = parts[component]
            values, lifting = basis.values(jet.index[1:])
            found[jet] = values @ coefficients
            if len(data):
                found[jet] += lifting @ data
        return found

    def rates(self, times: Array, states: Array) -> Array:
        """z' (n, s) at s times."""
        jets = self.jet_values(times, states)
        known = self._known(times) | self._by_symbol(jets)
        parts = [part.formula for rate in self.evolution.rates.values() for part in rate.parts]
        values = iter(self.evolution.values(parts, known))
        result = np.empty_like(states)
        for component, block in self.slices.items():
            if component.level + 1 < self.evolution.orders[component.field]:
                result[block] = states[self.slices[Component(component.field, component.level + 1)]]
                continue
            result[block] = 0.0
            for test in self._tests[component.field]:
                value = next(values)
                if value.ndim or value != 0.0:  # a pure flux has no source
                    with np.errstate(invalid="ignore"):  # a trial step may leave the domain of the equation
                        result[block] += test @ np.broadcast_to(value, (test.shape[1], len(times)))
        return result

    def jacobian(self, time: float, state: Array) -> Dense:
        """∂z'/∂z, exact."""
        return Dense(self.matrix(time, state))

    def matrix(self, time: float, state: Array) -> Array:
        """∂z'/∂z (n, n)."""
        times = np.array([time])
        jets = self.jet_values(times, state[:, None])
        known = self._known(times) | self._by_symbol(jets)
        rates = self.evolution.rates
        wanted = [partial for rate in rates.values() for part in rate.parts for partial in part.partials]
        found = self.evolution.values(wanted, known)
        # a root has no slope at 0: Newton's iteration goes on with an approximation of the Jacobian
        values = iter([np.where(np.isfinite(value), value, 0.0) for value in found])
        result = np.zeros((len(state), len(state)))
        for component, block in self.slices.items():
            order = self.evolution.orders[component.field]
            if component.level + 1 < order:
                result[block, self.slices[Component(component.field, component.level + 1)]] = np.eye(
                    block.stop - block.start
                )
                continue
            for part, test in zip(rates[component.field].parts, self._tests[component.field], strict=True):
                combined: dict[Component, Array] = {}
                for jet, value in zip(part.jets, values, strict=False):
                    source = Component(jet.field, jet.index[0])
                    term = np.reshape(value, (-1, 1)) * self.bases[jet.field].values(jet.index[1:])[0]
                    combined[source] = combined[source] + term if source in combined else term
                for source, matrix in combined.items():
                    result[block, self.slices[source]] += test @ matrix
        return result

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the Jacobian."""
        return float(np.linalg.eigvals(self.matrix(time, state)).real.max())

    @property
    def columns(self) -> int:
        """Features behind the bases."""
        return max(basis.features.columns for basis in self.bases.values())

    @property
    def rank(self) -> int:
        return max(basis.rank for basis in self.bases.values())

    @property
    def nodes(self) -> Array:
        """The quadrature nodes inside, (Q, d)."""
        return next(iter(self.bases.values())).rule.points

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); ``order`` is that of boundary data in time."""
        basis = self.bases[component.field]
        values, lifting = basis.at(points, index)
        data = basis.data(times, order)
        result = np.einsum("mr,rm->m", values, basis.coefficients(states[self.slices[component]], data))
        return result + np.einsum("mk,km->m", lifting, data) if len(data) else result

    def _by_symbol(self, jets: Mapping[Jet, Array]) -> dict[sympy.Symbol, Array]:
        return {symbol: jets[jet] for symbol, jet in self.evolution.symbols.items()}

    def _known(self, times: Array) -> dict[sympy.Symbol, Array]:
        nodes = next(iter(self.bases.values())).rule.nodes
        return self.evolution.known(times[None, :], nodes[:, :, None])


def _unit(axis: int, dim: int) -> tuple[int, ...]:
    return tuple(int(k == axis) for k in range(dim))
