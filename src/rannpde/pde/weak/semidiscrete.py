"""An evolution on one mesh: M₂ u'' + M₁ u' + A u = b(t) in cells and traces, factorised once per length of a step.

The masses act within cells only. For a stage of Radau IIA, ∂_t is a complex number σ, the matrices A + σM₁ + σ²M₂ of
cells are eliminated one by one, those of alike cells once, and the Schur complement on traces is factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint, reserve
from rannpde.pde.weak.assembly import by_kind, factorised_traces
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evolution import WeakEvolution
from rannpde.pde.weak.local import CellBatch, LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh


@dataclass(frozen=True, eq=False)
class EvolutionCells:
    """Cells of a batch: their kinds (B,), and of the kinds the matrices: A in four blocks, M₁ and M₂ (U, n, n)."""

    batch: CellBatch
    same: Array
    square: Array
    upper: Array
    lower: Array
    corner: Array
    masses: tuple[Array | None, Array | None]
    dofs: Array


class SemiDiscreteForm:
    """The matrices and loads of an evolution on a mesh. Vectors are weights (…, C, n) of the functions of cells."""

    def __init__(self, evolution: WeakEvolution, mesh: WeakMesh, layer: HiddenLayer, pause: Callable[[], None]) -> None:
        self.evolution, self.mesh, self.layer, self.pause = evolution, mesh, layer, pause
        self.local = LocalMatrices(evolution.still, mesh, layer, pause)
        self.fields, self.size = evolution.still.fields, self.local.size
        self.traces = mesh.faces * self.fields * layer.face_functions.shape[1]
        others = [None if form is None else LocalMatrices(form, mesh, layer, pause, self.local.functions)
                  for form in evolution.shifted]  # fmt: skip
        self.groups = [self._group(batch, others) for batch in self.local.batches()]
        self._steady = self._loads() if not evolution.moving else None

    def _group(self, batch: CellBatch, others: list[LocalMatrices | None]) -> EvolutionCells:
        every = np.stack([one.kinds(batch)[1] for one in others if one is not None], axis=1)
        _, first, same = np.unique(every, axis=0, return_index=True, return_inverse=True)  # masses tell more apart
        some = CellBatch(batch.cells[first], batch.pairs[first], batch.faces)
        square, upper, lower, corner = self.local.matrices(some)[:4]
        masses = [None if one is None else (one.matrices(some)[0] - square) / scale
                  for one, scale in zip(others, self.evolution.scales, strict=True)]  # fmt: skip
        self.pause()
        dofs = self.local.dofs(batch)
        return EvolutionCells(batch, same.ravel(), square, upper, lower, corner, (masses[0], masses[1]), dofs)

    # ------------------------------------------------------------------------------------------------------- vectors

    def _loads(self) -> Array:
        found = np.zeros((self.mesh.count, self.fields * self.size))
        for group in self.groups:
            self.pause()
            found[group.batch.cells] = self.local.loads(group.batch)
        return found

    def loads(self, time: float) -> Array:
        """b (C, n) at a time."""
        if self._steady is not None:
            return self._steady
        self.evolution.moment.value = time
        self.local.read_conditions()
        return self._loads()

    def weighted(self, order: int, vector: Array) -> Array:
        """M₁ (order 1) or M₂ (order 2) times a vector (C, n)."""
        found = np.zeros_like(vector)
        for group in self.groups:
            mass = group.masses[order - 1]
            if mass is not None:
                found[group.batch.cells] = by_kind(mass, group.same, vector[group.batch.cells])
        return found

    def projected(self, values: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Weights (C, n) of the functions nearest to values (M, F) of points (M, d) in L², and squared distances."""
        found = np.zeros((self.mesh.count, self.fields, self.size))
        missed = np.zeros(self.mesh.count)
        for cell in range(self.mesh.count):
            table, weights, points = self.local.functions.cell_table(cell)
            root = np.sqrt(weights)[:, None]
            own = self.local.functions.used[cell]
            wanted = root * values(points)
            solved = np.linalg.lstsq(root * table[:, :own], wanted, rcond=1e-12)[0]
            found[cell, :, :own] = solved.T
            missed[cell] = np.square(root * table[:, :own] @ solved - wanted).sum()
        return found.reshape(self.mesh.count, -1), missed

    def norms(self, vectors: Array) -> Array:
        """L² norms (V, F) of the fields of vectors (V, C, n)."""
        shaped = vectors.reshape(len(vectors), self.mesh.count, self.fields, self.size)
        total = np.zeros((len(vectors), self.fields))
        whole = np.array([cell for cell in range(self.mesh.count) if cell not in self.mesh.parts], dtype=int)
        values, shares = self.layer.reference[0], self.layer.grid[1]
        root = np.linalg.cholesky((values.T * shares) @ values + 1e-14 * np.eye(self.size))
        volume = self.mesh.halfwidths[whole].prod(axis=1)
        total += np.einsum("vcfk,c->vf", (shaped[:, whole] @ root) ** 2, volume)
        for cell, part in self.mesh.parts.items():
            own = self._root_of_part(cell, part.weights)
            total += np.square(shaped[:, cell] @ own).sum(axis=2)
        return np.sqrt(total)

    def _root_of_part(self, cell: int, weights: Array) -> Array:
        if not hasattr(self, "_roots"):
            self._roots: dict[int, Array] = {}
        if cell not in self._roots:
            values = self.local.functions.part_table(cell)[:, 0]
            gram = (values.T * weights) @ values
            found, vectors = np.linalg.eigh(gram)
            self._roots[cell] = vectors * np.sqrt(np.maximum(found, 0.0))
        return self._roots[cell]

    # ------------------------------------------------------------------------------------------------- factorisation

    def factorised(self, shift: complex) -> FactorisedStage:
        """The solution operator of A + shift M₁ + shift² M₂."""
        return FactorisedStage(self, shift)


