"""Scales and widths chosen by the held-out residual, with no exact solution at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.network.features import RandomFeatures
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.laws import BoxUniform, FewCoordinates, WholeFrequencies
from rannpde.pde.collocation.pieces import Piece, split_box
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem

Array = np.ndarray
Scales = tuple[float, ...]

SMALL_WIDTH = 400
"""Scales are searched at this width at most: one solve costs the cube of the width."""
FEW_COORDINATES_FROM = 5
"""From this many coordinates on, neurons see few of them."""
ROUNDS = 12
"""Most solves of one search."""


@dataclass(frozen=True)
class BoxFeatures:
    """How features are drawn for each piece of a domain: tanh ridges that cross it, or whole frequencies."""

    problem: Problem
    parts: dict[str, int]
    activation: str = "tanh"
    law: Any = None

    @property
    def periodic(self) -> tuple[int, ...]:
        return tuple(self.problem.domain.names.index(name) for name in self.problem.periodic)

    def draw(self, width: int, scales: Scales, rng: np.random.Generator) -> tuple[Piece, ...]:
        boxes = split_box(self.problem.domain, self.parts)
        return tuple(Piece(box, self._layer(box, width, scales, rng)) for box in boxes)

    def _layer(self, box: Array, width: int, scales: Scales, rng: np.random.Generator) -> RandomFeatures:
        if self.periodic:
            law: Any = WholeFrequencies(scales, self.periodic)
            activation = "cos"
        else:
            dense = len(scales) < FEW_COORDINATES_FROM
            law, activation = self.law or (BoxUniform(scales) if dense else FewCoordinates(scales)), self.activation
        return RandomFeatures.sample(
            width=width, law=law, activation=activation, rng=rng, domain=_Bounds(box), constant=True
        )


@dataclass(frozen=True, eq=False)
class _Bounds:
    bounds: Array


@dataclass(frozen=True)
class Search:
    """A walk on the logarithms of (scale in time, scale in space): steps ×2 and ÷2, then ×√2, downhill only."""

    problem: Problem
    source: BoxFeatures
    recipe: Recipe
    seed: int
    progress: Callable[[Attempt], None] | None = None

    def solve(self, width: int, scales: Scales, state: State, short: bool = False) -> Attempt:
        """One attempt; ``short`` allows two Gauss–Newton steps, enough to compare settings from a good state."""
        recipe = replace(self.recipe, newton=replace(self.recipe.newton, iterations=2)) if short else self.recipe
        rng = np.random.default_rng(self.seed)
        label = f"width {width}, scale {_text(scales)}"
        found = attempt(self.problem, self.source.draw(width, scales, rng), state, rng, recipe, label=label)
        if self.progress is not None:
            self.progress(found)
        return found

    def run(self, width: int, state: State, start: Scales) -> tuple[Scales, list[Attempt]]:
        """The best scales found and all attempts, the best one first."""
        small = min(width, SMALL_WIDTH)
        best = self.solve(small, start, state)
        tried, scales = [best], start
        visited = {_text(start)}
        for factor in (2.0, 2.0**0.5):
            improved = True
            while improved and len(tried) < ROUNDS:
                improved = False
                for direction in self._directions():
                    for sign in (1, -1):
                        moved = tuple(s * factor ** (sign * d) for s, d in zip(scales, direction, strict=True))
                        if _text(moved) in visited or len(tried) >= ROUNDS:
                            continue
                        visited.add(_text(moved))
                        new = self.solve(small, moved, best.network, short=True)
                        tried.append(new)
                        if new.score < best.score:
                            best, scales, improved = new, moved, True
                            break
        tried.remove(best)
        return scales, [best, *tried]

    def _directions(self) -> list[tuple[int, ...]]:
        dim = self.problem.domain.dim
        together = (1,) * dim
        if isinstance(self.problem.domain, SpaceTime):
            time, space = (1,) + (0,) * (dim - 1), (0,) + (1,) * (dim - 1)
            return [space, time, together]
        return [together]


def first_scales(problem: Problem, width: int) -> Scales:
    """Where the search begins: (width/100)^(1/n), at most 3, and lower in many dimensions."""
    dim = problem.domain.dim
    base = min(3.0, max(0.2, (width / 100) ** (1 / dim) * (1.0 if dim <= 2 else 2.0 / dim**1.5)))
    periodic = set(problem.periodic)
    top = max(2.0, (width / 8) ** (1 / dim))
    return tuple(top if name in periodic else base * (3.0 if periodic else 1.0) for name in problem.domain.names)


def _text(scales: Scales) -> str:
    return "×".join(f"{s:.3g}" for s in dict.fromkeys(scales)) if len(set(scales)) <= 2 else str(tuple(scales))
