"""ETDRK4 with steps that are chosen, as a solver of SciPy's family: the linear part exactly, the rest by Runge–Kutta.

For y' = A y + N(t, y), A one small matrix for every wave vector, and z = hA (Krogstad 2005):

    Y_2 = φ_0(z/2) y + h/2 φ_1(z/2) N_1                       Y_4 = φ_0(z) y + h φ_1(z) N_1 + 2h φ_2(z) (N_3 - N_1)
    Y_3 = Y_2 + h φ_2(z/2) (N_2 - N_1)
    y₊ = φ_0(z) y + h (φ_1 N_1 + φ_2 (-3N_1 + 2N_2 + 2N_3 - N_4) + 4 φ_3 (N_1 - N_2 - N_3 + N_4))

Four evaluations of what is not linear make a step of order 4, without iterations; where waves are carried along, steps
of collocation cost ten times as many. N_5 = N(t + h, y₊), the first of the next step, gives the error,
h (4φ_3 - φ_2)(N_5 - N_4) = O(h⁴). The dense output is the polynomial of degree 4 with values and slopes at both ends
and the value in the middle, and it is held below the tolerance like the step: the decay of its coefficients tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput, OdeSolver

from rannpde.arrays import Array
from rannpde.pde.lines.periodic.modes import Modes
from rannpde.pde.lines.periodic.wavematrix import WaveMatrix, phi_functions
from rannpde.pde.lines.radau import Polynomial, TimeUp
from rannpde.pde.lines.tuning import StepControl


class WaveDynamics(Protocol):
    """y' = f(t, y) in Fourier modes, with a linear part for every wave vector."""

    @property
    def modes(self) -> Modes: ...

    def rates(self, times: Array, states: Array) -> Array: ...

    def linear_part(self, time: float, state: Array) -> WaveMatrix:
        """A, so that f - A y is not stiff."""
        ...

    def remainder_of(self, linear: WaveMatrix) -> Callable[[float, Array], Array]:
        """(t, y) → f - A y."""
        ...

    def size(self, change: Array) -> float: ...


def _hermite() -> Array:
    """(5, 5): value at 0, h·slope there, value at ½, value at 1, h·slope there → Legendre coefficients on [0, 1]."""
    rows = []
    for place, order in ((-1.0, 0), (-1.0, 1), (0.0, 0), (1.0, 0), (1.0, 1)):
        series = legendre.legder(np.eye(5), order, scl=2.0, axis=0) if order else np.eye(5)
        rows.append(legendre.legvander(np.array([place]), len(series) - 1)[0] @ series)
    return np.linalg.inv(np.array(rows))


