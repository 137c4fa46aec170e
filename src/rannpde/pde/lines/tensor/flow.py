"""Incompressible flow on a tensor-product basis: Stokes modes, a basis that satisfies the constraint exactly.

The coefficients z of the velocities, tested with the basis q of the pressure, must satisfy D z + d(t) = 0. With L the
viscous part (with a small shift that makes it positive), the Schur complement S = D L⁻¹ Dᵀ shows which pressures act on
the velocities: constants and modes that oscillate from node to node have eigenvalues near 0 and are left out. On the
null space of what remains of D, the eigenvectors of L are the Stokes modes V (orthonormal in L²), and

    z = V y + w(t),      y' = Vᵀ F(t, V y + w),      Vᵀ w = 0,

is an ordinary differential equation without the pressure and with a diagonal stiff part. The pressure is computed
afterwards from the momentum balance, κ Dᵀ P = F - z', by least squares in the norm of L⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import cholesky, eigh, solve_triangular

from rannpde.arrays import Array, combinations
from rannpde.checkpoints import checkpoint
from rannpde.pde.lines.tensor.basis import along
from rannpde.pde.lines.tensor.incompressible import Flux, IncompressibleFlow
from rannpde.pde.lines.tensor.kronecker import DiagonalBlock, KroneckerBlocks
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.problem.evolution import Component, Constraint
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.dynamics import random_multiples
from rannpde.pde.time.trajectory import Event, Trajectory
from rannpde.pde.tolerance import MUCH_SMALLER

FEW_VECTORS = 4
"""Columns up to which a matrix of some thousand rows is faster with one at a time (measured: 1.5 times for 2 or 3)."""


@dataclass(frozen=True, eq=False)
class StokesModes:
    """A ``Dynamics``: the flow in Stokes modes of a tensor-product basis (``system``, which has the pressure too)."""

    flow: IncompressibleFlow
    system: TensorSystem
    _last: dict[str, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @property
    def velocities(self) -> list[str]:
        return list(self.flow.axes)

    @cached_property
    def rows(self) -> Array:
        """The rows of the velocities in the state of the system, one velocity after the other."""
        blocks = [self.system.slices[Component(name, 0)] for name in self.velocities]
        return np.concatenate([np.arange(block.start, block.stop) for block in blocks])

    @property
    def _pressure(self) -> slice:
        return self.system.slices[Component(self.flow.pressure, 0)]

    # ---------------------------------------------------------------------------------------------- the modes, once

    @cached_property
    def viscous(self) -> dict[str, tuple[list[Array], Array]]:
        """field → the eigenvectors of each axis, and L in these (r_1, …, r_d), positive."""
        parts = {}
        bounds = self.system.evolution.domain.space.bounds
        for name in self.velocities:
            linear = self.system.split[name][0]
            vectors, values = [], []
            for axis, one in enumerate(self.system.axes[name]):
                jet = next((j for j in linear if j.field == name and j.index[1 + axis] == 2 and j.order == 2), None)
                viscosity = linear[jet] if jet is not None else 0.0
                slopes = one.values(1)[:, : one.rank]
                own, turn = eigh((slopes * one.weights[:, None]).T @ slopes)
                vectors.append(turn)
                values.append(viscosity * own)
            total = reduce(np.add.outer, values)
            size = float(np.ptp(bounds, axis=1).max())
            parts[name] = vectors, total + max(float(total.max()), 1e-300) * 1e-6 + self._least * (2.0 / size) ** 2
        return parts

    @cached_property
    def _least(self) -> float:
        numbers = [n for name in self.velocities for j, n in self.system.split[name][0].items() if j.order == 2]
        return max(numbers, default=1.0)

    @cached_property
    def _scaled(self) -> Array:
        """B = D L^(-1/2) in the eigenvectors of L (q, n)."""
        parts = []
        for name in self.velocities:
            vectors, total = self.viscous[name]
            small = []
            for axis, turn in enumerate(vectors):
                order = int(axis == self.flow.axes[name])
                own = self.system.axis_matrix(self.flow.pressure, name, axis, order)[:, : len(turn)]
                small.append(own @ turn)
            part = reduce(np.kron, small) * self.flow.divergence[name]
            parts.append(part / np.sqrt(total.ravel()))
        return np.concatenate(parts, axis=1)

    @cached_property
    def _schur(self) -> tuple[Array, Array]:
        """The eigenvalues (k,) of S above the cutoff, and their eigenvectors (q, k)."""
        values, vectors = eigh(self._scaled @ self._scaled.T, check_finite=False)
        large = values > self.system.tuning.pressure_cutoff * values[-1]
        return values[large], vectors[:, large]

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """V (n, m), and the rates λ (m,) at which viscosity damps them."""
        checkpoint()  # between factorisations of some thousand rows, each of which takes seconds
        values, vectors = self._schur
        checkpoint()
        ranged = self._scaled.T @ (vectors / np.sqrt(values))
        whole = _complement(ranged)
        checkpoint()
        inverse = 1.0 / self._flat
        lengths, turn = eigh(whole.T @ (inverse[:, None] * whole), check_finite=False)
        checkpoint()
        basis = np.sqrt(inverse)[:, None] * (whole @ (turn / np.sqrt(lengths)))
        basis = self._from_eigenvectors(basis, back=False)
        return basis, 1.0 / lengths

    @cached_property
    def _single(self) -> Array:
        """V in single precision, for corrections: a product costs as much as reading the matrix, which is half as
        large."""
        return self.modes[0].astype(np.float32)

    @cached_property
    def _flat(self) -> Array:
        return np.concatenate([self.viscous[name][1].ravel() for name in self.velocities])

    def _from_eigenvectors(self, states: Array, back: bool) -> Array:
        """Coefficients in the eigenvectors of L → z (n, s), or back."""
        parts, start = [], 0
        for name in self.velocities:
            vectors, total = self.viscous[name]
            tensor = states[start : start + total.size].reshape(*total.shape, -1)
            for axis, turn in enumerate(vectors):
                tensor = along(turn.T if back else turn, tensor, axis)
            parts.append(tensor.reshape(total.size, -1))
            start += total.size
        return np.concatenate(parts)

    # ---------------------------------------------------------------------------------------------------- Dynamics

    def projected(self, whole: Array) -> Array:
        """y (m,) of a state of the system."""
        return self.modes[0].T @ whole[self.rows]

    def size(self, change: Array) -> float:
        """Root mean square of all fields together, over the size of the smallest that counts."""
        sizes = [self.system.scales[Component(name, 0)] for name in self.velocities]
        scale = max(min(sizes), MUCH_SMALLER * max(sizes))
        return float(np.linalg.norm(change, axis=0).max()) / (scale * self.system.evolution.domain.space.volume**0.5)

    def perturbation(self, state: Array, rng: np.random.Generator) -> Array:
        """A random change of a state: see ``Dynamics``."""
        return random_multiples(state, rng)

    def rates(self, times: Array, states: Array) -> Array:
        """y' (m, s)."""
        return multiply_few(self.modes[0].T, self._forces(times, self.whole(times, states)))

    def whole(self, times: Array, states: Array) -> Array:
        """The state of the system (N, s), its pressure 0, from y (m, s)."""
        states_of_system = self.homogeneous(states)
        states_of_system[self.rows] += self._particular(times, 0)
        return states_of_system

    def homogeneous(self, states: Array) -> Array:
        """The state of the system (N, s) without w, its pressure 0."""
        states_of_system = np.zeros((self.system.unknowns, states.shape[1]))
        states_of_system[self.rows] = multiply_few(self.modes[0], states)
        return states_of_system

    def _forces(self, times: Array, whole: Array) -> Array:
        """F (n, s)."""
        forces = self.system.rates(times, whole)
        for flux in self.flow.fluxes if self._has_fluxes else ():
            forces[self.system.slices[Component(flux.field, 0)]] += self._flux_integral(flux, times)
        return forces[self.rows]

    @cached_property
    def _has_fluxes(self) -> bool:
        return any(flux.value != 0 for flux in self.flow.fluxes)

    def _flux_integral(self, flux: Flux, times: Array) -> Array:
        """∫ φ σ over a side (r, s)."""
        axes = self.system.axes[flux.field]
        ends = [np.array([flux.side.value]) if k == flux.axis else one.nodes for k, one in enumerate(axes)]
        values = _on_product(ends, flux, self.system, times)
        for k, one in enumerate(axes):
            tests = one.at(ends[k])[:, : one.rank].T if k == flux.axis else one.tests
            values = along(tests, values, k)
        return values.reshape(-1, len(times))

    def _defect(self, times: Array, order: int) -> Array:
        """d(t), or its time derivative (q, s): the part of the constraint that comes from boundary values and
        sources."""
        nothing = np.zeros((self.system.unknowns, len(times)))
        name = self.flow.pressure
        shape = self.system.shapes[name]
        total = np.zeros((*shape, len(times)))
        for other, axis in self.flow.axes.items():
            if self.system.faces[other]:
                tensor = self.system.coefficients(Component(other, 0), times, nothing, order)
                orders = tuple(int(k == axis) for k in range(self.system.dim))
                total = total + self.flow.divergence[other] * self.system.act(name, other, orders, tensor)
        if self.flow.source != 0:
            formula = self.flow.source.diff(self.system.evolution.clock, order) if order else self.flow.source
            value = self.system.evolution.values([formula], self.system.known(times))[0]
            total = total - self.system.project(name, np.broadcast_to(value, (*self.system.weights.shape, len(times))))
        return total.reshape(-1, len(times))

    def _particular(self, times: Array, order: int) -> Array:
        """w(t) (n, s), or its derivative, with D w + d = 0 for the pressures above the cutoff; cached for the last
        times."""
        key = f"w{order}"
        if key not in self._last or not np.array_equal(self._last[key][0], times):
            self._last[key] = times.copy(), multiply_few(self._lift, self._defect(times, order))
        return self._last[key][1]

    @cached_property
    def _lift(self) -> Array:
        """d → w, (n, q)."""
        values, vectors = self._schur
        flat = -(self._scaled.T @ ((vectors / values) @ vectors.T))
        lifting = self._from_eigenvectors(flat / np.sqrt(self._flat)[:, None], back=False)
        return lifting - self.modes[0] @ (self.modes[0].T @ lifting)

    def jacobian(self, time: float, state: Array) -> KroneckerBlocks:
        """The viscous rates of the modes as J₀, and the exact product with the Jacobian."""
        linear = self.system.linearised(time, self.whole(np.array([time]), state[:, None])[:, 0])
        vectors, rates = self._single, self.modes[1]

        def product(change: Array) -> Array:
            if np.iscomplexobj(change):
                pair = product(np.stack([change.real, change.imag], axis=1))
                return pair[:, 0] + 1j * pair[:, 1]
            states = change if change.ndim == 2 else change[:, None]
            whole = np.zeros((self.system.unknowns, states.shape[1]))
            whole[self.rows] = multiply_few(vectors, states.astype(vectors.dtype))
            image = multiply_few(vectors.T, linear.product(whole)[self.rows].astype(vectors.dtype)).astype(float)
            return image if change.ndim == 2 else image[:, 0]

        return KroneckerBlocks((DiagonalBlock(-rates),), product, False, self.system.tuning)

    def event_of_modes(self, event: Event) -> Event:
        """An event of states of the system as one of y."""

        def on_modes(time: float, state: Array) -> float:
            return event(time, self._complete(np.array([time]), state[:, None])[:, 0])

        if getattr(event, "terminal", False):
            on_modes.terminal = True  # type: ignore[attr-defined]
        return on_modes

    # ---------------------------------------------------------------------------------------------------- afterwards

    def completed(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory as states of the system, with the pressure, as polynomials of the same degree."""
        return replace(
            trajectory, steps=tuple(self._step(step) for step in trajectory.steps if isinstance(step, LegendreStep))
        )

    def _step(self, step: LegendreStep) -> LegendreStep:
        points = np.cos(np.pi * np.arange(step.series.shape[1] - 1, -1, -1) / (step.series.shape[1] - 1))
        times = step.t_old + 0.5 * (points + 1.0) * (step.t - step.t_old)
        whole = self._complete(times, step.derivative(times, 0))
        series = np.linalg.solve(legendre.legvander(points, len(points) - 1), (whole - whole[:, :1]).T).T
        return LegendreStep(step.t_old, step.t, whole[:, 0], series)

    def _complete(self, times: Array, states: Array) -> Array:
        """The state of the system (N, s) with its pressure, from y (m, s)."""
        whole = self.whole(times, states)
        whole[self._pressure] = self.pressures(times, whole)
        return whole

    def pressures(self, times: Array, whole: Array) -> Array:
        """P (q, s) from states of the system."""
        forces, (values, vectors) = self._forces(times, whole), self._schur
        lacking = forces - self.modes[0] @ (self.modes[0].T @ forces) - self._particular(times, 1)
        right = self._scaled @ (self._from_eigenvectors(lacking, back=True) / np.sqrt(self._flat)[:, None])
        coefficients = vectors @ ((vectors.T @ right) / values[:, None]) / self.flow.pressure_factor
        return coefficients if self.flow.level is None else self._levelled(times, coefficients, *self.flow.level)

    def _levelled(self, times: Array, pressures: Array, point: Array, value: Callable[[Array], Array]) -> Array:
        """P (q, s) plus a constant, so that p has that value at a point (d,)."""
        axes = self.system.axes[self.flow.pressure]
        there = reduce(np.kron, [one.at(point[k : k + 1])[0, : one.rank] for k, one in enumerate(axes)])
        constant = reduce(np.kron, [one.tests.sum(axis=1) for one in axes])
        return pressures + np.outer(constant, value(times) - there @ pressures)


def multiply_few(matrix: Array, columns: Array) -> Array:
    """The matrix times a few columns, one by one where that is faster: the cost is that of reading the matrix."""
    if columns.shape[1] > FEW_VECTORS:
        return np.asarray(matrix @ columns)
    return np.stack([matrix @ columns[:, k] for k in range(columns.shape[1])], axis=1)


def _complement(columns: Array) -> Array:
    """An orthonormal basis (n, n - k) of the orthogonal complement of orthonormal columns (n, k).

    By projection and Cholesky factorisation, twice, all in matrix products: 1.5 times faster than a complete QR.
    """
    size, taken = columns.shape
    basis = np.random.default_rng(0).standard_normal((size, size - taken))
    for _ in range(2):
        basis -= columns @ (columns.T @ basis)
        factor = cholesky(basis.T @ basis, lower=True, check_finite=False)
        basis = solve_triangular(factor, basis.T, lower=True, check_finite=False).T
    return basis


def _on_product(points: Sequence[Array], flux: Flux, system: TensorSystem, times: Array) -> Array:
    """The value of a flux on a tensor grid of one side: (…, s)."""
    grid = combinations(points)
    normals: Array = np.zeros_like(grid)
    normals[:, flux.axis] = float(flux.side.outward)
    known = Constraint(flux.field, grid, normals, {}, flux.value, system.evolution)
    return known.values(times).reshape(*(len(one) for one in points), len(times))
