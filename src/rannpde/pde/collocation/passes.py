"""Passes of collocation: draw, solve, compare, widen.

Every width is drawn twice; the difference of the two is the estimate of the error, and what differs from draw to draw
although the equations hold is what they do not determine. Widths double until two draws agree.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.pde.collocation.attempt import Attempt, Recipe, Search, attempt, first_scales, first_width
from rannpde.pde.collocation.guess import GrowingWindow, as_state, first_guess
from rannpde.pde.collocation.newton import GaussNewton
from rannpde.pde.collocation.pieces import BoxFeatures, Piece, PiecewiseNetwork, Scales, scales_of
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem, restrict_time
from rannpde.pde.residual import distance
from rannpde.pde.watch import Ending, Watch

if TYPE_CHECKING:
    from rannpde.pde.collocation.method import Collocation

CHECK_POINTS = 2000
"""Fresh points at which two draws are compared."""
CLOSE = 1e-2
"""Draws that differ by less are two approximations of one solution."""
SAME = 0.05
"""Two draws differ by a constant when their difference varies by less than this share of its mean."""


@dataclass(frozen=True)
class CollocationPass:
    """One pass: neurons, the largest relative held-out residual, the difference to the pass before, seconds."""

    width: int
    score: float
    difference: float
    seconds: float

    def __str__(self) -> str:
        change = f", change {self.difference:.1e}" if np.isfinite(self.difference) else ""
        return f"{self.width} features, held-out residual {self.score:.1e}, {self.seconds:.2f} s{change}"


@dataclass(frozen=True, eq=False)
class Found:
    """What the passes found: the best attempt, all others, the estimate and how it ended."""

    best: Attempt
    tried: tuple[Attempt, ...]
    passes: tuple[CollocationPass, ...]
    estimate: float
    ending: Ending
    detail: str = ""

    @property
    def linear_seconds(self) -> float:
        return sum(one.descent.solve_seconds for one in (self.best, *self.tried))


class Drawer(Protocol):
    """One pass of some width from a state: the attempts it made, the answer first."""

    def __call__(self, width: int, state: State, number: int) -> list[Attempt]: ...


class Passes:
    """Draw, solve, compare, widen."""

    def __init__(
        self, problem: Problem, method: Collocation, tol: float, watch: Watch, rng: np.random.Generator
    ) -> None:
        self.problem, self.method, self.tol, self.watch, self.rng = problem, method, tol, watch, rng
        self.tuning = method.tuning
        self.number, self.estimate = 1, np.inf
        newton, per_column = method.newton or GaussNewton(), method.points_per_column or self.tuning.points_per_column
        self.recipe = Recipe(newton, dict(method.weights), per_column, self.tuning, self._notice)
        source = BoxFeatures(problem, self.tuning, dict(method.pieces), method.activation or "tanh", method.law)
        self.search = Search(problem, source, self.recipe)
        self.scales: Scales | None = None
        self.points = problem.domain.sample(CHECK_POINTS, rng=20_071)

    def _notice(self, columns: int, step: int) -> Ending | None:
        self.watch.tell(self.number, step, width=columns, estimate=self.estimate)
        return Ending.BUDGET if self.watch.over else None

    def run(self) -> Found:
        method = self.method
        state = as_state(method.guess, self.problem) or first_guess(self.problem)
        if method.features is not None:
            return self._repeat(self._of_given, state, method.features.columns)
        if method.placement == "placed":
            return self._placed(None if method.guess is None else state)
        found = self._pair(state, method.width) if method.width else self._widen(state)
        sharp = found.best.score > self.tuning.rough and self._may_place()
        if sharp and not found.ending.by_caller:
            with suppress(InputError):  # the window could not grow: what there is stays the answer
                placed = self._placed(None)
                better, worse = (placed, found) if placed.best.score < found.best.score else (found, placed)
                return replace(better, tried=(*better.tried, worse.best, *worse.tried))
        return found

    def _may_place(self) -> bool:
        domain, method = self.problem.domain, self.method
        free = not (method.pieces or method.scale or method.law or method.activation or self.problem.periodic)
        return method.placement is None and free and isinstance(domain, SpaceTime) and domain.dim <= 3

    # ---------------------------------------------------------------------------------------------- kinds of passes

    def _uniform(self, width: int, state: State, number: int) -> list[Attempt]:
        """Neurons drawn by the law, at the best scales found; each pass draws anew."""
        seed, method, dim = int(self.rng.integers(2**31)), self.method, self.problem.domain.dim
        if method.law is not None or method.scale is not None:
            given = scales_of(1.0 if method.scale is None else method.scale, dim)
            return [self.search.solve(width, given, state, seed)]
        if self.scales is not None and width > self.search.width:
            return [self.search.solve(width, self.scales, state, seed)]
        start = self.scales or first_scales(self.problem, width, self.tuning)
        rounds = self.tuning.rounds if self.scales is None else self.tuning.later_rounds
        self.scales, tried = self.search.run(width, state, start, seed, rounds)
        if self.recipe.over(width):
            return tried
        final = self.search.solve(width, self.scales, tried[0].network, seed)
        # attempts of the search are cut short after two steps: prefer the full solve unless it is clearly worse
        if final.score <= 2 * tried[0].score or not tried[0].descent.ending.converged:
            return [final, *tried]
        return [*tried, final]

    def _again(self, width: int, state: State, number: int) -> list[Attempt]:
        """Another draw of the same law."""
        scales = self.scales or scales_of(self.method.scale or 1.0, self.problem.domain.dim)
        return [self.search.solve(width, scales, state, int(self.rng.integers(2**31)))]

    def _of_given(self, width: int, state: State, number: int) -> list[Attempt]:
        """The user's own layer; the pass before it, for comparison, has three quarters of it."""
        features = self.method.features
        assert features is not None
        if number == 1:
            features = _thinned(features, self.rng)
        pieces = (Piece(self.problem.domain.bounds, features),)
        return [attempt(self.problem, pieces, state, self.rng, self.recipe, label="given features")]

    def _placed(self, state: State | None) -> Found:
        """Neurons placed for the state before, on a growing time window first."""
        growing = self.tuning.growing
        width = self.method.width or growing.width
        window = GrowingWindow(self.problem, width, self.rng, self.recipe)
        state = state or window.start()
        return self._repeat(lambda w, s, k: [window.solve(s, k)], state, width, growing.passes)

    # ------------------------------------------------------------------------------------------------------- loops

    def _pair(self, state: State, width: int) -> Found:
        """Two draws of a given width."""
        loop = _Loop(self)
        ended = loop.step(self._uniform, width, state) or loop.step(self._again, width, loop.best.network)
        if not ended and loop.uneven:
            loop.step(self._again, width, loop.best.network)
        return loop.found()

    def _repeat(self, draw: Drawer, state: State, width: int, most: int = 2) -> Found:
        """Passes of one kind and width, at least two, until they agree."""
        loop = _Loop(self)
        for _ in range(most):
            if loop.step(draw, width, state) or loop.agreed:
                break
            state = loop.best.network
        return loop.found()

    def _widen(self, state: State) -> Found:
        """Pairs of draws of doubling width until one agrees, or neither agreement nor residual gets better."""
        loop, tuning = _Loop(self), self.tuning
        most = min(tuning.last_width, max(tuning.first_width, tuning.most_columns // len(self.problem.fields)))
        width = min(first_width(self.problem, tuning), most)
        while True:
            if loop.step(self._uniform, width, state):
                break
            if loop.best.score < tuning.unsolved and loop.step(self._again, width, loop.best.network):
                break
            if loop.uneven and loop.step(self._again, width, loop.best.network):
                break
            if loop.agreed or width >= most or (loop.stalled and loop.best.score < tuning.rough) or loop.free_twice:
                break
            state, width = loop.best.network, min(2 * width, most)
        return loop.found()


class _Loop:
    """The story of passes: answers one after the other, their differences, and what they amount to."""

    def __init__(self, owner: Passes) -> None:
        self.owner = owner
        self.answers: list[Attempt] = []
        self.others: list[Attempt] = []
        self.passes: list[CollocationPass] = []
        self.ending: Ending | None = None

    @property
    def best(self) -> Attempt:
        """The answer that leaves least."""
        return min(self.answers, key=lambda one: one.score)

    @property
    def rivals(self) -> list[Attempt]:
        """The answers of the best one's width, the best first."""
        width = self.passes[self.answers.index(self.best)].width
        same = [one for one, told in zip(self.answers, self.passes, strict=True) if told.width == width]
        return sorted(same, key=lambda one: one.score)

    @property
    def difference(self) -> float:
        """Of the two best draws of one width; to the width before where there is one draw only; or unknown."""
        if self.best.score > self.owner.tuning.unsolved:
            return np.inf
        rivals = self.rivals
        return self._distance(rivals[0], rivals[1]) if len(rivals) > 1 else self.passes[-1].difference

    @property
    def agreed(self) -> bool:
        """Whether two draws of one width agree."""
        return len(self.rivals) > 1 and self.difference <= self.owner.tol

    @property
    def uneven(self) -> bool:
        """Whether the two best draws agree, but one is so much better that their difference says little about it."""
        tuning, rivals = self.owner.tuning, self.rivals
        near = self.agreed and self.difference > 0.01 * self.owner.tol
        return near and rivals[1].score > tuning.alike * rivals[0].score

    @property
    def stalled(self) -> bool:
        """Whether neither the difference nor the residual of the last pair is much smaller than of the one before."""
        pairs = [k for k in range(1, len(self.passes)) if self.passes[k].width == self.passes[k - 1].width]
        if len(pairs) < 2:
            return False
        before, last = (self.passes[k] for k in pairs[-2:])
        keep = self.owner.tuning.stall
        return last.difference > keep * before.difference and last.score > keep * before.score

    @property
    def free_twice(self) -> bool:
        """Whether two pairs of draws satisfy the equations and still differ: more neurons will not change that."""
        return len(self.answers) >= 4 and bool(self._undetermined())

    def step(self, draw: Drawer, width: int, state: State) -> bool:
        """One pass; whether the clock or the keyboard says to end."""
        owner, number = self.owner, len(self.answers) + 1
        owner.number, begin = number, owner.watch.elapsed
        try:
            answer, *others = draw(width, state, number)
            difference = self._distance(self.answers[-1], answer) if self.answers else np.inf
            owner.estimate = difference
            owner.watch.tell(number, len(answer.descent.history), width=width, estimate=difference)
        except KeyboardInterrupt:
            if not self.answers:
                raise
            self.ending = Ending.INTERRUPTED
            return True
        self.answers.append(answer)
        self.others += others
        self.passes.append(CollocationPass(width, answer.score, difference, owner.watch.elapsed - begin))
        if owner.watch.over:
            self.ending = Ending.BUDGET
        return self.ending is not None

    def _distance(self, one: Attempt, other: Attempt) -> float:
        return distance(one.network, other.network, self.owner.points)

    def found(self) -> Found:
        """What the passes amount to."""
        tuning, difference = self.owner.tuning, self.difference
        ill = difference > tuning.ill_conditioned * self.best.score
        estimate = tuning.estimate_share * difference * (tuning.ill_share if ill else 1.0)
        ending, detail = self._judged(estimate)
        best = self.best
        tried = tuple(one for one in (*self.answers, *self.others) if one is not best)
        return Found(best, tried, tuple(self.passes), estimate, ending, detail)

    def _judged(self, estimate: float) -> tuple[Ending, str]:
        owner, best = self.owner, self.best
        lenient = max(owner.tuning.lenient, 3 * owner.tol)
        free = self._undetermined() if estimate > owner.tol else ""
        if free:
            return Ending.UNDETERMINED, free
        if self.ending is not None and not (estimate <= owner.tol and best.score <= lenient):
            return self.ending, ""
        if not best.descent.ending.converged and best.descent.ending is Ending.NEWTON:
            return Ending.NEWTON, best.descent.reason
        if estimate <= owner.tol:
            if best.score <= lenient:
                return Ending.CONVERGED, ""
            return Ending.VETOED, f"two draws agree, but leave a relative residual of {best.score:.1e}"
        told = f"two draws differ by {estimate:.1e}"
        if not np.isfinite(estimate):
            told = f"nothing is solved: the relative residual is {best.score:.1e}"
        return (Ending.STALLED if self.stalled else Ending.DISAGREE), told

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


def by_slabs(problem: Problem, method: Collocation, tol: float, watch: Watch, rng: np.random.Generator) -> Found:
    """Slabs one after the other; the pieces of all of them make one solution, judged by the sum of the estimates."""
    assert isinstance(problem.domain, SpaceTime)
    cuts, one = np.linspace(*problem.domain.time, method.slabs + 1).tolist(), replace(method, slabs=1)
    found: list[Found] = []
    for start, end in pairwise(cuts):
        before = found[-1].best.network if found else None
        part = restrict_time(problem, (start, end), before)
        found.append(Passes(part, one, tol / method.slabs, watch, rng).run())
        if found[-1].ending.by_caller:
            break
    worst = max(found, key=lambda one: (not one.ending.converged, one.best.score))
    network = PiecewiseNetwork(
        tuple(piece for one in found for piece in one.best.network.pieces),
        tuple(c for one in found for c in one.best.network.coefficients),
    )
    best = replace(worst.best, network=network, label=f"{method.slabs} slabs, worst is {worst.best.label}")
    estimate = sum(one.estimate for one in found)
    tried = tuple(attempt for one in found for attempt in one.tried)
    told = tuple(row for one in found for row in one.passes)
    ending = worst.ending if not worst.ending.converged and estimate > tol else Ending.CONVERGED
    return Found(best, tried, told, estimate, ending, "" if ending.converged else worst.detail)


def _thinned(features: RandomFeatures | FourierFeatures, rng: np.random.Generator) -> RandomFeatures | FourierFeatures:
    """A random three quarters of the neurons."""
    kept = np.sort(rng.permutation(features.width)[: max(1, 3 * features.width // 4)])
    if isinstance(features, RandomFeatures):
        return replace(features, weights=features.weights[:, kept], biases=features.biases[kept])
    return replace(features, weights=features.weights[:, kept], phases=features.phases[kept])