class FactorisedStage:
    """(A + σM₁ + σ²M₂)⁻¹ by static condensation."""

    def __init__(self, system: SemiDiscreteForm, shift: complex) -> None:
        self.system = system
        self.eliminated: list[tuple[Array, Array]] = []
        rows, columns, entries = [], [], []
        kind = complex if np.iscomplexobj(np.asarray(shift)) else float
        sizes = [group.square.size + group.upper.size for group in system.groups]
        reserve(np.dtype(kind).itemsize * float(sum(sizes)), "the matrices of cells")
        for group in system.groups:
            square = group.square.astype(kind)
            for power, mass in enumerate(group.masses):
                if mass is not None:
                    square = square + shift ** (power + 1) * mass
            inverse = np.linalg.inv(square)
            response = np.matmul(inverse, group.upper)
            self.eliminated.append((inverse, response))
            if group.batch.faces:
                schur = group.corner - np.matmul(group.lower, response)
                rows.append(np.repeat(group.dofs, group.dofs.shape[1], axis=1).ravel())
                columns.append(np.tile(group.dofs, (1, group.dofs.shape[1])).ravel())
                entries.append(schur[group.same].ravel())
            checkpoint()
        self._factors = None
        if system.traces:
            dofs = (np.concatenate(rows), np.concatenate(columns))
            matrix = sparse.csc_matrix((np.concatenate(entries), dofs), (system.traces,) * 2)
            self._factors = factorised_traces(matrix, system.layer.dim)

    def solve(self, right: Array) -> tuple[Array, Array]:
        """Weights (C, n) and traces (T,) for loads (C, n) of cells."""
        system = self.system
        complex_sided = np.iscomplexobj(right) or np.iscomplexobj(self.eliminated[0][0])
        kind = complex if complex_sided else float
        traces, own = np.zeros(system.traces, dtype=kind), []
        for group, (inverse, _) in zip(system.groups, self.eliminated, strict=True):
            one = _by_kind(inverse, group.same, right[group.batch.cells], kind)
            own.append(one)
            if group.batch.faces:
                np.subtract.at(traces, group.dofs, _by_kind(group.lower, group.same, one, kind))
        if self._factors is not None:
            traces = self._factors.solve(traces)
        found = np.zeros((system.mesh.count, system.fields * system.size), dtype=kind)
        for group, one, (_, response) in zip(system.groups, own, self.eliminated, strict=True):
            whole = one
            if group.batch.faces:
                whole = one - _by_kind(response, group.same, traces[group.dofs], kind)
            found[group.batch.cells] = whole
        return found, traces


def _by_kind(matrices: Array, same: Array, vectors: Array, kind: type) -> Array:
    """``by_kind`` for real or complex numbers."""
    if kind is float and not np.iscomplexobj(matrices):
        return by_kind(matrices, same, vectors)
    found = np.empty((len(same), matrices.shape[1]), dtype=complex)
    for number, matrix in enumerate(matrices):
        mine = np.flatnonzero(same == number)
        found[mine] = vectors[mine] @ matrix.T
    return found
