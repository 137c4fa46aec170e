"""Cells and faces of a domain: the leaves of a tree that meet it, and the parts of their common faces inside it.

A leaf that an interface crosses is divided along it into two cells on the same box; the interface is a face of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import checkpoint
from rannpde.domains.domain import Domain, is_box
from rannpde.pde.cells.basis.basis import BasisSample, Cell
from rannpde.pde.cells.basis.quadrature import gauss_grid, polynomials
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.clipping import CellClipper, InterfaceSides
from rannpde.pde.cells.mesh.tree import BoxFace, CellNode, box_faces, touching
from rannpde.rounding import COMPUTED

MIN_POINTS = 3
"""A leaf that contains fewer points of the domain has no cell of its own."""


@dataclass(frozen=True, eq=False)
class Face:
    """The common face of two cells, or an interface between them: quadrature points, and polynomials for the traces.

    axis : the axis normal to the face; arbitrary for a curved interface, whose unit normals are ``normals`` (P, n)
    sides : the points (P, n) in the coordinates of the lower and of the upper cell; they differ on periodic faces only
    weights : quadrature weights (P,), sum 1
    columns : values (P, t) of the polynomials, orthonormal with these weights
    length : the length of the smaller cell across the face
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
    """Cells and faces on the leaves of a tree.

    cells : the cell of each leaf; None where a leaf contains nothing of the domain
    owners : for each inner node, the numbers of the faces in its plane
    homes : for each leaf, the number of its box in the tree before leaves were divided along ``interfaces``
    """

    tree: CellNode
    cells: tuple[Cell | None, ...]
    faces: tuple[Face, ...]
    owners: dict[CellNode, list[int]]
    homes: Array
    interfaces: tuple[Interface, ...] = ()

    @property
    def present(self) -> Iterator[tuple[int, Cell]]:
        """Iterate over the number and cell of the leaves that have one."""
        return ((number, cell) for number, cell in enumerate(self.cells) if cell is not None)


