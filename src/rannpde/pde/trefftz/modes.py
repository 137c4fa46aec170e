"""Eigenfunctions of Laplace's operator: features in space of linear evolutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.checkpoints import checkpoint


class SpatialModes(ABC):
    """Orthonormal functions of space φ_j, j < N, that satisfy homogeneous conditions and diagonalise an operator."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def count(self) -> int:
        """N."""

    @abstractmethod
    def multiplier(self, index: MultiIndex) -> Array | None:
        """μ (N,) with ∂^index φ = μ φ; None where it is no multiple."""

    @property
    @abstractmethod
    def negative_laplacian(self) -> Array:
        """|w|² (N,), the eigenvalues of -Δ."""

    @property
    @abstractmethod
    def edge(self) -> float:
        """A frequency |w| that all functions that were left out exceed."""

    @abstractmethod
    def nodes(self) -> Array:
        """Points (Q, d) at which a function is asked for in order to be projected."""

    @abstractmethod
    def projected(self, values: Array) -> Array:
        """Coefficients (N,) of the function that has these values (Q,) at the nodes."""

    @abstractmethod
    def columns(self, points: Array, index: MultiIndex, chosen: Array | None = None) -> Array:
        """∂^index φ (M, N) at points (M, d), of all or of the chosen ones (N,)."""

    @abstractmethod
    def trimmed(self, keep: Array) -> tuple[SpatialModes, Array]:
        """Fewer modes, among them all of ``keep`` (N,), and their numbers."""

    def plain(self, points: Array, index: MultiIndex, weights: Array) -> Array:
        """Σ_j weights_j ∂^index φ_j (M, fields)."""
        sums = np.empty((len(points), weights.shape[1]))
        for rows in self.blocks(len(points), self.count):
            sums[rows] = self.columns(points[rows], index) @ weights
        return sums

    @staticmethod
    def blocks(rows: int, columns: int) -> Iterator[slice]:
        """Slices of the rows of a table that are evaluated at once."""
        for block in row_blocks(rows, block_rows(2 * columns)):
            checkpoint()
            yield block

    @abstractmethod
    def pack(self) -> dict[str, Array]:
        """The arrays of the modes for a file."""
