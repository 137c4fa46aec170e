"""The boundary of a set in space, cut out of the surfaces of the shapes that it is made of.

Each piece of a surface has its parameters in a square. Where no other shape comes near, the whole square counts or none
of it. Elsewhere the part that counts is itself a set in the plane, the square cut by the other shapes' walls as
functions of the parameters, so that areas and Gauss rules there are as exact as in the plane. Points are drawn from
small cells of the squares and kept where they lie on the boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.charts import Chart, normals_of
from rannpde.domains.boundary.patches import MANY, Patches, Surfaces, converged_value, quartered, spheres
from rannpde.domains.boundary.planar import JOINED, PROBE, Planar
from rannpde.domains.boundary.solids import Clipped, Leaf, Tree, tree_bounds, tree_level
from rannpde.domains.operations.sections import pulled_back, smooth_panels, space_rule
from rannpde.domains.quadrature.plane import planar_rule
from rannpde.domains.region import composite_gauss, tensor_rule

CELLS_PER_PARAMETER = 8
"""Cells along each parameter of a piece, of surfaces with few pieces."""
QUARTERED = 3
"""Times that cells near another shape are quartered to see whether it really cuts them."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """One chart of one solid (its number in the tree), as far as it bounds the set of the tree."""

    tree: Tree
    leaves: tuple[Leaf, ...]
    leaf: int
    label: str
    chart: Chart
    size: float

    def state(self, points: Array, normals: Array) -> tuple[Array, Array]:
        """Whether points (M, 3) of the chart bound the set, and on which side (±1) of the chart's normals it lies."""
        step = PROBE * self.size * normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        below, above = (tree_level(self.tree, points + sign * step) < 0 for sign in (-1, 1))
        bounding = below != above
        for earlier in self.leaves[: self.leaf]:
            bounding &= np.abs(earlier.solid.level(points)) > JOINED * self.size
        return bounding, np.where(below, 1.0, -1.0)

    @cached_property
    def _grid(self) -> tuple[Array, Array, Array]:
        """Piece (C,), lower corner (C, 2) and width (C,) of all cells."""
        count = CELLS_PER_PARAMETER if self.chart.count <= MANY else 1
        u, v = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
        lower = np.tile(np.stack([u.ravel(), v.ravel()], axis=1) / count, (self.chart.count, 1))
        piece = np.repeat(np.arange(self.chart.count), count**2)
        return piece, lower, np.full(len(piece), 1 / count)

    @cached_property
    def _judged(self) -> Array:
        """The status (C,) of all cells, those near another shape looked at again in quarters."""
        piece, lower, width = self._grid
        status = self._status(piece, lower, width)
        near = np.flatnonzero(status == 0)
        owner, parts, sizes = near, lower[near], width[near]
        verdict = {number: set[int]() for number in near.tolist()}
        for _ in range(QUARTERED):
            parts, sizes = quartered(parts, sizes)
            owner = np.repeat(owner, 4)
            judged = self._status(piece[owner], parts, sizes)
            for number, value in zip(owner[judged != 0].tolist(), judged[judged != 0].tolist(), strict=True):
                verdict[number].add(value)
            owner, parts, sizes = owner[judged == 0], parts[judged == 0], sizes[judged == 0]
        open_ones = set(owner.tolist())
        for number, values in verdict.items():
            if len(values) == 1 and number not in open_ones:
                status[number] = values.pop()
        return status

    @cached_property
    def cells(self) -> tuple[Array, Array, Array, Array]:
        """The cells that may hold a part of the boundary, as ``Patches`` takes them."""
        possible = self._judged >= 0
        piece, lower, width = self._grid
        return piece[possible], lower[possible], width[possible], self._judged[possible] > 0

    def _status(self, piece: Array, lower: Array, width: Array) -> Array:
        """+1 for cells that bound the set, -1 for those that do not, 0 where another shape comes near."""
        centre, radius = spheres(self.chart, piece, lower, width)
        near = np.zeros(len(piece), dtype=bool)
        for number, other in enumerate(self.leaves):
            if number != self.leaf:
                near |= np.abs(other.solid.level(centre)) <= other.solid.rate * (radius + PROBE * self.size)
        normals = normals_of(self.chart.tangents(piece, lower + 0.5 * width[:, None]))
        bounding = self.state(centre, normals)[0]
        return np.where(near, 0, np.where(bounding, 1, -1))

    @cached_property
    def _pieces(self) -> tuple[Array, dict[int, Planar]]:
        """Pieces that count as a whole, and those that are cut, each with its part of the parameter square."""
        status = self._judged.reshape(self.chart.count, -1)
        whole = np.flatnonzero((status == 1).all(axis=1))
        mixed = np.flatnonzero(~(status == 1).all(axis=1) & ~(status == -1).all(axis=1))
        planar_parts = {}
        for number in mixed.tolist():
            planar = pulled_back(self.tree, self.leaves, self.leaf, self.chart, number, self.size)
            if planar is not None:
                planar_parts[number] = planar
        return whole, planar_parts

    def rule(self, count: int, panels: int) -> tuple[Array, Array, Array]:
        """Points (M, 3), weights (M,) and outward normals (M, 3) of a Gauss rule; rules are kept."""
        if (count, panels) not in self._known:
            self._known[count, panels] = self._rule(count, panels)
        return self._known[count, panels]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[Array, Array, Array]]:
        return {}

    def _rule(self, count: int, panels: int) -> tuple[Array, Array, Array]:
        nodes, weights = composite_gauss(np.linspace(0.0, 1.0, panels + 1), count)
        unit, shares = tensor_rule([(nodes, weights)] * 2)
        whole, mixed = self._pieces
        pieces = [np.repeat(whole, len(unit))]
        units, weights_of_parts = [np.tile(unit, (len(whole), 1))], [np.tile(shares, len(whole))]
        for number, planar in mixed.items():
            inner, inner_weights = planar_rule(planar, count, panels)
            pieces.append(np.full(len(inner), number))
            units.append(inner)
            weights_of_parts.append(inner_weights)
        piece, at = np.concatenate(pieces).astype(int), np.concatenate(units)
        normals = self.sign * normals_of(self.chart.tangents(piece, at))
        lengths = np.linalg.norm(normals, axis=1)
        unit_normals = normals / np.maximum(lengths, 1e-300)[:, None]
        return self.chart.place(piece, at), np.concatenate(weights_of_parts) * lengths, unit_normals

    @cached_property
    def sign(self) -> float:
        """+1 where the set lies inside the shape, -1 where the shape was taken away."""
        generator = np.random.default_rng(0)
        piece, lower, width, _ = self.cells
        chosen = generator.permutation(len(piece))[:500]
        number = np.repeat(piece[chosen], 8)
        unit = lower[chosen, None, :] + width[chosen, None, None] * generator.random((len(chosen), 8, 2))
        sign = self._sign_at(number, unit.reshape(-1, 2))
        if sign == 0:  # random points miss what is thin, such as the rim of a plate
            rules = [(number, planar_rule(planar, 2, 1)[0]) for number, planar in self._pieces[1].items()]
            sign = next((own for number, at in rules if (own := self._sign_at(np.full(len(at), number), at))), 0.0)
        return sign

    def _sign_at(self, piece: Array, at: Array) -> float:
        """The sign by parameters (M, 2) of pieces (M,); 0 where none of the points bounds the set."""
        bounding, sign = self.state(self.chart.place(piece, at), normals_of(self.chart.tangents(piece, at)))
        return float(np.sign(sign[bounding].sum())) if bounding.any() else 0.0


