"""Noise that is not given, and the strength of smoothness priors, by the largest evidence; and the covariance.

With residuals over the noise r, their derivative -J and a prior of precision Λ = λ·roughness on unknown functions,

    covariance  C = (JᵀJ + Λ)⁻¹ ,      what the data determine  γ = tr(J C Jᵀ) ,

and MacKay's fixed point is σ² = |d - q|²/(N - γ), λ as in ``Smoothness``. The model is linearised once for a whole
fixed point: the rows of each set are first reduced to as many as there are unknowns (QR), which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.inverse.rows import Noise, Rows
from rannpde.pde.inverse.unknowns import Unknowns

DOUBT = 1e-3
"""Weight of the pseudo-observation that a function may be as rough as it is large; bands are a little wide with it."""
FREE = 1e-4
"""Share of the largest singular value of the pins below which they say nothing of a direction."""
RIDGE = 1e-12
"""Share of the largest singular value below which the data say nothing, up to rounding."""
PATIENCE, CLOSE = 60, 1e-3
"""Iterations of the fixed point, and the relative change that ends it."""
AT_ONCE = 100.0
"""By which factor noise and strengths change at most before the model is linearised anew."""


def typical(matrix: Array) -> Array:
    """What each unknown changes by to change the rows (N, p) by one: (p,)."""
    norms = np.linalg.norm(matrix, axis=0)
    return 1.0 / np.maximum(norms, max(float(norms.max(initial=0.0)) * 1e-14, 1e-300))


def posterior(matrix: Array, moving: Array) -> tuple[Array, Array]:
    """C (p, p) of rows (N, p) with the prior's, for the unknowns that move; and directions left free (k, p)."""
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


@dataclass(frozen=True, eq=False)
class Smoothness:
    """What the evidence asks of one unknown function: how much it adds to the smoothest one that meets its pins.

    What is known beforehand does not vote: an analytic rim would call the inside as smooth as itself. Where the data
    determine nothing, one pseudo-observation makes the prior as wide as the function is large.

    part : of the vector; rough (m,); along (k, m) : part → directions that no pin holds and the prior does, each with
    its roughness ``values`` (k,)
    """

    part: slice
    rough: Array
    along: Array
    values: Array

    @classmethod
    def of(cls, part: slice, rough: Array, pins: Array) -> Smoothness:
        """From the rows of the pins (N, p)."""
        rows = pins[:, part]
        _, singular, right = np.linalg.svd(rows[np.abs(rows).any(axis=1)], full_matrices=True)
        held = int((singular > FREE * singular.max(initial=0.0)).sum())
        left = right[held:]
        values, vectors = np.linalg.eigh((left * rough) @ left.T)
        rises = values > FREE**2 * rough.max()
        return cls(part, rough, vectors[:, rises].T @ (left * rough), values[rises])

    def strength(self, vector: Array, covariance: Array, before: float, size: float) -> float:
        """λ = γ_f / Σ roughness c²; size : mean square of the function."""
        if not len(self.values):  # pins hold everything that the prior could
            return before
        bend = float((np.square(self.along @ vector[self.part]) / self.values).sum())
        gamma = max(len(self.values) - before * float(self.rough @ np.diag(covariance)[self.part]), 0.0)
        widest = float((1 / self.values).sum()) / size
        return (gamma + DOUBT) / (bend + DOUBT / widest)


class Evidence:
    """The fixed point for the unknowns of a regression; places (M, n): where the size of functions is looked at."""

    def __init__(self, unknowns: Unknowns, places: Array) -> None:
        self.unknowns = unknowns
        self.tables = {}
        for name, basis in unknowns.bases.items():
            points = places[:, [unknowns.coordinates.index(c) for c in unknowns.unknown[name].of]]
            still = (0,) * points.shape[1]
            self.tables[name] = basis.guess.derivative(points, still), basis.table(points, still)

    def roots(self, strengths: Mapping[str, float]) -> Array:
        """Square roots of the prior's precisions (p,), 0 for numbers."""
        found = np.zeros(self.unknowns.count)
        for name, basis in self.unknowns.bases.items():
            found[self.unknowns.slices[name]] = np.sqrt(strengths[name] * basis.roughness)
        return found

    def with_prior(self, vector: Array, rows: Rows, strengths: Mapping[str, float]) -> tuple[Array, Array]:
        """All rows, the prior's last: right sides (N,), matrix (N, p)."""
        right, matrix = rows.stacked()
        roots = self.roots(strengths)
        held = roots > 0
        return np.append(right, -(roots * vector)[held]), np.concatenate([matrix, np.diag(roots)[held]])

    def learned(
        self, vector: Array, rows: Rows, noise: Noise, strengths: dict[str, float]
    ) -> tuple[Noise, dict[str, float], Rows]:
        """Noise and strengths of the largest evidence, with the rows linearised as they are."""
        if not (any(noise.estimated) or strengths):
            return noise, strengths, rows
        everything = np.ones(self.unknowns.count, dtype=bool)
        votes = {
            name: Smoothness.of(self.unknowns.slices[name], basis.roughness, rows.pins)
            for name, basis in self.unknowns.bases.items()
        }
        small = _reduced(rows)
        first, found, begin = noise, dict(strengths), dict(strengths)
        for _ in range(PATIENCE):
            factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
            right, matrix = self.with_prior(vector, small.scaled(factors), found)
            covariance, _ = posterior(matrix, everything)
            change = covariance @ (matrix.T @ right)
            scales = self._scales(rows.scaled(factors).moved(change), noise, covariance)
            noise_before, before, noise = noise, dict(found), replace(noise, scales=_near(scales, first.scales))
            for name, vote in votes.items():
                guess, table = self.tables[name]
                there = vector + change
                size = float(np.mean(np.square(guess + table @ there[vote.part]))) or 1.0
                wanted = vote.strength(there, covariance, found[name], size)
                found[name] = float(np.clip(wanted, begin[name] / AT_ONCE, AT_ONCE * begin[name]))
            moves = [abs(new / old - 1) for old, new in zip(noise_before.scales, noise.scales, strict=True)]
            if max([*moves, *(abs(found[name] / before[name] - 1) for name in found)]) < CLOSE:
                break
        factors = [old / new for old, new in zip(first.scales, noise.scales, strict=True)]
        return noise, found, rows.scaled(factors)

    @staticmethod
    def _scales(rows: Rows, noise: Noise, covariance: Array) -> list[float]:
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


def _reduced(rows: Rows) -> Rows:
    """As many rows a set as there are unknowns, and one, with the same sums of squares; robust weights applied."""
    residuals, slopes = [], []
    for k, (r, slope) in enumerate(zip(rows.residuals, rows.slopes, strict=True)):
        root = rows.weights(k)
        triangle: Array = np.linalg.qr(np.column_stack([root[:, None] * slope, root * r]), mode="r")  # type: ignore[assignment]
        residuals.append(triangle[:, -1])
        slopes.append(triangle[:, :-1])
    triangle = np.linalg.qr(np.column_stack([rows.pins, rows.pinned]), mode="r")  # type: ignore[assignment]
    plain = ("squares",) * len(rows.losses)
    return Rows(tuple(residuals), tuple(slopes), triangle[:, -1], triangle[:, :-1], plain, rows.responses)
