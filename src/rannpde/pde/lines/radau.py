"""Radau IIA collocation of any order, as a solver of SciPy's family (``scipy.integrate.OdeSolver``).

The s stages of a step [t, t + h] are the values, at the Radau nodes c_1 < … < c_s = 1, of the polynomial Y of degree s
with Y(t) = y and Y' = f(·, Y) at every node. With A the matrix of the integrals of the Lagrange polynomials, and
Z_i = Y(t + c_i h) - y,

    Z = h A F(y + Z),      solved by simplified Newton:   (A⁻¹/h ⊗ 1 - 1 ⊗ J) ΔZ = F(y + Z) - A⁻¹Z/h,

which splits into s systems of the size of y in the eigenvectors of A⁻¹ (Hairer & Wanner, Solving ODEs II, IV.8).

SciPy's own ``Radau`` has s = 3, and its dense output is of third order: at twelve digits it takes thousands of steps.
Here the polynomial itself is the dense output, s is chosen from the tolerance, and what is held below the tolerance is
the error of that polynomial at every time, read off the decay of its Legendre coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput, OdeSolver
from scipy.linalg import lu_factor, lu_solve
from scipy.special import roots_jacobi

from rannpde.arrays import Array
from rannpde.pde.lines.tuning import StepControl


class Operator(Protocol):
    """A linear map J of states."""

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        """The solution operator r → (shift - J)⁻¹ r, factorised once."""
        ...


@dataclass(frozen=True, eq=False)
class Dense:
    """J as a matrix (n, n)."""

    matrix: Array

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        factors = lu_factor(shift * np.eye(len(self.matrix)) - self.matrix, overwrite_a=True, check_finite=False)
        return lambda right: lu_solve(factors, right, check_finite=False)


class Dynamics(Protocol):
    """y' = f(t, y) with what a collocation method needs."""

    def rates(self, times: Array, states: Array) -> Array:
        """f at s times: (s,), (n, s) → (n, s)."""
        ...

    def jacobian(self, time: float, state: Array) -> Operator:
        """∂f/∂y, or an approximation of it."""
        ...

    def size(self, change: Array) -> float:
        """A norm of a change of the state (n,), relative to the size of the solution."""
        ...


@dataclass(frozen=True, eq=False)
class Tableau:
    """Nodes (s,), A⁻¹ (s, s) = vectors · diag(values) · dual; after the first ``distinct`` eigenvalues come conjugates.

    ``legendre`` (s+1, s+1) turns the values at 0, c_1, …, c_s into Legendre coefficients on the step.
    """

    nodes: Array
    inverse: Array
    values: Array
    vectors: Array
    dual: Array
    distinct: int
    legendre: Array


@lru_cache(maxsize=16)
def tableau(stages: int) -> Tableau:
    """Radau IIA with that many stages (odd: one eigenvalue is real), of order 2·stages - 1 at the end of a step."""
    inner = roots_jacobi(stages - 1, 1.0, 0.0)[0] if stages > 1 else np.empty(0)
    nodes = np.append((1.0 + inner) / 2.0, 1.0)
    powers = legendre.legvander(2.0 * nodes - 1.0, stages - 1)
    lower = np.column_stack([_integral(degree, nodes) for degree in range(stages)])
    inverse = powers @ np.linalg.inv(lower)
    values, vectors = np.linalg.eig(inverse)
    values = np.where(np.abs(values.imag) < 1e-9, values.real, values)
    order = np.argsort(values.imag < 0, kind="stable")  # real and upper half plane first
    dual = np.linalg.inv(vectors)
    whole = np.linalg.inv(legendre.legvander(2.0 * np.append(0.0, nodes) - 1.0, stages))
    return Tableau(nodes, inverse, values[order], vectors[:, order], dual[order], int((values.imag >= 0).sum()), whole)


def _integral(degree: int, upper: Array) -> Array:
    """∫_0^upper P_degree(2τ - 1) dτ."""
    series = legendre.legint(np.eye(degree + 1)[degree], lbnd=-1)
    return 0.5 * legendre.legval(2.0 * upper - 1.0, series)


class TimeUp(Exception):
    """The time allowed ended in the middle of a step."""


