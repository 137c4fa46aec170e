"""Solids made of boxes, the edges near which their solutions are singular, and trees of cells that follow.

Near a re-entrant edge a solution is like r^λ in the plane across it, and smooth along it: cells shrink geometrically
across the edge, and not along. Where edges meet, in a vertex, cells shrink along all axes. So they do at a convex edge
between sides of different kinds, as around a clamped side of a body: cells that shrink towards that side alone leave
what varies along it within the distance of the edge, and no solution on such cells differs from another one there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, pi

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.solids import tree_leaves
from rannpde.domains.domain import Box, Domain
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.corner_exponents import corner_exponent
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.grading import BESIDE, LEVELS, until_none
from rannpde.pde.weak.mesh import ConditionFinder

RATIO = 0.25
"""Of the widths of a cell at an edge and of the cell that it is cut from. Polynomials of degree p converge like
((1 - √σ)/(1 + √σ))^p between the distances σ and 1 from a singularity, here like 3^-p, the last cells like σ^(2λ n)
after n cuts: halves would need twice as many cells for digits that the degrees in space do not have."""
DEGREE_GAIN = -log((1 - RATIO**0.5) / (1 + RATIO**0.5))
"""Logarithm of the factor by which a degree lowers the error in cells that shrink by this ratio."""
FIRST_EDGES = 1 / 3
"""Share of the cuts that resolve an edge which a first mesh has: cells are many in space, the loop adds more."""


def rectilinear(domain: Domain) -> bool:
    """Whether a domain is a box, or made of boxes by union, intersection and difference."""
    return domain.dim > 1 and all(isinstance(leaf.solid, Box) for leaf in tree_leaves(domain.tree))


def flat_planes(domain: Domain) -> list[list[float]]:
    """The coordinates of sides of the boxes of a domain, by axis, the ends of the domain included."""
    bounds = np.asarray(domain.bounds, dtype=float)
    planes = []
    for axis, (low, high) in enumerate(bounds):
        slack = 1e-12 * max(abs(low), abs(high), high - low)
        boxes = [leaf.solid for leaf in tree_leaves(domain.tree) if isinstance(leaf.solid, Box)]
        values = sorted({float(end) for box in boxes for end in box.bounds[axis]})
        inner = [value for value in values if low + slack < value < high - slack]
        planes.append([float(low), *inner, float(high)])
    return planes


@dataclass(frozen=True)
class SingularEdge:
    """A segment along an axis, at these coordinates of the other axes, near which a solution is like r^exponent.

    point : the coordinates, of which that along the edge is the middle; span : its ends; across : axes along which
    cells at the edge are cut. A vertex, where re-entrant edges meet, has the axis -1 and no span.
    """

    axis: int
    point: tuple[float, ...]
    span: tuple[float, float]
    exponent: float
    across: tuple[int, ...]

    def levels(self, tol: float) -> int:
        """How often cells at the edge are divided in a first mesh for an error of ``tol``."""
        return min(ceil(FIRST_EDGES * log(tol) / (2 * self.exponent * log(RATIO))), LEVELS // 2)

    def touched(self, bounds: Array, slack: Array) -> bool:
        """Whether the edge runs along or through a closed box (d, 2), not only to one of its corners; of a vertex,
        whether it lies in the box."""
        for axis, (low, high) in enumerate(bounds):
            room = min(slack[axis], (high - low) / 4)
            if axis == self.axis:
                if not (self.span[0] < high - room and self.span[1] > low + room):
                    return False
            elif not low - room <= self.point[axis] <= high + room:
                return False
        return True


@dataclass(frozen=True, eq=False)
class SolidEdge:
    """A piece of an edge of a rectilinear solid along an axis, with its ends, at a point (3,) in its middle.

    axes : those across it; odd (2,) : signs along them of the quadrant that is alone inside, or alone outside
    """

    axis: int
    axes: tuple[int, int]
    point: Array
    span: tuple[float, float]
    odd: Array
    reentrant: bool

    def beside(self, size: float) -> tuple[Array, Array]:
        """Points (2, 3) on the sides across both axes, near the edge in a solid of a size, and normals there."""
        points, normals = np.stack([self.point] * 2), np.zeros((2, 3))
        for number, axis in enumerate(self.axes):
            points[number, self.axes[1 - number]] += BESIDE * size * self.odd[1 - number]
            normals[number, axis] = self.odd[number] if self.reentrant else -self.odd[number]
        return points, normals


def solid_edges(domain: Domain) -> list[SolidEdge]:
    """All edges of a rectilinear solid, in pieces that end at the planes of its sides."""
    planes = [np.array(values) for values in flat_planes(domain)]
    middles = [0.5 * (values[1:] + values[:-1]) for values in planes]
    grid = np.stack([one.ravel() for one in np.meshgrid(*middles, indexing="ij")], axis=1)
    inside = (domain.level(grid) < 0).reshape([len(one) for one in middles])
    padded = np.pad(inside, 1)
    edges = []
    for axis in range(3):
        b, c = (a for a in range(3) if a != axis)
        turned = np.moveaxis(padded, axis, 0)[1:-1]
        for k, i, j in np.ndindex(len(middles[axis]), len(planes[b]), len(planes[c])):
            around = turned[k, i : i + 2, j : j + 2]
            count = int(around.sum())
            if count in (1, 3):
                odd = np.argwhere(around == (count == 1))[0]  # the quadrant that differs from the three others
                point = np.zeros(3)
                point[axis], point[b], point[c] = middles[axis][k], planes[b][i], planes[c][j]
                span = (float(planes[axis][k]), float(planes[axis][k + 1]))
                edges.append(SolidEdge(axis, (b, c), point, span, np.where(odd == 1, 1.0, -1.0), count == 3))
    return edges


def singular_edges(form: WeakForm, finder: ConditionFinder) -> tuple[SingularEdge, ...]:
    """All edges of a rectilinear solid near which the solution is singular whatever the data are."""
    domain = form.problem.domain
    if domain.dim != 3 or not rectilinear(domain):
        return ()
    size = float(np.diff(np.asarray(domain.bounds, dtype=float), axis=1).max())
    edges = solid_edges(domain)
    kinds = _kinds(form, finder, edges, size)
    known: dict[tuple[bytes, ...], float] = {}
    singular = []
    for edge, (first, second) in zip(edges, kinds, strict=True):
        diffusion = _across_edge(form, edge, size)
        configuration = (np.array([*edge.axes, *edge.odd, edge.reentrant], dtype=float), diffusion, first, second)
        key = tuple(one.tobytes() for one in configuration)
        if key not in known:
            known[key] = _exponent(diffusion, edge, (first, second))
        if known[key] < 1:
            point = tuple(edge.point.tolist())
            singular.append(SingularEdge(edge.axis, point, edge.span, known[key], edge.axes))
    return (*singular, *_vertices(singular))


def _vertices(edges: Sequence[SingularEdge]) -> list[SingularEdge]:
    """Points where re-entrant edges of different directions end."""
    ends: dict[tuple[float, ...], list[SingularEdge]] = {}
    for edge in edges:
        if len(edge.across) > 1:
            for value in edge.span:
                point = (*edge.point[: edge.axis], value, *edge.point[edge.axis + 1 :])
                ends.setdefault(point, []).append(edge)
    return [
        SingularEdge(-1, point, (0.0, 0.0), min(edge.exponent for edge in own), (0, 1, 2))
        for point, own in ends.items()
        if len({edge.axis for edge in own}) > 1
    ]


def _kinds(
    form: WeakForm, finder: ConditionFinder, edges: Sequence[SolidEdge], size: float
) -> list[tuple[Array, Array]]:
    """Projections (K, K) on the prescribed combinations, on the sides across both axes that meet in each edge."""
    points, normals = np.concatenate([edge.beside(size) for edge in edges], axis=1)
    groups = finder.groups(points, normals)
    projections = np.empty((len(points), form.fields, form.fields))
    for group in np.unique(groups):
        mine = np.flatnonzero(groups == group)
        projections[mine] = form.rows(finder.conditions[group], points[mine], normals[mine]).projection
    return [(one, other) for one, other in projections.reshape(-1, 2, form.fields, form.fields)]


def _across_edge(form: WeakForm, edge: SolidEdge, size: float) -> Array:
    """The diffusion (1, K, F, 2, 2) in the plane across an edge, beside it."""
    inside, axes = edge.point.copy(), list(edge.axes)
    inside[axes] += BESIDE * size * (-edge.odd if edge.reentrant else edge.odd)
    return np.ascontiguousarray(form.at(inside[None]).diffusion[:, :, :, axes][:, :, :, :, axes])


def _exponent(diffusion: Array, edge: SolidEdge, kinds: tuple[Array, Array]) -> float:
    """λ at an edge: the exponent of the problem in the plane across it."""
    quarter = {(1, 1): 0, (-1, 1): 1, (-1, -1): 2, (1, -1): 3}[int(edge.odd[0]), int(edge.odd[1])]  # the odd quadrant
    first, last = (kinds[1], kinds[0]) if quarter % 2 == 0 else (kinds[0], kinds[1])  # counter-clockwise round it
    start, opening, held = quarter * pi / 2, pi / 2, (first, last)
    if edge.reentrant:
        start, opening, held = start + pi / 2, 3 * pi / 2, (last, first)
    return corner_exponent(diffusion, np.array([start]), np.array([opening]), held)


def towards_edges(tree: CellNode, wanted: Sequence[tuple[SingularEdge, int]], most: int) -> CellNode:
    """Leaves at edges halved across them, as often as is wanted for each edge, up to ``most`` leaves in all."""
    slack = 1e-9 * tree.lengths
    left = [(edge, levels) for edge, levels in wanted if levels > 0]
    every = [edge for edge, _ in left]
    separated = until_none(tree, lambda leaf: np.logical_and(*_ends_at(every, leaf, slack)), most)
    tree = separated if len(separated.leaves) <= most else tree
    while left:
        finer = _once(tree, [edge for edge, _ in left], slack)
        if len(finer.leaves) > most:
            return tree
        tree, left = finer, [(edge, levels - 1) for edge, levels in left if levels > 1]
    return tree


def _once(node: CellNode, edges: Sequence[SingularEdge], slack: Array) -> CellNode:
    near = [edge for edge in edges if edge.touched(node.bounds, slack)]
    if not near:
        return node
    if node.children is not None:
        lower, upper = (_once(child, near, slack) for child in node.children)
        return replace(node, children=(lower, upper))
    beside = _ends_at(near, node, slack)
    fractions = np.where(beside[0] == beside[1], 0.5, np.where(beside[0], RATIO, 1 - RATIO))
    axes = tuple(sorted({axis for edge in near for axis in edge.across}))
    return node.refined({node: axes}, {node: fractions})


def _ends_at(edges: Sequence[SingularEdge], node: CellNode, slack: Array) -> Array:
    """Whether an edge that touches a cell lies at the lower, at the upper end of an axis across it, (2, d)."""
    beside = np.zeros((2, len(node.bounds)), dtype=bool)
    for edge in edges:
        if edge.touched(node.bounds, slack):
            for axis in edge.across:
                beside[:, axis] |= np.abs(node.bounds[axis] - edge.point[axis]) <= slack[axis]
    return beside


def trace_degrees(spans: Array, edges: Sequence[SingularEdge], degree: int, size: float) -> Array:
    """Degrees (N,) of the traces on faces (N, 3, 2) that lie as closely to re-entrant edges as they are small.

    At a distance r from an edge a solution has a share r^2λ of the energy, and the squared error of polynomials of
    degree p there is as much times 3^-2p: it is the same everywhere if the degree falls by λ log(1/r)/log 3. Degrees
    fall linearly with the layer in geometric meshes, as in the hp version of finite elements.
    """
    fall = np.zeros(len(spans))
    for edge in edges:
        if len(edge.across) > 1:
            point = np.array(edge.point)[:, None]
            far = np.abs(spans - point).max(axis=2)
            if edge.axis >= 0:
                far[:, edge.axis] = np.maximum(
                    edge.span[0] - spans[:, edge.axis, 0], spans[:, edge.axis, 1] - edge.span[1]
                )
            distance = np.linalg.norm(np.maximum(far, 0.0), axis=1) / size
            fall = np.maximum(fall, -edge.exponent * np.log(np.minimum(distance, 1.0)) / DEGREE_GAIN)
    return np.asarray(np.maximum(degree - np.floor(fall).astype(int), 1))
