"""Solutions of Trefftz networks on cells: one network for every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.trefftz.cells.arrangement import Arrangement
from rannpde.pde.trefftz.cells.slabs import SlabArrangement
from rannpde.pde.trefftz.families import counted_features
from rannpde.pde.trefftz.network import TrefftzNetwork


@dataclass(frozen=True, eq=False)
class CellsNetwork:
    """A network in each cell of an arrangement; on a face, that of either cell."""

    networks: tuple[TrefftzNetwork, ...]
    arrangement: Arrangement | SlabArrangement

    @property
    def dim(self) -> int:
        return self.networks[0].dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Features of each cell."""
        return tuple(sum(one.widths) for one in self.networks)

    @property
    def contents(self) -> str:
        """The features in words."""
        families = [family for one in self.networks for family in one.families]
        return f"{counted_features(families)}, in {len(self.networks)} cells"

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """∂^derivative (M, fields)."""
        return self.derivatives(points, [derivative])[derivative]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Several derivatives at once, each (M, fields)."""
        totals = {index: np.zeros((len(points), len(self.networks[0].parts))) for index in indices}
        homes = self.arrangement.locate(points)
        for number, network in enumerate(self.networks):
            own = np.flatnonzero(homes == number)
            for index, values in network.derivatives(points[own], indices).items() if len(own) else ():
                totals[index][own] = values
        return totals

    def pole_distances(self, points: Array) -> Array:
        """The distance (M,) of points (M, n) from the nearest pole of a feature of their cell."""
        homes, distances = self.arrangement.locate(points), np.full(len(points), np.inf)
        for number, network in enumerate(self.networks):
            distances[homes == number] = network.pole_distances(points[homes == number])
        return distances

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        headers, arrays = [], {f"arrangement.{name}": array for name, array in self.arrangement.pack().items()}
        for number, network in enumerate(self.networks):
            header, own = network.pack()
            headers.append(header)
            arrays |= {f"cell{number}.{name}": array for name, array in own.items()}
        return {"function": "trefftz", "cells": headers}, arrays
