"""The process behind a parabolic equation, dX = b ds + √a dW, simulated exactly where its law is known.

    Gaussian    dX = (β - κX) ds + S dW        constant β, κ, S: Brownian motion and Ornstein–Uhlenbeck, exact
    Lognormal   dX = X (μ ds + S dW)           constant μ, S: geometric Brownian motion, exact in y = log x
    Euler       everything else                Euler–Maruyama with substeps

A process moves *states* y, in which its noise does not depend on where it is (if it is exact); ``point`` gives x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject, require
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import KINKS, Operation, combine, evaluate_vector, scalar_constant
from rannpde.pde.statement.vector_reading import DiffusionFactors

COEFFICIENT_PROBES = 4
"""Random points at which the form of analytic coefficients is recognised; one would do with probability one."""
PROBE_ACCURACY = 1e-10
"""Relative agreement that counts as equal: rounding of a formula of some dozen operations."""


@dataclass(frozen=True)
class PathStep:
    """One step of all paths: new states (M, d), the martingale part of the move in states (M, d), Brownian increments.

    brownian (M, d) has variance h per component: that of the step for exact processes
    """

    state: Array
    noise: Array
    brownian: Array


class PathProcess(Protocol):
    """How paths move; see the module."""

    @property
    def dim(self) -> int: ...

    @property
    def exact(self) -> bool:
        """Whether steps of any length have the law of the process."""
        ...

    def start(self, points: Array) -> Array:
        """States of points (M, d)."""
        ...

    def point(self, state: Array) -> Array:
        """Points of states."""
        ...

    def to_state(self, point: Array, gradient: Array) -> Array:
        """∂/∂y of a function whose gradient in x is given at points."""
        ...

    def to_point(self, point: Array, gradient: Array) -> Array:
        """∂/∂x of a function whose gradient in y is given at points."""
        ...

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        """A step from s to s + h with standard normal numbers (M, normal_count)."""
        ...

    def normal_count(self) -> int: ...

    @property
    def correlation(self) -> Array | None:
        """Of the components of the noise (d, d), None where they are independent."""
        ...

    def noise_variance(self, h: float) -> Array | None:
        """Variance (d,) of the components of the noise of a step, where it does not depend on the state."""
        ...

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        """x' - E[x' | x], the martingale part of the move in points (M, d)."""
        ...

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        """θ (M, d) with √a θ = drift (M, d): what a change of drift means for the Brownian motion (Girsanov)."""
        ...

    def push(self, s: float, point: Array, rows: Array) -> Array:
        """∇u (k, d) from rows (√a)ᵀ∇u (k, d) at one point (1, d)."""
        ...


# ------------------------------------------------------------------------------------------------- exact processes


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """dX = (β - κX) ds + S dW with κ (d,), β (d,) and S a diagonal (d,) or a lower triangle (d, d)."""

    constant: Array
    decay: Array
    spread: Array

    exact = True

    @property
    def dim(self) -> int:
        return len(self.constant)

    def normal_count(self) -> int:
        return self.dim

    def start(self, points: Array) -> Array:
        return points

    def point(self, state: Array) -> Array:
        return state

    def to_state(self, point: Array, gradient: Array) -> Array:
        return gradient

    def to_point(self, point: Array, gradient: Array) -> Array:
        return gradient

    def _lengths(self, h: float) -> tuple[Array, Array, Array]:
        """e^{-κh}, (1 - e^{-κh})/κ and √((1 - e^{-2κh})/2κ), also where κ vanishes."""
        if not self.decay.any():
            ones = np.ones(self.dim)
            return ones, h * ones, np.sqrt(h) * ones
        k = np.where(np.abs(self.decay) * h < 1e-12, 1e-12 / h, self.decay)
        return np.exp(-k * h), -np.expm1(-k * h) / k, np.sqrt(-np.expm1(-2 * k * h) / (2 * k))

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        shrink, reach, spread = self._lengths(h)
        noise = _spread(self.spread, normals) * spread
        moved = state * shrink if self.decay.any() else state
        return PathStep(moved + (self.constant * reach + noise), noise, normals * np.sqrt(h))

    @cached_property
    def correlation(self) -> Array | None:
        return _correlation(self.spread)

    def noise_variance(self, h: float) -> Array | None:
        spread = self._lengths(h)[2]
        own = self.spread**2 if self.spread.ndim == 1 else (self.spread**2).sum(axis=1)
        return own * spread**2

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        return move.noise

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        return _solved(self.spread, drift)

    def push(self, s: float, point: Array, rows: Array) -> Array:
        return _solved(self.spread.T, rows)


@dataclass(frozen=True, eq=False)
class LognormalProcess:
    """dX_i = X_i (μ_i ds + (S dW)_i) with S a diagonal (d,) or a lower triangle (d, d); states are logarithms."""

    growth: Array
    spread: Array

    exact = True

    @property
    def dim(self) -> int:
        return len(self.growth)

    def normal_count(self) -> int:
        return self.dim

    def start(self, points: Array) -> Array:
        require(bool((points > 0).all()), "at", points, "positive, as the process stays so")
        return np.log(points)

    def point(self, state: Array) -> Array:
        return np.exp(state)

    def to_state(self, point: Array, gradient: Array) -> Array:
        return gradient * point

    def to_point(self, point: Array, gradient: Array) -> Array:
        return gradient / point

    def step(self, s: float, h: float, state: Array, normals: Array) -> PathStep:
        noise = _spread(self.spread, normals) * np.sqrt(h)
        variance = self.noise_variance(1.0)
        return PathStep(state + (noise + (self.growth - 0.5 * variance) * h), noise, normals * np.sqrt(h))

    @cached_property
    def correlation(self) -> Array | None:
        return _correlation(self.spread)

    def noise_variance(self, h: float) -> Array:
        return h * (self.spread**2 if self.spread.ndim == 1 else (self.spread**2).sum(axis=1))

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        return np.exp(move.state) - np.exp(state + self.growth * h)

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        return _solved(self.spread, drift / point)

    def push(self, s: float, point: Array, rows: Array) -> Array:
        return _solved(self.spread.T, rows) / point


def _correlation(spread: Array) -> Array | None:
    if spread.ndim == 1:
        return None
    covariance = spread @ spread.T
    deviation = np.sqrt(np.diag(covariance))
    deviation[deviation == 0] = 1.0
    return covariance / deviation / deviation[:, None]


def _spread(spread: Array, normals: Array) -> Array:
    return normals * spread if spread.ndim == 1 else normals @ spread.T


def _solved(spread: Array, drift: Array) -> Array:
    if spread.ndim == 1:
        return np.divide(drift, spread, out=np.zeros_like(drift), where=spread > 0)
    return np.linalg.lstsq(spread, drift.T, rcond=None)[0].T


# ---------------------------------------------------------------------------------------------------- all others


@dataclass(frozen=True, eq=False)
class EulerProcess:
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

    def start(self, points: Array) -> Array:
        return points

    def point(self, state: Array) -> Array:
        return state

    def to_state(self, point: Array, gradient: Array) -> Array:
        return gradient

    def to_point(self, point: Array, gradient: Array) -> Array:
        return gradient

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

    def linear_noise(self, state: Array, move: PathStep, h: float) -> Array:
        return move.noise

    def pull(self, s: float, point: Array, drift: Array) -> Array:
        scales = np.broadcast_to(self.scales(s, point), point.shape)
        theta = np.divide(drift, scales, out=np.zeros_like(drift), where=scales > 0)
        return theta if self.triangle is None else _solved(self.triangle, theta)

    def push(self, s: float, point: Array, rows: Array) -> Array:
        turned = rows if self.triangle is None else _solved(self.triangle.T, rows)
        scales = np.broadcast_to(self.scales(s, point), point.shape)
        return np.divide(turned, scales, out=np.zeros_like(turned), where=scales > 0)


NEGATIVE = (
    "the second derivatives have the wrong sign for data at this end of time, so that the problem is not well-posed; "
    "give initial data to u_t = laplace(u), data at the last time to u_t + laplace(u) = 0"
)


# -------------------------------------------------------------------------------------------------- recognition


def process_of(form: Parabolic, substeps: int = 1) -> GaussianProcess | LognormalProcess | EulerProcess:
    """The process of an equation: exact where constants suffice, Euler otherwise."""
    matrices = [f for f in form.second if f.middle is not None]
    if not matrices:
        diagonal = tuple((f.scale, f.diagonal) for f in form.second)
        return _of_diagonal(form, diagonal, substeps)
    if len(form.second) > 1 and not all(f.left is None and f.scale.constant for f in form.second):
        reject(
            "trace(…)", f"{len(form.second)} terms", "one term trace(diag(v)*C*diag(v)*hessian(u)), or constant ones"
        )
    return _of_matrix(form, matrices, substeps)


def _constant(node: Operation) -> float:
    return float(evaluate_vector(node, {})[0, 0])


def _of_matrix(
    form: Parabolic, matrices: list[DiffusionFactors], substeps: int
) -> GaussianProcess | LognormalProcess | EulerProcess:
    first = matrices[0]
    assert first.middle is not None
    if all(f.left is None and f.scale.constant and (f.diagonal is None or f.diagonal.constant) for f in form.second):
        total = np.zeros((form.dim, form.dim))
        for f in form.second:
            own = np.eye(form.dim) if f.middle is None else f.middle
            if f.diagonal is not None:
                own = np.diag(np.broadcast_to(evaluate_vector(f.diagonal, {})[0], (form.dim,)))
            total += 2 * _constant(f.scale) * own
        triangle = _triangle(total)
        affine = _affine_drift(form)
        if affine is not None and np.ptp(affine[1]) == 0:
            return GaussianProcess(*affine, triangle)
        return EulerProcess(form, substeps, (), scalar_constant(0.5), None, triangle)
    if first.scale.constant and first.left is not None:
        rate, growth = _proportional(form, first.left), _proportional_drift(form)
        if rate is not None and growth is not None:
            triangle = _triangle(2 * _constant(first.scale) * rate[:, None] * first.middle * rate)
            return LognormalProcess(growth, triangle)
    return EulerProcess(form, substeps, (), first.scale, first.left, _triangle(first.middle))


def _of_diagonal(
    form: Parabolic, diagonal: tuple[tuple[Operation, Operation | None], ...], substeps: int
) -> GaussianProcess | LognormalProcess | EulerProcess:
    parts = [scale if own is None else combine("multiply", scale, own) for scale, own in diagonal]
    total = parts[0]
    for part in parts[1:]:
        total = combine("add", total, part)
    if total.constant:
        variance = np.broadcast_to(2 * evaluate_vector(total, {})[0], (form.dim,)).copy()
        if not (variance >= 0).all() or not variance.any():
            raise InputError(NEGATIVE)
        affine = _affine_drift(form)
        if affine is not None:
            return GaussianProcess(*affine, np.sqrt(variance))
    root = _proportional(form, total, 2)
    growth = _proportional_drift(form)
    if root is not None and growth is not None:
        if not (root >= 0).all():
            raise InputError(NEGATIVE)
        return LognormalProcess(growth, np.sqrt(2 * root))
    return EulerProcess(form, substeps, diagonal)


def _triangle(matrix: Array) -> Array:
    """A root S with S Sᵀ = matrix, which may be singular but not indefinite."""
    scale = np.abs(matrix).max()
    if not np.allclose(matrix, matrix.T, atol=1e-10 * scale):
        reject("the matrix of trace(…)", matrix, "symmetric")
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values[0] < -1e-10 * scale or values[-1] <= 0:
        raise InputError(NEGATIVE)
    if values[0] > 1e-12 * scale:
        return np.linalg.cholesky(0.5 * (matrix + matrix.T))
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _analytic(*nodes: Operation) -> bool:
    return not any(node.has(*KINKS) for node in nodes)


def _probes(form: Parabolic) -> list[tuple[float, Array]]:
    rng = np.random.default_rng(20)
    return [(form.length * rng.uniform(), rng.uniform(0.5, 2.0, (1, form.dim))) for _ in range(COEFFICIENT_PROBES)]


def _proportional(form: Parabolic, node: Operation, power: int = 1) -> Array | None:
    """(d,) with node = c·x**power for every component, or None."""
    if not _analytic(node):
        return None
    found = [evaluate_vector(node, form.known(s, x))[0] / x[0] ** power for s, x in _probes(form)]
    return _same([np.broadcast_to(one, (form.dim,)) for one in found])


def _same(found: list[Array]) -> Array | None:
    scale = max(float(np.abs(one).max()) for one in found)
    spread = max(float(np.abs(one - found[0]).max()) for one in found)
    return np.array(found[0]) if np.isfinite(scale) and spread <= PROBE_ACCURACY * scale else None


def _drift_at(form: Parabolic, s: float, x: Array) -> Array:
    total: Array = np.zeros_like(x)
    for one in form.drift:
        total = total + evaluate_vector(one, form.known(s, x))
    return total[0]


def _proportional_drift(form: Parabolic) -> Array | None:
    if not _analytic(*form.drift):
        return None
    return _same([_drift_at(form, s, x) / x[0] for s, x in _probes(form)])


def _affine_drift(form: Parabolic) -> tuple[Array, Array] | None:
    """β and κ of a drift β - κx, component by component, or None."""
    if not _analytic(*form.drift):
        return None
    if all(one.constant for one in form.drift):
        return _drift_at(form, 0.0, np.zeros((1, form.dim))), np.zeros(form.dim)
    origin = [_drift_at(form, s, np.zeros_like(x)) for s, x in _probes(form)]
    slopes = [(_drift_at(form, s, x) - zero) / x[0] for (s, x), zero in zip(_probes(form), origin, strict=True)]
    constant, slope = _same(origin), _same(slopes)
    return None if constant is None or slope is None else (constant, -slope)
