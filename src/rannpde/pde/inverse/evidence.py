"""Noise that is not given, and the strength of smoothness priors, by the largest evidence; and the covariance.

With residuals over the noise r, their derivative -J and a prior of precision Λ = λ·roughness on unknown functions,

    covariance  C = (JᵀJ + Λ)⁻¹ ,      what the data determine  γ = tr(J C Jᵀ) ,

σ² = |d - q|²/(N - γ), and order and strength of a prior are those of the largest evidence. What is known beforehand of
a function does not vote: an analytic rim would call the inside as smooth as itself. The model is linearised once for
all of it: the rows of each set are first reduced to as many as there are unknowns (QR), which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from rannpde.arrays import Array
from rannpde.pde.inverse.rows import DataRows, Noise
from rannpde.pde.inverse.unknowns import Unknowns

DOUBT = 1e-3
"""Weight of the pseudo-observation that a function may be as rough as it is large; bands are a little wide with it."""
FREE = 1e-4
"""Share of the largest singular value of the pins below which they say nothing of a direction."""
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
"""Of the smoothness priors among which the evidence chooses, where none was stated."""
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
        found = [np.zeros((0, self.unknowns.count))]
        for name, basis in self.unknowns.bases.items():
            own = np.sqrt(priors[name].strength) * basis.bends(priors[name].order)
            whole = np.zeros((len(own), self.unknowns.count))
            whole[:, self.unknowns.slices[name]] = own
            found.append(whole)
        return np.concatenate(found)

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
        small, first, begin, found = _reduced(rows), noise, dict(priors), dict(priors)
        for _ in range(PATIENCE):
            factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
            now, before = small.scaled(factors), dict(found)
            for name in found:
                found[name] = self._prior(name, vector, now, found, begin[name])
            right, matrix = self.with_prior(vector, now, found)
            covariance, _ = posterior(matrix, everything)
            change = covariance @ (matrix.T @ right)
            scales = self._scales(rows.scaled(factors).moved(change), noise, covariance)
            last, noise = noise, replace(noise, scales=_near(scales, first.scales))
            moves = [abs(new / old - 1) for old, new in zip(last.scales, noise.scales, strict=True)]
            if before == found and max(moves, default=0.0) < CLOSE:
                break
        factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
        return noise, found, rows.scaled(factors)

    def _prior(self, name: str, vector: Array, rows: DataRows, priors: Mapping[str, Prior], begin: Prior) -> Prior:
        """The prior of one function with the largest evidence, the others as they are.

        With H the rows' normal matrix, P the roughness and b the right side, all but λ is found once, in the vectors
        that make H + λ₀P and P diagonal: log evidence = ½ (log |K + λP| - log |H + λP| + bᵀ(H + λP)⁻¹b), where K is
        what is known of the function beforehand: its conditions, and that it is not ten times larger than it seems.
        """
        part, basis = self.unknowns.slices[name], self.unknowns.bases[name]
        others = {key: prior if key != name else Prior(prior.order, 0.0) for key, prior in priors.items()}
        right, matrix = self.with_prior(np.zeros_like(vector), rows, others)
        right[: len(right) - len(self.roots(others))] += rows.stacked()[1] @ vector  # for the unknowns themselves
        scale = typical(np.concatenate([matrix, self.roots(priors)]))
        normal, target = (matrix * scale).T @ (matrix * scale), scale * (matrix.T @ right)
        guess, table = self.tables[name]
        size = float(np.mean(np.square(guess + table @ vector[part]))) or 1.0
        pins = rows.pins[:, part]
        known = pins.T @ pins + np.eye(basis.count) / (100.0 * size)
        grid = begin.strength * np.logspace(-np.log10(AT_ONCE), np.log10(AT_ONCE), LEVELS)
        best, chosen = -np.inf, begin
        for order in (basis.unknown.smoothness,) if basis.unknown.smoothness else ORDERS:
            bends = basis.bends(order)
            rough = bends.T @ bends
            whole = np.zeros_like(normal)
            whole[part, part] = rough * np.outer(scale[part], scale[part])
            told = _logs(known, rough, grid)[0]
            logs, quadratic = _logs(normal, whole, grid, target)
            doubt = DOUBT * (np.log(grid) - grid / _widest(pins, rough, size))
            evidence = 0.5 * (told - logs + quadratic + doubt)
            top = int(np.argmax(evidence))
            if evidence[top] > best:
                best, chosen = float(evidence[top]), Prior(order, float(grid[top]))
        return chosen

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


def _logs(fixed: Array, rough: Array, grid: Array, target: Array | None = None) -> tuple[Array, Array]:
    """log |fixed + λ rough| and targetᵀ(fixed + λ rough)⁻¹ target for every λ of a grid, (G,) each."""
    middle = float(np.median(grid))
    whole = fixed + middle * rough
    whole += 1e-15 * np.trace(whole) / len(whole) * np.eye(len(whole))
    values, vectors = eigh(rough, whole)  # vectorsᵀ whole vectors = 1
    factors = 1.0 + (grid[:, None] - middle) * np.clip(values, 0.0, 1.0 / middle)
    factors = np.maximum(factors, 1e-12)
    logs = np.log(factors).sum(axis=1) - 2.0 * np.linalg.slogdet(vectors)[1]
    along = np.zeros(len(values)) if target is None else vectors.T @ target
    return logs, (along**2 / factors).sum(axis=1)


def _widest(pins: Array, rough: Array, size: float) -> float:
    """λ at which a prior is as wide as the function is large, where no pin holds it; size : its mean square."""
    _, singular, right = np.linalg.svd(pins[np.abs(pins).any(axis=1)], full_matrices=True)
    left = right[int((singular > FREE * singular.max(initial=0.0)).sum()) :]
    values = np.linalg.eigvalsh(left @ rough @ left.T)
    rises = values[values > FREE**2 * max(float(rough.max()), 1e-300)]
    return float((1.0 / rises).sum()) / size if len(rises) else 1.0
