"""Which process an equation has: exact ones where constants suffice, Euler's steps otherwise.

The coefficients are formulas; their form (constant, proportional to x, affine) is recognised at random points.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject
from rannpde.pde.paths.euler import NEGATIVE, EulerProcess
from rannpde.pde.paths.processes import GaussianProcess, LognormalProcess
from rannpde.pde.problem.parabolic import Parabolic
from rannpde.pde.statement.vector import KINKS, Operation, combine, evaluate_vector, scalar_constant
from rannpde.pde.statement.vector_reading import DiffusionFactors
from rannpde.rounding import COMPUTED

COEFFICIENT_PROBES = 4
"""Random points at which the form of analytic coefficients is recognised; one would do with probability one."""


def process_of(form: Parabolic) -> GaussianProcess | LognormalProcess | EulerProcess:
    """The process of an equation: exact where constants suffice, Euler otherwise."""
    matrices = [f for f in form.second if f.middle is not None]
    if not matrices:
        diagonal = tuple((f.scale, f.diagonal) for f in form.second)
        return _of_diagonal(form, diagonal)
    if len(form.second) > 1 and not all(f.left is None and f.scale.constant for f in form.second):
        reject(
            "trace(…)", f"{len(form.second)} terms", "one term trace(diag(v)*C*diag(v)*hessian(u)), or constant ones"
        )
    return _of_matrix(form, matrices)


def _constant(node: Operation) -> float:
    return float(evaluate_vector(node, {})[0, 0])


def _of_matrix(form: Parabolic, matrices: list[DiffusionFactors]) -> GaussianProcess | LognormalProcess | EulerProcess:
    first = matrices[0]
    assert first.middle is not None
    if all(f.left is None and f.scale.constant and (f.diagonal is None or f.diagonal.constant) for f in form.second):
        total = np.zeros((form.dim, form.dim))
        for f in form.second:
            own = np.eye(form.dim) if f.middle is None else f.middle
            if f.diagonal is not None:
                own = np.diag(np.broadcast_to(evaluate_vector(f.diagonal, {})[0], (form.dim,)))
            total += 2 * _constant(f.scale) * own
        triangle = _triangle(total)
        affine = _affine_drift(form)
        if affine is not None and np.ptp(affine[1]) == 0:
            return GaussianProcess(*affine, triangle)
        return EulerProcess(form, 1, (), scalar_constant(0.5), None, triangle)
    if first.scale.constant and first.left is not None:
        rate, growth = _proportional(form, first.left), _proportional_drift(form)
        if rate is not None and growth is not None:
            triangle = _triangle(2 * _constant(first.scale) * rate[:, None] * first.middle * rate)
            return LognormalProcess(growth, triangle)
    return EulerProcess(form, 1, (), first.scale, first.left, _triangle(first.middle))


def _of_diagonal(
    form: Parabolic, diagonal: tuple[tuple[Operation, Operation | None], ...]
) -> GaussianProcess | LognormalProcess | EulerProcess:
    parts = [scale if own is None else combine("multiply", scale, own) for scale, own in diagonal]
    total = parts[0]
    for part in parts[1:]:
        total = combine("add", total, part)
    if total.constant:
        variance = np.broadcast_to(2 * evaluate_vector(total, {})[0], (form.dim,)).copy()
        if not (variance >= 0).all() or not variance.any():
            raise InputError(NEGATIVE)
        affine = _affine_drift(form)
        if affine is not None:
            return GaussianProcess(*affine, np.sqrt(variance))
    root = _proportional(form, total, 2)
    growth = _proportional_drift(form)
    if root is not None and growth is not None:
        if not (root >= 0).all():
            raise InputError(NEGATIVE)
        return LognormalProcess(growth, np.sqrt(2 * root))
    return EulerProcess(form, 1, diagonal)


def _triangle(matrix: Array) -> Array:
    """A root S with S Sᵀ = matrix, which may be singular but not indefinite."""
    scale = np.abs(matrix).max()
    if not np.allclose(matrix, matrix.T, atol=1e-10 * scale):
        reject("the matrix of trace(…)", matrix, "symmetric")
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values[0] < -1e-10 * scale or values[-1] <= 0:
        raise InputError(NEGATIVE)
    if values[0] > 1e-12 * scale:
        return np.linalg.cholesky(0.5 * (matrix + matrix.T))
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _analytic(*nodes: Operation) -> bool:
    return not any(node.has(*KINKS) for node in nodes)


def _probes(form: Parabolic) -> list[tuple[float, Array]]:
    rng = np.random.default_rng(20)
    return [(form.length * rng.uniform(), rng.uniform(0.5, 2.0, (1, form.dim))) for _ in range(COEFFICIENT_PROBES)]


def _proportional(form: Parabolic, node: Operation, power: int = 1) -> Array | None:
    """(d,) with node = c·x**power for every component, or None."""
    if not _analytic(node):
        return None
    factors = [evaluate_vector(node, form.known(s, x))[0] / x[0] ** power for s, x in _probes(form)]
    return _same([np.broadcast_to(one, (form.dim,)) for one in factors])


def _same(factors: list[Array]) -> Array | None:
    scale = max(float(np.abs(one).max()) for one in factors)
    spread = max(float(np.abs(one - factors[0]).max()) for one in factors)
    return np.array(factors[0]) if np.isfinite(scale) and spread <= COMPUTED * scale else None


def _drift_at(form: Parabolic, s: float, x: Array) -> Array:
    total: Array = np.zeros_like(x)
    for one in form.drift:
        total = total + evaluate_vector(one, form.known(s, x))
    return total[0]


def _proportional_drift(form: Parabolic) -> Array | None:
    if not _analytic(*form.drift):
        return None
    return _same([_drift_at(form, s, x) / x[0] for s, x in _probes(form)])


def _affine_drift(form: Parabolic) -> tuple[Array, Array] | None:
    """β and κ of a drift β - κx, component by component, or None."""
    if not _analytic(*form.drift):
        return None
    if all(one.constant for one in form.drift):
        return _drift_at(form, 0.0, np.zeros((1, form.dim))), np.zeros(form.dim)
    origin = [_drift_at(form, s, np.zeros_like(x)) for s, x in _probes(form)]
    slopes = [(_drift_at(form, s, x) - zero) / x[0] for (s, x), zero in zip(_probes(form), origin, strict=True)]
    constant, slope = _same(origin), _same(slopes)
    return None if constant is None or slope is None else (constant, -slope)
