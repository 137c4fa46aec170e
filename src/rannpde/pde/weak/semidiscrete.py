"""An evolution on one mesh: M₂ u'' + M₁ u' + A u = b(t) in cells and traces, factorised once per length of a step.

The masses act within cells only. For a stage of Radau IIA, ∂_t is a complex number σ, the matrices A + σM₁ + σ²M₂ of
cells are eliminated one by one, those of alike cells once, and the Schur complement on traces is factorised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint, reserve
from rannpde.pde.weak.assembly import factorised_traces
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.cell_modes import CellInverse, CellModes, EvolutionCells, inverted
from rannpde.pde.weak.evolution import WeakEvolution
from rannpde.pde.weak.local import CellBatch, LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh


@dataclass(frozen=True, eq=False)
class TracePattern:
    """The sparsity of the matrix of traces, in which the blocks of all cells are summed.

    positions (E,) : of the entries of these blocks, one after the other, among those of the matrix, by columns
    """

    positions: Array
    indices: Array
    ends: Array

    @classmethod
    def of(cls, groups: Sequence[EvolutionCells], size: int) -> TracePattern:
        """The pattern of the cells of groups, with ``size`` traces."""
        rows = [np.empty(0, dtype=int)]
        rows += [np.repeat(group.dofs, group.dofs.shape[1], axis=1).ravel() for group in groups]
        columns = [np.empty(0, dtype=int)]
        columns += [np.tile(group.dofs, (1, group.dofs.shape[1])).ravel() for group in groups]
        every = np.concatenate(columns) * size + np.concatenate(rows)
        known, positions = np.unique(every, return_inverse=True)
        ends = np.searchsorted(known, np.arange(size + 1) * size)
        return cls(positions.ravel(), known % size, ends)

    def matrix(self, entries: Array) -> sparse.csc_matrix:
        """The matrix of traces with the entries (E,) of all blocks."""
        count, size = len(self.indices), len(self.ends) - 1
        sums = np.bincount(self.positions, entries.real, count)
        if np.iscomplexobj(entries):
            sums = sums + 1j * np.bincount(self.positions, entries.imag, count)
        return sparse.csc_matrix((sums, self.indices, self.ends), (size, size))


class SemiDiscreteForm:
    """The matrices and loads of an evolution on a mesh. Vectors are weights (…, C, n) of the functions of cells."""

    def __init__(
        self, evolution: WeakEvolution, mesh: WeakMesh, layer: HiddenLayer, check_budget: Callable[[], None]
    ) -> None:
        self.evolution, self.mesh, self.layer, self.check_budget = evolution, mesh, layer, check_budget
        self.local = LocalMatrices(evolution.still, mesh, layer, check_budget)
        self.fields, self.size = evolution.still.fields, self.local.size
        self.traces = mesh.faces * self.fields * layer.face_functions.shape[1]
        others = [None if form is None else LocalMatrices(form, mesh, layer, check_budget, self.local.functions)
                  for form in evolution.shifted]  # fmt: skip
        self.groups = [self._group(batch, others) for batch in self.local.batches()]
        self.modes = [CellModes.of(group) for group in self.groups]
        self.pattern = TracePattern.of([group for group in self.groups if group.batch.faces], self.traces)
        self._steady = self._loads() if not evolution.moving else None

    def _group(self, batch: CellBatch, others: list[LocalMatrices | None]) -> EvolutionCells:
        every = np.stack([one.kinds(batch)[1] for one in others if one is not None], axis=1)
        _, same, counts = np.unique(every, axis=0, return_inverse=True, return_counts=True)  # masses split kinds
        kinds = np.argsort(counts > 1, kind="stable")
        order = np.argsort(np.argsort(kinds)[same.ravel()], kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts[kinds])])
        batch = CellBatch(batch.cells[order], batch.pairs[order], batch.faces)
        some = CellBatch(batch.cells[starts[:-1]], batch.pairs[starts[:-1]], batch.faces)
        square, upper, lower, corner = self.local.matrices(some)[:4]
        masses = [None if one is None else self.local.mass(one, some) / scale
                  for one, scale in zip(others, self.evolution.scales, strict=True)]  # fmt: skip
        self.check_budget()
        dofs, alone = self.local.dofs(batch), int((counts == 1).sum())
        return EvolutionCells(batch, starts, alone, square, upper, lower, corner, (masses[0], masses[1]), dofs)

    # ------------------------------------------------------------------------------------------------------- vectors

    def _loads(self) -> Array:
        loads = np.zeros((self.mesh.count, self.fields * self.size))
        for group in self.groups:
            self.check_budget()
            loads[group.batch.cells] = self.local.loads(group.batch)
        return loads

    def loads(self, time: float) -> Array:
        """b (C, n) at a time."""
        if self._steady is not None:
            return self._steady
        self.evolution.moment.value = time
        self.local.read_conditions()
        return self._loads()

    def weighted(self, order: int, vector: Array) -> Array:
        """M₁ (order 1) or M₂ (order 2) times a vector (C, n)."""
        products = np.zeros_like(vector)
        for group in self.groups:
            mass = group.masses[order - 1]
            if mass is not None:
                products[group.batch.cells] = group.times(mass, vector[group.batch.cells])
        return products

    def modal_loads(self, loads: Array) -> Array:
        """Loads (s, C, n) as those of modes, in cells that have them."""
        return self._changed(loads, CellModes.loads)

    def from_modes(self, weights: Array) -> Array:
        """Weights (s, C, n) of modes as those of the functions of cells."""
        return self._changed(weights, CellModes.weights)

    def _changed(self, vectors: Array, change: Callable[[CellModes, Array], Array]) -> Array:
        changed = vectors.copy()
        for group, modes in zip(self.groups, self.modes, strict=True):
            if modes is not None:  # all vectors by one pass over the matrices of a cell
                own = vectors[:, group.batch.cells].transpose(1, 2, 0)
                changed[:, group.batch.cells] = change(modes, own).transpose(2, 0, 1)
        return changed

    def projected(self, values: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Weights (C, n) of the functions nearest to values (M, F) of points (M, d) in L², and squared distances."""
        coefficients = np.zeros((self.mesh.count, self.fields, self.size))
        missed = np.zeros(self.mesh.count)
        whole = self.mesh.whole
        if len(whole):  # they share their functions: one problem of least squares with many right-hand sides
            (grid, shares), table = self.layer.grid, self.layer.reference[0]
            half = self.mesh.halfwidths[whole]
            points = self.mesh.mapped(whole, grid)
            given = values(points.reshape(-1, points.shape[2])).reshape(len(whole), len(grid), self.fields)
            root = np.sqrt(shares)[:, None]
            wanted = (root * given).transpose(1, 0, 2).reshape(len(grid), -1)
            solved = np.linalg.lstsq(root * table, wanted, rcond=1e-12)[0]
            coefficients[whole] = solved.reshape(self.size, len(whole), self.fields).transpose(1, 2, 0)
            left = np.square(root * table @ solved - wanted).reshape(len(grid), len(whole), self.fields)
            missed[whole] = left.sum(axis=(0, 2)) * half.prod(axis=1)
        for cell in self.mesh.parts:
            table, weights, points = self.local.functions.cell_table(cell)
            root = np.sqrt(np.abs(weights))[:, None]
            own = self.local.functions.used[cell]
            wanted = root * values(points)
            if not wanted.any():
                continue
            solved = np.linalg.lstsq(root * table[:, :own], wanted, rcond=1e-12)[0]
            coefficients[cell, :, :own] = solved.T
            missed[cell] = np.square(root * table[:, :own] @ solved - wanted).sum()
        return coefficients.reshape(self.mesh.count, -1), missed

    @cached_property
    def _whole_root(self) -> Array:
        """R (k, k) with ∫ u² = |u R|² on [-1, 1]^d."""
        values, shares = self.layer.reference[0], self.layer.grid[1]
        return np.linalg.cholesky((values.T * shares) @ values + 1e-14 * np.eye(self.size))

    @cached_property
    def _part_roots(self) -> Array:
        """The roots R of the cut cells, (parts, k, k), with ∫ u² = |u R|² over each."""
        roots = np.empty((len(self.mesh.parts), self.size, self.size))
        for row, (cell, part) in zip(roots, self.mesh.parts.items(), strict=True):
            values = self.local.functions.part_table(cell)[:, 0]
            squares, vectors = np.linalg.eigh((values.T * part.weights) @ values)
            row[:] = vectors * np.sqrt(np.maximum(squares, 0.0))
        return roots

    def norms(self, vectors: Array) -> Array:
        """L² norms (V, F) of the fields of vectors (V, C, n)."""
        shaped = vectors.reshape(len(vectors), self.mesh.count, self.fields, self.size)
        whole, cut = self.mesh.whole, list(self.mesh.parts)
        volume = self.mesh.halfwidths[whole].prod(axis=1)
        total = np.einsum("vcfk,c->vf", (shaped[:, whole] @ self._whole_root) ** 2, volume)
        if cut:
            total += np.square(shaped[:, cut] @ self._part_roots).sum(axis=(1, 3))
        return np.sqrt(total)

    # ------------------------------------------------------------------------------------------------- factorisation

    def factorised(self, shift: complex) -> FactorisedStage:
        """The solution operator of A + shift M₁ + shift² M₂."""
        return FactorisedStage(self, shift)


