"""Cells and joints of a domain: the leaves of a tree that meet it, and the parts of their common faces inside it.

A leaf through which an interface runs is divided along it into two cells on the same box, joined by the interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Domain, is_box
from rannpde.pde.cells.basis import Cell, Draw, gauss_grid, polynomials
from rannpde.pde.cells.extent import Extent, InterfaceSides
from rannpde.pde.cells.interfaces import Interface, Interfaces
from rannpde.pde.cells.tree import CellNode, Face, faces_of, touching

FEWEST = 3
"""A leaf that holds fewer points of the domain has no cell of its own."""
THIN = 1e-9
"""Share of a box below which what lies in it is flat."""


@dataclass(frozen=True, eq=False)
class Joint:
    """What two cells share: points on a face or an interface, and polynomials on it that stand for the traces.

    axis : across the face; of a curved interface any, as ``normals`` (P, n) tell its directions
    sides : points (P, n) as the lower and as the upper cell sees them (they differ on periodic faces only)
    weights : (P,), sum 1; columns (P, t): orthonormal with these weights; length : of the cells across the face
    flux : whether a flux jumps there
    """

    cells: tuple[int, int]
    axis: int
    sides: tuple[Array, Array]
    weights: Array
    columns: Array
    length: float
    normals: Array | None = None
    flux: bool = False


@dataclass(frozen=True, eq=False)
class Mesh:
    """cells : by leaf, None where the leaf holds nothing of the domain; owners : node → the joints in its plane.

    homes : by leaf, the number of its box in the tree before leaves were divided along ``interfaces``
    """

    tree: CellNode
    cells: tuple[Cell | None, ...]
    joints: tuple[Joint, ...]
    owners: dict[CellNode, list[int]]
    homes: Array
    interfaces: tuple[Interface, ...] = ()

    @property
    def present(self) -> Iterator[tuple[int, Cell]]:
        """Number and cell of the leaves that have one."""
        return ((number, cell) for number, cell in enumerate(self.cells) if cell is not None)


class MeshBuilder:
    """Cells and joints of the leaves of a tree for one draw of functions."""

    def __init__(self, domain: Domain, draw: Draw, interfaces: Interfaces | None = None) -> None:
        self.domain, self.draw, self.plain = domain, draw, is_box(domain)
        self.interfaces = interfaces or Interfaces()
        flat, curved = self.interfaces.flat, self.interfaces.curved
        self.jumping = any(flux for *_, flux in flat) or any(one.flux for one in curved)

    def build(
        self, tree: CellNode, periodic: tuple[int, ...] = (), checkpoint: Callable[[], None] = lambda: None
    ) -> Mesh:
        """periodic : axes whose two ends are joined; checkpoint : called between cells, and between faces."""
        sides: list[InterfaceSides] = []
        homes: list[int] = []
        if self.interfaces.curved:
            tree = self._divided(tree, sides, homes, iter(range(len(tree.leaves))))
        else:
            sides, homes = [()] * len(tree.leaves), list(range(len(tree.leaves)))
        found: list[Cell | None] = []
        for leaf, own in zip(tree.leaves, sides, strict=True):
            checkpoint()
            found.append(self._cell(leaf, own))
        cells = tuple(found)
        joints: list[Joint] = []
        owners: dict[CellNode, list[int]] = {}

        def add(node: CellNode, more: list[Joint]) -> None:
            owners.setdefault(node, []).extend(range(len(joints), len(joints) + len(more)))
            joints.extend(more)

        for node, face, shift in _all_faces(tree, periodic):
            checkpoint()
            if all(cells[k] is not None for k in face.cells):
                inner = all(cell is not None and cell.whole for cell in (cells[k] for k in face.cells))
                leaves, both = [tree.leaves[k] for k in face.cells], (*sides[face.cells[0]], *sides[face.cells[1]])
                add(node, self._joints(face, shift, leaves, both, inner))
        for node, interface, pair in _all_levels(tree):
            boxes = [cell.bounds for cell in (cells[k] for k in pair) if cell is not None]
            if len(boxes) == 2:
                others = [one for k in pair for one in sides[k] if one[0] is not interface]
                length = float(node.lengths.min())
                add(node, self._curve(_common(*boxes), length, interface, pair, others))
        return Mesh(tree, cells, tuple(joints), owners, np.array(homes), self.interfaces.curved)

    def _divided(
        self, tree: CellNode, sides: list[InterfaceSides], homes: list[int], numbers: Iterator[int]
    ) -> CellNode:
        """The tree with leaves divided along the interfaces that run through them; notes the sides of all leaves."""
        if tree.children is not None:
            lower, upper = (self._divided(child, sides, homes, numbers) for child in tree.children)
            return replace(tree, children=(lower, upper))
        number = next(numbers)
        points = tree.bounds.mean(axis=1) + 0.5 * tree.lengths * self.draw.grid[0]

        def along(leaf: CellNode, own: InterfaceSides, left: Sequence[Interface]) -> CellNode:
            for k, interface in enumerate(left):
                if self.extent.crossed(leaf.bounds, interface, own, points):
                    cut, rest = leaf.divided(interface), left[k + 1 :]
                    assert cut.children is not None
                    below = along(cut.children[0], (*own, (interface, -1)), rest)
                    return replace(cut, children=(below, along(cut.children[1], (*own, (interface, 1)), rest)))
            sides.append(own)
            homes.append(number)
            return leaf

        return along(tree, (), self.interfaces.curved)

    # ------------------------------------------------------------------------------------------------------ cells

    @cached_property
    def extent(self) -> Extent:
        """What the domain leaves of boxes; a box leaves all of its own."""
        return Extent(self.domain)

    def _cell(self, leaf: CellNode, sides: InterfaceSides) -> Cell | None:
        draw = self.draw
        if (self.plain and not sides) or self.extent.whole(leaf.bounds, sides):
            points = leaf.bounds.mean(axis=1) + 0.5 * leaf.lengths * draw.grid[0]
            return Cell(draw, leaf.bounds, points, draw.grid[1], draw.transform, True)
        bounds = self.extent.shrunk(leaf.bounds, sides)
        if bounds is None:
            return None
        wanted, count = draw.tuning.fill * draw.transform.shape[1], draw.nodes
        for _ in range(4):
            points, weights = gauss_grid(bounds, count)
            inside = self.extent.holds(points, sides)
            if (found := int(inside.sum())) >= wanted:
                break
            count = int(count * np.clip((wanted / max(1, found)) ** (1 / draw.dim), 1.2, 3.0))
        if found < FEWEST:
            return None
        points, weights = points[inside], weights[inside] / weights[inside].sum()
        scaled = (points - bounds.mean(axis=1)) / (0.5 * (bounds[:, 1] - bounds[:, 0]))
        return Cell(draw, bounds, points, weights, draw.orthonormal(scaled, weights), False)

    # ----------------------------------------------------------------------------------------------------- joints

    def _joints(
        self, face: Face, shift: float, leaves: list[CellNode], sides: InterfaceSides, inner: bool
    ) -> list[Joint]:
        """Usually one; where the boundary crosses a face in two dimensions, one for each part inside."""
        length = float(min(leaf.lengths[face.axis] for leaf in leaves))
        # coefficients may differ at the two ends of a period, whatever they do inside
        place = float(face.bounds[face.axis, 0])
        flux = self.jumping and (shift != 0 or self.interfaces.flux_at(face.axis, place))
        found = []
        for bounds in [face.bounds] if inner else self.extent.parts(face, length, sides):
            points, weights = gauss_grid(bounds, self.draw.nodes)
            if not inner:
                inside = self.extent.between(points, face.axis, length, sides)
                if not inside.any():
                    continue
                points, weights = points[inside], weights[inside] / weights[inside].sum()
            columns = self._whole if inner else self._traces(points, weights, bounds)
            other = points.copy()
            other[:, face.axis] += shift
            found.append(Joint(face.cells, face.axis, (points, other), weights, columns, length, flux=flux))
        return found

    def _curve(
        self, bounds: Array, length: float, interface: Interface, cells: tuple[int, int], sides: InterfaceSides
    ) -> list[Joint]:
        """The part of an interface between two cells, in what their boxes share."""
        count = 2 * self.draw.nodes if len(bounds) == 2 else self.draw.nodes
        points, weights = interface.within(bounds, count)
        inside = self.extent.holds(points, sides)
        if inside.sum() < FEWEST:
            return []
        points, weights = points[inside], weights[inside] / weights[inside].sum()
        box = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        flat = box[:, 1] - box[:, 0] < THIN * (bounds[:, 1] - bounds[:, 0])
        box[flat, 1] = box[flat, 0]
        columns = self._traces(points, weights, box)
        normals = interface.normals(points)
        return [Joint(cells, 0, (points, points), weights, columns, length, normals, interface.flux)]

    @cached_property
    def _whole(self) -> Array:
        """Those of a face that lies in the domain, the same on all of them."""
        bounds = np.array([(0.0, 0.0), *[(-1.0, 1.0)] * (self.draw.dim - 1)])
        return self._traces(*gauss_grid(bounds, self.draw.nodes), bounds)

    def _traces(self, points: Array, weights: Array, bounds: Array) -> Array:
        """Polynomials on points (P, t), orthonormal with the weights; those of sizes below the cutoff are left out."""
        root, degree = np.sqrt(weights)[:, None], self.draw.degree - self.draw.tuning.coarser[self.draw.dim - 1]
        columns, sizes, _ = np.linalg.svd(polynomials(points, bounds, degree) * root, full_matrices=False)
        return np.asarray(columns[:, sizes > self.draw.tuning.trace_cutoff * sizes[0]] / root)


def _common(one: Array, other: Array) -> Array:
    return np.stack([np.maximum(one[:, 0], other[:, 0]), np.minimum(one[:, 1], other[:, 1])], axis=1)


def _all_faces(tree: CellNode, periodic: tuple[int, ...]) -> Iterator[tuple[CellNode, Face, float]]:
    """Every face with the node in whose plane it lies and the shift to its other side; periodic ones are the root's."""
    for node, first in _inner_nodes(tree):
        yield from ((node, face, 0.0) for face in faces_of(node, first))
    for axis in periodic:
        lowest, highest = tree.bounds[axis]
        below = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 1] == highest]
        above = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 0] == lowest]
        yield from ((tree, face, lowest - highest) for face in touching(below, above, axis))


def _all_levels(tree: CellNode) -> Iterator[tuple[CellNode, Interface, tuple[int, int]]]:
    """Every node that is divided along an interface, and the numbers of two leaves on its two sides."""
    for node, first in _inner_nodes(tree):
        if isinstance(node.level, Interface) and node.children is not None:
            lower, upper = (len(child.leaves) for child in node.children)
            for one in range(first, first + lower):
                for other in range(first + lower, first + lower + upper):
                    yield node, node.level, (one, other)


def _inner_nodes(tree: CellNode) -> Iterator[tuple[CellNode, int]]:
    """Every node that is no leaf, with the number of its first leaf."""
    stack = [(tree, 0)]
    while stack:
        node, first = stack.pop()
        if node.children is not None:
            lower, upper = node.children
            stack += [(lower, first), (upper, first + len(lower.leaves))]
            yield node, first