HERMITE = _hermite()


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The matrices of steps of one length."""

    h: float
    whole: tuple[WaveMatrix, ...]
    half: tuple[WaveMatrix, ...]

    @classmethod
    def of(cls, linear: WaveMatrix, modes: Modes, h: float) -> Coefficients:
        return cls(h, phi_functions(linear * h, modes.shape), phi_functions(linear * (0.5 * h), modes.shape))


class ExponentialRungeKutta(OdeSolver):  # type: ignore[misc, unused-ignore]  # SciPy has no types
    """See the module. ``dynamics`` is a WaveDynamics, ``tol`` is measured by its ``size``."""

    ORDER = 4
    REFRESH = 64
    """Steps after which the linear part is made anew, if it depends on the state."""
    WORTH = 1.25
    """Longer steps than this times the last: a new length costs about two evaluations."""

    def __init__(
        self,
        fun: Any,
        t0: float,
        y0: Array,
        t_bound: float,
        *,
        dynamics: WaveDynamics,
        tol: float,
        control: StepControl | None = None,
        first_step: float | None = None,
        max_step: float = np.inf,
        vectorized: bool = False,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized, support_complex=True)
        self.dynamics, self.tol, self.modes = dynamics, tol, dynamics.modes
        self.control, self.max_step = control or StepControl(), max_step
        self.over: Callable[[], bool] = lambda: False
        self.t: float
        self.y: Array
        self.y_old: Array | None = None
        self.series: Array | None = None
        self.coefficients: Coefficients | None = None
        self.taken = 0
        self._prepare()
        self.h = first_step or self._first_step()

    def _prepare(self) -> None:
        self.linear = self.dynamics.linear_part(self.t, self.y)
        self.remainder = self.dynamics.remainder_of(self.linear)
        self.coefficients = None
        self.first = self._rest(self.t, self.y)

    def _rest(self, time: float, state: Array) -> Array:
        if self.over():
            raise TimeUp
        self.nfev += 1
        found = self.remainder(time, state.ravel())
        return found.reshape(-1, *self.modes.shape)

    def _rate(self, state: Array, rest: Array) -> Array:
        return self.linear.apply(state.reshape(rest.shape)) + rest

    def _first_step(self) -> float:
        """From the sizes of y and y', as for a step whose error is that of the last term of its polynomial."""
        span = abs(self.t_bound - self.t)
        speed = self.dynamics.size(self._rate(self.y, self.first).ravel())
        if not np.isfinite(speed):
            return 1e-6 * span
        return float(min(1e-2 * span, self.tol ** (1.0 / self.ORDER) / speed if speed > 0 else span))

    def _step_impl(self) -> tuple[bool, str | None]:
        floor = 10.0 * np.spacing(max(abs(self.t), abs(self.t_bound - self.t)))
        if self.taken and self.taken % self.REFRESH == 0:
            self._prepare()
        while True:
            rest = abs(self.t_bound - self.t)
            h = min(self.h, self.max_step, rest)
            if h < floor:
                return False, self.TOO_SMALL_STEP
            if rest < 1.05 * h and rest <= self.max_step:
                h = rest
            if self.coefficients is None or self.coefficients.h != h:
                self.coefficients = Coefficients.of(self.linear, self.modes, h)
            tried = self._try(h, self.coefficients)
            if tried is None:
                self.h = h * self.control.shrink
                continue
            end, rest_there, series, error = tried
            factor = self.control.safety * (self.tol / max(error, 1e-6 * self.tol)) ** (1.0 / self.ORDER)
            if error > self.tol:
                self.h = h * min(max(factor, self.control.shrink), 0.8)
                continue
            self.y_old, self.series, self.first = self.y, series, rest_there
            self.y = end
            self.t = self.t_bound if rest <= h else self.t + self.direction * h
            self.taken += 1
            longer = h * min(factor, self.control.growth)
            if factor < 1.0 or longer > self.WORTH * self.h:
                self.h = longer
            return True, None

    def _try(self, h: float, c: Coefficients) -> tuple[Array, Array, Array, float] | None:
        """End (n,), rest there, series (n, 5) and error of a step; None where numbers leave the finite."""
        y, n1 = self.y.reshape(-1, *self.modes.shape), self.first
        middle = self.t + 0.5 * h
        halfway = c.half[0].apply(y) + c.half[1].apply((0.5 * h) * n1)
        n2 = self._rest(middle, halfway)
        n3 = self._rest(middle, halfway + c.half[2].apply(h * (n2 - n1)))
        late = c.whole[0].apply(y) + c.whole[1].apply(h * n1)
        n4 = self._rest(self.t + h, late + c.whole[2].apply((2.0 * h) * (n3 - n1)))
        both = n2 + n3
        end = late + c.whole[2].apply(h * (2.0 * both - 3.0 * n1 - n4)) + c.whole[3].apply((4.0 * h) * (n1 - both + n4))
        end = self.modes.real(end)
        n5 = self._rest(self.t + h, end)
        change = h * (n5 - n4)
        local = self.dynamics.size((c.whole[3].apply(4.0 * change) - c.whole[2].apply(change)).ravel())
        if not np.isfinite(local):
            return None
        if local > self.tol:
            return end.ravel(), n5, np.empty(0), local
        bend = 0.5 * (n1 - both + n5)  # of the parabola through n1, both/2, n5 in half steps
        slope = 0.5 * both - n1 - bend
        centre = c.half[0].apply(y) + (
            c.half[1].apply((0.5 * h) * n1) + c.half[2].apply((0.5 * h) * slope) + c.half[3].apply(h * bend)
        )
        values = np.empty((4, y.size), dtype=complex)
        for row, value in zip(
            values, (h * self._rate(y, n1), centre - y, end - y, h * self._rate(end, n5)), strict=True
        ):
            row[:] = value.ravel()
        series = (HERMITE[:, 1:] @ values.view(float)).view(complex)  # the value at the start is no part of the change
        sizes = [self.dynamics.size(one) for one in series[2:]]
        dense = sizes[2] * min(1.0, max(sizes[2] / max(*sizes[:2], 1e-300), 0.02))
        error = max(local, dense)
        if not np.isfinite(error):
            return None
        return end.ravel(), n5, series.T, error

    def _dense_output_impl(self) -> DenseOutput:
        assert self.y_old is not None
        assert self.series is not None
        return Polynomial(self.t_old, self.t, self.y_old, self.series)
