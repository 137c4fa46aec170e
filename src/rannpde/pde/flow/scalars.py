"""Scalars that a flow carries: temperature, concentration, salt.

Each has an equation of its own with a constant diffusivity κ,

    -κ ΔT + R(x, u, T, ∇T) = 0 ,        R = b(x, u)·∇T + r(x, u, T) ,

R affine in the gradient; r holds sources and reactions, also between several scalars. Diffusion and conditions are
those of a weak form on the same cells; R is linearised together with the flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import divergence_system
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.weak.form import WeakForm

AXES = tuple((1 - axis, axis) for axis in range(2))


@dataclass(frozen=True, eq=False)
class TransportedScalar:
    """A scalar that the flow carries: field : its name; equation : the name of its equation; rest : R."""

    field: str
    equation: str
    diffusivity: float
    rest: Expression

    @cached_property
    def advections(self) -> tuple[Expression, Expression]:
        """The components of the velocity b that carries the scalars."""
        slopes = dict(zip(self.rest.jets, self.rest.partials, strict=True))
        one, other = (slopes.get(Jet(self.field, axis), sympy.Integer(0)) for axis in AXES)
        return replace(self.rest, formula=one), replace(self.rest, formula=other)


@dataclass(frozen=True, eq=False)
class Transport:
    """R of S scalars at points: value (S, M), derivatives by the velocity (S, 2, M) and by the scalars (S, S, M), the
    velocity b (S, 2, M), and how it changes with that of the flow (S, 2, 2, M)."""

    value: Array
    by_velocity: Array
    by_scalars: Array
    advection: Array
    change: Array


@dataclass(frozen=True, eq=False)
class Carried:
    """The values of S scalars and of the flow that carries them at points (2, M): velocity (2, M), scalars (S, M), and
    their gradients (S, 2, M)."""

    points: Array
    velocity: Array
    values: Array
    slopes: Array


def transport(
    problem: Problem, scalars: Sequence[TransportedScalar], names: tuple[str, str], here: Carried, share: float = 1.0
) -> Transport:
    """R and its derivatives; names : of the components of the velocity; share : of the velocity that carries."""
    count, total = here.points.shape[1], len(scalars)
    known = dict(zip(problem.vocabulary.symbols, here.points, strict=True))
    fields = [one.field for one in scalars]
    state: dict[Jet, Array] = {Jet(name, (0, 0)): share * row for name, row in zip(names, here.velocity, strict=True)}
    state |= {Jet(name, (0, 0)): row for name, row in zip(fields, here.values, strict=True)}
    result = Transport(
        np.zeros((total, count)), np.zeros((total, 2, count)), np.zeros((total, total, count)),
        np.zeros((total, 2, count)), np.zeros((total, 2, 2, count)),
    )  # fmt: skip
    for s, one in enumerate(scalars):
        own = state | {Jet(one.field, axis): slope for axis, slope in zip(AXES, here.slopes[s], strict=True)}
        value, partials = one.rest.linearised(known, _of(one.rest, own))
        result.value[s] = value
        for jet, partial in zip(one.rest.jets, partials, strict=True):
            if jet.order:
                result.advection[s, jet.index.index(1)] += partial
            elif jet.field in names:
                result.by_velocity[s, names.index(jet.field)] += share * partial
            else:
                result.by_scalars[s, fields.index(jet.field)] += partial
        for axis, expression in enumerate(one.advections):
            _, slopes = expression.linearised(known, _of(expression, own))
            for jet, partial in zip(expression.jets, slopes, strict=True):
                if jet.field in names:
                    result.change[s, axis, names.index(jet.field)] += share * partial
    return result


def _of(expression: Expression, state: Mapping[Jet, Array]) -> dict[Jet, Array]:
    return {jet: state[jet] for jet in expression.jets}


def scalar_diffusion(problem: Problem, scalars: Sequence[TransportedScalar], conditions: Sequence[Term]) -> WeakForm:
    """-κ ΔT of all scalars in weak form, with their conditions."""
    words = Vocabulary(problem.vocabulary.coordinates, None, tuple(one.field for one in scalars))
    stated = {one.equation: read(f"-({one.diffusivity!r})*laplace({one.field}) = 0", words) for one in scalars}
    system = divergence_system(stated, words, np.asarray(problem.domain.bounds, dtype=float))
    return WeakForm(problem, system, np.zeros((len(scalars),) * 2 + (2, 2)), True, conditions=tuple(conditions))
