"""ETDRK4 with adaptive steps, as a solver of SciPy's family: the linear part exactly, the rest by Runge–Kutta.

For y' = A y + N(t, y) with a linear part A whose φ functions are cheap, and z = hA (Krogstad 2005):

    Y_2 = φ_0(z/2) y + h/2 φ_1(z/2) N_1                       Y_4 = φ_0(z) y + h φ_1(z) N_1 + 2h φ_2(z) (N_3 - N_1)
    Y_3 = Y_2 + h φ_2(z/2) (N_2 - N_1)
    y₊ = φ_0(z) y + h (φ_1 N_1 + φ_2 (-3N_1 + 2N_2 + 2N_3 - N_4) + 4 φ_3 (N_1 - N_2 - N_3 + N_4))

Four evaluations of N make a step of order 4, without iterations; for advection, steps of collocation need ten times as
many. N_5 = N(t + h, y₊), which the next step uses, gives the error estimate h (4φ_3 - φ_2)(N_5 - N_4) = O(h⁴). The
dense output is the polynomial of degree 4 with values and slopes at both ends and the value in the middle; its error,
estimated from the decay of its Legendre coefficients, is held below the tolerance as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput, OdeSolver

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.time.control import FactorCache, StepControl, step_factor
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.dynamics import LinearPart, SplitDynamics
from rannpde.pde.time.tableau import truncation_estimate
from rannpde.pde.tolerance import GAIN, SAME_SOLUTION
from rannpde.rounding import ROOT_ROUNDED


def _hermite() -> Array:
    """(5, 5): value at 0, h·slope there, value at ½, value at 1, h·slope there → Legendre coefficients on [0, 1]."""
    rows = []
    for node, order in ((-1.0, 0), (-1.0, 1), (0.0, 0), (1.0, 0), (1.0, 1)):
        series = legendre.legder(np.eye(5), order, scl=2.0, axis=0) if order else np.eye(5)
        rows.append(legendre.legvander(np.array([node]), len(series) - 1)[0] @ series)
    return np.linalg.inv(np.array(rows))


HERMITE = _hermite()


@dataclass(frozen=True, eq=False)
class PhiFunctions:
    """φ_0, …, φ_3 of a step of one length and of half of it."""

    whole: Sequence[LinearPart]
    half: Sequence[LinearPart]


class ExponentialRungeKutta(OdeSolver):  # type: ignore[misc, unused-ignore]  # SciPy has no types
    """ETDRK4 as described in the module. ``dynamics`` is a SplitDynamics, ``tol`` is measured by its ``size``."""

    ORDER = 4
    REFRESH = 64
    """Steps after which the linear part is computed again, if it depends on the state."""
    LEAST_GROWTH = 1.25
    """Factor below which the step is not lengthened: the φ functions of a new length cost about two evaluations."""

    def __init__(
        self,
        fun: Any,
        t0: float,
        y0: Array,
        t_bound: float,
        *,
        dynamics: SplitDynamics,
        tol: float,
        control: StepControl | None = None,
        first_step: float | None = None,
        max_step: float = np.inf,
        vectorized: bool = False,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized, support_complex=True)
        self.dynamics, self.tol, self.shape = dynamics, tol, dynamics.table_shape
        self.control, self.max_step = control or StepControl(), max_step
        self.t: float
        self.y: Array
        self.y_old: Array | None = None
        self.series: Array | None = None
        self.phi = FactorCache[PhiFunctions](capacity=1)
        self.taken = 0
        self._prepare()
        self.h = first_step or self._first_step()

    def _prepare(self) -> None:
        self.linear = self.dynamics.linear_part(self.t, self.y)
        self.remainder = self.dynamics.remainder_of(self.linear)
        self.phi.clear()
        self.first = self._rest(self.t, self.y)

    def _rest(self, time: float, state: Array) -> Array:
        checkpoint()
        self.nfev += 1
        return self.remainder(time, state.ravel()).reshape(-1, *self.shape)

    def _rate(self, state: Array, rest: Array) -> Array:
        return np.asarray(self.linear.apply(state.reshape(rest.shape)) + rest)

    def _first_step(self) -> float:
        """The first step, from the sizes of y and y': its error is taken to be the last term of its polynomial."""
        span = abs(self.t_bound - self.t)
        speed = self.dynamics.size(self._rate(self.y, self.first).ravel())
        if not np.isfinite(speed):
            return ROOT_ROUNDED * span
        return float(min(SAME_SOLUTION * span, self.tol ** (1.0 / self.ORDER) / speed if speed > 0 else span))

    def _step_impl(self) -> tuple[bool, str | None]:
        floor = 10 * np.spacing(max(abs(self.t), abs(self.t_bound - self.t)))
        if self.taken and self.taken % self.REFRESH == 0:
            self._prepare()
        while True:
            rest = abs(self.t_bound - self.t)
            h = min(self.h, self.max_step, rest)
            if h < floor:
                return False, self.TOO_SMALL_STEP
            if rest < 1.05 * h and rest <= self.max_step:
                h = rest
            tried = self._try(h, self._phi(h))
            if tried is None:
                self.h = h * self.control.shrink
                continue
            end, rest_there, series, error = tried
            factor = step_factor(self.tol, max(error, ROOT_ROUNDED * self.tol), self.ORDER, self.control.safety)
            if error > self.tol:
                self.h = h * min(max(factor, self.control.shrink), GAIN)
                continue
            self.y_old, self.series, self.first = self.y, series, rest_there
            self.y = end
            self.t = self.t_bound if rest <= h else self.t + self.direction * h
            self.taken += 1
            longer = h * min(factor, self.control.growth)
            if factor < 1.0 or longer > self.LEAST_GROWTH * self.h:
                self.h = longer
            return True, None

    def _phi(self, h: float) -> PhiFunctions:
        """The φ functions of a step of that length, computed once as long as the length is the same."""
        held = self.phi.get(h)
        if held is None:
            self.phi.make_room()
            parts = [self.dynamics.phi_functions(self.linear, step) for step in (h, 0.5 * h)]
            held = self.phi[h] = PhiFunctions(*parts)
        return held

    def _try(self, h: float, c: PhiFunctions) -> tuple[Array, Array, Array, float] | None:
        """End (n,), rest there, series (n, 5) and error of a step; None where numbers leave the finite."""
        y, n1 = self.y.reshape(-1, *self.shape), self.first
        middle = self.t + 0.5 * h
        halfway = c.half[0].apply(y) + c.half[1].apply((0.5 * h) * n1)
        n2 = self._rest(middle, halfway)
        n3 = self._rest(middle, halfway + c.half[2].apply(h * (n2 - n1)))
        late = c.whole[0].apply(y) + c.whole[1].apply(h * n1)
        n4 = self._rest(self.t + h, late + c.whole[2].apply((2.0 * h) * (n3 - n1)))
        both = n2 + n3
        end = late + c.whole[2].apply(h * (2.0 * both - 3 * n1 - n4)) + c.whole[3].apply((4 * h) * (n1 - both + n4))
        end = self.dynamics.clean(end)
        n5 = self._rest(self.t + h, end)
        change = h * (n5 - n4)
        local = self.dynamics.size((c.whole[3].apply(4 * change) - c.whole[2].apply(change)).ravel())
        if not np.isfinite(local):
            return None
        if local > self.tol:
            return end.ravel(), n5, np.empty(0), local
        curve = 0.5 * (n1 - both + n5)  # of the parabola through n1, both/2, n5 in half steps
        slope = 0.5 * both - n1 - curve
        centre = c.half[0].apply(y) + (
            c.half[1].apply((0.5 * h) * n1) + c.half[2].apply((0.5 * h) * slope) + c.half[3].apply(h * curve)
        )
        values = np.empty((4, y.size), dtype=complex)
        for row, value in zip(
            values, (h * self._rate(y, n1), centre - y, end - y, h * self._rate(end, n5)), strict=True
        ):
            row[:] = value.ravel()
        series = (HERMITE[:, 1:] @ values.view(float)).view(complex)  # the value at the start is no part of the change
        sizes = [self.dynamics.size(one) for one in series[2:]]
        error = max(local, float(truncation_estimate(np.asarray(sizes[2]), np.asarray(max(sizes[:2])))))
        if not np.isfinite(error):
            return None
        return end.ravel(), n5, series.T, error

    def _dense_output_impl(self) -> DenseOutput:
        assert self.y_old is not None
        assert self.series is not None
        return LegendreStep(self.t_old, self.t, self.y_old, self.series)
