"""Radau IIA collocation of any order, as a solver of SciPy's family (``scipy.integrate.OdeSolver``).

The s stages of a step [t, t + h] are the values, at the Radau nodes c_1 < … < c_s = 1, of the polynomial Y of degree s
with Y(t) = y and Y' = f(·, Y) at every node. With A the Butcher matrix and Z_i = Y(t + c_i h) - y,

    Z = h A F(y + Z),      solved by simplified Newton:   (A⁻¹/h ⊗ 1 - 1 ⊗ J) ΔZ = F(y + Z) - A⁻¹Z/h,

which decouples into s systems of the size of y in the eigenvectors of A⁻¹ (Hairer & Wanner, Solving ODEs II, IV.8).

SciPy's own ``Radau`` has s = 3, and its dense output is of third order: at twelve digits it takes thousands of steps.
Here the polynomial itself is the dense output, s is chosen from the tolerance, and the step sizes keep the
error of that polynomial below the tolerance at every time, estimated from the decay of its Legendre coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput, OdeSolver

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.time.control import SAFETY, FactorCache, StepControl, step_factor
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.dynamics import Dynamics, JacobianOperator
from rannpde.pde.time.stability import CollocationStep, StepObserver
from rannpde.pde.time.tableau import radau_tableau, truncation_estimate
from rannpde.pde.tolerance import GAIN, MUCH_SMALLER, NEARBY, SAME_SOLUTION, TIME_SHARE
from rannpde.rounding import ROOT_ROUNDED

SAME_STEP = (SAFETY**0.5, 1 / SAFETY)
"""Factors of the next step within which the last one is repeated, so that its factorisations serve again: it may use
half of the margin of safety, and a step that could be longer by no more than that margin stays."""
LAST_STEP = SAFETY**-0.5
"""A step that reaches the end if it is lengthened by this factor, half of the margin of safety, is."""
SLOW_CONVERGENCE = MUCH_SMALLER**0.5
"""Contraction of Newton's method, half a digit per iteration, above which the next step gets a new Jacobian: a failure
would cost the iterations up to it besides."""


class RadauCollocation(OdeSolver):  # type: ignore[misc, unused-ignore]  # SciPy has no types
    """Radau IIA, as the docstring of the module describes it. ``dynamics`` is a Dynamics, ``tol`` is measured by its
    ``size``, ``stages`` is odd.

    observers : called after every accepted step
    """

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
        observers: Sequence[StepObserver] = (),
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized, support_complex=True)
        self.observers = observers
        self.dynamics, self.tol, self.tableau = dynamics, tol, radau_tableau(stages)
        self.control, self.max_step = control or StepControl(), max_step
        self.t: float
        self.y: Array
        self.y_old: Array | None = None
        self.h = first_step or self._first_step()
        self.factors = FactorCache[list[Callable[[Array], Array]]](capacity=1)
        self.J: JacobianOperator | None = None
        self.series: Array | None = None
        self.last_h = self.h
        self.contraction = 0.0  # of the last Newton iterations
        self.iterations = self.fresh_iterations = 0  # of the last step, and of the first one with this Jacobian
        self.linearised_at = t0

    def _first_step(self) -> float:
        """The first step, from the sizes of y' and of its change along y', for a method of order s (Hairer, Nørsett &
        Wanner, II.4)."""
        span = abs(self.t_bound - self.t)
        rate = self._rate(self.t, self.y)
        speed = self.dynamics.size(rate)
        probe = min(NEARBY * span, MUCH_SMALLER * NEARBY / speed if speed > 0 else np.inf)
        moved = self._rate(self.t + self.direction * probe, self.y + self.direction * probe * rate)
        second = self.dynamics.size(moved - rate) / probe  # the size of y''
        if not np.isfinite(second):
            return ROOT_ROUNDED * span
        fastest = max(speed, second**0.5)
        wanted = TIME_SHARE * self.tol ** (1 / len(self.tableau)) / fastest if fastest > 0 else span
        return float(min(SAME_SOLUTION * span, wanted))

    def _rate(self, time: float, state: Array) -> Array:
        self.nfev += 1
        return self.dynamics.rates(np.array([time]), state[:, None])[:, 0]

    # ------------------------------------------------------------------------------------------------------ one step

    def _step_impl(self) -> tuple[bool, str | None]:
        fresh = failed = False
        floor = 10 * np.spacing(max(abs(self.t), abs(self.t_bound - self.t)))  # smaller steps are lost in the time
        while True:
            h = min(self.h, self.max_step, abs(self.t_bound - self.t))
            if h < floor:
                return False, self.TOO_SMALL_STEP
            rest = abs(self.t_bound - self.t)
            if rest < LAST_STEP * h and rest <= self.max_step:
                h = rest
            if self.J is None or (not failed and self._outdated(h)):
                self.J, fresh = self._linearised(h), True
                self.factors.clear()
                self.njev += 1
            stages, finite = self._newton(h)
            if fresh:
                self.fresh_iterations = self.iterations
            if stages is None:
                failed = True
                if fresh or not finite:
                    self.h = h * (0.5 if finite else self.control.shrink)
                if not fresh:
                    self.J = None
                continue
            series = np.concatenate([np.zeros_like(self.y)[:, None], stages], axis=1) @ self.tableau.legendre.T
            error = self._error(series)
            factor = step_factor(self.tol, error, len(self.tableau) + 1, self.control.safety)
            if error > self.tol:
                self.h = h * min(max(factor, self.control.shrink), GAIN)
                continue
            # where Newton's method has just failed with a longer step, it would fail again
            self._accept(h, stages, series, error, min(factor, 1.0 if failed else self._longest(fresh)))
            return True, None

    def _longest(self, fresh: bool) -> float:
        """The factor of the next step with which Newton's method would still converge fast.

        The error of a new Jacobian is of the order of the length of its step, and so contraction is of its square.
        """
        fast = (SLOW_CONVERGENCE / self.contraction) ** 0.5 if fresh and self.contraction > 0 else np.inf
        return max(1.0, min(self.control.growth, fast))

    def _outdated(self, h: float) -> bool:
        """Whether a new Jacobian saves more than it costs.

        Its error grows with the distance in time from where it was computed, and the contraction of Newton's method
        like the integral of that. Where factorisations are due anyway, it costs about one iteration.
        """
        if self.series is None:
            return False
        age = abs(self.t - self.linearised_at)
        growth = _largest_integral(age, age + h) / _largest_integral(age - self.last_h, age)
        due = self.factors.get(self.direction * h) is None and self.iterations > self.fresh_iterations + 1
        return due or self.contraction * growth > SLOW_CONVERGENCE

    def _linearised(self, h: float) -> JacobianOperator:
        """The Jacobian in the middle of the step that is expected: nowhere in the step is it far off."""
        if self.series is None:
            return self.dynamics.jacobian(self.t, self.y)
        middle = len(self.tableau) // 2
        self.linearised_at = self.t + self.direction * h * self.tableau.nodes[middle]
        return self.dynamics.jacobian(self.linearised_at, self.y + self._guess(h)[:, middle])

    def _accept(self, h: float, stages: Array, series: Array, error: float, factor: float) -> None:
        step = self.direction * h
        for observer in self.observers:
            accepted = CollocationStep(
                self.t, step, self.y, series, self.tol, error, self.tableau, self.dynamics, partial(self._solve, step)
            )
            observer.observe(accepted)
        self.y_old, self.series, self.last_h = self.y, series, h
        self.y = self.y + stages[:, -1]
        end = abs(self.t_bound - self.t) <= h
        self.t = self.t_bound if end else self.t + step
        self.h = h if SAME_STEP[0] < factor < SAME_STEP[1] else h * factor

    def _error(self, series: Array) -> float:
        """The size of the first Legendre coefficient that the polynomial lacks."""
        sizes = [self.dynamics.size(series[:, -k]) for k in range(1, 4 if series.shape[1] > 3 else 3)]
        return float(truncation_estimate(np.asarray(sizes[0]), np.asarray(max(sizes[1:]))))

    def _newton(self, h: float) -> tuple[Array | None, bool]:
        """Stages Z (n, s) of a step and whether every number stayed finite."""
        tableau, step = self.tableau, self.direction * h
        times = self.t + step * tableau.nodes
        Z = self._guess(h)
        previous, self.contraction = np.inf, 0.0
        most, rounding, goal = (
            self.control.newton_iterations,
            self.control.rounding,
            MUCH_SMALLER * self.tol,
        )
        for iteration in range(most):
            checkpoint()
            self.iterations = iteration + 1
            F = self.dynamics.rates(times, self.y[:, None] + Z)
            self.nfev += len(times)
            if not np.isfinite(F).all():
                return None, False
            change = self._solve(step, F - (Z @ tableau.derivative.T) / step)
            Z = Z + change
            size = self.dynamics.size(change)
            if not np.isfinite(size):
                return None, False
            if iteration:
                rate = size / previous
                if size > 10 * rounding:
                    self.contraction = max(self.contraction, rate)
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
        """The last step's polynomial, continued; zero at first.

        Far ahead its terms grow with their degree: the series ends with the smallest of them, as asymptotic ones do.
        """
        if self.series is None:
            return np.zeros((len(self.y), len(self.tableau.nodes)), dtype=self.y.dtype)
        ahead = 1.0 + 2.0 * self.tableau.nodes * h / self.last_h
        past = legendre.legvander(ahead, self.series.shape[1] - 1) - 1.0  # all are 1 at the end of the last step
        terms = np.linalg.norm(self.series[:, 1:], axis=0) * past[-1, 1:]
        count = int(np.argmin(terms)) + 2
        return self.series[:, :count] @ past[:, :count].T

    def _solve(self, step: float, residual: Array) -> Array:
        """ΔZ of the Newton system, in the eigenvectors of A⁻¹; for real y conjugate eigenvalues share one solve."""
        assert self.J is not None
        tableau, real = self.tableau, not np.iscomplexobj(residual)
        count = tableau.distinct if real else len(tableau)
        solvers = self.factors.get(step)
        if solvers is None:
            self.factors.make_room()
            solvers = self.factors[step] = [self.J.shifted(tableau.shift(k) / step) for k in range(count)]
            self.nlu += count
        parts = tableau.dual[:count] @ residual.T
        for k, solve in enumerate(solvers):
            parts[k] = solve(parts[k].real if real and tableau.is_real(k) else parts[k])
        return (tableau.real_recombination @ parts).real.T if real else (tableau.vectors @ parts).T

    def _dense_output_impl(self) -> DenseOutput:
        assert self.y_old is not None
        assert self.series is not None
        return LegendreStep(self.t_old, self.t, self.y_old, self.series)


def _largest_integral(start: float, end: float) -> float:
    """The largest |∫_start^t s ds| for t up to the end."""
    return 0.5 * max(abs(end**2 - start**2), start**2 if start < 0 else 0.0)
