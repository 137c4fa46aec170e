"""First meshes of domains: trees that follow planes, singular points and curves, and the cells of any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rannpde.domains.domain import Domain, is_box
from rannpde.domains.operations.cutcells import BoxClipper
from rannpde.domains.operations.cutrules import ALL_DIGITS
from rannpde.domains.operations.solidrules import SolidClipper, smooth_walls_obstacle
from rannpde.pde.cells.interfaces.detection import Interfaces, interfaces_of
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.problem.problem import Problem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.cut_mesh import shape_mesh
from rannpde.pde.weak.edges import flat_planes, rectilinear
from rannpde.pde.weak.grading import SingularPoint, graded_tree
from rannpde.pde.weak.mesh import ConditionFinder, WeakMesh, box_mesh
from rannpde.pde.weak.regions import MaterialRegion, RegionLookup, material_regions
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solid_mesh import solid_mesh


def shape_obstacle(problem: Problem, curved_solids: bool = False) -> str:
    """Why the cells of a domain cannot be integrated over; empty where they can.

    curved_solids : whether boxes in space may be cut by curved walls
    """
    if problem.domain.dim != 2 and not rectilinear(problem.domain):
        if not curved_solids:
            return "the domain is a shape in space that is not made of boxes"
        obstacle = smooth_walls_obstacle(problem.domain)
        if obstacle:
            return obstacle
    if problem.domain.dim != 2 and problem.kinked and interfaces_of(problem).curved:
        return "coefficients jump along surfaces that are no planes across an axis"
    if any(lip.axis is None for lip in problem.slits):
        return "a slit runs along no axis"
    return ""


@dataclass(frozen=True, eq=False)
class ShapeMesher:
    """Trees of cells of a domain with its interfaces, and their meshes.

    digits : of integrals over cut cells that are correct
    """

    domain: Domain
    finder: ConditionFinder
    settings: WeakSettings
    interfaces: Interfaces = field(default_factory=Interfaces)
    digits: int = ALL_DIGITS

    @cached_property
    def regions(self) -> tuple[MaterialRegion, ...]:
        """The regions into which curved interfaces divide the domain; an empty tuple where there are none."""
        return material_regions(self.domain, self.interfaces.curved) if self.interfaces.curved else ()

    @cached_property
    def clippers(self) -> list[BoxClipper]:
        """The clippers of boxes in the plane, one per region; an empty list where cells are whole boxes."""
        if self.regions:
            return [BoxClipper(region, region.own) for region in self.regions]
        return [] if is_box(self.domain) or self.domain.dim > 2 else [BoxClipper(self.domain)]

    @cached_property
    def solid(self) -> SolidClipper | None:
        """The clipper of boxes in space; None where cells are whole boxes."""
        return SolidClipper(self.domain) if self.domain.dim == 3 and not rectilinear(self.domain) else None

    @property
    def curved(self) -> bool:
        """Whether cells in the plane have curved sides."""
        return any(clipper.curved for clipper in self.clippers)

    def tree(
        self, points: Sequence[SingularPoint], tol: float, across: int, planes: Sequence[tuple[int, float]] = ()
    ) -> CellNode:
        """Cells that follow flat interfaces, curves and singular points as far as a tolerance needs.

        across : cells along the shortest side; planes : axis and value of further planes that no cell may cross
        """
        bounds = np.asarray(self.domain.bounds, dtype=float)
        flat = [(axis, value) for axis, value, _ in self.interfaces.flat] + list(planes)
        for clipper in self.clippers:
            flat += clipper.flat_planes()
        if self.domain.dim > 2:
            flat += [(axis, value) for axis, row in enumerate(flat_planes(self.domain)) for value in row]
        return self._round_curves(graded_tree(bounds, flat, points, tol, across))

    def _round_curves(self, tree: CellNode) -> CellNode:
        """Cells in which curved sides turn by no more than about a right angle, so that no cell has a hole inside."""
        dim = self.domain.dim
        while self.clippers or self.solid is not None:
            boxes = np.array([leaf.bounds for leaf in tree.leaves])
            if self.solid is not None:
                angles = np.array([self.solid.turning(box) for box in boxes])
            else:
                turned = [clipper.clip(boxes, tree.locate, 2, rules=False).turning for clipper in self.clippers]
                angles = np.max(turned, axis=0)
            sharp = [leaf for leaf, angle in zip(tree.leaves, angles, strict=True) if angle > self.settings.turn]
            if not sharp or len(boxes) > self.settings.most_cells[dim - 1] // 2:
                break
            tree = tree.refined(dict.fromkeys(sharp, tuple(range(dim))))
        return tree

    def mesh(self, tree: CellNode, layer: HiddenLayer) -> WeakMesh:
        """The cells of a tree that the domain holds."""
        if self.solid is not None:
            return solid_mesh(self.solid, tree, self.finder, layer.nodes)
        if not self.clippers:
            return box_mesh(self.domain, tree, self.finder, layer.nodes)
        across = layer.degree + self.settings.more_nodes
        mesh = shape_mesh(self.clippers, tree, self.finder, layer.nodes, across, self.digits)
        if not self.regions:
            return mesh
        return replace(mesh, lookup=RegionLookup(self.regions, self.interfaces.curved))
