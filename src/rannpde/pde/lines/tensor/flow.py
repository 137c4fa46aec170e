"""The march of an incompressible flow on products: Stokes modes, functions of space that keep the constraint exactly.

The coefficients z of the moving fields, tested by products q of the pressure's functions, must satisfy D z + d(t) = 0.
With L the viscous part (and a little more, so that it is positive), the Schur complement S = D L⁻¹ Dᵀ tells what of the
pressure is felt: constants and the modes that oscillate from node to node have eigenvalues near 0 and are left out. On
what is left of the null space of D, the eigenvectors of L are the Stokes modes V (orthonormal in L²), and

    z = V y + w(t),      y' = Vᵀ F(t, V y + w),      Vᵀ w = 0,

is an ordinary differential equation in which the pressure no longer stands and the stiff part is diagonal. Afterwards
the pressure is what the momentum lacks: κ Dᵀ P = F - z', in the norm of L⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import cholesky, eigh, solve_triangular

from rannpde.arrays import Array, combinations
from rannpde.pde.lines.tensor.basis import along
from rannpde.pde.lines.tensor.incompressible import Flux, IncompressibleFlow
from rannpde.pde.lines.tensor.kronecker import DiagonalBlock, KroneckerBlocks
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.problem.evolution import Component, Constraint
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.dynamics import BudgetExhausted
from rannpde.pde.time.trajectory import Event, Trajectory

FEW = 4
"""Columns up to which a matrix of some thousand rows is faster with one at a time (measured: 1.5 times for 2 or 3)."""


@dataclass(frozen=True, eq=False)
class StokesModes:
    """A ``Dynamics``: the flow on products (``system``, with axes for the pressure too) in Stokes modes.

    exhausted : whether the time allowed is used up, asked while modes are computed
    """

    flow: IncompressibleFlow
    system: TensorSystem
    exhausted: Callable[[], bool] = lambda: False
    _last: dict[str, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @property
    def moving(self) -> list[str]:
        return list(self.flow.axes)

    @cached_property
    def rows(self) -> Array:
        """Where the moving fields lie in the state of the system, one after the other."""
        blocks = [self.system.slices[Component(name, 0)] for name in self.moving]
        return np.concatenate([np.arange(block.start, block.stop) for block in blocks])

    @property
    def _pressure(self) -> slice:
        return self.system.slices[Component(self.flow.pressure, 0)]

    # ---------------------------------------------------------------------------------------------- the modes, once

    @cached_property
    def viscous(self) -> dict[str, tuple[list[Array], Array]]:
        """field → eigenvectors of an axis, for each of them; and L in these (r_1, …, r_d), positive."""
        found = {}
        bounds = self.system.evolution.domain.space.bounds
        for name in self.moving:
            linear = self.system.split[name][0]
            vectors, values = [], []
            for axis, one in enumerate(self.system.axes[name]):
                jet = next((j for j in linear if j.field == name and j.index[1 + axis] == 2 and j.order == 2), None)
                strength = linear[jet] if jet is not None else 0.0
                slopes = one.values(1)[:, : one.rank]
                own, turn = eigh((slopes * one.weights[:, None]).T @ slopes)
                vectors.append(turn)
                values.append(strength * own)
            total = reduce(np.add.outer, values)
            size = float(np.ptp(bounds, axis=1).max())
            found[name] = vectors, total + max(float(total.max()), 1e-300) * 1e-6 + self._least * (2.0 / size) ** 2
        return found

    @cached_property
    def _least(self) -> float:
        numbers = [n for name in self.moving for j, n in self.system.split[name][0].items() if j.order == 2]
        return max(numbers, default=1.0)

    @cached_property
    def _scaled(self) -> Array:
        """B = D L^(-1/2) in the eigenvectors of L (q, n)."""
        parts = []
        for name in self.moving:
            vectors, total = self.viscous[name]
            small = []
            for axis, turn in enumerate(vectors):
                order = int(axis == self.flow.axes[name])
                own = self.system.small(self.flow.pressure, name, axis, order)[:, : len(turn)]
                small.append(own @ turn)
            part = reduce(np.kron, small) * self.flow.divergence[name]
            parts.append(part / np.sqrt(total.ravel()))
        return np.concatenate(parts, axis=1)

    @cached_property
    def _schur(self) -> tuple[Array, Array]:
        """Eigenvalues (k,) of S that count, and their eigenvectors (q, k)."""
        values, vectors = eigh(self._scaled @ self._scaled.T, check_finite=False)
        kept = values > self.system.tuning.pressure_cutoff * values[-1]
        return values[kept], vectors[:, kept]

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """V (n, m), and the rates λ (m,) at which viscosity damps them."""
        self._ask()
        values, vectors = self._schur
        self._ask()
        ranged = self._scaled.T @ (vectors / np.sqrt(values))
        whole = _complement(ranged)
        self._ask()
        inverse = 1.0 / self._flat
        lengths, turn = eigh(whole.T @ (inverse[:, None] * whole), check_finite=False)
        self._ask()
        found = np.sqrt(inverse)[:, None] * (whole @ (turn / np.sqrt(lengths)))
        found = self._turned(found, back=False)
        return found, 1.0 / lengths

    def _ask(self) -> None:
        """Every factorisation of some thousand rows takes seconds."""
        if self.exhausted():
            raise BudgetExhausted

    @cached_property
    def _single(self) -> Array:
        """V with seven digits, for corrections: half the memory to read, which is what a product costs."""
        return self.modes[0].astype(np.float32)

    @cached_property
    def _flat(self) -> Array:
        return np.concatenate([self.viscous[name][1].ravel() for name in self.moving])

    def _turned(self, states: Array, back: bool) -> Array:
        """Coefficients in the eigenvectors of L → z (n, s), or back."""
        parts, start = [], 0
        for name in self.moving:
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
        sizes = [self.system.scales[Component(name, 0)] for name in self.moving]
        scale = max(min(sizes), 0.1 * max(sizes))
        return float(np.linalg.norm(change)) / (scale * self.system.evolution.domain.space.volume**0.5)

    def rates(self, times: Array, states: Array) -> Array:
        """y' (m, s)."""
        return few(self.modes[0].T, self._forces(times, self.whole(times, states)))

    def whole(self, times: Array, states: Array) -> Array:
        """The state of the system (N, s), its pressure 0, from y (m, s)."""
        found = self.homogeneous(states)
        found[self.rows] += self._particular(times, 0)
        return found

    def homogeneous(self, states: Array) -> Array:
        """The same without w."""
        found = np.zeros((self.system.unknowns, states.shape[1]))
        found[self.rows] = few(self.modes[0], states)
        return found

    def _forces(self, times: Array, whole: Array) -> Array:
        """F (n, s)."""
        found = self.system.rates(times, whole)
        for flux in self.flow.fluxes if self._flows else ():
            found[self.system.slices[Component(flux.field, 0)]] += self._through(flux, times)
        return found[self.rows]

    @cached_property
    def _flows(self) -> bool:
        return any(flux.value != 0 for flux in self.flow.fluxes)

    def _through(self, flux: Flux, times: Array) -> Array:
        """∫ φ σ over a side (r, s)."""
        axes = self.system.axes[flux.field]
        ends = [np.array([flux.side.value]) if k == flux.axis else one.nodes for k, one in enumerate(axes)]
        values = _on_product(ends, flux, self.system, times)
        for k, one in enumerate(axes):
            tests = one.at(ends[k])[:, : one.rank].T if k == flux.axis else one.tests
            values = along(tests, values, k)
        return values.reshape(-1, len(times))

    def _defect(self, times: Array, order: int) -> Array:
        """d(t), or its time derivative: what boundary values alone leave in the constraint, (q, s)."""
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
        """w(t) (n, s), or its derivative: D w + d = 0 as far as pressure is felt; the iterations of a step share it."""
        key = f"w{order}"
        if key not in self._last or not np.array_equal(self._last[key][0], times):
            self._last[key] = times.copy(), few(self._lift, self._defect(times, order))
        return self._last[key][1]

    @cached_property
    def _lift(self) -> Array:
        """d → w, (n, q)."""
        values, vectors = self._schur
        flat = -(self._scaled.T @ ((vectors / values) @ vectors.T))
        found = self._turned(flat / np.sqrt(self._flat)[:, None], back=False)
        return found - self.modes[0] @ (self.modes[0].T @ found)

    def jacobian(self, time: float, state: Array) -> KroneckerBlocks:
        """Viscosity of the modes, with the exact product behind it."""
        linear = self.system.linearised(time, self.whole(np.array([time]), state[:, None])[:, 0])
        vectors, rates = self._single, self.modes[1]

        def product(change: Array) -> Array:
            if np.iscomplexobj(change):
                pair = product(np.stack([change.real, change.imag], axis=1))
                return pair[:, 0] + 1j * pair[:, 1]
            states = change if change.ndim == 2 else change[:, None]
            whole = np.zeros((self.system.unknowns, states.shape[1]))
            whole[self.rows] = few(vectors, states.astype(vectors.dtype))
            found = few(vectors.T, linear.product(whole)[self.rows].astype(vectors.dtype)).astype(float)
            return found if change.ndim == 2 else found[:, 0]

        return KroneckerBlocks((DiagonalBlock(-rates),), product, False, self.system.tuning)

    def seen_by(self, event: Event) -> Event:
        """An event of states of the system as one of y."""

        def on_modes(time: float, state: Array) -> float:
            return event(time, self._complete(np.array([time]), state[:, None])[:, 0])

        if getattr(event, "terminal", False):
            on_modes.terminal = True  # type: ignore[attr-defined]
        return on_modes

    # ---------------------------------------------------------------------------------------------------- afterwards

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """The same march as states of the system, with the pressure, as polynomials of the same degree."""
        return replace(
            trajectory, steps=tuple(self._step(step) for step in trajectory.steps if isinstance(step, LegendreStep))
        )

    def _step(self, step: LegendreStep) -> LegendreStep:
        places = np.cos(np.pi * np.arange(step.series.shape[1] - 1, -1, -1) / (step.series.shape[1] - 1))
        times = step.t_old + 0.5 * (places + 1.0) * (step.t - step.t_old)
        whole = self._complete(times, step.derivative(times, 0))
        series = np.linalg.solve(legendre.legvander(places, len(places) - 1), (whole - whole[:, :1]).T).T
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
        right = self._scaled @ (self._turned(lacking, back=True) / np.sqrt(self._flat)[:, None])
        found = vectors @ ((vectors.T @ right) / values[:, None]) / self.flow.pull
        return found if self.flow.level is None else self._levelled(times, found, *self.flow.level)

    def _levelled(self, times: Array, pressures: Array, place: Array, value: Callable[[Array], Array]) -> Array:
        """P (q, s) with a constant more, so that p has that value at a place (d,)."""
        axes = self.system.axes[self.flow.pressure]
        there = reduce(np.kron, [one.at(place[k : k + 1])[0, : one.rank] for k, one in enumerate(axes)])
        constant = reduce(np.kron, [one.tests.sum(axis=1) for one in axes])
        return pressures + np.outer(constant, value(times) - there @ pressures)


