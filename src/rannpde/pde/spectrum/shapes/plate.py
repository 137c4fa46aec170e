"""Plates on cells by a hybridised interior penalty method, for eigenvalues.

On every cell K and for deflections û and slopes θ on the faces, with the stiffness 1 and without tension,

    Σ_K ∫ Δu Δv + ∫_∂K ∂ₙΔu (v - v̂) + ∂ₙΔv (u - û) - Δu (∂ₙv - θ_v) - Δv (∂ₙu - θ) + η₀ (u - û)(v - v̂)
        + η₁ (∂ₙu - θ)(∂ₙv - θ_v)   =   λ Σ_K ∫ m u v

for all v, v̂, θ_v. The penalties come from eigenvalues of each cell: the largest ∫_∂K (∂ₙΔv)² and ∫_∂K (Δv)² over
∫_K (Δv)², so that the form is coercive whatever the functions are. Held edges have û = 0, clamped ones θ = 0; on the
others the terms are left out, and the condition is natural.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.operations.cutcells import planar_outline
from rannpde.errors import InputError
from rannpde.pde.adaptivity.loop import doerfler
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.flow.corners import wall_exponent
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.cellwise import CellGroup, CellPencil
from rannpde.pde.spectrum.shapes.plate_cells import PlateCells
from rannpde.pde.spectrum.shapes.plate_form import ShapePlate
from rannpde.pde.spectrum.shapes.protocol import BudgetCheck, ModeShape, WeightedFields, first_degree, mode_tables
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.evaluation import sampled, weak_network
from rannpde.pde.weak.grading import SingularPoint, towards_points
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.pde.weak.meshing import ShapeMesher
from rannpde.pde.weak.plate_form import BIHARMONIC
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.state import WeakResolution
from rannpde.rounding import ROOT_ROUNDED


class PlateModes:
    """The eigenvalue problem of a plate on cells."""

    def __init__(
        self,
        form: ShapePlate,
        tol: float,
        settings: SpectrumSettings,
        rng: np.random.Generator,
        check_budget: BudgetCheck,
    ) -> None:
        self.form, self.problem, self.rng, self.check_budget = form, form.problem, rng, check_budget
        self.weak = WeakSettings()
        self.finder = ConditionFinder([one.term for one in form.pencil.conditions], 2)
        self.corners = tuple(self._corner(*one) for one in self._vertices())
        self.mesher = ShapeMesher(form.problem.domain, self.finder, self.weak)
        self.tol, self.degree = tol, form.pencil.degree
        # two derivatives more than an equation of second order has
        self.first_degree = min(first_degree(tol, 2, settings, self.weak) + 2, self.weak.most_degree[1])
        points = self.problem.domain.sample(PENCIL_SAMPLES, rng=0)
        wave = np.pi / float(np.ptp(np.asarray(self.problem.domain.bounds, dtype=float), axis=1).max())
        mass = float(np.median(np.abs(self.masses(points)[-1])))
        self.scale = (form.stiffness * wave**4 / mass) ** (1 / self.degree)

    def _vertices(self) -> list[tuple[Array, float, bool]]:
        """Corners: the point, the opening, whether a clamped edge ends there."""
        outline = planar_outline(self.problem.domain)
        kinds = self.form.kinds
        corners = []
        for vertex in outline.vertices:
            if abs(vertex.angle - pi) <= ROOT_ROUNDED and vertex.labels[0] == vertex.labels[1]:
                continue
            beside = vertex.point + ROOT_ROUNDED * outline.size * np.stack([-vertex.arriving, vertex.leaving])
            normals = np.stack([[d[1], -d[0]] for d in (vertex.arriving, vertex.leaving)])
            holds = self.finder.holds(beside, normals)
            clamped = [any(h and kinds[k] == 1 for k, h in enumerate(row)) for row in holds]
            corners.append((vertex.point, vertex.angle, all(clamped)))
        return corners

    def _corner(self, point: Array, angle: float, clamped: bool) -> SingularPoint:
        """u is like r^(1 + λ): λ of a viscous flow between clamped edges, π/ω - 1 between supported ones, π/(2ω)
        where the two meet, which is less than the true one."""
        exponent = wall_exponent(angle) if clamped else pi / angle - 1
        mixed = not clamped and any(kind == 1 for kind in self.form.kinds)
        if mixed:
            exponent = min(pi / (2 * angle), 1.0)
        if exponent <= 1e-9:
            raise InputError(
                "no eigenvalues of this plate: a re-entrant corner between supported edges has no finite energy there; "
                "state -laplace(u) = w, -laplace(w) = lam*u with u = 0, w = 0, as a system of two fields"
            )
        return SingularPoint((float(point[0]), float(point[1])), min(exponent, 1.0))

    def masses(self, points: Array) -> tuple[Array, ...]:
        """Imaginary part of K, then masses (M,) of each power at points."""
        known = self.problem.vocabulary.at(points)
        plain = self.form.equation.plain(known, len(points), self.problem.fields, self.degree)
        sign = self.form.sign
        return (1j * sign * np.imag(plain[0][:, 0]), *(-sign * one[:, 0] for one in plain[1:]))

    def foundation(self, points: Array) -> Array:
        """The real reaction k (M,) at points."""
        known: dict[sympy.Symbol, Array] = self.problem.vocabulary.at(points)
        plain = self.form.equation.plain(known, len(points), self.problem.fields, self.degree)
        return self.form.sign * np.real(plain[0][:, 0])

    # ------------------------------------------------------------------------------------------------- the protocol

    def first(self) -> WeakResolution:
        return WeakResolution(self.mesher.tree(self.corners, self.tol, self.weak.first_cells[1]), self.first_degree)

    def pencil(self, resolution: WeakResolution) -> CellPencil:
        layer = HiddenLayer.sample(2, resolution.degree, self.weak, self.rng, self.mesher.curved)
        mesh = self.mesher.mesh(resolution.tree, layer)
        self._require_pairs(mesh.conditions)
        local = PlateCells(self.form, mesh, layer, self.check_budget)
        groups = []
        for cell in range(mesh.count):
            square, upper, corner, traces = local.matrices(cell)
            values, weights, points = local.functions.cell_table(cell)
            heavy = weights[:, None] * values
            ground = self.foundation(points)
            square = square + heavy.T @ (ground[:, None] * values) if ground.any() else square
            turned, *masses = (heavy.T @ (one[:, None] * values) for one in self.masses(points))
            square = square + turned if turned.any() else square
            groups.append(
                CellGroup(np.array([cell]), np.zeros(1, dtype=int), traces[None], square[None], upper[None],
                          upper.T[None], corner[None], tuple(one[None] for one in masses))
            )  # fmt: skip
            self.check_budget()
        return CellPencil(local, groups, mesh.faces * local.block, self.scale)

    def quotient(self, pencil: CellPencil, mode: ModeShape) -> tuple[complex, float]:
        """Rayleigh's quotient from values at points: products of matrices of fourth order lose twice as many digits."""
        local = pencil.local
        assert isinstance(local, PlateCells)
        if not pencil.symmetric:
            return mode.value, pencil.absolute_quotient(mode.value, mode.weights, mode.traces)
        energy, sums, mass = local.quotient(mode.weights, mode.traces, self.foundation, lambda x: self.masses(x)[1])
        return energy / mass, sums / abs(mass)

    def _require_pairs(self, conditions: Sequence[Sequence[int]]) -> None:
        """An InputError where an edge is neither held nor guided, or neither clamped nor supported."""
        for numbers in conditions:
            kinds = {self.form.kinds[number] for number in numbers}
            if not (len(kinds & {0, 3}) == 1 and len(kinds & {1, 2}) == 1):
                names = ", ".join(dict.fromkeys(self.form.pencil.conditions[number].name for number in numbers))
                raise InputError(
                    f"the edges of {names} must be held or guided (u = 0 or dn(laplace(u)) = 0), and clamped or "
                    "supported (dn(u) = 0 or laplace(u) = 0): one of each"
                )

    def indicator(self, pencil: CellPencil, mode: ModeShape) -> tuple[Array, float]:
        """Jumps of deflection and slope and (h/p)⁴ ∫ |residual|² / c of each cell, and the energy c ∫ |Δu|²."""
        local = pencil.local
        assert isinstance(local, PlateCells)
        indices = [*BIHARMONIC, (2, 0), (0, 2), (0, 0)]
        parts = mode.parts()
        samples = [sampled(local, WeightedFields(own[:, None]), indices) for own, _ in parts]
        points, shares, owners, _ = samples[0]
        tables = mode_tables(samples)
        known = self.problem.vocabulary.at(points)
        left = self.form.equation.residual(mode.value, known, len(points), lambda jet: tables[jet.index][:, 0])
        lengths = 2 * local.mesh.halfwidths.max(axis=1)[owners] / local.layer.degree
        squares = shares * lengths**4 * np.abs(left) ** 2 / self.form.stiffness
        total = np.bincount(owners, squares, local.mesh.count)
        energy = self.form.stiffness * float((shares[:, None] * np.abs(tables[2, 0] + tables[0, 2]) ** 2).sum())
        return total + sum(local.jumps(own, trace) for own, trace in parts), max(energy, 1e-300)

    def refined(
        self, resolution: WeakResolution, pencil: CellPencil, modes: Array, indicators: Array
    ) -> WeakResolution | None:
        """A higher degree and smaller cells at singular corners; at the highest degree, smaller cells where marked."""
        most = self.weak.most_degree[1]
        rough = [one for one in self.corners if one.exponent < 1]
        tree = towards_points(resolution.tree, [(one.point, one.halvings) for one in rough])
        if resolution.degree >= most:
            leaves, present = resolution.tree.leaves, set(tree.leaves)
            marked = np.flatnonzero(doerfler(indicators, self.weak.theta))
            cut = {leaves[pencil.local.mesh.leaves[cell]]: (0, 1) for cell in marked}
            tree = tree.refined({leaf: axes for leaf, axes in cut.items() if leaf in present})
        if len(tree.leaves) > self.weak.most_cells[1] // 4:
            return None
        return WeakResolution(tree, min(resolution.degree + 2, most))

    def functions(
        self, resolution: WeakResolution, pencil: CellPencil, mode: ModeShape
    ) -> tuple[CellNetwork, CellNetwork | None]:
        networks = [weak_network(pencil.local, WeightedFields(own[:, None])) for own, _ in mode.parts()]
        return networks[0], networks[1] if len(networks) > 1 else None
