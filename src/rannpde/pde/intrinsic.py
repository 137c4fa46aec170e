"""Intrinsic scales of the linearised equations: how fast their solutions can oscillate along each coordinate.

With coefficients frozen at a point, solutions that depend on one coordinate alone are sums of exp(λ x_a), where λ are
the roots of the symbol along that axis, det Σ_k A_k λ^k = 0, A_k being the matrix of the coefficients of ∂_a^k. A wave
whose root has a large imaginary part is in the solution whatever the data look like: 1/k for u_xx + k² u. A
discretisation that does not resolve it can leave a small residual and be wrong, and two of them can agree.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ive, jv

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of
from rannpde.rounding import EPS

WAVE_DAMPING = 0.5
"""A root λ belongs to a wave where |Re λ| ≤ WAVE_DAMPING · |Im λ|: a fifth of it survives half a wavelength. What
decays faster is a layer, which shows in residuals."""


def axis_coefficients(problem: Problem, state: State, points: Array) -> Array | None:
    """Return the coefficients (n, orders, M, F, F) of ∂_a^k in each equation (row) and field (column) at points (M, n).

    None where there are not as many equations as fields. Mixed derivatives are not among them.
    """
    fields, dim = problem.fields, problem.domain.dim
    equations = [term for term in problem.interior if term.expression.jets]
    if len(equations) != len(fields):
        return None
    needed = {jet for term in equations for jet in term.expression.jets}
    if any(jet.field not in fields for jet in needed):
        return None  # an unknown function or number: its derivative is no coefficient of the fields
    jets = jets_of(state, fields, points, needed)
    coefficients = np.zeros((dim, 1 + max(jet.order for jet in needed), len(points), len(fields), len(fields)))
    for row, term in enumerate(equations):
        _, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        for jet, partial in zip(term.expression.jets, partials, strict=True):
            for axis in range(dim):
                if jet.order == jet.index[axis]:
                    coefficients[axis, jet.order, :, row, fields.index(jet.field)] += partial
    return coefficients


def symbol_roots(problem: Problem, state: State, points: Array) -> list[Array]:
    """Return for each axis the roots λ (M, count) of the symbol at points (M, n), padded by zeros.

    state : where non-linear equations are linearised; linear ones are the same everywhere
    """
    coefficients = axis_coefficients(problem, state, points)
    if coefficients is None:
        return [np.zeros((len(points), 1), dtype=complex)] * problem.domain.dim
    result = []
    for one in coefficients:
        distinct, home = _distinct(one)
        roots = [_roots(one) for one in distinct]
        padded = np.zeros((len(roots), max(map(len, roots))), dtype=complex)
        for k, own in enumerate(roots):
            padded[k, : len(own)] = own
        result.append(padded[home])
    return result


def wavenumbers(problem: Problem, state: State, points: Array) -> Array:
    """Return the largest wavenumber |Im λ| of undamped waves along each axis at points (M, n), as an array (M, n).

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.functions import Zero
    >>> from rannpde.pde.problem.conditions import On
    >>> problem = Problem("u_xx + 400*u = 1", Interval(0, 1), {"ends": On("boundary", "u = 0")})
    >>> wavenumbers(problem, Zero(1), np.array([[0.5]])).round(9)
    array([[20.]])
    """
    largest = []
    for roots in symbol_roots(problem, state, points):
        waves = np.where(np.abs(roots.real) <= WAVE_DAMPING * np.abs(roots.imag), np.abs(roots.imag), 0.0)
        largest.append(waves.max(axis=1, initial=0.0))
    return np.stack(largest, axis=1)


def layer_rates(problem: Problem, state: State) -> tuple[float, float]:
    """Return the largest rates |Re λ| at which solutions on an interval grow towards its lower and upper end.

    A layer of the width 1/rate may stand at that end, whatever the data look like.

    >>> from rannpde.domains import Interval
    >>> from rannpde.pde.functions import Zero
    >>> from rannpde.pde.problem.conditions import On
    >>> problem = Problem("0.01*u_xx + u_x = 1", Interval(0, 1), {"ends": On("boundary", "u = 0")})
    >>> layer_rates(problem, Zero(1))
    (100.0, 0.0)
    """
    ends = np.asarray(problem.domain.bounds, dtype=float).T
    (roots,) = symbol_roots(problem, state, ends)
    rates = np.round(roots.real, 9)
    return float((-rates[0]).max(initial=0.0)), float(rates[1].max(initial=0.0))


def _distinct(coefficients: Array) -> tuple[list[Array], Array]:
    """Return the different matrix polynomials (orders, F, F) among those of all points, and the one of each point."""
    by_point = np.moveaxis(coefficients, 1, 0)
    flat = by_point.reshape(len(by_point), -1)
    _, first, home = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    return [by_point[k] for k in first], np.ravel(home)


def _roots(matrices: Array) -> Array:
    """Return the roots λ of det Σ_k A_k λ^k for matrices (orders, F, F); none where they are not finite."""
    checkpoint()
    none = np.zeros(0, dtype=complex)
    if not np.isfinite(matrices).all():
        return none
    norms = np.array([np.linalg.norm(matrix) for matrix in matrices])
    present = np.flatnonzero(norms > 0)
    if len(present) < 2:
        return none
    low, high = present[0], present[-1]
    scale = (norms[low] / norms[high]) ** (1 / (high - low))  # roots of the scaled polynomial are of order one
    fields = matrices.shape[1]
    degree = (len(matrices) - 1) * fields
    unit = np.exp(2j * np.pi * np.arange(degree + 1) / (degree + 1))
    powers = (scale * unit[:, None]) ** np.arange(len(matrices))
    values = np.linalg.det(np.tensordot(powers, matrices, axes=(1, 0)) / norms[low] / scale**low)
    polynomial = np.fft.fft(values) / (degree + 1)
    size = np.abs(polynomial).max()
    if not np.isfinite(size) or size == 0:
        return none
    polynomial = np.where(np.abs(polynomial) > 100 * EPS * degree * size, polynomial, 0)
    return scale * np.roots(polynomial[::-1].real)


def resolved_phase(degree: int, tol: float) -> float:
    """Return the largest phase k·h over a cell of length h at which functions of a degree resolve cos(k x) to ``tol``.

    The Chebyshev coefficient of order p of exp(i z x) on [-1, 1] has the size 2|J_p(z)|, z = k·h/2, which falls faster
    than any power once p > z: the first neglected coefficient must be below the tolerance.

    >>> bool(resolved_phase(10, 1e-2) > resolved_phase(10, 1e-6) > 0)
    True
    """
    phases = np.linspace(0, degree + 1, 400)
    below = 2 * np.abs(jv(degree + 1, phases)) <= tol
    return 2 * float(phases[: int(np.argmin(below))].max(initial=0.0)) if not below.all() else 2.0 * (degree + 1)


def resolved_growth(degree: int, tol: float) -> float:
    """Return the largest exponent a·h over a cell of length h at which functions of a degree resolve exp(a x).

    The Chebyshev coefficient of order p of exp(z x) on [-1, 1], relative to its largest value e^z, is 2 I_p(z) e^-z.
    """
    exponents = np.linspace(0, degree**2, 2000)
    below = 2 * ive(degree + 1, exponents) <= tol
    return 2 * float(exponents[: int(np.argmin(below))].max(initial=0.0)) if not below.all() else 2.0 * degree**2