def few(matrix: Array, columns: Array) -> Array:
    """The matrix times a few columns, one by one where that is faster: reading the matrix is what costs."""
    if columns.shape[1] > FEW:
        return np.asarray(matrix @ columns)
    return np.stack([matrix @ columns[:, k] for k in range(columns.shape[1])], axis=1)


def _complement(columns: Array) -> Array:
    """An orthonormal basis (n, n - k) of what is orthogonal to orthonormal columns (n, k).

    By two rounds of projection and Cholesky's factor, in matrix products alone: 1.5 times faster than all of QR.
    """
    size, taken = columns.shape
    found = np.random.default_rng(0).standard_normal((size, size - taken))
    for _ in range(2):
        found -= columns @ (columns.T @ found)
        factor = cholesky(found.T @ found, lower=True, check_finite=False)
        found = solve_triangular(factor, found.T, lower=True, check_finite=False).T
    return found


def _on_product(places: Sequence[Array], flux: Flux, system: TensorSystem, times: Array) -> Array:
    """The value at a product of places, one of them a single one: (…, s)."""
    points = combinations(places)
    normals: Array = np.zeros_like(points)
    normals[:, flux.axis] = float(flux.side.outward)
    known = Constraint(flux.field, points, normals, {}, flux.value, system.evolution)
    return known.values(times).reshape(*(len(one) for one in places), len(times))
