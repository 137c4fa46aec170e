"""Hyper-parameters by the largest evidence: unknown noise, and the regularisation parameter of smoothness priors.

With residuals over the noise r, their derivative -J and a prior of precision Λ = λ·roughness on unknown functions,

    covariance  C = (JᵀJ + Λ)⁻¹ ,      effective degrees of freedom  γ = tr(J C Jᵀ) ,

σ² = |d - q|²/(N - γ). During the search, order and regularisation parameter of a prior are the most probable ones; at
its end, the unknowns are averaged over all of them: the evidence is often flat over a decade of the parameter, and the
most probable one alone would give bands that are too narrow where a function is rough. Conditions on a function are not
part of its evidence: an analytic boundary value would suggest that the inside is as smooth. The model is linearised
once for all of this: the rows of each set are first reduced to as many as there are unknowns by QR, which changes no
sum of squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import pi, tan
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.inverse.regularisation import ConstrainedWeights, RegularisationPath
from rannpde.pde.inverse.rows import DataRows, Noise
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.tolerance import ALGEBRA_SHARE, MUCH_SMALLER, PILOT_TOLERANCE, RESIDUAL_TOLERANCE
from rannpde.rounding import ROUNDED

MOST_HYPER_ITERATIONS = 20
"""Most alternations between noise and priors."""
GRID_SIZE = 81
"""Values of a grid of regularisation parameters, whose neighbours differ by 12 %, or of widths of a prior, by 24 %."""
LARGEST_FACTOR = MUCH_SMALLER**-2
"""Largest factor of noise and regularisation parameter, two orders of magnitude, before the model is linearised again.
"""


def typical(matrix: Array) -> Array:
    """The change of each unknown that changes the rows (N, p) by one: (p,)."""
    norms = np.linalg.norm(matrix, axis=0)
    return 1.0 / np.maximum(norms, max(float(norms.max(initial=0.0)) * 1e-14, 1e-300))


def posterior(matrix: Array, moving: Array) -> tuple[Array, Array]:
    """C (p, p) of rows (N, p), those of priors included, for the unknowns that may move; and the undetermined
    directions (k, p)."""
    if len(matrix) < matrix.shape[1]:  # rows of zeros, so that the SVD has also the directions that no row determines
        matrix = np.concatenate([matrix, np.zeros((matrix.shape[1] - len(matrix), matrix.shape[1]))])
    scale, chosen = typical(matrix), np.flatnonzero(moving)
    _, singular, right = np.linalg.svd(matrix[:, chosen] * scale[chosen], full_matrices=False)
    known = singular > ROUNDED * singular.max(initial=0.0)
    spread = right[known].T / singular[known]
    covariance = np.zeros((len(scale), len(scale)))
    covariance[np.ix_(chosen, chosen)] = spread @ spread.T * np.outer(scale[chosen], scale[chosen])
    free = np.zeros((int((~known).sum()), len(scale)))
    free[:, chosen] = right[~known] * scale[chosen]
    return covariance, free


def determined(slopes: Array, covariance: Array) -> float:
    """γ = tr(J C Jᵀ), the number of unknowns that the data determine (effective degrees of freedom)."""
    return float(np.sum((slopes @ covariance) * slopes))


class Prior(NamedTuple):
    """A smoothness prior: the penalty regularisation · ∫ |∂^order f|² on an unknown function."""

    order: int
    regularisation: float


ORDERS = (2, 3, 4)
"""Orders of the smoothness priors, where none is stated."""
ORDER_ODDS = 2.0
"""Prior odds of each order against the one before. Measured on 26 functions, smooth, rough and random: with 1, errors
of the smooth ones are a tenth larger; with 10, bands of the random ones cover 91 %, not 93 %."""
NEGLECTED_PROBABILITY = MUCH_SMALLER * PILOT_TOLERANCE
"""Probability of the widths at each end of a prior that are left out of averages over it."""
FIRST_REGULARISATION = RESIDUAL_TOLERANCE**2
"""Regularisation parameter at the start, for noise of size 1: as if the noise were RESIDUAL_TOLERANCE of the function.
"""


def prior_widths() -> Array:
    """Standard deviations (G,) of a prior over the size of the function: quantiles of the half-Cauchy law between which
    all but NEGLECTED_PROBABILITY at each end lies, and a grid between them."""
    least = tan(
        pi / 2 * NEGLECTED_PROBABILITY
    )  # the law has the distribution function 2/π·atan, symmetric in log width
    return np.geomspace(least, 1 / least, GRID_SIZE)


class Evidence:
    """Noise and priors for the unknowns of a regression; points (M, n) : where the size of functions is sampled."""

    def __init__(self, unknowns: Unknowns, points_in_domain: Array) -> None:
        self.unknowns = unknowns
        self.tables = {}
        for name, basis in unknowns.bases.items():
            points = points_in_domain[:, [unknowns.coordinates.index(c) for c in unknowns.unknown[name].of]]
            order = (0,) * points.shape[1]
            self.tables[name] = basis.guess.derivative(points, order), basis.table(points, order)

    def plain(self) -> dict[str, Prior]:
        """Weak priors at the start."""
        return {name: Prior(basis.order, FIRST_REGULARISATION) for name, basis in self.unknowns.bases.items()}

    def roots(self, priors: Mapping[str, Prior]) -> Array:
        """Rows (k, p) of the priors: |rows · vector|² is their penalty."""
        blocks = [np.zeros((0, self.unknowns.count))]
        for name, basis in self.unknowns.bases.items():
            root = np.sqrt(priors[name].regularisation) * basis.seminorm(priors[name].order)
            block = np.zeros((len(root), self.unknowns.count))
            block[:, self.unknowns.slices[name]] = root
            blocks.append(block)
        return np.concatenate(blocks)

    def with_prior(self, vector: Array, rows: DataRows, priors: Mapping[str, Prior]) -> tuple[Array, Array]:
        """All rows, those of the priors last: right-hand sides (N,), matrix (N, p)."""
        right, matrix = rows.stacked()
        roots = self.roots(priors)
        return np.append(right, -roots @ vector), np.concatenate([matrix, roots])

    def with_hyperparameters(
        self, vector: Array, rows: DataRows, noise: Noise, priors: dict[str, Prior]
    ) -> tuple[Noise, dict[str, Prior], DataRows]:
        """Noise and priors of the largest evidence for the given linearisation, and the rows with that noise."""
        if not (any(noise.estimated) or priors):
            return noise, priors, rows
        moving = np.ones(self.unknowns.count, dtype=bool)
        reduced, first, begin, chosen = _reduced(rows), noise, dict(priors), dict(priors)
        for _ in range(MOST_HYPER_ITERATIONS):
            factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
            rescaled, before = reduced.scaled(factors), dict(chosen)
            for name in chosen:
                chosen[name] = self._prior(name, vector, rescaled, chosen, begin[name])
            right, matrix = self.with_prior(vector, rescaled, chosen)
            covariance, _ = posterior(matrix, moving)
            change = covariance @ (matrix.T @ right)
            scales = self._scales(rows.scaled(factors).moved(change), noise, covariance)
            last, noise = noise, replace(noise, scales=_limited(scales, first.scales))
            # relative to 1/√(2n), the standard deviation of a noise level that is estimated from n values
            moves = [
                abs(new / old - 1) * np.sqrt(2 * len(values))
                for old, new, values in zip(last.scales, noise.scales, rows.residuals, strict=True)
            ]
            if before == chosen and max(moves, default=0.0) < ALGEBRA_SHARE:
                break
        factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
        return noise, chosen, rows.scaled(factors)

    def _prior(self, name: str, vector: Array, rows: DataRows, priors: Mapping[str, Prior], begin: Prior) -> Prior:
        """The most probable prior of one function, the others fixed."""
        grid = begin.regularisation * np.logspace(-np.log10(LARGEST_FACTOR), np.log10(LARGEST_FACTOR), GRID_SIZE)
        best, chosen = -np.inf, begin
        for path in self._paths(name, vector, rows, priors):
            likely = path.evidence(grid) + self._log_prior(path, grid, self._size(name, vector))
            top = int(np.argmax(likely))
            if likely[top] > best:
                best, chosen = float(likely[top]), Prior(path.order, float(grid[top]))
        return chosen

    def marginalised(
        self, vector: Array, rows: DataRows, priors: Mapping[str, Prior], covariance: Array
    ) -> tuple[Array, Array]:
        """Change (p,) of the unknowns and their covariance (p, p) when averaged over all priors, with linearised rows.

        covariance : with the priors given. With several functions, each prior is averaged over while the others are
        fixed.
        """
        reduced, total_change, total_covariance = _reduced(rows), np.zeros(len(vector)), covariance.copy()
        right, matrix = self.with_prior(vector, reduced, priors)
        single = vector + covariance @ (matrix.T @ right)
        for name in priors:
            size, tried = self._size(name, vector), []
            for path in self._paths(name, vector, reduced, priors):
                grid = path.unit / np.square(prior_widths() * size)
                tried.append((path, grid, path.evidence(grid) + self._log_prior(path, grid, size)))
            top = max(float(likely.max()) for _, _, likely in tried)
            weights = [np.exp(likely - top) for _, _, likely in tried]
            shares = np.concatenate(weights) / sum(float(w.sum()) for w in weights)
            means = np.concatenate([path.means(grid) for path, grid, _ in tried])
            mean = shares @ means
            deviations = np.sqrt(shares)[:, None] * (means - mean)
            spread = deviations.T @ deviations
            for (path, grid, _), part in zip(tried, np.split(shares, len(tried)), strict=True):
                spread += path.covariance(grid, part)
            total_change += mean - single
            total_covariance += spread - covariance
        if len(priors) > 1:  # a sum of differences may lose definiteness
            values, vectors = np.linalg.eigh(total_covariance)
            total_covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return single + total_change - vector, total_covariance

    def _size(self, name: str, vector: Array) -> float:
        """Root mean square of a function over the domain; 1 where it is still zero."""
        guess, table = self.tables[name]
        return float(np.sqrt(np.mean(np.square(guess + table @ vector[self.unknowns.slices[name]])))) or 1.0

    def _paths(self, name: str, vector: Array, rows: DataRows, priors: Mapping[str, Prior]) -> list[RegularisationPath]:
        """The regularisation path for each order that the prior of a function may have."""
        part, basis = self.unknowns.slices[name], self.unknowns.bases[name]
        conditions = rows.constraint_slopes[:, part]
        known = ConstrainedWeights.of(conditions, rows.constraint_residuals + conditions @ vector[part])
        others = self.roots({key: prior if key != name else Prior(prior.order, 0.0) for key, prior in priors.items()})
        elsewhere = ~np.abs(conditions).any(axis=1)
        right, matrix = replace(
            rows,
            constraint_residuals=rows.constraint_residuals[elsewhere],
            constraint_slopes=rows.constraint_slopes[elsewhere],
        ).stacked()
        others = others[np.abs(others).any(axis=1)]
        right = np.append(
            right + matrix @ vector, np.zeros(len(others))
        )  # right-hand sides for the unknowns, not for their change
        matrix = np.concatenate([matrix, others])
        rising = [order for order in ORDERS if basis.count > basis.polynomials(order - 1)]  # fewer for a small degree
        orders = [basis.unknown.smoothness] if basis.unknown.smoothness else rising or [basis.order]
        size, table = self._size(name, vector), self.tables[name][1]
        start = priors[name].regularisation
        return [RegularisationPath.of(basis, order, table, size, known, part, matrix, right, start) for order in orders]

    @staticmethod
    def _log_prior(path: RegularisationPath, grid: Array, size: float) -> Array:
        """log prior density of regularisation parameters (G,), per unit of log λ.

        Half-Cauchy in the standard deviation of the prior, with the size of the function as its scale. With a density
        that is flat in the logarithm, bands of wavy functions would cover 85 %, not 93 %.
        """
        width = np.sqrt(path.unit / grid) / size
        return np.log(width) - np.log1p(width**2) + np.log(ORDER_ODDS) * path.order

    @staticmethod
    def _scales(rows: DataRows, noise: Noise, covariance: Array) -> list[float]:
        """Standard deviations from residuals where they are estimated; those given are unchanged."""
        scales = list(noise.scales)
        for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
            if noise.estimated[k]:
                freedom = max(len(r) - min(determined(slope, covariance), len(r) - 1.0), 1.0)
                factor = float(np.sqrt(np.square(r).sum() / freedom))
                if rows.losses[k] == "huber":
                    # the median of the absolute value of normal noise is a known multiple of its standard deviation
                    factor = float(np.median(np.abs(r))) / NormalDist().inv_cdf(3 / 4)
                scales[k] *= max(factor, 1e-8)
        return scales


def _limited(scales: list[float], first: tuple[float, ...]) -> tuple[float, ...]:
    """Noise within the range of one linearisation; the lower limit is small, since exact data leave tiny residuals."""
    return tuple(float(min(max(new, 1e-8 * old), LARGEST_FACTOR * old)) for new, old in zip(scales, first, strict=True))


def _reduced(rows: DataRows) -> DataRows:
    """The rows of each set reduced to the number of unknowns plus one, with the same sums of squares and robust weights
    applied."""
    residuals, slopes = [], []
    for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
        root = rows.weights(k)
        triangle: Array = np.linalg.qr(np.column_stack([root[:, None] * slope, root * r]), mode="r")  # type: ignore[assignment]
        residuals.append(triangle[:, -1])
        slopes.append(triangle[:, :-1])
    triangle = np.linalg.qr(np.column_stack([rows.constraint_slopes, rows.constraint_residuals]), mode="r")  # type: ignore[assignment]
    plain = ("squares",) * len(rows.losses)
    return DataRows(tuple(residuals), tuple(slopes), triangle[:, -1], triangle[:, :-1], plain, rows.responses)
