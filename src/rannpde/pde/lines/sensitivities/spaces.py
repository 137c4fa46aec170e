"""The basis in space of a solution as linear maps, of which the linearised rates are composed.

A state z (n,) represents functions of space, and a change of it a change of these. The maps go from changes to their
derivatives at the nodes, from values at the nodes to rates, and from changes to values anywhere, for random features,
tensor products of them and Fourier modes, each for many changes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.lines.features.galerkin import Galerkin
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.solution import SemiDiscreteSystem
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.statement.expression import Jet
from rannpde.pde.time.dynamics import DenseJacobian, JacobianOperator

MOST_DENSE = 2500
"""Unknowns up to which the Jacobian on a tensor-product basis is formed as a matrix: cheaper for many changes."""


class LinearMaps(Protocol):
    """The maps, for an evolution on the basis of a system."""

    nodes: Array
    """(Q, d): the points at which formulas are evaluated."""
    slices: Mapping[Component, slice]
    """The slice of each component in a state."""

    def known(self, jet: Jet, times: Array, states: Array) -> Array:
        """(Q, s): a derivative of the solution itself at the nodes, boundary values included, from states (n, s)."""
        ...

    def jet(self, jet: Jet, changes: Array) -> Array:
        """(Q, m): a derivative at the nodes of the functions that changes (n, m) represent, without boundary values."""
        ...

    def rate(self, name: str, parts: Sequence[Array]) -> Array:
        """(r, m): the rate of a field's last component from its source and fluxes at the nodes, each (Q, m)."""
        ...

    def project(self, name: str, values: Array) -> Array:
        """(r, m): the state of functions with values (Q', m) at the points of ``initial_points``."""
        ...

    def initial_points(self) -> Array:
        """(Q', d): the points at which initial values are needed."""
        ...

    def table(self, component: Component, points: Array, index: MultiIndex) -> Array:
        """(M, r): a space derivative of a component at points, by its part of the state."""
        ...

    def operator(self, time: float, state: Array) -> JacobianOperator:
        """The Jacobian of the simplified Newton method."""
        ...


class FeatureSpace:
    """The maps of a Galerkin system."""

    def __init__(self, system: Galerkin, evolution: Evolution) -> None:
        self.system, self.form = system, Galerkin(evolution, system.bases, system.scales)
        self.slices = system.slices
        self.nodes = next(iter(system.bases.values())).rule.nodes

    def known(self, jet: Jet, times: Array, states: Array) -> Array:
        basis, component = self.system.bases[jet.field], Component.of(jet)
        data = basis.data(times, component.level)
        values, lifting = basis.values(jet.index[1:])
        own = values @ basis.coefficients(states[self.slices[component]], data)
        return own + lifting @ data if len(data) else own

    def jet(self, jet: Jet, changes: Array) -> Array:
        return self.system.bases[jet.field].values(jet.index[1:])[0] @ changes[self.slices[Component.of(jet)]]

    def rate(self, name: str, parts: Sequence[Array]) -> Array:
        return sum(test @ part[: test.shape[1]] for test, part in zip(self.form.tests[name], parts, strict=True))  # type: ignore[return-value]

    def initial_points(self) -> Array:
        return self.system.nodes

    def project(self, name: str, values: Array) -> Array:
        return self.system.bases[name].project(values)

    def table(self, component: Component, points: Array, index: MultiIndex) -> Array:
        return self.system.bases[component.field].at(points, index)[0]

    def operator(self, time: float, state: Array) -> JacobianOperator:
        return self.system.jacobian(time, state)

    def lifting(self, name: str, index: MultiIndex, points: Array | None = None) -> Array:
        """(Q, m): the change of the field at the nodes, or at points, with the boundary values, at a fixed state."""
        basis = self.system.bases[name]
        values, lifting = basis.values(index) if points is None else basis.at(points, index)
        return lifting - values @ basis.lifted


