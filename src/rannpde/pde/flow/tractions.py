"""Tractions with which the cells of flows act on faces and on the boundary, and the forces on its patches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.matrices import FlowState


@dataclass(frozen=True, eq=False)
class FaceTractions:
    """The tractions of s states, on all pairs of cells and faces: λ (s, P, q), the tangential traction T_t (s, P, q),
    u_t - û (s, P, q) where a face or the boundary prescribes û, u_n less its prescribed value (s, P, q), and the
    penalty (P, q).

    here (P, k, s) : weights of the stream functions of the cells; carried (2, s, M) : C at the points of cells
    """

    normal: Array
    tangential: Array
    gap: Array
    lost: Array
    penalty: Array
    here: Array
    carried: Array


def tractions(system: FlowSystem, states: FlowState) -> FaceTractions:
    """The tractions of states that are stacked along a first axis, all with the data of one time."""
    local, boundary, operator, count = system.local, system.local.boundary, system.inertia, len(states.stream)
    inner, faces = local.interior, system.faces
    fields = operator.fields(states.stream)
    shape = (count, *fields.slip.shape[:2])
    along, across = np.moveaxis(fields.slip, 2, 0), np.moveaxis(fields.through, 2, 0)
    carried, drift = np.empty_like(fields.velocity), np.empty(shape)
    rest = system.form.at_rest(operator.points)
    for k in range(count):
        scalars = operator.scalars(states.scalars[k])[:, 0] if system.form.scalars else None
        value, advection = system.form.carried(operator.points, fields.velocity[:, k], fields.slopes[:, :, k], scalars)
        carried[:, k] = rest + system.share * value
        drift[k] = system.share * np.einsum(
            "jpq,pqj->pq", advection[:, operator.beside].reshape(2, *shape[1:]), local.normals
        )
    tangents, normals = local.tangents[inner:], local.normals[inner:]
    outside = np.empty(shape)
    outside[:, :faces] = outside[:, faces:inner] = states.tangential @ local.tangential_functions.T
    outside[:, inner:] = np.einsum("pqf,pqf->pq", tangents, boundary.values)
    gap, penalty = along - outside, system.penalty(np.arange(shape[1]))
    shear = system.form.viscosity * np.moveaxis(np.matmul(local.shear, fields.here), 2, 0)
    tangential = shear - (penalty + np.maximum(-drift, 0.0)) * gap
    normal = states.normal[:, local.face] @ local.normal_functions.T
    velocity = along[:, inner:, :, None] * tangents + across[:, inner:, :, None] * normals
    known = boundary.natural - np.einsum("pqfg,spqg->spqf", boundary.robin, velocity)
    free, loose = inner + np.flatnonzero(~boundary.normal), inner + np.flatnonzero(~boundary.tangential)
    normal[:, free] = -np.einsum("pqf,spqf->spq", normals, known)[:, ~boundary.normal]
    tangential[:, loose] = np.einsum("pqf,spqf->spq", tangents, known)[:, ~boundary.tangential]
    gap[:, loose] = 0.0
    lost = across.copy()
    lost[:, inner:] -= np.einsum("pqf,pqf->pq", normals, boundary.values)
    lost[:, inner:] *= boundary.normal[:, None]
    return FaceTractions(normal, tangential, gap, lost, penalty, fields.here, carried)


def patch_forces(system: FlowSystem, tractions_of_faces: FaceTractions) -> Array:
    """Force (s, B, 2) of flows on each patch of the boundary, ∫ p n - ν (∂_n u + κ ∇(u·n)) by the weak residual."""
    local, outer = system.local, slice(system.local.interior, None)
    acting = tractions_of_faces.normal[:, outer, :, None] * local.normals[outer]
    acting -= tractions_of_faces.tangential[:, outer, :, None] * local.tangents[outer]
    return np.asarray((local.weights[outer][:, :, None] * acting).sum(axis=2))
