"""Exponents of solutions at points where sectors of different materials meet: an eigenvalue problem on the circle."""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.polynomial.legendre import Legendre, leggauss
from scipy.linalg import eigh

from rannpde.arrays import Array
from rannpde.pde.weak.form import WeakForm

SECTOR_DEGREE = 8
"""Of the polynomials in each sector, which find λ to four digits, of a whole turn to three."""


def sector_factors(form: WeakForm, point: Array, radius: float, starts: Array, openings: Array) -> Array:
    """The diffusion (n,) of one field in sectors that begin at angles (n,), a radius away from their common point."""
    angles = starts + 0.5 * openings
    around = point + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(np.trace(form.at(around).diffusion[:, 0, 0], axis1=1, axis2=2) / 2)


def sector_exponent(factors: Array, openings: Array | None = None, held: tuple[bool, bool] | None = None) -> float:
    """The least λ > 0 of r^λ Φ(θ) with ∇·(k ∇u) = 0, k constant (n,) in sectors: -(k Φ')' = λ² k Φ.

    openings (n,) : of the sectors, which are quadrants unless given; held : whether u is prescribed on the first and on
    the last side of an opening between sides; None for a whole turn

    >>> round(sector_exponent(np.ones(4)), 6), round(sector_exponent(np.array([1.0, 9.0, 1.0, 9.0])), 4)
    (1.0, 0.4097)
    >>> opening = np.array([0.5 * pi, pi])
    >>> round(sector_exponent(np.ones(2), opening, (True, True)), 6), round(
    ...     sector_exponent(np.ones(2), opening, (True, False)), 6)
    (0.666667, 0.333333)
    """
    count, n = len(factors), SECTOR_DEGREE
    openings = np.full(count, 0.5 * pi) if openings is None else openings
    nodes, weights = leggauss(n + 2)
    # hat functions of the ends, and integrated Legendre polynomials that vanish there
    values, slopes = [0.5 * (1 - nodes), 0.5 * (1 + nodes)], [0 * nodes - 0.5, 0 * nodes + 0.5]
    for k in range(2, n + 1):
        one = Legendre.basis(k - 1).integ(lbnd=-1)
        values.append(one(nodes))
        slopes.append(one.deriv()(nodes))
    mass = (np.array(values) * weights) @ np.array(values).T
    stiff = (np.array(slopes) * weights) @ np.array(slopes).T
    ends = count if held is None else count + 1
    size = ends + count * (n - 1)
    left, right = np.zeros((size, size)), np.zeros((size, size))
    for sector, (factor, opening) in enumerate(zip(factors, openings, strict=True)):
        inner = range(ends + sector * (n - 1), ends + (sector + 1) * (n - 1))
        own = [sector, (sector + 1) % ends, *inner]
        left[np.ix_(own, own)] += factor * stiff / (0.5 * opening)
        right[np.ix_(own, own)] += factor * mass * (0.5 * opening)
    fixed = [] if held is None else [end for end, on in zip((0, count), held, strict=True) if on]
    free = np.setdiff1d(np.arange(size), fixed)
    found = eigh(left[np.ix_(free, free)], right[np.ix_(free, free)], eigvals_only=True)
    return float(np.sqrt(found[0 if fixed else 1]))
