"""The weak form on cells as an eigenvalue problem, condensed on traces: shift and invert, and counting by inertia.

On cells and traces the problem is K z = λ M z, where M acts within cells only. For a shift σ the matrices K - σM of
cells are eliminated one by one and the Schur complement on the traces is factorised, so that (K - σM)⁻¹ costs as much
as a solve of the weak form. If K is symmetric, the number of negative eigenvalues of K - σM is that of eigenvalues
below σ (Sylvester), and it is the sum of those of the cells and of the Schur complement (Haynsworth).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, eigsh, splu

from rannpde.arrays import Array
from rannpde.pde.weak.assembly import by_kind
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.local import CellBatch, LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.rounding import COMPUTED

FAR_EIGENVALUE = 2.0**17
"""A second value of the eigenvalue, over a typical one, at which matrices are computed: the difference is the mass."""


@dataclass(frozen=True, eq=False)
class CellGroup:
    """Cells of a batch: their kinds (B,), and of the kinds the matrices, mass (U, n, n) and its root (U, n, n)."""

    batch: CellBatch
    same: Array
    square: Array
    upper: Array
    lower: Array
    corner: Array
    mass: Array
    places: Array


class HybridPencil:
    """K and M of a problem on a mesh."""

    def __init__(
        self,
        still: WeakForm,
        far: WeakForm,
        scale: float,
        mesh: WeakMesh,
        layer: HiddenLayer,
        pause: Callable[[], None],
    ) -> None:
        self.mesh, self.layer, self.scale = mesh, layer, scale
        self.symmetric = still.symmetric and far.symmetric
        self.local = LocalMatrices(still, mesh, layer, pause)
        other = LocalMatrices(far, mesh, layer, pause, self.local.functions)
        self.fields, self.size = still.fields, self.local.size
        self.block = self.fields * layer.face_functions.shape[1]
        self.groups: list[CellGroup] = []
        for batch in self.local.batches():
            kinds = other.condensed(batch)
            some = CellBatch(batch.cells[kinds.first], batch.pairs[kinds.first], batch.faces)
            square, upper, lower, corner, _ = self.local.matrices(some)
            mass = (square - kinds.square) / (FAR_EIGENVALUE * scale)
            if self.symmetric:
                square, mass = 0.5 * (square + np.swapaxes(square, 1, 2)), 0.5 * (mass + np.swapaxes(mass, 1, 2))
            self.groups.append(CellGroup(batch, kinds.same, square, upper, lower, corner, mass, self._places(batch)))
            pause()

    def _places(self, batch: CellBatch) -> Array:
        faces = self.local.face[batch.pairs[:, : batch.faces]]
        return np.asarray((faces[:, :, None] * self.block + np.arange(self.block)).reshape(len(batch.cells), -1))

    @property
    def length(self) -> int:
        """Unknowns of a cell."""
        return self.fields * self.size

    @property
    def unknowns(self) -> int:
        return self.mesh.count * self.length + self.mesh.faces * self.block

    @cached_property
    def sign(self) -> int:
        """1 where the mass is non-negative, -1 where it is non-positive, 0 where it is neither."""
        values = np.concatenate([np.linalg.eigvalsh(one.mass).ravel() for one in self.groups])
        low, high = float(values.min()), float(values.max())
        if low >= -COMPUTED * max(high, 0.0) and high > 0:
            return 1
        return -1 if high <= COMPUTED * max(-low, 0.0) and low < 0 else 0

    @cached_property
    def roots(self) -> list[Array]:
        """R (U, n, n) of each group with ±M = RᵀR."""
        found = []
        for one in self.groups:
            values, vectors = np.linalg.eigh(self.sign * one.mass)
            found.append(np.sqrt(np.maximum(values, 0.0))[:, :, None] * np.swapaxes(vectors, 1, 2))
        return found

    def times_mass(self, weights: Array) -> Array:
        """M times weights (C, n)."""
        found = np.empty_like(weights)
        for one in self.groups:
            found[one.batch.cells] = by_kind(one.mass, one.same, weights[one.batch.cells])
        return found

    def absolute_quotients(self, weights: Array, traces: Array) -> Array:
        """|z|ᵀ |K| |z| / |zᵀ M z| of modes with weights (K, C, n) and traces (K, T): rounding is eps times this."""
        found = []
        for own, trace in zip(np.abs(weights), np.abs(traces), strict=True):
            total = 0.0
            for one in self.groups:
                inside = own[one.batch.cells]
                total += float((inside * by_kind(np.abs(one.square), one.same, inside)).sum())
                if one.batch.faces:
                    around = trace[one.places]
                    total += 2 * float((inside * by_kind(np.abs(one.upper), one.same, around)).sum())
                    total += float((around * by_kind(np.abs(one.corner), one.same, around)).sum())
            found.append(total)
        masses = [abs(np.vdot(own, self._mass_of(own))) for own in weights]
        return np.array(found) / np.maximum(np.array(masses), 1e-300)

    def _mass_of(self, weights: Array) -> Array:
        if not np.iscomplexobj(weights):
            return self.times_mass(weights)
        return self.times_mass(weights.real.copy()) + 1j * self.times_mass(weights.imag.copy())

    def shifted(self, shift: float) -> ShiftedSystem:
        """The factorisation of K - shift · M."""
        return ShiftedSystem(self, shift)


class ShiftedSystem:
    """(K - σM)⁻¹ on cells and traces, and how many eigenvalues lie below σ."""

    def __init__(self, pencil: HybridPencil, shift: float) -> None:
        self.pencil, self.shift = pencil, shift
        total = pencil.mesh.faces * pencil.block
        rows, columns, entries = [], [], []
        self.inverses, self.responses = [], []
        self._negative = 0
        for one in pencil.groups:
            square = one.square - shift * one.mass
            if pencil.symmetric:
                signs = (np.linalg.eigvalsh(square) < 0).sum(axis=1)
                self._negative += int(signs[one.same].sum())
            inverse = np.linalg.inv(square)
            response = np.matmul(inverse, one.upper)
            self.inverses.append(inverse)
            self.responses.append(response)
            if one.batch.faces:
                schur = one.corner - np.matmul(one.lower, response)
                rows.append(np.repeat(one.places, one.places.shape[1], axis=1).ravel())
                columns.append(np.tile(one.places, (1, one.places.shape[1])).ravel())
                entries.append(schur[one.same].ravel())
        self.matrix = None
        if total:
            indices = (np.concatenate(rows), np.concatenate(columns))
            self.matrix = sparse.csc_matrix((np.concatenate(entries), indices), (total, total))
        self.total = total

    @cached_property
    def _factors(self) -> object:
        threshold = 0.0 if self.pencil.symmetric else 0.1
        return splu(self.matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=threshold,
                    options={"SymmetricMode": True})  # fmt: skip

    @property
    def below(self) -> int | None:
        """How many eigenvalues lie below the shift; None where the factorisation does not tell."""
        if not self.pencil.symmetric:
            return None
        if not self.total:
            return self._negative
        factors = self._factors
        if not (factors.perm_r == factors.perm_c).all():  # type: ignore[attr-defined]
            return None
        return self._negative + int((factors.U.diagonal() < 0).sum())  # type: ignore[attr-defined]

    def solve(self, loads: Array) -> tuple[Array, Array]:
        """Weights (C, n) and traces (T,) for loads (C, n) on cells."""
        right = np.zeros(self.total)
        own: list[Array] = []
        for one, inverse in zip(self.pencil.groups, self.inverses, strict=True):
            found = by_kind(inverse, one.same, loads[one.batch.cells])
            own.append(found)
            if one.batch.faces:
                np.add.at(right, one.places, -by_kind(one.lower, one.same, found))
        traces = self._factors.solve(right) if self.total else right  # type: ignore[attr-defined]
        weights = np.empty_like(loads)
        for one, response, inside in zip(self.pencil.groups, self.responses, own, strict=True):
            around = by_kind(response, one.same, traces[one.places]) if one.batch.faces else 0.0
            weights[one.batch.cells] = inside - around
        return weights, traces

    def eigenpairs(self, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """The eigenvalues (K,) nearest to the shift, weights (K, C, n) and traces (K, T)."""
        pencil = self.pencil
        shape = (pencil.mesh.count, pencil.length)
        size = shape[0] * shape[1]
        definite = pencil.symmetric and pencil.sign != 0

        def rooted(vector: Array) -> Array:
            loads = np.empty(shape)
            given = vector.reshape(shape)
            for one, root in zip(pencil.groups, pencil.roots, strict=True):
                loads[one.batch.cells] = by_kind(np.swapaxes(root, 1, 2), one.same, given[one.batch.cells])
            weights = self.solve(loads)[0]
            found = np.empty(shape)
            for one, root in zip(pencil.groups, pencil.roots, strict=True):
                found[one.batch.cells] = by_kind(root, one.same, weights[one.batch.cells])
            return found.ravel()

        def plain(vector: Array) -> Array:
            return self.solve(pencil.times_mass(vector.reshape(shape)))[0].ravel()

        operator = LinearOperator((size, size), matvec=rooted if definite else plain, dtype=float)
        start = rng.standard_normal(size)
        count = min(count, size - 2)
        try:
            search = eigsh if definite else eigs
            values, vectors = search(operator, count, v0=start, which="LM", tol=1e-13 if definite else 1e-11)
        except (ArpackNoConvergence, ArpackError) as failure:
            values = getattr(failure, "eigenvalues", np.zeros(0))
            vectors = getattr(failure, "eigenvectors", np.zeros((size, 0)))
        values = values * pencil.sign if definite else values
        found = self.shift + 1 / values
        weights, traces = [], []
        for column in vectors.T:
            if definite:
                loads = np.empty(shape)
                for one, root in zip(pencil.groups, pencil.roots, strict=True):
                    own = column.reshape(shape)[one.batch.cells]
                    loads[one.batch.cells] = by_kind(np.swapaxes(root, 1, 2), one.same, own)
                parts = [self.solve(loads)]
            else:
                parts = [self.solve(pencil.times_mass(np.ascontiguousarray(part).reshape(shape)))
                         for part in (column.real, column.imag)]  # fmt: skip
            weights.append(parts[0][0] if definite else parts[0][0] + 1j * parts[1][0])
            traces.append(parts[0][1] if definite else parts[0][1] + 1j * parts[1][1])
        return found, np.array(weights), np.array(traces)
