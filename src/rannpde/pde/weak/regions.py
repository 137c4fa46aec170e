"""The regions into which curved interfaces divide a domain in the plane, each with an exact boundary of its own.

A coefficient that jumps across the zeros of formulas is smooth where the signs of all formulas are fixed. Lines,
circles and ellipses become exact arcs, other formulas curves that are followed to rounding. Cells are the parts of the
boxes of a tree in one region, so that no cell holds two materials, and pieces of interfaces are faces like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.planar import PROBE, Planar
from rannpde.domains.boundary.solids import Branch, Leaf, Solid, SublevelSet, Tree, padded, tree_leaves, tree_level
from rannpde.domains.boundary.tracing import Wall
from rannpde.domains.boundary.walls import HalfPlane, Inside
from rannpde.domains.domain import Domain
from rannpde.errors import InputError
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.rounding import COMPUTED

REGION_SAMPLES = 64
"""Points of the domain, and of each piece of an interface, beside which regions are sought: areas show misses."""


@dataclass(frozen=True, eq=False)
class LevelWall(Wall):
    """An interface as a wall, negative where its formula is."""

    interface: Interface

    def both(self, points: Array) -> tuple[Array, Array]:
        values = self.interface.evaluated([self.interface.formula, *self.interface.slopes], points)
        return values[:, 0], values[:, 1:]


@dataclass(frozen=True, eq=False)
class MaterialRegion:
    """A part of a domain on which the formulas of all interfaces have these signs, -1 or 1.

    own : solids of the domain, whose walls are the boundary; those of later ones in the tree are interfaces
    """

    signs: tuple[int, ...]
    engine: Planar
    own: int

    @property
    def tree(self) -> Tree:
        """The tree of the solids of which the region consists."""
        return self.engine.tree

    def level(self, points: Array) -> Array:
        """The level (M,) of the region at points, negative inside."""
        return tree_level(self.engine.tree, points)


def material_regions(domain: Domain, interfaces: Sequence[Interface]) -> tuple[MaterialRegion, ...]:
    """All regions; NoDivergenceForm, with the reason, where their boundaries cannot be determined.

    >>> from rannpde.domains import Box
    >>> x, y = sympy.symbols("x y", real=True)
    >>> lines = [Interface(formula, (x, y), True) for formula in (x + y, x**2 + y**2 - 0.25)]
    >>> [region.signs for region in material_regions(Box(x=(-1, 1), y=(-1, 1)), lines)]
    [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    """
    clip = padded(np.asarray(domain.bounds, dtype=float))
    try:
        solids = [interface_solid(one, clip) for one in interfaces]
        samples = [domain.sample(REGION_SAMPLES, rng=0)]
        for solid, _ in solids:
            samples += [_beside(solid, clip)]
        points = np.concatenate(samples)
        points = points[tree_level(domain.tree, points) < 0]
        point_signs = np.stack([np.where(one.value(points) < 0, -1, 1) for one in interfaces], axis=1)
        own = len(list(tree_leaves(domain.tree)))
        regions = []
        for signs in sorted({tuple(row) for row in point_signs.tolist()}):
            tree = _region_tree(domain.tree, solids, signs)
            regions.append(MaterialRegion(signs, Planar(tree, clip), own))
        area, whole = sum(region.engine.area for region in regions), Planar(domain.tree, clip).area
        for region in regions:
            _ = region.engine.vertices  # refuses regions that touch themselves
    except InputError as reason:
        raise NoDivergenceForm(f"coefficients jump along curves that cannot be followed: {reason}") from None
    if abs(area - whole) > np.sqrt(COMPUTED) * whole:
        raise NoDivergenceForm("coefficients jump along curves that divide the domain too finely")
    return tuple(regions)


def _region_tree(domain: Tree, solids: Sequence[tuple[Solid, bool]], signs: Sequence[int]) -> Tree:
    """The tree of a region, with the solids of the domain first and those of all interfaces in their order."""
    tree = domain
    for (solid, inside), sign in zip(solids, signs, strict=True):
        tree = Branch("intersection" if (sign < 0) == inside else "difference", (tree, Leaf(solid)))
    return tree


def _beside(solid: Solid, clip: Array) -> Array:
    """Points close to the boundary of a solid, on both sides of it."""
    samples = [np.empty((0, 2))]
    size = float(np.linalg.norm(clip[:, 1] - clip[:, 0]))
    for chart in solid.charts(clip):
        piece = np.repeat(np.arange(chart.count), REGION_SAMPLES)
        share = np.tile((np.arange(REGION_SAMPLES) + 0.5) / REGION_SAMPLES, chart.count)[:, None]
        points = chart.place(piece, share)
        step = 10 * PROBE * size * chart.outward(points)
        samples += [points - step, points + step]
    return np.concatenate(samples)


def interface_solid(interface: Interface, clip: Array) -> tuple[Solid, bool]:
    """A solid bounded by an interface, and whether its formula is negative inside."""
    formula = _without_root(interface.formula)
    if formula.is_polynomial(*interface.symbols):
        polynomial = sympy.Poly(formula, *interface.symbols)
        if polynomial.total_degree() == 1:
            slope = np.array([float(polynomial.coeff_monomial(symbol)) for symbol in interface.symbols])
            length = float(np.linalg.norm(slope))
            return HalfPlane(slope / length, -float(polynomial.coeff_monomial(1)) / length), True
        if polynomial.total_degree() == 2:
            ellipse = _ellipse(polynomial, interface.symbols)
            if ellipse is not None:
                return ellipse
    size = float(np.linalg.norm(clip[:, 1] - clip[:, 0]))
    return SublevelSet(LevelWall(interface), clip, size), True


def _ellipse(polynomial: sympy.Poly, symbols: Sequence[sympy.Symbol]) -> tuple[Solid, bool] | None:
    """The ellipse on which a quadratic polynomial vanishes, and whether it is negative inside; None if it is none."""
    x, y = symbols
    mixed = 0.5 * float(polynomial.coeff_monomial(x * y))
    form = np.array([[float(polynomial.coeff_monomial(x**2)), mixed], [mixed, float(polynomial.coeff_monomial(y**2))]])
    values, axes = np.linalg.eigh(form)
    if values[0] * values[1] <= COMPUTED * np.abs(values).max() ** 2:
        return None
    slope = np.array([float(polynomial.coeff_monomial(symbol)) for symbol in symbols])
    centre = -0.5 * np.linalg.solve(form, slope)
    rest = float(polynomial.coeff_monomial(1)) + 0.5 * float(slope @ centre)
    squares = -rest / values
    if squares.min() <= 0:
        return None
    matrix = axes * np.sqrt(squares)
    return Inside(centre, matrix if np.linalg.det(matrix) > 0 else matrix[:, ::-1]), bool(values[0] > 0)


def _without_root(formula: sympy.Expr) -> sympy.Expr:
    """a (s² - c²) for a formula a (√s² - c) of a positive c, which has its sign: circles are often written by radii.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> _without_root(2 * sympy.sqrt(x**2 + y**2) - 3)
    2*x**2 + 2*y**2 - 9/2
    """
    roots = [one for one in formula.atoms(sympy.Pow) if one.exp == sympy.Rational(1, 2) and one.base.free_symbols]
    if len(roots) != 1:
        return formula
    unknown = sympy.Dummy()
    polynomial = formula.xreplace({roots[0]: unknown})
    if not polynomial.is_polynomial(unknown) or polynomial.free_symbols != {unknown}:
        return formula
    coefficients = sympy.Poly(polynomial, unknown).all_coeffs()
    if len(coefficients) != 2 or not -coefficients[1] / coefficients[0] > 0:
        return formula
    factor, radius = coefficients[0], -coefficients[1] / coefficients[0]
    return sympy.expand(factor * (roots[0].base - radius**2))


# ------------------------------------------------------------------------------------------------------------- trees


@dataclass(frozen=True, eq=False)
class RegionLookup:
    """Which cell a point of a leaf belongs to, as a tree whose leaves are divided along the interfaces in them."""

    regions: tuple[MaterialRegion, ...]
    interfaces: tuple[Interface, ...]

    def divided(self, tree: CellNode, leaves: Array, materials: Array) -> tuple[CellNode, Array]:
        """The tree with leaves divided, and the cell of each of its leaves; leaves (C,), materials (C,) : of cells."""
        held: dict[CellNode, list[int]] = {}
        every = tree.leaves
        for cell, leaf in enumerate(leaves.tolist()):
            held.setdefault(every[leaf], []).append(cell)
        homes: list[int] = []
        grown = self._grown(tree, held, materials, homes)
        return grown, np.array(homes)

    def _grown(self, node: CellNode, held: dict[CellNode, list[int]], materials: Array, homes: list[int]) -> CellNode:
        if node.children is not None:
            lower, upper = (self._grown(child, held, materials, homes) for child in node.children)
            return replace(node, children=(lower, upper))
        return self._by_cells(node, held.get(node, [0]), materials, homes)

    def _by_cells(self, node: CellNode, cells: list[int], materials: Array, homes: list[int]) -> CellNode:
        """A leaf divided until every part holds one cell."""
        signs = np.array([self.regions[materials[cell]].signs for cell in cells])
        differ = np.flatnonzero(np.ptp(signs, axis=0))
        if not len(differ):
            homes.append(cells[0])
            return node
        which = int(differ[0])
        node = node.divided(self.interfaces[which])
        assert node.children is not None
        below = [cell for cell, sign in zip(cells, signs[:, which], strict=True) if sign < 0]
        above = [cell for cell in cells if cell not in below]
        lower, upper = (
            self._by_cells(child, some, materials, homes)
            for child, some in zip(node.children, (below, above), strict=True)
        )
        return replace(node, children=(lower, upper))
