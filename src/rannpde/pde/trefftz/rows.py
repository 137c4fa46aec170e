"""Rows of boundary conditions, and what a function misses of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import LeastSquares, least_squares


@dataclass(frozen=True, eq=False)
class ConditionPoints:
    """Collocation points of one condition.

    points (M, n), weights (M,): √ of the share of the boundary that each stands for; scales (M,): the length over which
    the solution may vary there, with which derivatives are made comparable to values; groups (M,): to which group of
    features an error there is charged
    """

    term: Term
    points: Array
    weights: Array
    scales: Array
    groups: Array


@dataclass(frozen=True, eq=False)
class FacePoints:
    """Collocation points (M, 2) on a face between two cells, with normals (M, 2) out of the first one; weights, scales
    and groups as ``ConditionPoints`` has them."""

    cells: tuple[int, int]
    curve: int
    points: Array
    normals: Array
    weights: Array
    scales: Array
    groups: Array


@dataclass(frozen=True, eq=False)
class TrefftzRows:
    """matrix (M, N) · c = rhs (M,), each row divided by the size of its coefficients; ``weights`` are not applied."""

    matrix: Array
    rhs: Array
    weights: Array

    @property
    def count(self) -> int:
        return len(self.rhs)

    def solved(self, cutoff: float) -> LeastSquares:
        """The minimiser of the weighted residual, by orthogonal factorisation with a ridge of the cutoff × rounding."""
        return least_squares(self.matrix * self.weights[:, None], self.rhs * self.weights, cutoff)


def feature_values(families: Sequence[FeatureFamily], points: Array, index: MultiIndex) -> Array:
    """∂^index of all features, (M, fields, N)."""
    return np.concatenate([family.values(points, index) for family in families], axis=2)


def boundary_rows(
    families: Sequence[FeatureFamily], part: object, places: Sequence[ConditionPoints], words: Vocabulary
) -> TrefftzRows:
    """The conditions for Σ c_j feature_j + part, one row for every point."""
    sides, weights, start = [], [], 0
    columns, rows = sum(family.columns for family in families), sum(len(place.points) for place in places)
    reserve(3.0 * FLOAT_BYTES * rows * columns, "the values of the features on the boundary")
    tables = _tables(lambda points, index: feature_values(families, points, index), places)
    parts = _tables(lambda points, index: part.derivative(points, index), places)  # type: ignore[attr-defined]
    matrix = np.empty((rows, columns), order="F")  # as LAPACK wants it
    for number, place in enumerate(places):
        checkpoint()
        term = place.term
        known = term.known(place.points, words, term.data)
        own, given = (
            {index: table[number] for index, table in both.items() if number in table} for both in (tables, parts)
        )
        block, residual, size = condition_rows(term.expression, known, given, place, own, words)
        np.divide(block, size[:, None], out=matrix[start : start + len(size)])
        sides.append(-residual / size)
        weights.append(place.weights * term.weight)
        start += len(size)
    return TrefftzRows(matrix, np.concatenate(sides), np.concatenate(weights))


@dataclass(frozen=True, eq=False)
class Misses:
    """What a function misses of all conditions: errors (M,), divided as rows are, with their weights and groups."""

    errors: Array
    weights: Array
    groups: Array


def boundary_misses(network: object, places: Sequence[ConditionPoints], words: Vocabulary) -> Misses:
    """The conditions at points for a function; much less work than the rows of all its features."""
    errors, tables = [], _tables(lambda points, index: network.derivative(points, index), places)  # type: ignore[attr-defined]
    for number, place in enumerate(places):
        known = place.term.known(place.points, words, place.term.data)
        own = {index: table[number] for index, table in tables.items() if number in table}
        residual, size = condition_residual(place.term.expression, known, own, place, words)
        errors.append(residual / size)
    weights = [place.weights * place.term.weight for place in places]
    groups = [place.groups for place in places]
    return Misses(*(np.concatenate(found) for found in (errors, weights, groups)))


def condition_residual(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    derivatives: Mapping[MultiIndex, Array],
    place: ConditionPoints | FacePoints,
    words: Vocabulary,
) -> tuple[Array, Array]:
    """The residual (M,) of a condition for a function, and the size (M,) by which rows are divided.

    derivatives : of the function at the points, (M, fields)
    """
    jets = {jet: derivatives[jet.index][:, words.fields.index(jet.field)] for jet in expression.jets}
    residual, partials = expression.linearised(known, jets)
    size = np.zeros(len(place.points))
    for jet, partial in zip(expression.jets, partials, strict=True):
        size = size + np.abs(partial) * place.scales ** -float(jet.order)
    return np.broadcast_to(residual, size.shape), np.maximum(size, 1e-300)


def condition_rows(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    part: Mapping[MultiIndex, Array],
    place: ConditionPoints | FacePoints,
    tables: Mapping[MultiIndex, Array],
    words: Vocabulary,
) -> tuple[Array, Array, Array]:
    """A condition as rows of coefficients (M, N), the residual of the particular solution (M,), and the size (M,) of
    both: coefficients times the scale over which features vary.

    part, tables : derivative → that of the particular solution (M, fields), and of all features (M, fields, N)
    """
    residual, size = condition_residual(expression, known, part, place, words)
    zero = {jet: np.zeros(len(place.points)) for jet in expression.jets}
    total: Array | None = None
    for jet, partial in zip(expression.jets, expression.linearised(known, zero)[1], strict=True):
        table = tables[jet.index][:, words.fields.index(jet.field)]
        factor = np.asarray(partial, dtype=float)
        block = table if (factor == 1).all() else np.broadcast_to(factor, (len(table),))[:, None] * table
        total = block if total is None else total + block
    assert total is not None
    return total, residual, size


def _tables(
    values: Callable[[Array, MultiIndex], Array], places: Sequence[ConditionPoints]
) -> dict[MultiIndex, dict[int, Array]]:
    """Derivative → number of a place → values there; all points that ask for a derivative at once, and each once."""
    found: dict[MultiIndex, dict[int, Array]] = {}
    indices = {jet.index for place in places for jet in place.term.expression.jets}
    for index in indices:
        own = [k for k, place in enumerate(places) if any(jet.index == index for jet in place.term.expression.jets)]
        checkpoint()
        points = {id(places[k].points): places[k].points for k in own}  # conditions of one side share their points
        every = values(np.concatenate(list(points.values())), index)
        ends = np.cumsum([len(one) for one in points.values()])[:-1]
        parts = dict(zip(points, np.split(every, ends), strict=True))
        found[index] = {k: parts[id(places[k].points)] for k in own}
    return found
