"""Scalars of a flow after a solve: indicators of their errors, and their fluxes through sides."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.pressure import CellWeights
from rannpde.pde.flow.scalars import Carried, transport
from rannpde.pde.weak.evaluation import sampled
from rannpde.rounding import COMPUTED


def scalar_indicators(system: FlowSystem, state: FlowState) -> Array:
    """Squared indicators (C,) of all scalars, each over its energy κ ∫ |∇T|².

    (h/n)² ∫ residual² / κ in cells, and differences to traces and to what is given, with their penalties.
    """
    local, form, mesh = system.local, system.form, system.mesh
    indices = [(i, j) for i in range(3) for j in range(3 - i)]
    weighted = CellWeights(np.concatenate([state.stream[:, None], state.scalars], axis=1))
    points, weights, owners, tables = sampled(local, weighted, indices)
    velocity = np.stack([tables[0, 1][:, 0], -tables[1, 0][:, 0]])
    slopes = np.stack([tables[1, 0][:, 1:].T, tables[0, 1][:, 1:].T], axis=1)
    values = tables[0, 0][:, 1:].T
    rest = transport(form.problem, form.scalars, form.velocity, Carried(points.T, velocity, values, slopes)).value
    lengths = 2 * mesh.halfwidths.min(axis=1)[owners] / local.layer.degree
    jumps = _jumps(system, state)
    longest = float(np.ptp(np.asarray(form.problem.domain.bounds, dtype=float), axis=1).max())
    total = np.zeros(mesh.count)
    for s, one in enumerate(form.scalars):
        left = rest[s] - one.diffusivity * (tables[2, 0] + tables[0, 2])[:, 1 + s]
        squares = np.bincount(owners, weights * (lengths * left) ** 2 / one.diffusivity, mesh.count) + jumps[s]
        energy = one.diffusivity * float((weights * (slopes[s] ** 2).sum(axis=0)).sum())
        least = one.diffusivity * float((weights * values[s] ** 2).sum()) / longest**2  # a constant has no energy
        total += squares / max(energy, COMPUTED * least, 1e-300)
    return total


def _jumps(system: FlowSystem, state: FlowState) -> Array:
    """∫_∂K η (T - T̂)² of each scalar and cell (S, C), and what natural conditions lack over η."""
    local, mesh = system.local, system.mesh
    diffusion, inner = local.diffusion, local.interior
    assert diffusion is not None
    pairs = np.arange(len(local.cell))
    flux, penalty, _ = diffusion.pair_coefficients(pairs)
    values, slopes = diffusion.tables(local.cell, local.points)
    jumps = np.empty((len(system.form.scalars), mesh.count))
    for s in range(len(jumps)):
        own, size = state.scalars[local.cell, s], penalty[..., s, s]
        inside = np.matmul(values, own[:, :, None])[:, :, 0]
        gap = inside.copy()
        gap[:inner] -= state.traces[local.face[:inner], s] @ local.layer.face_functions.T
        held = diffusion.projection[..., s, s]
        gap[inner:] = held * (inside[inner:] - diffusion.values[..., s])
        squares = size * gap**2
        normal = np.einsum("pqj,jpqa,pa->pq", flux[inner:, :, s, s], slopes[:, inner:], own[inner:], optimize=True)
        lack = normal + diffusion.robin[..., s, s] * inside[inner:] - diffusion.natural[..., s]
        squares[inner:] += (1 - held) * lack**2 / size[inner:]
        jumps[s] = np.bincount(local.cell, (local.weights * squares).sum(axis=1), mesh.count)
    return jumps
