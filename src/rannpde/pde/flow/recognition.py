"""Recognition of incompressible flows: the equations of mass and momentum, and their conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sympy

from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import SpaceTime
from rannpde.pde.flow.equations import constant_coefficient, lower_order
from rannpde.pde.flow.form import FlowForm, NoFlow
from rannpde.pde.flow.scalar_recognition import carried_scalars, check_scalars, transported
from rannpde.pde.flow.scalars import AXES
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.rounding import COMPUTED


def flow_formulation(problem: Problem) -> FlowForm:
    """The flow that a problem states; NoFlow, with the reason, where it is none.

    >>> from rannpde.domains import Box
    >>> equations = ["u*u_x + v*u_y + p_x = laplace(u)/40", "u*v_x + v*v_y + p_y = laplace(v)/40", "u_x + v_y = 0"]
    >>> walls = {"boundary": ("u = y", "v = 0")}
    >>> form = flow_formulation(Problem(equations, Box(x=(0, 1), y=(0, 1)), walls))
    >>> form.velocity, form.pressure, round(form.viscosity, 6)
    (('u', 'v'), 'p', 0.025)
    """
    if isinstance(problem.domain, SpaceTime):
        raise NoFlow("the problem is one in time")
    if problem.domain.dim != 2:
        raise NoFlow(f"the domain has {problem.domain.dim} coordinates, not two")
    if len(problem.fields) < 3 or len(problem.expressions) != len(problem.fields):
        raise NoFlow("there are not two components of a velocity and a pressure with an equation each")
    if problem.kinked:
        raise NoFlow("coefficients jump or have kinks")
    mass, velocity = _mass(problem)
    carried = carried_scalars(problem, velocity) if len(problem.fields) > 3 else {}
    (pressure,) = (name for name in problem.fields if name not in velocity and name not in carried.values())
    others = {name: one for name, one in problem.expressions.items() if name != mass and name not in carried}
    names, factors, viscosities = ["", ""], [0.0, 0.0], [0.0, 0.0]
    rest: dict[int, Expression] = {}
    for name, expression in others.items():
        component, factor = _pressure_gradient(name, expression, pressure)
        if names[component]:
            raise NoFlow(f"equations {names[component]!r} and {name!r} have the same derivative of the pressure")
        names[component], factors[component] = name, factor
        viscosities[component], rest[component] = _momentum(name, expression, component, factor, velocity, pressure)
    if abs(viscosities[0] - viscosities[1]) > COMPUTED * max(map(abs, viscosities)):
        # one equation may be stated with another factor: pressures then differ, which no factor mends
        raise NoFlow("the equations have different viscosities over the factor of the pressure")
    if not viscosities[0] > 0:
        raise NoFlow("the viscosity is not positive against the pressure gradient: the signs do not belong together")
    form = FlowForm(
        problem, velocity, pressure, (names[0], names[1]), (factors[0], factors[1]), viscosities[0],
        (rest[0], rest[1]), (), (),
        scalars=tuple(transported(problem, name, field, velocity, pressure) for name, field in carried.items()),
    )  # fmt: skip
    _check_advection(form)
    return _with_conditions(form)


def _mass(problem: Problem) -> tuple[str, tuple[str, str]]:
    """The name of the equation ∇·u = 0, and the components of the velocity."""
    for name, expression in problem.expressions.items():
        if not expression.linear or any(jet.order != 1 for jet in expression.jets):
            continue
        slopes = {jet: p for jet, p in zip(expression.jets, expression.partials, strict=True) if p != 0}
        if len(slopes) != 2 or any(p.free_symbols for p in slopes.values()):
            continue
        by_axis = {jet.index: jet.field for jet in slopes}
        one, other = (float(p) for p in slopes.values())
        if set(by_axis) != set(AXES) or abs(one - other) > COMPUTED * abs(one) or len(set(by_axis.values())) < 2:
            continue
        if expression.formula.xreplace(dict.fromkeys(expression.symbols, sympy.Integer(0))) != 0:
            raise NoFlow(f"equation {name!r} has a source of mass")
        return name, (by_axis[AXES[0]], by_axis[AXES[1]])
    raise NoFlow("no equation says that the divergence of a velocity is zero")


def _pressure_gradient(name: str, expression: Expression, pressure: str) -> tuple[int, float]:
    """The axis of the derivative of the pressure in an equation, and 1 / its coefficient."""
    terms = [(jet, p) for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.field == pressure]
    terms = [(jet, p) for jet, p in terms if p != 0]
    if len(terms) != 1 or terms[0][0].order != 1:
        raise NoFlow(f"equation {name!r} does not have one first derivative of {pressure!r}")
    return terms[0][0].index.index(1), 1 / constant_coefficient(name, terms[0][1], "the coefficient of the pressure")


def _momentum(
    name: str, expression: Expression, component: int, factor: float, velocity: tuple[str, str], pressure: str
) -> tuple[float, Expression]:
    """ν and C of an equation that is multiplied by a factor."""
    second = {}
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        if jet.order > 2:
            raise NoFlow(f"equation {name!r} has derivatives of order above two")
        if jet.order == 2 and partial != 0:
            second[jet] = factor * constant_coefficient(name, partial, "the viscosity")
    own, other = velocity[component], velocity[1 - component]
    along, across = tuple(2 * a for a in AXES[component]), tuple(2 * a for a in AXES[1 - component])
    viscosity = -second.pop(Jet(own, across), 0.0)
    bulk = -second.pop(Jet(own, along), 0.0) - viscosity
    mixed = -second.pop(Jet(other, (1, 1)), 0.0)
    if second or abs(bulk - mixed) > COMPUTED * abs(viscosity):
        raise NoFlow(f"the second derivatives of equation {name!r} are no multiple of the Laplacian of {own!r}")
    rest = lower_order(expression, factor, component, velocity, pressure)
    for jet, partial in zip(rest.jets, rest.partials, strict=True):
        if jet.order and jet.field != own and sympy.expand(partial) != 0:
            raise NoFlow(
                f"equation {name!r} has first derivatives of {jet.field!r} beside those of {own!r}; "
                "inertia is u*u_x + v*u_y, in vectors dot(grad(u), u)"
            )
        if any(symbol in partial.free_symbols for symbol, one in rest.symbols.items() if jet.order and one.order):
            raise NoFlow(f"equation {name!r} is not linear in first derivatives")
    used = {s: jet for s, jet in rest.symbols.items() if not jet.order or jet.field == own}
    return viscosity, replace(rest, symbols=used)


def _check_advection(form: FlowForm) -> None:
    """Both components must be carried by one velocity."""
    words = form.problem.vocabulary.symbols
    rng = np.random.default_rng(0)
    values = {symbol: rng.uniform(0.5, 1.5, COEFFICIENT_SAMPLES) for symbol in words}
    points = form.problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    values |= dict(zip(words, points.T, strict=True))
    names = (*form.velocity, *form.scalar_names)
    state = dict(zip(names, rng.uniform(-1, 1, (len(names), COEFFICIENT_SAMPLES)), strict=True))
    velocities = []
    for expression, pair in zip(form.rest, form._advections, strict=True):
        jets = {jet: state[jet.field] if not jet.order else np.ones(COEFFICIENT_SAMPLES) for jet in expression.jets}
        velocities.append([replace(expression, formula=one).value(values, jets) for one in pair])
    for one, other in zip(*velocities, strict=True):
        size = max(float(np.abs(one).max()), float(np.abs(other).max()), 1e-300)
        if not np.abs(one - other).max() <= COMPUTED * size:
            raise NoFlow("the two components of the velocity are carried by different velocities")


def _with_conditions(form: FlowForm) -> FlowForm:
    """Sort conditions into those of the flow and those of the pressure's constant, and find κ."""
    plain: list[Term] = []
    gauges: list[Term] = []
    carried: list[Term] = []
    for term in form.problem.constraints:
        if not term.expression.linear:
            raise NoFlow(f"condition {term.name!r} is not linear")
        if set(term.expression.fields) & set(form.scalar_names):
            carried.append(term)
            continue
        if any(jet.order > 1 or (jet.order and jet.field == form.pressure) for jet in term.expression.jets):
            raise NoFlow(f"condition {term.name!r} has derivatives of the pressure or of second order")
        only = term.expression.fields == (form.pressure,)
        if term.kind == "boundary" and isinstance(term.region, Side):
            (gauges if only and _held(form, term) else plain).append(term)
        elif only:
            gauges.append(term)
        else:
            raise NoFlow(f"condition {term.name!r} is no condition on the boundary")
    form = replace(form, terms=tuple(plain), gauges=tuple(gauges), scalar_terms=tuple(carried))
    check_scalars(form)
    reason: NoFlow | None = None
    for transposed in (0.0, 1.0):
        complete = replace(form, transposed=transposed)
        try:
            for term in complete.terms:
                _check_condition(complete, term)
            return complete
        except NoFlow as error:
            reason = reason or error
    assert reason is not None
    raise reason


