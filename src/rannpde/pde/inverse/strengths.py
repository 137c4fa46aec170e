"""All strengths of one smoothness prior at once: the posterior of a linearised model, and its evidence, for each.

Of one unknown function with weights c, ∫ |∂^order f|² = |B c|². What is known of it beforehand holds exactly:
c = c₀ + Z w with c₀ the smoothest function that meets it. The prior is w ~ N(0, (λ ZᵀBᵀBZ + FᵀF)⁻¹), F so weak that
polynomials below the order are free up to ten times the size of the function. With z for w and all other unknowns, rows
A and right sides y of everything else, A and B are made diagonal together:

    AᵀA + FᵀF + λ ZᵀBᵀBZ = Rᵀ V diag(f(λ)) Vᵀ R ,    f(λ) = 1 - s² + (λ/λ₀) s² ,

by a QR decomposition at λ₀ and singular values s, so that small and large strengths lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array
from rannpde.pde.inverse.unknowns import FunctionBasis

FREE = 1e-4
"""Share of the largest singular value of the pins below which they say nothing of a direction."""
WIDE = 10.0
"""So many times its size is the standard deviation of a function in what its prior leaves alone."""
FAINT = 1e-11
"""Share of what a column weighs that keeps directions finite that nothing determines."""


@dataclass(frozen=True, eq=False)
class KnownWeights:
    """What is known of a function beforehand: its weights are first (count,) + basis (count, m) · anything."""

    first: Array
    basis: Array

    @classmethod
    def of(cls, pins: Array, right: Array) -> KnownWeights:
        """From rows (k, count) and their right sides."""
        touching = np.abs(pins).any(axis=1)
        if not touching.any():
            return cls(np.zeros(pins.shape[1]), np.eye(pins.shape[1]))
        left, singular, vectors = np.linalg.svd(pins[touching], full_matrices=True)
        rank = int((singular > FREE * singular[0]).sum())
        first = vectors[:rank].T @ ((left[:, :rank].T @ right[touching]) / singular[:rank])
        return cls(first, vectors[rank:].T)


@dataclass(frozen=True, eq=False)
class Strengths:
    """Unknowns (p,) = centre + spread · v, v of mean pull / f(λ) and variance 1 / f(λ), for every λ.

    shares (q,) : s² of the posterior, before (m,) : of the prior; start : λ₀; unit : the prior's variance times λ,
    averaged over the domain; base : the log evidence without its terms in λ
    """

    order: int
    centre: Array
    spread: Array
    pull: Array
    shares: Array
    before: Array
    start: float
    unit: float
    base: float

    @classmethod
    def of(
        cls, basis: FunctionBasis, order: int, table: Array, size: float, known: KnownWeights,
        part: slice, matrix: Array, right: Array, start: float,
    ) -> Strengths:  # fmt: skip
        """From rows (N, p) and right sides (N,) of all that counts beside the prior and what is known.

        table (M, count) : the functions at points of the domain; size : of the function, in the root mean square
        """
        bends = basis.bends(order)
        free, unit = _free(basis, order, bends, table)
        rough, flat = bends @ known.basis, free @ known.basis / (WIDE * size)
        first = known.first - known.basis @ np.linalg.lstsq(rough, bends @ known.first, rcond=1e-13)[0]
        centre = np.zeros(matrix.shape[1])
        centre[part] = first
        others = np.delete(np.arange(len(centre)), part)
        embed = np.zeros((len(centre), len(others) + known.basis.shape[1]))
        embed[others, np.arange(len(others))] = 1.0
        embed[part, len(others) :] = known.basis
        side = np.zeros((len(flat), len(others)))
        weak = np.column_stack([side, flat])
        strong = np.sqrt(start) * np.column_stack([np.zeros((len(rough), len(others))), rough])
        ahead, left = matrix @ embed, right - matrix @ centre
        scale = 1.0 / np.maximum(np.linalg.norm(np.concatenate([ahead, weak, strong]), axis=0), 1e-300)
        rows = np.concatenate([ahead * scale, weak * scale, FAINT * np.eye(len(scale))])
        triangle, shares, turn, q = _together(rows, strong * scale)
        first_logs = float(np.log(np.abs(np.diag(triangle)) / scale).sum())
        own = scale[len(others) :]
        upright = np.concatenate([flat * own, FAINT * np.eye(len(own))])
        below, before, _, _ = _together(upright, np.sqrt(start) * rough * own)
        prior_logs = float(np.log(np.abs(np.diag(below)) / own).sum())
        pull = turn.T @ (q[: len(left)].T @ left)
        spread = embed @ (scale[:, None] * solve_triangular(triangle, turn))
        base = prior_logs - first_logs - 0.5 * float(left @ left)
        return cls(order, centre, spread, pull, shares, before, start, unit, base)

    def evidence(self, grid: Array) -> Array:
        """log p(measured | known, λ) for every λ of a grid, (G,)."""
        after = _factors(self.shares, grid / self.start)
        before = _factors(self.before, grid / self.start)
        logs = np.log(before).sum(axis=1) - np.log(after).sum(axis=1)
        return self.base + 0.5 * (logs + (self.pull**2 / after).sum(axis=1))

    def means(self, grid: Array) -> Array:
        """The unknowns for every λ, (G, p)."""
        return self.centre + (self.pull / _factors(self.shares, grid / self.start)) @ self.spread.T

    def covariance(self, grid: Array, weights: Array) -> Array:
        """Σ of the covariances (p, p) for every λ, weighted."""
        return (self.spread * (weights @ (1.0 / _factors(self.shares, grid / self.start)))) @ self.spread.T


def _free(basis: FunctionBasis, order: int, bends: Array, table: Array) -> tuple[Array, float]:
    """Rows (k, count) of the mean size of the polynomials below the order; and the variance of the rest for λ = 1."""
    _, values, vectors = np.linalg.svd(bends)
    sizes = np.sqrt(np.mean(np.square(table @ vectors.T), axis=0))
    rest = max(len(values) - basis.polynomials(order - 1), 0)
    unit = float(np.square(sizes[:rest] / np.maximum(values[:rest], 1e-300)).sum())
    return sizes[rest:, None] * vectors[rest:], unit if rest else 1.0


def _together(rows: Array, strong: Array) -> tuple[Array, Array, Array, Array]:
    """R of both stacked, s² (q,) of the second in it, its singular vectors (q, q), and Q of the first."""
    q, triangle = np.linalg.qr(np.concatenate([rows, strong]))
    _, singular, vectors = np.linalg.svd(q[len(rows) :], full_matrices=True)
    shares = np.zeros(len(triangle))
    shares[: len(singular)] = np.minimum(singular**2, 1.0)
    return triangle, shares, vectors.T, q[: len(rows)]


def _factors(shares: Array, ratios: Array) -> Array:
    """f (G, q) for strengths so many times the one of the decomposition."""
    return np.maximum(1.0 - shares + ratios[:, None] * shares, 1e-300)
