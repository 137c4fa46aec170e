"""Cells of Trefftz networks as one discretisation: a law of features for each cell, and rows for faces between them.

The method is that of least squares of jumps (Monk and Wang, 1999; Stojek, 1998): all features satisfy the equation in
their cell, and the weights minimise the residuals of the conditions on the boundary and the jumps of values and fluxes
across faces. Each cell is refined by the errors at its own boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.adaptive import RowSystem
from rannpde.pde.trefftz.cells.arrangement import Arrangement
from rannpde.pde.trefftz.cells.elimination import RowBlock
from rannpde.pde.trefftz.cells.faces import FaceConditions
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.cells.slabs import SlabArrangement
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.parts import ParticularPart
from rannpde.pde.trefftz.rows import (
    ConditionPoints,
    FacePoints,
    Misses,
    boundary_misses,
    boundary_rows,
    condition_rows,
    expression_residual,
    feature_values,
)

CellFamilies = list[list[FeatureFamily]]
"""The families of each cell."""
CellResolutions = tuple[Any, ...]
"""How many features each cell has."""


class CellFaces(Protocol):
    """The boundaries of cells and the faces between them: what differs in the plane and in space.

    sampled : whether collocation points are a sample; copies : of the rows, which assembling them takes at once
    """

    @property
    def sampled(self) -> bool: ...

    @property
    def copies(self) -> int: ...

    def points(
        self, resolution: CellResolutions, shift: float, factor: float
    ) -> tuple[list[list[ConditionPoints]], list[FacePoints]]:
        """Points of the conditions of each cell, and of all faces; ``shift`` and ``factor`` as in the laws."""
        ...

    def continuous(self, face: FacePoints) -> FaceConditions:
        """The combinations of derivatives that are continuous at a face."""
        ...

    def assembled(self, blocks: Sequence[RowBlock], widths: Sequence[int]) -> RowSystem:
        """All rows as one system; widths : the number of features of each cell."""
        ...

    def dense(self, widths: Sequence[int]) -> int:
        """Columns of the largest dense factorisation, about."""
        ...

    def errors_of(self, cell: int, errors: Mapping[int, float]) -> dict[int, float]:
        """The errors of the groups of one cell, numbered from 0, from those of the groups of all cells."""
        ...

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundaries of cells with their shares of the domain, where layers are thin."""
        ...


