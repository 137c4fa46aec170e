"""The method of lines in the adaptive loop: iterations over the whole time, and windows in time with their own.

Every iteration estimates the length scales of its solution, and the next one adapts its basis to them. The difference
of the last two iterations, which sample different features (or take more modes) and integrate with different
tolerances, is the error estimate. Both could miss the initial values between their nodes in the same way: these are
compared with the data themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import MethodError
from rannpde.pde.adaptivity.loop import ERROR_SHARE, AdaptiveLoop, AdaptiveRecord, Inadmissible
from rannpde.pde.adaptivity.result import Iteration
from rannpde.pde.discontinuities import error_over_difference, initial_smoothness, without_smoothing
from rannpde.pde.lines.comparison import SolutionSamples, rounding_error
from rannpde.pde.lines.settings import IterationSettings, LinesResult
from rannpde.pde.lines.solution import SpaceTimeSolution, TimeSegment
from rannpde.pde.monitor import Status
from rannpde.pde.problem.evolution import Evolution, evolution_form
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.tolerance import GAIN, MUCH_SMALLER


class Discretisation(Protocol):
    """How an iteration discretises space: random features, tensor products of them, or Fourier modes."""

    tolerances: tuple[float, ...]
    """The tolerance of each iteration that may be needed."""
    settings: IterationSettings
    """Those of the next iteration."""

    def run(self, number: int, tol: float) -> SpaceTimeSolution:
        """The solution of one iteration, counted from 1, over the whole time."""
        ...

    def adapt(self, solution: SpaceTimeSolution, failed: bool) -> bool:
        """Adapt the basis to a solution, for the next iteration; False where no further iteration can help.

        failed : whether the iteration had the tolerance wanted and did not agree with the one before
        """
        ...


class LinesIterations:
    """A discretisation in space in the adaptive loop; the resolution is the number of the iteration, from 1.

    Two iterations are comparable where both had the tolerance wanted: only then does their difference decide. Of many
    such pairs one agrees by chance: where differences did not fall before, the geometric mean of the last two decides.

    The difference of two iterations is no error estimate where perturbations of that size grow to the size of the
    solution: then both may have left it for the same branch. The first iterations measure the growth, and those that
    follow a pair that was rejected.

    Tolerances fall from iteration to iteration so that errors in time show in the difference. The third comparable
    iteration measures the error in time; where it is much smaller than the difference, which then is that of space, the
    tolerance in time returns to the one before.
    """

    def __init__(self, kind: Discretisation, settings: IterationSettings) -> None:
        self.kind, self.settings = kind, settings
        self.record: AdaptiveRecord[SpaceTimeSolution, Iteration] = AdaptiveRecord()
        self.samples: SolutionSamples | None = None
        self.first: SpaceTimeSolution | None = None
        self.difference = self.expected = np.inf
        self.differences: list[float] = []  # of comparable iterations
        self.share = ERROR_SHARE
        self.growth = 1.0  # of perturbations, where it was measured last
        self.time_error = np.inf  # over the tolerance in time, where it was measured
        self.time_tolerances: list[float] = []

    def run(self) -> LinesResult:
        """Iterations until two with the wanted tolerance agree, or until something else ends them."""
        settings = self.settings
        loop = AdaptiveLoop(most=len(self.kind.tolerances))
        outcome = loop.run(
            self, 1, settings.tol, lambda: settings.monitor.ended, self._described, self._verdict, self.record,
            self._better, self._report,
        )  # fmt: skip
        assert self.record.last is not None
        trajectory, status, detail = self.record.last.trajectory, outcome.status, outcome.detail
        if status is Status.STALLED:  # where an integration broke off, the last iteration has the reason
            used = len(outcome.iterations) == len(self.kind.tolerances)
            status, detail = (Status.DISAGREE if used else status), ""
            if trajectory.broken and trajectory.status is not None:
                status, detail = trajectory.status, trajectory.detail
        elif status is trajectory.status:
            detail = trajectory.detail
        if status in (Status.STALLED, Status.DISAGREE) and self._undetermined:
            status = Status.UNDETERMINED
            detail = f"perturbations as small as the difference of two iterations grow {self.growth:.1g}-fold"
        problem = self.record.last.evolution.problem
        if status is Status.BLOW_UP and problem.linear and without_smoothing(problem):  # another method may be stable
            status = Status.INTEGRATOR
            detail = f"functions of the basis grow without bound by t = {trajectory.end:.6g}, which no solution does"
        return self.result(status, detail)

    def solve(self, resolution: int) -> SpaceTimeSolution:
        """SOLVE: one iteration over the whole time."""
        tol = self.kind.tolerances[resolution - 1]
        in_time = self._time_tolerance(tol)
        self.kind.settings = replace(
            self.kind.settings, time_tolerance=in_time, defect=len(self.differences) == 1,
            growth=resolution == 1 or tol > self.settings.tol or self._undetermined,
        )  # fmt: skip
        solution = self.kind.run(resolution, tol)
        self.time_tolerances.append(in_time)
        measured = [one.trajectory.growth for one in solution.segments if one.trajectory.growth is not None]
        self.growth = max(measured, default=self.growth)
        error = error_in_time(solution)
        self.time_error = self.time_error if error is None else error / in_time
        trajectory = solution.trajectory
        if not solution.segments[0].trajectory.steps:
            if resolution == 1:
                raise MethodError(f"no step in time leads away from the initial values: {trajectory.detail}")
            raise Inadmissible(trajectory.status or Status.INTEGRATOR, trajectory.detail)
        if resolution == 1:  # from here on there is a result to return
            self.first = solution
            self.settings.keep(self.result)
        return solution

    def _time_tolerance(self, tol: float) -> float:
        """The tolerance in time of the next iteration, which has ``tol`` in space."""
        if len(self.differences) < 2:
            return tol
        if self.time_error * self.time_tolerances[-1] <= MUCH_SMALLER * self.difference:
            return self.time_tolerances[-2]
        return min(self.time_tolerances) / self.settings.tuning.tolerance_factor

    @property
    def _undetermined(self) -> bool:
        """Whether perturbations grow by an order of magnitude, and those as large as the difference of the last two
        iterations to the size of the solution."""
        return MUCH_SMALLER * self.growth > 1.0 and bool(np.inf > self.growth * self.difference >= 1.0)

    def estimate(self, before: SpaceTimeSolution | None, now: SpaceTimeSolution) -> float:
        """ESTIMATE: a share of the difference of two iterations, at jumps that are carried along a multiple; at least
        the errors that all iterations share: rounding, and that in time where it was measured."""
        ended, best = now.trajectory.status, self.record.best
        cut = ended is not None and ended.by_caller
        if cut and best is not None and now.end < best.end and np.isfinite(self.record.best_estimate):
            self.difference = np.inf  # the previous solution is the result, and the time is used up
            return np.inf
        earlier, self.samples = self.samples, SolutionSamples(now, cut)
        self.difference = np.inf if earlier is None else self.samples.difference(earlier)
        self.expected = self.difference
        if len(self.differences) > 1 and self.differences[-1] > GAIN * self.differences[-2]:
            self.expected = max(self.difference, float(np.sqrt(self.difference * self.differences[-1])))
        if (
            len(self.record.iterations) > 0
            and self.kind.tolerances[len(self.record.iterations) - 1] <= self.settings.tol
        ):
            self.differences.append(self.difference)
        if before is None and without_smoothing(now.evolution.problem):
            first, second = self.kind.tolerances[-2:] if len(self.kind.tolerances) > 1 else (2.0, 1.0)
            self.share = max(ERROR_SHARE, error_over_difference(first / second, initial_smoothness(now.evolution)))
        if earlier is None:
            return np.inf
        if self._undetermined:
            return self.growth * self.difference
        shared = max(rounding_error(now, self.settings.step_limit), error_in_time(now) or 0.0)
        return max(self.share * self.expected, shared)

    def indicators(self, now: SpaceTimeSolution) -> Array:
        """MARK: the basis as a whole."""
        return np.ones(1)

    def refine(self, resolution: int, now: SpaceTimeSolution, marked: Array) -> int | None:
        """REFINE: adapt the basis to a solution; None where no further iteration can help."""
        helps = self.kind.adapt(now, self._comparable)
        return resolution + 1 if helps or resolution == 1 else None

    @property
    def _comparable(self) -> bool:
        number = len(self.record.iterations)
        return number > 1 and self.kind.tolerances[number - 2] <= self.settings.tol

    def _described(self, now: SpaceTimeSolution, estimate: float, seconds: float) -> Iteration:
        return self._iteration(len(self.record.iterations) + 1, now, self.difference, seconds)

    def _report(self, now: SpaceTimeSolution, estimate: float) -> None:
        number, stopped = len(self.record.iterations), now.trajectory.status
        reported = (
            None if stopped is not None and stopped.by_caller else self.difference
        )  # the difference over a part is not that over the whole
        last = self.record.iterations[-1]
        self.settings.monitor.tell(number, last.steps, width=last.width, estimate=reported)

    def _iteration(self, number: int, now: SpaceTimeSolution, difference: float, seconds: float) -> Iteration:
        system, steps = now.segments[-1].system, sum(len(segment.trajectory.steps) for segment in now.segments)
        return Iteration(
            system.columns, steps, difference, seconds, rank=system.rank, nodes=len(system.nodes),
            tolerance=self.kind.tolerances[number - 1],
        )  # fmt: skip

    def _verdict(self, now: SpaceTimeSolution, estimate: float) -> Status | None:
        ended = now.trajectory.status
        if ended is not None and ended.by_caller:
            return ended
        if self._comparable and now.trajectory.broken:
            return ended or Status.INTEGRATOR
        return (
            (ended or Status.CONVERGED)
            if self._comparable and max(self.expected, estimate) <= self.settings.tol
            else None
        )

    def _better(self, now: SpaceTimeSolution, estimate: float) -> bool:
        """The last solution, unless it was cut short."""
        best, ended = self.record.best, now.trajectory.status
        cut = best is not None and now.end < best.end
        return not (cut and ended is not None and ended.by_caller)

    def result(self, status: Status, detail: str) -> LinesResult:
        """The result of iterations that end with a status and a reason."""
        record = self.record
        best = record.best if record.best is not None else self.first
        assert best is not None
        if record.iterations and best is not record.last:
            detail = f"{status} in iteration {len(record.iterations)}; the one before is the answer"
        # the last iteration is accurate enough
        if best.whole and record.best_estimate <= self.settings.tol and not status.converged:
            status, detail = Status.CONVERGED, ""
        iterations = tuple(record.iterations) or (self._iteration(1, best, np.inf, 0.0),)
        return LinesResult(best, iterations, record.best_estimate, status, detail)


def error_in_time(solution: SpaceTimeSolution) -> float | None:
    """The error in time that the integration of a solution measured; None where it did not, or the basis changed."""
    return solution.trajectory.error if len(solution.segments) == 1 else None


# ------------------------------------------------------------------------------------------------ windows in time

DiscretisationMaker = Callable[[Evolution, IterationSettings], Discretisation]


def by_windows(evolution: Evolution, settings: IterationSettings, make: DiscretisationMaker, count: int) -> LinesResult:
    """Iterations on each of ``count`` equal windows in turn; it ends early where a window does not reach its end.

    A window starts from the solution of the one before, projected on its own features. Two iterations sample different
    features and start from different projections of the same values, so that their difference contains the error of the
    projection too.
    """
    segments: list[TimeSegment] = []
    iterations: list[Iteration] = []
    estimate, status, detail = 0.0, Status.CONVERGED, ""
    before: SpaceTimeSolution | None = None

    def joined(window: LinesResult) -> LinesResult:
        """The result of the windows so far and one more."""
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
        window = LinesIterations(make(form, shared), shared).run()
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
    best = LinesIterations(make(evolution, settings), settings).run()
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
