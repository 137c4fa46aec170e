"""Dual-weighted residuals: the error of outputs, and refinement where they need it.

For an output with the derivative j, the adjoint z of the weak form, B(w, z) = j(w) for all w, turns residuals into
errors of the output (Becker and Rannacher, 2001). By Galerkin orthogonality,

    J(u) - J(u_h)  =  B(u - u_h, z - z_h)  ≲  E_h = Σ_K η_K(u_h) η_K(z_h) ,

with the local indicators η_K of the energy of both errors: a cell counts as far as the solution is wrong there and the
output depends on it. The products mark cells. Their sum is a bound up to a constant that differs from cell to cell, and
is rarely above 1/20. The residual of a coarser solution u_H, weighted by the adjoint of the richer space, needs no
constant: it is J(u_h) - J(u_H), the error of u_H but for that of u_h. So the bound is the smaller of E_h and

    E_H · max_m |J(u_h) - J(u_m)| / E_m

over the solutions u_m before, the last of which is u_H: the error of that one, where a difference that vanishes by
chance makes no bound small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.adjoint import AdjointSystem, LinearAdjoint, TangentAdjoint
from rannpde.pde.weak.evaluation import sampled
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.functionals import WeightableOutput
from rannpde.pde.weak.residual_indicators import residual_indices, residual_squares, slopes_of
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution, WeakState


class NoAdjoint(Exception):
    """Raised where an output has no derivative along the functions of cells."""


@dataclass(frozen=True, eq=False)
class WeightedOutput:
    """An output of one solution.

    value, error : of the output, and of its integration and of the algebra
    products (C,) : η_K(u) η_K(z), whose sum bounds the error up to a constant
    """

    value: float
    error: float
    products: Array

    @property
    def weighted(self) -> float:
        return float(self.products.sum())


def dual_bound(records: Sequence[WeightedOutput], safety: float) -> float:
    """A bound of the error of an output of the last solution; infinite where there is no solution before it.

    safety : the bound over the error that the differences indicate
    """
    last, earlier = records[-1], records[:-1]
    if not earlier:
        return np.inf
    constants = [abs(last.value - one.value) / max(one.weighted, 1e-300) for one in earlier]
    shown = max(constants) * earlier[-1].weighted if len(earlier) > 1 else np.inf
    return min(safety * shown, last.weighted) + last.error


def bounded_outputs(records: Sequence[Mapping[str, WeightedOutput]], safety: float) -> dict[str, tuple[float, float]]:
    """Output → value and bound, of the outputs that all solutions have."""
    names = [name for name in records[-1] if all(name in one for one in records)] if records else []
    return {name: (records[-1][name].value, dual_bound([one[name] for one in records], safety)) for name in names}


@dataclass(frozen=True, eq=False)
class GoalState:
    """A solution with its outputs."""

    state: WeakState
    outputs: Mapping[str, WeightedOutput]


class GoalDiscretisation:
    """The weak form for the adaptive loop, refined for outputs.

    goals : output → relative error that is wanted of it; others are computed without a goal
    """

    def __init__(
        self, weak: WeakDiscretisation, outputs: Sequence[WeightableOutput], goals: Mapping[str, float]
    ) -> None:
        self.weak, self.outputs, self.goals = weak, outputs, goals
        self.records: dict[str, list[WeightedOutput]] = {}
        self.field_estimate = np.inf
        weak.with_adjoints = weak.goal_oriented = True

    def solve(self, resolution: WeakResolution) -> GoalState:
        """One solution, and one adjoint for each output."""
        state = self.weak.solve(resolution)
        outputs = weighted_outputs(self.weak, state, self.outputs)
        if len(self.weak.motions) or not set(self.goals) <= set(outputs):
            raise NoAdjoint
        return GoalState(state, outputs)

    def estimate(self, before: GoalState | None, now: GoalState) -> float:
        """The largest bound of an output over its tolerance."""
        self.field_estimate = self.weak.estimate(None if before is None else before.state, now.state)
        for name, one in now.outputs.items():
            self.records.setdefault(name, []).append(one)
        largest = max(self.excess(name) for name in self.goals)
        self.weak.known = largest * self.weak.tol  # what singular points are halved for
        return largest

    def bound(self, name: str) -> float:
        return dual_bound(self.records[name], self.weak.settings.trust)

    def excess(self, name: str) -> float:
        """The bound of an output over its tolerance."""
        last = self.records[name][-1]
        return self.bound(name) / max(self.goals[name] * abs(last.value), 1e-300)

    def indicators(self, now: GoalState) -> Array:
        """Σ over the outputs of η_K(u) η_K(z), each over its tolerance."""
        wanted = {name: self.goals[name] * abs(now.outputs[name].value) for name in self.goals}
        parts = [now.outputs[name].products / max(size, 1e-300) for name, size in wanted.items()]
        return np.asarray(np.max(parts, axis=0))

    def refine(self, resolution: WeakResolution, now: GoalState, marked: Array) -> WeakResolution | None:
        """The refinement of the weak form, with cells that are marked by the indicators of the outputs."""
        return self.weak.refine(resolution, replace(now.state, indicators=self.indicators(now)), marked)


def weighted_outputs(
    weak: WeakDiscretisation, state: WeakState, outputs: Sequence[WeightableOutput]
) -> dict[str, WeightedOutput]:
    """Output → its value and local weighted indicators at a solution."""
    weighted: dict[str, WeightedOutput] = {}
    try:
        system = _adjoint_system(weak, state)
    except np.linalg.LinAlgError:
        return weighted
    for output in outputs:
        at = output.linearised(state.local, state.solution.weights, state.network)
        if at is not None and np.isfinite(at.value):
            adjoint = system.solve(at.load)
            squares = system.jumps(adjoint, at.given, at.natural)
            squares += _residual_squares(weak, state, output, adjoint)
            squares[state.solution.inside] = 0.0
            products = np.sqrt(np.maximum(state.indicators, 0.0) * squares)
            rounding = system.algebraic_error(at.load, state.solution.weights, adjoint)
            weighted[output.name] = WeightedOutput(at.value, at.error + weak.settings.trust * rounding, products)
    return weighted


def _adjoint_system(weak: WeakDiscretisation, state: WeakState) -> AdjointSystem:
    form = weak.form.quasilinear
    if form is None:
        assert weak.system is not None
        return LinearAdjoint(weak.system)
    return TangentAdjoint.at(state.local, form, state.solution)


def _residual_squares(
    weak: WeakDiscretisation, state: WeakState, output: WeightableOutput, adjoint: HybridState
) -> Array:
    """(h/p)² ∫ residual² / diffusion of the adjoint equation in each cell (C,).

    0 where the form is not symmetric, or the source of the adjoint is no function: only the jumps estimate the error of
    the adjoint then.
    """
    problem, form, local = weak.problem, weak.form, state.local
    nothing = np.zeros(local.mesh.count)
    if not form.symmetric:
        return nothing
    indices = residual_indices(problem)
    points, shares, owners, tables = sampled(local, adjoint, indices)
    states = sampled(local, state.solution, indices)[3]
    values = states[(0,) * weak.dim]
    source = output.density(problem, points, values)
    if source is None:
        return nothing
    known = problem.vocabulary.at(points)
    terms, fields = {term.name: term for term in problem.interior}, form.system.fields
    residuals = -source
    for k, (name, sign) in enumerate(zip(form.system.names, form.system.signs, strict=True)):
        expression = terms[name].expression
        jets = {jet: states[jet.index][:, fields.index(jet.field)] for jet in expression.jets}
        _, partials = expression.linearised(known, jets)
        for jet, partial in zip(expression.jets, partials, strict=True):
            residuals[:, k] -= sign * partial * tables[jet.index][:, fields.index(jet.field)]
    diffusion = form.diffusion(points, values, slopes_of(states, weak.dim))
    return residual_squares(local, shares, owners, residuals, diffusion)
