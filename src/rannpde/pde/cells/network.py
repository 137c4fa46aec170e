"""The solution of the method of cells: a tree of boxes, one hidden layer for all cells, and output weights for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.errors import FileError, reject
from rannpde.network.export import full_coefficients
from rannpde.network.features import FourierFeatures
from rannpde.network.network import pack_features, unpack_features
from rannpde.network.plain import PlainFunction
from rannpde.network.storage import arrays_under, floats
from rannpde.pde.cells.basis.basis import derivative_weights, fourier_columns
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.cells.mesh.tree import CellNode, packed_tree, unpacked_tree
from rannpde.pde.monitor import Status
from rannpde.pde.residual import field_sizes
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

if TYPE_CHECKING:
    from rannpde.pde.cells.time.trajectory import CellTrajectory

DISTANCE_BLOCK = 10**6
"""Number of distances between points and cells that are computed at once."""


@dataclass(frozen=True, eq=False)
class CellNetwork:
    """Fields on the leaves of a tree.

    features : the hidden layer on [-1, 1]^n, to which the box of every cell is mapped
    boxes (C, n, 2), coefficients (C, columns, fields) : of the cells
    homes (leaves,) : the cell that is evaluated in each leaf; interfaces : those that divide leaves
    """

    tree: CellNode
    features: FourierFeatures
    boxes: Array
    coefficients: Array
    homes: Array
    interfaces: tuple[Interface, ...] = ()

    @property
    def dim(self) -> int:
        return self.features.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each cell."""
        return (self.features.columns,) * len(self.boxes)

    @property
    def outputs(self) -> int:
        return int(self.coefficients.shape[2])

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    @cached_property
    def empty(self) -> Array:
        """Mask (leaves,) of the leaves without a cell, whose points belong to the nearest cell."""
        leaves = np.array([leaf.bounds for leaf in self.tree.leaves])
        slack = 1e-12 * self.tree.lengths
        home_boxes = self.boxes[self.homes]
        outside = (home_boxes[:, :, 0] < leaves[:, :, 0] - slack) | (home_boxes[:, :, 1] > leaves[:, :, 1] + slack)
        return np.asarray(outside.any(axis=1))

    def cells_at(self, points: Array) -> Array:
        """Return the number of the cell of each point, (M,).

        A point of a leaf without a cell, such as one on a wall where the leaf behind it begins, belongs to the nearest
        cell.
        """
        leaves = self.tree.locate(points)
        numbers = self.homes[leaves]
        outside = np.flatnonzero(self.empty[leaves])
        for rows in np.array_split(outside, len(outside) * len(self.boxes) // DISTANCE_BLOCK + 1):
            away = np.maximum(self.boxes[:, :, 0] - points[rows, None], points[rows, None] - self.boxes[:, :, 1])
            numbers[rows] = np.square(np.maximum(away, 0.0)).sum(axis=2).argmin(axis=1)
        return numbers

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Return a derivative of the fields, (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return several derivatives, each (M, fields), from one evaluation of cosines and sines."""
        values = {index: np.empty((len(points), self.outputs)) for index in indices}
        home = self.cells_at(points)
        order = np.argsort(home, kind="stable")
        for block in row_blocks(len(points), block_rows(self.features.columns)):
            rows = order[block]
            cells, starts = np.unique(home[rows], return_index=True)
            lower, upper = np.moveaxis(self.boxes[cells], 2, 0)
            middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
            counts = np.diff(starts, append=len(rows))
            scaled = (points[rows] - np.repeat(middle, counts, axis=0)) / np.repeat(half, counts, axis=0)
            parts = np.split(fourier_columns(self.features, scaled), starts[1:])
            for index in indices:
                scales = np.prod(half ** -np.array(index, dtype=float), axis=1)
                weights = self._derivative_weights(cells, index)
                blocks = [scale * (part @ w) for part, w, scale in zip(parts, weights, scales, strict=True)]
                values[index][rows] = np.concatenate(blocks)
        return values

    def _derivative_weights(self, cells: Array, index: MultiIndex) -> Array:
        """Return the weights (cells, columns, fields) of the Fourier columns that give ∂^index in some cells."""
        stacked = np.moveaxis(self.coefficients[cells], 0, 1)
        weights = derivative_weights(self.features, index, stacked.reshape(len(stacked), -1))
        return np.moveaxis(weights.reshape(stacked.shape), 1, 0)

    def plain(self, single: bool) -> PlainFunction:
        """Return the same function in plain NumPy; an InputError where curved interfaces divide the cells."""
        if self.interfaces:
            reject("solution", "divided along interfaces", "one on boxes", "a formula decides which side a point is on")
        lower, upper = np.moveaxis(self.boxes, 2, 0)
        coefficients = np.array([full_coefficients(self.features, coefficients) for coefficients in self.coefficients])
        return PlainFunction(
            "fourier", single, boxes=self.boxes, centre=0.5 * (lower + upper), halfwidth=0.5 * (upper - lower),
            layer=np.zeros(len(lower)), weights=self.features.weights[None], biases=self.features.phases[None],
            coefficients=coefficients[:, None],
        )  # fmt: skip

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return header and arrays for a file."""
        layer, parts = pack_features(self.features)
        axes, positions = packed_tree(self.tree, self.interfaces)
        arrays = {"bounds": self.tree.bounds, "axes": axes, "places": positions, "homes": self.homes.astype(float)}
        arrays |= {"boxes": self.boxes, "coefficients": self.coefficients}
        header: dict[str, Any] = {"function": "cells", "layer": layer}
        if self.interfaces:
            header["interfaces"] = [str(interface.formula) for interface in self.interfaces]
            header["coordinates"] = [symbol.name for symbol in self.interfaces[0].symbols]
        return header, {f"layer.{k}": v for k, v in parts.items()} | arrays


@dataclass(frozen=True, eq=False)
class Weights:
    """Output weights per cell (functions, fields), and traces per face."""

    cells: tuple[Array, ...]
    traces: tuple[Array, ...]

    def moved_towards(self, other: Weights, length: float) -> Weights:
        """Return the point at a fraction ``length`` of the way to other weights."""
        pairs = ((self.cells, other.cells), (self.traces, other.traces))
        mixed = [tuple((1 - length) * a + length * b for a, b in zip(x, y, strict=True)) for x, y in pairs]
        return Weights(*mixed)

    def plus(self, other: Weights, factor: float) -> Weights:
        """Return these weights plus a multiple of others."""
        pairs = ((self.cells, other.cells), (self.traces, other.traces))
        return Weights(*(tuple(a + factor * b for a, b in zip(x, y, strict=True)) for x, y in pairs))

    def distance(self, other: Weights) -> float:
        """Return the L² distance of the functions relative to the other, the largest over the fields."""
        gaps = np.sum([np.square(a - b).sum(axis=0) for a, b in zip(self.cells, other.cells, strict=True)], axis=0)
        sizes = np.sum([np.square(b).sum(axis=0) for b in other.cells], axis=0)
        return float((np.sqrt(gaps) / field_sizes(np.sqrt(sizes))).max())


def cell_network(mesh: Mesh, weights: Weights) -> CellNetwork:
    """Return the function of these weights; in a leaf without a cell the nearest cell is evaluated."""
    present = list(mesh.present)
    boxes = np.array([cell.bounds for _, cell in present])
    homes = np.empty(len(mesh.cells), dtype=int)
    homes[[number for number, _ in present]] = np.arange(len(present))
    for number, (leaf, cell) in enumerate(zip(mesh.tree.leaves, mesh.cells, strict=True)):
        if cell is None:
            middle = leaf.bounds.mean(axis=1)
            away = np.maximum(np.maximum(boxes[:, :, 0] - middle, middle - boxes[:, :, 1]), 0.0)
            homes[number] = int(np.argmin(np.square(away).sum(axis=1)))
    coefficients = np.array([cell.transform @ weights.cells[number] for number, cell in present])
    return CellNetwork(mesh.tree, present[0][1].basis.features, boxes, coefficients, homes, mesh.interfaces)


def unpack_cells(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> CellNetwork:
    """Return the network that ``CellNetwork.pack`` stored; FileError where its parts are inconsistent."""
    layer = arrays_under(arrays, "layer.")
    features = unpack_features(header["layer"], layer)
    if not isinstance(features, FourierFeatures) or not features.constant:
        raise FileError("the features of the cells are not cosines and sines with a constant")
    interfaces = _interfaces(header)
    bounds, axes = floats(arrays, "bounds", (features.dim, 2)), floats(arrays, "axes", (None,))
    tree = unpacked_tree(bounds, axes, floats(arrays, "places", (None,)), interfaces)
    boxes = floats(arrays, "boxes", (None, features.dim, 2))
    coefficients = floats(arrays, "coefficients", (len(boxes), features.columns, None))
    homes = floats(arrays, "homes", (len(tree.leaves),)).astype(int)
    if not len(boxes) or homes.min() < 0 or homes.max() >= len(boxes) or not (boxes[:, :, 0] < boxes[:, :, 1]).all():
        raise FileError("the cells of the function do not fit their tree")
    return CellNetwork(tree, features, boxes, coefficients, homes, interfaces)


def _interfaces(header: Mapping[str, Any]) -> tuple[Interface, ...]:
    """Parse the interfaces as formulas."""
    words = Vocabulary(tuple(map(str, header.get("coordinates", ()))))
    formulas = [read(str(text), words).formula for text in header.get("interfaces", ())]
    return tuple(Interface(formula, words.symbols, False) for formula in formulas)


@dataclass(frozen=True, eq=False)
class DiscreteSolution:
    """The result of one solve on a mesh: function, weights, status, and residuals of each leaf.

    equation_residuals (C,), condition_residuals (C, n) : of the leaves; losses : mean squared residual of each term
    """

    network: CellNetwork | CellTrajectory
    mesh: Mesh
    weights: Weights
    equation_residuals: Array
    condition_residuals: Array
    losses: Mapping[str, float]
    steps: int
    status: Status
    rank_deficient: bool

    @property
    def indicators(self) -> Array:
        """Dimensionless residual per leaf (C,), the refinement indicator."""
        return np.hypot(self.equation_residuals, np.linalg.norm(self.condition_residuals, axis=1))
