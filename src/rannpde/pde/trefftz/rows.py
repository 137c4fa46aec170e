"""Rows of boundary conditions, least squares that keeps digits, and how errors on the boundary act inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy.linalg import get_lapack_funcs, solve_triangular, svdvals
from scipy.sparse.linalg import svds

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, factorising, reserve
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.families import FeatureFamily

SAFE = 1e-9
"""Size on the boundary, over that of the coefficients, below which combinations of features are too noisy to tell how
stable a problem is."""

PANEL = 64
"""Columns that LAPACK's factorisation treats at once."""


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
        return least_squares(self, cutoff)


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


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The minimiser of ‖weights (matrix c - rhs)‖, and the factor that tells how rows act on columns.

    sizes (N,) of the columns, which were divided by them; triangle (N, N) : of the orthogonal factorisation
    """

    coefficients: Array
    sizes: Array
    triangle: Array
    rank: int

    @cached_property
    def _safe(self) -> Array:
        """The triangle above a multiple of the identity."""
        return Regularised.of(self.triangle, SAFE).triangle

    def stability(self, interior: Array) -> float:
        """max ‖interior c‖ / ‖weights matrix c‖ over all c: what a unit of boundary error may be inside.

        interior (K, N): values of the features at points inside, each row multiplied by 1/√K. Combinations that are
        too small on the boundary to be told from noise do not count: a small multiple of the identity is added below.
        """
        turned = solve_triangular(self._safe, (interior / self.sizes).T, trans="T", check_finite=False)
        if not np.isfinite(turned).all():
            return np.inf
        return largest_singular_value(turned)


def largest_singular_value(matrix: Array) -> float:
    """Of a matrix (N, K): by Lanczos' iteration where it is large, of which three digits are plenty."""
    if min(matrix.shape) < PANEL:
        return float(svdvals(matrix, check_finite=False)[0]) if matrix.size else 0.0
    start = np.ones(min(matrix.shape))
    return float(svds(matrix, k=1, tol=1e-3, v0=start, return_singular_vectors=False)[0])


@dataclass(frozen=True, eq=False)
class Householder:
    """An orthogonal factorisation whose reflections are applied but never formed, which would cost as much again.

    reflections (M, N), factors (N,): as LAPACK stores them
    """

    reflections: Array
    factors: Array

    @classmethod
    def of(cls, matrix: Array) -> Householder:
        """The factorisation of a matrix (M, N)."""
        rows, columns = matrix.shape
        (geqrf,) = get_lapack_funcs(("geqrf",), (matrix,))
        with factorising("qr", 2.0 * rows * columns**2, matrix.nbytes):
            reflections, factors, _, _ = geqrf(matrix, lwork=PANEL * columns)
        return cls(reflections, factors)

    @property
    def triangle(self) -> Array:
        """The triangular factor (N, N), with rows of zeros where there are fewer rows than columns."""
        columns = self.reflections.shape[1]
        found = np.triu(self.reflections[:columns])
        return np.pad(found, ((0, columns - len(found)), (0, 0)))

    def applied(self, vector: Array) -> Array:
        """The adjoint of the orthogonal factor times a vector (M,): its first N numbers."""
        columns = self.reflections.shape[1]
        (ormqr,) = get_lapack_funcs(
            ("unmqr" if np.iscomplexobj(self.reflections) else "ormqr",), (self.reflections, vector)
        )
        trans = "C" if np.iscomplexobj(self.reflections) else "T"
        vector = vector.astype(self.reflections.dtype)
        count = len(self.factors)
        turned = ormqr("L", trans, self.reflections[:, :count], self.factors, vector[:, None], PANEL)[0][:columns, 0]
        return np.pad(turned, (0, columns - len(turned)))


@dataclass(frozen=True, eq=False)
class Regularised:
    """The factorisation of a triangle above a multiple of the identity: least squares with a small ridge.

    What the triangle cannot tell from zero is then bounded instead of left out, by fast operations on blocks; a
    factorisation with pivoting moves one column at a time.
    """

    triangle: Array
    below: Array
    blocks: Array

    @classmethod
    def of(cls, triangle: Array, ridge: float) -> Regularised:
        """ridge : relative to the largest entry of the diagonal."""
        count = len(triangle)
        size = float(np.abs(np.diag(triangle)).max(initial=0.0))
        (tpqrt,) = get_lapack_funcs(("tpqrt",), (triangle,))
        below = np.asfortranarray(np.diag(np.full(count, (ridge * size) or 1.0)).astype(triangle.dtype))
        panel = min(PANEL, count)
        with factorising("qr", 1.5 * count**3, 2.0 * triangle.nbytes):
            upper, lower, blocks, _ = tpqrt(count, panel, np.asfortranarray(triangle), below)
        return cls(np.triu(upper), lower, blocks)

    def solved(self, image: Array) -> Array:
        """The minimiser of ‖triangle c - image‖² + ridge² ‖c‖²."""
        (tpmqrt,) = get_lapack_funcs(("tpmqrt",), (self.triangle,))
        first = np.asfortranarray(image[:, None].astype(self.triangle.dtype))
        trans = "C" if np.iscomplexobj(self.triangle) else "T"
        turned = tpmqrt(len(image), self.below, self.blocks, first, np.zeros_like(first), "L", trans)[0]
        return np.asarray(solve_triangular(self.triangle, turned[:, 0], check_finite=False))


def least_squares(rows: TrefftzRows, cutoff: float) -> LeastSquares:
    """By orthogonal factorisation with a ridge of the cutoff × rounding; one refinement."""
    weighted = np.asfortranarray(rows.matrix * rows.weights[:, None])
    rhs = rows.rhs * rows.weights
    sizes = np.sqrt(np.einsum("mn,mn->n", weighted, weighted.conj()).real)
    sizes[~(sizes > 1e-280)] = np.inf  # what vanishes on the boundary is no feature
    weighted /= sizes
    first = Householder.of(weighted)
    triangle = first.triangle
    ridge = cutoff * float(np.finfo(float).eps)
    second = Regularised.of(triangle, ridge)
    coefficients = np.zeros(len(sizes), dtype=weighted.dtype)
    left = rhs
    for _ in range(2):
        coefficients = coefficients + second.solved(first.applied(left))
        left = rhs - weighted @ coefficients
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > ridge * diagonal.max(initial=0.0)).sum())
    return LeastSquares(coefficients / sizes, sizes, triangle, rank)
