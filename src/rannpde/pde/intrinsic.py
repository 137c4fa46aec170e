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
from rannpde.domains.domain import SpaceTime, is_box
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of
from rannpde.rounding import EPS

WAVE_DAMPING = 0.5
"""A root λ belongs to a wave where |Re λ| ≤ WAVE_DAMPING · |Im λ|: a fifth of it survives half a wavelength. What
decays faster is a layer, which shows in residuals."""


TURNING_SAMPLES = 1681
"""Points of an interval or a box at which the rates of modes are integrated, and of a condition that tell where it
stands."""
LARGEST_EXPONENT = float(np.log(np.finfo(float).max))
"""The largest number whose exponential is finite."""


def symbol_roots(problem: Problem, state: State, points: Array) -> list[Array]:
    """Return for each axis the roots λ (M, count) of the symbol at points (M, n), padded by zeros.

    state : where non-linear equations are linearised; linear ones are the same everywhere
    """
    fields, dim = problem.fields, problem.domain.dim
    nothing = [np.zeros((len(points), 1), dtype=complex)] * dim
    equations = [term for term in problem.interior if term.expression.jets]
    if len(equations) != len(fields):
        return nothing
    needed = {jet for term in equations for jet in term.expression.jets}
    if any(jet.field not in fields for jet in needed):
        return nothing  # an unknown function or number: its derivative is no coefficient of the fields
    jets = jets_of(state, fields, points, needed)
    coefficients = np.zeros((dim, 1 + max(jet.order for jet in needed), len(points), len(fields), len(fields)))
    for row, term in enumerate(equations):
        _, partials = term.expression.linearised(term.known(points, problem.vocabulary), jets)
        for jet, partial in zip(term.expression.jets, partials, strict=True):
            for axis in range(dim):
                if jet.order == jet.index[axis]:
                    coefficients[axis, jet.order, :, row, fields.index(jet.field)] += partial
    result = []
    for axis in range(dim):
        distinct, home = _distinct(coefficients[axis])
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


def turning_amplification(problem: Problem, state: State) -> float:
    """Return the factor by which turning points amplify residuals of a boundary value problem on an interval or a box.

    Where solutions decay from both ends towards a point inside, as for ε u'' = x u', layers at the ends take up all
    conditions, and what is between them is determined by nothing but their exponentially small remainder. With S the
    integral of Σ Re λ along the interval (the logarithm of the Wronskian), the factor is exp of the largest barrier
    max S - S(y) between a point y and the nearer of both ends; it is 1 where the modes that grow and those that decay
    balance, as for ε u'' = u, where the layer stands inside or at one end, or where all conditions stand at one end.

    On a box a point is as well determined as along the best of the axes, and an axis counts by the ends at which values
    are prescribed: what leaves through walls y = 0 and y = 1 with given values is determined by them.

    >>> from rannpde.domains import Box, Interval
    >>> from rannpde.pde.functions import Zero
    >>> from rannpde.pde.problem.conditions import On
    >>> ends = {"ends": On("boundary", "u = x")}
    >>> problems = [Problem(f"0.1*u_xx = {speed}*u_x", Interval(-1, 1), ends) for speed in ("x", "(-x)", "1")]
    >>> [round(turning_amplification(problem, Zero(1)), 1) for problem in problems]  # exp(1/(2 · 0.1)) = 148.4
    [148.4, 1.0, 1.0]
    >>> ends, box = On(("x=-1", "x=1"), "u = x"), Box(x=(-1, 1), y=(0, 1))
    >>> conditions = [{"ends": ends, "walls": On(("y=0", "y=1"), text)} for text in ("u_y = 0", "u = x")]
    >>> problems = [Problem("0.1*laplace(u) = x*u_x", box, one) for one in conditions]
    >>> [round(turning_amplification(problem, Zero(1)), 1) for problem in problems]
    [148.4, 1.0]
    """
    domain, dim = problem.domain, problem.domain.dim
    if dim > 1 and (isinstance(domain, SpaceTime) or not is_box(domain) or len(problem.fields) > 1):
        return 1.0
    bounds = np.asarray(domain.bounds, dtype=float)
    determined = [_determined_ends(problem, axis, bounds[axis]) for axis in range(dim)]
    if (dim == 1 and not all(determined[0])) or not any(map(any, determined)):
        return 1.0
    axes = [np.linspace(lower, upper, round(TURNING_SAMPLES ** (1 / dim))) for lower, upper in bounds]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    barriers = np.full(grid.shape[:-1], np.inf)
    for axis, roots in enumerate(symbol_roots(problem, state, grid.reshape(-1, dim))):
        rates = np.moveaxis(roots.real.sum(axis=1).reshape(grid.shape[:-1]), axis, 0)
        step = axes[axis][1] - axes[axis][0]
        integral = np.concatenate([0 * rates[:1], np.cumsum(0.5 * step * (rates[1:] + rates[:-1]), axis=0)])
        highest = [np.maximum.accumulate(integral), np.maximum.accumulate(integral[::-1])[::-1]]
        for reached, counts in zip(highest, determined[axis], strict=True):
            if counts:
                barriers = np.minimum(barriers, np.moveaxis(reached - integral, 0, axis))
    return float(np.exp(min(barriers.max(), LARGEST_EXPONENT)))


def _determined_ends(problem: Problem, axis: int, ends: Array) -> tuple[bool, bool]:
    """Whether conditions stand at the lower and the upper end of an axis; on a box, conditions on values."""
    conditions = [term for term in problem.terms if term.kind in ("boundary", "initial") and term.region is not None]
    if problem.domain.dim > 1:
        conditions = [term for term in conditions if any(jet.order == 0 for jet in term.expression.jets)]
    points = [np.asarray(term.region.sample(TURNING_SAMPLES, rng=0))[:, axis] for term in conditions]  # type: ignore[union-attr]
    positions = np.concatenate([np.zeros(0), *points])
    near = np.abs(positions[:, None] - ends) <= 1e-9 * (ends[1] - ends[0])
    return bool(near[:, 0].any()), bool(near[:, 1].any())


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
