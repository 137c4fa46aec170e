"""Collocation in the adaptive loop: realisations, their differences, and the error estimate they give."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.adaptivity.loop import ERROR_SHARE, AdaptiveLoop, AdaptiveRecord
from rannpde.pde.adaptivity.result import AdaptiveResult, Iteration
from rannpde.pde.collocation.layers import NonRidgeLayer
from rannpde.pde.collocation.trial import Trial
from rannpde.pde.functions import State
from rannpde.pde.monitor import Status
from rannpde.pde.residual import distance
from rannpde.pde.tolerance import ESTIMATOR_FACTOR, MUCH_SMALLER, SAME_SOLUTION

if TYPE_CHECKING:
    from rannpde.pde.collocation.iterations import AdaptiveCollocation

Schedule = Callable[["CollocationLoop"], Iterator["IterationPlan"]]
"""Gives the steps of a schedule one by one, from the trials of the loop so far."""


CollocationResult = AdaptiveResult[Trial, Iteration]


class IterationStep(Protocol):
    """Makes one iteration of some width from a state, and returns its trials, the chosen one first."""

    def __call__(self, width: int, state: State, number: int) -> list[Trial]: ...


@dataclass(frozen=True)
class IterationPlan:
    """The resolution of an iteration: how it is made, its width, and the state at which it begins."""

    iterate: IterationStep
    width: int
    state: State


class CollocationLoop:
    """Realisations of networks as the adaptive loop drives them, one step of a schedule after the other."""

    def __init__(self, owner: AdaptiveCollocation) -> None:
        self.owner = owner
        self.record: AdaptiveRecord[Trial, Iteration] = AdaptiveRecord()
        self.answers: list[Trial] = []
        self.others: list[Trial] = []
        self.status: Status | None = None

    @property
    def iterations(self) -> list[Iteration]:
        """The iterations so far."""
        return self.record.iterations

    def run(self, plan: Schedule) -> CollocationResult:
        """The result of a schedule, which sees what its steps have given."""
        owner, self.plan = self.owner, plan(self)
        loop = AdaptiveLoop(most=sys.maxsize, patience=None)  # the schedule ends by itself
        result = loop.run(
            self, next(self.plan), owner.tol, lambda: owner.monitor.ended, self._described, lambda *_: None,
            self.record, report=self._report,
        )  # fmt: skip
        self.status = result.status if result.status.by_caller else None
        return self.result()

    def solve(self, resolution: IterationPlan) -> Trial:
        """SOLVE: one iteration; its other trials are kept."""
        self.width, self.owner.number = resolution.width, len(self.answers) + 1
        answer, *others = resolution.iterate(resolution.width, resolution.state, self.owner.number)
        self.others += others
        return answer

    def estimate(self, before: Trial | None, now: Trial) -> float:
        """ESTIMATE: the difference of two realisations."""
        self.owner.estimate = np.inf if before is None else self._distance(before, now)
        self.answers.append(now)
        return self.owner.estimate

    def indicators(self, now: Trial) -> Array:
        """MARK: the network as a whole."""
        return np.ones(1)

    def refine(self, resolution: IterationPlan, now: Trial, marked: Array) -> IterationPlan | None:
        """REFINE: the next step of the schedule."""
        return next(self.plan, None)

    def _described(self, now: Trial, estimate: float, seconds: float) -> Iteration:
        return Iteration(self.width, len(now.descent.steps), estimate, seconds, now.score)

    def _report(self, now: Trial, estimate: float) -> None:
        self.owner.keep(self)
        self.owner.monitor.tell(len(self.answers), len(now.descent.steps), width=self.width, estimate=estimate)

    @property
    def best(self) -> Trial:
        """The chosen trial with the smallest residual."""
        return min(self.answers, key=lambda one: one.score)

    @property
    def realisations(self) -> list[Trial]:
        """The chosen trials of the same width as the best one, in order of their residuals."""
        width = self.iterations[self.answers.index(self.best)].width
        same = [one for one, iteration in zip(self.answers, self.iterations, strict=True) if iteration.width == width]
        return sorted(same, key=lambda one: one.score)

    @property
    def difference(self) -> float:
        """The difference of the two best realisations of one width, or to the previous width where there is one
        only."""
        if self.best.score > self.owner.tuning.unsolved_residual:
            return np.inf
        realisations = self.realisations
        return (
            self._distance(realisations[0], realisations[1])
            if len(realisations) > 1
            else self.iterations[-1].difference
        )

    @property
    def agreed(self) -> bool:
        """Whether two realisations of one width agree."""
        return len(self.realisations) > 1 and max(1.0, self.estimator_factor) * self.difference <= self.owner.tol

    @property
    def estimator_factor(self) -> float:
        """Error of the best divided by its difference to the next; realisations of a fitted law have more in common."""
        tuning = self.owner.tuning
        learned = any(isinstance(subdomain.features, NonRidgeLayer) for subdomain in self.best.network.subdomains)
        return ERROR_SHARE * (tuning.learning.estimator_factor if learned else 1.0)

    @property
    def unequal(self) -> bool:
        """Whether the two best realisations agree, but one is so much better that their difference says little about
        it."""
        tuning, realisations = self.owner.tuning, self.realisations
        near = self.agreed and self.difference > MUCH_SMALLER**2 * self.owner.tol
        return near and realisations[1].score > tuning.similar_residual_ratio * realisations[0].score

    @property
    def stalled(self) -> bool:
        """Whether neither difference nor residual of the last pair is much smaller than those of the previous pair."""
        pairs = [k for k in range(1, len(self.iterations)) if self.iterations[k].width == self.iterations[k - 1].width]
        if len(pairs) < 2:
            return False
        before, last = (self.iterations[k] for k in pairs[-2:])
        keep = self.owner.tuning.min_reduction
        return last.difference > keep * before.difference and last.residual > keep * before.residual

    @property
    def undetermined_twice(self) -> bool:
        """Whether two pairs satisfy the equations and still differ: more neurons will not change that."""
        return len(self.answers) >= 4 and bool(self._undetermined())

    def _distance(self, one: Trial, other: Trial) -> float:
        return distance(one.network, other.network, self.owner.points)

    def ended(self, status: Status, detail: str) -> CollocationResult:
        """Return the result of iterations that a limit or Ctrl-C ended."""
        self.status = status
        result = self.result()
        return replace(result, detail=detail) if detail and result.status is status else result

    def result(self) -> CollocationResult:
        """Return the result of the iterations so far."""
        tuning, difference = self.owner.tuning, self.difference
        ill = difference > tuning.ill_posed_ratio * self.best.score
        estimate = self.estimator_factor * difference * (tuning.ill_posed_factor if ill else 1.0)
        status, detail = self._conclusion(estimate)
        best = self.best
        others = tuple(one for one in (*self.answers, *self.others) if one is not best)
        return CollocationResult(best, tuple(self.iterations), estimate, status, detail, others)

    def _conclusion(self, estimate: float) -> tuple[Status, str]:
        owner, best = self.owner, self.best
        tolerance = max(owner.tuning.residual_tolerance, ESTIMATOR_FACTOR * owner.tol)
        free = self._undetermined() if estimate > owner.tol else ""
        if free:
            return Status.UNDETERMINED, free
        if self.status is not None and not (estimate <= owner.tol and best.score <= tolerance):
            return self.status, ""
        if not best.descent.status.converged and best.descent.status is Status.NEWTON:
            return Status.NEWTON, best.descent.reason
        if estimate <= owner.tol:
            if best.score <= tolerance:
                return Status.CONVERGED, ""
            left = f"two realisations agree, but leave a relative residual of {best.score:.1e}"
            return Status.RESIDUAL_TOO_LARGE, left
        detail = f"two realisations differ by {estimate:.1e}"
        if not np.isfinite(estimate):
            detail = f"nothing is solved: the relative residual is {best.score:.1e}"
        return (Status.STALLED if self.stalled else Status.DISAGREE), detail

    def _undetermined(self) -> str:
        """Return what differs between realisations that all satisfy the equations; empty where that is within their
        residuals."""
        owner = self.owner
        good = [one for one in self.answers if one.score <= owner.tuning.residual_tolerance]
        pairs = [(one, other) for one, other in pairwise(good)]
        far = max(pairs, key=lambda pair: self._distance(*pair), default=None)
        if far is None:
            return ""
        gap_size, left = self._distance(*far), max(one.score for one in far)
        if gap_size <= max(owner.tuning.ill_posed_ratio * left, SAME_SOLUTION):
            return ""
        gap = far[0].network(owner.points) - far[1].network(owner.points)
        means, spreads = np.abs(gap.mean(axis=0)), gap.std(axis=0)
        named = zip(owner.problem.fields, means, spreads, strict=True)
        free = [name for name, mean, spread in named if spread < SAME_SOLUTION * mean]
        what = f"a constant in {', '.join(free)}" if free else "more than a constant: a mode of the homogeneous problem"
        return f"two realisations satisfy the equations but differ by {what}; add a condition that fixes it"
