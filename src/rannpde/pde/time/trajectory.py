"""Trajectories: states as functions of time, piecewise polynomial, from the steps of an integration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.monitor import Status
from rannpde.pde.time.dense_output import DenseStep, LegendreStep, legendre_values
from rannpde.pde.time.tableau import RadauTableau
from rannpde.pde.tolerance import MUCH_SMALLER

Event = Callable[[float, Array], float]
"""A function of (time, state) whose zeros are recorded; one with a true attribute ``terminal`` ends the integration."""
TRUSTED_SHARE = 1 - MUCH_SMALLER
"""Share of the time before a singularity in which solutions are compared."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The state as a function of time: ``trajectory(times)`` is (n, M).

    status : why it ended before the last time, or None when it did not; detail : the reason with the time
    events : event → times at which it vanished
    growth, error : where they were measured, the largest growth of a perturbation, and the error in time (see
        ``rannpde.pde.time.stability``)
    """

    times: tuple[float, ...]
    steps: tuple[DenseStep, ...]
    status: Status | None = None
    detail: str = ""
    events: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    growth: float | None = None
    error: float | None = None

    @property
    def end(self) -> float:
        return self.times[-1]

    @property
    def reliable(self) -> float:
        """The time up to which solutions are compared: the end, or a tenth before it where a singularity ended it."""
        return self.end if not self.broken else self.times[0] + TRUSTED_SHARE * (self.end - self.times[0])

    @property
    def broken(self) -> bool:
        """Whether a singularity, not the caller, ended the integration."""
        return self.status in (Status.INTEGRATOR, Status.BLOW_UP)

    @property
    def last(self) -> Array:
        """The state at the end."""
        return self(np.array([self.end]))[:, 0]

    def __call__(self, times: Array, order: int = 0) -> Array:
        """The state, or its time derivative of that order, of the polynomials themselves: (n, M)."""
        times = np.asarray(times, dtype=float)
        values: Array | None = None
        together = self._polynomials(times, order)
        for step, rows in self.by_step(times):
            if together is None:
                part = step.derivative(times[rows], order)
            else:
                part = step.combined(together[:, rows], order)  # type: ignore[attr-defined]
            if values is None:
                values = np.empty((len(part), len(times)), dtype=part.dtype)
            values[:, rows] = part
        return np.empty((0, 0)) if values is None else values

    def _polynomials(self, times: Array, order: int) -> Array | None:
        """The derivatives of Legendre polynomials at all times, each in its step, computed at once: steps are many and
        hold few times each. None where steps are no Legendre series of one degree."""
        degrees = {step.series.shape[1] for step in self.steps if isinstance(step, LegendreStep)}
        if len(degrees) != 1 or not all(isinstance(step, LegendreStep) for step in self.steps):
            return None
        ends = np.array([(step.t_old, step.t) for step in self.steps])[self._numbers(times)]
        local = 2.0 / (ends[:, 1] - ends[:, 0]) * (times - ends[:, 0]) - 1.0
        return legendre_values(local, degrees.pop(), order)

    def _numbers(self, times: Array) -> Array:
        """The step that each of the times (M,) falls in."""
        return np.clip(np.searchsorted(self.times, times, side="left") - 1, 0, len(self.steps) - 1)

    def by_step(self, times: Array) -> Iterator[tuple[DenseStep, Any]]:
        """Each step that some of the times (M,) fall in, and which of them."""
        numbers = self._numbers(times)
        ordered = bool((np.diff(numbers) >= 0).all())
        for number in np.unique(numbers):
            rows: Any = np.flatnonzero(numbers == number)
            if ordered:  # as they are mostly: a slice is written much faster
                rows = slice(rows[0], rows[-1] + 1)
            yield self.steps[number], rows


@dataclass(frozen=True, eq=False)
class StageTrajectory:
    """A trajectory of collocation by its stages: times (K + 1,) of the steps, and vectors (1 + K s, n) at the start and
    at every stage.

    rates (n,) : ∂_t at the start, of components that are of second order in time
    """

    tableau: RadauTableau
    times: Array
    vectors: Array
    rates: Array
