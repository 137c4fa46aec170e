"""Several solutions of one problem that differ in their random features only: mean and spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rannpde.errors import require

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Solutions from independent draws. Calling it gives the mean; ``spread`` the standard deviation over the draws.

    The spread is the random part of the error only: what all members share, such as an error in time, it cannot show.
    """

    members: tuple[Solution, ...]

    def __post_init__(self) -> None:
        require(len(self.members) >= 2, "members", len(self.members), "two solutions or more")

    def __call__(self, points: Array) -> Array:
        """Mean over the members: (M,) for a single field, (M, fields) otherwise."""
        return np.mean([member(points) for member in self.members], axis=0)

    def spread(self, points: Array) -> Array:
        """Standard deviation over the members, of the same shape."""
        return np.std([member(points) for member in self.members], axis=0, ddof=1)

    def derivative(self, points: Array, derivative: tuple[int, ...]) -> Array:
        """Mean of a derivative over the members."""
        return np.mean([member.derivative(points, derivative) for member in self.members], axis=0)

    def errors(self) -> dict[str, list[float]]:
        """Field → relative L² error of every member, where an exact solution is known."""
        found = [member.errors() for member in self.members]
        return {name: [one[name] for one in found] for name in found[0]}
