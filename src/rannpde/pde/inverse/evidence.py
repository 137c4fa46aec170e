"""Noise that is not given, and the strength of smoothness priors, by the largest evidence; and the covariance.

With residuals over the noise r, their derivative -J and a prior of precision Λ = λ·roughness on unknown functions,

    covariance  C = (JᵀJ + Λ)⁻¹ ,      what the data determine  γ = tr(J C Jᵀ) ,

σ² = |d - q|²/(N - γ). A search takes order and strength of a prior where they are most probable; where it ends, the
unknowns are averaged over all of them, for the evidence is often flat over a decade of strengths, and the most probable
one alone would leave bands too narrow where a function is rough. What is known beforehand of a function does not vote:
an analytic rim would call the inside as smooth as itself, a wavy one as rough. The model is linearised once for all of
it: the rows of each set are first reduced to as many as there are unknowns (QR), which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.inverse.rows import DataRows, Noise
from rannpde.pde.inverse.strengths import KnownWeights, Strengths
from rannpde.pde.inverse.unknowns import Unknowns

RIDGE = 1e-12
"""Share of the largest singular value below which the data say nothing, up to rounding."""
PATIENCE, CLOSE = 20, 1e-3
"""Times that noise and priors are found in turn, and the relative change of the noise that ends it."""
LEVELS = 81
"""Strengths that are tried: so many that neighbours differ by 12 %."""
AT_ONCE = 100.0
"""By which factor noise and strengths change at most before the model is linearised anew."""


def typical(matrix: Array) -> Array:
    """What each unknown changes by to change the rows (N, p) by one: (p,)."""
    norms = np.linalg.norm(matrix, axis=0)
    return 1.0 / np.maximum(norms, max(float(norms.max(initial=0.0)) * 1e-14, 1e-300))


def posterior(matrix: Array, moving: Array) -> tuple[Array, Array]:
    """C (p, p) of rows (N, p) with the prior's, for the unknowns that move; and directions left free (k, p)."""
    if len(matrix) < matrix.shape[1]:  # so that the SVD shows every direction, those too that no row sees
        matrix = np.concatenate([matrix, np.zeros((matrix.shape[1] - len(matrix), matrix.shape[1]))])
    scale, chosen = typical(matrix), np.flatnonzero(moving)
    _, singular, right = np.linalg.svd(matrix[:, chosen] * scale[chosen], full_matrices=False)
    known = singular > RIDGE * singular.max(initial=0.0)
    spread = right[known].T / singular[known]
    covariance = np.zeros((len(scale), len(scale)))
    covariance[np.ix_(chosen, chosen)] = spread @ spread.T * np.outer(scale[chosen], scale[chosen])
    free = np.zeros((int((~known).sum()), len(scale)))
    free[:, chosen] = right[~known] * scale[chosen]
    return covariance, free


def determined(slopes: Array, covariance: Array) -> float:
    """γ = tr(J C Jᵀ)."""
    return float(np.sum((slopes @ covariance) * slopes))


class Prior(NamedTuple):
    """∫ |∂^order f|² of an unknown function counts ``strength`` times."""

    order: int
    strength: float


ORDERS = (2, 3, 4)
"""Of the smoothness priors, where none was stated."""
SMOOTHER = 2.0
"""How much more probable each order is than the one before, were nothing measured. Tried on 26 functions, smooth, rough
and drawn at random: with 1 errors of the smooth are a tenth larger, with 10 bands of those drawn hold 91 %, not 93."""
WIDTHS = np.logspace(-3.5, 1.5, 26)
"""Standard deviations of a prior, relative to the size of the function, that are averaged over."""
PLAIN = 1e-4
"""Strength of a prior before anything is known, for noise of size 1."""


