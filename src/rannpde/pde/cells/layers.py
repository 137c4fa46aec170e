"""Values that are prescribed where a flow leaves through a layer thinner than the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.sides import Side
from rannpde.pde.cells.basis import Cell
from rannpde.pde.cells.places import Place

Flows = dict[str, tuple[Array, Array]]
"""Field → (diffusion (n,), velocity (n,)), means over a cell."""


def entering(cell: Cell, place: Place, flows: Mapping[str, tuple[Array, Array]], power: float) -> float | Array:
    """How much of a prescribed value a cell can feel: little where a flow leaves through a layer thinner than it.

    With the full weight a layer that is not resolved would be smeared over the whole domain.
    """
    given = place.term.prescribed if place.term.kind == "boundary" else None
    if given is None or given[0].order > 0 or given[0].field not in flows or not isinstance(place.term.region, Side):
        return 1.0
    diffusion, velocity = flows[given[0].field]
    normals = place.term.region.normals(place.points)
    across = normals**2 @ diffusion
    leaving = np.maximum(normals @ velocity * np.where(across > 0, -1.0, 1.0), 0.0)
    thin = np.abs(across) * (np.abs(normals) @ (1 / cell.halfwidth))
    return (thin / np.maximum(thin + leaving, 1e-300)) ** power


def note_flow(flows: Flows, place: Place, partials: Sequence[Array]) -> None:
    """Field → (diffusion (n,), velocity (n,)): means over a cell in the equation that diffuses the field most."""
    dim = place.points.shape[1]
    found: dict[str, tuple[Array, Array]] = {}
    for jet, partial in zip(place.term.expression.jets, partials, strict=True):
        diffusion, velocity = found.setdefault(jet.field, (np.zeros(dim), np.zeros(dim)))
        if jet.order == 2 and max(jet.index) == 2:
            diffusion[jet.index.index(2)] = float(np.mean(partial))
        elif jet.order == 1:
            velocity[jet.index.index(1)] = float(np.mean(partial))
    for name, (diffusion, velocity) in found.items():
        before = np.abs(flows[name][0]).sum() if name in flows else 0.0
        if np.abs(diffusion).sum() > before:
            flows[name] = (diffusion, velocity)
