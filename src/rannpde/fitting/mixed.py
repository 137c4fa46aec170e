"""Ridge fits of many columns in two precisions: half the memory and less than half of the time of the dense sums.

The Gram matrix is summed and factorised in single precision. It then preconditions conjugate gradients on the normal
equations in double precision, whose products are formed from blocks of features and never stored:

    P = fl32(Σ φφᵀ + λM),        (Σ φφᵀ + λM) w = Σ φy,        v ↦ Σ φ (φᵀ v) + λM v.

With λ well above the rounding of single precision P⁻¹(Σ φφᵀ + λM) is near the identity, and a few iterations give the
digits of the dense fit. Where λ is too small for that, the caller takes the dense sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import blas, lapack

from rannpde.arrays import BLOCK_BYTES, Array, block_rows, row_blocks
from rannpde.fitting.path import LinearFit, relative_error
from rannpde.network.features import Features

if TYPE_CHECKING:
    from rannpde.fitting.fit import Samples

FEWEST_COLUMNS = 4000
"""Below this a second pass over the features does not pay: with 2,897 columns and 14,480 points both ways take 3.6 s,
with 4,097 columns and 20,480 points the dense sums 10.5 s and two precisions 6.8 s."""
ROUNDING_MARGIN = 64
"""λ must exceed this many roundings of single precision times Σ|φ|²/M, which bounds the largest eigenvalue."""
RESIDUAL = 1e-11
"""Residual of the equations at which the iteration ends, in the norm of P⁻¹ and relative to the right-hand side: below
what an error estimate can show."""
MOST_ITERATIONS = 40
"""Conjugate gradients: 3 to 8 were needed in all cases measured; more say that λ is too small."""


def worthwhile(columns: int, penalty: float, size: float) -> bool:
    """Whether two precisions are expected to pay and to give all digits; size is Σ|φ|²/M without the constant."""
    return columns >= FEWEST_COLUMNS and penalty >= ROUNDING_MARGIN * float(np.finfo(np.float32).eps) * size


def fit_mixed(features: Features, samples: Samples, penalty: float) -> LinearFit | None:
    """The ridge fit, or None where it did not come to double precision: then take the dense sums."""
    system = _System.of(features, samples, penalty)
    solution = None if system is None else _conjugate_gradients(system, features, samples)
    if system is None or solution is None:
        return None
    coefficients, residual = solution
    # Σ φφᵀ w = Σ φy - λM w - residual, so that the sum of squares needs no further pass
    rss = system.energy - float((coefficients * (system.moment + residual)).sum())
    rss -= float((system.shift[:, None] * np.square(coefficients)).sum())
    error = relative_error(max(rss, float(np.finfo(float).eps) * system.energy), system.energy)
    return LinearFit(coefficients, float(penalty), features.columns, system.condition, error)


@dataclass(frozen=True, eq=False)
class _System:
    """The factor of P in single precision; Σ φy, λM for each column, Σ y² in double; the condition of P."""

    factor: Array
    moment: Array
    shift: Array
    energy: float
    condition: float

    @classmethod
    def of(cls, features: Features, samples: Samples, penalty: float) -> _System | None:
        """Sum the samples; None where P is not positive definite."""
        gram = np.zeros((features.columns, features.columns), dtype=np.float32, order="F")
        moment, energy, count = np.zeros((features.columns, 1)), 0.0, 0.0
        for design, values, weights in _blocks(features, samples):
            single = design.astype(np.float32)
            if weights is not None:
                single *= np.sqrt(weights)[:, None].astype(np.float32)
            gram = blas.ssyrk(1.0, single.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
            weighted = values if weights is None else weights[:, None] * values
            moment = moment + design.T @ weighted
            energy += float((weighted * values).sum())
            count += float(len(values) if weights is None else weights.sum())
        shift = np.full(features.columns, penalty * count)
        if features.constant:
            shift[-1] = 0.0
        diagonal = np.arange(features.columns)
        gram[diagonal, diagonal] += shift.astype(np.float32)
        # a bound of the one-norm by Cauchy and Schwarz: |g_ij| ≤ √(g_ii g_jj)
        norm = float(np.sqrt(gram.diagonal()).sum() * np.sqrt(gram.diagonal().max()))
        factor, info = lapack.spotrf(gram, lower=1, clean=0, overwrite_a=1)
        if info:
            return None
        reciprocal, _ = lapack.spocon(factor, norm, uplo="L")
        return cls(factor, moment, shift, energy, 1 / float(reciprocal) if reciprocal > 0 else np.inf)

    def precondition(self, residual: Array) -> Array:
        """P⁻¹ residual, brought to the short range of single precision and back."""
        unit = float(np.abs(residual).max()) or 1.0
        solved, _ = lapack.spotrs(self.factor, (residual / unit).astype(np.float32), lower=1)
        return np.asarray(solved, dtype=float) * unit


def _conjugate_gradients(system: _System, features: Features, samples: Samples) -> tuple[Array, Array] | None:
    """Coefficients (columns, outputs) and what is left of the equations; None where they do not converge.

    All outputs go together, each with its own step lengths, so that the features are formed once an iteration.
    """
    residual = system.moment.copy()
    coefficients, direction = np.zeros_like(residual), np.zeros_like(residual)
    previous, first = np.ones(residual.shape[1]), None
    for _ in range(MOST_ITERATIONS):
        solved = system.precondition(residual)
        square = np.einsum("ij,ij->j", residual, solved)
        first = square if first is None else first
        if (square <= RESIDUAL**2 * first).all():
            return coefficients, residual
        direction = solved + direction * (square / previous)
        product = system.shift[:, None] * direction
        for design, _values, weights in _blocks(features, samples):
            ahead = design @ direction
            product += design.T @ (ahead if weights is None else weights[:, None] * ahead)
        curvature = np.einsum("ij,ij->j", direction, product)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=curvature > 0)
        coefficients += step * direction
        residual -= step * product
        previous = np.where(square > 0, square, 1.0)
    return None


def _blocks(features: Features, samples: Samples) -> Iterator[tuple[Array, Array, Array | None]]:
    """Blocks of the design matrix (m, columns) with their values and weights."""
    for points, values, weights in samples:
        rows = min(block_rows(features.columns, 4 * BLOCK_BYTES), len(points))
        buffer = np.empty((rows, features.columns))
        for block in row_blocks(len(points), rows):
            design = features.ridge(points[block], 0, buffer[: block.stop - block.start])
            yield design, values[block], None if weights is None else weights[block]
