"""Settings of all iterations of the method of lines: tolerances, the time integration, first scales and amplitudes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.result import AdaptiveResult, Iteration
from rannpde.pde.lines.solution import SemiDiscreteSystem, SpaceTimeSolution, fields_at
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.data import source_size, timed_parts
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.problem.step_limit import StepLimit
from rannpde.pde.residual import root_mean_square
from rannpde.pde.time.integrator import TimeIntegrator, unlimited
from rannpde.pde.time.tableau import stages_for
from rannpde.pde.time.trajectory import Event
from rannpde.pde.tolerance import TIME_SHARE

SpaceFunction = Callable[[Array], Array]
FieldEvent = Callable[[float, SpaceFunction], float]
LinesResult = AdaptiveResult[SpaceTimeSolution, Iteration]
ResultMaker = Callable[[Status, str], LinesResult]
"""Makes a result from the status and the reason of an untimely end."""


@dataclass(frozen=True)
class IterationSettings:
    """The settings that all iterations of a solve share.

    tol : the relative L² error over space-time that is wanted
    step_limit : the longest steps in time that resolve the data; None where these do not depend on time
    events : name → function of (time, u) whose zeros are recorded, u being a function of points (M, d) of space with
        values (M, fields); one with attribute ``terminal`` ends the integration
    width : features of every iteration, or None to choose them from tol
    integrator : None for the one that suits the discretisation best
    keep : called with a function that makes the result so far
    time_tolerance : of the next iteration in time; None for that of the iteration
    growth, defect : whether the next iteration measures the growth of perturbations, and its error in time
    """

    tol: float
    tuning: LinesTuning
    monitor: Monitor
    step_limit: StepLimit | None
    integrator: str | None = None
    events: Mapping[str, FieldEvent] = field(default_factory=dict)
    width: int | None = None
    keep: Callable[[ResultMaker], None] = lambda make: None
    time_tolerance: float | None = None
    growth: bool = False
    defect: bool = False

    def tolerance_schedule(self) -> tuple[float, ...]:
        """Tolerances of the iterations: loose, medium, the one wanted; then ever smaller ones, so that errors in time
        show in the difference of two iterations."""
        early = [t for t in self.tuning.first_tolerances if t > 3 * self.tol]
        after = range(self.tuning.most_iterations - len(early))
        return (*early, *(self.tol / self.tuning.tolerance_factor**k for k in after))

    def time_integrator(
        self, tol: float, number: int, system: SemiDiscreteSystem, amplitude: RunningAmplitude | None = None
    ) -> TimeIntegrator:
        """The time integration of one iteration, whose dense output is held below the tolerance of the iteration."""

        def notice(steps: int, time: float) -> Status | None:
            self.monitor.tell(number, steps, time=time, width=system.columns)
            return self.monitor.ending if self.monitor.exhausted else None

        events = {name: _on_states(event, system) for name, event in self.events.items()}
        tol = self.time_tolerance or tol
        # with one order, errors of two iterations differ as their tolerances do
        stages = stages_for(TIME_SHARE * max(tol, self.tol))
        limit = self.step_limit
        if limit is not None and tol <= self.tol and number % 2 == 0:
            limit = tightened(limit, 1.0 / self.tuning.tolerance_factor, stages)
        return TimeIntegrator(
            TIME_SHARE * tol,
            self.tuning.steps,
            unlimited if limit is None else limit.longest_step,
            self.integrator or "RadauIIA",
            events,
            notice,
            first_step_factor=1.0 if tol >= self.tol else 1.0 / self.tuning.tolerance_factor,
            amplitude=amplitude,
            stages=stages,
            growth=self.growth,
            defect=self.defect,
        )


def tightened(limit: StepLimit, share: float, degree: int) -> StepLimit:
    """The limit for that share of its tolerance, by which polynomials of the degree need shorter steps.

    Every other iteration takes it: integrations that take the longest steps that the data allow would share all of
    them, and with them their errors, whatever their tolerances.
    """
    return replace(limit, lengths=limit.lengths * share ** (1.0 / (degree + 1)))


def data_step_limit(evolution: Evolution, tol: float) -> StepLimit | None:
    """The longest steps by which an integration to that tolerance resolves the data in time; None where none vary."""
    if not timed_parts(evolution):
        return None
    share = TIME_SHARE * tol
    return StepLimit.of(evolution, share, stages_for(share))


def first_scales(evolution: Evolution) -> dict[Component, float]:
    """Root mean squares of the initial values; for fields that begin at 0, the integral of their sources over time."""
    start, end = evolution.domain.time
    points = evolution.domain.space.sample(2000, rng=0)
    sizes: dict[Component, float] = {}
    for component in evolution.components:
        begins = component in evolution.initial
        size = root_mean_square(evolution.initial_values(component, points)) if begins else 0.0
        before = sizes.get(Component(component.field, component.level - 1))
        if before is not None:
            size = max(size, before / (end - start))
        sizes[component] = size or (end - start) * source_size(evolution, component.field, points) or 1.0
    return sizes


def with_initial_rates(scales: Mapping[Component, float], rates: Mapping[Component, float]) -> dict[Component, float]:
    """Scales for the first iteration: a field that begins at rest gets the speed √(acceleration · size)."""
    sizes = dict(scales)
    for component, rate in rates.items():
        if component.level:
            speed = float(np.sqrt(rate * scales[Component(component.field, 0)]))
            sizes[component] = max(sizes[component], speed if np.isfinite(speed) else 0.0)
    return sizes


@dataclass(frozen=True, eq=False)
class RunningAmplitude:
    """The largest size of a solution so far, as a share of its largest size at all times.

    Where a solution grows, errors that are made while it is small grow with it: the tolerance is relative to this.

    times (K,), shares (K,), which never decrease and are at most 1
    fields : number of fields
    """

    times: Array
    shares: Array
    fields: int = 1

    @classmethod
    def of(cls, solution: SpaceTimeSolution, tuning: LinesTuning) -> RunningAmplitude:
        """The running amplitude of the field that grows most."""
        evolution, (count, each) = solution.evolution, tuning.amplitude_samples
        times = np.linspace(solution.start, solution.trajectory.reliable, count)
        points = evolution.domain.space.sample(each, rng=5)
        sizes = np.sqrt(np.mean(solution.on_grid(times, points) ** 2, axis=1))
        for component in evolution.initial:
            if component.level == 0 and not evolution.initial_values(component, points).any():
                sizes[0, evolution.problem.fields.index(component.field)] = 0.0  # a projection of 0 leaves rounding
        so_far = np.maximum.accumulate(sizes, axis=0)
        shares = (so_far / np.maximum(so_far[-1], 1e-300)).min(axis=1)
        least = min(shares[0], tuning.least_amplitude) if shares[0] > 0 else tuning.least_amplitude
        return cls(times, np.clip(shares, least, 1.0), sizes.shape[1])

    def __call__(self, time: float, reached: float) -> float:
        """The share at a time; ``reached`` is the largest size so far, relative to the scale of the solution.

        A single field may have grown by orders of magnitude since the last sample, as before a pole.
        """
        share = float(np.interp(time, self.times, self.shares))
        return max(share, reached) if self.fields == 1 else share


def _on_states(event: FieldEvent, system: SemiDiscreteSystem) -> Event:
    def on_state(time: float, state: Array) -> float:
        return float(event(time, lambda points: fields_at(system, time, state, points)))

    if getattr(event, "terminal", False):
        on_state.terminal = True  # type: ignore[attr-defined]
    return on_state
