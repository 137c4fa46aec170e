"""Rows of boundary conditions, least squares that keeps digits, and how errors on the boundary act inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """matrix (M, N) · c = rhs (M,), each row divided by the size of its coefficients; ``weights`` are not applied.

    groups (M,) : of features, that are charged with the error of each row
    """

    matrix: Array
    rhs: Array
    weights: Array
    groups: Array

    @property
    def count(self) -> int:
        return len(self.rhs)

    def residual(self, coefficients: Array) -> Array:
        """matrix · coefficients - rhs (M,)."""
        return np.asarray(self.matrix @ coefficients - self.rhs)

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
    matrices, sides, weights = [], [], []
    columns, rows = sum(family.columns for family in families), sum(len(place.points) for place in places)
    reserve(3.0 * FLOAT_BYTES * rows * columns, "the values of the features on the boundary")
    tables = _tables(families, places)
    for number, place in enumerate(places):
        checkpoint()
        term = place.term
        known = term.known(place.points, words, term.data)
        own = {index: table[number] for index, table in tables.items() if number in table}
        matrix, residual, size = condition_rows(term.expression, known, part, place, own, words)
        matrices.append(matrix / size[:, None])
        sides.append(-residual / size)
        weights.append(place.weights * term.weight)
    groups = [place.groups for place in places]
    return TrefftzRows(*(np.concatenate(found) for found in (matrices, sides, weights, groups)))


def condition_rows(
    expression: Expression,
    known: Mapping[sympy.Symbol, Array],
    part: object,
    place: ConditionPoints | FacePoints,
    tables: Mapping[MultiIndex, Array],
    words: Vocabulary,
) -> tuple[Array, Array, Array]:
    """A condition as rows of coefficients (M, N), the residual of the particular solution (M,), and the size (M,) of
    both: coefficients times the scale over which features vary.

    tables : derivative → values (M, fields, N) of the features
    """
    points = place.points
    jets = {}
    for jet in expression.jets:
        values = part.derivative(points, jet.index)  # type: ignore[attr-defined]
        jets[jet] = values if values.ndim == 1 else values[:, words.fields.index(jet.field)]
    residual, partials = expression.linearised(known, jets)
    total: Array | None = None
    size = np.zeros(len(points))
    for jet, partial in zip(expression.jets, partials, strict=True):
        factor = np.broadcast_to(np.asarray(partial, dtype=float), (len(points),))
        block = factor[:, None] * tables[jet.index][:, words.fields.index(jet.field)]
        total = block if total is None else total + block
        size += np.abs(factor) * place.scales ** -float(jet.order)
    assert total is not None
    return total, np.broadcast_to(residual, (len(points),)), np.maximum(size, 1e-300)


def _tables(families: Sequence[FeatureFamily], places: Sequence[ConditionPoints]) -> dict[MultiIndex, dict[int, Array]]:
    """Derivative → number of a place → values of the features there; all places with a derivative at once."""
    found: dict[MultiIndex, dict[int, Array]] = {}
    indices = {jet.index for place in places for jet in place.term.expression.jets}
    for index in indices:
        own = [k for k, place in enumerate(places) if any(jet.index == index for jet in place.term.expression.jets)]
        checkpoint()
        values = feature_values(families, np.concatenate([places[k].points for k in own]), index)
        ends = np.cumsum([len(places[k].points) for k in own])[:-1]
        found[index] = dict(zip(own, np.split(values, ends), strict=True))
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
    weighted = rows.matrix * rows.weights[:, None]
    rhs = rows.rhs * rows.weights
    sizes = np.linalg.norm(weighted, axis=0)
    sizes[~(sizes > 1e-280)] = np.inf  # what vanishes on the boundary is no feature
    weighted = np.asfortranarray(weighted / sizes)
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
