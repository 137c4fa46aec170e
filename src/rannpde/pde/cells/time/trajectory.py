"""Trajectories of cells: a network in space at every stage of every step, with dense output in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.errors import FileError
from rannpde.network.plain import PlainFunction
from rannpde.network.storage import floats
from rannpde.pde.cells.basis.basis import derivative_weights, fourier_columns
from rannpde.pde.cells.network import CellNetwork, unpack_cells
from rannpde.pde.time.tableau import lagrange_matrix, radau_tableau

MAX_STAGES = 9
"""Limit on the stages in a file."""


@dataclass(frozen=True, eq=False)
class CellTrajectory:
    """Fields as functions of (t, x): collocation polynomials in time; NaN after the end of an integration that ended
    early.

    cells : its outputs are the fields at the start and at every stage, time by time, and then ∂_t of the fields at the
        start of every step if a field is of second order in time
    times (K + 1,) : ends of the steps; stages : number of stages per step; orders (fields,) : order in time of each
        field
    end : the end of the time interval, whether the integration reached it or not
    """

    cells: CellNetwork
    times: Array
    stages: int
    orders: tuple[int, ...]
    end: float

    @property
    def dim(self) -> int:
        return self.cells.dim + 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each cell."""
        return self.cells.widths

    @property
    def boxes(self) -> Array:
        return self.cells.boxes

    @property
    def steps(self) -> int:
        return len(self.times) - 1

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Return a derivative of the fields, (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return several derivatives, each (M, fields), from one evaluation of cosines and sines."""
        values = {index: np.full((len(points), len(self.orders)), np.nan) for index in indices}
        slack = 1e-9 * (self.end - self.times[0])
        known = np.flatnonzero(points[:, 0] <= self.times[-1] + slack)
        columns = self.cells.features.columns * (self.stages + 2) * len(self.orders)
        for block in row_blocks(len(known), block_rows(columns)):
            rows = known[block]
            for index, block_values in self._block(points[rows], indices).items():
                values[index][rows] = block_values
        return values

    def _block(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return several derivatives at a bounded number of points, all within the time that was integrated."""
        step = np.clip(np.searchsorted(self.times, points[:, 0], side="right") - 1, 0, self.steps - 1)
        home = self.cells.cells_at(points[:, 1:])
        lower, upper = np.moveaxis(self.cells.boxes[home], 2, 0)
        half = 0.5 * (upper - lower)
        table = fourier_columns(self.cells.features, (points[:, 1:] - 0.5 * (lower + upper)) / half)
        coefficients = self._outputs(home, step)  # (M, columns, nodes, fields)
        derivatives = {}
        for order in sorted({index[0] for index in indices}):
            factors = self._in_time(points[:, 0], step, order)
            stacked = np.einsum("mcnf,mnf->cmf", coefficients, factors).reshape(coefficients.shape[1], -1)
            for index in (index for index in indices if index[0] == order):
                weights = derivative_weights(self.cells.features, index[1:], stacked)
                scale = np.prod(half ** -np.array(index[1:], dtype=float), axis=1)
                values = np.einsum("mc,cmf->mf", table, weights.reshape(len(weights), len(points), -1))
                derivatives[index] = values * scale[:, None]
        return derivatives

    def _outputs(self, home: Array, step: Array) -> Array:
        """Return the coefficients (M, columns, nodes, fields) of cells (M,) at the start and stages of steps (M,), and
        the initial rate."""
        fields = len(self.orders)
        nodes = step[:, None] * self.stages + np.arange(self.stages + 1)
        if max(self.orders) > 1:
            nodes = np.column_stack([nodes, 1 + self.steps * self.stages + step])
        coefficients = self.cells.coefficients.reshape(len(self.boxes), self.cells.features.columns, -1, fields)
        return np.asarray(coefficients[home[:, None], :, nodes].swapaxes(1, 2))

    def _in_time(self, times: Array, steps: Array, order: int) -> Array:
        """Return the factors (M, nodes, fields) of the values at the nodes of the steps."""
        length = np.diff(self.times)[steps]
        at = (times - self.times[steps]) / length
        nodes = np.append(0.0, radau_tableau(self.stages).nodes)
        all_nodes = lagrange_matrix(nodes, at, order)
        parts = [np.pad(lagrange_matrix(nodes[1:], at, order), ((0, 0), (1, 0))), all_nodes]
        # Hermite interpolation: a polynomial with slope 1 at the start and zeros at all nodes matches the initial rate
        if max(self.orders) > 1:
            rate_polynomial = np.polynomial.Polynomial.fromroots(nodes)
            rate_polynomial = rate_polynomial / rate_polynomial.deriv()(0.0)
            slope = rate_polynomial.deriv(order)(at) if order else rate_polynomial(at)
            hermite = all_nodes - slope[:, None] * lagrange_matrix(nodes, np.zeros(1), 1)
            parts = [np.pad(part, ((0, 0), (0, 1))) for part in parts]
            parts.append(np.column_stack([hermite, slope * length]))
        chosen = [parts[min(2, order_of_field)] for order_of_field in self.orders]
        return np.stack(chosen, axis=2) / (length**order)[:, None, None]

    def plain(self, single: bool) -> PlainFunction:
        """Return the same function in plain NumPy: a box of space-time for each cell and each step."""
        base = self.cells.plain(single).arrays
        degree = self.stages + (max(self.orders) > 1)
        local = np.polynomial.legendre.leggauss(degree + 1)[0]
        inverse = np.linalg.inv(np.polynomial.legendre.legvander(local, degree))
        ends, boxes, centres, halves, tables = self.times, [], [], [], []
        scale = np.append(np.full(2 * self.cells.features.width, 1 / np.sqrt(self.cells.features.width)), 1.0)
        for step in range(self.steps):
            middle, half = 0.5 * (ends[step] + ends[step + 1]), 0.5 * (ends[step + 1] - ends[step])
            factors = self._in_time(middle + half * local, np.full(degree + 1, step), 0)
            series = np.einsum("dm,mnf->dnf", inverse, factors)
            every = self._outputs(np.arange(len(self.boxes)), np.full(len(self.boxes), step)) * scale[:, None, None]
            for number, outputs in enumerate(every):
                tables.append(np.einsum("dnf,jnf->djf", series, outputs))
                boxes.append(np.concatenate([[[ends[step], ends[step + 1]]], self.boxes[number]]))
                centres.append(np.append(middle, base["centre"][number]))
                halves.append(np.append(half, base["halfwidth"][number]))
        weights = np.pad(base["weights"], ((0, 0), (1, 0), (0, 0)))
        return PlainFunction(
            "fourier", single, boxes=boxes, centre=centres, halfwidth=halves, layer=np.zeros(len(boxes)),
            weights=weights, biases=base["biases"], coefficients=tables,
        )  # fmt: skip

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return header and arrays for a file."""
        header, arrays = self.cells.pack()
        in_time = {"stages": self.stages, "orders": list(self.orders), "end": self.end}
        return header | {"function": "cell trajectory"} | in_time, arrays | {"times": self.times}


def unpack_trajectory(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> CellTrajectory:
    """Return the trajectory that ``CellTrajectory.pack`` stored; FileError where its parts are inconsistent."""
    cells = unpack_cells(header, {name: array for name, array in arrays.items() if name != "times"})
    times, stages, orders = floats(arrays, "times", (None,)), header["stages"], header["orders"]
    fits = isinstance(stages, int) and 1 <= stages <= MAX_STAGES and stages % 2 == 1
    fits = fits and isinstance(orders, list) and len(orders) > 0 and all(order in (0, 1, 2) for order in orders)
    if not fits or len(times) < 2 or not (np.diff(times) > 0).all():
        raise FileError("the times or stages of the trajectory are damaged")
    steps = len(times) - 1
    expected = (1 + steps * stages + steps * (max(orders) > 1)) * len(orders)
    end = float(header["end"])
    if cells.outputs != expected or not np.isfinite(end) or end < times[-1]:
        raise FileError("the states of the file do not fit its steps")
    return CellTrajectory(cells, times, stages, tuple(orders), end)
