"""Solid harmonics: regular ones about a point of a domain in space, multipoles about a point in a hole.

In coordinates over a radius, and with R_l^{-m} = (-1)^m conj(R_l^m), likewise for I,

    R_l^l = (x + iy)/(2l) R_{l-1}^{l-1},         (l² - m²) R_l^m = (2l-1) z R_{l-1}^m - r² R_{l-2}^m,
    I_l^l = (2l-1)(x + iy)/r² I_{l-1}^{l-1},     r² I_l^m = (2l-1) z I_{l-1}^m - ((l-1)² - m²) I_{l-2}^m,

and derivatives are solid harmonics again (Epton and Dembart, 1995): with D± = ∂_x ± i∂_y,

    D₊ R_l^m = -R_{l-1}^{m+1},   D₋ R_l^m = R_{l-1}^{m-1},   ∂_z R_l^m = R_{l-1}^m,
    D₊ I_l^m = -I_{l+1}^{m+1},   D₋ I_l^m = I_{l+1}^{m-1},   ∂_z I_l^m = -I_{l+1}^m.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.families import CanonicalFamily, ladder
from rannpde.pde.trefftz.operator import CanonicalForm


def regular_harmonics(points: Array, degree: int) -> Array:
    """R_l^m (degree + 1, degree + 1, M) at points (M, 3), zero for m > l."""
    plane, height, square = points @ np.array([1, 1j, 0]), points[:, 2], np.square(points).sum(axis=1)
    found = np.zeros((degree + 1, degree + 1, len(points)), dtype=complex)
    found[0, 0] = 1.0
    for order in range(1, degree + 1):
        found[order, order] = plane / (2 * order) * found[order - 1, order - 1]
        m = np.arange(order)[:, None]
        rest = found[order - 2, :order] if order > 1 else np.zeros((order, len(points)))
        found[order, :order] = ((2 * order - 1) * height * found[order - 1, :order] - square * rest) / (order**2 - m**2)
    return found


def irregular_harmonics(points: Array, degree: int) -> Array:
    """I_l^m (degree + 1, degree + 1, M) at points (M, 3), zero for m > l."""
    plane, height, square = points @ np.array([1, 1j, 0]), points[:, 2], np.square(points).sum(axis=1)
    found = np.zeros((degree + 1, degree + 1, len(points)), dtype=complex)
    found[0, 0] = 1 / np.sqrt(square)
    for order in range(1, degree + 1):
        found[order, order] = (2 * order - 1) * plane / square * found[order - 1, order - 1]
        m = np.arange(order)[:, None]
        rest = found[order - 2, :order] if order > 1 else np.zeros((order, len(points)))
        raised = (2 * order - 1) * height * found[order - 1, :order] - ((order - 1) ** 2 - m**2) * rest
        found[order, :order] = raised / square
    return found


class AboutCentre(CanonicalFamily):
    """Re and Im of functions of degree l and order m ≤ l about one point of space, up to a degree."""

    degree: int

    @property
    def columns(self) -> int:
        return (int(self.degree) + 1) ** 2

    @property
    def orders(self) -> Array:
        """The degree l (N,) of every feature."""
        l, m = np.tril_indices(int(self.degree) + 1)  # noqa: E741 - the names of the degree and the order everywhere
        return np.concatenate([l, l[m > 0]])

    def parts(self, complex_ones: Array) -> Array:
        """Features (M, N) from functions (M, K) with m ≥ 0, of which those with m = 0 are real."""
        _, m = np.tril_indices(int(self.degree) + 1)
        return np.concatenate([complex_ones.real, complex_ones.imag[:, m > 0]], axis=1)


@dataclass(frozen=True, eq=False)
class SolidFamily(AboutCentre):
    """Re and Im of solid harmonics up to a degree, (degree + 1)² features that have the size one at the radius.

    regular : R_l^m, smooth everywhere, or I_l^m, singular at the centre
    """

    kind: ClassVar[str] = "solid"
    form: CanonicalForm
    centre: Array
    radius: float
    degree: int
    regular: bool

    def canonical(self, points: Array, index: MultiIndex) -> Array:
        degree, order = int(self.degree), sum(index)
        here = (points - self.centre) / self.radius
        known = regular_harmonics(here, degree) if self.regular else irregular_harmonics(here, degree + order)
        found = np.zeros((degree + 1, degree + 1, len(points)), dtype=complex)
        for up, down, weight in ladder((index[0], index[1])):
            sign = (-1) ** up * (1 if self.regular else (-1) ** index[2])
            found += weight * sign * _moved(known, degree, -order if self.regular else order, up - down)
        found /= self.radius**order
        l, m = np.tril_indices(degree + 1)  # noqa: E741
        size = np.array([np.sqrt(float(factorial(a - b)) * float(factorial(a + b))) for a, b in zip(l, m, strict=True)])
        return self.parts(found[l, m].T * (size if self.regular else 1 / size))


def _moved(known: Array, degree: int, shift: int, turn: int) -> Array:
    """The harmonics of degree l + shift and order m + turn, (degree + 1, degree + 1, M), from those with m ≥ 0."""
    found = np.zeros((degree + 1, degree + 1, known.shape[2]), dtype=complex)
    for l in range(degree + 1):  # noqa: E741
        if not 0 <= l + shift < len(known):
            continue
        m = np.arange(l + 1)
        wanted = m + turn
        here = np.abs(wanted) <= l + shift
        values = known[l + shift, np.abs(wanted[here])]
        negative = (wanted[here] < 0)[:, None]
        found[l, m[here]] = np.where(negative, (-1.0) ** wanted[here][:, None] * values.conj(), values)
    return found
