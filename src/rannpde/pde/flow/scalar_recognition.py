"""Recognition of the scalars that a flow carries: their equations and conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy

from rannpde.domains.boundary.sides import Side
from rannpde.pde.flow.equations import constant_coefficient, lower_order
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.flow.scalars import TransportedScalar
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.rounding import COMPUTED


def carried_scalars(problem: Problem, velocity: tuple[str, str]) -> dict[str, str]:
    """Equation → the scalar whose diffusion it states, of all fields but velocity and pressure."""
    scalars: dict[str, str] = {}
    for name, expression in problem.expressions.items():
        second = _diffused(expression)
        if len(second) == 1 and not second & set(velocity):
            scalars[name] = second.pop()
    if len(scalars) != len(problem.fields) - 3 or len(set(scalars.values())) != len(scalars):
        raise NoFlow("not every field but velocity and pressure has an equation of its own with its diffusion")
    return scalars


def _diffused(expression: Expression) -> set[str]:
    """Fields of which there are second derivatives."""
    return {jet.field for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.order == 2 and p != 0}


def transported(problem: Problem, name: str, field: str, velocity: tuple[str, str], pressure: str) -> TransportedScalar:
    """The diffusivity and R of the equation of a scalar."""
    expression, second = problem.expressions[name], {}
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        if jet.order > 2 or (jet.field == pressure and partial != 0):
            raise NoFlow(f"equation {name!r} has derivatives of order above two or the pressure {pressure!r}")
        if jet.order == 2 and partial != 0:
            second[jet] = constant_coefficient(name, partial, f"the diffusivity of {field!r}")
    along = [second.pop(Jet(field, index), 0.0) for index in ((2, 0), (0, 2))]
    if second or abs(along[0] - along[1]) > COMPUTED * abs(along[0]):
        raise NoFlow(f"the second derivatives of equation {name!r} are no multiple of the Laplacian of {field!r}")
    factor = -1.0 if along[0] > 0 else 1.0
    rest = lower_order(expression, factor, 0, velocity, pressure)
    for jet, partial in zip(rest.jets, rest.partials, strict=True):
        if jet.order and jet.field != field and sympy.expand(partial) != 0:
            raise NoFlow(f"equation {name!r} has first derivatives of {jet.field!r} beside those of {field!r}")
        moving = {symbol for symbol, one in rest.symbols.items() if one.order or one.field not in velocity}
        if jet.order and jet.field == field and moving & partial.free_symbols:
            raise NoFlow(f"{field!r} is carried by a velocity that depends on more than the flow")
    used = {s: jet for s, jet in rest.symbols.items() if not jet.order or jet.field == field}
    return TransportedScalar(field, name, -factor * along[0], replace(rest, symbols=used))


def check_scalars(form: FlowForm) -> None:
    """Check that conditions of scalars are values, fluxes or combinations of both on sides, and that the level of each
    scalar is determined by a condition or by its equation."""
    for term in form.scalar_terms:
        if len(term.expression.fields) != 1:
            raise NoFlow(f"condition {term.name!r} has several fields, one of them carried by the flow")
        region = term.region
        if term.kind != "boundary" or not isinstance(region, Side):
            raise NoFlow(f"condition {term.name!r} is no condition on the boundary")
        points = region.sample(COEFFICIENT_SAMPLES, rng=0)
        normals = region.normals(points)
        slopes = form.diffusion.condition(term, points, normals)[2]
        if slopes is None:
            continue
        across = np.einsum("mfj,mj->mf", slopes, normals)
        along = slopes - across[:, :, None] * normals[:, None]
        if np.abs(along).max() > COMPUTED * np.abs(slopes).max() or not (np.abs(across).max(axis=1) > 0).all():
            raise NoFlow(f"condition {term.name!r} is no flux along the normal")
    for one in form.scalars:
        determined = any(
            jet.field == one.field and not jet.order for term in form.scalar_terms for jet in term.expression.jets
        )
        if not determined and not any(jet.field == one.field and not jet.order for jet in one.rest.jets):
            raise NoFlow(f"no condition determines the level of {one.field!r}")
