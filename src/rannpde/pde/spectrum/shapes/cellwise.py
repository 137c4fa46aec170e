"""Eigenvalue problems on cells and traces, P(λ) z = (K - λ M₁ - λ² M₂ - …) z = 0, condensed on traces.

The masses M act within cells only. For a shift σ the matrices of cells are eliminated one by one and the Schur
complement on the traces is factorised, so that P(σ)⁻¹ costs as much as a solve. With λ = σ + sμ and w_j = μ^j x,

    w_0 / μ = -P(σ)⁻¹ Σ_j s^(j+1) P⁽ʲ⁺¹⁾(σ)/(j+1)! w_j ,      w_j / μ = w_(j-1) ,

is an eigenvalue problem for 1/μ, whose largest values are the λ nearest to σ (Krylov's spaces, shift and invert). If K
is symmetric and there is one mass, the number of negative eigenvalues of K - σM, but for those of the constraints, is
that of eigenvalues below σ (Sylvester); it is the sum of those of cells and of the Schur complement (Haynsworth).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, eigsh, splu

from rannpde.arrays import Array
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.assembly import nested_dissection
from rannpde.pde.weak.evaluation import CellsWithFunctions
from rannpde.pde.weak.local import by_kind
from rannpde.rounding import COMPUTED, EPS


@dataclass(frozen=True, eq=False)
class CellGroup:
    """Cells (B,) with as many faces: their kinds (B,), numbers of their traces (B, T), and the matrices of the kinds.

    square (U, n, n), upper (U, n, T), lower (U, T, n), corner (U, T, T) : of K; masses : M₁, M₂, … each (U, n, n)
    """

    cells: Array
    same: Array
    traces: Array
    square: Array
    upper: Array
    lower: Array
    corner: Array
    masses: tuple[Array, ...]


class CellPencil:
    """K and the masses of a problem on a mesh.

    local : the mesh with the functions of its cells; total : traces, of which ``active`` are unknown;
    block : traces of a face; constraints : how many of the traces are multipliers of constraints, each of which is a
    negative eigenvalue; scale : a typical eigenvalue
    """

    def __init__(
        self,
        local: CellsWithFunctions,
        groups: Sequence[CellGroup],
        total: int,
        scale: float,
        block: int = 1,
        active: Array | None = None,
        constraints: int = 0,
    ) -> None:
        self.local, self.groups, self.total, self.scale = local, tuple(groups), total, scale
        self.block, self.constraints = block, constraints
        self.active = np.ones(total, dtype=bool) if active is None else active
        self.length = self.groups[0].square.shape[1]
        self.degree = len(self.groups[0].masses)

    @property
    def count(self) -> int:
        return self.local.mesh.count

    @property
    def unknowns(self) -> int:
        return self.count * self.length + int(self.active.sum())

    @cached_property
    def kind(self) -> type:
        """The type of the numbers of the matrices."""
        parts = [part for one in self.groups for part in (one.square, *one.masses)]
        return complex if any(map(np.iscomplexobj, parts)) else float

    @cached_property
    def symmetric(self) -> bool:
        """Whether the matrices are real and symmetric and there is one mass."""
        if self.kind is complex or self.degree > 1:
            return False
        return not any(
            _uneven(one.square) or _uneven(one.upper, one.lower) or _uneven(one.masses[0]) for one in self.groups
        )

    @cached_property
    def sign(self) -> int:
        """1 where the mass is symmetric and non-negative, -1 where it is non-positive, 0 where it is neither."""
        if self.kind is complex or self.degree > 1 or any(map(_uneven, (one.masses[0] for one in self.groups))):
            return 0
        values = np.concatenate([np.linalg.eigvalsh(one.masses[0]).ravel() for one in self.groups])
        low, high = float(values.min()), float(values.max())
        if low >= -COMPUTED * max(high, 0.0) and high > 0:
            return 1
        return -1 if high <= COMPUTED * max(-low, 0.0) and low < 0 else 0

    @cached_property
    def roots(self) -> list[Array]:
        """R (U, n, n) of each group with ±M = RᵀR."""
        roots = []
        for one in self.groups:
            values, vectors = np.linalg.eigh(self.sign * one.masses[0])
            roots.append(np.sqrt(np.maximum(values, 0.0))[:, :, None] * np.swapaxes(vectors, 1, 2))
        return roots

    def times_mass(self, weights: Array, power: int = 1) -> Array:
        """M of a power of λ times weights (C, n)."""
        products = np.empty(weights.shape, dtype=np.result_type(self.kind, weights))
        for one in self.groups:
            products[one.cells] = by_kind(one.masses[power - 1], one.same, weights[one.cells])
        return products

    def absolute_quotient(self, value: complex, weights: Array, traces: Array) -> float:
        """Σ |z| |K| |z| / |z P'(λ) z| of a mode with weights (C, n) and traces (T,): rounding is eps times this."""
        own, trace, total = np.abs(weights), np.abs(traces), 0.0
        for one in self.groups:
            inside, around = own[one.cells], trace[one.traces]
            total += float((inside * by_kind(np.abs(one.square), one.same, inside)).sum())
            total += 2 * float((inside * by_kind(np.abs(one.upper), one.same, around)).sum())
            total += float((around * by_kind(np.abs(one.corner), one.same, around)).sum())
        slope = sum(k * value ** (k - 1) * self.times_mass(weights, k) for k in range(1, self.degree + 1))
        return total / max(float(np.abs(np.vdot(weights, slope))), 1e-300)

    def shifted(self, shift: complex) -> ShiftedCells:
        """The factorisation of P(shift)."""
        real = self.kind is float and np.imag(shift) == 0
        return ShiftedCells(self, float(np.real(shift)) if real else complex(shift))

    @cached_property
    def order(self) -> Array | None:
        """An order of elimination of the active traces in space, by nested dissection; None where a fill-reducing one
        is left to the factorisation."""
        if self.local.layer.dim < 3 or self.constraints:
            return None
        return (nested_dissection(self.local.mesh)[:, None] * self.block + np.arange(self.block)).ravel()


