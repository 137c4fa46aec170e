"""Residuals of the rows of a stationary system: their norm, and residuals by cell and by term."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.boundary.sides import Side
from rannpde.pde.cells.constraints.fluxes import FaceFluxes
from rannpde.pde.cells.network import Weights
from rannpde.pde.cells.stationary.system import CellsSystem


def row_norm(system: CellsSystem, weights: Weights) -> float:
    """Return the norm of all rows at these weights, scaled as in the last solve; infinite where it is not
    finite."""
    total, face_weight = 0.0, system.continuity.face_weight
    for number, _ in system.mesh.present:
        checkpoint()
        own = weights.cells[number]
        for collocation, root in zip(system.collocations[number], system.roots[number], strict=True):
            value = collocation.term.expression.value(collocation.known, system.jets(collocation, own))
            total += float(np.square(value * root).sum())
        firm = system.constraint_weights(number)
        for operator in system.continuity.operators[number]:
            traces = weights.traces[operator.face][: operator.width].reshape(len(operator.projected), -1)
            for (column, _), projected, complement, trace in zip(
                operator.traces, operator.projected, operator.complement, traces, strict=True
            ):
                gap = np.square(projected @ own[:, column] - trace).sum() + np.square(complement @ own[:, column]).sum()
                total += (face_weight * firm[column]) ** 2 * float(gap)
    if system.face_fluxes is not None:
        total += face_weight**2 * _flux_defect(system, system.face_fluxes, weights)
    return float(np.sqrt(total)) if np.isfinite(total) else np.inf


def _flux_defect(system: CellsSystem, face_fluxes: FaceFluxes, weights: Weights) -> float:
    """Return the sum of squares of the defects of the flux rows."""
    total = 0.0
    for number, _ in system.mesh.present:
        for face_flux in face_fluxes.of_cell[number]:
            jets = system.jets(face_flux.collocation, weights.cells[number])
            value = face_flux.collocation.term.expression.value(face_flux.collocation.known, jets)
            total += face_fluxes.squared_defect(face_flux, value, weights.traces[face_flux.face])
    return total


def cell_residuals(system: CellsSystem, weights: Weights) -> tuple[Array, Array]:
    """Return dimensionless root mean squares per leaf: of equations (C,), and of conditions by axis of the normal
    (C, n)."""
    dim = system.problem.domain.dim
    equations, conditions = np.zeros(len(system.mesh.cells)), np.zeros((len(system.mesh.cells), dim))
    for number, cell in system.mesh.present:
        checkpoint()
        for collocation in system.collocations[number]:
            value, _, natural = system.linearised(cell, collocation, system.jets(collocation, weights.cells[number]))
            square = collocation.weights * (value * (system.row_weight(collocation, number) / natural)) ** 2
            if collocation.term.kind == "boundary" and isinstance(collocation.term.region, Side):
                conditions[number] += square @ collocation.term.region.normals(collocation.points) ** 2
            else:
                equations[number] += square.sum()
    return np.sqrt(equations), np.sqrt(conditions)


def losses_by_term(system: CellsSystem, weights: Weights) -> dict[str, float]:
    """Return for each name the mean square of the residual over all its points."""
    sums: dict[str, tuple[float, int]] = {}
    for number, _ in system.mesh.present:
        for collocation in system.collocations[number]:
            value = collocation.term.expression.value(
                collocation.known, system.jets(collocation, weights.cells[number])
            )
            square = float(np.square(np.broadcast_to(value, len(collocation.points))).sum())
            total, count = sums.get(collocation.term.name, (0.0, 0))
            sums[collocation.term.name] = (total + square, count + len(collocation.points))
    return {name: total / count for name, (total, count) in sums.items()}
