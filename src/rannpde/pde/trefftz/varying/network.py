"""The solution where coefficients vary: a polynomial in every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.errors import positive_integer
from rannpde.network.storage import floats
from rannpde.pde.trefftz.varying.mesh import BoxMesh
from rannpde.pde.trefftz.varying.polynomials import SquarePolynomials, square_polynomials


@dataclass(frozen=True, eq=False)
class VaryingNetwork:
    """Σ c_j P_j in each cell of a mesh; coefficients (C, N) of orthonormal polynomials of a degree."""

    mesh: BoxMesh
    degree: int
    coefficients: Array

    @property
    def dim(self) -> int:
        return 2

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each cell that satisfy the equation."""
        return (self._square.solutions,) * len(self.mesh)

    @property
    def contents(self) -> str:
        """The features in words."""
        return (
            f"{sum(self.widths)} local solutions with the coefficients that vary, among polynomials of degree "
            f"{self.degree} in {len(self.mesh)} cells"
        )

    @property
    def _square(self) -> SquarePolynomials:
        return square_polynomials(self.degree)

    @cached_property
    def matrices(self) -> Array:
        return self._square.square_coefficients(self.coefficients)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0, 0))

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^derivative (M, 1)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several derivatives at once, each (M, 1)."""
        totals = {index: np.zeros((len(points), 1)) for index in indices}
        homes = self.mesh.locate(points)
        unit = self.mesh.scaled(points, homes)
        alone = len(points) > 0 and bool((homes == homes[0]).all())
        for rows in row_blocks(len(points), block_rows((self.degree + 1) ** 2)):
            matrices = None if alone else self.matrices[homes[rows]]
            first, second = ({k: self._square.along(unit[rows, a], k) for k in {i[a] for i in indices}} for a in (0, 1))
            for index, total in totals.items():
                along = (
                    first[index[0]] @ self.matrices[homes[0]]
                    if matrices is None
                    else (first[index[0]][:, None, :] @ matrices)[:, 0]
                )
                values = np.einsum("mj,mj->m", along, second[index[1]])
                total[rows, 0] = values / np.prod(self.mesh.halves[homes[rows]] ** np.array(index), axis=1)
        return totals

    def pole_distances(self, points: Array) -> Array:
        """Infinite (M,): there are no poles."""
        return np.full(len(points), np.inf)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        header = {"function": "trefftz", "boxes": len(self.mesh), "degree": self.degree}
        return header, {"mesh": self.mesh.cells, "coefficients": self.coefficients}


def unpack_varying(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> VaryingNetwork:
    """The inverse of ``VaryingNetwork.pack``."""
    degree, count = positive_integer("degree", header["degree"]), positive_integer("boxes", header["boxes"])
    mesh = BoxMesh(floats(arrays, "mesh", (count, 2, 2)))
    return VaryingNetwork(mesh, degree, floats(arrays, "coefficients", (count, SquarePolynomials(degree).count)))