class Evidence:
    """Noise and priors for the unknowns of a regression; places (M, n): where the size of functions is looked at."""

    def __init__(self, unknowns: Unknowns, places: Array) -> None:
        self.unknowns = unknowns
        self.tables = {}
        for name, basis in unknowns.bases.items():
            points = places[:, [unknowns.coordinates.index(c) for c in unknowns.unknown[name].of]]
            still = (0,) * points.shape[1]
            self.tables[name] = basis.guess.derivative(points, still), basis.table(points, still)

    def plain(self) -> dict[str, Prior]:
        """Weak priors, to begin with."""
        return {name: Prior(basis.order, PLAIN) for name, basis in self.unknowns.bases.items()}

    def roots(self, priors: Mapping[str, Prior]) -> Array:
        """Rows (k, p) of the priors: |rows · vector|² is what they count."""
        blocks = [np.zeros((0, self.unknowns.count))]
        for name, basis in self.unknowns.bases.items():
            own = np.sqrt(priors[name].strength) * basis.bends(priors[name].order)
            whole = np.zeros((len(own), self.unknowns.count))
            whole[:, self.unknowns.slices[name]] = own
            blocks.append(whole)
        return np.concatenate(blocks)

    def with_prior(self, vector: Array, rows: DataRows, priors: Mapping[str, Prior]) -> tuple[Array, Array]:
        """All rows, the priors' last: right sides (N,), matrix (N, p)."""
        right, matrix = rows.stacked()
        roots = self.roots(priors)
        return np.append(right, -roots @ vector), np.concatenate([matrix, roots])

    def learned(
        self, vector: Array, rows: DataRows, noise: Noise, priors: dict[str, Prior]
    ) -> tuple[Noise, dict[str, Prior], DataRows]:
        """Noise and priors of the largest evidence, with the rows linearised as they are."""
        if not (any(noise.estimated) or priors):
            return noise, priors, rows
        everything = np.ones(self.unknowns.count, dtype=bool)
        small, first, begin, chosen = _reduced(rows), noise, dict(priors), dict(priors)
        for _ in range(PATIENCE):
            factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
            now, before = small.scaled(factors), dict(chosen)
            for name in chosen:
                chosen[name] = self._prior(name, vector, now, chosen, begin[name])
            right, matrix = self.with_prior(vector, now, chosen)
            covariance, _ = posterior(matrix, everything)
            change = covariance @ (matrix.T @ right)
            scales = self._scales(rows.scaled(factors).moved(change), noise, covariance)
            last, noise = noise, replace(noise, scales=_near(scales, first.scales))
            moves = [abs(new / old - 1) for old, new in zip(last.scales, noise.scales, strict=True)]
            if before == chosen and max(moves, default=0.0) < CLOSE:
                break
        factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
        return noise, chosen, rows.scaled(factors)

    def _prior(self, name: str, vector: Array, rows: DataRows, priors: Mapping[str, Prior], begin: Prior) -> Prior:
        """The most probable prior of one function, the others as they are."""
        grid = begin.strength * np.logspace(-np.log10(AT_ONCE), np.log10(AT_ONCE), LEVELS)
        best, chosen = -np.inf, begin
        for strengths in self._strengths(name, vector, rows, priors):
            likely = strengths.evidence(grid) + self._beforehand(strengths, grid, self._size(name, vector))
            top = int(np.argmax(likely))
            if likely[top] > best:
                best, chosen = float(likely[top]), Prior(strengths.order, float(grid[top]))
        return chosen

    def averaged(
        self, vector: Array, rows: DataRows, priors: Mapping[str, Prior], covariance: Array
    ) -> tuple[Array, Array]:
        """Change (p,) of the unknowns and their covariance (p, p) when averaged over all priors; rows as linearised.

        covariance : with the priors given. Of several functions each is averaged over with the others' as they are.
        """
        small, total, whole = _reduced(rows), np.zeros(len(vector)), covariance.copy()
        right, matrix = self.with_prior(vector, small, priors)
        single = vector + covariance @ (matrix.T @ right)
        for name in priors:
            size, tried = self._size(name, vector), []
            for strengths in self._strengths(name, vector, small, priors):
                grid = strengths.unit / np.square(WIDTHS * size)
                tried.append((strengths, grid, strengths.evidence(grid) + self._beforehand(strengths, grid, size)))
            top = max(float(likely.max()) for _, _, likely in tried)
            weights = [np.exp(likely - top) for _, _, likely in tried]
            shares = np.concatenate(weights) / sum(float(w.sum()) for w in weights)
            means = np.concatenate([strengths.means(grid) for strengths, grid, _ in tried])
            mean = shares @ means
            apart = np.sqrt(shares)[:, None] * (means - mean)
            own = apart.T @ apart
            for (strengths, grid, _), part in zip(tried, np.split(shares, len(tried)), strict=True):
                own += strengths.covariance(grid, part)
            total += mean - single
            whole += own - covariance
        if len(priors) > 1:  # what is left of a sum of differences may lack a direction
            values, vectors = np.linalg.eigh(whole)
            whole = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return single + total - vector, whole

    def _size(self, name: str, vector: Array) -> float:
        """Root mean square of a function over the domain; 1 where it is still nothing."""
        guess, table = self.tables[name]
        return float(np.sqrt(np.mean(np.square(guess + table @ vector[self.unknowns.slices[name]])))) or 1.0

    def _strengths(self, name: str, vector: Array, rows: DataRows, priors: Mapping[str, Prior]) -> list[Strengths]:
        """One for each order that the prior of a function may have."""
        part, basis = self.unknowns.slices[name], self.unknowns.bases[name]
        pins = rows.pins[:, part]
        known = KnownWeights.of(pins, rows.pinned + pins @ vector[part])
        others = self.roots({key: prior if key != name else Prior(prior.order, 0.0) for key, prior in priors.items()})
        elsewhere = ~np.abs(pins).any(axis=1)
        right, matrix = replace(rows, pinned=rows.pinned[elsewhere], pins=rows.pins[elsewhere]).stacked()
        others = others[np.abs(others).any(axis=1)]
        right = np.append(right + matrix @ vector, np.zeros(len(others)))  # for the unknowns, not for their change
        matrix = np.concatenate([matrix, others])
        rising = [order for order in ORDERS if basis.count > basis.polynomials(order - 1)]  # of a small degree fewer
        orders = [basis.unknown.smoothness] if basis.unknown.smoothness else rising or [basis.order]
        size, table = self._size(name, vector), self.tables[name][1]
        start = priors[name].strength
        return [Strengths.of(basis, order, table, size, known, part, matrix, right, start) for order in orders]

    @staticmethod
    def _beforehand(strengths: Strengths, grid: Array, size: float) -> Array:
        """log probability of strengths (G,) before anything is measured, per unit of log λ.

        Half-Cauchy in the standard deviation of the prior, its scale the size of the function. Flat in the logarithm,
        bands of wavy functions would hold 85 % of them, not 93.
        """
        width = np.sqrt(strengths.unit / grid) / size
        return np.log(width) - np.log1p(width**2) + np.log(SMOOTHER) * strengths.order

    @staticmethod
    def _scales(rows: DataRows, noise: Noise, covariance: Array) -> list[float]:
        """Standard deviations from residuals, those that are given as they are."""
        scales = list(noise.scales)
        for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
            if noise.estimated[k]:
                left = max(len(r) - min(determined(slope, covariance), len(r) - 1.0), 1.0)
                factor = float(np.sqrt(np.square(r).sum() / left))
                if rows.losses[k] == "huber":
                    factor = 1.4826 * float(np.median(np.abs(r)))
                scales[k] *= max(factor, 1e-8)
        return scales


def _near(scales: list[float], first: tuple[float, ...]) -> tuple[float, ...]:
    """Not further than one linearisation reaches; below, exact data make residuals as small as they are."""
    return tuple(float(min(max(new, 1e-8 * old), AT_ONCE * old)) for new, old in zip(scales, first, strict=True))


def _reduced(rows: DataRows) -> DataRows:
    """As many rows a set as there are unknowns, and one, with the same sums of squares; robust weights applied."""
    residuals, slopes = [], []
    for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
        root = rows.weights(k)
        triangle: Array = np.linalg.qr(np.column_stack([root[:, None] * slope, root * r]), mode="r")  # type: ignore[assignment]
        residuals.append(triangle[:, -1])
        slopes.append(triangle[:, :-1])
    triangle = np.linalg.qr(np.column_stack([rows.pins, rows.pinned]), mode="r")  # type: ignore[assignment]
    plain = ("squares",) * len(rows.losses)
    return DataRows(tuple(residuals), tuple(slopes), triangle[:, -1], triangle[:, :-1], plain, rows.responses)
