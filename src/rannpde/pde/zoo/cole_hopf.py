"""Burgers' equation from -sin πx, exactly: the Cole–Hopf transformation turns it into the heat equation.

u = -2ν φ_x/φ with φ_t = ν φ_xx and φ(0, y) = f(y) = exp(-cos(πy)/(2πν)). The heat kernel gives every derivative,

    ∂_t^i ∂_x^j φ = ν^i ∂_x^(2i+j) φ,        ∂_x^k φ(t, x) = π^(-1/2) ∫ f^(k)(x - 2√(νt) s) e^(-s²) ds,

an integral of an analytic function that decays like a Gaussian: the trapezoidal rule converges geometrically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, pi

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import finite_points, reject, require
from rannpde.network.features import multi_index

_REACH, _STEP = 14.0, 0.04
"""The integrand may peak where e^(-s²) is e^(-100) for ν = 0.01/π; the spacing resolves peaks of width 0.3 (tested)."""
_BLOCK = 2000
"""Points that are evaluated at once, to bound the memory."""


@dataclass(frozen=True)
class ColeHopf:
    """u(t, x) at points (M, 2), for t ≥ 0 and any x, with exact derivatives of total order ≤ 4.

    >>> ColeHopf(0.1)([[0.0, 0.5], [1.0, 0.0]]).round(12) + 0.0
    array([-1.,  0.])
    """

    viscosity: float

    def __post_init__(self) -> None:
        require(
            0.002 <= self.viscosity < np.inf,
            "viscosity",
            self.viscosity,
            "at least 0.002, where the quadrature is exact",
        )

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """(M,). With w = φ_x/φ, u = -2νw, derivatives in x follow from Leibniz's rule, those in t from the equation."""
        in_time, in_space = multi_index(derivative, 2)
        if in_time > 2 or in_time + in_space > 4:
            reject("derivative", derivative, "of order at most 2 in time and 4 in total")
        points = finite_points("points", points, 2)
        parts = [self._block(points[k : k + _BLOCK], in_time, in_space) for k in range(0, len(points), _BLOCK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _block(self, points: Array, in_time: int, in_space: int) -> Array:
        potentials = self._potentials(points, 1 + in_space + 2 * in_time)
        # ∂_t φ = ν φ_xx: the jets of (φ, φ_x) in time are those in x, shifted by two
        grid = {
            (i, j): self.viscosity**i * potentials[2 * i + j] for i in range(in_time + 1) for j in range(in_space + 2)
        }
        ratio: dict[tuple[int, int], Array] = {}
        for i in range(in_time + 1):
            for j in range(in_space + 1):
                rest = sum(
                    comb(i, a) * comb(j, b) * grid[a, b] * ratio[i - a, j - b]
                    for a in range(i + 1)
                    for b in range(j + 1)
                    if (a, b) != (0, 0)
                )
                ratio[i, j] = (grid[i, j + 1] - rest) / grid[0, 0]
        return -2 * self.viscosity * ratio[in_time, in_space]

    def _potentials(self, points: Array, order: int) -> list[Array]:
        """∂_x^k φ for k = 0, …, order, all divided by the same positive number at each point."""
        nodes = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
        positions = points[:, 1:] - 2 * np.sqrt(self.viscosity * np.maximum(points[:, :1], 0.0)) * nodes
        exponent = -np.cos(pi * positions) / (2 * pi * self.viscosity) - nodes**2
        kernel = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        # f' = f g with g = sin(πy)/(2ν), so f^(k+1) = Σ C(k, j) f^(j) g^(k-j)
        slopes = [pi**k * np.sin(pi * positions + k * pi / 2) / (2 * self.viscosity) for k in range(order)]
        factors = [np.ones_like(positions)]
        for k in range(order):
            factors.append(
                sum((comb(k, j) * factors[j] * slopes[k - j] for j in range(k + 1)), np.zeros_like(positions))
            )
        return [np.einsum("ij,ij->i", kernel, factor) for factor in factors]