class ShiftedCells:
    """P(σ)⁻¹ on cells and traces, and how many eigenvalues lie below σ."""

    def __init__(self, pencil: CellPencil, shift: complex) -> None:
        self.pencil, self.shift = pencil, shift
        self.kind = float if isinstance(shift, float) else complex
        rows, columns, entries = [], [], []
        self.inverses, self.responses = [], []
        self._negative = 0
        for one in pencil.groups:
            square = one.square - sum(shift ** (k + 1) * mass for k, mass in enumerate(one.masses))
            if pencil.symmetric:
                signs = (np.linalg.eigvalsh(square) < 0).sum(axis=1)
                self._negative += int(signs[one.same].sum())
            inverse = np.linalg.inv(square)
            response = np.matmul(inverse, one.upper)
            self.inverses.append(inverse)
            self.responses.append(response)
            schur = one.corner - np.matmul(one.lower, response)
            rows.append(np.repeat(one.traces, one.traces.shape[1], axis=1).ravel())
            columns.append(np.tile(one.traces, (1, one.traces.shape[1])).ravel())
            entries.append(schur[one.same].ravel())
        row, column, entry = np.concatenate(rows), np.concatenate(columns), np.concatenate(entries)
        numbers = np.cumsum(pencil.active) - 1
        if pencil.order is not None:
            numbers = np.argsort(pencil.order)
        used = pencil.active[row] & pencil.active[column]
        size = int(pencil.active.sum())
        self.numbers = numbers[pencil.active]
        self.matrix = sparse.csc_matrix((entry[used], (numbers[row[used]], numbers[column[used]])), (size, size))

    @cached_property
    def _factors(self) -> Any:
        threshold = 0.0 if self.pencil.symmetric else MUCH_SMALLER
        order = "MMD_AT_PLUS_A" if self.pencil.order is None else "NATURAL"
        return splu(self.matrix, permc_spec=order, diag_pivot_thresh=threshold, options={"SymmetricMode": True})

    @property
    def below(self) -> int | None:
        """How many eigenvalues lie below the shift; None where the factorisation does not show it."""
        if not self.pencil.symmetric:
            return None
        if not len(self.numbers):
            return self._negative
        factors = self._factors
        if not (factors.perm_r == factors.perm_c).all():
            return None
        return self._negative + int((factors.U.diagonal() < 0).sum()) - self.pencil.constraints

    def solve(self, loads: Array) -> tuple[Array, Array]:
        """Weights (C, n) and traces (T,) for loads (C, n) on cells."""
        kind = np.result_type(self.kind, loads)
        right = np.zeros(self.pencil.total, dtype=kind)
        own: list[Array] = []
        for one, inverse in zip(self.pencil.groups, self.inverses, strict=True):
            inside_alone = by_kind(inverse, one.same, loads[one.cells])
            own.append(inside_alone)
            np.add.at(right, one.traces, -by_kind(one.lower, one.same, inside_alone))
        traces = np.zeros(self.pencil.total, dtype=kind)
        if len(self.numbers):
            ordered = np.empty(len(self.numbers), dtype=kind)
            ordered[self.numbers] = right[self.pencil.active]
            traces[self.pencil.active] = self._solved(ordered)[self.numbers]
        weights = np.empty(loads.shape, dtype=kind)
        for one, response, inside in zip(self.pencil.groups, self.responses, own, strict=True):
            weights[one.cells] = inside - by_kind(response, one.same, traces[one.traces])
        return weights, traces

    def _solved(self, right: Array) -> Array:
        factors = self._factors
        if self.kind is float and np.iscomplexobj(right):
            return np.asarray(factors.solve(right.real.copy()) + 1j * factors.solve(right.imag.copy()))
        return np.asarray(factors.solve(right.astype(self.kind)))

    def eigenpairs(self, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """The eigenvalues (K,) nearest to the shift, weights (K, C, n) and traces (K, T)."""
        if self.pencil.symmetric and self.pencil.sign:
            return self._by_lanczos(count, rng)
        return self._by_arnoldi(count, rng)

    def _by_lanczos(self, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Eigenpairs by Lanczos iteration with the symmetric operator R P(σ)⁻¹ Rᵀ, ±M = RᵀR."""
        pencil = self.pencil
        shape = (pencil.count, pencil.length)

        def times(vector: Array, roots: Sequence[Array]) -> Array:
            given, products = vector.reshape(shape), np.empty(shape)
            for one, root in zip(pencil.groups, roots, strict=True):
                products[one.cells] = by_kind(root, one.same, given[one.cells])
            return products

        turned = [np.swapaxes(root, 1, 2) for root in pencil.roots]
        values, vectors = _arpack(
            eigsh, lambda vector: times(self.solve(times(vector, turned))[0], pencil.roots).ravel(), shape, count, rng
        )
        solutions = [self.solve(times(column, turned)) for column in vectors.T]
        weights = np.array([one for one, _ in solutions]).reshape(len(solutions), *shape)
        return self.shift + 1 / (values * pencil.sign), weights, np.array([trace for _, trace in solutions])

    def _by_arnoldi(self, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Eigenpairs by Arnoldi iteration with the linearised pencil, for all powers of the eigenvalue."""
        pencil, unit = self.pencil, self.pencil.scale
        degree, shape = pencil.degree, (pencil.degree, pencil.count, pencil.length)
        slopes = [  # -s^j P⁽ʲ⁾(σ)/j! = Σ_k s^j C(k, j) σ^(k - j) M_k
            [(k, unit**j * comb(k, j) * self.shift ** (k - j)) for k in range(j, degree + 1)]
            for j in range(1, degree + 1)
        ]

        def inverted(parts: Array) -> tuple[Array, Array]:
            load = sum(
                factor * pencil.times_mass(parts[j], k) for j, row in enumerate(slopes) for k, factor in row if factor
            )
            return self.solve(np.asarray(load))

        def applied(vector: Array) -> Array:
            parts = vector.reshape(shape)
            return np.concatenate([inverted(parts)[0][None], parts[:-1]]).ravel()

        values, vectors = _arpack(eigs, applied, shape, count, rng, self.kind)
        solved = [inverted(column.reshape(shape)) for column in vectors.T]
        weights = np.array([one for one, _ in solved]).reshape(len(solved), *shape[1:])
        return self.shift + unit / values, weights, np.array([trace for _, trace in solved])


def _uneven(one: Array, other: Array | None = None) -> bool:
    """Whether matrices (U, m, n) differ from the transposed of others, or of themselves."""
    turned = np.swapaxes(one if other is None else other, 1, 2)
    return bool(np.abs(one - turned).max(initial=0.0) > COMPUTED * np.abs(one).max(initial=0.0))


def _arpack(
    search: Any, applied: Any, shape: tuple[int, ...], count: int, rng: np.random.Generator, kind: type = float
) -> tuple[Array, Array]:
    """The largest eigenvalues (K,) of an operator and their vectors (N, K): those that converged."""
    size = int(np.prod(shape))
    operator = LinearOperator((size, size), matvec=applied, dtype=kind)
    start: Array = rng.standard_normal(size).astype(kind)
    # eigenvalues of symmetric operators have the square of the error of their vectors, others lose some digits anyway
    accuracy = COMPUTED if search is eigsh else EPS ** (2 / 3)
    try:
        values, vectors = search(operator, min(count, size - 2), v0=start, which="LM", tol=accuracy)
    except (ArpackNoConvergence, ArpackError) as failure:
        values = getattr(failure, "eigenvalues", np.zeros(0))
        vectors = getattr(failure, "eigenvectors", np.zeros((size, 0)))
    return values, vectors
