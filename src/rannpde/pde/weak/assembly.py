"""The matrices of cells, their static condensation on traces, and the solution.

The method is the hybridised interior penalty method: on every cell K and for traces û on the faces, find u, û with

    Σ_K  ∫ A∇u·∇v + (b·∇u + c u) v  -  ∫_∂K (n·A∇u)·(v - v̂)  -  ∫_∂K (n·A∇v)·(u - û)  +  ∫_∂K η (u - û)·(v - v̂)
       + ∫_{∂K, b·n<0} |b·n| (u - û) v  +  ∫_{∂K, b·n>0} |b·n| (û - u) v̂   =   Σ_K ∫ load·v  +  boundary data

for all v, v̂. Cells meet only in traces, so each is eliminated on its own, in batches of cells with as many faces. With
the penalty η = coercivity · c_K n·A n, c_K the trace constant of the cell (``HiddenLayer.side_constant``), the form is
coercive for every choice of functions and traces: |A∇u|_n is bounded by the energy of the cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log2

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse.linalg import SuperLU, splu

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, factorising, reserve
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.cell_motions import CellMotions, RefinedTraces, cell_motions, free_slopes
from rannpde.pde.weak.kernel import FreeMotions
from rannpde.pde.weak.local import CellBatch, DistinctMatrices, LocalMatrices, by_kind
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.pde.weak.multifrontal import MultifrontalFactors
from rannpde.pde.weak.self_similar import CondensedCells, continued_response, self_similar_rings


@dataclass(frozen=True, eq=False)
class HybridSolution:
    """Weights of the functions of cells (C, F, k) and of traces (N, F, m).

    jumps (C,) : ∫_∂K η |u - û|², of the boundary included, and the residuals of natural conditions, as energies of each
    cell
    inside (n,) : cells at crossings of interfaces that stand for infinitely many rings of cells (``self_similar``)
    """

    weights: Array
    traces: Array
    jumps: Array
    inside: Array = field(default_factory=lambda: np.empty(0, dtype=int))


@dataclass(frozen=True, eq=False)
class TracedState:
    """Weights (C, F, k) and traces (N, F, m) of a solution; values and fluxes (B, q, K) on patches of the boundary."""

    weights: Array
    traces: Array
    given: Array
    natural: Array


@dataclass(frozen=True, eq=False)
class SparseFactors:
    """The factors of a sparse matrix of traces."""

    factors: SuperLU

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """The solution (n,) of the system, or of the transposed one."""
        return np.asarray(self.factors.solve(right, "T" if transposed else "N"))


class HybridSystem:
    """One linear solve of the weak form on a mesh.

    keep : whether matrices and factors are stored for the adjoint and for further loads: those of the cells in
    ``eliminations``, each batch with its matrices and with the responses of its cells to traces, and ``factors`` of the
    traces
    trace_degrees (N,) : of the polynomials that faces in space have, where these are lower than the degree of the cells
    """

    def __init__(self, local: LocalMatrices, keep: bool = False, trace_degrees: Array | None = None) -> None:
        self.local, self.mesh, self.layer, self.fields = local, local.mesh, local.layer, local.fields
        self.keep, self.trace_degrees = keep, trace_degrees
        self.eliminations: list[tuple[CellBatch, DistinctMatrices, Array]] = []
        self.factors: SparseFactors | MultifrontalFactors | None = None
        self.refined: RefinedTraces | None = None
        self.remaining = 0.0  # relative error of the traces that rounding leaves

    def solve(self, motions: FreeMotions | None = None, crossings: Sequence[Sequence[float]] = ()) -> HybridSolution:
        """Eliminate cells, solve for traces, and go back; free motions get the mean zero.

        crossings : points to which the geometric mesh is continued to infinity, where it is self-similar
        """
        fields, m = self.fields, self.layer.face_functions.shape[1]
        block = fields * m
        total = self.mesh.faces * block
        parts: list[CondensedCells] = []
        of_cells: list[CellMotions | None] = []
        slopes = free_slopes(self.local.form) if self.layer.dim == 2 else None
        held = [0] if motions is not None and len(motions) else []
        right = np.zeros(total)
        condensed: list[tuple[CellBatch, Array, Array, Array]] = []
        for batch in self.local.batches():
            matrices = self.local.condensed(batch)
            if motions is not None and held and 0 in batch.cells:
                row = int(np.flatnonzero(batch.cells == 0)[0])
                matrices = self._held(matrices, row, motions)
            response, own = eliminated(matrices)
            condensed.append((batch, matrices.same, response, own))
            if self.keep:
                self.eliminations.append((batch, matrices, response))
            if batch.faces:
                schur = matrices.corner - np.matmul(matrices.lower, response)
                dofs = self.local.dofs(batch)
                np.add.at(right, dofs, -by_kind(matrices.lower, matrices.same, own))
                parts.append(CondensedCells(batch.cells, dofs, schur, matrices.same))
                of_cells.append(None if slopes is None else cell_motions(self.local, batch, parts[-1], slopes, held))
            self.local.check_budget()
        inside = [np.empty(0, dtype=int)]
        endless: list[CondensedCells] = []
        for point in crossings:
            rings = self_similar_rings(self.mesh, point)
            if rings is not None:
                boundary, change = continued_response(rings, parts, block)
                endless.append(CondensedCells(rings.inside[:1], boundary[None], change[None], np.zeros(1, dtype=int)))
                inside.append(rings.inside)
        traces = np.zeros(total)
        if total:
            factors = self._factorised([*parts, *endless], total)
            of_cells += [None] * len(endless)
            refined = RefinedTraces(factors.solve, list(zip([*parts, *endless], of_cells, strict=True)))
            traces, self.remaining = refined.solve(right)
            if self.keep:
                self.factors, self.refined = factors, refined
        weights = np.zeros((self.mesh.count, fields, self.local.size))
        for batch, same, response, own in condensed:
            whole = own
            if batch.faces:
                whole = own - by_kind(response, same, traces[self.local.dofs(batch)])
            weights[batch.cells] = whole.reshape(len(batch.cells), fields, self.local.size)
        shaped = traces.reshape(self.mesh.faces, fields, m)
        if motions is not None and len(motions):
            self.centre(weights, shaped, motions)
        return HybridSolution(weights, shaped, self.jumps(weights, shaped), np.concatenate(inside))

    def solved(self, load: Array, on_traces: Array) -> tuple[Array, Array]:
        """Weights (C, F, k) and traces (N, F, m) of further loads of their shapes, by the stored matrices."""
        flat, right = load.reshape(len(load), -1), on_traces.reshape(-1).copy()
        own = np.empty_like(flat)
        for (batch, matrices, _), factors in zip(self.eliminations, self._cell_factors, strict=True):
            for kind, one in enumerate(factors):
                mine = batch.cells[matrices.same == kind]
                own[mine] = lu_solve(one, flat[mine].T).T
            if batch.faces:
                np.subtract.at(right, self.local.dofs(batch), by_kind(matrices.lower, matrices.same, own[batch.cells]))
        traces = right if self.refined is None else self.refined.solve(right)[0]
        for batch, matrices, response in self.eliminations:
            if batch.faces:
                own[batch.cells] -= by_kind(response, matrices.same, traces[self.local.dofs(batch)])
        return own.reshape(load.shape), traces.reshape(on_traces.shape)

    def without_motions(self, weights: Array, traces: Array) -> Iterator[tuple[Array, Array]]:
        """Weights (B, n) and traces (B, T) of each stored batch of cells, without motions that strain nothing."""
        flat, motions = traces.reshape(-1), [] if self.refined is None else [one for _, one in self.refined.parts]
        number = 0
        for batch, matrices, response in self.eliminations:
            inside, around = weights[batch.cells].reshape(len(batch.cells), -1), flat[:0]
            if batch.faces:
                around, own = flat[self.local.dofs(batch)], motions[number]
                number += 1
                if own is not None:
                    moved = own.of(around)
                    around, inside = around - moved, inside + by_kind(response, matrices.same, moved)
            yield inside, around

    @cached_property
    def _cell_factors(self) -> list[list[tuple[Array, Array]]]:
        """Factors of the stored matrices of the kinds of cells."""
        return [[lu_factor(square) for square in matrices.square] for _, matrices, _ in self.eliminations]

    def _factorised(self, parts: Sequence[CondensedCells], total: int) -> SparseFactors | MultifrontalFactors:
        """The matrix of traces: by minimum degree in the plane, by nested dissection along the tree in space."""
        if self.layer.dim < 3:
            return SparseFactors(factorised_traces(trace_matrix(parts, total), self.layer.dim))
        used = None
        if self.trace_degrees is not None:
            taken = self.layer.face_degrees <= self.trace_degrees[:, None]  # (N, m)
            used = np.repeat(taken[:, None], self.fields, axis=1).ravel()
        return MultifrontalFactors(self.mesh, parts, used, self.local.form.symmetric)

    def _held(self, matrices: DistinctMatrices, row: int, motions: FreeMotions) -> DistinctMatrices:
        """Fix the free motions in the first cell, which is then of a kind of its own: a balanced load leaves no
        reaction."""
        values, weights, points = self.local.functions.cell_table(0)
        moments = np.einsum("m,rmf,ma->rfa", weights, motions.at(points), values).reshape(len(motions), -1)
        size = float(np.einsum("ra,ra->", moments, moments)) / len(motions)
        kind = matrices.same[row]
        square = matrices.square[kind]
        square = square + float(np.trace(square)) / len(square) / max(size, 1e-300) * moments.T @ moments
        same = matrices.same.copy()
        same[row] = len(matrices.first)
        upper, lower, corner = (
            np.concatenate([one, one[[kind]]]) for one in (matrices.upper, matrices.lower, matrices.corner)
        )
        return DistinctMatrices(
            np.append(matrices.first, row), same, np.concatenate([matrices.square, square[None]]), upper, lower, corner,
            matrices.load,
        )  # fmt: skip

    def centre(self, weights: Array, traces: Array, motions: FreeMotions) -> None:
        """Subtract the free motions from a solution, so that their means are zero."""
        gram = np.zeros((len(motions), len(motions)))
        right = np.zeros(len(motions))
        for cell in range(self.mesh.count):
            values, shares, points = self.local.functions.cell_table(cell)
            moved = motions.at(points)
            gram += np.einsum("m,rmf,smf->rs", shares, moved, moved)
            right += np.einsum("m,rmf,ma,fa->r", shares, moved, values, weights[cell], optimize=True)
        amounts = np.linalg.solve(gram, right)
        for cell in range(self.mesh.count):
            values, shares, points = self.local.functions.cell_table(cell)
            root = np.sqrt(shares)[:, None]
            taken = np.einsum("r,rmf->mf", amounts, motions.at(points))
            weights[cell] -= np.linalg.lstsq(root * values, root * taken, rcond=1e-12)[0].T
        points, shares = self.mesh.face_points(self.layer.nodes)
        trace, unit = self.layer.face_functions, self.layer.face_grid[1]
        for face, nodes in enumerate(points):
            taken = np.einsum("r,rmf->mf", amounts, motions.at(nodes))
            traces[face] -= ((trace * unit[:, None]).T @ taken).T

    def jumps(self, weights: Array, traces: Array, given: Array | None = None, natural: Array | None = None) -> Array:
        """∫_∂K η |u - û|² of each cell (C,), and the residuals of natural conditions.

        given, natural : values and fluxes (B, q, K) on patches of the boundary; those of the problem where None
        """
        given = self.local.values if given is None else given
        natural = self.local.natural if natural is None else natural
        return self.jumps_of_states([TracedState(weights, traces, given, natural)])[0]

    def jumps_of_states(self, states: Sequence[TracedState]) -> Array:
        """The jumps (S, C) of several states at once, which share the tables of functions on faces."""
        energies = np.zeros((len(states), self.mesh.count))
        jets = self.local.functions.jets(np.concatenate([state.weights for state in states], axis=1))
        for batch in self.local.batches():
            flat = batch.pairs.ravel()
            values, gradients = self.local.functions.at(jets, self.local.cell[flat], self.local.points[flat])
            coefficients = self.local.pair_coefficients(flat)
            for number, state in enumerate(states):
                own = slice(number * self.fields, (number + 1) * self.fields)
                energy = self._jump_energy(flat, state, values[:, :, own], gradients[:, :, own], coefficients)
                np.add.at(energies[number], self.local.cell[flat], energy)
        return energies

    def _jump_energy(
        self, flat: Array, state: TracedState, inside: Array, slopes: Array, coefficients: tuple[Array, Array, Array]
    ) -> Array:
        """∫ η |u - û|² and the residuals of natural conditions, over pairs (P,) of cells and sides."""
        flux, penalty, _ = coefficients
        gap = np.zeros_like(inside)
        inner = np.flatnonzero(flat < self.local.interior)
        outer = np.flatnonzero(flat >= self.local.interior)
        on_face = np.einsum(
            "qm,pfm->pqf", self.layer.face_functions, state.traces[self.local.face[flat[inner]]], optimize=True
        )
        gap[inner] = inside[inner] - on_face
        patch = flat[outer] - self.local.interior
        gap[outer] = np.einsum("pqkl,pql->pqk", self.local.projection[patch], inside[outer]) - state.given[patch]
        energy = np.einsum("pq,pqk,pqkl,pql->p", self.local.weights[flat], gap, penalty, gap, optimize=True)
        if len(outer):  # residuals of natural conditions, over the penalty: in the same unit
            normal = np.einsum("pqkfj,pqfj->pqk", flux[outer], slopes[outer], optimize=True)
            lack = normal + np.einsum("pqkl,pql->pqk", self.local.robin[patch], inside[outer]) - state.natural[patch]
            lack -= np.einsum("pqkl,pql->pqk", self.local.projection[patch], lack)
            size = np.einsum("pqkk->pqk", penalty[outer])
            energy[outer] += np.einsum("pq,pqk->p", self.local.weights[flat[outer]], lack**2 / size)
        return np.asarray(energy)


def trace_matrix(parts: Sequence[CondensedCells], total: int) -> sparse.csc_matrix:
    """The sum of the matrices of cells on the traces, (total, total)."""
    reserve(3 * FLOAT_BYTES * float(sum(part.dofs.size * part.dofs.shape[1] for part in parts)), "the matrix of traces")
    rows = np.concatenate([np.repeat(part.dofs, part.dofs.shape[1], axis=1).ravel() for part in parts])
    columns = np.concatenate([np.tile(part.dofs, (1, part.dofs.shape[1])).ravel() for part in parts])
    entries = np.concatenate([part.kinds[part.same].ravel() for part in parts])
    return sparse.csc_matrix((entries, (rows, columns)), (total, total))


def factorised_traces(matrix: sparse.csc_matrix, dim: int, order: str = "MMD_AT_PLUS_A") -> SuperLU:
    """The factors of a matrix of traces; operations and bytes are those of nested dissection, up to a factor.

    >>> factorised_traces(sparse.csc_matrix(2 * np.eye(3)), 2).solve(np.ones(3)).tolist()
    [0.5, 0.5, 0.5]
    """
    size, entries = matrix.shape[0], float(matrix.nnz)
    flops = entries ** (3 / 2) if dim < 3 else entries * size
    growth = log2(size + 2) / 2 if dim < 3 else size ** (1 / 3) / 2
    with factorising(f"sparse LU, {dim}", flops, 2 * matrix.dtype.itemsize * entries * growth):
        try:
            return splu(matrix, permc_spec=order, diag_pivot_thresh=MUCH_SMALLER, options={"SymmetricMode": True})
        except RuntimeError as error:  # SciPy raises it for an exactly singular matrix
            raise np.linalg.LinAlgError(f"the matrix of traces: {error}") from error


def eliminated(matrices: DistinctMatrices) -> tuple[Array, Array]:
    """The responses of cells to traces, (U, n, T) of the kinds, and to loads, (B, n)."""
    n, order = matrices.load.shape[1], np.argsort(matrices.same, kind="stable")
    counts = np.bincount(matrices.same, minlength=len(matrices.first))
    most, traces = int(counts.max()), matrices.upper.shape[2]
    column = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.zeros((len(matrices.first), n, traces + most))
    right[:, :, :traces] = matrices.upper
    right[matrices.same[order], :, traces + column] = matrices.load[order]
    solved = np.linalg.solve(matrices.square, right)
    own = np.empty_like(matrices.load)
    own[order] = solved[matrices.same[order], :, traces + column]
    return solved[:, :, :traces], own


def nested_dissection(mesh: WeakMesh) -> Array:
    """Faces (N,) in an order of elimination: those inside the children of a node of the tree before those between."""
    middles = mesh.spans.mean(axis=2)

    def ordered(node: CellNode, faces: Array) -> list[Array]:
        if node.children is None or not len(faces):
            return [faces]
        coordinate = node.children[0].bounds[node.axis, 1]
        between = (mesh.axis[faces] == node.axis) & (mesh.spans[faces, node.axis, 0] == coordinate)
        below = ~between & (middles[faces, node.axis] < coordinate)
        lower, upper = node.children
        return [*ordered(lower, faces[below]), *ordered(upper, faces[~between & ~below]), faces[between]]

    return np.concatenate(ordered(mesh.tree, np.arange(len(mesh.axis))))
