"""The cells of an evolution and the inverses of A + σM₁ + σ²M₂ on them, for many numbers σ.

Where the form is symmetric and has one mass M, the generalised eigenvalue problem M v = μ A v of a cell is solved once:
with VᵀAV = 1 and VᵀMV = diag μ, (A + σM)⁻¹ = V diag 1/(1 + σμ) Vᵀ for every σ, and no matrix is inverted. A is positive
definite on every cell, by the penalty of its faces. Other forms have an inverse for every σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.local import CellBatch
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class EvolutionCells:
    """Cells of a batch by their kinds, and of the kinds the matrices: A in four blocks, M₁ and M₂ (U, n, n).

    starts (U + 1,) : where the cells of each kind begin; the first ``alone`` kinds have one cell each
    """

    batch: CellBatch
    starts: Array
    alone: int
    square: Array
    upper: Array
    lower: Array
    corner: Array
    masses: tuple[Array | None, Array | None]
    dofs: Array

    def times(self, matrices: Array, vectors: Array) -> Array:
        """Products (B, m, …) of the matrices (U, m, n) of the kinds with the vectors (B, n, …) of the cells."""
        split = np.iscomplexobj(vectors) and not np.iscomplexobj(matrices)  # real matrices stay real
        right = np.ascontiguousarray(vectors.reshape(*vectors.shape[:2], -1))
        right = right.view(float) if split else right
        product = np.empty((len(right), matrices.shape[1], right.shape[2]), dtype=np.result_type(matrices, right))
        np.matmul(matrices[: self.alone], right[: self.alone], out=product[: self.alone])
        for kind in range(self.alone, len(matrices)):
            mine = slice(self.starts[kind], self.starts[kind + 1])
            own = right[mine].transpose(1, 0, 2)
            whole = matrices[kind] @ own.reshape(len(own), -1)
            product[mine] = whole.reshape(-1, *own.shape[1:]).transpose(1, 0, 2)
        product = product.view(complex) if split else product
        return product.reshape(*product.shape[:2], *vectors.shape[2:])

    def of_cells(self, matrices: Array) -> Array:
        """The matrices (B, …) of the cells, from those of the kinds."""
        return np.repeat(matrices, np.diff(self.starts), axis=0)


@dataclass(frozen=True, eq=False)
class DenseInverse:
    """Inverses (U, n, n) of the kinds of cells, and with them the responses of cells to traces."""

    group: EvolutionCells
    matrices: Array

    def times_upper(self) -> Array:
        """The response (U, n, T) of cells to traces."""
        return np.matmul(self.matrices, self.group.upper)

    def reduced(self, response: Array) -> Array:
        """The products that elimination of the cells subtracts from the matrices (U, T, T) of traces."""
        return np.matmul(self.group.lower, response)

    def times(self, vectors: Array) -> Array:
        """The inverses times vectors (B, n)."""
        return self.group.times(self.matrices, vectors)

    def on_traces(self, vectors: Array) -> Array:
        """The contributions (B, T) of vectors (B, n) of cells to the equations of traces."""
        return self.group.times(self.group.lower, vectors)


@dataclass(frozen=True, eq=False)
class CellModes:
    """Modes V (U, n, n) of the kinds of cells and their μ (U, n); power : of σ before the mass."""

    group: EvolutionCells
    vectors: Array
    values: Array
    power: int

    @classmethod
    def of(cls, group: EvolutionCells) -> CellModes | None:
        """The modes; None where cells have two masses, or a form that is not symmetric and positive definite."""
        own = [(power, mass) for power, mass in enumerate(group.masses, start=1) if mass is not None]
        if len(own) != 1:
            return None
        power, mass = own[0]
        if not (_symmetric(group.square) and _symmetric(mass)):
            return None
        try:
            root = np.linalg.cholesky(_even(group.square))
        except np.linalg.LinAlgError:
            return None
        pivots = np.einsum("uii->ui", root) ** 2
        if (pivots.min(axis=1) <= COMPUTED * pivots.max(axis=1)).any():
            return None
        half = np.linalg.solve(root, mass)  # R⁻¹ M
        values, turned = np.linalg.eigh(_even(np.linalg.solve(root, half.transpose(0, 2, 1))))
        return cls(group, np.linalg.solve(root.transpose(0, 2, 1), turned), values, power)

    @cached_property
    def upper(self) -> Array:
        """The blocks (U, n, T) of modes and traces."""
        return np.matmul(self.vectors.transpose(0, 2, 1), self.group.upper)

    @cached_property
    def lower(self) -> Array:
        """The blocks (U, T, n) of traces and modes."""
        return np.matmul(self.group.lower, self.vectors)

    def loads(self, loads: Array) -> Array:
        """Loads (B, n, …) of the functions of cells as loads of modes, Vᵀ b."""
        return self.group.times(self.vectors.transpose(0, 2, 1), loads)

    def weights(self, weights: Array) -> Array:
        """Weights (B, n, …) of modes as weights of the functions of cells."""
        return self.group.times(self.vectors, weights)

    def at(self, shift: complex) -> ModalInverse:
        return ModalInverse(self, 1 / (1 + shift**self.power * self.values))


@dataclass(frozen=True, eq=False)
class ModalInverse:
    """The inverses at one σ by modes; factors (U, n) : 1/(1 + σμ). Responses are those of the modes."""

    modes: CellModes
    factors: Array

    def times_upper(self) -> Array:
        """The response (U, n, T) of modes to traces."""
        return self.factors[:, :, None] * self.modes.upper

    def reduced(self, response: Array) -> Array:
        """The products that elimination of the cells subtracts from the matrices (U, T, T) of traces."""
        return np.matmul(self.modes.lower, response)

    def times(self, vectors: Array) -> Array:
        """The inverses times vectors (B, n) of modes, which are diagonal."""
        return np.asarray(vectors * self.modes.group.of_cells(self.factors))

    def on_traces(self, vectors: Array) -> Array:
        """The contributions (B, T) of vectors (B, n) of modes to the equations of traces."""
        return self.modes.group.times(self.modes.lower, vectors)


CellInverse = DenseInverse | ModalInverse


def inverted(group: EvolutionCells, shift: complex) -> DenseInverse:
    """The inverses of A + σM₁ + σ²M₂."""
    square = group.square.astype(complex if np.iscomplexobj(np.asarray(shift)) else float)
    for power, mass in enumerate(group.masses, start=1):
        if mass is not None:
            square += shift**power * mass
    return DenseInverse(group, np.linalg.inv(square))


def _symmetric(matrices: Array) -> bool:
    """Whether all matrices (U, n, n) are symmetric, but for rounding."""
    return bool(np.abs(matrices - matrices.transpose(0, 2, 1)).max() <= COMPUTED * np.abs(matrices).max())


def _even(matrices: Array) -> Array:
    """The symmetric part."""
    return np.asarray(0.5 * (matrices + matrices.transpose(0, 2, 1)))
