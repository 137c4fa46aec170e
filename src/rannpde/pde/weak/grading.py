"""Points of a problem where its solution may be singular, and trees of cells that are graded towards them.

In the plane the points are corners, changes of the kind of condition along a side, and crossings of interfaces. Near
one of them a solution is like r^λ: with λ = π/ω for an opening ω between sides of one kind, π/(2ω) between two. The
error that a cell of size h at the point leaves everywhere else is like h^(2λ), which says how often it must be halved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil, log2, pi

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.pieces import Curves, CutSide
from rannpde.domains.operations.cutcells import planar_outline
from rannpde.pde.cells.interfaces.detection import Interfaces, interfaces_of
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.weak.corner_exponents import corner_exponent, sector_diffusions
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.rounding import ROOT_ROUNDED

BESIDE = ROOT_ROUNDED
"""How far beside a corner conditions are read, as a share of the size of the domain."""
SYSTEM_EXPONENT = 0.5
"""λ at corners of systems: that of a crack, the least of all corners and changes of kind in the plane."""
LEVELS = 30
"""Halvings towards a point at most: beyond, coordinates of cells are rounding."""
RINGS = 6
"""Rings of cells round a point that must be alike to be continued to infinity, where cells of quadrants differ."""
FIRST = 0.8
"""Share of these halvings that a first mesh has: the error estimate decides whether more are needed."""
WIDEST = 2.0
"""Longest over shortest side of a first cell."""


@dataclass(frozen=True)
class SingularPoint:
    """A point near which a solution is like r^exponent, 1 where it may be smooth.

    split : whether cells must end there in any case, as where a condition ends within a side
    crossing : whether interfaces cross there, inside the domain
    """

    point: tuple[float, ...]
    exponent: float
    split: bool = False
    crossing: bool = False

    def levels(self, tol: float) -> int:
        """How often cells at the point are halved for an error of ``tol``."""
        if self.exponent >= 1:
            return 0
        if self.endless(tol):  # rings beyond are counted in, and the last cells are too small to matter in L²
            return min(ceil(log2(1 / tol)) + RINGS, LEVELS)
        return min(ceil(FIRST * log2(1 / tol) / (2 * self.exponent)), LEVELS)

    def endless(self, tol: float) -> bool:
        """Whether halving cells to rounding does not reach ``tol``, but rings round the point can be continued."""
        return self.crossing and log2(1 / tol) / (2 * self.exponent) > LEVELS

    @property
    def halvings(self) -> int:
        """Halvings that halve the error h^(2 exponent) that the cells at the point leave."""
        return ceil(1 / (2 * self.exponent))

    def more_levels(self, excess: float, least: int, most: int) -> int:
        """Halvings, within limits, that lower the error of the cells at the point by this factor."""
        return (
            int(np.clip(ceil(log2(max(excess, 1.0)) / (2 * self.exponent)), least, most)) if excess < np.inf else least
        )


def singular_points(form: WeakForm, finder: ConditionFinder, interfaces: Interfaces) -> tuple[SingularPoint, ...]:
    """All points of a problem in the plane where its solution may be singular; none in space, where they are edges."""
    domain = form.problem.domain
    if domain.dim != 2:
        return ()
    exponents: dict[tuple[float, float], float] = {}

    def add(point: Array, exponent: float) -> None:
        key = next(
            (k for k in exponents if np.allclose(k, point, atol=1e-9 * size)), (float(point[0]), float(point[1]))
        )
        exponents[key] = min(exponent, exponents.get(key, np.inf))

    outline = planar_outline(domain)
    size = outline.size
    for vertex in outline.vertices:
        if abs(vertex.angle - pi) <= ROOT_ROUNDED and vertex.labels[0] == vertex.labels[1]:
            continue  # two arcs of one smooth side meet there
        before = vertex.point - BESIDE * size * vertex.arriving
        after = vertex.point + BESIDE * size * vertex.leaving
        normals = np.stack([_right(vertex.arriving), _right(vertex.leaving)])
        last, first = _prescribed(form, finder, np.stack([before, after]), normals)
        if np.abs(first - last).max() > ROOT_ROUNDED or abs(vertex.angle - pi) > ROOT_ROUNDED:
            held = first, last
            add(vertex.point, _between(form, vertex.point, vertex.leaving, vertex.angle, held, BESIDE * size))
    inner: set[tuple[float, float]] = set()
    for point, along in ends_of_parts(form.terms):
        if any(np.allclose(point, key, atol=1e-9 * size) for key in exponents):
            continue
        beside = np.stack([point - BESIDE * size * along, point + BESIDE * size * along])
        normals = np.stack([_right(along)] * 2)
        if not finder.holds(beside, normals).any():
            normals = -normals
        groups = finder.groups(beside, normals)
        if groups[0] != groups[1]:
            one, other = _prescribed(form, finder, beside, normals)
            forward = normals[0] @ _right(along) > 0  # the domain lies on the left
            held = (other, one) if forward else (one, other)
            add(point, _between(form, point, along if forward else -along, pi, held, BESIDE * size))
            inner.add((float(point[0]), float(point[1])))
    for crossing in interfaces.corners:
        add(np.array(crossing), _crossing_exponent(form, np.array(crossing), BESIDE * size))
    for lip in form.problem.slits:
        for end, share in ((lip.start, BESIDE), (lip.end, 1 - BESIDE)):
            beside = np.repeat(lip.at(np.array([share])), 2, axis=0)
            inside = bool(domain.level(np.array([end]))[0] < -1e-9 * size)
            exponent = 1.0
            if inside:  # a whole turn from one lip to the other; normals point out of the domain
                along = (beside[0] - np.array(end)) / np.linalg.norm(beside[0] - np.array(end))
                one, other = _prescribed(form, finder, beside, np.stack([_right(along), -_right(along)]))
                exponent = _between(form, np.array(end), along, 2 * pi, (one, other), BESIDE * size)
            add(np.array(end), exponent)
            inner.add(next(key for key in exponents if np.allclose(key, end, atol=1e-9 * size)))
    corners = np.array(interfaces.corners).reshape(-1, 2)
    within = corners[domain.level(corners) < -1e-9 * size] if len(corners) else corners
    return tuple(
        SingularPoint(
            point, exponent, point in inner, bool(np.isclose(within, point, atol=1e-9 * size).all(axis=1).any())
        )
        for point, exponent in exponents.items()
    )


def form_interfaces(form: WeakForm) -> Interfaces:
    """The interfaces at which the coefficients of a form jump."""
    return interfaces_of(form.problem) if form.system.kinked else Interfaces()


@lru_cache(maxsize=1)
def known_points(form: WeakForm) -> tuple[SingularPoint, ...]:
    """The singular points of a form; those of the last one are stored, for discretisations of different tolerances."""
    return singular_points(form, ConditionFinder(form.terms, form.fields), form_interfaces(form))


def _right(direction: Array) -> Array:
    """The outward normal of a boundary that runs in a direction, the domain on its left."""
    return np.array([direction[1], -direction[0]])


def _prescribed(form: WeakForm, finder: ConditionFinder, points: Array, normals: Array) -> tuple[Array, Array]:
    """Projections (K, K) on the prescribed combinations at two points of the boundary."""
    groups = finder.groups(points, normals)
    one, other = (
        form.rows(finder.conditions[group], points[[k]], normals[[k]]).projection[0] for k, group in enumerate(groups)
    )
    return one, other


def _between(
    form: WeakForm, point: Array, leaving: Array, angle: float, held: tuple[Array, Array], step: float
) -> float:
    """λ in an opening that begins in the direction ``leaving``; held : what is prescribed on its two sides."""
    start, opening = np.array([np.arctan2(leaving[1], leaving[0])]), np.array([angle])
    return corner_exponent(sector_diffusions(form, point, step, start, opening), start, opening, held)


def _crossing_exponent(form: WeakForm, point: Array, step: float) -> float:
    """λ where two interfaces along the axes cross."""
    starts, openings = np.arange(4) * pi / 2, np.full(4, pi / 2)
    return corner_exponent(sector_diffusions(form, point, step, starts, openings), starts, openings)


def ends_of_parts(terms: Sequence[Term]) -> list[tuple[Array, Array]]:
    """Ends of the parts of the boundary to which conditions are restricted, and unit tangents there."""
    ends = []
    for term in terms:
        region = term.region
        if isinstance(region, CutSide) and region.condition is not None and isinstance(region.border, Curves):
            for arcs in region.border.families:
                every = np.arange(len(arcs))
                for end in (0.0, 1.0):
                    share = np.full(len(arcs), end)
                    slopes = arcs.slopes(every, share)
                    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
                    ends += list(zip(arcs.place(every, share), slopes, strict=True))
    return ends


# ------------------------------------------------------------------------------------------------------------ trees


def graded_tree(
    bounds: Array, planes: Sequence[tuple[int, float]], points: Sequence[SingularPoint], tol: float, least: int
) -> CellNode:
    """Cells about as long as wide that end at flat planes, and shrink towards singular points.

    Corners between inclined sides lie inside of cells: planes through all of them would make narrow strips, and many
    cells.

    planes : axis and value of planes that no cell may cross; least : cells along the shortest side
    """
    tree = CellNode(bounds)
    slack = 1e-9 * tree.lengths
    ends = [(axis, value) for one in points if one.split or one.crossing for axis, value in enumerate(one.point)]
    for axis, value in [*planes, *ends]:
        if tree.bounds[axis, 0] + slack[axis] < value < tree.bounds[axis, 1] - slack[axis]:
            tree = _cut_at(tree, axis, value, slack[axis])
    longest = tree.lengths.min() / least

    def wide(leaf: CellNode) -> Array:
        return (leaf.lengths > WIDEST * leaf.lengths.min()) | (leaf.lengths > 3 / 2 * longest)

    tree = until_none(tree, wide)
    for one in points:
        if one.levels(tol):  # cells on all sides of the point have one size, whatever the leaves are
            tree = _even_round(tree, np.array(one.point), slack)
    return towards_points(tree, [(one.point, one.levels(tol)) for one in points])


def _even_round(tree: CellNode, point: Array, slack: Array) -> CellNode:
    """The tree with leaves round a point that are about as large as the smallest of them."""
    around = [float(leaf.lengths.max()) for leaf in leaves_at(tree, point, slack)]
    longest = 2**0.5 * min(around, default=np.inf)  # halving rounds ratios to the nearest power of two
    return _halved(tree, lambda node: touches(node, point, slack) and float(node.lengths.max()) > longest)


def _cut_at(tree: CellNode, axis: int, value: float, slack: float) -> CellNode:
    """The tree cut across a plane, but not within rounding of another cut."""
    ends = {float(end) for leaf in tree.leaves for end in leaf.bounds[axis]}
    return tree if any(abs(end - value) <= slack for end in ends) else tree.split_at(axis, value)


def until_none(tree: CellNode, wanted: Callable[[CellNode], Array], most: int = 4000) -> CellNode:
    """Leaves halved along the axes that ``wanted`` (bool, (d,)) names, until it names none or there are too many."""
    settled: set[CellNode] = set()
    while True:
        new = [leaf for leaf in tree.leaves if leaf not in settled]
        cuts = {leaf: tuple(np.flatnonzero(wanted(leaf)).tolist()) for leaf in new}
        settled.update(new)
        cuts = {leaf: axes for leaf, axes in cuts.items() if axes}
        if not cuts or len(tree.leaves) > most:
            return tree
        tree = tree.refined(cuts)


def following_data(tree: CellNode, problem: Problem, change: float, most: int) -> CellNode:
    """Leaves halved until data change by no more than this in each, where that is known."""
    data = problem.variation
    return tree if data is None else until_none(tree, lambda leaf: data.changes(leaf.bounds) > change, most)


def towards_points(tree: CellNode, wanted: Sequence[tuple[Sequence[float], int]]) -> CellNode:
    """Leaves at points halved along all axes, as often as is wanted for each point: a geometric mesh.

    Leaves beside them are no larger than far from the point, which need not be a vertex of the mesh.
    """
    slack = 1e-9 * tree.lengths
    for coordinates, levels in wanted:
        if levels > 0:
            point = np.array(coordinates)
            tree = _towards(tree, point, levels, slack)
            least = max((float(leaf.lengths.max()) for leaf in leaves_at(tree, point, slack)), default=np.inf)
            tree = _halved(tree, partial(_larger_than_far, point=point, least=least))
    return tree


def _larger_than_far(node: CellNode, point: Array, least: float) -> bool:
    """Whether a box is larger than the leaves at a point and than twice its distance from it."""
    away = np.maximum(np.maximum(node.bounds[:, 0] - point, point - node.bounds[:, 1]), 0.0)
    size = float(node.lengths.min())
    return size > least and size > 2 * float(np.linalg.norm(away))


def _halved(node: CellNode, wanted: Callable[[CellNode], bool]) -> CellNode:
    """Leaves halved along all axes until ``wanted`` holds for none.

    It must hold for every box that contains one for which it holds, so that most boxes need not be tested.
    """
    if not wanted(node):
        return node
    if node.children is None:
        return _halved(node.refined({node: tuple(range(len(node.bounds)))}), wanted)
    lower, upper = (_halved(child, wanted) for child in node.children)
    return node if (lower, upper) == node.children else replace(node, children=(lower, upper))


def leaves_at(node: CellNode, point: Array, slack: Array) -> list[CellNode]:
    """The leaves whose closed boxes contain a point."""
    if not touches(node, point, slack):
        return []
    if node.children is None:
        return [node]
    return [leaf for child in node.children for leaf in leaves_at(child, point, slack)]


def _towards(node: CellNode, point: Array, levels: int, slack: Array) -> CellNode:
    if levels <= 0 or not touches(node, point, slack):
        return node
    if node.children is not None:
        lower, upper = (_towards(child, point, levels, slack) for child in node.children)
        return replace(node, children=(lower, upper))
    finer = node.refined({node: tuple(range(len(point)))})
    return _towards(finer, point, levels - 1, slack)


def touches(leaf: CellNode, point: Array, slack: Array) -> bool:
    """Whether a point lies in the closed box of a leaf."""
    scale = np.minimum(slack, leaf.lengths / 4)
    return bool(((leaf.bounds[:, 0] - scale <= point) & (point <= leaf.bounds[:, 1] + scale)).all())
