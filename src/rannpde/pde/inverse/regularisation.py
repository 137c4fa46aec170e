"""Regularisation path: posterior and evidence of a linearised model for all parameters λ of one smoothness prior.

For one unknown function with weights c, ∫ |∂^order f|² = |B c|². Conditions on it hold exactly: c = c₀ + Z w, with c₀
the smoothest function that satisfies them. The prior is w ~ N(0, (λ ZᵀBᵀBZ + FᵀF)⁻¹), with F so small that polynomials
below the order have a standard deviation of ten times the size of the function. With z for w and all other unknowns,
and rows A and right-hand sides y of all other terms, A and B are diagonalised together:

    AᵀA + FᵀF + λ ZᵀBᵀBZ = Rᵀ V diag(f(λ)) Vᵀ R ,    f(λ) = 1 - s² + (λ/λ₀) s² ,

by a QR decomposition at λ₀ and singular values s, so that no digits are lost for small and large λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from rannpde.arrays import Array
from rannpde.pde.inverse.settings import IdentificationSettings
from rannpde.pde.inverse.unknowns import FunctionBasis
from rannpde.pde.tolerance import MUCH_SMALLER

CONSTRAINT_RANK_SHARE = IdentificationSettings.constraint_tolerance
"""Share of the largest singular value of the constraints below which a direction is unconstrained: what it changes is
within the error with which constraints are met."""
UNPENALISED_WIDTH = 1 / MUCH_SMALLER
"""Standard deviation of polynomials that the prior does not penalise, in sizes of the function, which are much smaller.
"""
FAINT_RIDGE = 1e-11
"""Ridge, relative to the norm of a column, that keeps undetermined directions finite."""


@dataclass(frozen=True, eq=False)
class ConstrainedWeights:
    """The affine space of weights that satisfy the conditions: first (count,) + basis (count, m) · anything."""

    first: Array
    basis: Array

    @classmethod
    def of(cls, conditions: Array, right: Array) -> ConstrainedWeights:
        """The space of the solutions of rows (k, count) with right-hand sides (k,)."""
        involved = np.abs(conditions).any(axis=1)
        if not involved.any():
            return cls(np.zeros(conditions.shape[1]), np.eye(conditions.shape[1]))
        left, singular, vectors = np.linalg.svd(conditions[involved], full_matrices=True)
        rank = int((singular > CONSTRAINT_RANK_SHARE * singular[0]).sum())
        first = vectors[:rank].T @ ((left[:, :rank].T @ right[involved]) / singular[:rank])
        return cls(first, vectors[rank:].T)


@dataclass(frozen=True, eq=False)
class RegularisationPath:
    """Unknowns (p,) = centre + spread · v, with v of mean coefficients / f(λ) and variance 1 / f(λ), for every λ.

    shares (q,) : s² of the posterior, before (m,) : of the prior; start : λ₀; unit : the prior's variance times λ,
    marginalised over the domain; base : the log evidence without its terms in λ
    """

    order: int
    centre: Array
    spread: Array
    coefficients: Array
    shares: Array
    before: Array
    start: float
    unit: float
    base: float

    @classmethod
    def of(
        cls, basis: FunctionBasis, order: int, table: Array, size: float, known: ConstrainedWeights,
        part: slice, matrix: Array, right: Array, start: float,
    ) -> RegularisationPath:  # fmt: skip
        """The path from rows (N, p) and right-hand sides (N,) of all terms but the prior and the conditions.

        table (M, count) : the basis at points of the domain; size : root mean square of the function
        """
        seminorm = basis.seminorm(order)
        free, unit = _free(basis, order, seminorm, table)
        rough, flat = seminorm @ known.basis, free @ known.basis / (UNPENALISED_WIDTH * size)
        first = known.first - known.basis @ np.linalg.lstsq(rough, seminorm @ known.first, rcond=1e-13)[0]
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
        rows = np.concatenate([ahead * scale, weak * scale, FAINT_RIDGE * np.eye(len(scale))])
        triangle, shares, turn, q = _joint_diagonalisation(rows, strong * scale)
        first_logs = float(np.log(np.abs(np.diag(triangle)) / scale).sum())
        own = scale[len(others) :]
        upright = np.concatenate([flat * own, FAINT_RIDGE * np.eye(len(own))])
        below, before, _, _ = _joint_diagonalisation(upright, np.sqrt(start) * rough * own)
        prior_logs = float(np.log(np.abs(np.diag(below)) / own).sum())
        coefficients = turn.T @ (q[: len(left)].T @ left)
        spread = embed @ (scale[:, None] * solve_triangular(triangle, turn))
        base = prior_logs - first_logs - 0.5 * float(left @ left)
        return cls(order, centre, spread, coefficients, shares, before, start, unit, base)

    def evidence(self, grid: Array) -> Array:
        """log p(measured | conditions, λ) for every λ of a grid, (G,)."""
        after = _factors(self.shares, grid / self.start)
        before = _factors(self.before, grid / self.start)
        logs = np.log(before).sum(axis=1) - np.log(after).sum(axis=1)
        return self.base + 0.5 * (logs + (self.coefficients**2 / after).sum(axis=1))

    def means(self, grid: Array) -> Array:
        """The unknowns for every λ, (G, p)."""
        return self.centre + (self.coefficients / _factors(self.shares, grid / self.start)) @ self.spread.T

    def covariance(self, grid: Array, weights: Array) -> Array:
        """Σ of the covariances (p, p) for every λ, weighted."""
        return (self.spread * (weights @ (1.0 / _factors(self.shares, grid / self.start)))) @ self.spread.T


def _free(basis: FunctionBasis, order: int, seminorm: Array, table: Array) -> tuple[Array, float]:
    """Rows (k, count) that measure the polynomials below the order, and the variance of the rest for λ = 1."""
    _, values, vectors = np.linalg.svd(seminorm)
    sizes = np.sqrt(np.mean(np.square(table @ vectors.T), axis=0))
    rest = max(len(values) - basis.polynomials(order - 1), 0)
    unit = float(np.square(sizes[:rest] / np.maximum(values[:rest], 1e-300)).sum())
    return sizes[rest:, None] * vectors[rest:], unit if rest else 1.0


def _joint_diagonalisation(rows: Array, strong: Array) -> tuple[Array, Array, Array, Array]:
    """R of both stacked, s² (q,) of the second in it, its singular vectors (q, q), and Q of the first."""
    q, triangle = np.linalg.qr(np.concatenate([rows, strong]))
    _, singular, vectors = np.linalg.svd(q[len(rows) :], full_matrices=True)
    shares = np.zeros(len(triangle))
    shares[: len(singular)] = np.minimum(singular**2, 1.0)
    return triangle, shares, vectors.T, q[: len(rows)]


def _factors(shares: Array, ratios: Array) -> Array:
    """f (G, q) for ratios λ/λ₀ (G,)."""
    return np.maximum(1.0 - shares + ratios[:, None] * shares, 1e-300)
