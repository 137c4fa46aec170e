"""Eigenvalues of matrix polynomials Σ_k λ^k A_k: linearisation, shift and invert, two-sided Rayleigh–Ritz refinement.

A polynomial of degree n is linearised by z = (x, νx, …), L0 z + ν L1 z = 0, with λ = scale · ν such that the blocks
have about the same size. Everything is computed from factorisations of L0 + σ L1: the eigenvalues of
-(L0 + σ L1)⁻¹ L1 are 1/(ν - σ), the largest of which are computed best.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, splu

from rannpde.arrays import Array
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES, SAME_EIGENVALUE, SpectrumSettings
from rannpde.pde.tolerance import MUCH_SMALLER, SAME_SOLUTION

FINITE = 1e-11
"""Eigenvalues 1/(ν - σ) below this share of the largest belong to infinite ν, which conditions and constraints have."""
NUDGE = 3e-10
"""Relative distance of a shift from the eigenvalue that is refined: far above rounding, far below the distance of
clusters."""
MOVED = SAME_SOLUTION
"""Relative change by refinement above which an eigenvalue was none."""
SWEEPS = 2
"""Inverse iterations on each side: the first gives all digits where the shift is close."""


Select = Callable[[Array], Array]
"""Orders eigenvalues by how much they are wanted: positions, the most wanted first."""


@dataclass(frozen=True, eq=False)
class EigenPairs:
    """Eigenvalues (K,), vectors (K, N), and bounds (K,) of what rounding may have changed."""

    values: Array
    vectors: Array
    rounding: Array


@dataclass(frozen=True, eq=False)
class MatrixPencil:
    """Σ_k λ^k A_k with sparse A_k (N, N); scale : a typical size of λ."""

    matrices: tuple[Any, ...]
    scale: float

    def linearised(self) -> tuple[Any, Any]:
        """L0 and L1, sparse, with rows of size one."""
        parts = [matrix * self.scale**power for power, matrix in enumerate(self.matrices)]
        size = sum(np.asarray(abs(part).max(axis=1).todense()).ravel() for part in parts)
        factor = sparse.diags(1 / np.where(size > 0, size, 1.0))
        parts = [sparse.csc_matrix(factor @ part) for part in parts]
        degree, count = len(parts) - 1, parts[0].shape[0]
        if degree == 1:
            return parts[0], parts[1]
        unit = sparse.identity(count, format="csc")
        zeros = [[None] * degree for _ in range(degree)]
        lower: list[list[Any]] = [list(row) for row in zeros]
        upper: list[list[Any]] = [list(row) for row in zeros]
        lower[0] = list(parts[:-1])
        upper[0][-1] = parts[-1]
        for k in range(1, degree):  # ν z_{k-1} = z_k
            lower[k][k] = unit
            upper[k][k - 1] = -unit
        return sparse.bmat(lower, format="csc"), sparse.bmat(upper, format="csc")


def eigenpairs(
    pencil: MatrixPencil,
    count: int,
    select: Select,
    known: Array | None,
    settings: SpectrumSettings,
    rng: np.random.Generator,
) -> EigenPairs:
    """The ``count`` most wanted eigenvalues of a pencil; ``known`` : approximations, from a coarser discretisation."""
    below, above = pencil.linearised()
    size = below.shape[0]
    if known is None or size <= settings.dense:
        values, vectors = _all(below, above, rng)
    else:
        values, vectors = _near(below, above, np.asarray(known) / pencil.scale, rng)
    order = select(values * pencil.scale)
    parts: list[EigenPairs] = []
    total = 0
    while total < count and len(order):  # infinite ones, split by rounding, move far away when they are refined
        chosen, order = order[: count - total], order[count - total :]
        pairs = refined(below, above, values[chosen], vectors[:, chosen], settings, rng)
        moved = np.abs(pairs.values - values[chosen]) > MOVED * np.maximum(np.abs(values[chosen]), 1.0)
        settled = np.flatnonzero(~moved & np.isfinite(pairs.values))
        parts.append(EigenPairs(pairs.values[settled], pairs.vectors[settled], pairs.rounding[settled]))
        total += len(settled)
    if not parts:
        return EigenPairs(np.zeros(0, dtype=complex), np.zeros((0, pencil.matrices[0].shape[0])), np.zeros(0))
    together = EigenPairs(
        np.concatenate([one.values for one in parts]) * pencil.scale,
        np.concatenate([one.vectors for one in parts])[:, : pencil.matrices[0].shape[0]],
        np.concatenate([one.rounding for one in parts]) * pencil.scale,
    )
    order = select(together.values)
    return EigenPairs(together.values[order], together.vectors[order], together.rounding[order])


def _all(below: Any, above: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """All finite eigenvalues ν with vectors in columns, by a dense eigenproblem of the shifted inverse."""
    shift = -rng.uniform(0.35, 0.75)
    lower, upper = below.toarray(), above.toarray()
    try:
        with warnings.catch_warnings():  # what is left of a singular pencil does not agree between discretisations
            warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
            inverse = -scipy.linalg.solve(lower + shift * upper, upper)
        values, vectors = scipy.linalg.eig(inverse)
    except (scipy.linalg.LinAlgError, ValueError):
        return np.zeros(0, dtype=complex), np.zeros((len(lower), 0), dtype=complex)
    finite = np.abs(values) > FINITE * np.abs(values).max(initial=0.0)
    return shift + 1 / values[finite], vectors[:, finite]


def _near(below: Any, above: Any, known: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenvalues ν near known ones: discs around shifts, until each known value lies in one."""
    size = below.shape[0]
    start = rng.standard_normal(size)
    values: list[complex] = []
    vectors: list[Array] = []
    discs: list[tuple[complex, float]] = []
    several = min(max(8, 2 * len(known)), 40, size - 2)
    for one in known:
        if any(abs(one - centre) < (1 - MUCH_SMALLER) * radius for centre, radius in discs):
            continue
        real = not np.iscomplexobj(below) and not np.iscomplexobj(above) and abs(one.imag) <= 1e-12 * abs(one)
        shift = complex(one) + NUDGE**0.5 * max(abs(one), 1.0) * (1 if real else 1 + 0.3j)
        shift = shift.real if real else shift
        solver = _factorised(below + shift * above)
        kind = float if real else complex
        operator = LinearOperator(
            (size, size), matvec=lambda x, s=solver, k=kind: -s.solve((above @ x).astype(k)), dtype=kind
        )
        try:
            inverses, columns = eigs(operator, several, v0=start.astype(kind), which="LM", tol=1e-12)
        except ArpackNoConvergence as failure:
            inverses, columns = failure.eigenvalues, failure.eigenvectors
        except ArpackError:
            continue
        if not len(inverses):
            continue
        offsets = 1 / inverses
        discs.append((shift, float(np.abs(offsets).max())))
        for number, value in enumerate(shift + offsets):
            magnitude = max(abs(value), 1.0)
            new = all(abs(value - old) > MUCH_SMALLER * SAME_EIGENVALUE * magnitude for old in values)
            clustered = any(
                abs(value - shift - other) < DISTINCT_EIGENVALUES * magnitude and k != number
                for k, other in enumerate(offsets)
            )
            if (new or clustered) and not _spanned(columns[:, number], vectors, values, value):
                values.append(complex(value))
                vectors.append(columns[:, number])
    if not values:
        return np.zeros(0, dtype=complex), np.zeros((size, 0), dtype=complex)
    return np.array(values), np.stack(vectors, axis=1)