class MeshBuilder:
    """Builds the cells and faces of the leaves of a tree with one sample of basis functions."""

    def __init__(self, domain: Domain, basis: BasisSample, interfaces: Interfaces | None = None) -> None:
        self.domain, self.basis, self.plain = domain, basis, is_box(domain)
        self.interfaces = interfaces or Interfaces()
        flat, curved = self.interfaces.flat, self.interfaces.curved
        self.jumping = any(flux for *_, flux in flat) or any(one.flux for one in curved)

    def build(self, tree: CellNode, periodic: tuple[int, ...] = ()) -> Mesh:
        """Build the mesh; periodic : axes whose two ends are identified."""
        sides: list[InterfaceSides] = []
        homes: list[int] = []
        if self.interfaces.curved:
            tree = self._divided(tree, sides, homes, iter(range(len(tree.leaves))))
        else:
            sides, homes = [()] * len(tree.leaves), list(range(len(tree.leaves)))
        cell_list: list[Cell | None] = []
        for leaf, own in zip(tree.leaves, sides, strict=True):
            checkpoint()
            cell_list.append(self._cell(leaf, own))
        cells = tuple(cell_list)
        faces: list[Face] = []
        owners: dict[CellNode, list[int]] = {}

        def add(node: CellNode, more: list[Face]) -> None:
            owners.setdefault(node, []).extend(range(len(faces), len(faces) + len(more)))
            faces.extend(more)

        for node, box_face, shift in _all_faces(tree, periodic):
            checkpoint()
            if all(cells[k] is not None for k in box_face.cells):
                inner = all(cell is not None and cell.uncut for cell in (cells[k] for k in box_face.cells))
                leaves, both = (
                    [tree.leaves[k] for k in box_face.cells],
                    (*sides[box_face.cells[0]], *sides[box_face.cells[1]]),
                )
                add(node, self._faces_in(box_face, shift, leaves, both, inner))
        for node, interface, pair in _all_levels(tree):
            boxes = [cell.bounds for cell in (cells[k] for k in pair) if cell is not None]
            if len(boxes) == 2:
                others = [one for k in pair for one in sides[k] if one[0] is not interface]
                length = float(node.lengths.min())
                add(node, self._interface_faces(_common(*boxes), length, interface, pair, others))
        return Mesh(tree, cells, tuple(faces), owners, np.array(homes), self.interfaces.curved)

    def _divided(
        self, tree: CellNode, sides: list[InterfaceSides], homes: list[int], numbers: Iterator[int]
    ) -> CellNode:
        """Return the tree with leaves divided along the interfaces that cross them; record the sides of all leaves."""
        if tree.children is not None:
            lower, upper = (self._divided(child, sides, homes, numbers) for child in tree.children)
            return replace(tree, children=(lower, upper))
        number = next(numbers)
        points = tree.bounds.mean(axis=1) + 0.5 * tree.lengths * self.basis.grid[0]

        def along(leaf: CellNode, own: InterfaceSides, left: Sequence[Interface]) -> CellNode:
            for k, interface in enumerate(left):
                if self.clipper.crossed_by(leaf.bounds, interface, own, points):
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
    def clipper(self) -> CellClipper:
        """Geometric queries about the part of a box that lies in the domain."""
        return CellClipper(self.domain)

    def _cell(self, leaf: CellNode, sides: InterfaceSides) -> Cell | None:
        basis = self.basis
        if (self.plain and not sides) or self.clipper.contains_box(leaf.bounds, sides):
            points = leaf.bounds.mean(axis=1) + 0.5 * leaf.lengths * basis.grid[0]
            return Cell(basis, leaf.bounds, points, basis.grid[1], basis.transform, True)
        bounds = self.clipper.clipped_bounds(leaf.bounds, sides)
        if bounds is None:
            return None
        required, count = basis.tuning.points_per_function * basis.transform.shape[1], basis.nodes
        for _ in range(4):
            points, weights = gauss_grid(bounds, count)
            inside = self.clipper.contains_points(points, sides)
            if (count_inside := int(inside.sum())) >= required:
                break
            count = 1 + int(count * min((required / max(1, count_inside)) ** (1 / basis.dim), 3))
        if count_inside < MIN_POINTS:
            return None
        points, weights = points[inside], weights[inside] / weights[inside].sum()
        scaled = (points - bounds.mean(axis=1)) / (0.5 * (bounds[:, 1] - bounds[:, 0]))
        return Cell(basis, bounds, points, weights, basis.orthonormal(scaled, weights), False)

    # ----------------------------------------------------------------------------------------------------- faces

    def _faces_in(
        self, box_face: BoxFace, shift: float, leaves: list[CellNode], sides: InterfaceSides, inner: bool
    ) -> list[Face]:
        """Return the faces in the common face of two boxes: one, or one for each connected part of it in the plane."""
        length = float(min(leaf.lengths[box_face.axis] for leaf in leaves))
        # Coefficients may differ at the two ends of a period, even if they are continuous inside.
        position = float(box_face.bounds[box_face.axis, 0])
        flux = self.jumping and (shift != 0 or self.interfaces.flux_at(box_face.axis, position))
        faces = []
        for bounds in [box_face.bounds] if inner else self.clipper.face_parts(box_face, length, sides):
            points, weights = gauss_grid(bounds, self.basis.nodes)
            if not inner:
                inside = self.clipper.inside_both(points, box_face.axis, length, sides)
                if not inside.any():
                    continue
                points, weights = points[inside], weights[inside] / weights[inside].sum()
            columns = self._uncut_traces if inner else self._trace_basis(points, weights, bounds)
            other = points.copy()
            other[:, box_face.axis] += shift
            faces.append(Face(box_face.cells, box_face.axis, (points, other), weights, columns, length, flux=flux))
        return faces

    def _interface_faces(
        self, bounds: Array, length: float, interface: Interface, cells: tuple[int, int], sides: InterfaceSides
    ) -> list[Face]:
        """Return the part of an interface between two cells, in the intersection of their boxes."""
        count = 2 * self.basis.nodes if len(bounds) == 2 else self.basis.nodes
        points, weights = interface.within(bounds, count)
        inside = self.clipper.contains_points(points, sides)
        if inside.sum() < MIN_POINTS:
            return []
        points, weights = points[inside], weights[inside] / weights[inside].sum()
        box = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
        flat = box[:, 1] - box[:, 0] < COMPUTED * (bounds[:, 1] - bounds[:, 0])
        box[flat, 1] = box[flat, 0]
        columns = self._trace_basis(points, weights, box)
        normals = interface.normals(points)
        return [Face(cells, 0, (points, points), weights, columns, length, normals, interface.flux)]

    @cached_property
    def _uncut_traces(self) -> Array:
        """The trace polynomials of a face that the boundary does not cut; they are the same for all such faces."""
        bounds = np.array([(0.0, 0.0), *[(-1.0, 1.0)] * (self.basis.dim - 1)])
        return self._trace_basis(*gauss_grid(bounds, self.basis.nodes), bounds)

    def _trace_basis(self, points: Array, weights: Array, bounds: Array) -> Array:
        """Return polynomials (P, t) on points, orthonormal with the weights, without those below the cutoff."""
        root, degree = (
            np.sqrt(weights)[:, None],
            self.basis.degree - self.basis.tuning.trace_degree_reduction[self.basis.dim - 1],
        )
        columns, sizes, _ = np.linalg.svd(polynomials(points, bounds, degree) * root, full_matrices=False)
        return np.asarray(columns[:, sizes > self.basis.tuning.trace_cutoff * sizes[0]] / root)


def _common(one: Array, other: Array) -> Array:
    return np.stack([np.maximum(one[:, 0], other[:, 0]), np.minimum(one[:, 1], other[:, 1])], axis=1)


def _all_faces(tree: CellNode, periodic: tuple[int, ...]) -> Iterator[tuple[CellNode, BoxFace, float]]:
    """Iterate over (node, face in its plane, shift to its other side); periodic faces belong to the root."""
    for node, first in _inner_nodes(tree):
        yield from ((node, box_face, 0.0) for box_face in box_faces(node, first))
    for axis in periodic:
        lowest, highest = tree.bounds[axis]
        below = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 1] == highest]
        above = [(k, leaf) for k, leaf in enumerate(tree.leaves) if leaf.bounds[axis, 0] == lowest]
        yield from ((tree, box_face, lowest - highest) for box_face in touching(below, above, axis))


def _all_levels(tree: CellNode) -> Iterator[tuple[CellNode, Interface, tuple[int, int]]]:
    """Iterate over the nodes that are divided along an interface, with two leaves on its two sides."""
    for node, first in _inner_nodes(tree):
        if isinstance(node.level, Interface) and node.children is not None:
            lower, upper = (len(child.leaves) for child in node.children)
            for one in range(first, first + lower):
                for other in range(first + lower, first + lower + upper):
                    yield node, node.level, (one, other)


def _inner_nodes(tree: CellNode) -> Iterator[tuple[CellNode, int]]:
    """Iterate over the inner nodes, each with the number of its first leaf."""
    stack = [(tree, 0)]
    while stack:
        node, first = stack.pop()
        if node.children is not None:
            lower, upper = node.children
            stack += [(lower, first), (upper, first + len(lower.leaves))]
            yield node, first
