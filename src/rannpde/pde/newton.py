"""Newton's method, and continuation where it does not converge: for every method whose states it moves.

The problem is stated with a share s of what makes it hard, as of its load or of its inertia. At s = 0 the solution is
known, at s = 1 it is wanted, and each solution is the start of the next. The step of s is halved where Newton's method
fails, and doubled where few iterations sufficed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

IterateT = TypeVar("IterateT")
AimT = TypeVar("AimT", covariant=True)


class NewtonFailure(Exception):
    """share : the largest of ``whole`` at which Newton's method converged; state : the solution there; steps : taken"""

    def __init__(self, share: float, state: Any, steps: int, whole: str) -> None:
        super().__init__(share)
        self.share, self.state, self.steps, self.whole = share, state, steps, whole

    def __str__(self) -> str:
        if self.share >= 1:
            return "Newton's method found a solution on a coarse mesh, which comes back, and none on a finer one"
        if self.share > 0:
            return (
                f"Newton's method found solutions up to {self.share:.1%} of {self.whole}, and none beyond: what comes "
                "back belongs to that share"
            )
        return f"Newton's method found no solution at any share of {self.whole}: what comes back belongs to the share 0"


@dataclass(frozen=True)
class NewtonSettings:
    """When an iteration ends, and how a share grows.

    floor : a size of a step that is rounding where steps do not shrink any more
    rate : slowest rate at which steps shrink in the end, since the tangents leave out derivatives beside jumps
    most : steps of one iteration at most: many are no longer Newton's method
    least_share, few : smallest step of the share; iterations after which a longer one is tried
    """

    floor: float = 1e-8
    rate: float = 0.05
    most: int = 40
    least_share: float = 1 / 64
    few: int = 6


class NewtonStep(Protocol[AimT]):
    """A step from a state. aim : the state after all of it; size : of the step, relative to that state"""

    @property
    def aim(self) -> AimT: ...

    @property
    def size(self) -> float: ...

    def accepted(self, before: Sequence[float]) -> AimT | None:
        """The state to go on from, None where there is none; before : the sizes of the steps before."""
        ...


Stepper = Callable[[IterateT], NewtonStep[IterateT]]
"""The step from a state; LinAlgError where there is none."""


@dataclass(frozen=True)
class NewtonIteration:
    """Newton's method for any states; tol : relative size of the last step; whole : what shares are taken of"""

    tol: float
    settings: NewtonSettings
    whole: str

    def run(self, stepper: Stepper[IterateT], start: IterateT) -> tuple[IterateT, int]:
        """The solution that is reached from a state, and the number of steps; NewtonFailure where there is none."""
        sizes: list[float] = []
        state, count = start, 0
        for count in range(1, self.settings.most + 1):
            with np.errstate(all="ignore"):
                try:
                    step = stepper(state)
                except np.linalg.LinAlgError:
                    break
                size = step.size
                stalled = size <= self.settings.floor and count > 1 and size > 0.5 * sizes[-1]
                if stalled or size * max(size, self.settings.rate) <= self.tol:
                    return step.aim, count
                following = step.accepted(sizes) if np.isfinite(size) else None
            if following is None:
                break
            state = following
            sizes.append(size)
        raise NewtonFailure(1.0, start, count, self.whole)

    def continued(
        self, at: Callable[[float], Stepper[IterateT]], rest: IterateT, start: IterateT, step: float, steps: int = 0
    ) -> tuple[IterateT, int]:
        """The solution by shares, and the number of steps; NewtonFailure where it ends earlier.

        at : share → steps of its equations; rest : the solution at the share 0; start : where the first iteration
        begins; step : of the share at first; steps : taken before
        """
        share = 0.0
        while share < 1:
            if step < self.settings.least_share:
                raise NewtonFailure(share, start if share else rest, steps, self.whole)
            aim = min(share + step, 1.0)
            try:
                start, count = self.run(at(aim), start)
            except NewtonFailure as failure:
                steps, step = steps + failure.steps, step / 2
            else:
                steps, share = steps + count, aim
                step *= 2 if count <= self.settings.few else 1
        return start, steps


def is_contracting(length: float, size: float, following: float) -> bool:
    """Whether a share of a step passes the natural monotonicity test: the next one with the same tangent is shorter.

    No scaling of equations or unknowns changes it (Deuflhard, Newton methods for nonlinear problems, 2004).
    """
    return following <= (1 - length / 4) * size


def shorter_length(length: float, size: float, bend: float, least: float) -> float:
    """The share of a step to try after one that failed; bend : size of the part of second order of that one.

    It is where the model of second order is smallest, but not below ``least`` of the one before, nor above half of it.
    """
    return length * float(np.clip(0.5 * size * length / max(bend, 1e-300), least, 0.5))
