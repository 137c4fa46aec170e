"""From a problem to a least-squares system: points for every term, and rows for every piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.region import Region
from rannpde.pde.collocation.pieces import Piece, locate
from rannpde.pde.collocation.system import Jets, Matching, Rows, System
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.reading import read

Density = Callable[[Array], Array]


@dataclass(frozen=True)
class Sampler:
    """How many points, and where: Sobol points, or drawn from half uniform, half proportional to a density."""

    columns: int
    rng: np.random.Generator
    tuning: CollocationTuning
    density: Density | None = None
    points_per_column: float = 3.0

    def interior(self, problem: Problem) -> Array:
        """Points inside, a share of them where the data vary, if that is concentrated."""
        count = max(50, round(self.points_per_column * self.columns))
        focus = np.empty((0, problem.domain.dim))
        if problem.variation is not None:
            focus = problem.variation.sample(round(self.tuning.focus_share * count), self.rng)
        return np.concatenate([self.draw(problem.domain, count), focus])

    def condition(self, problem: Problem, term: Term) -> Array:
        """Points on the side of a term; all conditions together get about as many as there are columns."""
        if term.points is not None:
            return term.points
        region: Any = term.region
        if not region.axes:  # the end of an interval
            return region.sample(1, rng=self.rng)
        sides = sum(other.points is None and bool(other.region.axes) for other in problem.constraints)  # type: ignore[union-attr]
        return self.draw(region, max(20, round(self.columns / sides)))

    def draw(self, region: Region, count: int) -> Array:
        if self.density is None:
            return region.sample(count, rng=self.rng, method="sobol")
        candidates = region.sample(self.tuning.spread * count, rng=self.rng)
        weight = self.density(candidates)
        chance = 0.5 * weight / weight.sum() + 0.5 / len(candidates)
        return candidates[self.rng.choice(len(candidates), count, replace=False, p=chance)]


def assemble(problem: Problem, pieces: tuple[Piece, ...], sampler: Sampler) -> System:
    """All rows of the problem, unweighted. Points of one piece go to the features of that piece."""
    words = problem.vocabulary
    rows: list[Rows | Matching] = []
    interior = sampler.interior(problem)
    shared: dict[int, Jets] = {}
    home = locate(pieces, interior)
    for term in problem.interior + bound_terms(problem):
        for number, piece in enumerate(pieces):
            inside = interior[home == number]
            jets = shared.setdefault(number, Jets(piece.features, inside))
            rows.append(Rows(term, number, jets, term.known(inside, words)))
    for term in problem.constraints:
        points = sampler.condition(problem, term)
        home_here = locate(pieces, points)
        for number, piece in enumerate(pieces):
            inside = home_here == number
            if inside.any():
                data = None if term.data is None else term.data[inside]
                here = points[inside]
                rows.append(Rows(term, number, Jets(piece.features, here), term.known(here, words, data)))
    rows += _periodic_rows(problem, pieces, sampler)
    rows += _interface_rows(problem, pieces, sampler)
    return System(problem.fields, tuple(piece.features for piece in pieces), tuple(r for r in rows if len(r)))


def bound_terms(problem: Problem) -> tuple[Term, ...]:
    """max(lower - u, 0) = 0 and max(u - upper, 0) = 0 inside the domain: rows that act only where a bound is broken."""
    texts = []
    for name, (lower, upper) in problem.bounds.items():
        texts += [(name, f"max({lower!r} - {name}, 0)")] if lower is not None else []
        texts += [(name, f"max({name} - {upper!r}, 0)")] if upper is not None else []
    return tuple(
        Term(f"bounds of {name}", "bounds", read(text, problem.vocabulary), problem.domain) for name, text in texts
    )


def _periodic_rows(problem: Problem, pieces: tuple[Piece, ...], sampler: Sampler) -> list[Matching]:
    rows = []
    for pairing in problem.pairings:
        axis = problem.domain.names.index(pairing.coordinate)
        lower, upper = problem.domain.bounds[axis]
        one = sampler.draw(problem.domain, max(20, sampler.columns // 2))
        one[:, axis] = lower
        other = one.copy()
        other[:, axis] = upper
        for left, right, pick in _pairs(pieces, one, other):
            for name, order in pairing.orders.items():
                for k in range(order):
                    index = tuple(k * (a == axis) for a in range(problem.domain.dim))
                    sides = (
                        (left, Jets(pieces[left].features, one[pick])),
                        (right, Jets(pieces[right].features, other[pick])),
                    )
                    rows.append(Matching(pairing.name, name, index, sides, weight=pairing.weight))
    return rows


def _interface_rows(problem: Problem, pieces: tuple[Piece, ...], sampler: Sampler) -> list[Matching]:
    """Continuity of values and derivatives below the order of the equations across inner faces."""
    rows = []
    for left, right, axis, points in _interfaces(problem, pieces, sampler):
        one, other = Jets(pieces[left].features, points), Jets(pieces[right].features, points)
        for name in problem.fields:
            for k in range(max(1, problem.order(name, axis))):
                index = tuple(k * (a == axis) for a in range(problem.domain.dim))
                rows.append(Matching("continuity", name, index, ((left, one), (right, other))))
    return rows


def _interfaces(problem: Problem, pieces: tuple[Piece, ...], sampler: Sampler) -> Iterator[tuple[int, int, int, Array]]:
    for left, piece in enumerate(pieces):
        for right, other in enumerate(pieces):
            touching = [a for a in range(problem.domain.dim) if piece.bounds[a, 1] == other.bounds[a, 0]]
            rest = [a for a in range(problem.domain.dim) if a not in touching]
            if len(touching) == 1 and (piece.bounds[rest] == other.bounds[rest]).all():
                axis = touching[0]
                count = 1 if problem.domain.dim == 1 else max(20, sampler.columns // 2)
                points = sampler.rng.uniform(piece.bounds[:, 0], piece.bounds[:, 1], (count, problem.domain.dim))
                points[:, axis] = piece.bounds[axis, 1]
                yield left, right, axis, points


def _pairs(pieces: tuple[Piece, ...], one: Array, other: Array) -> Iterator[tuple[int, int, Array]]:
    homes = np.stack([locate(pieces, one), locate(pieces, other)], axis=1)
    for left, right in np.unique(homes, axis=0):
        yield int(left), int(right), (homes == (left, right)).all(axis=1)