@dataclass(frozen=True, eq=False)
class _DenseFactors:
    """LU factors of a dense matrix with the calls of SuperLU."""

    factors: tuple[Array, Array]

    def solve(self, right: Array, trans: str = "N") -> Array:
        """The solution for right-hand sides; with the adjoint for trans = "H"."""
        return np.asarray(scipy.linalg.lu_solve(self.factors, right, trans="NTH".index(trans), check_finite=False))


def _factorised(matrix: Any) -> Any:
    """LU factors of a sparse matrix, or of one that is full all the same."""
    if 2 * matrix.nnz > matrix.shape[0] ** 2:
        return _DenseFactors(scipy.linalg.lu_factor(matrix.toarray(), check_finite=False))
    return splu(sparse.csc_matrix(matrix))


def _spanned(vector: Array, vectors: Sequence[Array], values: Sequence[complex], value: complex) -> bool:
    """Whether a vector lies in the span of those that belong to the same eigenvalue."""
    same = [
        own
        for own, other in zip(vectors, values, strict=True)
        if abs(other - value) <= DISTINCT_EIGENVALUES * max(abs(value), 1.0)
    ]
    if not same:
        return False
    basis = np.linalg.qr(np.stack(same, axis=1))[0]
    rest = np.linalg.norm(vector - basis @ (basis.conj().T @ vector))
    return bool(rest < DISTINCT_EIGENVALUES / MUCH_SMALLER * np.linalg.norm(vector))


def clusters(values: Array, same: float, size: float) -> list[Array]:
    """Positions of values that are the same but for a relative difference; ``size`` : the least scale of it.

    >>> [group.tolist() for group in clusters(np.array([1.0, 2.0, 1.0 + 1e-9]), 1e-6, 1.0)]
    [[0, 2], [1]]
    """
    left = list(range(len(values)))
    groups = []
    while left:
        group = [left.pop(0)]
        for member in group:
            near = [k for k in left if abs(values[k] - values[member]) <= same * max(abs(values[member]), size)]
            group += near
            left = [k for k in left if k not in near]
        groups.append(np.array(sorted(group)))
    return groups


def refined(
    below: Any, above: Any, values: Array, vectors: Array, settings: SpectrumSettings, rng: np.random.Generator
) -> EigenPairs:
    """Each cluster of eigenvalues again, by inverse iteration from both sides and the Rayleigh–Ritz quotient Y* L X."""
    size = below.shape[0]
    improved = np.array(values, dtype=complex)
    rows = np.array(vectors.T, dtype=complex)
    rounding = np.zeros(len(values))
    lower, upper = abs(below), abs(above)
    for group in clusters(values, settings.same, 1.0):
        centre = complex(values[group].mean())
        shift = centre + NUDGE * max(abs(centre), 1.0) * (1 + 0.7j)
        solver = _factorised((below + shift * above).astype(complex))
        right = rows[group].T
        left = rng.standard_normal((size, len(group))) + 0j
        for _ in range(SWEEPS):
            right = np.linalg.qr(solver.solve(np.ascontiguousarray(above @ right)))[0]
            left = np.linalg.qr(solver.solve(np.ascontiguousarray(above.conj().T @ left), trans="H"))[0]
        mass = left.conj().T @ (above @ right)
        stiff = left.conj().T @ (below @ right)
        if np.linalg.cond(mass) > 1 / np.finfo(float).eps:  # a defective eigenvalue: as it was, with no digits known
            rounding[group] = np.inf
            continue
        own, turn = np.linalg.eig(-np.linalg.solve(mass, stiff))
        right = right @ turn
        left = left @ np.linalg.inv((mass @ turn).conj().T)
        improved[group] = own
        rows[group] = right.T
        sums = np.abs(left).T @ (lower @ np.abs(right)) + np.abs(own) * (np.abs(left).T @ (upper @ np.abs(right)))
        rounding[group] = settings.rounding * np.finfo(float).eps * np.abs(np.diag(sums))
    return EigenPairs(improved, rows, rounding)
