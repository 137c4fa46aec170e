"""Rows of boundary conditions, least squares that keeps digits, and how errors on the boundary act inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs, qr, solve_triangular, svdvals

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.residual import Term
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.families import FeatureFamily

SAFE = 1e-9
"""Relative diagonal of the triangular factor below which directions are too noisy to tell how stable a problem is."""

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
class TrefftzRows:
    """matrix (M, N) · c = rhs (M,), each row divided by the size of its coefficients; ``weights`` are not applied."""

    matrix: Array
    rhs: Array
    weights: Array


def feature_values(families: Sequence[FeatureFamily], points: Array, index: MultiIndex) -> Array:
    """∂^index of all features, (M, fields, N)."""
    return np.concatenate([family.values(points, index) for family in families], axis=2)


def boundary_rows(
    families: Sequence[FeatureFamily], part: object, places: Sequence[ConditionPoints], words: Vocabulary
) -> TrefftzRows:
    """The conditions for Σ c_j feature_j + part, one row for every point."""
    matrices, sides, weights = [], [], []
    for place in places:
        term = place.term
        known = term.known(place.points, words, term.data)
        jets = {}
        for jet in term.expression.jets:
            values = part.derivative(place.points, jet.index)  # type: ignore[attr-defined]
            jets[jet] = values if values.ndim == 1 else values[:, words.fields.index(jet.field)]
        residual, partials = term.expression.linearised(known, jets)
        total: Array | None = None
        size = np.zeros(len(place.points))
        cache: dict[MultiIndex, Array] = {}
        for jet, partial in zip(term.expression.jets, partials, strict=True):
            factor = np.broadcast_to(np.asarray(partial, dtype=float), (len(place.points),))
            if jet.index not in cache:
                cache[jet.index] = feature_values(families, place.points, jet.index)
            block = factor[:, None] * cache[jet.index][:, words.fields.index(jet.field)]
            total = block if total is None else total + block
            size += np.abs(factor) * place.scales ** -float(jet.order)
        assert total is not None
        size = np.maximum(size, 1e-300)
        matrices.append(total / size[:, None])
        sides.append(-np.broadcast_to(residual, (len(place.points),)) / size)
        weights.append(place.weights * term.weight)
    return TrefftzRows(np.concatenate(matrices), np.concatenate(sides), np.concatenate(weights))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The minimiser of ‖weights (matrix c - rhs)‖, and the factor that tells how rows act on columns.

    sizes (N,) of the columns, which were divided by them; order, triangle : of the pivoted factorisation
    """

    coefficients: Array
    sizes: Array
    order: Array
    triangle: Array
    rank: int

    def stability(self, interior: Array) -> float:
        """max ‖interior c‖ / ‖weights matrix c‖ over all c: what a unit of boundary error may be inside.

        interior (K, N): values of the features at points inside, each row multiplied by 1/√K.
        """
        diagonal = np.abs(np.diag(self.triangle))
        rank = min(self.rank, int((diagonal > SAFE * diagonal[0]).sum()))
        kept, square = self.order[:rank], self.triangle[:rank, :rank]
        turned = solve_triangular(square, (interior[:, kept] / self.sizes[kept]).T, trans="T")
        if not np.isfinite(turned).all():
            return np.inf
        return float(svdvals(turned)[0])


@dataclass(frozen=True, eq=False)
class Householder:
    """An orthogonal factorisation whose reflections are applied but never formed, which would cost as much again.

    reflections (M, N), factors (N,): as LAPACK stores them
    """

    reflections: Array
    factors: Array

    @classmethod
    def of(cls, matrix: Array) -> Householder:
        """The factorisation of a matrix (M, N), M ≥ N."""
        (geqrf,) = get_lapack_funcs(("geqrf",), (matrix,))
        reflections, factors, _, _ = geqrf(matrix, lwork=PANEL * matrix.shape[1])
        return cls(reflections, factors)

    @classmethod
    def pivoted(cls, matrix: Array) -> tuple[Householder, Array]:
        """The same with columns in the order (N,) in which they add most."""
        (reflections, factors), _, order = qr(matrix, mode="raw", pivoting=True, check_finite=False)
        return cls(reflections, factors), order

    @property
    def triangle(self) -> Array:
        """The triangular factor (min(M, N), N)."""
        return np.triu(self.reflections[: self.reflections.shape[1]])

    def applied(self, vector: Array) -> Array:
        """The adjoint of the orthogonal factor times a vector (M,): its first N numbers."""
        (ormqr,) = get_lapack_funcs(
            ("unmqr" if np.iscomplexobj(self.reflections) else "ormqr",), (self.reflections, vector)
        )
        trans = "C" if np.iscomplexobj(self.reflections) else "T"
        vector = vector.astype(self.reflections.dtype)
        turned = ormqr("L", trans, self.reflections, self.factors, vector[:, None], PANEL)[0]
        return np.asarray(turned[: self.reflections.shape[1], 0])


def least_squares(rows: TrefftzRows, cutoff: float) -> LeastSquares:
    """By orthogonal factorisation with pivoting; what is below the cutoff × rounding is left out; one refinement."""
    weighted = rows.matrix * rows.weights[:, None]
    rhs = rows.rhs * rows.weights
    sizes = np.linalg.norm(weighted, axis=0)
    sizes[~(sizes > 1e-280)] = np.inf  # what vanishes on the boundary is no feature
    weighted = weighted / sizes
    first = Householder.of(weighted)
    second, order = Householder.pivoted(first.triangle)
    triangle = second.triangle
    diagonal = np.abs(np.diag(triangle))
    rank = (
        int((diagonal > cutoff * np.finfo(float).eps * diagonal[0]).sum()) if len(diagonal) and diagonal[0] > 0 else 0
    )
    coefficients = np.zeros(len(sizes), dtype=weighted.dtype)
    left = rhs
    for _ in range(2):
        image = second.applied(first.applied(left))[:rank]
        step = np.zeros(len(sizes), dtype=weighted.dtype)
        step[order[:rank]] = solve_triangular(triangle[:rank, :rank], image, check_finite=False)
        coefficients = coefficients + step
        left = rhs - weighted @ coefficients
    return LeastSquares(coefficients / sizes, sizes, order, triangle, rank)