def _held(form: FlowForm, term: Term) -> bool:
    """Whether the whole velocity is prescribed on the side of a condition on the pressure."""
    region = term.region
    assert isinstance(region, Side)
    points = region.sample(COEFFICIENT_SAMPLES, rng=0)
    normals = region.normals(points)
    count = np.zeros(len(points), dtype=int)
    for other in form.problem.constraints:
        if isinstance(other.region, Side) and form.pressure not in other.expression.fields:
            close = other.region.contains(points)
            close[close] = (other.region.normals(points[close]) * normals[close]).sum(axis=1) > 0.5
            count += close
    return bool((count >= 2).all())


def _check_condition(form: FlowForm, term: Term) -> None:
    region = term.region
    assert isinstance(region, Side)
    points = region.sample(COEFFICIENT_SAMPLES, rng=0)
    normals = region.normals(points)
    _, _, traction = form.condition(term, points, normals)
    if traction is None:
        return
    if not (np.linalg.norm(traction, axis=1) > 0).all():
        raise NoFlow(f"condition {term.name!r} has no derivative along the normal")
    if not any(jet.order for jet in term.expression.jets) and not isinstance(region, FlatSide):
        raise NoFlow(f"condition {term.name!r} gives the pressure on a curved side; give nu*dn(u) - p*n")