class RadauCollocation(OdeSolver):  # type: ignore[misc, unused-ignore]  # SciPy has no types
    """See the module. ``dynamics`` is a Dynamics, ``tol`` is measured by its ``size``, ``stages`` is odd."""

    def __init__(
        self,
        fun: Any,
        t0: float,
        y0: Array,
        t_bound: float,
        *,
        dynamics: Dynamics,
        tol: float,
        stages: int,
        control: StepControl | None = None,
        first_step: float | None = None,
        max_step: float = np.inf,
        vectorized: bool = False,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized, support_complex=True)
        self.dynamics, self.tol, self.table = dynamics, tol, tableau(stages)
        self.control, self.max_step = control or StepControl(), max_step
        self.over: Callable[[], bool] = lambda: False
        self.t: float
        self.y: Array
        self.y_old: Array | None = None
        self.h = first_step or self._first_step()
        self.factors: tuple[float, list[Callable[[Array], Array]]] | None = None
        self.J: Operator | None = None
        self.series: Array | None = None
        self.last_h = self.h

    def _first_step(self) -> float:
        """From the sizes of y' and of its change along y' (Hairer, Nørsett & Wanner, II.4), for a method of order s."""
        span = abs(self.t_bound - self.t)
        rate = self._rate(self.t, self.y)
        speed = self.dynamics.size(rate)
        probe = min(1e-3 * span, 1e-4 / speed if speed > 0 else np.inf)
        bend = (
            self.dynamics.size(
                self._rate(self.t + self.direction * probe, self.y + self.direction * probe * rate) - rate
            )
            / probe
        )
        if not np.isfinite(bend):
            return 1e-6 * span
        fastest = max(speed, bend**0.5)
        return float(
            min(1e-2 * span, 0.3 * self.tol ** (1.0 / len(self.table.nodes)) / fastest if fastest > 0 else span)
        )

    def _rate(self, time: float, state: Array) -> Array:
        self.nfev += 1
        return self.dynamics.rates(np.array([time]), state[:, None])[:, 0]

    # ------------------------------------------------------------------------------------------------------ one step

    def _step_impl(self) -> tuple[bool, str | None]:
        fresh = False
        floor = 10.0 * np.spacing(max(abs(self.t), abs(self.t_bound - self.t)))  # smaller steps are lost in the time
        while True:
            h = min(self.h, self.max_step, abs(self.t_bound - self.t))
            if h < floor:
                return False, self.TOO_SMALL_STEP
            rest = abs(self.t_bound - self.t)
            if rest < 1.05 * h and rest <= self.max_step:
                h = rest
            if self.J is None:
                self.J, self.factors, fresh = self.dynamics.jacobian(self.t, self.y), None, True
                self.njev += 1
            stages, finite = self._newton(h)
            if stages is None:
                if fresh or not finite:
                    self.h = h * (0.25 if finite else self.control.shrink)
                if not fresh:
                    self.J = None
                continue
            series = np.concatenate([np.zeros_like(self.y)[:, None], stages], axis=1) @ self.table.legendre.T
            error = self._error(series)
            order = len(self.table.nodes) + 1
            factor = self.control.safety * (self.tol / max(error, 1e-4 * self.tol)) ** (1.0 / order)
            if error > self.tol:
                self.h = h * min(max(factor, self.control.shrink), 0.8)
                continue
            self._accept(h, stages, series, min(factor, self.control.growth))
            return True, None

    def _accept(self, h: float, stages: Array, series: Array, factor: float) -> None:
        self.y_old, self.series, self.last_h = self.y, series, h
        self.y = self.y + stages[:, -1]
        end = abs(self.t_bound - self.t) <= h
        self.t = self.t_bound if end else self.t + self.direction * h
        keep = 0.9 < factor < 1.15 and self.factors is not None  # the same step again saves the factorisations
        self.h = h if keep else h * factor

    def _error(self, series: Array) -> float:
        """Size of the first Legendre coefficient that the polynomial lacks, from the decay of the last two pairs."""
        last = max(self.dynamics.size(series[:, -1]), 1e-300)
        earlier = max(
            self.dynamics.size(series[:, -2]), self.dynamics.size(series[:, -3]) if series.shape[1] > 3 else 0.0
        )
        return last * min(1.0, max(last / earlier if earlier > 0 else 1.0, 0.02))

    def _newton(self, h: float) -> tuple[Array | None, bool]:
        """Stages Z (n, s) of a step and whether every number stayed finite."""
        table, step = self.table, self.direction * h
        times = self.t + step * table.nodes
        Z = self._guess(h)
        previous = np.inf
        most, rounding, goal = self.control.iterations, self.control.rounding, self.control.newton_share * self.tol
        for iteration in range(most):
            if self.over():
                raise TimeUp
            F = self.dynamics.rates(times, self.y[:, None] + Z)
            self.nfev += len(times)
            if not np.isfinite(F).all():
                return None, False
            change = self._solve(step, F - (Z @ table.inverse.T) / step)
            Z = Z + change
            size = max(self.dynamics.size(change[:, k]) for k in range(change.shape[1]))
            if not np.isfinite(size):
                return None, False
            if iteration:
                rate = size / previous
                if size <= rounding or (rate < 1 and rate / (1 - rate) * size < goal):
                    return Z, True
                if rate >= 1 and size <= 10 * rounding:
                    return Z, True
                if rate >= 1 or rate ** (most - 1 - iteration) * size > goal:
                    return None, True
            elif size <= rounding:
                return Z, True
            previous = size
        return None, True

    def _guess(self, h: float) -> Array:
        """The last step's polynomial, continued; zero at first."""
        if self.series is None:
            return np.zeros((len(self.y), len(self.table.nodes)), dtype=self.y.dtype)
        ahead = 2.0 * (1.0 + self.table.nodes * h / self.last_h) - 1.0
        past = legendre.legvander(np.append(1.0, ahead), self.series.shape[1] - 1)
        values = self.series @ past.T
        return values[:, 1:] - values[:, :1]

    def _solve(self, step: float, residual: Array) -> Array:
        """ΔZ of the Newton system, in the eigenvectors of A⁻¹; for real y conjugate eigenvalues share one solve."""
        assert self.J is not None
        table, real = self.table, not np.iscomplexobj(residual)
        count = table.distinct if real else len(table.values)
        if self.factors is None or self.factors[0] != step:
            shifts = [v.real if v.imag == 0 else v for v in table.values[:count] / step]
            self.factors = step, [self.J.shifted(shift) for shift in shifts]
            self.nlu += count
        total = np.zeros_like(residual)
        for k, solve in enumerate(self.factors[1]):
            alone = real and table.values[k].imag == 0
            part = solve(residual @ (table.dual[k].real if alone else table.dual[k]))
            change = np.outer(part, table.vectors[:, k].real if alone else table.vectors[:, k])
            total += change if alone or not real else 2.0 * change.real
        return total

    def _dense_output_impl(self) -> DenseOutput:
        assert self.y_old is not None
        assert self.series is not None
        return Polynomial(self.t_old, self.t, self.y_old, self.series)


