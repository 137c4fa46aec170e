"""Features drawn on boxes, and their scales chosen by the held-out residual, with no exact solution at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import BoxUniform, FewCoordinates, WeightLaw, WholeFrequencies
from rannpde.pde.collocation.attempt import Attempt, Recipe, attempt
from rannpde.pde.collocation.pieces import Piece, split_box
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem

Scales = tuple[float, ...]


@dataclass(frozen=True)
class BoxFeatures:
    """How features are drawn for each piece of a domain: ridges that cross it, or whole frequencies."""

    problem: Problem
    tuning: CollocationTuning
    parts: Mapping[str, int] = field(default_factory=dict)
    activation: str = "tanh"
    law: WeightLaw | None = None

    @property
    def periodic(self) -> tuple[int, ...]:
        return tuple(self.problem.domain.names.index(name) for name in self.problem.periodic)

    def draw(self, width: int, scales: Scales, rng: np.random.Generator) -> tuple[Piece, ...]:
        boxes = split_box(self.problem.domain, self.parts)
        return tuple(Piece(box, self._layer(box, width, scales, rng)) for box in boxes)

    def _layer(self, box: Array, width: int, scales: Scales, rng: np.random.Generator) -> RandomFeatures:
        law, activation = self.law, self.activation
        if self.periodic:
            law, activation = WholeFrequencies(scales, self.periodic), "cos"
        elif law is None:
            dense = len(scales) < self.tuning.few_coordinates_from
            law = BoxUniform(scales) if dense else FewCoordinates(scales)
        features = RandomFeatures.sample(
            width=width, law=law, activation=activation, rng=rng, domain=_Bounds(box), constant=True
        )
        return self._focused(features, rng)

    def _focused(self, features: RandomFeatures, rng: np.random.Generator) -> RandomFeatures:
        """A share of the neurons moved to where the data vary, if that is concentrated and nothing else was asked."""
        variation = self.problem.variation
        if variation is None or variation.chances is None or self.parts or self.law is not None or self.periodic:
            return features
        count = round(self.tuning.focus_share * features.width)
        weights, biases = variation.neurons(count, rng)
        kept = features.width - count
        return replace(
            features,
            weights=np.concatenate([features.weights[:, :kept], weights], axis=1),
            biases=np.concatenate([features.biases[:kept], biases]),
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

    @property
    def width(self) -> int:
        """Neurons at most of a solve that only compares scales."""
        tuning = self.recipe.tuning
        return max(tuning.first_width, tuning.search_width // len(self.problem.fields))

    def solve(self, width: int, scales: Scales, state: State, seed: int, short: bool = False) -> Attempt:
        """One attempt; ``short`` allows two Gauss–Newton steps, enough to compare settings from a good state."""
        recipe = replace(self.recipe, newton=replace(self.recipe.newton, iterations=2)) if short else self.recipe
        rng = np.random.default_rng(seed)
        label = f"width {width}, scale {_text(scales)}"
        return attempt(self.problem, self.source.draw(width, scales, rng), state, rng, recipe, label=label)

    def run(self, width: int, state: State, start: Scales, seed: int, rounds: int) -> tuple[Scales, list[Attempt]]:
        """The best scales found and all attempts, the best one first."""
        small = min(width, self.width)
        best = self.solve(small, start, state, seed)
        tried, scales = [best], start
        visited = {_text(start)}
        for factor in (2.0, 2.0**0.5):
            improved = True
            while improved and len(tried) < rounds:
                improved = False
                for moved in self._neighbours(scales, factor):
                    if _text(moved) in visited or len(tried) >= rounds or self.recipe.over(small):
                        continue
                    visited.add(_text(moved))
                    new = self.solve(small, moved, best.network, seed, short=True)
                    tried.append(new)
                    if new.score < best.score:
                        best, scales, improved = new, moved, True
                        break
        tried.remove(best)
        return scales, [best, *tried]

    def _neighbours(self, scales: Scales, factor: float) -> list[Scales]:
        dim = self.problem.domain.dim
        directions: list[tuple[int, ...]] = [(1,) * dim]
        if isinstance(self.problem.domain, SpaceTime):
            directions = [(0,) + (1,) * (dim - 1), (1,) + (0,) * (dim - 1), (1,) * dim]
        return [
            tuple(s * factor ** (sign * d) for s, d in zip(scales, direction, strict=True))
            for direction in directions
            for sign in (1, -1)
        ]


def first_scales(problem: Problem, width: int, tuning: CollocationTuning) -> Scales:
    """Where the search begins: (width/100)^(1/n), at most 3, and lower in many dimensions; more for fast data."""
    dim = problem.domain.dim
    base = min(3.0, max(0.2, (width / 100) ** (1 / dim) * (1.0 if dim <= 2 else 2.0 / dim**1.5)))
    periodic = set(problem.periodic)
    top = max(2.0, (width / 8) ** (1 / dim))
    rates = np.zeros(dim) if problem.variation is None else tuning.lengths_to_scale * problem.variation.rates
    rates = np.minimum(rates, width / 2)  # more than the features could follow
    return tuple(
        max(top, rate / np.pi) if name in periodic else max(base * (3.0 if periodic else 1.0), rate)
        for name, rate in zip(problem.domain.names, rates.tolist(), strict=True)
    )


def first_width(problem: Problem, tuning: CollocationTuning) -> int:
    """Enough neurons to follow the data, between the first and half of the last width."""
    if problem.variation is None:
        return tuning.first_width
    lengths = float(np.prod(np.maximum(problem.variation.rates, 1.0)))
    width = tuning.first_width
    while 2 * width < min(tuning.lengths_to_width * lengths, tuning.last_width):
        width *= 2
    return width


def _text(scales: Scales) -> str:
    return "×".join(f"{s:.3g}" for s in dict.fromkeys(scales)) if len(set(scales)) <= 2 else str(tuple(scales))
