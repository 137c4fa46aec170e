"""Dense output of one step as a Legendre series, which every stepper of this package gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput

from rannpde.arrays import Array
from rannpde.rounding import EPS

INTERPOLATION_DEGREE = 9
"""Degree of the polynomial that stands for a step of SciPy's integrators, whose own have degree ≤ 7."""


class DenseStep(Protocol):
    """The solution on one step [t_old, t]."""

    @property
    def t_old(self) -> float: ...

    @property
    def t(self) -> float: ...

    @property
    def rounding(self) -> float:
        """The error, relative to the size of the solution, with which the values of the step are stored."""
        ...

    def __call__(self, time: float) -> Array:
        """The state (n,) at one time."""
        ...

    def derivative(self, times: Array, order: int) -> Array:
        """d^order/dt^order at M times: (n, M)."""
        ...

    def stacked(self, steps: Sequence[Any]) -> dict[str, Array]:
        """The arrays of successive steps of this kind, for a file."""
        ...


class LegendreStep(DenseOutput):  # type: ignore[misc, unused-ignore]  # SciPy has no types
    """A step as a Legendre series: y_old (n,) + Σ series[:, k] P_k on [t_old, t]."""

    t_old: float
    t: float
    rounding = EPS

    def __init__(self, t_old: float, t: float, y_old: Array, series: Array) -> None:
        super().__init__(t_old, t)
        self.y_old, self.series = y_old, series

    @classmethod
    def of(cls, output: DenseOutput) -> LegendreStep:
        """Any dense output as a Legendre series, by interpolation, which is exact for polynomials."""
        if isinstance(output, LegendreStep):
            return output
        nodes = np.cos(np.pi * np.arange(INTERPOLATION_DEGREE, -1, -1) / INTERPOLATION_DEGREE)
        start = output(output.t_old)
        values = output(output.t_old + 0.5 * (nodes + 1.0) * (output.t - output.t_old)) - start[:, None]
        series = np.linalg.solve(legendre.legvander(nodes, INTERPOLATION_DEGREE), values.T).T
        return cls(output.t_old, output.t, start, series)

    def stacked(self, steps: Sequence[LegendreStep]) -> dict[str, Array]:
        """Ends (K + 1,), states at the beginning of the steps (K, n), Legendre series (K, n, degree + 1)."""
        return {
            "times": np.array([steps[0].t_old, *(step.t for step in steps)]),
            "starts": np.stack([step.y_old for step in steps]),
            "series": np.stack([step.series for step in steps]),
        }

    def _call_impl(self, t: Array) -> Array:
        values = self.derivative(np.atleast_1d(t), 0)
        return values if np.ndim(t) else values[:, 0]

    def derivative(self, times: Array, order: int) -> Array:
        """d^order/dt^order at M times: (n, M)."""
        scale = 2.0 / (self.t - self.t_old)
        return self.combined(legendre_values(scale * (times - self.t_old) - 1.0, self.series.shape[1], order), order)

    def combined(self, values: Array, order: int) -> Array:
        """The derivative of that order (n, M), from those of the Legendre polynomials (degree + 1, M) on [-1, 1]."""
        scale = 2.0 / (self.t - self.t_old)
        return scale**order * (self.series @ values) if order else self.series @ values + self.y_old[:, None]


def legendre_values(local: Array, count: int, order: int) -> Array:
    """(count, M): the derivatives of that order of the first Legendre polynomials at M points of [-1, 1]."""
    if order == 0:
        return legendre.legvander(local, count - 1).T
    if order >= count:
        return np.zeros((count, len(local)))
    return legendre.legder(np.eye(count), order).T @ legendre.legvander(local, count - 1 - order).T
