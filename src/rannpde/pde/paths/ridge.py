"""Ridge regression whose penalty is chosen by generalised cross-validation, from sums over the rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rannpde.arrays import Array
from rannpde.rounding import COMPUTED, ROOT_ROUNDED


@dataclass(frozen=True, eq=False)
class RidgeRegression:
    """Least squares with an intercept on centred columns of unit size, with a penalty by generalised cross-validation.

    The Gram matrix is decomposed once and serves every right-hand side. The first column of the design is constant: its
    weight is the intercept, which is not penalised.

    mean, size (C,) : of the columns; values, vectors : eigenpairs of the Gram matrix of the standardised columns over
    ``count`` rows; floor : the least penalty
    """

    mean: Array
    size: Array
    values: Array
    vectors: Array
    count: int
    floor: float

    @classmethod
    def of(cls, design: Array, floor: float) -> RidgeRegression | None:
        """Decompose the Gram matrix of a design (M, C); None where it is not finite.

        floor : the least penalty, relative to the columns
        """
        mean = design.mean(axis=0)
        if not np.isfinite(mean).all():
            return None
        centred = design - mean
        gram = scipy.linalg.blas.dsyrk(1.0 / len(design), centred, trans=1, lower=1)
        return cls.of_moments(mean, gram, len(design), floor)

    @classmethod
    def of_moments(cls, mean: Array, covariance: Array, count: int, floor: float) -> RidgeRegression:
        """A regression from the mean (C,) and the lower triangle of the covariance (C, C) of the columns."""
        size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        constant = size <= COMPUTED * np.maximum(np.abs(mean), 1.0)
        scale = np.where(constant, 1.0, size)
        gram = covariance / scale / scale[:, None]
        gram[constant], gram[:, constant] = 0.0, 0.0
        values, vectors = scipy.linalg.eigh(gram, lower=True, overwrite_a=True, check_finite=False)
        return cls(mean, scale, np.maximum(values, 0.0), vectors, count, floor)

    def fit(self, design: Array, targets: Array) -> Array:
        """Weights (C,) for targets (M,) on the design; NaN where the targets are not finite."""
        mean = float(targets.mean())
        if not np.isfinite(mean):
            return np.full(len(self.mean), np.nan)
        centred = targets - mean
        return self.weights(design.T @ centred / self.count, mean, float(centred @ centred) / self.count)

    def weights(self, products: Array, target_mean: float, variance: float) -> Array:
        """Weights (C,) from the covariances (C,) of columns and targets, and mean and variance of the targets; NaN
        where these overflow.

        Among the penalties whose scores are within the share 2/M of the least, as much as one useless column changes a
        score, the largest is taken: it keeps weights small that gain nothing, and the fit smooth where rows are few.
        """
        right = self.vectors.T @ (products / self.size)
        penalties, scores = self.floor * 10 ** np.arange(0, 9, 0.5), []
        for penalty in penalties:
            shrunk = self.values / (self.values + penalty)
            explained = right**2 / np.maximum(self.values, 1e-300) * shrunk * (2 - shrunk)
            freedom = 1 - float(shrunk.sum()) / self.count
            scores.append((variance - float(explained[self.values > 0].sum())) / max(freedom, ROOT_ROUNDED) ** 2)
        if not np.isfinite(scores).all():
            return np.full(len(self.mean), np.nan)
        close = np.flatnonzero(np.array(scores) <= min(scores) + 2 / self.count * abs(min(scores)))
        weights = (self.vectors @ (right / (self.values + penalties[close[-1]]))) / self.size
        weights[0] = 0.0
        weights[0] = target_mean - float(self.mean @ weights)
        return np.asarray(weights)


def fit_columns(design: Array, targets: Array, floor: float) -> Array:
    """The weights (C,) of a ridge regression of targets (M,) on a design (M, C); NaN where these are not finite."""
    regression = RidgeRegression.of(design, floor)
    return np.full(design.shape[1], np.nan) if regression is None else regression.fit(design, targets)
