"""Incompressible flow in the plane, recognised from its statement.

Two of the three equations are momentum, one is mass,

    -ν Δu - γ ∇(∇·u) + ∇p + C(x, u, ∇u) = 0 ,      ∇·u = 0 ,

with a constant viscosity ν. C holds inertia, given forces, drag of a porous medium.
Conditions with derivatives or the pressure speak of the traction -p n + ν (∂_n u + κ ∇(u·n)); κ is 0 or 1, which is the
same equation since ∇·u = 0, and is chosen such that the conditions are natural ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.domain import SpaceTime
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES
from rannpde.rounding import COMPUTED

AXES = tuple((1 - axis, axis) for axis in range(2))


class NoFlow(Exception):
    """Why a problem is no incompressible flow that this method solves; its text is the reason."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """C at points: value (M, 2), derivative by the velocity (M, 2, 2), the velocity b (M, 2) of its advection b·∇u,
    and how b changes with the velocity (M, 2, 2)."""

    value: Array
    by_velocity: Array
    advection: Array
    change: Array


@dataclass(frozen=True, eq=False)
class TractionRows:
    """Conditions at boundary points: essential (M, 2, 2) projects on prescribed components of the velocity, values
    (M, 2); the traction of the others is natural (M, 2) - robin (M, 2, 2) · u."""

    essential: Array
    values: Array
    natural: Array
    robin: Array


@dataclass(frozen=True, eq=False)
class FlowForm:
    """A stationary incompressible flow.

    velocity, pressure : names of the fields; momentum : names of the equations by component; factors (2,) : by which
    they are multiplied, so that the pressure gradient has the coefficient 1; rest : C by component; terms : conditions
    on velocity and traction; gauges : conditions that only say which constant the pressure has
    """

    problem: Problem
    velocity: tuple[str, str]
    pressure: str
    momentum: tuple[str, str]
    factors: tuple[float, float]
    viscosity: float
    rest: tuple[Expression, Expression]
    terms: tuple[Term, ...]
    gauges: tuple[Term, ...]
    transposed: float = 0.0

    @cached_property
    def linear(self) -> bool:
        """Whether C is affine in the velocity."""
        return all(one.linear for one in self.rest)

    @cached_property
    def inert(self) -> bool:
        """Whether C does not depend on the velocity at all."""
        return not any(one.jets for one in self.rest)

    @property
    def places(self) -> tuple[int, int, int]:
        """Columns of the velocity and of the pressure among the fields of the problem."""
        fields = self.problem.fields
        return fields.index(self.velocity[0]), fields.index(self.velocity[1]), fields.index(self.pressure)

    # -------------------------------------------------------------------------------------------------- inside

    @cached_property
    def _advections(self) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
        """∂C_k/∂(∂_j u_k) by component and axis."""
        found = []
        for component, expression in enumerate(self.rest):
            slopes = dict(zip(expression.jets, expression.partials, strict=True))
            own = [slopes.get(Jet(self.velocity[component], axis), sympy.Integer(0)) for axis in AXES]
            found.append((own[0], own[1]))
        return tuple(found)

    @cached_property
    def _changes(self) -> tuple[Expression, ...]:
        """∂C_0/∂(∂_j u_0) as expressions, whose partial derivatives are the change of b."""
        return tuple(replace(self.rest[0], formula=one) for one in self._advections[0])

    def inertia(self, points: Array, values: Array, slopes: Array, share: float = 1.0) -> Inertia:
        """C at points (M, 2) with velocities (M, 2) and gradients (M, 2 components, 2 axes).

        share : of what C is beyond its value at rest
        """
        count = len(points)
        known = dict(zip(self.problem.vocabulary.symbols, points.T, strict=True))
        value, by_velocity = np.zeros((count, 2)), np.zeros((count, 2, 2))
        advection, change = np.zeros((count, 2)), np.zeros((count, 2, 2))
        for k, expression in enumerate(self.rest):
            state = self._state(expression, values, slopes)
            here, partials = expression.linearised(known, state)
            rest = expression.value(known, {jet: np.zeros(count) for jet in expression.jets})
            value[:, k] = rest + share * (here - rest)
            for jet, partial in zip(expression.jets, partials, strict=True):
                if not jet.order:
                    by_velocity[:, k, self.velocity.index(jet.field)] += share * partial
                elif k == 0:
                    advection[:, jet.index.index(1)] += share * partial
        for j, expression in enumerate(self._changes):
            state = self._state(expression, values, slopes)
            _, partials = expression.linearised(known, state)
            for jet, partial in zip(expression.jets, partials, strict=True):
                if not jet.order:
                    change[:, j, self.velocity.index(jet.field)] += share * partial
        return Inertia(value, by_velocity, advection, change)

    def carried(self, points: Array, values: Array, slopes: Array) -> tuple[Array, Array]:
        """C beyond its value at rest (M, 2), and the velocity of its advection (M, 2)."""
        count = len(points)
        known = dict(zip(self.problem.vocabulary.symbols, points.T, strict=True))
        value, advection = np.zeros((count, 2)), np.zeros((count, 2))
        for k, expression in enumerate(self.rest):
            state = self._state(expression, values, slopes)
            rest = expression.value(known, {jet: np.zeros(count) for jet in expression.jets})
            value[:, k] = expression.value(known, state) - rest
        state = self._state(self.rest[0], values, slopes)
        for axis, partial in enumerate(self._changes):
            advection[:, axis] = partial.value(known, state)
        return value, advection

    def _state(self, expression: Expression, values: Array, slopes: Array) -> dict[Jet, Array]:
        found = {}
        for jet in expression.jets:
            component = self.velocity.index(jet.field)
            found[jet] = slopes[:, component, jet.index.index(1)] if jet.order else values[:, component]
        return found

    # -------------------------------------------------------------------------------------------------- boundary

    def rows(self, numbers: Sequence[int], points: Array, normals: Array) -> TractionRows:
        """The conditions of these numbers at boundary points (M, 2) with outward normals (M, 2)."""
        count = len(points)
        gathered = [self.condition(self.terms[number], points, normals) for number in numbers]
        essential, values = np.zeros((count, 2, 2)), np.zeros((count, 2))
        natural, robin = np.zeros((count, 2)), np.zeros((count, 2, 2))
        plain = [(value, row) for value, row, traction in gathered if traction is None]
        others = [(value, row, traction) for value, row, traction in gathered if traction is not None]
        if plain:
            rows = np.stack([row for _, row in plain], axis=1)
            inverse = np.linalg.pinv(rows, rcond=1e-10)
            essential = inverse @ rows
            values = np.einsum("mkr,mr->mk", inverse, -np.stack([value for value, _ in plain], axis=1))
        if others:
            rows = np.stack([traction for _, _, traction in others], axis=1)
            inverse = np.linalg.pinv(rows, rcond=1e-10)
            free = np.eye(2) - essential
            natural = np.einsum("mkl,mlr,mr->mk", free, inverse, -np.stack([value for value, _, _ in others], axis=1))
            robin = free @ inverse @ np.stack([row for _, row, _ in others], axis=1)
        return TractionRows(essential, values, natural, robin)

    def condition(self, term: Term, points: Array, normals: Array) -> tuple[Array, Array, Array | None]:
        """value (M,), plain (M, 2) and traction (M, 2), or None, of value + plain·u + traction·T = 0.

        NoFlow where derivatives and pressure of the condition are no traction.
        """
        value, plain, slopes, pressure = self.coefficients(term, points, normals)
        if not slopes.any() and not pressure.any():
            return value, plain, None
        traction, left = traction_weights(self.viscosity, self.transposed, slopes, pressure, normals)
        if left > COMPUTED and slopes.any():
            raise NoFlow(f"condition {term.name!r} is no traction, nu*dn(u) - p*n or that of the symmetric gradient")
        return value, plain, traction

    def coefficients(self, term: Term, points: Array, normals: Array) -> tuple[Array, Array, Array, Array]:
        """value (M,), coefficients of the velocity (M, 2), of its gradient (M, 2, 2), of the pressure (M,)."""
        count, words, expression = len(points), self.problem.vocabulary, term.expression
        known = dict(zip(words.symbols, points.T, strict=True)) | dict(zip(words.normals, normals.T, strict=True))
        value, partials = expression.linearised(known, {jet: np.zeros(count) for jet in expression.jets})
        plain, slopes, pressure = np.zeros((count, 2)), np.zeros((count, 2, 2)), np.zeros(count)
        for jet, partial in zip(expression.jets, partials, strict=True):
            if jet.field == self.pressure:
                pressure = pressure + partial
            elif jet.order:
                slopes[:, self.velocity.index(jet.field), jet.index.index(1)] += partial
            else:
                plain[:, self.velocity.index(jet.field)] += partial
        return np.broadcast_to(value, (count,)), plain, slopes, pressure

    def described(self) -> list[str]:
        """For the report."""
        kind = "Stokes" if self.inert else "linear in the velocity" if self.linear else "Navier–Stokes"
        stress = "symmetric gradient" if self.transposed else "gradient"
        lines = [f"incompressible flow, {kind}, viscosity {self.viscosity:.4g}, traction of the {stress}"]
        if self.gauges:
            lines.append(f"the constant of the pressure by {', '.join(dict.fromkeys(t.name for t in self.gauges))}")
        return lines


def traction_weights(
    viscosity: float, transposed: float, slopes: Array, pressure: Array, normals: Array
) -> tuple[Array, float]:
    """r (M, 2) with slopes = ν (r nᵀ + κ n rᵀ) + θ 1 and pressure = -r·n, by least squares, and what is left of it.

    Without derivatives, as in p = 0, r is the normal: the side must then be one along which the velocity is constant.
    """
    count = len(normals)
    eye = np.eye(2)
    matrix = np.zeros((count, 5, 3))
    for c in range(2):
        block = np.einsum("f,mj->mfj", eye[c], normals) + transposed * np.einsum("mf,j->mfj", normals, eye[c])
        matrix[:, :4, c] = viscosity * block.reshape(count, 4)
    matrix[:, :4, 2] = eye.ravel()
    matrix[:, 4, :2] = -normals
    wanted = np.concatenate([slopes.reshape(count, 4), pressure[:, None]], axis=1)
    # rows of gradients and of the pressure in one unit: that of a traction
    scale = np.array([1 / viscosity] * 4 + [1.0])
    if not slopes.any():
        return -pressure[:, None] * normals, 1.0
    found = np.linalg.pinv(matrix * scale[:, None], rcond=1e-12) @ (wanted * scale)[:, :, None]
    left = (matrix @ found)[:, :, 0] - wanted
    size = np.abs(wanted * scale).max()
    return found[:, :2, 0], float(np.abs(left * scale).max() / size)


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
    if len(problem.fields) != 3 or len(problem.expressions) != 3:
        raise NoFlow("there are not two components of a velocity and a pressure with an equation each")
    if problem.kinked:
        raise NoFlow("coefficients jump or have kinks")
    mass, velocity = _mass(problem)
    (pressure,) = (name for name in problem.fields if name not in velocity)
    others = {name: one for name, one in problem.expressions.items() if name != mass}
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
    )  # fmt: skip
    _check_advection(form)
    return _with_conditions(form)


def _number(name: str, partial: sympy.Expr, what: str) -> float:
    if partial.free_symbols or partial.atoms(sympy.Function):
        raise NoFlow(f"{what} of equation {name!r} is not constant")
    return float(partial)


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
    found = [(jet, p) for jet, p in zip(expression.jets, expression.partials, strict=True) if jet.field == pressure]
    found = [(jet, p) for jet, p in found if p != 0]
    if len(found) != 1 or found[0][0].order != 1:
        raise NoFlow(f"equation {name!r} does not have one first derivative of {pressure!r}")
    return found[0][0].index.index(1), 1 / _number(name, found[0][1], "the coefficient of the pressure")


def _momentum(
    name: str, expression: Expression, component: int, factor: float, velocity: tuple[str, str], pressure: str
) -> tuple[float, Expression]:
    """ν and C of an equation that is multiplied by a factor."""
    second = {}
    for jet, partial in zip(expression.jets, expression.partials, strict=True):
        if jet.order > 2:
            raise NoFlow(f"equation {name!r} has derivatives of order above two")
        if jet.order == 2 and partial != 0:
            second[jet] = factor * _number(name, partial, "the viscosity")
    own, other = velocity[component], velocity[1 - component]
    along, across = tuple(2 * a for a in AXES[component]), tuple(2 * a for a in AXES[1 - component])
    viscosity = -second.pop(Jet(own, across), 0.0)
    bulk = -second.pop(Jet(own, along), 0.0) - viscosity
    mixed = -second.pop(Jet(other, (1, 1)), 0.0)
    if second or abs(bulk - mixed) > COMPUTED * abs(viscosity):
        raise NoFlow(f"the second derivatives of equation {name!r} are no multiple of the Laplacian of {own!r}")
    gone = {s: sympy.Integer(0) for s, jet in expression.symbols.items() if jet.order == 2 or jet.field == pressure}
    symbols = {s: jet for s, jet in expression.symbols.items() if s not in gone}
    formula = factor * expression.formula.xreplace(gone)
    formula, symbols = _without_divergence(formula, symbols, component, velocity)
    rest = Expression(expression.source, sympy.expand(formula), symbols, expression.functions)
    for jet, partial in zip(rest.jets, rest.partials, strict=True):
        if jet.order and jet.field != own and sympy.expand(partial) != 0:
            raise NoFlow(
                f"equation {name!r} has first derivatives of {jet.field!r} beside those of {own!r}; "
                "inertia is u*u_x + v*u_y, in vectors dot(grad(u), u)"
            )
        if any(symbol in partial.free_symbols for symbol, one in symbols.items() if jet.order and one.order):
            raise NoFlow(f"equation {name!r} is not linear in first derivatives")
    kept = {s: jet for s, jet in symbols.items() if not jet.order or jet.field == own}
    return viscosity, replace(rest, symbols=kept)


def _without_divergence(
    formula: sympy.Expr, symbols: dict[sympy.Symbol, Jet], component: int, velocity: tuple[str, str]
) -> tuple[sympy.Expr, dict[sympy.Symbol, Jet]]:
    """The same with the other component's part of ∇·u written by that of this one."""
    jets = {jet: symbol for symbol, jet in symbols.items()}
    mine = Jet(velocity[component], AXES[component])
    others = Jet(velocity[1 - component], AXES[1 - component])
    if others not in jets:
        return formula, symbols
    own = jets.get(mine, sympy.Dummy("slope", real=True))
    formula = formula.xreplace({jets[others]: -own})
    return formula, {s: jet for s, jet in symbols.items() if jet != others} | {own: mine}


