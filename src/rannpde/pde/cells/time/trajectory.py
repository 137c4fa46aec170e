"""Trajectories of cells: a network in space at every stage of every step, with dense output in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
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
    times (K + 1,) : of the steps; stages : number of stages per step; orders (fields,) : of the fields in time
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
        cells, fields = self.cells, len(self.orders)
        values = np.full((len(points), fields), np.nan)
        step = np.clip(np.searchsorted(self.times, points[:, 0], side="right") - 1, 0, self.steps - 1)
        home = cells.cells_at(points[:, 1:])
        slack = 1e-9 * (self.end - self.times[0])
        inside = np.flatnonzero(points[:, 0] <= self.times[-1] + slack)
        order = inside[np.lexsort((step[inside], home[inside]))]
        if not len(order):
            return values
        weights = self._in_time(points[:, 0], step, derivative[0])
        changes = np.flatnonzero((np.diff(home[order]) != 0) | (np.diff(step[order]) != 0)) + 1
        for rows in np.split(order, changes):
            number, here = home[rows[0]], int(step[rows[0]])
            lower, upper = cells.boxes[number].T
            half = 0.5 * (upper - lower)
            scale = float(np.prod(half ** -np.array(derivative[1:], dtype=float)))
            outputs = derivative_weights(cells.features, derivative[1:], self._outputs(int(number), here)) * scale
            values_at_nodes = (
                fourier_columns(cells.features, (points[rows, 1:] - 0.5 * (lower + upper)) / half) @ outputs
            )
            values[rows] = (values_at_nodes.reshape(len(rows), -1, fields) * weights[rows]).sum(axis=1)
        return values

    def _outputs(self, number: int, step: int) -> Array:
        """Return the coefficients (columns, nodes · fields) of a cell at the start and stages of a step, and the
        initial rate."""
        fields, own = len(self.orders), self.cells.coefficients[number]
        first = step * self.stages * fields
        outputs = own[:, first : first + (self.stages + 1) * fields]
        if max(self.orders) < 2:
            return outputs
        rates = (1 + self.steps * self.stages + step) * fields
        return np.concatenate([outputs, own[:, rates : rates + fields]], axis=1)

    def _in_time(self, times: Array, steps: Array, order: int) -> Array:
        """Return the factors (M, nodes, fields) of the values at the nodes of the steps."""
        length = np.diff(self.times)[steps]
        at = (times - self.times[steps]) / length
        nodes = np.append(0.0, radau_tableau(self.stages).nodes)
        flux_operator = lagrange_matrix(nodes, at, order)
        parts = [np.pad(lagrange_matrix(nodes[1:], at, order), ((0, 0), (1, 0))), flux_operator]
        # Hermite interpolation: a polynomial with slope 1 at the start and zeros at all nodes matches the initial rate
        if max(self.orders) > 1:
            bend = np.polynomial.Polynomial.fromroots(nodes)
            bend = bend / bend.deriv()(0.0)
            slope = bend.deriv(order)(at) if order else bend(at)
            hermite = flux_operator - slope[:, None] * lagrange_matrix(nodes, np.zeros(1), 1)
            parts = [np.pad(part, ((0, 0), (0, 1))) for part in parts]
            parts.append(np.column_stack([hermite, slope * length]))
        chosen = [parts[min(2, own)] for own in self.orders]
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
            for number in range(len(self.boxes)):
                outputs = self._outputs(number, step).reshape(len(scale), -1, len(self.orders)) * scale[:, None, None]
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
        own = {"stages": self.stages, "orders": list(self.orders), "end": self.end}
        return header | {"function": "marched"} | own, arrays | {"times": self.times}


def unpack_trajectory(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> CellTrajectory:
    """Return the trajectory that ``CellTrajectory.pack`` stored; FileError where its parts are inconsistent."""
    cells = unpack_cells(header, {name: array for name, array in arrays.items() if name != "times"})
    times, stages, orders = floats(arrays, "times", (None,)), header["stages"], header["orders"]
    fits = isinstance(stages, int) and 1 <= stages <= MAX_STAGES and stages % 2 == 1
    fits = fits and isinstance(orders, list) and len(orders) > 0 and all(order in (0, 1, 2) for order in orders)
    if not fits or len(times) < 2 or not (np.diff(times) > 0).all():
        raise FileError("the times or stages of the trajectory are damaged")
    steps = len(times) - 1
    wanted = (1 + steps * stages + steps * (max(orders) > 1)) * len(orders)
    end = float(header["end"])
    if cells.outputs != wanted or not np.isfinite(end) or end < times[-1]:
        raise FileError("the states of the file do not fit its steps")
    return CellTrajectory(cells, times, stages, tuple(orders), end)
