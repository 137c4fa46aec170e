"""States of a flow on cells, and the matrices of cells."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from rannpde.arrays import Array


@dataclass(frozen=True, eq=False)
class FlowState:
    """Weights of stream functions (C, k), tangential velocities of faces (N, m), tractions of faces and patches
    (N + B, n), and of S scalars in cells (C, S, k) and on faces (N, S, r)."""

    stream: Array
    tangential: Array
    normal: Array
    scalars: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))
    traces: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))

    @property
    def alone(self) -> FlowState:
        """The same as the only one of several states, which are stacked along a first axis."""
        return FlowState(*(getattr(self, one.name)[None] for one in fields(FlowState)))


@dataclass(frozen=True, eq=False)
class FlowMatrices:
    """Matrices of a batch of cells, all of them linearised at a state: cell–cell (B, k, k), cell–face (B, k, T), face–
    cell (B, T, k), face–face (B, T, T), right-hand sides (B, k), (B, T)."""

    square: Array
    upper: Array
    lower: Array
    corner: Array
    load: Array
    data: Array


def add_face_blocks(corner: Array, blocks: Array) -> None:
    """Add blocks (B, t, m, m) of t faces to the diagonal of matrices (B, T, T) of unknowns around cells."""
    b, t, m, _ = blocks.shape
    index = np.arange(t)
    whole = np.zeros((b, t, m, t, m))
    whole[:, index, :, index, :] = blocks.swapaxes(0, 1)
    corner[:, : t * m, : t * m] += whole.reshape(b, t * m, t * m)
