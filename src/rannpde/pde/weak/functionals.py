"""Outputs as functionals on the functions of cells: their value at a solution, and their derivative as a load.

Integrals over the domain, over sides, over shapes and lines inside, means of them, and values at points can be
differentiated along the functions of cells; products and powers of fields are linearised at the solution. A flux
through a side, r·(n·A∇u), is the weak residual there (``fluxes``): its derivative is the load of the boundary values
-r, which the adjoint then takes on that side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.domains.domain import SpaceTime
from rannpde.domains.quadrature.adaptive import integrate_patches
from rannpde.domains.quadrature.patches import PlacedPoints
from rannpde.domains.region import composite_gauss, tensor_rule
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.problem.output_expression import OutputExpression
from rannpde.pde.problem.output_region import OutputRegion, output_region
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet
from rannpde.pde.statement.kinks import KINKED
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import lies_on_side
from rannpde.pde.weak.samples import CellSamples, patch_samples, point_samples, volume_samples
from rannpde.rounding import COMPUTED, ROUNDED

SHAPE_PANELS, SHAPE_NODES = 4, 12
"""Panels along each axis of a patch of a shape or line inside, and Gauss nodes of each, for the load of the adjoint."""
QUADRATURE_POINTS = 2**18
"""Points at most at which an integral over a shape or line inside is evaluated."""


@dataclass(frozen=True, eq=False)
class LinearisedOutput:
    """An output at a solution on one mesh.

    value, error : of the output, and of its quadrature and rounding
    load (C, F, k) : its derivative along the functions of cells
    given, natural (B, q, F) : boundary values and fluxes of the adjoint on patches
    """

    value: float
    error: float
    load: Array
    given: Array
    natural: Array


@dataclass(frozen=True, eq=False)
class WeightableOutput:
    """An output whose derivative is a load on the functions of cells.

    region : of an integral, None for values at points; point : that of an expression at one point, None where the
    expression contains its points; mean : whether the integral is divided by the measure of its region
    """

    name: str
    expression: OutputExpression
    region: OutputRegion | None
    point: tuple[float, ...] | None
    mean: bool

    def density(self, problem: Problem, points: Array, values: Array) -> Array | None:
        """∂q/∂u (M, F) inside the domain, at points (M, d) where the fields are values (M, F).

        None where the adjoint has sources that are no functions: derivatives of fields in an integral over the volume.
        """
        derivatives = np.zeros_like(values)
        if self.region is None or self.region.extent < points.shape[1]:
            return derivatives
        if self.expression.order:
            return None
        known = problem.vocabulary.at(points)
        jets = {jet: values[:, problem.fields.index(jet.field)] for jet in self.expression.jets}
        _, partials = self.expression.expression.linearised(known, jets)
        for jet, partial in zip(self.expression.jets, partials, strict=True):
            derivatives[:, problem.fields.index(jet.field)] += partial
        inside = np.zeros(len(points), dtype=bool)
        for one in self.region.regions:
            inside |= one is problem.domain or np.asarray(one.contains(points))
        return derivatives * inside[:, None] * self._factor

    @property
    def _rounding(self) -> float:
        """Relative rounding of a value: derivatives, and fluxes above all, lose digits by cancellation."""
        return COMPUTED if self.expression.order else ROUNDED

    @property
    def _factor(self) -> float:
        return 1.0 / sum(one.measure for one in self.region.regions) if self.mean and self.region is not None else 1.0

    def linearised(self, local: LocalMatrices, weights: Array, network: CellNetwork) -> LinearisedOutput | None:
        """The output at fields of weights (C, F, k), which are the network; None where it has no derivative there."""
        zero = np.zeros_like(local.values), np.zeros_like(local.natural)
        load = np.zeros((local.mesh.count, local.fields, local.size))
        if self.region is None:
            value, size = self._at_points(local, weights, network, load)
            return LinearisedOutput(value, self._rounding * size, load, *zero)
        if self.region.sided:
            return self._on_sides(local, weights, load)
        if self.region.regions and self.region.regions[0] is local.form.problem.domain:
            parts = [
                self._integrated(one, weights, load)
                for one in volume_samples(local.functions, np.arange(local.mesh.count))
            ]
            value = self._factor * sum(parts)
            return LinearisedOutput(value, self._rounding * abs(value), self._factor * load, *zero)
        return self._inside(local, weights, network, load)

    def _integrated(self, samples: CellSamples, weights: Array, load: Array) -> float:
        """∫ q over samples, whose derivative is added to the load."""
        value, density = self._linear_parts(samples, samples.jets(weights))
        np.add.at(load, samples.cells, samples.tested(density))
        return float((samples.weights * value).sum())

    def _linear_parts(self, samples: CellSamples, jets: Array) -> tuple[Array, Array]:
        """q (P, q) and its derivatives (P, q, F, J) by values and slopes, at jets (P, q, F, J)."""
        words, fields = self.expression.vocabulary, self.expression.fields
        shape, dim = samples.weights.shape, samples.points.shape[2]
        normals = None if samples.normals is None else samples.normals.reshape(-1, dim)
        known = words.at(samples.points.reshape(-1, dim), normals)
        own = {jet: jets[:, :, fields.index(jet.field), _slot(jet)].ravel() for jet in self.expression.jets}
        value, partials = self.expression.expression.linearised(known, own)
        density = np.zeros(jets.shape)
        for jet, partial in zip(self.expression.jets, partials, strict=True):
            density[:, :, fields.index(jet.field), _slot(jet)] += np.broadcast_to(partial, len(own[jet])).reshape(shape)
        return np.broadcast_to(value, int(np.prod(shape))).reshape(shape), density

    # ------------------------------------------------------------------------------------------------------ points

    def _at_points(
        self, local: LocalMatrices, weights: Array, network: CellNetwork, load: Array
    ) -> tuple[float, float]:
        """The value of an expression at a point, or of one in values at points, and the size of its parts."""
        if self.point is not None:
            point = np.array([self.point])
            (one,) = point_samples(local, network.cells_at(point), point, np.ones(1))
            value = self._integrated(one, weights, load)
            return value, abs(value)
        anchors = self.expression.anchors
        evaluations: list[tuple[CellSamples, int, int, float]] = []
        for anchor in anchors:
            point = np.array([anchor.point])
            (one,) = point_samples(local, network.cells_at(point), point, np.ones(1))
            field, slot = self.expression.fields.index(anchor.jet.field), _slot(anchor.jet)
            evaluations.append((one, field, slot, float(one.jets(weights)[0, 0, field, slot])))
        values = {anchor.name: np.array([value]) for anchor, (*_, value) in zip(anchors, evaluations, strict=True)}
        jets = {jet: values[jet.field] if jet.order == 0 else np.zeros(1) for jet in self.expression.expression.jets}
        words = self.expression.vocabulary
        known = dict(zip(words.symbols, local.mesh.boxes[:1].mean(axis=2).T, strict=True))
        total, partials = self.expression.expression.linearised(known, jets)
        slopes = {jet.field: float(np.ravel(partial)[0]) for jet, partial in zip(jets, partials, strict=True)
                  if jet.order == 0}  # fmt: skip
        for anchor, (one, field, slot, _) in zip(anchors, evaluations, strict=True):
            density = np.zeros((1, 1, local.fields, 1 + local.layer.dim))
            density[0, 0, field, slot] = slopes[anchor.name]
            np.add.at(load, one.cells, one.tested(density))
        size = sum(abs(slopes[anchor.name] * value) for anchor, (*_, value) in zip(anchors, evaluations, strict=True))
        return float(np.ravel(total)[0]), size

    # ------------------------------------------------------------------------------------------------------- sides

    def _on_sides(self, local: LocalMatrices, weights: Array, load: Array) -> LinearisedOutput | None:
        """The value over sides, with fluxes by the weak residual; None where other derivatives occur."""
        assert self.region is not None
        patches = local.mesh.patches
        middle = patches.points.shape[1] // 2
        held, measure = np.zeros(len(patches), dtype=bool), 0.0
        for side in self.region.regions:
            assert isinstance(side, Side)
            held |= lies_on_side(side, patches.points[:, middle], patches.normals[:, middle])
            measure += side.measure
        chosen = np.flatnonzero(held)
        if not len(chosen) or abs(patches.weights[chosen].sum() - measure) > COMPUTED * measure:
            return None  # a part of a side that ends within a patch
        samples = patch_samples(local, chosen)
        jets = samples.jets(weights)
        value, density = self._linear_parts(samples, jets)
        given, natural = np.zeros_like(local.values), np.zeros_like(local.natural)
        natural[chosen] = density[..., 0]
        if self.expression.order:
            if local.form.quasilinear is not None:
                return None
            flux, penalty, drift = local.pair_coefficients(local.interior + chosen)
            across = _combination(flux, density[..., 1:])
            if across is None or drift.any() or not self.expression.linear:
                return None
            hold, robin = local.projection[chosen], local.robin[chosen]
            value = value - np.einsum("pqfj,pqfj->pq", density[..., 1:], jets[..., 1:])
            normal = np.einsum("pqkfj,pqfj->pqk", flux, jets[..., 1:])
            lack = np.einsum("pqkf,pqf->pqk", hold, jets[..., 0]) - local.values[chosen]
            acting = np.einsum("pqkl,pql->pqk", hold, normal - np.einsum("pqkl,pql->pqk", penalty, lack))
            acting += local.natural[chosen] - np.einsum("pqkf,pqf->pqk", robin, jets[..., 0])
            value = value + np.einsum("pqk,pqk->pq", across, acting)
            reaction = np.einsum("pqlk,pql->pqk", hold, across)  # of what holds the prescribed combinations
            pulled = np.einsum("pqlk,pqml,pqm->pqk", hold, penalty, reaction, optimize=True)
            free = np.einsum("pqkf,pqk->pqf", robin, across)
            density[..., 0] -= pulled + free
            density[..., 1:] = np.einsum("pqk,pqkfj->pqfj", reaction, flux)
            given[chosen], natural[chosen] = -reaction, natural[chosen] - free
        np.add.at(load, samples.cells, samples.tested(density))
        total = self._factor * float((samples.weights * value).sum())
        size = self._factor * float((samples.weights * np.abs(value)).sum())
        return LinearisedOutput(
            total, self._rounding * size, self._factor * load, self._factor * given, self._factor * natural
        )

    # -------------------------------------------------------------------------------------------- shapes and lines

    def _inside(
        self, local: LocalMatrices, weights: Array, network: CellNetwork, load: Array
    ) -> LinearisedOutput | None:
        """The value over shapes and lines inside the domain, which cut through cells."""
        assert self.region is not None
        patches = self.region.patches
        if patches is None:
            return None
        edges = np.linspace(0.0, 1.0, SHAPE_PANELS + 1)
        unit, shares = tensor_rule([composite_gauss(edges, SHAPE_NODES)] * patches.extent)
        owners = np.repeat(np.arange(patches.count), len(unit))
        placed = patches.place(owners, np.tile(unit, (patches.count, 1)))
        density = placed.density * np.tile(shares, patches.count)
        for one in point_samples(local, network.cells_at(placed.points), placed.points, density):
            self._integrated(one, weights, load)

        def columns(at: PlacedPoints) -> Array:
            values = self.expression.values(network, at.points)
            return np.stack([values, np.abs(values)], axis=1)

        integral = integrate_patches(
            columns, patches, lambda sums: ROUNDED * float(sums[1]), SHAPE_NODES, QUADRATURE_POINTS // 4
        )
        factor = self._factor if self.region.regions else 1 / float(density.sum()) if self.mean else 1.0
        zero = np.zeros_like(local.values), np.zeros_like(local.natural)
        return LinearisedOutput(
            factor * float(integral.values[0]), factor * float(integral.errors[0]), factor * load, *zero
        )  # fmt: skip


def weightable_outputs(problem: Problem) -> dict[str, WeightableOutput]:
    """The stated outputs for which an adjoint can weigh residuals: of stationary equations of second order."""
    if not problem.outputs or problem.inequalities or isinstance(problem.domain, SpaceTime):
        return {}
    if max(jet.order for term in problem.interior for jet in term.expression.jets) > 2:
        return {}
    outputs = {name: weightable_output(problem, name) for name in problem.outputs}
    return {name: one for name, one in outputs.items() if one is not None}


def weightable_output(problem: Problem, name: str) -> WeightableOutput | None:
    """A stated output, if its derivative is a load on the functions of cells; None for the others.

    Extrema, first times, second derivatives, kinks and outputs in time are such others.
    """
    output, expression = problem.outputs[name], problem.output_expressions[name]
    if isinstance(problem.domain, SpaceTime) or output.t is not None or expression.order > 1:
        return None
    if expression.expression.formula.has(*KINKED) or expression.expression.functions:
        return None
    if output.kind == "value" or (output.kind == "integral" and expression.fixed):
        if output.at is not None and (expression.anchors or expression.uses_normals):
            return None
        if output.at is None and not expression.fixed:
            return None
        point = None if output.at is None else tuple(map(float, np.ravel(output.at)))
        return WeightableOutput(name, expression, None, point, False)
    if output.kind not in ("integral", "mean") or expression.anchors:
        return None
    region = output_region(output.on, None, problem)
    sides = [isinstance(one, Side) for one in region.regions]
    if region.sided != (bool(sides) and all(sides)) and region.patches is None:
        return None
    return WeightableOutput(name, expression, region, None, output.kind == "mean")


def _slot(jet: Jet) -> int:
    """The index of a value or first derivative among 1 + d."""
    return 1 + jet.index.index(1) if jet.order else 0


def _combination(flux: Array, wanted: Array) -> Array | None:
    """r (P, q, K) with wanted (P, q, F, d) = r·flux (P, q, K, F, d); None where derivatives are no such flux."""
    shape = flux.shape[:3]
    rows = flux.reshape(*shape, -1)
    flat = wanted.reshape(*shape[:2], -1)
    coefficients = np.einsum("pqn,pqnk->pqk", flat, np.linalg.pinv(rows))
    left = np.abs(np.einsum("pqk,pqkn->pqn", coefficients, rows) - flat).max()
    return coefficients if left <= COMPUTED * np.abs(flat).max() else None