class TensorSpace:
    """The maps of a tensor-product basis; boundary values do not depend on the unknowns."""

    def __init__(self, system: TensorSystem, evolution: Evolution) -> None:
        self.system, self.slices, self.nodes = system, system.slices, system.nodes

    def known(self, jet: Jet, times: Array, states: Array) -> Array:
        return self.system.grids(Component.of(jet), times, states, jet.index[1:]).reshape(-1, len(times))

    def jet(self, jet: Jet, changes: Array) -> Array:
        inside = changes[self.slices[Component.of(jet)]].reshape(*self.system.shapes[jet.field], -1)
        return self.system.spread(jet.field, jet.index[1:], inside, {}).reshape(len(self.nodes), -1)

    def rate(self, name: str, parts: Sequence[Array]) -> Array:
        (values,) = parts
        return self.project(name, values)

    def initial_points(self) -> Array:
        return self.nodes

    def project(self, name: str, values: Array) -> Array:
        return self.system.project(name, values.reshape(*self.system.weights.shape, -1)).reshape(-1, values.shape[1])

    def table(self, component: Component, points: Array, index: MultiIndex) -> Array:
        whole = np.ones((len(points), 1))
        for axis, one in enumerate(self.system.axes[component.field]):
            rows = one.at(points[:, axis], index[axis])[:, : one.rank]
            whole = (whole[:, :, None] * rows[:, None, :]).reshape(len(points), -1)
        return whole

    def operator(self, time: float, state: Array) -> JacobianOperator:
        if len(state) > MOST_DENSE:
            return self.system.jacobian(time, state)
        return DenseJacobian(self.system.linearised(time, state).product(np.eye(len(state))))


class FourierSpace:
    """The maps of Fourier modes: complex states, tables of coefficients one after the other."""

    def __init__(self, system: FourierSystem, evolution: Evolution) -> None:
        self.system, self.evolution, self.modes, self.nodes = system, evolution, system.modes, system.modes.points
        self.slices = evolution.slices(dict.fromkeys(evolution.orders, system.modes.count))

    def known(self, jet: Jet, times: Array, states: Array) -> Array:
        return self.jet(jet, states)

    def jet(self, jet: Jet, changes: Array) -> Array:
        tables = changes[self.slices[Component.of(jet)]].T.reshape(-1, *self.modes.shape)
        parity = self.modes.parity_of(self._part(jet.field), jet.index[1:])
        return self.modes.to_grid(tables * self.modes.factor(jet.index[1:]), parity).reshape(len(tables), -1).T

    def _part(self, name: str) -> int:
        return list(self.slices).index(Component(name, 0))

    def rate(self, name: str, parts: Sequence[Array]) -> Array:
        source = self.project(name, parts[0])
        for axis, flux in zip(self.evolution.rates[name].flux, parts[1:], strict=True):
            along = tuple(int(k == axis) for k in range(self.modes.dim))
            source = source - self.modes.factor(along).reshape(-1, 1) * self._projected(name, flux, along)
        return source

    def initial_points(self) -> Array:
        return self.nodes

    def project(self, name: str, values: Array) -> Array:
        return self._projected(name, values, (0,) * self.modes.dim)

    def _projected(self, name: str, values: Array, index: MultiIndex) -> Array:
        """The state of functions with the parity of that derivative of a field."""
        grids = np.ascontiguousarray(values.T).reshape(-1, *self.modes.grid_shape)
        parity = self.modes.parity_of(self._part(name), index)
        return self.modes.to_tables(grids, parity).reshape(len(grids), -1).T

    def table(self, component: Component, points: Array, index: MultiIndex) -> Array:
        whole = np.ones((len(points), 1))
        parity = self.modes.parity_of(self._part(component.field), index)
        for axis, wave in enumerate(self.modes.exponentials(points)):
            own = wave
            if parity:
                own = 1j * wave.imag if parity[axis] else wave.real
            whole = (whole[:, :, None] * own[:, None, :]).reshape(len(points), -1)
        return whole * self.modes.factor(index).ravel()

    def operator(self, time: float, state: Array) -> JacobianOperator:
        return self.system.jacobian(time, state)


def space_of(system: SemiDiscreteSystem, evolution: Evolution) -> FeatureSpace | TensorSpace | FourierSpace:
    """The maps of a system; ``evolution`` has the rates that are linearised."""
    if isinstance(system, Galerkin):
        return FeatureSpace(system, evolution)
    if isinstance(system, TensorSystem):
        return TensorSpace(system, evolution)
    assert isinstance(system, FourierSystem)
    return FourierSpace(system, evolution)


def solver(operator: JacobianOperator, shift: complex) -> Callable[[Array], Array]:
    """r (n, m) → (shift - J)⁻¹ r for many right-hand sides."""
    solve = operator.shifted(shift)
    if isinstance(operator, DenseJacobian):
        return solve
    return lambda right: np.stack([solve(column) for column in right.T], axis=1)
