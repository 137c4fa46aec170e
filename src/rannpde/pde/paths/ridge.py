"""Ridge regression whose penalty is chosen by generalised cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rannpde.arrays import Array
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class RidgeRegression:
    """Least squares with an intercept on centred columns of unit size, with a penalty by generalised cross-validation.

    The Gram matrix is decomposed once and serves every right-hand side. The first column of the design is constant: its
    weight is the intercept, which is not penalised.
    """

    mean: Array
    size: Array
    values: Array
    vectors: Array
    centred: Array
    floor: float

    @classmethod
    def of(cls, design: Array, floor: float) -> RidgeRegression | None:
        """None where the design is not finite. floor : the least penalty, relative to the columns."""
        mean = design.mean(axis=0)
        if not np.isfinite(mean).all():
            return None
        centred = design - mean
        size = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(design))
        size[size <= COMPUTED] = 0.0
        scale = np.where(size > 0, size, 1.0)
        centred /= scale
        centred[:, size == 0] = 0.0
        gram = scipy.linalg.blas.dsyrk(1.0 / len(design), centred, trans=1, lower=1)
        values, vectors = scipy.linalg.eigh(gram, lower=True, overwrite_a=True, check_finite=False)
        return cls(mean, scale, np.maximum(values, 0.0), vectors, centred, floor)

    def solve(self, targets: Array) -> Array:
        """Weights (C,) for targets (M,); not numbers where the targets are not finite."""
        count, middle = len(self.centred), float(targets.mean())
        if not np.isfinite(middle):
            return np.full(len(self.mean), np.nan)
        left = targets - middle
        right = self.vectors.T @ (self.centred.T @ left) / count
        total = float(left @ left) / count
        best, lowest = self.floor, np.inf
        for penalty in self.floor * 10.0 ** np.arange(0, 9, 0.5):
            shrunk = self.values / (self.values + penalty)
            explained = right**2 / np.maximum(self.values, 1e-300) * shrunk * (2 - shrunk)
            freedom = 1 - float(shrunk.sum()) / count
            score = (total - float(explained[self.values > 0].sum())) / max(freedom, 1e-6) ** 2
            if score < lowest:
                best, lowest = float(penalty), score
        weights = (self.vectors @ (right / (self.values + best))) / self.size
        weights[0] = 0.0
        weights[0] = middle - float(self.mean @ weights)
        return np.asarray(weights)


def fit_columns(design: Array, targets: Array, floor: float) -> Array:
    """Weights of one regression."""
    regression = RidgeRegression.of(design, floor)
    return np.full(design.shape[1], np.nan) if regression is None else regression.solve(targets)
