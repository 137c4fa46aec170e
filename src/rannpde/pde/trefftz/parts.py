"""Particular solutions as functions: polynomials, Fourier features, products of Legendre polynomials, measures of
walls, or nothing; and as arrays for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import factorial
from typing import ClassVar

import numpy as np
from numpy.polynomial.legendre import legder, legvander

from rannpde.arrays import BLOCK_BYTES, Array, MultiIndex, row_blocks
from rannpde.errors import choose
from rannpde.pde.trefftz.measures import WallMeasures


@dataclass(frozen=True, eq=False)
class PolynomialPart:
    """Σ c ξ^powers with ξ = (x - origin)/length; powers (K, n), coefficients (K,)."""

    kind: ClassVar[str] = "polynomial"
    powers: Array
    coefficients: Array
    origin: Array
    length: float

    def derivative(self, points: Array, index: MultiIndex) -> Array:
        """∂^index (M,)."""
        unit, total = (points - self.origin) / self.length, np.zeros(len(points))
        for power, value in zip(self.powers.astype(int), self.coefficients, strict=True):
            left = power - np.array(index)
            if (left >= 0).all():
                factor = np.prod([factorial(p) / factorial(q) for p, q in zip(power, left, strict=True)])
                total += value * factor * np.prod(unit**left, axis=1)
        return total / self.length ** sum(index)

    def pack(self) -> dict[str, Array]:
        return {"powers": self.powers.astype(float), "coefficients": self.coefficients, "origin": self.origin,
                "length": np.array([self.length])}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FourierPart:
    """Re Σ c exp(iω·(x - origin)) over a tensor lattice of frequencies, one array for each axis."""

    kind: ClassVar[str] = "fourier"
    frequencies: tuple[Array, ...]
    coefficients: Array
    origin: Array

    def derivative(self, points: Array, index: MultiIndex) -> Array:
        """∂^index (M,)."""
        values = np.empty(len(points))
        size = int(np.prod(self.coefficients.shape[1:])) or 1
        step = max(1, 4_000_000 // size)
        for start in range(0, len(points), step):
            some = points[start : start + step] - self.origin
            waves = [
                np.exp(1j * some[:, axis, None] * omega) * (1j * omega) ** order
                for axis, (omega, order) in enumerate(zip(self.frequencies, index, strict=True))
            ]
            partial = np.tensordot(waves[0], self.coefficients, axes=(1, 0))
            for wave in waves[1:]:
                partial = np.einsum("mk,mk...->m...", wave, partial)
            values[start : start + step] = partial.real
        return values

    def pack(self) -> dict[str, Array]:
        axes = {f"omega{k}": omega for k, omega in enumerate(self.frequencies)}
        return axes | {"coefficients": self.coefficients, "origin": self.origin}


@dataclass(frozen=True, eq=False)
class LegendrePart:
    """Σ c P_i(ξ₁) P_j(ξ₂) … with ξ in [-1, 1]^n over a box (n, 2); coefficients (k₁, …, k_n)."""

    kind: ClassVar[str] = "legendre"
    box: Array
    coefficients: Array

    def derivative(self, points: Array, index: MultiIndex) -> Array:
        """∂^index (M,)."""
        half, middle = 0.5 * np.diff(self.box, axis=1)[:, 0], self.box.mean(axis=1)
        values, derived = np.empty(len(points)), self.coefficients
        for axis, order in enumerate(index):
            derived = legder(derived, order, 1 / half[axis], axis) if order else derived
        for rows in row_blocks(len(points), max(1, BLOCK_BYTES // derived[0].nbytes)):
            unit = (points[rows] - middle) / half
            tables = [legvander(unit[:, axis], count - 1) for axis, count in enumerate(derived.shape)]
            partial = np.tensordot(tables[0], derived, axes=(1, 0))
            for table in tables[1:]:
                partial = np.einsum("mk,mk...->m...", table, partial)
            values[rows] = partial
        return values

    def pack(self) -> dict[str, Array]:
        return {"box": self.box, "coefficients": self.coefficients}


@dataclass(frozen=True, eq=False)
class NoPart:
    """The particular solution of a homogeneous equation: zero."""

    kind: ClassVar[str] = "zero"

    def derivative(self, points: Array, index: MultiIndex) -> Array:
        return np.zeros(len(points))

    def pack(self) -> dict[str, Array]:
        return {}


ParticularPart = PolynomialPart | FourierPart | LegendrePart | WallMeasures | NoPart


def unpack_part(kind: str, arrays: Mapping[str, Array]) -> ParticularPart:
    """The inverse of ``pack``."""
    makers: dict[str, Callable[[], ParticularPart]] = {
        "zero": NoPart,
        "polynomial": lambda: PolynomialPart(
            arrays["powers"], arrays["coefficients"], arrays["origin"], float(arrays["length"][0])
        ),
        "legendre": lambda: LegendrePart(arrays["box"], arrays["coefficients"]),
        "wall measures": lambda: WallMeasures.unpack(arrays),
        "fourier": lambda: FourierPart(
            tuple(arrays[f"omega{k}"] for k in range(len(arrays["origin"]))), arrays["coefficients"], arrays["origin"]
        ),
    }
    return choose("particular solution", kind, makers)()