class FactorisedStage:
    """(A + σM₁ + σ²M₂)⁻¹ by static condensation."""

    def __init__(self, system: SemiDiscreteForm, shift: complex) -> None:
        self.system = system
        self.eliminated: list[tuple[CellInverse, Array]] = []
        entries = []
        kind = complex if np.iscomplexobj(np.asarray(shift)) else float
        sizes = [group.square.size + group.upper.size for group in system.groups]
        reserve(np.dtype(kind).itemsize * float(sum(sizes)), "the matrices of cells")
        for group, modes in zip(system.groups, system.modes, strict=True):
            inverse = inverted(group, shift) if modes is None else modes.at(shift)
            response = inverse.times_upper()
            self.eliminated.append((inverse, response))
            if group.batch.faces:
                entries.append(group.of_cells(group.corner - inverse.reduced(response)).ravel())
            checkpoint()
        self._factors = None
        if system.traces:
            self._factors = factorised_traces(system.pattern.matrix(np.concatenate(entries)), system.layer.dim)

    def solve(self, right: Array) -> tuple[Array, Array]:
        """Weights (C, n) and traces (T,) for loads (C, n), both of modes where cells have them."""
        system = self.system
        kind = np.result_type(right, self.eliminated[0][1])
        traces, own = np.zeros(system.traces, dtype=kind), []
        for group, (inverse, _) in zip(system.groups, self.eliminated, strict=True):
            one = inverse.times(right[group.batch.cells])
            own.append(one)
            if group.batch.faces:
                np.subtract.at(traces, group.dofs, inverse.on_traces(one))
        if self._factors is not None:
            traces = self._factors.solve(traces)
        solution = np.zeros((system.mesh.count, system.fields * system.size), dtype=kind)
        for group, one, (_, response) in zip(system.groups, own, self.eliminated, strict=True):
            whole = one - group.times(response, traces[group.dofs]) if group.batch.faces else one
            solution[group.batch.cells] = whole
        return solution, traces
