"""Processes whose law is not known: Euler–Maruyama steps with substeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.paths.processes import PathStep, StatesArePoints, solve_spread
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import Operation, evaluate_vector

NEGATIVE = (
    "the second derivatives have the wrong sign for data at this end of time, so that the problem is not well-posed; "
    "give initial data to u_t = laplace(u), data at the last time to u_t + laplace(u) = 0"
)


@dataclass(frozen=True, eq=False)
class EulerProcess(StatesArePoints):
    """Any coefficients: ``substeps`` steps of Euler–Maruyama inside every step; its error in law is of first order.

    diagonal : variance of the components, a_ii, of a diagonal a; else left (vector) and triangle with
    a = 2·scale·diag(left) triangle triangleᵀ diag(left)
    """

    form: Parabolic
    substeps: int
    diagonal: tuple[tuple[Operation, Operation | None], ...]
    scale: Operation | None = None
    left: Operation | None = None
    triangle: Array | None = None

    exact = False

    @property
    def dim(self) -> int:
        return self.form.dim

    def normal_count(self) -> int:
        return self.dim * self.substeps

    def with_substeps(self, substeps: int) -> EulerProcess:
        return EulerProcess(self.form, substeps, self.diagonal, self.scale, self.left, self.triangle)

    def drift(self, s: float, point: Array) -> Array:
        total = np.zeros_like(point)
        for one in self.form.drift:
            total = total + self.form.values(one, s, point)
        return total

    def scales(self, s: float, point: Array) -> Array:
        """The factor (M or 1, d) of every component of the noise."""
        known = self.form.known(s, point)
        if self.triangle is None:
            total: Array = np.zeros((1, 1))
            for scale, diagonal in self.diagonal:
                own = evaluate_vector(scale, known)
                total = total + 2 * (own if diagonal is None else own * evaluate_vector(diagonal, known))
        else:
            assert self.scale is not None
            left = 1.0 if self.left is None else evaluate_vector(self.left, known)
            total = 2 * evaluate_vector(self.scale, known) * np.square(left)
        if not (total >= 0).all():
            raise InputError(NEGATIVE)
        return np.sqrt(total)

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        small = h / self.substeps
        noise, brownian = np.zeros_like(state), np.zeros_like(state)
        for k in range(self.substeps):
            increments = normals[:, k * self.dim : (k + 1) * self.dim] * np.sqrt(small)
            when = s + k * small
            turned = increments if self.triangle is None else increments @ self.triangle.T
            kick = self.scales(when, state) * turned
            state = state + self.drift(when, state) * small + kick
            noise, brownian = noise + kick, brownian + increments
        if not np.isfinite(state).all():
            raise InputError(
                "the simulated process leaves all bounds; its coefficients grow too fast for Euler's steps"
            )
        return PathStep(state, noise, brownian)

    correlation = None

    def noise_variance(self, h: float) -> None:
        return None

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        scales = np.broadcast_to(self.scales(s, point), point.shape)
        theta = np.divide(drift, scales, out=np.zeros_like(drift), where=scales > 0)
        return theta if self.triangle is None else solve_spread(self.triangle, theta)

    def push(self, s: float, h: float, point: Array, rows: Array) -> Array:
        turned = rows if self.triangle is None else solve_spread(self.triangle.T, rows)
        scales = np.broadcast_to(self.scales(s, point), point.shape)
        return np.divide(turned, scales, out=np.zeros_like(turned), where=scales > 0)

    def shrink(self, h: float) -> float:
        return 1.0
