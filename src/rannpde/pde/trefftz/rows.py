"""Rows of boundary conditions, and the residuals of a function in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import LeastSquares, least_squares
from rannpde.pde.trefftz.two_level import ColumnLevels, TwoLevelLeastSquares, two_level_least_squares


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
    """matrix (M, N) · c = rhs (M,), each row divided by the size of its coefficients; ``weights`` are not applied.

    levels : of the columns, which follow each other level after level, where part of them is found by iteration
    """

    matrix: Array
    rhs: Array
    weights: Array
    levels: ColumnLevels | None = None

    @property
    def count(self) -> int:
        return len(self.rhs)

    @property
    def data(self) -> float:
        """The L² norm of the right-hand side."""
        return float(np.linalg.norm(self.rhs * self.weights))

    def solved(self, accuracy: float = 0.0) -> LeastSquares | TwoLevelLeastSquares:
        """The minimiser of the weighted residual, by orthogonal factorisation with a ridge of rounding, in
        part by iteration, to an accuracy, where that is much less work; the matrix is overwritten."""
        weighted, rhs = np.multiply(self.matrix, self.weights[:, None], out=self.matrix), self.rhs * self.weights
        if self.levels is None:
            return least_squares(weighted, rhs)
        return two_level_least_squares(weighted, rhs, self.levels, accuracy)


def feature_values(families: Sequence[FeatureFamily], points: Array, index: MultiIndex) -> Array:
    """∂^index of all features, (M, fields, N)."""
    return np.concatenate([family.values(points, index) for family in families], axis=2)


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Conditions that ask for the same derivatives, at points (P, n).

    entries : derivative and number of a field → rows (R,), their points (R,) by number, and factors (R,)
    """

    points: Array
    entries: Mapping[tuple[MultiIndex, int], tuple[Array, Array, Array]]

    @property
    def indices(self) -> list[MultiIndex]:
        return list(dict.fromkeys(index for index, _ in self.entries))


def boundary_rows(
    families: Sequence[FeatureFamily],
    part: object,
    conditions: Sequence[ConditionPoints],
    words: Vocabulary,
    levels: ColumnLevels | None = None,
) -> TrefftzRows:
    """The conditions for Σ c_j feature_j + part, one row for every point; columns in the order of levels, if any."""
    columns, count = sum(family.columns for family in families), sum(len(condition.points) for condition in conditions)
    reserve(2.0 * FLOAT_BYTES * count * columns, "the values of the features on the boundary")
    starts = np.cumsum([0, *(len(condition.points) for condition in conditions)])
    rhs, groups = np.zeros(count), []
    for own in _alike(conditions):
        points, homes = _points(conditions, own)
        entries: dict[tuple[MultiIndex, int], list[tuple[Array, Array, Array]]] = {}
        given = part.derivatives(points, _indices(conditions[own[0]]))  # type: ignore[attr-defined]
        for k, home in zip(own, homes, strict=True):
            checkpoint()
            condition, rows = conditions[k], np.arange(starts[k], starts[k + 1])
            here = {index: table[home] for index, table in given.items()}
            residual, size, partials = condition_residual(condition, here, words)
            rhs[rows] = -residual / size
            for jet, partial in zip(condition.term.expression.jets, partials, strict=True):
                factors = np.broadcast_to(np.asarray(partial, dtype=float) / size, (len(rows),))
                key = jet.index, words.fields.index(jet.field)
                entries.setdefault(key, []).append((rows, home, factors))
        joined = {key: tuple(map(np.concatenate, zip(*every, strict=True))) for key, every in entries.items()}
        groups.append(RowGroup(points, joined))  # type: ignore[arg-type]
    matrix, start = np.empty((count, columns), order="F"), 0  # as LAPACK wants it
    order = np.arange(columns) if levels is None else np.argsort(levels.order)
    for family in families:
        checkpoint()
        matrix.T[order[start : start + family.columns]] = _feature_rows(family, groups, count).T
        start += family.columns
    weights = [condition.weights * condition.term.weight for condition in conditions]
    return TrefftzRows(matrix, rhs, np.concatenate(weights), levels)


def _feature_rows(family: FeatureFamily, groups: Sequence[RowGroup], count: int) -> Array:
    """The columns (count, N) of one family: Σ factor ∂^index field."""
    total = np.zeros((count, family.columns), order="F")
    for group in groups:
        tables = {index: family.values(group.points, index) for index in group.indices}
        for (index, field), (rows, home, factors) in group.entries.items():
            total[_run(rows)] += factors[:, None] * tables[index][_run(home), field]
    return total


def _run(numbers: Array) -> Array | slice:
    """Numbers that follow each other as a slice, which selects without a copy."""
    if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers))):
        return slice(int(numbers[0]), int(numbers[0]) + len(numbers))
    return numbers


