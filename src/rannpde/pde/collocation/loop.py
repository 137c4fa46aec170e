"""The story of iterations: answers one after the other, how far they are apart, and what that says about the error."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rannpde.pde.collocation.attempt import Attempt
from rannpde.pde.collocation.layers import Curved
from rannpde.pde.functions import State
from rannpde.pde.monitor import Status
from rannpde.pde.residual import distance

if TYPE_CHECKING:
    from rannpde.pde.collocation.iterations import CollocationIterations

CLOSE = 1e-2
"""Draws that differ by less are two approximations of one solution."""
SAME = 0.05
"""Two draws differ by a constant when their difference varies by less than this share of its mean."""


@dataclass(frozen=True)
class CollocationIteration:
    """One iteration: neurons, the largest relative held-out residual, the difference to the iteration before,
    seconds."""

    width: int
    score: float
    difference: float
    seconds: float

    def __str__(self) -> str:
        change = f", change {self.difference:.1e}" if np.isfinite(self.difference) else ""
        return f"{self.width} features, held-out residual {self.score:.1e}, {self.seconds:.2f} s{change}"


@dataclass(frozen=True, eq=False)
class CollocationFound:
    """What the iterations found: the best attempt, all others, the estimate and how it ended."""

    best: Attempt
    tried: tuple[Attempt, ...]
    iterations: tuple[CollocationIteration, ...]
    estimate: float
    status: Status
    detail: str = ""

    @property
    def linear_seconds(self) -> float:
        return sum(one.descent.solve_seconds for one in (self.best, *self.tried))


class Drawer(Protocol):
    """One iteration of some width from a state: the attempts it made, the answer first."""

    def __call__(self, width: int, state: State, number: int) -> list[Attempt]: ...


class Loop:
    """The story of iterations: answers one after the other, their differences, and what they amount to."""

    def __init__(self, owner: CollocationIterations) -> None:
        self.owner = owner
        self.answers: list[Attempt] = []
        self.others: list[Attempt] = []
        self.iterations: list[CollocationIteration] = []
        self.status: Status | None = None

    @property
    def best(self) -> Attempt:
        """The answer that leaves least."""
        return min(self.answers, key=lambda one: one.score)

    @property
    def rivals(self) -> list[Attempt]:
        """The answers of the best one's width, the best first."""
        width = self.iterations[self.answers.index(self.best)].width
        same = [one for one, told in zip(self.answers, self.iterations, strict=True) if told.width == width]
        return sorted(same, key=lambda one: one.score)

    @property
    def difference(self) -> float:
        """Of the two best draws of one width; to the width before where there is one draw only; or unknown."""
        if self.best.score > self.owner.tuning.unsolved:
            return np.inf
        rivals = self.rivals
        return self._distance(rivals[0], rivals[1]) if len(rivals) > 1 else self.iterations[-1].difference

    @property
    def agreed(self) -> bool:
        """Whether two draws of one width agree."""
        return len(self.rivals) > 1 and max(1.0, self.share) * self.difference <= self.owner.tol

    @property
    def share(self) -> float:
        """Error of the best over its difference to the next; draws of a learned law have more in common than others."""
        tuning = self.owner.tuning
        learned = any(isinstance(piece.features, Curved) for piece in self.best.network.pieces)
        return tuning.estimate_share * (tuning.learning.common if learned else 1.0)

    @property
    def uneven(self) -> bool:
        """Whether the two best draws agree, but one is so much better that their difference says little about it."""
        tuning, rivals = self.owner.tuning, self.rivals
        near = self.agreed and self.difference > 0.01 * self.owner.tol
        return near and rivals[1].score > tuning.alike * rivals[0].score

    @property
    def stalled(self) -> bool:
        """Whether neither the difference nor the residual of the last pair is much smaller than of the one before."""
        pairs = [k for k in range(1, len(self.iterations)) if self.iterations[k].width == self.iterations[k - 1].width]
        if len(pairs) < 2:
            return False
        before, last = (self.iterations[k] for k in pairs[-2:])
        keep = self.owner.tuning.stall
        return last.difference > keep * before.difference and last.score > keep * before.score

    @property
    def free_twice(self) -> bool:
        """Whether two pairs of draws satisfy the equations and still differ: more neurons will not change that."""
        return len(self.answers) >= 4 and bool(self._undetermined())

    def step(self, draw: Drawer, width: int, state: State) -> bool:
        """One iteration; whether the clock or the keyboard says to end."""
        owner, number = self.owner, len(self.answers) + 1
        owner.number, begin = number, owner.monitor.elapsed
        try:
            answer, *others = draw(width, state, number)
            difference = self._distance(self.answers[-1], answer) if self.answers else np.inf
            owner.estimate = difference
            owner.monitor.tell(number, len(answer.descent.steps), width=width, estimate=difference)
        except KeyboardInterrupt:
            if not self.answers:
                raise
            self.status = Status.INTERRUPTED
            return True
        self.answers.append(answer)
        self.others += others
        self.iterations.append(CollocationIteration(width, answer.score, difference, owner.monitor.elapsed - begin))
        if owner.monitor.exhausted:
            self.status = Status.BUDGET
        return self.status is not None

    def _distance(self, one: Attempt, other: Attempt) -> float:
        return distance(one.network, other.network, self.owner.points)

    def found(self) -> CollocationFound:
        """What the iterations amount to."""
        tuning, difference = self.owner.tuning, self.difference
        ill = difference > tuning.ill_conditioned * self.best.score
        estimate = self.share * difference * (tuning.ill_share if ill else 1.0)
        status, detail = self._judged(estimate)
        best = self.best
        tried = tuple(one for one in (*self.answers, *self.others) if one is not best)
        return CollocationFound(best, tried, tuple(self.iterations), estimate, status, detail)

    def _judged(self, estimate: float) -> tuple[Status, str]:
        owner, best = self.owner, self.best
        lenient = max(owner.tuning.lenient, 3 * owner.tol)
        free = self._undetermined() if estimate > owner.tol else ""
        if free:
            return Status.UNDETERMINED, free
        if self.status is not None and not (estimate <= owner.tol and best.score <= lenient):
            return self.status, ""
        if not best.descent.status.converged and best.descent.status is Status.NEWTON:
            return Status.NEWTON, best.descent.reason
        if estimate <= owner.tol:
            if best.score <= lenient:
                return Status.CONVERGED, ""
            return Status.VETOED, f"two draws agree, but leave a relative residual of {best.score:.1e}"
        told = f"two draws differ by {estimate:.1e}"
        if not np.isfinite(estimate):
            told = f"nothing is solved: the relative residual is {best.score:.1e}"
        return (Status.STALLED if self.stalled else Status.DISAGREE), told

    def _undetermined(self) -> str:
        """What draws that all satisfy the equations do not share; empty where that is no more than their residuals."""
        owner = self.owner
        good = [one for one in self.answers if one.score <= owner.tuning.lenient]
        pairs = [(one, other) for one, other in pairwise(good)]
        far = max(pairs, key=lambda pair: self._distance(*pair), default=None)
        if far is None:
            return ""
        apart, left = self._distance(*far), max(one.score for one in far)
        if apart <= max(owner.tuning.undetermined * left, CLOSE):
            return ""
        gap = far[0].network(owner.points) - far[1].network(owner.points)
        means, spreads = np.abs(gap.mean(axis=0)), gap.std(axis=0)
        named = zip(owner.problem.fields, means, spreads, strict=True)
        free = [name for name, mean, spread in named if spread < SAME * mean]
        what = f"a constant in {', '.join(free)}" if free else "more than a constant: a mode of the homogeneous problem"
        return f"two draws satisfy the equations but differ by {what}; add a condition that fixes it"
