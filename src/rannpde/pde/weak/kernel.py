"""Motions that no condition fixes: constants under pure Neumann conditions, rigid motions of a body without support.

A field w = a + B x is free if its flux vanishes, and no reaction, advection or condition acts on it. A load that does
work on a free motion has no equilibrium; one that does none leaves the motion undetermined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from rannpde.arrays import Array
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.mesh import BoundaryPatches, WeakMesh
from rannpde.rounding import COMPUTED, ROOT_ROUNDED

UNBALANCED = ROOT_ROUNDED
"""Work of the data on a free motion, over the sum of its absolute parts, that is no rounding of quadrature."""
MOTION_SAMPLES = 40
"""Points of the domain at which forces are sampled."""


@dataclass(frozen=True, eq=False)
class FreeMotions:
    """Affine fields that no condition fixes, coefficients (r, F, 1 + d) of 1 and of (x - middle) / size."""

    coefficients: Array
    middle: Array
    size: float

    def __len__(self) -> int:
        return len(self.coefficients)

    def at(self, points: Array) -> Array:
        """Values (r, M, F) at points (M, d)."""
        columns = np.column_stack([np.ones(len(points)), (points - self.middle) / self.size])
        return np.asarray(np.einsum("rfa,ma->rmf", self.coefficients, columns))

    def described(self, fields: tuple[str, ...]) -> str:
        """A description of the free motions in words."""
        plain = [name for k, name in enumerate(fields) if self._constant(k)]
        if len(plain) == len(self):
            return f"a constant in {', '.join(plain)}"
        return f"{len(self)} rigid motions of ({', '.join(fields)})"

    def _constant(self, field: int) -> bool:
        """Whether a constant in one field alone is free."""
        wanted = np.zeros(self.coefficients.shape[1:])
        wanted[field, 0] = 1.0
        flat = self.coefficients.reshape(len(self), -1)
        return bool(np.linalg.norm(flat.T @ (flat @ wanted.ravel()) - wanted.ravel()) < ROOT_ROUNDED)


def free_motions(form: WeakForm, mesh: WeakMesh) -> FreeMotions:
    """All affine fields without energy on which no condition acts."""
    domain = form.problem.domain
    bounds = np.asarray(domain.bounds, dtype=float)
    middle, size = bounds.mean(axis=1), 0.5 * float(np.diff(bounds, axis=1).max())
    fields, dim = form.fields, len(middle)
    points = domain.sample(MOTION_SAMPLES, rng=0)
    coefficients = form.at(points)
    basis = np.eye(fields * (1 + dim)).reshape(-1, fields, 1 + dim)
    every = FreeMotions(basis, middle, size)
    slopes = basis[:, :, 1:] / size  # (n, F, d)
    values = every.at(points)
    flux = np.einsum("mkfij,nfj->nmki", coefficients.diffusion, slopes)
    force = np.einsum("mkf,nmf->nmk", coefficients.reaction, values)
    force += np.einsum("mkfj,nfj->nmk", coefficients.advection, slopes)
    scale = float(np.abs(coefficients.diffusion).max()) / size
    rows = [flux.reshape(len(basis), -1) / scale, force.reshape(len(basis), -1) * size / scale]
    patches = mesh.patches
    for group, numbers in enumerate(mesh.conditions):
        mine = np.flatnonzero(patches.group == group)
        nodes, normal = patches.points[mine].reshape(-1, dim), patches.normals[mine].reshape(-1, dim)
        conditions, there = form.rows(numbers, nodes, normal), every.at(nodes)
        rows.append(np.einsum("mkf,nmf->nmk", conditions.projection, there).reshape(len(basis), -1))
        rows.append(np.einsum("mkf,nmf->nmk", conditions.robin, there).reshape(len(basis), -1) / scale)
    stacked = np.concatenate(rows, axis=1).T
    free = null_space(np.linalg.qr(stacked, mode="r"), rcond=COMPUTED)
    return FreeMotions(free.T.reshape(-1, fields, 1 + dim), middle, size)


def imbalance(motions: FreeMotions, form: WeakForm, mesh: WeakMesh, points: Array, weights: Array) -> float:
    """The largest work of load and boundary data on a free motion, over the sum of its absolute parts."""
    work = np.einsum("m,mk,rmk->r", weights, form.at(points).load, motions.at(points))
    total = np.einsum("m,mk,rmk->r", weights, np.abs(form.at(points).load), np.abs(motions.at(points)))
    patches: BoundaryPatches = mesh.patches
    dim = points.shape[1]
    for group, numbers in enumerate(mesh.conditions):
        mine = np.flatnonzero(patches.group == group)
        nodes, normal = patches.points[mine].reshape(-1, dim), patches.normals[mine].reshape(-1, dim)
        natural, shares = form.rows(numbers, nodes, normal).natural, patches.weights[mine].ravel()
        work += np.einsum("m,mk,rmk->r", shares, natural, motions.at(nodes))
        total += np.einsum("m,mk,rmk->r", shares, np.abs(natural), np.abs(motions.at(nodes)))
    return float((np.abs(work) / np.maximum(total, 1e-300)).max(initial=0.0))
