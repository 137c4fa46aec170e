"""Iterations over the whole time interval, until two of them agree; and windows in time, each with iterations of its
own.

Every iteration looks how fine its solution is and makes the next one fit. The difference of the last two iterations,
which draw different features (or take more modes) and march with different tolerances, is the error estimate. What
both could miss in the same way, the initial values between their nodes, is compared with the data itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.lines.evolved import Evolved, ProjectedSystem, Stretch, fields_at
from rannpde.pde.lines.march import Event, March
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.problem.data import Clock, source_size
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.residual import field_sizes, root_mean_square

LIKE_THE_GAP = 0.1
"""Two iterations that differ at the first time by this share of their gap to the data show what becomes of such a
gap."""

SpaceFunction = Callable[[Array], Array]
FieldEvent = Callable[[float, SpaceFunction], float]


@dataclass(frozen=True)
class LinesIteration:
    """One iteration: what it used, and how far it lies from the one before (relative L², the largest over the
    fields)."""

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


@dataclass(frozen=True, eq=False)
class Outcome:
    """The solution, the story of the iterations, the estimated relative L² error, and how it ended."""

    solution: Evolved
    iterations: tuple[LinesIteration, ...]
    estimate: float
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class Setting:
    """What all iterations of a solve share.

    tol : wanted relative L² error over space-time
    events : name → function of (time, u) whose zeros are recorded, u being a function of points (M, d) of space with
        values (M, fields); one with attribute ``terminal`` ends the march
    width : features of every iteration, or None to choose them from tol
    integrator : None for the one that the discretisation does best with
    """

    tol: float
    tuning: LinesTuning
    monitor: Monitor
    clock: Clock
    integrator: str | None = None
    events: Mapping[str, FieldEvent] = field(default_factory=dict)
    width: int | None = None

    def staged(self) -> tuple[float, ...]:
        """Tolerances of the iterations: loose, medium, the wanted one; then ever tighter, so that errors in time
        show."""
        early = [t for t in self.tuning.early if t > 3 * self.tol]
        after = range(self.tuning.most_passes - len(early))
        return (*early, *(self.tol / self.tuning.tighter**k for k in after))

    def march(self, tol: float, number: int, system: ProjectedSystem, grown: Grown | None = None) -> March:
        """The march of one iteration. Its dense output is held a little below the tolerance of the iteration."""

        def notice(steps: int, time: float) -> Status | None:
            self.monitor.tell(number, steps, time=time, width=system.columns)
            return Status.BUDGET if self.monitor.exhausted else None

        events = {name: _on_states(event, system) for name, event in self.events.items()}
        caution = 1.0 if tol >= self.tol else 1.0 / self.tuning.tighter
        share = self.tuning.march_share * tol
        return March(
            share,
            self.tuning,
            self.clock,
            self.integrator or "RadauIIA",
            events,
            notice,
            caution,
            grown,
            lambda: self.monitor.exhausted,
        )


def first_scales(evolution: Evolution) -> dict[Component, float]:
    """Root mean squares of the initial values; of fields that begin at 0, what the sources make of them in the time."""
    start, end = evolution.domain.time
    points = evolution.domain.space.sample(2000, rng=0)
    found: dict[Component, float] = {}
    for component in evolution.components:
        begins = component in evolution.initial
        size = root_mean_square(evolution.initial_values(component, points)) if begins else 0.0
        before = found.get(Component(component.field, component.level - 1))
        if before is not None:
            size = max(size, before / (end - start))
        found[component] = size or (end - start) * source_size(evolution, component.field, points) or 1.0
    return found


def with_speeds(scales: Mapping[Component, float], pulls: Mapping[Component, float]) -> dict[Component, float]:
    """Scales for the first iteration: a field that begins at rest will move as fast as its acceleration and size
    allow."""
    found = dict(scales)
    for component, pull in pulls.items():
        if component.level:
            speed = float(np.sqrt(pull * scales[Component(component.field, 0)]))
            found[component] = max(found[component], speed if np.isfinite(speed) else 0.0)
    return found


@dataclass(frozen=True, eq=False)
class Grown:
    """How large a solution has been so far, as a share of its largest size: what is small and grows has small errors.

    times (K,), shares (K,) never decreasing, at most 1
    """

    times: Array
    shares: Array

    @classmethod
    def of(cls, solution: Evolved, tuning: LinesTuning) -> Grown:
        """Of the field that grows most."""
        evolution, (count, each) = solution.evolution, tuning.growth_looks
        times = np.linspace(solution.start, solution.path.reliable, count)
        places = evolution.domain.space.sample(each, rng=5)
        values = solution(np.column_stack([np.repeat(times, each), np.tile(places, (count, 1))]))
        sizes = np.sqrt(np.mean(values.reshape(count, each, -1) ** 2, axis=1))
        so_far = np.maximum.accumulate(sizes, axis=0)
        shares = (so_far / np.maximum(so_far[-1], 1e-300)).min(axis=1)
        return cls(times, np.clip(shares, tuning.least_share, 1.0))

    def __call__(self, time: float) -> float:
        return float(np.interp(time, self.times, self.shares))


def _on_states(event: FieldEvent, system: ProjectedSystem) -> Event:
    def on_state(time: float, state: Array) -> float:
        return float(event(time, lambda points: fields_at(system, time, state, points)))

    if getattr(event, "terminal", False):
        on_state.terminal = True  # type: ignore[attr-defined]
    return on_state


class Discretisation(Protocol):
    """How an iteration is made: random features, products of them, or Fourier modes."""

    tolerances: tuple[float, ...]
    """Of the iterations, as many as there may be."""

    def run(self, number: int, tol: float) -> Evolved:
        """The march of one iteration, counted from 1, over the whole time."""
        ...

    def learn(self, solution: Evolved, failed: bool) -> bool:
        """Look at a solution for the next iteration; ``failed`` if it should have been the last. False: none can
        help."""
        ...


def run_passes(kind: Discretisation, setting: Setting) -> Outcome:
    """One iteration after the other until two with the wanted tolerance agree, or something ends them."""
    iterations: list[LinesIteration] = []
    solutions: list[Evolved] = []
    changes: list[float] = []
    status, detail = Status.DISAGREE, ""
    for number, tol in enumerate(kind.tolerances, start=1):
        begin = perf_counter()
        try:
            solution = kind.run(number, tol)
            if not solution.stretches[0].path.steps:
                if solution.path.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                if not solutions:
                    raise InputError(f"no step in time leads away from the initial values: {solution.path.detail}")
                status, detail = solution.path.status or Status.INTEGRATOR, solution.path.detail
                break
            change = _change(solutions[-1], solution) if solutions else np.inf
            told = _record(tol, solution, change, perf_counter() - begin)
            setting.monitor.tell(number, told.steps, width=told.width, estimate=change)
        except KeyboardInterrupt:
            if not solutions:
                raise
            status = Status.INTERRUPTED
            break
        solutions.append(solution)
        iterations.append(told)
        comparable = len(iterations) > 1 and iterations[-2].tolerance <= setting.tol
        ended = solution.path.status
        if ended is not None and ended.by_caller:
            status, detail = ended, solution.path.detail
            break
        if comparable:
            changes.append(change)
            if solution.path.broken:
                status, detail = ended or Status.INTEGRATOR, solution.path.detail
                break
            if change <= setting.tol:
                status, detail = ended or Status.CONVERGED, solution.path.detail
                break
            if _stalled(changes, setting.tuning):
                status = Status.STALLED
                break
        if not kind.learn(solution, comparable) and len(iterations) > 1:
            status, detail = (ended, solution.path.detail) if ended and solution.path.broken else (Status.STALLED, "")
            break
        if setting.monitor.exhausted:
            status = Status.BUDGET
            break
    best = _best(solutions)
    last = iterations[-1] if best is solutions[-1] else iterations[-2]
    estimate = setting.tuning.estimate_share * last.difference
    if best is not solutions[-1]:
        detail = f"{status} in iteration {len(iterations)}; the one before is the answer"
    if (
        best.whole and estimate <= setting.tol and not status.converged
    ):  # no further iteration, but what there is will do
        status, detail = Status.CONVERGED, ""
    return Outcome(best, tuple(iterations), estimate, status, detail)


def _best(solutions: list[Evolved]) -> Evolved:
    """The last one; the one before where the last was cut short."""
    cut = len(solutions) > 1 and solutions[-1].end < solutions[-2].end
    ended = solutions[-1].path.status
    return solutions[-2] if cut and ended is not None and ended.by_caller else solutions[-1]


def _stalled(changes: list[float], tuning: LinesTuning) -> bool:
    """Whether the last iterations hardly came closer to each other: kinks and jumps never do."""
    recent = changes[-tuning.patience - 1 :]
    return len(recent) > tuning.patience and all(b > tuning.gain * a for a, b in pairwise(recent))


def _record(tol: float, solution: Evolved, change: float, seconds: float) -> LinesIteration:
    system, steps = solution.stretches[-1].system, sum(len(stretch.path.steps) for stretch in solution.stretches)
    return LinesIteration(tol, system.columns, system.rank, len(system.nodes), steps, change, seconds)


def check_points(evolution: Evolution, end: float, count: int = 2000) -> Array:
    """Fresh points in space-time up to the time reached, where iterations are compared."""
    points = evolution.domain.sample(count, rng=20_071)
    if evolution.waves:  # modes are summed once for all at a time
        points[:, 0] = np.resize(points[: count // 10, 0], count)
    start = evolution.domain.time[0]
    points[:, 0] = start + (points[:, 0] - start) * (end - start) / (evolution.domain.time[1] - start)
    return points


def _change(before: Evolved, after: Evolved) -> float:
    """How far two iterations lie apart, or what the gap at the first time means for all times, whichever is more."""
    if before.path.broken and not after.path.broken:
        return np.inf  # a march that was cut short says nothing of what came later
    apart = _distance(before, after, check_points(after.evolution, min(before.path.reliable, after.path.reliable)))
    return max(apart, _lasting(initial_gap(after), apart, _apart_at_first(before, after)))


def _lasting(gap: float, apart: float, apart_at_first: float) -> float:
    """How much of a gap at the first time lasts: as much as of what iterations differ by there, if that is like the
    gap.

    Diffusion forgets what a jump leaves between two features; transport keeps it.
    """
    alike = apart_at_first > LIKE_THE_GAP * gap
    return gap * min(1.0, apart / apart_at_first) if alike else gap


def _apart_at_first(before: Evolved, after: Evolved, count: int = 4000) -> float:
    """How far two iterations lie apart at the first time."""
    places = after.evolution.domain.space.sample(count, rng=31)
    return _distance(before, after, np.column_stack([np.full(count, after.start), places]))


def _distance(before: Evolved, after: Evolved, points: Array) -> float:
    """The relative l² distance at points, the largest over the fields; one that is rounding counts by the largest."""
    values = after(points)
    gaps = np.linalg.norm(before(points) - values, axis=0)
    return float((gaps / field_sizes(np.linalg.norm(values, axis=0))).max())


def initial_gap(solution: Evolved, count: int = 4000) -> float:
    """The relative l² distance of the solution at the first time from its initial values, on fresh points of space."""
    evolution = solution.evolution
    places = evolution.domain.space.sample(count, rng=31)
    points = np.column_stack([np.full(count, solution.start), places])
    values = solution(points)
    later = solution(check_points(evolution, solution.path.reliable))
    gaps, sizes = [], []
    for k, (name, order) in enumerate(evolution.orders.items()):
        if order == 0 or Component(name, 0) not in evolution.initial:  # a pressure is what it must be at every time
            continue
        wanted = evolution.initial_values(Component(name, 0), places)
        sizes.append(max(root_mean_square(wanted), root_mean_square(later[:, k])))
        gaps.append(root_mean_square(values[:, k] - wanted))
    return float((np.array(gaps) / field_sizes(np.array(sizes))).max())


# ------------------------------------------------------------------------------------------------ windows in time

Maker = Callable[[Evolution, Setting], Discretisation]


def by_windows(evolution: Evolution, setting: Setting, make: Maker, count: int) -> Outcome:
    """Iterations on each of ``count`` equal windows, one after the other; ends early where one does not reach its end.

    A window starts from the solution of the one before, projected on its own features. Two iterations draw different
    ones and start from different projections of the same values, so their difference holds the error of the transfer
    too.
    """
    stretches: list[Stretch] = []
    iterations: list[LinesIteration] = []
    estimate, status, detail = 0.0, Status.CONVERGED, ""
    before: Evolved | None = None
    shared = replace(setting, tol=setting.tol / count)
    for start, end in pairwise(np.linspace(*evolution.domain.time, count + 1).tolist()):
        form = evolution_form(restrict_time(evolution.problem, (start, end), before))
        found = run_passes(make(form, shared), shared)
        before = found.solution
        stretches += before.stretches
        iterations += found.iterations
        estimate += found.estimate
        if not found.status.converged or status.converged:
            status, detail = found.status, found.detail
        if not before.whole or found.status.by_caller:
            break
    solution = Evolved(evolution, tuple(stretches))
    # disagreement within a window counts only if the sum of all estimates is too large
    if solution.whole and estimate <= setting.tol and not status.by_caller:
        status, detail = Status.CONVERGED, ""
    return Outcome(solution, tuple(iterations), estimate, status, detail)


def solve_in_time(evolution: Evolution, setting: Setting, make: Maker, windows: int | None) -> Outcome:
    """One basis for all times; where that is too narrow for the solution, more windows. Or as many as given."""
    if windows is not None and windows > 1:
        return by_windows(evolution, setting, make, windows)
    best = run_passes(make(evolution, setting), setting)
    for count in setting.tuning.window_counts if windows is None else ():
        if not _too_wide(best, setting):
            break
        best = min(best, by_windows(evolution, setting, make, count), key=lambda one: one.estimate)
    return best


def _too_wide(outcome: Outcome, setting: Setting) -> bool:
    """Whether an iteration filled the widest static basis, and the iterations did not agree."""
    widest = setting.tuning.widest[outcome.solution.evolution.domain.space.dim - 1]
    full = any(one.width >= widest for one in outcome.iterations)
    return setting.width is None and full and outcome.status in (Status.DISAGREE, Status.STALLED)
