"""Paths: regression along simulated paths, as a choice of settings, and its entry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import Ended
from rannpde.domains.domain import Domain
from rannpde.errors import finite_array, positive_integer, reject, require
from rannpde.pde.capability import Capability
from rannpde.pde.monitor import Monitor, Status, status_of
from rannpde.pde.paths.adaptive import PointSearch
from rannpde.pde.paths.bounds import StoppingSearch
from rannpde.pde.paths.intervals import PointValue
from rannpde.pde.paths.recognition import process_of
from rannpde.pde.paths.region import region_search
from rannpde.pde.paths.solution import PathsHistory, PathsSolution, PointTable
from rannpde.pde.paths.trainer import PairTrainer, PathsResolution, fixed_start
from rannpde.pde.paths.tuning import PathsTuning
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice, Solution
from rannpde.pde.tolerance import CONFIDENCE, PILOT_TOLERANCE

PATHS_TOLERANCE = PILOT_TOLERANCE
"""Relative, at the confidence of the intervals, unless another is given: no smaller than that of pilot solves, since
errors of sampling fall with the root of the number of paths."""


@dataclass(frozen=True)
class Paths:
    """Values of parabolic problems in R^d, d from 1 to thousands, with confidence intervals.

    at : a point (d,) or points (k, d), at the time farthest from the data, a number for the point with all components
        equal to it, rows (t, x_1, …, x_d) for other times; or a Box or Ball of R^d, on which the solution is wanted
        as a network
    confidence : probability that an interval holds the true value
    steps, width, training : steps in time, neurons with a ridge, training paths; None for all three adapts them
    paths : fresh paths at most, for every point
    tuning : the empirical numbers behind all this

    >>> import rannpde as rp
    >>> domain = rp.SpaceTime(t=(0, 1), x=rp.Euclidean(100))
    >>> heat = rp.Problem("u_t + laplace(u)/2 = 0", domain, {"t=1": "u = norm(x)**2"})
    >>> solution = rp.solve(heat, at=np.zeros(100), tol=1e-3)
    >>> lower, upper = solution.interval
    >>> solution.converged, bool(lower <= 100 + 1e-9 and 100 - 1e-9 <= upper)
    (True, True)
    """

    at: Any = None
    confidence: float = CONFIDENCE
    steps: int | None = None
    width: int | None = None
    training: int | None = None
    paths: int = 2**19
    tuning: PathsTuning = field(default_factory=PathsTuning)

    name = "paths"
    reason: ClassVar[str] = "space is all of R^d"
    share: ClassVar[float] = 1.0
    hands_over: ClassVar[frozenset[Status]] = frozenset()
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.UNBOUNDED_SPACE, Capability.INEQUALITIES})

    def __post_init__(self) -> None:
        inside = isinstance(self.confidence, (int, float)) and 0 < self.confidence < 1
        require(inside, "confidence", self.confidence, "a number between 0 and 1")
        positive_integer("paths", self.paths)
        for key in ("steps", "width", "training"):
            if getattr(self, key) is not None:
                positive_integer(key, getattr(self, key))
        if self.steps is not None:
            require(self.steps % 4 == 0, "steps", self.steps, "a multiple of 4, for Simpson's rule on two grids")

    def obstacles(self, problem: Problem) -> tuple[str, ...]:
        """Reasons why this method cannot solve the problem."""
        return () if problem.parabolic is not None else ("space is no rp.Euclidean(d)",)

    def drawbacks(self, problem: Problem) -> tuple[str, ...]:
        """Reasons to prefer another method: there is no other in all of R^d."""
        return ()

    def solve(self, problem: Problem, tol: float, rng: np.random.Generator, monitor: Monitor, why: str) -> Solution:
        """The values at the points asked for, to a relative half-width of the intervals of ``tol``."""
        form = problem.parabolic
        assert form is not None
        if self.at is None:
            reject("at", None, "a point, e.g. at=np.zeros(100)", "in many dimensions a value is asked at points")
        if isinstance(self.at, Domain):
            return self._on_region(problem, form, self.at, tol, rng, monitor, why)
        points = asked_points(self.at, form)
        values = []
        for number, row in enumerate(points):
            left = monitor.within(1 / (len(points) - number))  # a fair part of the time
            try:
                values.append(self._at_point(started_at(form, float(row[0])), row[1:], tol, rng, left))
            except Ended as stop:
                if not values:
                    raise
                status, detail = status_of(stop)  # the points before are kept
                values += [_unknown(form.dim, values[0], status, detail)] * (len(points) - number)
                break
        return self._solution(problem, points, values, monitor, why)

    def _at_point(
        self, form: Parabolic, point: Array, tol: float, rng: np.random.Generator, monitor: Monitor
    ) -> PointValue:
        if form.obstacle is not None:
            return self._stopping(form, point, tol, rng, monitor)
        trainer = PairTrainer(form, process_of(form), fixed_start(point), self.paths, self.tuning, rng, monitor)
        return PointSearch(trainer, tol, self.confidence, self._fixed(form)).run()

    def _stopping(
        self, form: Parabolic, point: Array, tol: float, rng: np.random.Generator, monitor: Monitor
    ) -> PointValue:
        for key in ("steps", "width", "training"):
            require(getattr(self, key) is None, key, getattr(self, key), "left out with an obstacle", "it is adapted")
        process = process_of(form)
        return StoppingSearch(form, process, point, tol, self.confidence, self.paths, self.tuning, rng, monitor).run()

    def _on_region(
        self, problem: Problem, form: Parabolic, region: Domain, tol: float, rng: np.random.Generator, monitor: Monitor,
        why: str,
    ) -> PathsSolution:  # fmt: skip
        same = not region.timed and region.dim == form.dim
        require(same, "at", region, f"a Box or a Ball in {form.dim} dimensions, without time")
        if form.obstacle is not None:
            reject("at", region, "points, for a problem with an obstacle", "bounds are known at points only")
        process, start = process_of(form), fixed_start(np.zeros(form.dim))
        trainer = PairTrainer(form, process, start, 8 * self.paths, self.tuning, rng, monitor)
        result = region_search(PointSearch(trainer, tol, self.confidence, self._fixed(form)), region).run()
        return PathsSolution(
            problem=problem, fields=problem.fields, function=result.network,
            method=Choice(self.name, f"regression along paths from a cloud in {form.dim} dimensions", why),
            status=result.status, detail=result.detail, estimate=result.estimate, held_out={}, losses={}, integrals={},
            history=PathsHistory((result.iterations,)), seconds=monitor.elapsed,
        )  # fmt: skip

    def _fixed(self, form: Parabolic) -> PathsResolution | None:
        given = (self.steps, self.width, self.training)
        if given == (None, None, None):
            return None
        tuning = self.tuning
        columns = 50 + (form.dim if form.dim <= tuning.linear_share else 0) + 2 * (self.width or tuning.first_width)
        training = self.training or tuning.paths_per_column * columns
        return PathsResolution(
            self.steps or tuning.first_steps, 2, self.width or tuning.first_width, 2 * (training // 2)
        )

    def _solution(
        self, problem: Problem, points: Array, values: list[PointValue], monitor: Monitor, why: str
    ) -> PathsSolution:
        worst = max(values, key=lambda one: one.estimate)
        failed = [one for one in values if not one.status.converged]
        status, detail = (failed[0].status, failed[0].detail) if failed else (Status.CONVERGED, worst.detail)
        table = PointTable(
            points, np.array([one.value for one in values]), np.array([one.standard_error for one in values]),
            np.array([one.half_width for one in values]), np.stack([one.gradient for one in values]),
            np.stack([one.gradient_error for one in values]), self.confidence, worst.iterations[-1].width,
            np.array([one.bounds for one in values]) if values[0].bounds is not None else None,
        )  # fmt: skip
        return PathsSolution(
            problem=problem, fields=problem.fields, function=table,
            method=Choice(self.name, f"regression along paths in {problem.domain.dim - 1} dimensions", why),
            status=status, detail=detail, estimate=worst.estimate, held_out={}, losses={}, integrals={},
            history=PathsHistory(tuple(one.iterations for one in values)), seconds=monitor.elapsed,
        )  # fmt: skip


def _unknown(dim: int, like: PointValue, status: Status, detail: str) -> PointValue:
    """The value at a point for which no time was left."""
    nothing = np.full(dim, np.nan)
    bounds = None if like.bounds is None else (-np.inf, np.inf)
    return PointValue(np.nan, np.inf, np.inf, like.scale, nothing, nothing, like.iterations, status, detail, bounds)


def asked_points(at: Any, form: Parabolic) -> Array:
    """Rows (t, x_1, …, x_d) of what was asked for."""
    array = finite_array("at", at, (0, 1, 2))
    if array.ndim == 0:
        array = np.full(form.dim, float(array))
    rows = np.atleast_2d(array)
    require(len(rows) > 0, "at with shape", array.shape, "one point or more")
    if rows.shape[1] == form.dim:
        return np.column_stack([np.full(len(rows), form.first_time), rows])
    wanted = f"of shape ({form.dim},) or (k, {form.dim}), or with the time in front, (k, {form.dim + 1})"
    require(rows.shape[1] == form.dim + 1, "at with shape", array.shape, wanted)
    lower, upper = form.time
    last = upper if form.backward else lower
    for t in rows[:, 0]:
        inside = lower <= t <= upper and t != last
        require(
            bool(inside), "the time of at", float(t), f"from {lower:g} to {upper:g}, and not {last:g}, that of the data"
        )
    return rows


def started_at(form: Parabolic, t: float) -> Parabolic:
    """The same problem with t as the time farthest from the data."""
    lower, upper = form.time
    return replace(form, time=(t, upper) if form.backward else (lower, t))