def _check_advection(form: FlowForm) -> None:
    """Both components must be carried by one velocity."""
    words = form.problem.vocabulary.symbols
    rng = np.random.default_rng(0)
    values = {symbol: rng.uniform(0.5, 1.5, COEFFICIENT_SAMPLES) for symbol in words}
    points = form.problem.domain.sample(COEFFICIENT_SAMPLES, rng=0)
    values |= dict(zip(words, points.T, strict=True))
    state = dict(zip(form.velocity, rng.uniform(-1, 1, (2, COEFFICIENT_SAMPLES)), strict=True))
    found = []
    for expression, pair in zip(form.rest, form._advections, strict=True):
        jets = {jet: state[jet.field] if not jet.order else np.ones(COEFFICIENT_SAMPLES) for jet in expression.jets}
        found.append([replace(expression, formula=one).value(values, jets) for one in pair])
    for one, other in zip(*found, strict=True):
        size = max(float(np.abs(one).max()), float(np.abs(other).max()), 1e-300)
        if not np.abs(one - other).max() <= COMPUTED * size:
            raise NoFlow("the two components of the velocity are carried by different velocities")


def _with_conditions(form: FlowForm) -> FlowForm:
    """Sort conditions into those of the flow and those of the pressure's constant, and find κ."""
    plain: list[Term] = []
    gauges: list[Term] = []
    constraints = form.problem.constraints
    for term in constraints:
        if not term.expression.linear:
            raise NoFlow(f"condition {term.name!r} is not linear")
        if any(jet.order > 1 or (jet.order and jet.field == form.pressure) for jet in term.expression.jets):
            raise NoFlow(f"condition {term.name!r} has derivatives of the pressure or of second order")
        only = term.expression.fields == (form.pressure,)
        if term.kind == "boundary" and isinstance(term.region, Side):
            (gauges if only and _held(form, term) else plain).append(term)
        elif only:
            gauges.append(term)
        else:
            raise NoFlow(f"condition {term.name!r} is no condition on the boundary")
    form = replace(form, terms=tuple(plain), gauges=tuple(gauges))
    reason: NoFlow | None = None
    for transposed in (0.0, 1.0):
        found = replace(form, transposed=transposed)
        try:
            for number, term in enumerate(found.terms):
                _check_condition(found, number, term)
            return found
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


def _check_condition(form: FlowForm, number: int, term: Term) -> None:
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
