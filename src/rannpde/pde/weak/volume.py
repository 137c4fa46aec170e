"""Integrals over the volume of cells: ∫ A∇u·∇v + (b·∇u + c u) v and ∫ load·v, of whole boxes and of cut cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.statement.divergence import EllipticCoefficients
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.functions import CellFunctions

UNEVEN = 1e-14
"""Relative change of coefficients within a cell below which they are constant there."""


@dataclass(frozen=True, eq=False)
class VolumeCoefficients:
    """Coefficients in cells (B,): at the grids of whole boxes, (W, Q, …), and at the points of cut cells, (Q, …) each.

    position (B,) : the row of a whole box, or the number of a cut cell in ``parts``; cut (B,) : which cells are cut
    """

    cells: Array
    cut: Array
    position: Array
    whole: EllipticCoefficients
    parts: tuple[EllipticCoefficients, ...]


class VolumeIntegrals:
    """Volume integrals of the functions of cells. What whole boxes share is integrated once."""

    def __init__(self, form: WeakForm, functions: CellFunctions) -> None:
        self.form, self.functions = form, functions
        self.mesh, self.layer = functions.mesh, functions.layer

    def coefficients(self, cells: Array) -> VolumeCoefficients:
        """The coefficients in cells (B,), from one evaluation."""
        parts = self.mesh.parts
        cut = np.array([int(cell) in parts for cell in cells], dtype=bool)
        grid = self.mesh.mapped(cells[~cut], self.layer.grid[0])
        own = [parts[int(cell)].points for cell in cells[cut]]
        given = self.form.at(np.concatenate([grid.reshape(-1, self.layer.dim), *own]))
        split = grid.shape[0] * grid.shape[1]
        whole = _parts_of(given, lambda array: array[:split].reshape(*grid.shape[:2], *array.shape[1:]))
        ends = split + np.cumsum([0] + [len(points) for points in own])
        pieces = tuple(_parts_of(given, itemgetter(slice(a, b))) for a, b in itertools.pairwise(ends.tolist()))
        position = np.where(cut, np.cumsum(cut) - 1, np.cumsum(~cut) - 1)
        return VolumeCoefficients(cells, cut, position, whole, pieces)

    def more_reaction(self, cells: Array, form: WeakForm) -> VolumeCoefficients:
        """The difference of the reactions of another form and this one, in cells (B,), all other coefficients zero."""
        given, other = self.coefficients(cells), VolumeIntegrals(form, self.functions).coefficients(cells)

        def beyond(one: EllipticCoefficients, more: EllipticCoefficients) -> EllipticCoefficients:
            return EllipticCoefficients(
                np.zeros_like(one.diffusion), np.zeros_like(one.advection), more.reaction - one.reaction,
                np.zeros_like(one.load),
            )  # fmt: skip

        parts = tuple(beyond(one, more) for one, more in zip(given.parts, other.parts, strict=True))
        return VolumeCoefficients(cells, given.cut, given.position, beyond(given.whole, other.whole), parts)

    def kinds(self, given: VolumeCoefficients) -> Array:
        """Numbers (B, n) that agree for cells with equal matrices: those of cut cells and of cells with coefficients
        that are not constant have a number of their own."""
        fields, dim = self.form.fields, self.layer.dim
        keys = np.zeros((len(given.cells), 1 + fields * fields * (dim * dim + dim + 1)))
        keys[:, 0] = given.cells + 1.0
        rows = np.flatnonzero(~given.cut)
        if len(rows):
            even = (
                even_coefficients(given.whole.diffusion)
                & even_coefficients(given.whole.advection)
                & even_coefficients(given.whole.reaction)
            )
            half = self.mesh.halfwidths[given.cells[rows]]
            own = np.concatenate([one.reshape(len(half), -1) for one in _scaled(given.whole, half)], axis=1)
            keys[rows[even], 0] = 0.0
            keys[rows[even], 1:] = own[even]
        return keys

    def loads(self, given: VolumeCoefficients) -> Array:
        """∫ load·v, (B, F, k)."""
        loads = np.empty((len(given.cells), self.form.fields, self.functions.size))
        rows = np.flatnonzero(~given.cut)
        tested = self.layer.reference[0].T * self.layer.grid[1]
        volume = self.mesh.halfwidths[given.cells[rows]].prod(axis=1)
        loads[rows] = np.matmul(tested, given.whole.load).transpose(0, 2, 1) * volume[:, None, None]
        for row, here in zip(np.flatnonzero(given.cut), given.parts, strict=True):
            cell = int(given.cells[row])
            values, weights = self.functions.integrand_table(cell)[:, 0], self.mesh.parts[cell].weights
            loads[row] = self.functions.combined(cell, (values.T @ (weights[:, None] * here.load)).T, (1,))
        return loads

    def matrices(self, given: VolumeCoefficients, rows: Array) -> Array:
        """∫ A∇u·∇v + (b·∇u + c u) v, (U, F, k, F, k), of these rows (U,) of cells."""
        fields, size = self.form.fields, self.functions.size
        matrix = np.empty((len(rows), fields, size, fields, size))
        cut = given.cut[rows]
        if not cut.all():
            own = rows[~cut]
            here = _parts_of(given.whole, lambda array: array[given.position[own]])
            matrix[~cut] = self._whole_matrices(given.cells[own], here)
        for number in np.flatnonzero(cut):
            cell, here = int(given.cells[rows[number]]), given.parts[given.position[rows[number]]]
            table, weights = self.functions.integrand_table(cell)[None], self.mesh.parts[cell].weights[None]
            values, slopes = table[:, :, 0], np.moveaxis(table[:, :, 1:], 2, 0)
            own = _integrated(_parts_of(here, lambda array: array[None]), weights, values, slopes)[0]
            matrix[number] = self.functions.combined(cell, own, (1, 3))
        return matrix

    def _whole_matrices(self, cells: Array, given: EllipticCoefficients) -> Array:
        """The matrices of whole boxes, which share their functions."""
        layer = self.layer
        (_, weights), (values, slopes) = layer.grid, layer.reference
        half = self.mesh.halfwidths[cells]
        even = (
            even_coefficients(given.diffusion) & even_coefficients(given.advection) & even_coefficients(given.reaction)
        )
        if not even.all():
            reference = EllipticCoefficients(
                given.diffusion / (half[:, None, None, None, :, None] * half[:, None, None, None, None, :]),
                given.advection / half[:, None, None, None, :], given.reaction, given.load,
            )  # fmt: skip
            return _integrated(reference, half.prod(axis=1)[:, None] * weights, values[None], slopes[:, None])
        diffusion, advection, reaction = _scaled(given, half)
        stiff = np.matmul((slopes * weights[:, None]).transpose(0, 2, 1)[:, None], slopes[None])  # (d, d, k, k)
        matrix = np.einsum("bpfij,ijkl->bpkfl", diffusion, stiff, optimize=True)
        if advection.any():
            matrix += np.einsum("bpfj,jkl->bpkfl", advection, np.matmul(values.T * weights, slopes), optimize=True)
        if reaction.any():
            matrix += np.einsum("bpf,kl->bpkfl", reaction, (values.T * weights) @ values, optimize=True)
        return np.asarray(matrix)


def _parts_of(given: EllipticCoefficients, taken: Callable[[Array], Array]) -> EllipticCoefficients:
    """The coefficients, with ``taken`` applied to each of them."""
    return EllipticCoefficients(
        taken(given.diffusion), taken(given.advection), taken(given.reaction), taken(given.load)
    )


def _scaled(given: EllipticCoefficients, half: Array) -> tuple[Array, Array, Array]:
    """Diffusion, advection and reaction (B, …) in the coordinates of whole boxes, at their first point."""
    volume = half.prod(axis=1)
    diffusion = given.diffusion[:, 0] / (half[:, None, None, :, None] * half[:, None, None, None, :])
    advection = given.advection[:, 0] / half[:, None, None]
    return (
        volume[:, None, None, None, None] * diffusion, volume[:, None, None, None] * advection,
        volume[:, None, None] * given.reaction[:, 0],
    )  # fmt: skip


def even_coefficients(array: Array) -> Array:
    """In which cells (B,) coefficients (B, Q, …) are constant."""
    size = float(np.abs(array).max(initial=0.0))
    return np.asarray((np.abs(array - array[:, :1]) <= UNEVEN * size).reshape(len(array), -1).all(axis=1))


def _integrated(given: EllipticCoefficients, weights: Array, values: Array, slopes: Array) -> Array:
    """Matrices (B, F, k, F, k) with coefficients at points.

    coefficients (B, Q, …); weights (B, Q); values (B or 1, Q, k), slopes (d, B or 1, Q, k)
    """
    fields, dim, k = given.reaction.shape[2], slopes.shape[0], values.shape[-1]
    count = len(weights)
    even = bool(
        (
            even_coefficients(given.diffusion) & even_coefficients(given.advection) & even_coefficients(given.reaction)
        ).all()
    )
    matrix = np.zeros((count, fields, k, fields, k))
    if even and (count == 1 or values.shape[0] == count):
        _add_even(matrix, given, weights, values, slopes)
        return matrix
    tested = [np.swapaxes(one, -1, -2) for one in slopes]
    plain = np.swapaxes(values, -1, -2)
    for p in range(fields):
        for f in range(fields):
            for i in range(dim):
                acting = [j for j in range(dim) if given.diffusion[:, :, p, f, i, j].any()]
                if acting:
                    flux = sum((weights * given.diffusion[:, :, p, f, i, j])[:, :, None] * slopes[j] for j in acting)
                    matrix[:, p, :, f, :] += np.matmul(tested[i], flux)
            lower = [(weights * given.advection[:, :, p, f, j])[:, :, None] * slopes[j] for j in range(dim)
                     if given.advection[:, :, p, f, j].any()]  # fmt: skip
            if given.reaction[:, :, p, f].any():
                lower.append((weights * given.reaction[:, :, p, f])[:, :, None] * values)
            if lower:
                matrix[:, p, :, f, :] += np.matmul(plain, sum(lower))
    return matrix


def _add_even(matrix: Array, given: EllipticCoefficients, weights: Array, values: Array, slopes: Array) -> None:
    """Add matrices of coefficients that are constant in each cell: few integrals serve all pairs of fields."""
    dim, fields = slopes.shape[0], matrix.shape[1]
    plain = np.swapaxes(values, -1, -2)
    for i in range(dim):
        tested = np.swapaxes(weights[:, :, None] * slopes[i], -1, -2)
        for j in range(i, dim):
            if not (given.diffusion[..., i, j].any() or given.diffusion[..., j, i].any()):
                continue
            one = np.matmul(tested, slopes[j])
            for p in range(fields):
                for f in range(fields):
                    matrix[:, p, :, f, :] += given.diffusion[:, 0, p, f, i, j, None, None] * one
                    if i != j:
                        matrix[:, p, :, f, :] += given.diffusion[:, 0, p, f, j, i, None, None] * np.swapaxes(one, 1, 2)
        if given.advection[..., i].any():
            drift = np.matmul(plain, weights[:, :, None] * slopes[i])
            matrix += given.advection[:, 0, :, None, :, None, i] * drift[:, None, :, None, :]
    if given.reaction.any():
        mass = np.matmul(plain, weights[:, :, None] * values)
        matrix += given.reaction[:, 0, :, None, :, None] * mass[:, None, :, None, :]