@dataclass(frozen=True, eq=False)
class Spatial(Clipped):
    """The boundary of a tree of solids in space, looked for within clip (3, 2)."""

    @cached_property
    def sheets(self) -> list[Sheet]:
        """The parts of surfaces that bound the set."""
        sheets = []
        for number, leaf in enumerate(self.leaves):
            for chart in leaf.solid.charts(self.clip):
                sheet = Sheet(self.tree, self.leaves, number, chart.label, chart, self.size)
                if len(sheet.cells[0]) and sheet.sign:
                    sheets.append(sheet)
        return sheets

    @cached_property
    def volume(self) -> float:
        """⅓ ∮ x · n, by Gauss rules on the surface that are doubled until they agree."""
        middle = self.clip.mean(axis=1)

        def flux(count: int) -> tuple[float, float]:
            rules = [sheet.rule(count, 1) for sheet in self.sheets]
            terms = [w * ((p - middle) * n).sum(axis=1) / 3 for p, w, n in rules]
            return float(sum(t.sum() for t in terms)), float(sum(np.abs(t).sum() for t in terms))

        return converged_value(flux, [sheet.chart for sheet in self.sheets])

    @property
    def bounds(self) -> Array:
        """A box (3, 2) around the set, by that of its shapes."""
        return tree_bounds(self.tree)

    def rule(self, count: int, panels: int) -> tuple[Array, Array]:
        """Points (M, 3) inside and weights (M,), by slices."""
        return space_rule(self.tree, self.bounds, self._slabs, count, panels)

    @cached_property
    def _slabs(self) -> list[tuple[float, float]]:
        return smooth_panels(self.tree, self.bounds)

    def border(self, numbers: list[int] | None = None) -> Surfaces:
        """The whole boundary, or the sheets of these numbers."""
        chosen = range(len(self.sheets)) if numbers is None else numbers
        return Surfaces(tuple(Patches.of(self.sheets[number]) for number in chosen))
