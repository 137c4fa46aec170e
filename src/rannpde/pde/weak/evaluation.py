"""Values of a solution at points of its cells: derivatives for indicators, decay of coefficients, output weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.weak.assembly import HybridSolution
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.functions import CellFunctions
from rannpde.pde.weak.legendre import gauss_cube
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import WeakMesh

THINNED = 4
"""Of the points of a cut cell one in this many is used for indicators."""


class CellsWithFunctions(Protocol):
    """A mesh with the functions of its cells."""

    mesh: WeakMesh
    layer: HiddenLayer
    functions: CellFunctions
    fields: int


class WeightedFunctions(Protocol):
    """Fields as weights (C, F, k) of the functions of cells."""

    @property
    def weights(self) -> Array: ...


def volume_points(local: CellsWithFunctions) -> tuple[Array, Array, Array]:
    """Points (M, d) of all cells with weights (M,), and the cells (M,) they lie in."""
    mesh, (grid, shares) = local.mesh, local.layer.grid
    whole = mesh.whole
    half = mesh.halfwidths[whole]
    points = mesh.mapped(whole, grid)
    weights = half.prod(axis=1)[:, None] * shares
    parts = list(mesh.parts.items())
    return (
        np.concatenate([points.reshape(-1, grid.shape[1]), *(part.points for _, part in parts)]),
        np.concatenate([weights.ravel(), *(part.weights for _, part in parts)]),
        np.concatenate([np.repeat(whole, len(grid)), *(np.full(len(p.points), c) for c, p in parts)]).astype(int),
    )


def sampled(
    local: CellsWithFunctions, solution: WeightedFunctions, indices: Sequence[MultiIndex]
) -> tuple[Array, Array, Array, dict[MultiIndex, Array]]:
    """Points (M, d) of all cells, weights (M,), their cells (M,), and derivatives of the fields, each (M, F).

    Fields are those of the weights, which may be of several solutions together. Whole boxes are sampled in about half
    as many nodes as they are integrated with: for indicators.
    """
    mesh, layer = local.mesh, local.layer
    grid, shares = gauss_cube(layer.degree // 2 + 3, layer.dim)
    whole = mesh.whole
    half = mesh.halfwidths
    points = [mesh.mapped(whole, grid).reshape(-1, layer.dim)]
    weights, owners = [(half[whole].prod(axis=1)[:, None] * shares).ravel()], [np.repeat(whole, len(grid))]
    table = layer.derivative_tables(grid, indices)
    factors = np.stack([np.prod(half ** -np.array(index, dtype=float), axis=1) for index in indices])  # (I, C)
    derivatives = np.einsum("qik,cfk->icqf", table, solution.weights[whole], optimize=True)
    derivatives *= factors[:, whole, None, None]
    values = [derivatives.reshape(len(indices), -1, solution.weights.shape[1])]
    cut = list(mesh.parts)
    whole_weights = local.functions.whole_weights(solution.weights)[cut] if cut else solution.weights[:0]
    spectra = dict(zip(cut, layer.derivative_coefficients(whole_weights, indices), strict=True))
    some = slice(None, None, THINNED if layer.dim < 3 else 1)
    if layer.dim == 3:
        for cell in cut:
            part, own = mesh.parts[cell], spectra[cell]
            scaled = mesh.scaled(np.array([cell]), part.points[None])[0]
            flat = layer.nested_sums(own.transpose(1, 0, 2).reshape(own.shape[1], -1), scaled)
            shaped = flat.reshape(len(scaled), len(indices), -1).transpose(1, 0, 2)
            values.append(shaped * factors[:, cell, None, None])
            points.append(part.points)
            weights.append(part.weights)
            owners.append(np.full(len(scaled), cell))
        cut = []
    for cells in layer.point_blocks([len(mesh.parts[cell].weights[some]) for cell in cut]):
        own = [mesh.parts[cut[k]] for k in cells]
        scaled = [
            mesh.scaled(np.array([cut[k]]), part.points[None, some])[0] for k, part in zip(cells, own, strict=True)
        ]
        counts = [len(one) for one in scaled]
        rows = np.split(layer.legendre(np.concatenate(scaled)), np.cumsum(counts)[:-1])
        for k, part, table in zip(cells, own, rows, strict=True):
            cell = cut[k]
            values.append(np.matmul(table, spectra[cell]) * factors[:, cell, None, None])
            points.append(part.points[some])
            weights.append(part.weights[some] * part.weights.sum() / part.weights[some].sum())
            owners.append(np.full(len(table), cell))
    together = np.concatenate(values, axis=1)
    tables = {index: together[k] for k, index in enumerate(indices)}
    return np.concatenate(points), np.concatenate(weights), np.concatenate(owners), tables


def decay(local: CellsWithFunctions, solution: WeightedFunctions) -> Array:
    """Logarithm of the factor by which Legendre coefficients fall from degree to degree, the least over the fields.

    It is fitted by least squares to the upper half of the degrees, in each cell (C,).
    """
    whole = local.functions.whole_weights(solution.weights)
    return _rates(local.layer.sizes_by_degree(whole), local.layer.degree)


def axis_decay(local: LocalMatrices, solution: HybridSolution) -> Array:
    """The decay by the degree along each axis, (C, d)."""
    whole = local.functions.whole_weights(solution.weights)
    rates = [_rates(local.layer.sizes_by_degree(whole, axis), local.layer.degree) for axis in range(local.layer.dim)]
    return np.stack(rates, axis=1)


def _rates(sizes: Array, degree: int) -> Array:
    """Rates (C,) of decay of sizes (C, F, degrees)."""
    degrees = np.arange(degree // 2, degree + 1)
    floor = 1e-13 * np.maximum(sizes.max(axis=(0, 2), keepdims=True), 1e-300)
    logs = np.log(np.maximum(sizes[:, :, degrees], floor))
    centred = degrees - degrees.mean()
    slopes = -(logs @ centred) / (centred @ centred)
    resolved = (sizes[:, :, degrees[-2:]] <= 10 * floor).all(axis=2)
    return np.asarray(np.where(resolved, np.inf, slopes).min(axis=1))


def weak_network(local: CellsWithFunctions, solution: WeightedFunctions) -> CellNetwork:
    """The fields as a function of points."""
    tree, homes, interfaces = local.mesh.located
    weights = output_weights(local, solution)
    return CellNetwork(tree, local.layer.features, local.mesh.boxes, weights, homes, interfaces)


def output_weights(local: CellsWithFunctions, solution: WeightedFunctions) -> Array:
    """Output weights of all cells, (C, columns, F), as ``CellNetwork`` has them."""
    whole = local.functions.whole_weights(solution.weights).transpose(0, 2, 1)
    return np.asarray(local.layer.outputs @ whole)
