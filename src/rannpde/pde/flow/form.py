"""Incompressible flow in the plane, recognised from its statement.

Two of the three equations are momentum, one is mass,

    -ν Δu - γ ∇(∇·u) + ∇p + C(x, u, ∇u) = 0 ,      ∇·u = 0 ,

with a constant viscosity ν. C holds inertia, given forces, drag of a porous medium, and buoyancy of scalars that the
flow carries (``scalars``).
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
from rannpde.pde.flow.scalars import AXES, TransportedScalar, scalar_diffusion
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.weak.form import WeakForm
from rannpde.rounding import COMPUTED


class NoFlow(Exception):
    """Raised where a problem is no incompressible flow that this method solves; its text is the reason."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """C at points: value (M, 2), derivative by the velocity (M, 2, 2), the velocity b (M, 2) of its advection b·∇u,
    how b changes with the velocity (M, 2, 2), and the derivative of C by the scalars (M, 2, S)."""

    value: Array
    by_velocity: Array
    advection: Array
    change: Array
    by_scalars: Array


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
    on velocity and traction; gauges : conditions that only say which constant the pressure has; scalars : what the flow
    carries; scalar_terms : their conditions
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
    scalars: tuple[TransportedScalar, ...] = ()
    scalar_terms: tuple[Term, ...] = ()

    @cached_property
    def linear(self) -> bool:
        """Whether C is affine in the velocity, and the scalars are carried by a prescribed velocity."""
        return all(one.linear for one in (*self.rest, *(scalar.rest for scalar in self.scalars)))

    @cached_property
    def inert(self) -> bool:
        """Whether C depends neither on the velocity nor on scalars."""
        return not any(one.jets for one in self.rest)

    @property
    def columns(self) -> tuple[int, int, int]:
        """Columns of the velocity and of the pressure among the fields of the problem."""
        fields = self.problem.fields
        return fields.index(self.velocity[0]), fields.index(self.velocity[1]), fields.index(self.pressure)

    @property
    def scalar_columns(self) -> tuple[int, ...]:
        """Columns of the scalars among the fields of the problem."""
        return tuple(self.problem.fields.index(one.field) for one in self.scalars)

    @property
    def scalar_names(self) -> tuple[str, ...]:
        return tuple(one.field for one in self.scalars)

    @cached_property
    def diffusion(self) -> WeakForm:
        """The weak form of the diffusion of the scalars, with their conditions."""
        return scalar_diffusion(self.problem, self.scalars, self.scalar_terms)

    # -------------------------------------------------------------------------------------------------- inside

    @cached_property
    def _advections(self) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
        """∂C_k/∂(∂_j u_k) by component and axis."""
        advections = []
        for component, expression in enumerate(self.rest):
            slopes = dict(zip(expression.jets, expression.partials, strict=True))
            own = [slopes.get(Jet(self.velocity[component], axis), sympy.Integer(0)) for axis in AXES]
            advections.append((own[0], own[1]))
        return tuple(advections)

    @cached_property
    def _changes(self) -> tuple[Expression, ...]:
        """∂C_0/∂(∂_j u_0) as expressions, whose partial derivatives are the change of b."""
        return tuple(replace(self.rest[0], formula=one) for one in self._advections[0])

    def inertia(
        self, points: Array, values: Array, slopes: Array, share: float = 1.0, scalars: Array | None = None
    ) -> Inertia:
        """C at points (M, 2) with velocities (M, 2), gradients (M, 2 components, 2 axes) and scalars (S, M).

        share : of what C is beyond its value at rest
        """
        count = len(points)
        by_scalars = np.zeros((count, 2, len(self.scalars)))
        known = self.problem.vocabulary.at(points)
        value, by_velocity = np.zeros((count, 2)), np.zeros((count, 2, 2))
        advection, change = np.zeros((count, 2)), np.zeros((count, 2, 2))
        for k, expression in enumerate(self.rest):
            state = self._state(expression, values.T, slopes.transpose(1, 2, 0), scalars)
            here, partials = expression.linearised(known, state)
            rest = expression.value(known, {jet: np.zeros(count) for jet in expression.jets})
            value[:, k] = rest + share * (here - rest)
            for jet, partial in zip(expression.jets, partials, strict=True):
                if jet.field not in self.velocity:
                    by_scalars[:, k, self.scalar_names.index(jet.field)] += share * partial
                elif not jet.order:
                    by_velocity[:, k, self.velocity.index(jet.field)] += share * partial
                elif k == 0:
                    advection[:, jet.index.index(1)] += share * partial
        for j, expression in enumerate(self._changes):
            state = self._state(expression, values.T, slopes.transpose(1, 2, 0), scalars)
            _, partials = expression.linearised(known, state)
            for jet, partial in zip(expression.jets, partials, strict=True):
                if not jet.order and jet.field in self.velocity:
                    change[:, j, self.velocity.index(jet.field)] += share * partial
        return Inertia(value, by_velocity, advection, change, by_scalars)

    def at_rest(self, points: Array) -> Array:
        """C (2, M) of a fluid at rest at points (2, M)."""
        known = dict(zip(self.problem.vocabulary.symbols, points, strict=True))
        inertia = np.zeros(points.shape)
        for k, expression in enumerate(self.rest):
            inertia[k] = expression.value(known, {jet: np.zeros(1) for jet in expression.jets})
        return inertia

    def carried(self, points: Array, values: Array, slopes: Array, scalars: Array | None = None) -> tuple[Array, Array]:
        """C beyond its value at rest (2, M), and the velocity of its advection (2, M), by component.

        points (2, M), values (2, M), slopes (2 components, 2 axes, M) : the velocity and its gradient; scalars (S, M)
        """
        known = dict(zip(self.problem.vocabulary.symbols, points, strict=True))
        value, advection = -self.at_rest(points), np.zeros(points.shape)
        for k, expression in enumerate(self.rest):
            value[k] += expression.value(known, self._state(expression, values, slopes, scalars))
        state = self._state(self.rest[0], values, slopes, scalars)
        for axis, partial in enumerate(self._changes):
            advection[axis] = partial.value(known, state)
        return value, advection

    def _state(self, expression: Expression, values: Array, slopes: Array, scalars: Array | None) -> dict[Jet, Array]:
        """Jet → values (M,), of velocities (2, M), gradients (2, 2, M) and scalars (S, M)."""
        jets = {}
        for jet in expression.jets:
            if jet.field not in self.velocity:
                assert scalars is not None
                jets[jet] = scalars[self.scalar_names.index(jet.field)]
                continue
            component = self.velocity.index(jet.field)
            jets[jet] = slopes[component, jet.index.index(1)] if jet.order else values[component]
        return jets

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
        known = words.at(points, normals)
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
        """The lines of a report on the recognised flow."""
        kind = "Stokes" if self.inert else "linear in the velocity" if self.linear else "Navier–Stokes"
        stress = "symmetric gradient" if self.transposed else "gradient"
        lines = [f"incompressible flow, {kind}, viscosity {self.viscosity:.4g}, traction of the {stress}"]
        for one in self.scalars:
            acts = any(jet.field == one.field for rest in self.rest for jet in rest.jets)
            effect = "acts on the flow" if acts else "does not act on the flow"
            lines.append(f"it carries {one.field}, diffusivity {one.diffusivity:.4g}, which {effect}")
        if self.gauges:
            lines.append(f"the constant of the pressure by {', '.join(dict.fromkeys(t.name for t in self.gauges))}")
        return lines


def traction_weights(
    viscosity: float, transposed: float, slopes: Array, pressure: Array, normals: Array
) -> tuple[Array, float]:
    """r (M, 2) with slopes = ν (r nᵀ + κ n rᵀ) + θ 1 and pressure = -r·n, by least squares, and the residual.

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
    weights = np.linalg.pinv(matrix * scale[:, None], rcond=1e-12) @ (wanted * scale)[:, :, None]
    left = (matrix @ weights)[:, :, 0] - wanted
    size = np.abs(wanted * scale).max()
    return weights[:, :2, 0], float(np.abs(left * scale).max() / size)
