"""Cells of Trefftz networks as one discretisation: a law of features for each cell, and rows for faces between them.

The method is that of least squares of jumps (Monk and Wang, 1999; Stojek, 1998): all features satisfy the equation in
their cell, and the weights minimise what is missed of the conditions on the boundary and of the continuity of values
and fluxes across faces. Each cell is refined by the errors at its own segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import sympy

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution
from rannpde.pde.trefftz.cells.arrangement import Arrangement
from rannpde.pde.trefftz.cells.elimination import BlockRows, RowBlock
from rannpde.pde.trefftz.cells.faces import FaceConditions
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.geometry import JOINED_ENDS
from rannpde.pde.trefftz.least_squares import ColumnGains
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.parts import ParticularPart
from rannpde.pde.trefftz.plane_points import SegmentPoints, segment_points
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
Resolutions = tuple[PlaneResolution, ...]
"""How many features each cell has."""


@dataclass(frozen=True, eq=False)
class CellsDiscretisation:
    """laws, faces : of each cell, and the dividing curve of each of its segments; conditions : (curve, first cell) →
    what is continuous; parts : of each cell, the particular solutions of all fields."""

    arrangement: Arrangement
    laws: tuple[PlaneLaw, ...]
    faces: tuple[tuple[int, ...], ...]
    conditions: Mapping[tuple[int, int], FaceConditions]
    parts: tuple[tuple[ParticularPart, ...], ...]
    words: Vocabulary
    pins: tuple[ConditionPoints, ...] = ()

    @property
    def sampled(self) -> bool:
        """Curves have quadrature points."""
        return False

    def first(self) -> Resolutions:
        """Where the iteration begins, cell by cell."""
        return tuple(law.first() for law in self.laws)

    def families(self, resolution: Resolutions, rng: np.random.Generator) -> CellFamilies:
        """A realisation of all laws."""
        return [law.families(own, rng) for law, own in zip(self.laws, resolution, strict=True)]

    def columns(self, families: CellFamilies) -> int:
        """The number N of all features."""
        return sum(family.columns for cell in families for family in cell)

    def dense(self, families: CellFamilies) -> int:
        """Columns of the largest dense factorisation, about: of a cell and its neighbours."""
        own = [sum(family.columns for family in cell) for cell in families]
        fronts = list(own)
        for curve, cell in self.conditions:
            other = self.arrangement.neighbour(cell, curve)
            assert other is not None
            fronts[cell] += own[other]
            fronts[other] += own[cell]
        return max(fronts)

    def network(self, families: CellFamilies, weights: Array) -> CellsNetwork:
        """The function with output weights (N,)."""
        ends = np.cumsum([sum(family.columns for family in cell) for cell in families])[:-1]
        own = zip(families, np.split(weights, ends), self.parts, self.laws, strict=True)
        networks = [TrefftzNetwork(tuple(cell), part, parts, law.form) for cell, part, parts, law in own]
        return CellsNetwork(tuple(networks), self.arrangement)

    def values(self, families: CellFamilies, points: Array) -> Array:
        """All features (M, fields, N), zero outside of their cell."""
        homes = self.arrangement.locate(points)
        total = np.zeros((len(points), len(self.words.fields), self.columns(families)))
        start = 0
        for number, cell in enumerate(families):
            stop = start + sum(family.columns for family in cell)
            own = np.flatnonzero(homes == number)
            total[own, :, start:stop] = feature_values(cell, points[own], (0, 0))
            start = stop
        return total

    def base(self, points: Array) -> Array:
        """The particular solutions (M, fields)."""
        return self.network([[] for _ in self.laws], np.empty(0))(points)

    def tube(self) -> tuple[Array, Array]:
        """Points near the boundaries of cells with their shares of the domain, where layers are thin."""
        tubes = [law.tube() for law in self.laws]
        whole = sum(law.domain.measure for law in self.laws)
        shares = [own * law.domain.measure / whole for (_, own), law in zip(tubes, self.laws, strict=True)]
        return np.concatenate([points for points, _ in tubes]), np.concatenate(shares)

    # ---------------------------------------------------------------------------------------------------- rows

    def rows(self, families: CellFamilies, resolution: Resolutions, shift: float, factor: float = 1.0) -> BlockRows:
        """Conditions on the boundary and continuity across faces; ``shift`` and ``factor`` as in ``PlaneLaw``."""
        columns = tuple(sum(family.columns for family in cell) for cell in families)
        conditions, faces = self._points(resolution, shift, factor)
        count = sum(len(one.points) for cell in conditions for one in cell) + 4 * sum(len(one.points) for one in faces)
        reserve(6 * FLOAT_BYTES * count * max(columns), "the values of the features on the boundary")
        blocks = []
        for number, own in enumerate(conditions):
            if own:
                nothing = TrefftzNetwork((), np.empty(0), self.parts[number], self.laws[number].form)
                rows = boundary_rows(families[number], nothing, own, self.words)
                blocks.append(RowBlock((number,), (rows.matrix,), rows.rhs, rows.weights))
        for face in faces:
            checkpoint()
            blocks += self._continuity(face, families)
        return BlockRows(tuple(blocks), columns)

    def misses(self, network: CellsNetwork, resolution: Resolutions, shift: float, factor: float) -> Misses:
        """What a function misses of the conditions and of the continuity at such points."""
        conditions, faces = self._points(resolution, shift, factor)
        misses = [
            boundary_misses(one, own, self.words) for one, own in zip(network.networks, conditions, strict=True) if own
        ]
        for face in faces:
            checkpoint()
            known, pairs = self._known(face), self.conditions[face.curve, face.cells[0]].pairs
            tables = [network.networks[cell].derivatives(face.points, _indices(pairs)) for cell in face.cells]
            for pair in pairs:
                (left, size, _), (right, other, _) = (
                    expression_residual(one, known, table, face, self.words)
                    for one, table in zip(pair, tables, strict=True)
                )
                misses.append(Misses((left - right) / (0.5 * (size + other)), face.weights, face.groups))
        return Misses(*(np.concatenate(parts) for parts in zip(*map(astuple, misses), strict=True)))

    def _points(
        self, resolution: Resolutions, shift: float, factor: float
    ) -> tuple[list[list[ConditionPoints]], list[FacePoints]]:
        """Points of the conditions of each cell, and of all faces."""
        sampled = [
            list(segment_points(law, own, shift, factor)) for law, own in zip(self.laws, resolution, strict=True)
        ]
        length = sum(segment.length for law in self.laws for segment in law.boundary.segments if segment.terms)
        homes = [int(self.arrangement.locate(pin.points)[0]) for pin in self.pins]
        conditions = []
        for number, law in enumerate(self.laws):
            share = np.sqrt(law.boundary.length / length)
            own = [
                ConditionPoints(term, one.points, share * one.weights, one.scales, self._group(number, one.groups))
                for one in sampled[number]
                for term in law.boundary.segments[one.number].terms
            ]
            conditions.append(own + [pin for pin, home in zip(self.pins, homes, strict=True) if home == number])
        return conditions, self._face_points(sampled, length)

    def _known(self, face: FacePoints) -> dict[sympy.Symbol, Array]:
        """Coordinates and normals of the points of a face."""
        words = self.words
        values = np.concatenate([face.points, face.normals], axis=1).T
        return dict(zip((*words.symbols, *words.normals), values, strict=True))

    def _group(self, cell: int, groups: Array) -> Array:
        """Groups of a cell as groups of all."""
        return groups + self._offsets[cell]

    @property
    def _offsets(self) -> Array:
        sizes = [len(law.boundary.corners) + len(law.boundary.segments) for law in self.laws]
        return np.concatenate([[0], np.cumsum(sizes)])

    def _face_points(self, sampled: Sequence[Sequence[SegmentPoints]], length: float) -> list[FacePoints]:
        """The points of each face, from the cell that has more of them there."""
        face_points = []
        for curve, cell in self.conditions:
            other = self.arrangement.neighbour(cell, curve)
            assert other is not None
            both = [
                [one for one in sampled[k] if self.faces[k][one.number] == curve and self._beside(k, one, j)]
                for k, j in ((cell, other), (other, cell))
            ]
            counts = [sum(len(one.points) for one in own) for own in both]
            chosen = int(counts[1] > counts[0])
            k = (cell, other)[chosen]
            law = self.laws[k]
            for one in both[chosen]:
                slopes = np.linalg.solve(law.form.matrix, law.boundary.segments[one.number].slopes(one.units).T).T
                normals = np.stack([slopes[:, 1], -slopes[:, 0]], axis=1)
                normals *= (-1) ** chosen / np.linalg.norm(normals, axis=1, keepdims=True)
                weights = one.weights * np.sqrt(law.boundary.length / length)
                groups = self._group(k, one.groups)
                face_points.append(FacePoints((cell, other), curve, one.points, normals, weights, one.scales, groups))
        return face_points

    def _beside(self, cell: int, one: SegmentPoints, other: int) -> bool:
        curve = self.faces[cell][one.number]
        return curve >= 0 and self.arrangement.neighbour(cell, curve) == other

    def _continuity(self, face: FacePoints, families: CellFamilies) -> list[RowBlock]:
        words, blocks = self.words, []
        pairs = self.conditions[face.curve, face.cells[0]].pairs
        indices, known = _indices(pairs), self._known(face)
        tables = [
            {index: feature_values(families[cell], face.points, index) for index in indices} for cell in face.cells
        ]
        empty = [TrefftzNetwork((), np.empty(0), self.parts[c], self.laws[c].form) for c in face.cells]
        parts = [one.derivatives(face.points, indices) for one in empty]
        for pair in pairs:
            (first, left, size), (second, right, other) = (
                condition_rows(one, known, part, face, table, words)
                for one, part, table in zip(pair, parts, tables, strict=True)
            )
            scale = (0.5 * (size + other))[:, None]
            blocks.append(
                RowBlock(face.cells, (first / scale, -second / scale), (right - left) / scale[:, 0], face.weights)
            )
        return blocks

    # ---------------------------------------------------------------------------------------------- refinement

    def refined(
        self, resolution: Resolutions, errors: Mapping[int, float], target: float, slow: bool, families: CellFamilies,
        weights: Array, gains: Sequence[ColumnGains],
    ) -> Resolutions:  # fmt: skip
        """More features in the cells, and for the groups of these, whose errors are above the target."""
        offsets, resolutions, start = self._offsets, [], 0
        for number, (law, own) in enumerate(zip(self.laws, resolution, strict=True)):
            low, high = int(offsets[number]), int(offsets[number + 1])
            mine = {group - low: error for group, error in errors.items() if low <= group < high}
            for curve, cell in self.conditions:  # a jump is an error of both cells
                other = self.arrangement.neighbour(cell, curve)
                if number in (cell, other):
                    mine = _larger(mine, self._across(number, cell if number == other else other, curve, errors))
            split = []
            for family in families[number]:
                split.append((family, weights[start : start + family.columns]))
                start += family.columns
            resolutions.append(law.refined(own, mine, target, slow, split))
        return tuple(resolutions)

    def _across(self, cell: int, other: int | None, curve: int, errors: Mapping[int, float]) -> dict[int, float]:
        """Errors that were charged to segments of the other cell at a face, as errors of the segments of this one."""
        assert other is not None
        first = [len(self.laws[k].boundary.corners) for k in (cell, other)]
        theirs = [
            errors.get(int(self._offsets[other]) + first[1] + k, 0.0)
            for k, face in enumerate(self.faces[other])
            if face == curve
        ]
        mine = [first[0] + k for k, face in enumerate(self.faces[cell]) if face == curve]
        own_errors = dict.fromkeys(mine, max(theirs, default=0.0))
        for number, point in enumerate(self._corner_points(cell)):
            for their, other_point in enumerate(self._corner_points(other)):
                if np.linalg.norm(point - other_point) <= JOINED_ENDS * self.laws[cell].boundary.size:
                    own_errors[number] = errors.get(int(self._offsets[other]) + their, 0.0)
        return own_errors

    def _corner_points(self, cell: int) -> list[Array]:
        law = self.laws[cell]
        return [law.form.back(corner.point[None, :])[0] for corner in law.boundary.corners]


def _indices(pairs: Sequence[tuple[Expression, Expression]]) -> list[MultiIndex]:
    """The derivatives that conditions ask for."""
    return sorted({jet.index for pair in pairs for one in pair for jet in one.jets})


def _larger(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {group: max(one.get(group, 0.0), other.get(group, 0.0)) for group in one.keys() | other.keys()}
