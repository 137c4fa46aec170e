"""From a problem to a least-squares system: points for every term, rows for every piece, weights that balance.

Balance. A row of the Jacobian of Δu is hundreds of times as long as one of u, so equal weights would let the
equation drown the conditions. The rows of each term are divided by the root mean square length of its Jacobian rows at
the first guess; conditions then count ``CONDITION_WEIGHT`` times, and the user's weights multiply that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rannpde.pde.collocation.pieces import Piece, locate
from rannpde.pde.collocation.system import Block, Jets, Matching, Rows, System, collocate
from rannpde.pde.functions import State, jets_of
from rannpde.pde.problem.conditions import Term
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import read

Array = np.ndarray
Density = Callable[[Array], Array]

CONDITION_WEIGHT = 10.0
"""Empirical: non-linear Poisson gains up to a digit over weight 1."""
POINTS_PER_COLUMN = 3.0
SPREAD = 2
"""Candidates drawn for each point that a density keeps."""


@dataclass(frozen=True)
class Sampler:
    """How many points, and where: Sobol points, or drawn from half uniform, half proportional to a density."""

    columns: int
    rng: np.random.Generator
    density: Density | None = None
    points_per_column: float = POINTS_PER_COLUMN

    def interior(self, problem: Problem) -> Array:
        return self.draw(problem.domain, max(50, round(self.points_per_column * self.columns)))

    def condition(self, problem: Problem, term: Term) -> Array:
        """Points on the side of a term; all conditions together get about as many as there are columns."""
        if term.points is not None:
            return term.points
        region: Any = term.region
        if not region.axes:  # the end of an interval
            return region.sample(1, rng=self.rng)
        sides = sum(other.points is None and bool(other.region.axes) for other in problem.constraints)  # type: ignore[union-attr]
        return self.draw(region, max(20, round(self.columns / sides)))

    def draw(self, region: Any, count: int) -> Array:
        if self.density is None:
            return region.sample(count, rng=self.rng, method="sobol")
        candidates = region.sample(SPREAD * count, rng=self.rng)
        weight = self.density(candidates)
        chance = 0.5 * weight / weight.sum() + 0.5 / len(candidates)
        return candidates[self.rng.choice(len(candidates), count, replace=False, p=chance)]


def assemble(problem: Problem, pieces: tuple[Piece, ...], sampler: Sampler) -> System:
    """All rows of the problem, unweighted. Points of one piece go to the features of that piece."""
    coordinates = problem.vocabulary.coordinates
    rows: list[Rows | Matching] = []
    interior = sampler.interior(problem)
    shared: dict[int, Jets] = {}
    home = locate(pieces, interior)
    for term in problem.interior + bound_terms(problem):
        for number, piece in enumerate(pieces):
            inside = interior[home == number]
            jets = shared.setdefault(number, Jets(piece.features, inside))
            rows.append(Rows(term, number, jets, term.known(inside, coordinates)))
    for term in problem.constraints:
        points = sampler.condition(problem, term)
        home_here = locate(pieces, points)
        for number, piece in enumerate(pieces):
            inside = home_here == number
            if inside.any():
                data = None if term.data is None else term.data[inside]
                rows.append(collocate(term, number, piece.features, points[inside], coordinates, data))
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
                    rows.append(Matching(pairing.name, name, index, sides))
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


# ------------------------------------------------------------------------------------- balance and first step


def first_step(system: System, state: State, weights: Mapping[str, float]) -> tuple[System, Array, Array]:
    """The balanced system, and Jacobian and right-hand side of the full Newton step from any state,

        F'(u₀) u₁ = F'(u₀) u₀ - F(u₀) .

    The state need not lie in the span of the features: only its derivatives at the points are used.
    """
    jacobian = np.zeros((system.height, system.size), order="F")
    right = np.zeros(system.height)
    starts, top = system.starts(), 0
    energies: list[float] = []
    for rows in system.rows:
        bottom = top + len(rows)
        right[top:bottom], blocks = _newton_rows(rows, state, system)
        for piece, name, block in blocks:
            left = starts[piece, name]
            jacobian[top:bottom, left : left + block.shape[1]] += block
        energies.append(_energy(rows, blocks))
        top = bottom
    scaled = balanced(system, energies, weights)
    factors = np.concatenate([np.full(len(rows), rows.scale) for rows in scaled.rows])
    return scaled, np.multiply(jacobian, factors[:, None], out=jacobian), right * factors


def balanced(system: System, energies: list[float], weights: Mapping[str, float]) -> System:
    """Rows scaled as the module says; energies are the sums of squared lengths of the Jacobian rows."""
    groups: dict[str, tuple[float, int]] = {}
    for rows, energy in zip(system.rows, energies, strict=True):
        total, count = groups.get(_key(rows), (0.0, 0))
        groups[_key(rows)] = (total + energy, count + len(rows))
    scaled = []
    for rows in system.rows:
        total, count = groups[_key(rows)]
        interior = isinstance(rows, Rows) and rows.term.kind == "interior"
        own = 1.0 if isinstance(rows, Matching) else rows.term.weight
        share = own * weights.get(rows.name, 1.0) * (1.0 if interior else CONDITION_WEIGHT)
        scaled.append(replace(rows, scale=share / (np.sqrt(total / count) or 1.0)))
    return replace(system, rows=tuple(scaled))


def _key(rows: Rows | Matching) -> str:
    """Terms of one name on different sides are one group; orders of continuity are groups of their own."""
    return rows.name if isinstance(rows, Rows) else f"{rows.name} {rows.field} {rows.index}"


def _energy(rows: Rows | Matching, blocks: list[Block]) -> float:
    if isinstance(rows, Rows) and rows.term.kind == "bounds":  # inactive rows are zero: take the values of the field
        return float(np.square(rows.jets.ridge(0)).sum())
    return sum(float(np.einsum("ij,ij->", block, block)) for _, _, block in blocks)


def _newton_rows(rows: Rows | Matching, state: State, system: System) -> tuple[Any, list[Block]]:
    if isinstance(rows, Matching):
        zero = [dict.fromkeys(system.fields, np.zeros(features.columns)) for features in system.features]
        return 0.0, rows.linearise(zero)[1]
    jets = jets_of(state, system.fields, rows.jets.points, rows.term.expression.jets)
    value, partials, blocks = rows.blocks(jets)
    shift = sum(
        (p * jets[jet] for jet, p in zip(rows.term.expression.jets, partials, strict=True)), np.zeros(len(rows))
    )
    return shift - value, blocks
