"""rp.continuation: branches of stationary solutions over a parameter, with folds and branch points to a tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, is_real, positive_number, require, whole_number
from rannpde.pde.budget import Budget
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import ConvergenceWarning
from rannpde.pde.spectrum.continuation.collocation import StationarySystem, guessed, with_parameter
from rannpde.pde.spectrum.continuation.follow import (
    LEAST_STEP,
    LOCATED,
    BranchState,
    Follower,
    FollowSettings,
    NoConvergence,
)
from rannpde.pde.spectrum.continuation.result import Continuation, SolutionBranch, SpecialPoint, extreme_of
from rannpde.pde.spectrum.stability import named_fields, rates_of_change
from rannpde.pde.tolerance import MUCH_SMALLER, NEARBY, PILOT_TOLERANCE, SAME_SOLUTION
from rannpde.rounding import ROOT_ROUNDED
from rannpde.threads import one_thread

FIRST_POINTS, MORE_POINTS, FINEST_GRID = (40, 16), (12, 6), (160, 40)
"""Points along an axis at first, more on each finer grid, and at most, by dimension."""
MOST_FOLLOWED = (96, 22)
"""Points along an axis at most on which whole branches are followed, by dimension: hundreds of factorisations."""
RATES_RESOLVED = MUCH_SMALLER * PILOT_TOLERANCE
"""Last Chebyshev coefficients over the largest at which a grid is fine enough for stability. PILOT_TOLERANCE suffices
for the points of a diagram, but rates near zero, such as that of the translation of a peak, are wrong on such grids."""
SHORTEST_SEPARATING_STEP = FollowSettings.first / 2
"""Scaled step below which no shorter one is tried to separate events: two rates that change sign are then a complex
pair, and several branches cross in one point."""
TOO_STEEP = "the grid does not resolve what follows"
"""Why a branch ends whose solutions become too steep."""


def continuation(
    problem: Problem,
    parameter: str,
    start: float,
    stop: float,
    *,
    guess: Any = None,
    branches: int = 0,
    algebraic: tuple[str, ...] = (),
    tol: float = 1e-8,
    seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    resume: Continuation | None = None,
) -> Continuation:
    """Follow stationary solutions from one value of a parameter towards another, past folds.

    problem : on an interval or a box of two coordinates, of second order, one condition for each field on every side
    parameter : the name of one of its parameters; start, stop : ends of the range, in which branches are followed
    guess : guess of the solution at the start: a solution, a function of points (M, n), or field → number or function;
        None begins from zero
    branches : how often the branches that cross those found so far are followed too; 0 follows the first branch only
    algebraic : fields without a rate of change, whose equation is a constraint, as in ``solution.stability``
    tol : relative error wanted of folds, branch points and Hopf points, by two grids
    seconds, progress : as in ``solve``
    resume : an earlier continuation of this problem, whose first branch is followed on from its last point
    """
    stated = with_parameter(problem, parameter)
    for name, value in (("start", start), ("stop", stop)):
        require(is_real(value) and bool(np.isfinite(value)), name, value, "a finite number")
    require(start != stop, "stop", stop, f"another number than start, {start}")
    whole_number("branches", branches)
    tol = max(positive_number("tol", tol), 1e-12)
    require(tol < 1, "tol", tol, "below 1")
    require(progress is None or callable(progress), "progress", progress, "a function of a Progress, or None")
    same = resume is None or (isinstance(resume, Continuation) and resume.parameter == parameter)
    require(same, "resume", resume, "an earlier continuation of this problem in the same parameter")
    require(resume is None or guess is None, "guess", guess, "left out beside resume", "it begins where that one ended")
    monitor = Monitor(progress, Budget(None if seconds is None else positive_number("seconds", seconds)))
    with one_thread():
        run = _Run(
            problem, stated, parameter, (float(start), float(stop)), named_fields(problem, algebraic), tol, monitor
        )
        result = run.run(guess, branches) if resume is None else run.resumed(resume, branches)
    if not result.converged:
        warnings.warn(f"the continuation did not converge: {result.reason}", ConvergenceWarning, stacklevel=2)
    return result


@dataclass(frozen=True, eq=False)
class _Step:
    """A state, its arclength from the one before, whether a longer step may be tried, and the end of the range if the
    state lies there."""

    state: BranchState
    length: float
    easy: bool = False
    end: float | None = None


class _Run:
    """One continuation: a grid that resolves the branch, then its special points on finer grids."""

    def __init__(
        self,
        problem: Problem,
        stated: Problem,
        parameter: str,
        ends: tuple[float, float],
        algebraic: tuple[str, ...],
        tol: float,
        monitor: Monitor,
    ) -> None:
        self.problem, self.stated, self.parameter = problem, stated, parameter
        (self.start, self.stop), self.algebraic, self.tol, self.monitor = ends, algebraic, tol, monitor
        self.axis = problem.domain.dim - 1
        self.passed = 0

    def run(self, guess: Any, levels: int) -> Continuation:
        count = FIRST_POINTS[self.axis]
        while True:
            self.follower = Follower(StationarySystem(self.stated, self.parameter, count), abs(self.stop - self.start))
            first = self._first(guess)
            branch, crossings = self._branch(first)
            finer = count + MORE_POINTS[self.axis]
            if branch.ended != TOO_STEEP or finer > MOST_FOLLOWED[self.axis] or self.monitor.exhausted:
                break
            count = finer
        return self._with_crossings(branch, crossings, levels, count)

    def resumed(self, earlier: Continuation, levels: int) -> Continuation:
        """Follow the first branch of an earlier continuation from its last point, and keep all earlier branches."""
        known = earlier.branches[0]
        self.follower = Follower(
            StationarySystem(self.stated, self.parameter, earlier.points), abs(self.stop - self.start)
        )
        last, size = known.functions[-1].values.ravel(), float(np.abs(known.extremes).max())
        self.follower.size = size if size > 1e-12 else 1.0
        direction = np.zeros(len(last) + 1)
        direction[-1] = np.sign(self.stop - self.start)
        if len(known) > 1:
            direction[:-1] = last - known.functions[-2].values.ravel()
            direction[-1] = known.parameters[-1] - known.parameters[-2]
        try:
            values = self.follower.solve(last, float(known.parameters[-1]))
        except NoConvergence:
            raise InputError("the last point of resume is no solution of this problem; pass its own problem") from None
        branch, crossings = self._branch(self.follower.state(values, float(known.parameters[-1]), direction))
        numbers = [np.concatenate([getattr(known, name), getattr(branch, name)[1:]])
                   for name in ("parameters", "extremes", "unstable", "rates")]  # fmt: skip
        functions, special = known.functions + branch.functions[1:], known.special + branch.special
        joined = SolutionBranch(numbers[0], numbers[1], numbers[2], numbers[3], functions, special, branch.ended)
        result = self._with_crossings(joined, crossings, levels, earlier.points)
        return replace(result, branches=result.branches[:1] + earlier.branches[1:] + result.branches[1:])

    def _with_crossings(
        self, first: SolutionBranch, crossings: list[BranchState], levels: int, count: int
    ) -> Continuation:
        """Follow the branches that cross the first one, and return all of them with a status."""
        branches = [first]
        for _ in range(levels):
            following = []
            for state in crossings:
                for side in (1.0, -1.0):
                    follow = self._crossing(state, side)
                    if follow is not None:
                        branch, more = self._branch(follow)
                        if len(branch) > 1 and not self._repeated(branch, branches):
                            branches.append(branch)
                            following += more
            crossings = following
        status, detail = Status.CONVERGED, "the branches were followed to their ends"
        worst = max((special.bound / max(abs(special.parameter), NEARBY * self.follower.extent)
                     for branch in branches for special in branch.special), default=0.0)  # fmt: skip
        if self.monitor.exhausted:
            status, detail = Status.BUDGET, ""
        elif worst > self.tol:
            status, detail = Status.DISAGREE, f"two grids differ by {worst:.1e} in a fold or branch point"
        elif any("gave up" in branch.ended for branch in branches):
            status, detail = Status.NEWTON, "a branch could not be followed to its end"
        return Continuation(
            self.problem, self.parameter, tuple(branches), status, detail, self.tol, count, self.monitor.elapsed
        )

    def _first(self, guess: Any) -> BranchState:
        follower = self.follower
        try:
            values = follower.solve(guessed(follower.system, guess), self.start)
            state = follower.state(values, self.start, None)
        except NoConvergence:
            raise InputError(
                f"no solution was found at {self.parameter} = {self.start:g} from this guess; give a closer guess=…"
            ) from None
        slope = state.tangent[:-1] / state.tangent[-1]
        size = max(float(np.sqrt(np.mean(values**2))), float(np.sqrt(np.mean(slope**2))) * follower.extent)
        follower.size = size if size > 1e-12 else 1.0
        direction = np.zeros(len(state.tangent))
        direction[-1] = np.sign(self.stop - self.start)
        return follower.state(values, self.start, direction)

    # ------------------------------------------------------------------------------------------------- one branch

    def _branch(self, state: BranchState) -> tuple[SolutionBranch, list[BranchState]]:
        """Follow a branch until it leaves the range; its branch points come back too."""
        follower, rules = self.follower, self.follower.settings
        states, special, crossings = [state], [], []
        length, ended = rules.first, f"gave up after {rules.most} points"
        rates = [self._rates(state)]
        while len(states) < rules.most:
            if self.monitor.exhausted:
                ended = "the time allowed was used up"
                break
            try:
                step = self._advanced(state, length)
                rates_there = self._rates(step.state)
                kind = self._passed(state, step, (rates[-1][0], rates_there[0]))
                located = self._special(kind, state, step.length) if kind else None
            except NoConvergence:
                length *= 0.5
                if length < LEAST_STEP:
                    ended = "gave up: steps became too short"
                    break
                continue
            if located is not None:
                special.append(located[0])
                crossings += [located[1]] if kind == "branch point" else []
            values = step.state.values
            if follower.system.tail(values) > PILOT_TOLERANCE and np.abs(values).max() > 1e-9 * follower.size:
                ended = TOO_STEEP
                break
            self.passed += 1
            self.monitor.tell(1, self.passed)
            states.append(step.state)
            rates.append(rates_there)
            state = step.state
            if step.end is not None:
                ended = f"{self.parameter} reached {step.end:g}"
                break
            if float(np.sqrt(np.mean(values**2))) > rules.largest * follower.size:
                ended = "the solution grew beyond all bounds"
                break
            length = min(step.length * (3 / 2 if step.easy else 1), rules.longest)
        return self._summary(states, rates, special, ended), crossings

    def _advanced(self, state: BranchState, length: float) -> _Step:
        """A step of this length, or to where the branch leaves the range; NoConvergence where it is too long."""
        follower = self.follower
        new, iterations = follower.step(state, length)
        turned = float((follower.metric * new.tangent * state.tangent).sum())
        if turned < follower.settings.turn:
            raise NoConvergence
        low, high = sorted((self.start, self.stop))
        slack = 1e-9 * (high - low)
        if low - slack <= new.parameter <= high + slack:
            return _Step(new, length, iterations <= 4 and turned > 1 - SAME_SOLUTION)
        end = low if new.parameter < low else high
        new = follower.located(state, length, lambda one: one.parameter - end)
        away = np.append(new.values - state.values, new.parameter - state.parameter)
        return _Step(new, float((follower.metric * away * state.tangent).sum()), end=end)

    def _passed(self, before: BranchState, step: _Step, growing: tuple[int, int]) -> str:
        """The kind of special point within a step, empty for none; NoConvergence where shorter steps must separate two.

        growing : numbers of growing perturbations before and after the step, -1 where they are not known
        """
        pair = min(growing) >= 0 and abs(growing[1] - growing[0]) > 1
        fold = step.state.tangent[-1] * before.tangent[-1] < 0
        crossed = int(before.sign * step.state.sign < 0)
        if pair or len(self.problem.fields) > 1:  # for one field, the sign of the determinant suffices
            crossed = self.follower.branch_points_between(before, step.state, step.length > SHORTEST_SEPARATING_STEP)
        if (pair or fold + crossed > 1) and step.length > SHORTEST_SEPARATING_STEP:
            raise NoConvergence
        if fold:
            return "fold"
        if crossed:
            return "branch point"
        if not pair:
            return ""
        first, last = (self._oscillating_rate(self.follower, state) for state in (before, step.state))
        return "Hopf point" if first is not None and last is not None and first.real * last.real < 0 else ""

    def _special(self, kind: str, before: BranchState, length: float) -> tuple[SpecialPoint, BranchState]:
        """A fold or branch point on this grid, then on finer ones until two agree."""
        on_branch = self._locate(self.follower, kind, before, length)
        parameter, bound = on_branch.parameter, np.inf
        best, follower = on_branch, self.follower
        coarse = self.follower.system.function(before.values)
        count = self.follower.system.count
        scale = max(abs(parameter), NEARBY * self.follower.extent)
        while bound > self.tol * scale and count + MORE_POINTS[self.axis] <= FINEST_GRID[self.axis]:
            if self.monitor.exhausted:
                break
            count += MORE_POINTS[self.axis]
            finer = Follower(
                StationarySystem(self.stated, self.parameter, count), self.follower.extent, self.follower.size
            )
            try:
                values = finer.solve(coarse(finer.system.points).ravel(), before.parameter)
                along = np.append(self.follower.system.function(before.tangent[:-1])(finer.system.points).ravel(),
                                  before.tangent[-1])  # fmt: skip
                located = self._locate(finer, kind, finer.state(values, before.parameter, along), length)
            except NoConvergence:  # the sign does not change within the step on this grid
                break
            bound = abs(located.parameter - parameter)
            parameter, best, follower = located.parameter, located, finer
        function = follower.system.function(best.values)
        frequency = abs(self._pair(follower, best).imag) if kind == "Hopf point" else 0.0
        uncertainty = float(bound) + LOCATED * length * abs(float(before.tangent[-1]))
        return SpecialPoint(kind, parameter, uncertainty, extreme_of(function), function, frequency), on_branch

    def _locate(self, follower: Follower, kind: str, before: BranchState, length: float) -> BranchState:
        """The state within a step at which the measure of its kind changes sign; NoConvergence where it does not."""
        if kind == "fold":
            return follower.located(before, length, lambda one: float(one.tangent[-1]) * follower.extent)
        if kind == "Hopf point":
            return follower.located(before, length, lambda one: self._pair(follower, one).real)
        ended = follower.step(before, length)[0]
        if ended.sign * before.sign < 0:
            return follower.located(before, length, lambda one: one.sign * float(np.exp(one.log - before.log)))
        return follower.located(before, length, lambda one: float(follower.change(before, one).real.min()))

    def _oscillating_rate(self, follower: Follower, state: BranchState) -> complex | None:
        """The complex rate nearest to the imaginary axis; None where there is none."""
        order, signs = rates_of_change(
            self.stated.at_eigenvalue(state.parameter), follower.system.function(state.values), self.algebraic
        )
        rates = follower.rates(state.values, state.parameter, order, signs)
        oscillating = np.zeros(0) if rates is None else rates[rates.imag > ROOT_ROUNDED * np.abs(rates)]
        return complex(oscillating[np.abs(oscillating.real).argmin()]) if len(oscillating) else None

    def _pair(self, follower: Follower, state: BranchState) -> complex:
        """The complex rate nearest to the imaginary axis; NoConvergence where there is none."""
        pair = self._oscillating_rate(follower, state)
        if pair is None:
            raise NoConvergence
        return pair

    def _rates(self, state: BranchState) -> tuple[int, float]:
        """The number of growing perturbations of a state, -1 where it is not known, and the largest growth rate."""
        system = self.follower.system
        function = system.function(state.values)
        if system.tail(state.values) > RATES_RESOLVED and np.abs(state.values).max() > 1e-9 * self.follower.size:
            return -1, np.nan
        try:
            order, signs = rates_of_change(self.stated.at_eigenvalue(state.parameter), function, self.algebraic)
            rates = self.follower.rates(state.values, state.parameter, order, signs)
            return (-1, np.nan) if rates is None else (int((rates.real > 0).sum()), float(rates.real.max()))
        except (InputError, NoConvergence):
            return -1, np.nan

    def _summary(
        self, states: list[BranchState], rates: list[tuple[int, float]], special: list[SpecialPoint], ended: str
    ) -> SolutionBranch:
        system = self.follower.system
        functions = tuple(system.function(state.values) for state in states)
        extremes: list[float] = []
        for function in functions:
            extremes.append(extreme_of(function, extremes[-1] if extremes else 0.0))
        return SolutionBranch(
            np.array([state.parameter for state in states]), np.array(extremes), np.array([n for n, _ in rates]),
            np.array([rate for _, rate in rates]), functions, tuple(special), ended,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------- branches that cross

    def _crossing(self, state: BranchState, side: float) -> BranchState | None:
        """A point of the branch that crosses at a branch point."""
        direction, first = side * self.follower.kernel(state), self.follower.settings.first
        for length in first * np.array([2, 1, 1 / 2]):
            try:
                new = self.follower.step(state, length, direction)[0]
            except NoConvergence:
                continue
            away = np.append(new.values - state.values, new.parameter - state.parameter)
            along = float((self.follower.metric * away * state.tangent).sum())
            if abs(along) < (1 - MUCH_SMALLER) * np.sqrt((self.follower.metric * away**2).sum()):
                return new
        return None

    def _repeated(self, branch: SolutionBranch, known: list[SolutionBranch]) -> bool:
        """Whether the first point of a branch lies on one that was followed before."""
        values: Array = branch.functions[0].values
        for other in known:
            gaps = [float(np.sqrt(np.mean((values - function.values) ** 2))) / self.follower.size
                    + abs(branch.parameters[0] - p) / self.follower.extent
                    for function, p in zip(other.functions, other.parameters, strict=True)]  # fmt: skip
            if min(gaps) < NEARBY:
                return True
        return False
