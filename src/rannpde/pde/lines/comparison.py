"""Comparison of two iterations: the points at which solutions are compared, and their difference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import sqrt

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.lines.solution import SpaceTimeSolution
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.problem.step_limit import StepLimit
from rannpde.pde.residual import field_sizes, root_mean_square
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import EPS

COMPARISON_POINTS = 2000
"""Points of space-time at which solutions are compared where no strata are known; twice as many at the first time."""


def fourier_applies(evolution: Evolution) -> bool:
    """Whether a Fourier basis fits: space is periodic, or a box of two or three dimensions with reflection symmetry.

    Odd or even periodic extensions exist on an interval too, but features that follow a front do better there.
    """
    space = evolution.domain.space
    return set(evolution.problem.periodic) == set(space.names) or (evolution.parities is not None and space.dim > 1)


def check_points(evolution: Evolution, end: float, count: int = COMPARISON_POINTS) -> Array:
    """Fresh points in space-time up to the time reached, where iterations are compared."""
    points = evolution.domain.sample(count, rng=20_071)
    if evolution.domain.space.dim > 1 or fourier_applies(evolution):  # large states are computed once for each time
        points[:, 0] = np.resize(points[: count // 10, 0], count)
    start = evolution.domain.time[0]
    points[:, 0] = start + (points[:, 0] - start) * (end - start) / (evolution.domain.time[1] - start)
    return points


@dataclass(frozen=True, eq=False)
class Strata:
    """Stratified samples: a fresh point in every cell of a partition of an interval, and one of the time.

    points (Q, 1), moments (T,) : of space, and shares of the time; weights (Q,), shares (T,) : lengths of the cells of
    both partitions over their means
    """

    points: Array
    weights: Array
    moments: Array
    shares: Array

    @classmethod
    def of(cls, solution: SpaceTimeSolution, times: int = COMPARISON_POINTS // 10) -> Strata | None:
        """Cells as long as the weights of the quadrature, each of which holds one of its nodes: as dense as the basis
        where the solution varies. Times lie between steps, where these are short, or between equal parts. None but for
        random features on an interval."""
        rule = getattr(solution.segments[0].system, "rule", None)
        if rule is None or rule.points.shape[1] > 1:
            return None
        order, rng = np.argsort(rule.points[:, 0]), np.random.default_rng(31)
        lengths = rule.weights[order]
        ends = solution.evolution.domain.space.bounds[0, 0] + np.append(0.0, np.cumsum(lengths))
        points = ends[:-1] + rng.random(len(lengths)) * lengths
        steps = np.array(solution.trajectory.times)
        steps = (steps[:: 1 + len(steps) // times] - steps[0]) / (steps[-1] - steps[0])
        partition = np.union1d(np.linspace(0.0, 1.0, times + 1), steps)
        shares = np.diff(partition)
        moments = partition[:-1] + rng.random(len(shares)) * shares
        return cls(points[:, None], lengths / lengths.mean(), moments, shares / shares.mean())


class SolutionSamples:
    """The values of a solution at the points where iterations are compared, each computed once.

    An iteration is compared with the one before and with the one after, and its initial error is needed as well. On an
    interval, points are stratified by the quadrature of the later one: few points see thin layers as well as the basis
    does, and features are evaluated at one set of them for all times.

    hurried : whether a tenth of the points is used where there are no strata, since the time of the solve is used up
    """

    def __init__(self, solution: SpaceTimeSolution, hurried: bool = False) -> None:
        self.solution, self.strata, self.fewer = solution, Strata.of(solution), 10 if hurried else 1
        self._checks: dict[tuple[float, int, int], Array] = {}

    @cached_property
    def initial_points(self) -> Array:
        """Fresh points of space, (M, d)."""
        if self.strata is not None:
            return self.strata.points
        return self.solution.evolution.domain.space.sample(2 * COMPARISON_POINTS // self.fewer, rng=31)

    def up_to(self, end: float, other: SolutionSamples | None = None) -> Array:
        """The fields at fresh points of space-time up to a time, (M, fields), those of the other samples if given; rows
        are weighted so that their root mean squares are those of the fields."""
        like, start = other or self, self.solution.start
        strata, key = like.strata, (end, id(like.strata), like.fewer)
        if key not in self._checks:
            if strata is None:
                points = check_points(self.solution.evolution, end, COMPARISON_POINTS // like.fewer)
                self._checks[key] = self.solution(points)
            else:
                values = self.solution.on_grid(start + (end - start) * strata.moments, strata.points)
                values = np.sqrt(strata.shares)[:, None, None] * _weighted(values, strata)
                self._checks[key] = values.reshape(-1, values.shape[2])
        return self._checks[key]

    def initial(self, other: SolutionSamples | None = None) -> Array:
        """The fields at the first time, likewise."""
        like, start = other or self, self.solution.start
        strata, key = like.strata, (start, id(like.strata), like.fewer)
        if key not in self._checks:
            if strata is None:
                points = like.initial_points
                self._checks[key] = self.solution(np.column_stack([np.full(len(points), start), points]))
            else:
                self._checks[key] = _weighted(self.solution.on_grid(np.array([start]), strata.points)[0], strata)
        return self._checks[key]

    def initial_error(self) -> float:
        """The relative l² error at the first time against the initial values."""
        evolution = self.solution.evolution
        later = self.up_to(self.solution.trajectory.reliable)
        gaps, sizes = [], []
        for k, (name, order) in enumerate(evolution.orders.items()):
            if order == 0 or Component(name, 0) not in evolution.initial:  # a pressure has no initial value
                continue
            wanted = evolution.initial_values(Component(name, 0), self.initial_points)
            wanted = wanted if self.strata is None else _weighted(wanted[:, None], self.strata)[:, 0]
            sizes.append(max(root_mean_square(wanted), root_mean_square(later[:, k])))
            gaps.append(root_mean_square(self.initial()[:, k] - wanted))
        return float((np.array(gaps) / field_sizes(np.array(sizes))).max())

    def difference(self, before: SolutionSamples) -> float:
        """The relative l² difference to another solution, or the initial error that persists, if that is larger."""
        first, second = before.solution.trajectory, self.solution.trajectory
        if first.broken and not second.broken:
            return np.inf  # an integration that was cut short has no later values
        end = min(first.reliable, second.reliable)
        difference = _distance(before.up_to(end, self), self.up_to(end))
        initial = self.initial_error()
        if initial <= difference:
            return difference
        return max(difference, _persisting(initial, difference, _distance(before.initial(self), self.initial())))


def _weighted(values: Array, strata: Strata) -> Array:
    """Values (…, Q, fields) at the points of strata, times the roots of their weights."""
    return values * np.sqrt(strata.weights)[:, None]


def rounding_error(solution: SpaceTimeSolution, limit: StepLimit | None) -> float:
    """The relative error that iterations share, since all of them round alike: two that agree in every digit still
    have it.

    Roundings of steps are independent of each other. Steps end a moment before the times at which data jump, and for
    that moment the rates after the jump are taken for those before it.
    """
    steps = [step for segment in solution.segments for step in segment.trajectory.steps]
    error = max(step.rounding for step in steps) + EPS * sqrt(len(steps))
    if limit is None or not limit.breaks:
        return error
    integral = 0.0
    for segment in solution.segments:
        shift = np.zeros_like(segment.system.initial_state())  # dense output may have further fields after the state
        for before, after in pairwise(segment.trajectory.steps):
            if min(abs(when - before.t) for when in limit.breaks) <= 2 * limit.margin:
                time = np.array([before.t])
                jump = (after.derivative(time, 1) - before.derivative(time, 1))[: len(shift), 0]
                shift = shift + limit.margin * jump
            integral += segment.system.size(shift) ** 2 * (after.t - after.t_old)
    return error + sqrt(integral / (solution.end - solution.start))


def _persisting(initial: float, difference: float, initial_difference: float) -> float:
    """The part of an initial error that persists: the same share as of the initial difference of two iterations.

    Diffusion damps the error that a jump leaves between two features; transport keeps it. Where the initial difference
    is far smaller than the initial error, the share is unknown, and all of the error is taken to persist.
    """
    comparable = initial_difference > MUCH_SMALLER * initial
    return initial * min(1.0, difference / initial_difference) if comparable else initial


def _distance(before: Array, after: Array) -> float:
    """The relative l² distance of values (M, fields), the largest over the fields; a field that is rounding counts
    relative to the largest."""
    gaps = np.linalg.norm(before - after, axis=0)
    return float((gaps / field_sizes(np.linalg.norm(after, axis=0))).max())
