"""The multipliers of the normal flux that are used: those that the cells control (inf-sup condition).

A multiplier on a face is controlled by a cell beside it if a velocity of this cell has its flux, and none of the fluxes
of the other multipliers that the cell controls (a Fortin operator). A whole box controls polynomials two degrees below
that of the stream function on each side. A cut cell need not: there, multipliers are added one by one, from low degrees
on, and those that are nearly combinations of earlier ones are left out. Of two cells at a face the one that is not cut
controls its multipliers; if both or none are cut, the larger one.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.local import FlowCells

INDEPENDENT = 0.05
"""Least sine of the angle between a multiplier and those before it, in the norm of the local inf-sup condition."""


def stable_multipliers(local: FlowCells, square: dict[int, Array]) -> Array:
    """Which multipliers (N + B, n) of faces and patches are used.

    square : matrices (k, k) of viscosity and penalties of the cut cells
    """
    mesh = local.mesh
    faces = len(mesh.axis)
    used = np.ones((faces + len(mesh.patches), local.normal_functions.shape[1]), dtype=bool)
    volumes = mesh.halfwidths.prod(axis=1)
    for cell, part in mesh.parts.items():
        volumes[cell] = part.weights.sum()
    cut = np.zeros(mesh.count, dtype=bool)
    cut[list(mesh.parts)] = True
    owner = np.empty(len(used), dtype=int)
    first, second = mesh.beside.T
    better = np.where(cut[first] == cut[second], volumes[first] >= volumes[second], ~cut[first])
    owner[:faces] = np.where(better, first, second)
    owner[faces:] = mesh.patches.cell
    for cell in mesh.parts:
        pairs = np.flatnonzero(local.cell == cell)
        mine = pairs[owner[local.face[pairs]] == cell]
        if len(mine):
            used[local.face[mine]] = _independent(local, cell, mine, square[cell])
            local.check_budget()
    return used


def _independent(local: FlowCells, cell: int, pairs: Array, square: Array) -> Array:
    """Which multipliers (P, n) of these faces of a cell are independent enough of those before them."""
    weights, normals, across = local.weights[pairs], local.normals[pairs], local.across[pairs]
    middle = local.mesh.parts[cell].points.mean(axis=0)
    # a field with a net flux out of the cell, which curls in the cell do not have, but its neighbours can supply
    source = np.einsum("pqf,pqf->pq", normals, local.points[pairs] - middle)
    heavy = weights[:, :, None] * local.normal_functions
    moments = np.matmul(heavy.swapaxes(1, 2), across)  # (P, n, k)
    extra = np.matmul(heavy.swapaxes(1, 2), source[:, :, None])
    white = np.linalg.solve(np.linalg.cholesky(square), moments.reshape(-1, square.shape[0]).T).T
    extra = extra.reshape(-1, 1) * np.abs(white).max() / max(float(np.abs(extra).max()), 1e-300)
    rows = np.concatenate([white, extra], axis=1).reshape(len(pairs), -1, square.shape[0] + 1)
    independent = np.zeros(rows.shape[:2], dtype=bool)
    lengths = weights.sum(axis=1)
    basis = np.empty((0, rows.shape[2]))
    for degree in range(rows.shape[1]):
        for face in np.argsort(-lengths, kind="stable"):
            row = rows[face, degree]
            left = row - basis.T @ (basis @ row)
            left = left - basis.T @ (basis @ left)
            size = float(np.linalg.norm(left))
            if size > INDEPENDENT * float(np.linalg.norm(row)):
                independent[face, degree] = True
                basis = np.concatenate([basis, left[None] / size])
    return independent
