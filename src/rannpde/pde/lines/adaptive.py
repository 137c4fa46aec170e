"""Adaptive iterations over the whole time interval until two of them agree, and windows in time with their own.

Every iteration estimates the length scales of its solution, and the next one adapts its basis to them. The difference
of the last two iterations, which sample different features (or take more modes) and integrate with different
tolerances, is the error estimate. Both could miss the initial values between their nodes in the same way: these are
compared with the data themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.adaptivity.result import AdaptiveResult
from rannpde.pde.lines.comparison import SolutionSamples
from rannpde.pde.lines.solution import SemiDiscreteSystem, SpaceTimeSolution, TimeSegment, fields_at
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.data import Clock, source_size
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.residual import root_mean_square
from rannpde.pde.time.integrator import TimeIntegrator
from rannpde.pde.time.trajectory import Event

SpaceFunction = Callable[[Array], Array]
FieldEvent = Callable[[float, SpaceFunction], float]


@dataclass(frozen=True)
class LinesIteration:
    """One iteration: what it used, and its relative L² difference to the one before, the largest over the fields."""

    tolerance: float
    width: int
    rank: int
    nodes: int
    steps: int
    difference: float
    seconds: float

    def __str__(self) -> str:
        change = f", change {self.difference:.1e}" if np.isfinite(self.difference) else ""
        return (
            f"tolerance {self.tolerance:.1e}, {self.width} features, rank {self.rank}, {self.nodes} nodes, "
            f"{self.steps} steps, {self.seconds:.2f} s{change}"
        )


LinesResult = AdaptiveResult[SpaceTimeSolution, LinesIteration]

ResultMaker = Callable[[Status, str], LinesResult]
"""Makes a result from the status and the reason of an untimely end."""


@dataclass(frozen=True)
class IterationSettings:
    """The settings that all iterations of a solve share.

    tol : the relative L² error over space-time that is wanted
    time_scale : of the data, which limits the steps in time
    events : name → function of (time, u) whose zeros are recorded, u being a function of points (M, d) of space with
        values (M, fields); one with attribute ``terminal`` ends the integration
    width : features of every iteration, or None to choose them from tol
    integrator : None for the one that suits the discretisation best
    keep : called with how to make the result so far
    """

    tol: float
    tuning: LinesTuning
    monitor: Monitor
    time_scale: Clock
    integrator: str | None = None
    events: Mapping[str, FieldEvent] = field(default_factory=dict)
    width: int | None = None
    keep: Callable[[ResultMaker], None] = lambda make: None

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
        return TimeIntegrator(
            self.tuning.time_share * tol,
            self.tuning.steps,
            self.time_scale.longest_step,
            self.integrator or "RadauIIA",
            events,
            notice,
            first_step_factor=1.0 if tol >= self.tol else 1.0 / self.tuning.tolerance_factor,
            amplitude=amplitude,
        )


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
        values = solution(np.column_stack([np.repeat(times, each), np.tile(points, (count, 1))]))
        sizes = np.sqrt(np.mean(values.reshape(count, each, -1) ** 2, axis=1))
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


class Discretisation(Protocol):
    """How an iteration discretises space: random features, tensor products of them, or Fourier modes."""

    tolerances: tuple[float, ...]
    """The tolerance of each iteration that may be needed."""

    def run(self, number: int, tol: float) -> SpaceTimeSolution:
        """The solution of one iteration, counted from 1, over the whole time."""
        ...

    def adapt(self, solution: SpaceTimeSolution, failed: bool) -> bool:
        """Adapt the basis to a solution, for the next iteration; False where no further iteration can help.

        failed : whether the iteration had the tolerance wanted and did not agree with the one before
        """
        ...


def run_iterations(kind: Discretisation, settings: IterationSettings) -> LinesResult:
    """Iterations until two with the wanted tolerance agree, or until something else ends them."""
    iterations: list[LinesIteration] = []
    solutions: list[SpaceTimeSolution] = []
    changes: list[float] = []
    samples: SolutionSamples | None = None
    status, detail = Status.DISAGREE, ""
    for number, tol in enumerate(kind.tolerances, start=1):
        begin = perf_counter()
        solution = kind.run(number, tol)
        if not solution.segments[0].trajectory.steps:
            if not solutions:
                raise InputError(f"no step in time leads away from the initial values: {solution.trajectory.detail}")
            status, detail = solution.trajectory.status or Status.INTEGRATOR, solution.trajectory.detail
            break
        if not solutions:  # whatever comes next, there is something to give back
            settings.keep(_result([solution], [_record(tol, solution, np.inf, perf_counter() - begin)], settings))
        before, samples = samples, SolutionSamples(solution)
        change = np.inf if before is None else samples.difference(before)
        solutions.append(solution)
        iterations.append(_record(tol, solution, change, perf_counter() - begin))
        settings.keep(_result(solutions, iterations, settings))
        stopped = solution.trajectory.status
        finished = stopped is None or not stopped.by_caller  # a part of the time says nothing about the whole
        told = change if finished else None
        settings.monitor.tell(number, iterations[-1].steps, width=iterations[-1].width, estimate=told)
        comparable = len(iterations) > 1 and iterations[-2].tolerance <= settings.tol
        ended = solution.trajectory.status
        if ended is not None and ended.by_caller:
            status, detail = ended, solution.trajectory.detail
            break
        if comparable:
            changes.append(change)
            if solution.trajectory.broken:
                status, detail = ended or Status.INTEGRATOR, solution.trajectory.detail
                break
            if change <= settings.tol:
                status, detail = ended or Status.CONVERGED, solution.trajectory.detail
                break
            if _stalled(changes, settings.tuning):
                status = Status.STALLED
                break
        if not kind.adapt(solution, comparable) and len(iterations) > 1:
            status, detail = (
                (ended, solution.trajectory.detail) if ended and solution.trajectory.broken else (Status.STALLED, "")
            )
            break
        if settings.monitor.exhausted:
            status = settings.monitor.ending
            break
    return _result(solutions, iterations, settings)(status, detail)


def _result(
    solutions: Sequence[SpaceTimeSolution], iterations: Sequence[LinesIteration], settings: IterationSettings
) -> ResultMaker:
    """The result of iterations that end with a status and a reason."""
    solutions, iterations = tuple(solutions), tuple(iterations)

    def make(status: Status, detail: str) -> LinesResult:
        best = _best(solutions)
        last = iterations[-1] if best is solutions[-1] else iterations[-2]
        estimate = settings.tuning.error_share * last.difference
        if best is not solutions[-1]:
            detail = f"{status} in iteration {len(iterations)}; the one before is the answer"
        if best.whole and estimate <= settings.tol and not status.converged:  # the last iteration is accurate enough
            status, detail = Status.CONVERGED, ""
        return LinesResult(best, iterations, estimate, status, detail)

    return make


def _best(solutions: Sequence[SpaceTimeSolution]) -> SpaceTimeSolution:
    """The last solution, or the one before where the last was cut short."""
    cut = len(solutions) > 1 and solutions[-1].end < solutions[-2].end
    ended = solutions[-1].trajectory.status
    return solutions[-2] if cut and ended is not None and ended.by_caller else solutions[-1]


def _stalled(changes: list[float], tuning: LinesTuning) -> bool:
    """Whether the difference of successive iterations hardly fell any more, as with kinks and jumps."""
    recent = changes[-tuning.stall_iterations - 1 :]
    return len(recent) > tuning.stall_iterations and all(b > tuning.stall_ratio * a for a, b in pairwise(recent))


def _record(tol: float, solution: SpaceTimeSolution, change: float, seconds: float) -> LinesIteration:
    system, steps = solution.segments[-1].system, sum(len(segment.trajectory.steps) for segment in solution.segments)
    return LinesIteration(tol, system.columns, system.rank, len(system.nodes), steps, change, seconds)


# ------------------------------------------------------------------------------------------------ windows in time

DiscretisationMaker = Callable[[Evolution, IterationSettings], Discretisation]


def by_windows(evolution: Evolution, settings: IterationSettings, make: DiscretisationMaker, count: int) -> LinesResult:
    """Iterations on each of ``count`` equal windows in turn; it ends early where a window does not reach its end.

    A window starts from the solution of the one before, projected on its own features. Two iterations sample different
    features and start from different projections of the same values, so that their difference contains the error of the
    projection too.
    """
    segments: list[TimeSegment] = []
    iterations: list[LinesIteration] = []
    estimate, status, detail = 0.0, Status.CONVERGED, ""
    before: SpaceTimeSolution | None = None

    def joined(window: LinesResult) -> LinesResult:
        """The windows so far and one more."""
        whole = SpaceTimeSolution(evolution, (*segments, *window.best.segments))
        done, total = (*iterations, *window.iterations), estimate + window.estimate
        decides = not window.status.converged or status.converged
        ending, why = (window.status, window.detail) if decides else (status, detail)
        # disagreement within a window counts only if the sum of all estimates is too large
        if whole.whole and total <= settings.tol and not ending.by_caller:
            ending, why = Status.CONVERGED, ""
        return LinesResult(whole, done, total, ending, why)

    shared = replace(
        settings, tol=settings.tol / count, keep=lambda make: settings.keep(lambda *end: joined(make(*end)))
    )
    result: LinesResult | None = None
    for start, end in pairwise(np.linspace(*evolution.domain.time, count + 1).tolist()):
        form = evolution_form(restrict_time(evolution.problem, (start, end), before))
        window = run_iterations(make(form, shared), shared)
        result, before = joined(window), window.best
        segments += before.segments
        iterations += window.iterations
        estimate, status, detail = result.estimate, result.status, result.detail
        if not before.whole or window.status.by_caller:
            break
    assert result is not None
    return result


def solve_in_time(
    evolution: Evolution, settings: IterationSettings, make: DiscretisationMaker, windows: int | None
) -> LinesResult:
    """One basis for all times, or as many windows as given; by default windows only where one basis is too narrow."""
    if windows is not None and windows > 1:
        return by_windows(evolution, settings, make, windows)
    best = run_iterations(make(evolution, settings), settings)
    for count in settings.tuning.window_counts if windows is None else ():
        if not _width_exhausted(best, settings):
            break
        best = better(best, by_windows(evolution, keeping(best, settings), make, count))
    return best


def better(one: LinesResult, other: LinesResult) -> LinesResult:
    """The result that reaches the last time, and of two that do the one with the smaller estimate."""
    return min(one, other, key=lambda result: (not result.best.whole, result.estimate))


def keeping(best: LinesResult, settings: IterationSettings) -> IterationSettings:
    """Settings for another attempt, which replaces this result only by a better one."""
    return replace(settings, keep=lambda make: settings.keep(lambda *end: better(best, make(*end))))


def _width_exhausted(result: LinesResult, settings: IterationSettings) -> bool:
    """Whether an iteration used the widest basis allowed, and the iterations did not agree."""
    widest = settings.tuning.most_width[result.best.evolution.domain.space.dim - 1]
    full = any(one.width >= widest for one in result.iterations)
    return settings.width is None and full and result.status in (Status.DISAGREE, Status.STALLED)
