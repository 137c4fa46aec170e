"""Assembly of residual vector and Jacobian from a problem, features and points.

A column of the Jacobian is F'(u) applied to a feature. With ∂^α column = ridge(|α|) · factor(α), the profile is
evaluated once for each order at each point set, and all derivatives of that order are combined before the product:

    J = Σ_k ridge_k ∘ ( Σ_{|α| = k} (∂F/∂(∂^α u))(z) ⊗ factor(α) ) .
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.collocation.layers import FeatureJets, SubdomainLayer
from rannpde.pde.collocation.subdomains import PointSampler, Subdomain, locate
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term, jets_of
from rannpde.pde.statement.expression import Jet

Block = tuple[int, str, Array]
"""Subdomain, field, and the derivative of the rows by its coefficients (M, columns)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A loss term at points of one subdomain: rows of the system, multiplied by ``scale``."""

    term: Term
    subdomain: int
    jets: FeatureJets
    known: Mapping[sympy.Symbol, Array]
    scale: float | Array = 1.0

    def __len__(self) -> int:
        return len(self.jets.points)

    @property
    def name(self) -> str:
        return self.term.name

    group = name

    @property
    def weight(self) -> float:
        return self.term.weight

    @property
    def inside(self) -> bool:
        """Whether these are rows of an equation."""
        return self.term.kind == "interior"

    def energy(self, blocks: list[Block]) -> Array:
        """Return squared lengths (M,) of the Jacobian rows; for bounds, whose inactive rows vanish, those of the
        field."""
        if self.term.kind == "bounds":
            return np.square(self.jets.values).sum(axis=1)
        return _squares(blocks, len(self))

    def newton(self, state: State, fields: tuple[str, ...]) -> tuple[Array, list[Block]]:
        """F'(u₀) u₀ - F(u₀) and the blocks of F'(u₀) at a state u₀."""
        jets = jets_of(state, fields, self.jets.points, self.term.expression.jets)
        value, partials, blocks = self.blocks(jets)
        shift = np.zeros(len(self))
        for jet, partial in zip(self.term.expression.jets, partials, strict=True):
            shift = shift + partial * jets[jet]
        return shift - value, blocks

    def values(self, fields: Mapping[str, Array]) -> dict[Jet, Array]:
        return {jet: self.jets.value(jet.index, fields[jet.field]) for jet in self.term.expression.jets}

    def residual(self, subdomains: Sequence[Mapping[str, Array]]) -> Array:
        value = self.term.expression.value(self.known, self.values(subdomains[self.subdomain]))
        return self.scale * np.broadcast_to(value, len(self))

    def linearise(self, subdomains: Sequence[Mapping[str, Array]]) -> tuple[Array, list[Block]]:
        """Return the residual, and its derivative by the coefficients in blocks."""
        value, _, blocks = self.blocks(self.values(subdomains[self.subdomain]))
        return self.scale * np.broadcast_to(value, len(self)), blocks

    def blocks(self, values: Mapping[Jet, Array]) -> tuple[Array, list[Array], list[Block]]:
        """Return unscaled residual, coefficients ∂F/∂jet, and scaled blocks of the Jacobian at these jet values."""
        expression = self.term.expression
        value, partials = expression.linearised(self.known, values)
        blocks = []
        for name in expression.fields:
            chosen = [(jet.index, p) for jet, p in zip(expression.jets, partials, strict=True) if jet.field == name]
            block = self.jets.combine([index for index, _ in chosen], [np.asarray(self.scale * p) for _, p in chosen])
            blocks.append((self.subdomain, name, block))
        return value, partials, blocks


@dataclass(frozen=True, eq=False)
class ContinuityRows:
    """Continuity: ∂^index of a field at points of one subdomain equals that at points of another, or of the same if
    periodic."""

    name: str
    field: str
    index: MultiIndex
    sides: tuple[tuple[int, FeatureJets], tuple[int, FeatureJets]]
    scale: float | Array = 1.0
    weight: float = 1.0

    inside = False

    def __len__(self) -> int:
        return len(self.sides[0][1].points)

    @property
    def group(self) -> str:
        """Each order of continuity is a group of its own."""
        return f"{self.name} {self.field} {self.index}"

    def energy(self, blocks: list[Block]) -> Array:
        return _squares(blocks, len(self))

    def newton(self, state: State, fields: tuple[str, ...]) -> tuple[Array, list[Block]]:
        return np.zeros(len(self)), self._blocks()

    def residual(self, subdomains: Sequence[Mapping[str, Array]]) -> Array:
        (left, one), (right, other) = self.sides
        gap = one.value(self.index, subdomains[left][self.field]) - other.value(
            self.index, subdomains[right][self.field]
        )
        return self.scale * gap

    def linearise(self, subdomains: Sequence[Mapping[str, Array]]) -> tuple[Array, list[Block]]:
        return self.residual(subdomains), self._blocks()

    def _blocks(self) -> list[Block]:
        return [
            (subdomain, self.field, jets.combine([self.index], [np.asarray(sign * self.scale)]))
            for sign, (subdomain, jets) in zip((1.0, -1.0), self.sides, strict=True)
        ]


def _squares(blocks: list[Block], rows: int) -> Array:
    """Return squared lengths (rows,) of rows that are given in blocks."""
    return sum((np.einsum("ij,ij->i", block, block) for _, _, block in blocks), np.zeros(rows))


@dataclass(frozen=True, eq=False)
class CollocationSystem:
    """All rows of a problem for features on one or several subdomains; the unknowns are the output weights, one vector.

    The vector is ordered by subdomain, then by field, then by column.
    """

    fields: tuple[str, ...]
    features: tuple[SubdomainLayer, ...]
    rows: tuple[Rows | ContinuityRows, ...]

    @property
    def size(self) -> int:
        return len(self.fields) * sum(features.columns for features in self.features)

    @property
    def height(self) -> int:
        return sum(len(rows) for rows in self.rows)

    @property
    def linear(self) -> bool:
        return all(isinstance(rows, ContinuityRows) or rows.term.expression.linear for rows in self.rows)

    def split(self, vector: Array) -> list[dict[str, Array]]:
        """Return the vector as field → coefficients (columns,), one mapping per subdomain."""
        subdomains, start = [], 0
        for features in self.features:
            subdomain = {}
            for name in self.fields:
                subdomain[name] = vector[start : start + features.columns]
                start += features.columns
            subdomains.append(subdomain)
        return subdomains

    def residual(self, vector: Array) -> Array:
        """Return the residual (height,)."""
        subdomains = self.split(vector)
        return np.concatenate([rows.residual(subdomains) for rows in self.rows])

    def linearise(self, vector: Array) -> tuple[Array, Array]:
        """Return residual (height,) and Jacobian (height, size), the latter in Fortran order for LAPACK."""
        subdomains = self.split(vector)
        residual, jacobian, _ = self._filled(rows.linearise(subdomains) for rows in self.rows)
        return residual, jacobian

    def first_step(
        self, state: State, weights: Mapping[str, float], condition_weight: float
    ) -> tuple[CollocationSystem, Array, Array]:
        """The balanced system, and Jacobian and right-hand side of the full Newton step from any state,

            F'(u₀) u₁ = F'(u₀) u₀ - F(u₀) .

        The state need not lie in the span of the features: only its derivatives at the points are used.

        Balance: a row of the Jacobian of Δu is hundreds of times as long as one of u, so equal weights would let the
        equation drown the conditions. Rows of conditions are divided by the root mean square length of the Jacobian
        rows of their term. Rows of equations are divided each by its own length, so that a residual is measured in the
        local length of the features: near a narrow load it may be 10⁷ times larger than elsewhere and mean the same.
        Conditions then count ``condition_weight`` times, and the user's weights multiply that.
        """
        right, jacobian, energies = self._filled(rows.newton(state, self.fields) for rows in self.rows)
        scaled = self._balanced(energies, weights, condition_weight)
        factors = np.concatenate([np.broadcast_to(rows.scale, len(rows)) for rows in scaled.rows])
        return scaled, np.multiply(jacobian, factors[:, None], out=jacobian), right * factors

    def _filled(self, parts: Iterator[tuple[Array, list[Block]]]) -> tuple[Array, Array, list[Array]]:
        """Return all rows below each other: a vector, the matrix of the blocks, and the squared row lengths of each
        group."""
        reserve(3 * FLOAT_BYTES * self.height * self.size, f"a least-squares matrix of {self.height} × {self.size}")
        vector, matrix = np.zeros(self.height), np.zeros((self.height, self.size), order="F")
        starts, top, energies = self.starts(), 0, []
        for rows, (values, blocks) in zip(self.rows, parts, strict=True):
            checkpoint()
            bottom = top + len(rows)
            vector[top:bottom] = values
            for subdomain, name, block in blocks:
                left = starts[subdomain, name]
                matrix[top:bottom, left : left + block.shape[1]] += block
            energies.append(rows.energy(blocks))
            top = bottom
        return vector, matrix, energies

    def _balanced(
        self, energies: list[Array], weights: Mapping[str, float], condition_weight: float
    ) -> CollocationSystem:
        """Return the balanced system; terms of one name on different sides are one group.

        energies : squared lengths of the Jacobian rows
        """
        groups: dict[str, tuple[float, int]] = {}
        for rows, energy in zip(self.rows, energies, strict=True):
            total, count = groups.get(rows.group, (0.0, 0))
            groups[rows.group] = (total + float(energy.sum()), count + len(rows))
        scaled = []
        for rows, energy in zip(self.rows, energies, strict=True):
            total, count = groups[rows.group]
            factor = rows.weight * weights.get(rows.name, 1.0) * (1.0 if rows.inside else condition_weight)
            length = np.sqrt(np.where(energy > 0, energy, 1.0)) if rows.inside else np.sqrt(total / count) or 1.0
            scaled.append(replace(rows, scale=factor / length))
        return replace(self, rows=tuple(scaled))

    def starts(self) -> dict[tuple[int, str], int]:
        """Return the first column of each (subdomain, field)."""
        starts, position = {}, 0
        for subdomain, features in enumerate(self.features):
            for name in self.fields:
                starts[subdomain, name] = position
                position += features.columns
        return starts

    def sums(self, vector: Array) -> dict[str, tuple[float, int]]:
        """Return name → (sum of squares of the unscaled residual, number of rows)."""
        subdomains = self.split(vector)
        sums: dict[str, tuple[float, int]] = {}
        for rows in self.rows:
            squares = float(np.square(rows.residual(subdomains) / rows.scale).sum())
            total, count = sums.get(rows.name, (0.0, 0))
            sums[rows.name] = (total + squares, count + len(rows))
        return sums


# --------------------------------------------------------------------------------------------- from a problem


def assemble(problem: Problem, subdomains: tuple[Subdomain, ...], sampler: PointSampler) -> CollocationSystem:
    """Return all rows of the problem, unweighted; a point belongs to the features of its subdomain."""
    words = problem.vocabulary
    rows: list[Rows | ContinuityRows] = []
    interior = sampler.interior(problem)
    shared: dict[int, FeatureJets] = {}
    home = locate(subdomains, interior)
    for term in problem.interior + problem.limits:
        for number, subdomain in enumerate(subdomains):
            inside = interior[home == number]
            jets = shared.setdefault(number, FeatureJets(subdomain.features, inside))
            rows.append(Rows(term, number, jets, term.known(inside, words)))
    for term in problem.constraints:
        points = sampler.condition(problem, term)
        home_here = locate(subdomains, points)
        for number, subdomain in enumerate(subdomains):
            inside = home_here == number
            if inside.any():
                data = None if term.data is None else term.data[inside]
                here = points[inside]
                rows.append(Rows(term, number, FeatureJets(subdomain.features, here), term.known(here, words, data)))
    rows += _periodic_rows(problem, subdomains, sampler)
    rows += _interface_rows(problem, subdomains, sampler)
    return CollocationSystem(
        problem.fields, tuple(subdomain.features for subdomain in subdomains), tuple(r for r in rows if len(r))
    )


def _periodic_rows(problem: Problem, subdomains: tuple[Subdomain, ...], sampler: PointSampler) -> list[ContinuityRows]:
    rows = []
    for pairing in problem.pairings:
        axis = problem.domain.names.index(pairing.coordinate)
        lower, upper = problem.domain.bounds[axis]
        one = sampler.sample(problem.domain, max(20, sampler.columns // 2))
        one[:, axis] = lower
        other = one.copy()
        other[:, axis] = upper
        for left, right, pick in _pairs(subdomains, one, other):
            for name, order in pairing.orders.items():
                for k in range(order):
                    index = tuple(k * (a == axis) for a in range(problem.domain.dim))
                    sides = (
                        (left, FeatureJets(subdomains[left].features, one[pick])),
                        (right, FeatureJets(subdomains[right].features, other[pick])),
                    )
                    rows.append(ContinuityRows(pairing.name, name, index, sides, weight=pairing.weight))
    return rows


def _interface_rows(problem: Problem, subdomains: tuple[Subdomain, ...], sampler: PointSampler) -> list[ContinuityRows]:
    """Return the continuity of values and derivatives below the order of the equations across inner faces."""
    rows = []
    for left, right, axis, points in _interfaces(problem, subdomains, sampler):
        one, other = FeatureJets(subdomains[left].features, points), FeatureJets(subdomains[right].features, points)
        for name in problem.fields:
            for k in range(max(1, problem.order(name, axis))):
                index = tuple(k * (a == axis) for a in range(problem.domain.dim))
                rows.append(ContinuityRows("continuity", name, index, ((left, one), (right, other))))
    return rows


def _interfaces(
    problem: Problem, subdomains: tuple[Subdomain, ...], sampler: PointSampler
) -> Iterator[tuple[int, int, int, Array]]:
    for left, subdomain in enumerate(subdomains):
        for right, other in enumerate(subdomains):
            touching = [a for a in range(problem.domain.dim) if subdomain.bounds[a, 1] == other.bounds[a, 0]]
            rest = [a for a in range(problem.domain.dim) if a not in touching]
            if len(touching) == 1 and (subdomain.bounds[rest] == other.bounds[rest]).all():
                axis = touching[0]
                count = 1 if problem.domain.dim == 1 else max(20, sampler.columns // 2)
                points = sampler.rng.uniform(
                    subdomain.bounds[:, 0], subdomain.bounds[:, 1], (count, problem.domain.dim)
                )
                points[:, axis] = subdomain.bounds[axis, 1]
                yield left, right, axis, points


def _pairs(subdomains: tuple[Subdomain, ...], one: Array, other: Array) -> Iterator[tuple[int, int, Array]]:
    homes = np.stack([locate(subdomains, one), locate(subdomains, other)], axis=1)
    for left, right in np.unique(homes, axis=0):
        yield int(left), int(right), (homes == (left, right)).all(axis=1)