@dataclass(frozen=True, eq=False)
class Misses:
    """The residuals of a function in all conditions: errors (M,), scaled like rows, with their weights and groups."""

    errors: Array
    weights: Array
    groups: Array


def boundary_misses(network: object, conditions: Sequence[ConditionPoints], words: Vocabulary) -> Misses:
    """The conditions at points for a function; much less work than the rows of all its features."""
    errors: list[Array] = [np.empty(0)] * len(conditions)
    for own in _alike(conditions):
        points, homes = _points(conditions, own)
        tables = network.derivatives(points, _indices(conditions[own[0]]))  # type: ignore[attr-defined]
        for k, home in zip(own, homes, strict=True):
            here = {index: table[home] for index, table in tables.items()}
            residual, size, _ = condition_residual(conditions[k], here, words)
            errors[k] = residual / size
    weights = [condition.weights * condition.term.weight for condition in conditions]
    groups = [condition.groups for condition in conditions]
    return Misses(*(np.concatenate(parts) for parts in (errors, weights, groups)))


def condition_residual(
    condition: ConditionPoints, derivatives: Mapping[MultiIndex, Array], words: Vocabulary
) -> tuple[Array, Array, list[Array]]:
    """The residual (M,) of a condition for a function, the size (M,) by which rows are divided, and its partial
    derivatives with respect to those of the fields.

    derivatives : of the function at the points, (M, fields)
    """
    known = condition.term.known(condition.points, words, condition.term.data)
    return expression_residual(condition.term.expression, known, derivatives, condition, words)


def expression_residual(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    derivatives: Mapping[MultiIndex, Array],
    condition: ConditionPoints | FacePoints,
    words: Vocabulary,
) -> tuple[Array, Array, list[Array]]:
    """The same of an expression, on the boundary or on a face: coefficients times the scale over which features vary
    are the size."""
    jets = {jet: derivatives[jet.index][:, words.fields.index(jet.field)] for jet in expression.jets}
    residual, partials = expression.linearised(known, jets)
    size = np.zeros(len(condition.points))
    for jet, partial in zip(expression.jets, partials, strict=True):
        size = size + np.abs(partial) * condition.scales ** -float(jet.order)
    return np.broadcast_to(residual, size.shape), np.maximum(size, 1e-300), partials


def condition_rows(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    part: Mapping[MultiIndex, Array],
    condition: ConditionPoints | FacePoints,
    tables: Mapping[MultiIndex, Array],
    words: Vocabulary,
) -> tuple[Array, Array, Array]:
    """A condition as rows of coefficients (M, N), the residual of the particular solution (M,), and the size (M,).

    part, tables : derivative → that of the particular solution (M, fields), and of all features (M, fields, N)
    """
    residual, size, partials = expression_residual(expression, known, part, condition, words)
    blocks = [
        np.broadcast_to(np.asarray(partial, dtype=float), size.shape)[:, None]
        * tables[jet.index][:, words.fields.index(jet.field)]
        for jet, partial in zip(expression.jets, partials, strict=True)
    ]
    return np.sum(blocks, axis=0), residual, size


def condition_coefficients(terms: Sequence[Term], points: Array, words: Vocabulary) -> tuple[list[Jet], Array]:
    """The derivatives in linear conditions, and (M, conditions, derivatives + 1): their coefficients, then the data."""
    jets = list({jet: None for term in terms for jet in term.expression.jets})
    table = np.zeros((len(points), len(terms), len(jets) + 1))
    for row, term in enumerate(terms):
        zero = {jet: np.zeros(len(points)) for jet in term.expression.jets}
        residual, partials = term.expression.linearised(term.known(points, words), zero)
        table[:, row, -1] = residual
        for jet, partial in zip(term.expression.jets, partials, strict=True):
            table[:, row, jets.index(jet)] = partial
    return jets, table


def _indices(condition: ConditionPoints) -> list[MultiIndex]:
    return list(dict.fromkeys(jet.index for jet in condition.term.expression.jets))


def _alike(conditions: Sequence[ConditionPoints]) -> list[list[int]]:
    """The numbers of conditions that ask for the same derivatives, which are evaluated at all their points at once."""
    alike: dict[frozenset[MultiIndex], list[int]] = {}
    for number, condition in enumerate(conditions):
        alike.setdefault(frozenset(_indices(condition)), []).append(number)
    return list(alike.values())


def _points(conditions: Sequence[ConditionPoints], own: Sequence[int]) -> tuple[Array, list[Array]]:
    """The points (P, n) of some conditions, each once, and the numbers (M,) of those of every condition among them."""
    # conditions of one side share their points
    distinct = {id(conditions[k].points): conditions[k].points for k in own}
    starts = dict(zip(distinct, np.cumsum([0, *map(len, distinct.values())]).tolist()[:-1], strict=True))
    homes = [starts[id(conditions[k].points)] + np.arange(len(conditions[k].points)) for k in own]
    return np.concatenate(list(distinct.values())), homes