@dataclass(frozen=True, eq=False)
class CoupledNetworks:
    """laws : of each cell; parts : of each cell, the particular solutions of all fields"""

    faces: CellFaces
    arrangement: Arrangement | SlabArrangement
    laws: tuple[Any, ...]
    parts: tuple[tuple[ParticularPart, ...], ...]
    words: Vocabulary

    @property
    def sampled(self) -> bool:
        return self.faces.sampled

    def first(self) -> CellResolutions:
        """Where the iteration begins, cell by cell."""
        return tuple(law.first() for law in self.laws)

    def families(self, resolution: CellResolutions, rng: np.random.Generator) -> CellFamilies:
        """A realisation of all laws."""
        return [law.families(own, rng) for law, own in zip(self.laws, resolution, strict=True)]

    def columns(self, families: CellFamilies) -> int:
        """The number N of all features."""
        return sum(_widths(families))

    def dense(self, families: CellFamilies) -> int:
        """Columns of the largest dense factorisation, about."""
        return self.faces.dense(_widths(families))

    def network(self, families: CellFamilies, weights: Array) -> CellsNetwork:
        """The function with output weights (N,)."""
        ends = np.cumsum(_widths(families))[:-1]
        own = zip(families, np.split(weights, ends), self.parts, self.laws, strict=True)
        networks = [TrefftzNetwork(tuple(cell), part, parts, law.form) for cell, part, parts, law in own]
        return CellsNetwork(tuple(networks), self.arrangement)

    def values(self, families: CellFamilies, points: Array) -> Array:
        """All features (M, fields, N), zero outside of their cell."""
        homes, ends = self.arrangement.locate(points), np.cumsum([0, *_widths(families)])
        total = np.zeros((len(points), len(self.words.fields), int(ends[-1])))
        for number, cell in enumerate(families):
            own = np.flatnonzero(homes == number)
            still = (0,) * points.shape[1]
            total[own, :, ends[number] : ends[number + 1]] = feature_values(cell, points[own], still)
        return total

    def base(self, points: Array) -> Array:
        """The particular solutions (M, fields)."""
        return self._without_features(points)

    @property
    def _without_features(self) -> CellsNetwork:
        return self.network([[] for _ in self.laws], np.empty(0))

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundaries of cells with their shares of the domain, where layers are thin."""
        return self.faces.tube()

    def rows(self, families: CellFamilies, resolution: CellResolutions, shift: float, factor: float = 1.0) -> RowSystem:
        """Conditions on the boundary and continuity across faces; ``shift`` and ``factor`` as in the laws."""
        conditions, faces = self.faces.points(resolution, shift, factor)
        count = sum(len(one.points) for cell in conditions for one in cell) + 4 * sum(len(one.points) for one in faces)
        widths = _widths(families)
        reserve(self.faces.copies * FLOAT_BYTES * count * max(widths), "the values of the features on the boundary")
        empty = self._without_features.networks
        blocks = []
        for number, own in enumerate(conditions):
            if own:
                rows = boundary_rows(families[number], empty[number], own, self.words)
                blocks.append(RowBlock((number,), (rows.matrix,), rows.rhs, rows.weights))
        for face in faces:
            checkpoint()
            conditions_here, known = self.faces.continuous(face), self.words.at(face.points, face.normals)
            tables = [{i: feature_values(families[c], face.points, i) for i in conditions_here.indices}
                      for c in face.cells]  # fmt: skip
            parts = [empty[cell].derivatives(face.points, conditions_here.indices) for cell in face.cells]
            for pair in conditions_here.pairs:
                (first, left, size), (second, right, other) = (
                    condition_rows(one, known, part, face, table, self.words)
                    for one, part, table in zip(pair, parts, tables, strict=True)
                )
                scale = (0.5 * (size + other))[:, None]
                blocks.append(
                    RowBlock(face.cells, (first / scale, -second / scale), (right - left) / scale[:, 0], face.weights)
                )
        return self.faces.assembled(blocks, widths)

    def misses(self, network: CellsNetwork, resolution: CellResolutions, shift: float, factor: float) -> Misses:
        """The residuals of a function in conditions and in continuity; ``shift`` and ``factor`` as in the laws."""
        conditions, faces = self.faces.points(resolution, shift, factor)
        misses = [
            boundary_misses(one, own, self.words) for one, own in zip(network.networks, conditions, strict=True) if own
        ]
        for face in faces:
            checkpoint()
            continuous, known = self.faces.continuous(face), self.words.at(face.points, face.normals)
            tables = [network.networks[cell].derivatives(face.points, continuous.indices) for cell in face.cells]
            for pair in continuous.pairs:
                (left, size, _), (right, other, _) = (
                    expression_residual(one, known, table, face, self.words)
                    for one, table in zip(pair, tables, strict=True)
                )
                misses.append(Misses((left - right) / (0.5 * (size + other)), face.weights, face.groups))
        return Misses(*(np.concatenate(parts) for parts in zip(*map(astuple, misses), strict=True)))

    def refined(
        self, resolution: CellResolutions, errors: Mapping[int, float], target: float, slow: bool,
        families: CellFamilies, weights: Array, gains: Sequence[ColumnGains],
    ) -> CellResolutions:  # fmt: skip
        """More features in the cells, and for the groups of these, whose errors are above the target."""
        resolutions, start = [], 0
        for number, (law, own) in enumerate(zip(self.laws, resolution, strict=True)):
            split = []
            for family in families[number]:
                split.append((family, weights[start : start + family.columns]))
                start += family.columns
            resolutions.append(law.refined(own, self.faces.errors_of(number, errors), target, slow, split))
        return tuple(resolutions)


def _widths(families: CellFamilies) -> list[int]:
    """The number of features of each cell."""
    return [sum(family.columns for family in cell) for cell in families]