class Polynomial(DenseOutput):  # type: ignore[misc, unused-ignore]
    """A step as a Legendre series: y_old (n,) + Σ series[:, k] P_k on [t_old, t]."""

    DEGREE = 9
    """Of the polynomial that stands for a step of an integrator of SciPy's; theirs have degree ≤ 7."""

    def __init__(self, t_old: float, t: float, y_old: Array, series: Array) -> None:
        super().__init__(t_old, t)
        self.y_old, self.series = y_old, series

    @classmethod
    def of(cls, output: DenseOutput) -> Polynomial:
        """Any dense output as a Legendre series, by interpolation, which is exact for polynomials."""
        if isinstance(output, Polynomial):
            return output
        place = np.cos(np.pi * np.arange(cls.DEGREE, -1, -1) / cls.DEGREE)
        start = output(output.t_old)
        values = output(output.t_old + 0.5 * (place + 1.0) * (output.t - output.t_old)) - start[:, None]
        series = np.linalg.solve(legendre.legvander(place, cls.DEGREE), values.T).T
        return cls(output.t_old, output.t, start, series)

    def _call_impl(self, t: Array) -> Array:
        values = self.derivative(np.atleast_1d(t), 0)
        return values if np.ndim(t) else values[:, 0]

    def derivative(self, times: Array, order: int) -> Array:
        """d^order/dt^order at M times: (n, M)."""
        scale = 2.0 / (self.t - self.t_old)
        place = scale * (times - self.t_old) - 1.0
        series = legendre.legder(self.series, order, scl=scale, axis=1) if order else self.series
        values = series @ legendre.legvander(place, series.shape[1] - 1).T
        return values if order else values + self.y_old[:, None]
