"""Forces of a flow on sides: their bounds, and which outputs are such forces.

The traction of the method, λ and the penalised tangential traction, is the residual of momentum tested with a unit
vector at the side: it converges twice as fast as the fields, and all forces balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.flow.form import FlowForm, traction_weights
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression
from rannpde.rounding import COMPUTED

Forces = Mapping[str, tuple[float, float, float, float]]
"""Side → two components, and a bound of the error of each."""


@dataclass(frozen=True, eq=False)
class ForceRecord:
    """Side → force (2,) of one iteration, and its relative indicator."""

    forces: Mapping[str, Array]
    indicator: float


def bounded_forces(records: Sequence[ForceRecord], safety: float) -> dict[str, tuple[float, float, float, float]]:
    """The forces of the last iteration, with bounds by what they changed since the two before.

    safety : the bound over the change that it rests on. Both components have errors of one size, so that a change that
    vanishes by chance in one makes no bound small.
    """
    last = records[-1]
    found = {}
    for name, force in last.forces.items():
        changes = []
        for back, one in enumerate(records[-3:-1][::-1]):
            gain = 1.0 if back == 0 else min(safety * last.indicator / max(one.indicator, 1e-300), 1.0)
            changes.append(gain * float(np.linalg.norm(force - one.forces[name])))
        bound = safety * max(changes) if changes else np.inf
        found[name] = (float(force[0]), float(force[1]), bound, bound)
    return found


def as_force(
    problem: Problem, expression: Expression, sides: Sequence[tuple[str, Array, Array]], forces: Forces
) -> tuple[float, float] | None:
    """∫ of an expression over sides, if it is c·(p n - ν (∂_n u + κ ∇(u·n))) with a constant c, and its bound.

    sides : name, points (M, 2) and outward normals (M, 2) of each; None for any other expression
    """
    if not expression.linear or not all(name in forces for name, _, _ in sides):
        return None
    form = flow_formulation(problem)
    if any(jet.order > 1 or (jet.order and jet.field == form.pressure) for jet in expression.jets):
        return None
    weights: Array | None = None
    for _, points, normals in sides:
        here = _weights(form, expression, points, normals)
        if here is None or (weights is not None and np.abs(here - weights).max() > COMPUTED * np.abs(weights).max()):
            return None
        weights = here
    if weights is None:
        return None
    rows = np.array([forces[name] for name, _, _ in sides]).sum(axis=0)
    return float(weights @ rows[:2]), float(np.abs(weights) @ rows[2:])


def _weights(form: FlowForm, expression: Expression, points: Array, normals: Array) -> Array | None:
    """c (2,) of an expression, which is the same at all points; None where it is no such force."""
    term = Term("output", "boundary", expression, None)
    value, plain, slopes, pressure = form.coefficients(term, points, normals)
    if np.abs(value).max() > 0 or np.abs(plain).max() > 0 or not slopes.any():
        return None
    found, left = traction_weights(form.viscosity, form.transposed, slopes, pressure, normals)
    even = np.abs(found - found.mean(axis=0)).max() <= COMPUTED * np.abs(found).max()
    return -found.mean(axis=0) if left <= COMPUTED and even else None
