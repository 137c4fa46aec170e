"""The unknowns of a system: output weights of every cell, and traces on every joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import field_sizes


@dataclass(frozen=True, eq=False)
class Weights:
    """Output weights per cell (functions, fields), and traces per joint."""

    cells: tuple[Array, ...]
    traces: tuple[Array, ...]

    def towards(self, other: Weights, length: float) -> Weights:
        """That share of the way to other weights."""
        pairs = ((self.cells, other.cells), (self.traces, other.traces))
        mixed = [tuple((1 - length) * a + length * b for a, b in zip(x, y, strict=True)) for x, y in pairs]
        return Weights(*mixed)

    def distance(self, other: Weights) -> float:
        """Of the functions, relative to the other, the largest over the fields."""
        gaps = np.sum([np.square(a - b).sum(axis=0) for a, b in zip(self.cells, other.cells, strict=True)], axis=0)
        sizes = np.sum([np.square(b).sum(axis=0) for b in other.cells], axis=0)
        return float((np.sqrt(gaps) / field_sizes(np.sqrt(sizes))).max())
