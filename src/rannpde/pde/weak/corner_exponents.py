"""Exponents of solutions at points where sides and materials meet: u = r^λ Φ(θ), by an eigenvalue problem in θ.

With the flux S = A (λ e_r Φ + e_θ Φ') of sectors of constant A, the equation ∇·(A∇u) = 0 is λ e_r·S + (e_θ·S)' = 0, so
that for all Ψ that vanish where u is prescribed

    ∫ Ψ'·A_θθ Φ' - λ ∫ (Ψ·A_rθ Φ' - Ψ'·A_θr Φ) - λ² ∫ Ψ·A_rr Φ = 0 .

It holds for one field and for systems (Williams' exponents of elasticity), of any anisotropy, in any number of sectors.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.polynomial.legendre import Legendre, leggauss
from scipy.linalg import block_diag, eigvals, null_space

from rannpde.arrays import Array
from rannpde.pde.weak.form import WeakForm
from rannpde.rounding import COMPUTED

SECTOR_DEGREE, WIDEST_SECTOR = 10, 0.5 * pi
"""Of the polynomials in each sector, and its opening at most: they find λ to five digits at an anisotropy of 10."""
WHOLE = 1e-4
"""Distance from an integer that is none for polynomials of this degree: solutions may be smooth then."""


def corner_exponent(
    diffusions: Array, starts: Array, openings: Array, held: tuple[Array, Array] | None = None
) -> float:
    """The least Re λ > 0 at a point; 1 where it is an integer, since solutions may be smooth then.

    diffusions (n, K, F, 2, 2) : of the sectors, which begin at angles (n,) and have
    openings (n,), one after the other; held : projections (K, K) on what is prescribed on the first and the last
    side; None for a whole turn

    >>> even = np.eye(2).reshape(1, 1, 1, 2, 2)
    >>> held, free = np.eye(1), np.zeros((1, 1))
    >>> round(corner_exponent(even, np.zeros(1), np.array([1.5 * pi]), (held, held)), 5)
    0.66667
    >>> round(corner_exponent(even, np.zeros(1), np.array([1.5 * pi]), (held, free)), 5)
    0.33333
    """
    pieces = np.ceil(openings / WIDEST_SECTOR - WHOLE).astype(int)
    diffusions, openings = np.repeat(diffusions, pieces, axis=0), np.repeat(openings / pieces, pieces)
    starts = starts[0] + np.cumsum(openings) - openings
    count, fields, n = len(diffusions), diffusions.shape[1], SECTOR_DEGREE
    nodes, weights = leggauss(n + 4)
    # hat functions of the ends, and integrated Legendre polynomials that vanish there
    values, slopes = [0.5 * (1 - nodes), 0.5 * (1 + nodes)], [0 * nodes - 0.5, 0 * nodes + 0.5]
    for k in range(2, n + 1):
        one = Legendre.basis(k - 1).integ(lbnd=-1)
        values.append(one(nodes))
        slopes.append(one.deriv()(nodes))
    value, slope = np.array(values).T, np.array(slopes).T
    ends = count if held is None else count + 1
    size = ends + count * (n - 1)
    stiff, mixed, mass = np.zeros((3, size, fields, size, fields))
    for sector in range(count):
        half = 0.5 * openings[sector]
        angle = starts[sector] + half * (1 + nodes)
        radial = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        along = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
        inner = range(ends + sector * (n - 1), ends + (sector + 1) * (n - 1))
        own = np.array([sector, (sector + 1) % ends, *inner])

        def tested(
            a: Array, left: Array, b: Array, right: Array, w: Array = weights * half, d: Array = diffusions[sector]
        ) -> Array:
            return np.einsum("q,qi,kfij,qj,qa,qb->akbf", w, a, d, b, left, right, optimize=True)

        block = np.ix_(own, np.arange(fields), own, np.arange(fields))
        stiff[block] += tested(along, slope / half, along, slope / half)
        mass[block] += tested(radial, value, radial, value)
        mixed[block] += tested(radial, value, along, slope / half) - tested(along, slope / half, radial, value)
    free = _free(size, fields, count, held)
    stiff, mixed, mass = (free.T @ one.reshape(size * fields, -1) @ free for one in (stiff, mixed, mass))
    constants = fields if held is None else fields - int(np.linalg.matrix_rank(np.concatenate(held), tol=COMPUTED))
    exponents = _positive(stiff, mixed, mass, constants)
    least = float(exponents.min()) if len(exponents) else 1.0
    return 1.0 if abs(least - round(least)) < WHOLE else least


def _free(size: int, fields: int, last: int, held: tuple[Array, Array] | None) -> Array:
    """Columns that span the functions which vanish where they are prescribed, at the first end and at the last."""
    parts = [np.eye(fields)] * size
    if held is not None:
        for end, projection in zip((0, last), held, strict=True):
            parts[end] = null_space(projection, rcond=COMPUTED) if projection.any() else np.eye(fields)
    return np.asarray(block_diag(*parts))


def _positive(stiff: Array, mixed: Array, mass: Array, constants: int) -> Array:
    """Real parts > 0 of the eigenvalues of stiff - λ mixed - λ² mass, but for λ = 0 of the ``constants``, which is
    double and therefore found to the root of rounding only.

    The companion pencil has blocks of size 1: matrices of that size too lose no digits to stiff materials.
    """
    size = len(stiff)
    largest = max(float(np.abs(one).max()) for one in (stiff, mixed, mass))
    stiff, mixed, mass = stiff / largest, mixed / largest, mass / largest
    companion = np.block([[np.zeros((size, size)), np.eye(size)], [stiff, -mixed]])
    weight = block_diag(np.eye(size), mass)
    eigenvalues = eigvals(companion, weight)
    eigenvalues = eigenvalues[np.isfinite(eigenvalues)]
    eigenvalues = eigenvalues[np.argsort(np.abs(eigenvalues))][2 * constants :].real
    return np.asarray(eigenvalues[eigenvalues > 0])


def sector_diffusions(form: WeakForm, point: Array, radius: float, starts: Array, openings: Array) -> Array:
    """The diffusion (n, K, F, 2, 2) in sectors that begin at angles (n,), a radius away from their common point."""
    angles = starts + 0.5 * openings
    around = point + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return form.at(around).diffusion
