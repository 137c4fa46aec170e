"""Dense symmetric problems K x = λ M x of boxes: blocks that do not mix, Lanczos iteration, and counting by inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from rannpde.arrays import Array
from rannpde.pde.spectrum.algebra import EigenPairs
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.rounding import EPS


def symmetric_pair(matrices: list[Array]) -> tuple[Array, Array] | None:
    """K and a definite M with K x = λ M x; None where the matrices are not such."""
    if len(matrices) != 2:
        return None
    stiff, mass = matrices[0], -matrices[1]
    diagonal = np.sqrt(np.abs(np.diag(stiff)) + np.abs(np.diag(mass)) * np.abs(np.diag(stiff)).max())
    if not (diagonal > 0).all():
        return None
    for one in (stiff, mass):
        scaled = one / diagonal[:, None] / diagonal
        if np.abs(scaled - scaled.conj().T).max() > 1e-10 * np.abs(scaled).max():
            return None
    stiff, mass = 0.5 * (stiff + stiff.conj().T), 0.5 * (mass + mass.conj().T)
    if np.real(np.diag(mass)).max() < 0:
        stiff, mass = -stiff, -mass
    try:
        scipy.linalg.cholesky(mass / np.sqrt(np.outer(np.diag(mass), np.diag(mass))))
    except (scipy.linalg.LinAlgError, ValueError):
        return None
    return stiff, mass


@dataclass(frozen=True, eq=False)
class SymmetricSearch:
    """The wanted eigenvalues of symmetric matrices; scale : a typical one."""

    wanted: Wanted
    scale: float
    settings: SpectrumSettings
    rng: np.random.Generator

    def pairs(self, stiff: Array, mass: Array, count: int, known: Array | None) -> EigenPairs | None:
        """The wanted eigenvalues of K x = λ M x; None where this way fails."""
        size = len(stiff)
        count = min(count, size)
        if self.wanted.which in ("lowest imaginary", "highest imaginary"):
            return None
        scale = 1 / np.sqrt(np.real(np.diag(mass)))
        grid = np.outer(scale, scale)
        if known is None or size <= self.settings.dense or count > size // 4:
            values, vectors = scipy.linalg.eigh(stiff * grid, mass * grid)
            chosen = self.wanted.order(values.astype(complex))[:count]
            values, vectors = values[chosen], scale[:, None] * vectors[:, chosen]
        else:
            values, vectors = self._inverted(stiff * grid, mass * grid, count, known)
            vectors = scale[:, None] * vectors
        if len(values) < count:
            return None
        sums = np.einsum("ik,ik->k", np.abs(vectors), np.abs(stiff) @ np.abs(vectors))
        sums += np.abs(values) * np.einsum("ik,ik->k", np.abs(vectors), np.abs(mass) @ np.abs(vectors))
        norms = np.real(np.einsum("ik,ik->k", vectors.conj(), mass @ vectors))
        values = np.real(np.einsum("ik,ik->k", vectors.conj(), stiff @ vectors)) / norms
        return EigenPairs(values, vectors.T, self.settings.rounding * np.finfo(float).eps * sums / norms)

    def _inverted(self, stiff: Array, mass: Array, count: int, known: Array) -> tuple[Array, Array]:
        """Eigenpairs by Lanczos iteration with the inverse of K - σM, σ beyond the wanted end or near a wanted number.

        Cholesky's factorisation succeeds exactly where no eigenvalue lies beyond the shift.
        """
        known = np.sort(np.real(known))
        end = self.wanted.which in ("lowest", "highest")
        sign = -1.0 if self.wanted.which == "highest" else 1.0
        step = max(float(np.ptp(known)), self.scale) / len(known)
        shift = float(known[0] if sign > 0 else known[-1])
        if not end:
            near = 0.0 if self.wanted.near is None else float(np.real(self.wanted.near))
            factors = scipy.linalg.lu_factor(stiff - near * mass, check_finite=False)
        while end:
            shift -= sign * step
            try:
                factors = scipy.linalg.cho_factor(sign * (stiff - shift * mass), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                step *= 2

        def solved(vector: Array) -> Array:
            if end:
                return np.asarray(sign * scipy.linalg.cho_solve(factors, vector, check_finite=False))
            return np.asarray(scipy.linalg.lu_solve(factors, vector, check_finite=False))

        shift = shift if end else near
        inverse = LinearOperator(stiff.shape, matvec=solved, dtype=stiff.dtype)
        begin = self.rng.standard_normal(len(stiff)).astype(stiff.dtype)
        try:
            return eigsh(stiff, count, M=mass, sigma=shift, OPinv=inverse, which="LM", v0=begin, tol=1e-14)
        except (ArpackNoConvergence, ArpackError):
            return np.zeros(0), np.zeros((len(stiff), 0))


def components(matrices: list[Array]) -> list[Array]:
    """Unknowns (each an array of positions) that matrices couple above rounding: reflections, or waves one by one."""
    total: Array = np.zeros(matrices[0].shape)
    for one in matrices:
        size = np.sqrt(np.abs(np.diag(one)))
        largest = float(np.abs(one).max())
        floor = np.maximum(np.outer(size, size), EPS * largest + np.finfo(float).tiny)
        total = np.maximum(total, np.abs(one) / floor)
    linked = total > len(total) * EPS
    count, labels = connected_components(sparse.csr_matrix(linked), directed=False)
    return [np.flatnonzero(labels == k) for k in range(count)]


def negative(matrix: Array) -> int:
    """The number of negative eigenvalues of a Hermitian matrix, by its factorisation L D L* (Sylvester)."""
    _, blocks, _ = scipy.linalg.ldl(matrix, hermitian=True, check_finite=False)
    diagonal, beside = np.real(np.diag(blocks)), np.abs(np.diag(blocks, 1))
    pairs = np.flatnonzero(beside > 0)  # blocks of two have one eigenvalue of each sign
    single = np.ones(len(diagonal), dtype=bool)
    single[pairs] = single[pairs + 1] = False
    return int((diagonal[single] < 0).sum()) + len(pairs)
