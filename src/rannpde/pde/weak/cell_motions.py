"""Motions of single cells without energy: constants, and rigid motions of elastic bodies.

A cell of a slender body is moved far more than it is strained, and the product of its matrix with its displacements is
rounded by the size of the motion: errors like springs that hold each cell where it is, (length/height)⁴ times rounding
in a bent beam. The motions of a cell that nothing holds are in the kernel of its matrix, so that a product without them
is the same, and is rounded by the strain only. Iterative refinement with such residuals finds traces to that accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from rannpde.arrays import Array
from rannpde.pde.statement.divergence import DivergenceSystem
from rannpde.pde.tolerance import COMPARABLE
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES, WeakForm
from rannpde.pde.weak.local import CellBatch, LocalMatrices, by_kind
from rannpde.pde.weak.self_similar import CondensedCells
from rannpde.rounding import ROOT_ROUNDED, ROUNDED


@dataclass(frozen=True, eq=False)
class CellMotions:
    """Traces (B, T, r) of the motions of cells, zero where a motion is held, and their left inverses (B, r, T)."""

    traces: Array
    inverse: Array

    def of(self, around: Array) -> Array:
        """The motions (B, T) in traces (B, T) around cells."""
        amounts = np.matmul(self.inverse, around[:, :, None])
        return np.asarray(np.matmul(self.traces, amounts)[:, :, 0])


def free_slopes(form: WeakForm) -> Array | None:
    """Slopes (n, F, d) of affine fields without flux; None where forces act on constants or slopes."""
    if not isinstance(form.system, DivergenceSystem) or any(one.jets for one in form.system.rests):
        return None
    diffusion = form.at(form.problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)).diffusion
    fields, dim = form.fields, diffusion.shape[-1]
    flux = np.moveaxis(diffusion, 3, 2).reshape(-1, fields * dim) / np.abs(diffusion).max()
    free = null_space(np.linalg.qr(flux, mode="r"), rcond=ROUNDED)
    return np.asarray(free.T.reshape(-1, fields, dim))


def cell_motions(
    local: LocalMatrices, batch: CellBatch, part: CondensedCells, slopes: Array, held: Sequence[int]
) -> CellMotions:
    """The motions of the cells of a batch on their faces.

    part : their matrices, in whose kernel the motions are; held : cells that are held by other means than conditions
    """
    b, t, fields = len(batch.cells), batch.faces, local.fields
    half = local.mesh.halfwidths[batch.cells]
    share = half / half.max(axis=1, keepdims=True)

    def moved(pairs: Array) -> Array:
        """Values (B, s, q, F, r) on pairs (B, s)."""
        flat = pairs.ravel()
        scaled = local.functions.scaled_face_points(local.cell[flat], local.points[flat])
        scaled = scaled.reshape(*pairs.shape, *scaled.shape[1:]) * share[:, None, None]
        constants = np.broadcast_to(np.eye(fields), (*scaled.shape[:3], fields, fields))
        return np.concatenate([constants, np.einsum("nfj,bsqj->bsqfn", slopes, scaled)], axis=-1)

    values = moved(batch.pairs[:, :t])
    trace, unit = local.layer.face_functions, local.layer.face_grid[1]
    traces = np.einsum("qm,q,btqfr->btfmr", trace, unit, values, optimize=True)
    lost = np.abs(np.einsum("qm,btfmr->btqfr", trace, traces, optimize=True) - values).max(axis=(1, 2, 3), initial=0.0)
    outer = batch.pairs[:, t:]
    lacks = np.zeros((b, 1, values.shape[-1]))
    if outer.size:
        patch = outer - local.interior
        kept = np.einsum("bsqkf,bsqfr->bsqkr", local.projection[patch], moved(outer), optimize=True)
        lacks = kept.reshape(b, -1, kept.shape[-1])
        stiff = local.robin[patch].any(axis=(1, 2, 3, 4))
    else:
        stiff = np.zeros(b, dtype=bool)
    stiff |= np.isin(batch.cells, held)
    lacks = np.concatenate([lacks, lost[:, None] * np.eye(lost.shape[1])], axis=1)  # each that traces do not hold
    turned = np.linalg.eigh(np.matmul(lacks.transpose(0, 2, 1), lacks))[1]
    free = (np.abs(np.matmul(lacks, turned)).max(axis=1) <= ROUNDED) & ~stiff[:, None]
    columns = np.matmul(traces.reshape(b, -1, turned.shape[1]), turned)
    work = np.stack([by_kind(part.kinds, part.same, column) for column in np.moveaxis(columns, 2, 0)], axis=2)
    sizes = np.abs(part.kinds).max(axis=(1, 2))[part.same, None] * np.abs(columns).max(axis=1)
    free &= np.abs(work).max(axis=1) <= ROOT_ROUNDED * sizes  # also where no coefficient was sampled
    columns *= free[:, None]
    return CellMotions(columns, np.linalg.pinv(columns))


@dataclass(frozen=True, eq=False)
class RefinedTraces:
    """The system of traces with its factors, and the motions of the cells of each part.

    solver : the solution (n,) of a right-hand side by the factors
    """

    solver: Callable[[Array], Array]
    parts: Sequence[tuple[CondensedCells, CellMotions | None]]

    def product(self, traces: Array) -> Array:
        """The matrix times traces (n,), without the motions of cells."""
        total = np.zeros_like(traces)
        for part, motions in self.parts:
            around = traces[part.dofs]
            if motions is not None:
                around = around - motions.of(around)
            np.add.at(total, part.dofs, by_kind(part.kinds, part.same, around))
        return total

    def solve(self, right: Array) -> tuple[Array, float]:
        """Traces (n,) by iterative refinement, and their relative error that the algebra leaves."""
        traces = self.solver(right)
        left = 0.0 if all(motions is None for _, motions in self.parts) else np.inf
        while left > ROUNDED:
            change = self.solver(right - self.product(traces))
            now = float(np.linalg.norm(change) / max(float(np.linalg.norm(traces)), 1e-300))
            if now > COMPARABLE * left:
                break
            traces, left = traces + change, now
        return traces, left
