"""Obstacle problems: the reaction of an obstacle, and the active sets of a semi-smooth Newton method.

At every point of the quadrature the complementarity conditions u ≥ ψ, λ ≥ 0, λ (u - ψ) = 0 are one equation,

    λ = max(0, λ̄ + γ (ψ - u)) ,

exact for every γ > 0 if λ̄ is the reaction itself (Hintermüller, Ito, Kunisch: Newton's method for it is the
primal-dual active set strategy). Where the field lies on a smooth obstacle the reaction is what the equation leaves of
the obstacle, λ̄ = N(ψ)₊, which is known. What is left is a layer beside the free boundary in which u - ψ is at most
λ̄/γ. With γ = A (p²/h)², A the diffusion, in cells of size h and degree p, that is no more than what the cells resolve
there, and the reaction is no stiffer than the diffusion of the shortest functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.newton import NewtonFailure
from rannpde.pde.problem.inequalities import Inequality
from rannpde.pde.statement.expression import differentiate, evaluate
from rannpde.pde.statement.quasilinear import Linearisation, generic_state
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.newton import WeakNewton
from rannpde.pde.weak.quasilinear_form import BoundaryState, QuasilinearForm
from rannpde.pde.weak.settings import WeakSettings

RESTING_SAMPLES = 40
"""Points of the domain at which the diffusion is sampled."""


@dataclass(frozen=True, eq=False)
class ReactionForm:
    """A form with the reactions of obstacles; penalties (leaves,) : γ in the leaves of a tree."""

    form: QuasilinearForm
    tree: CellNode
    penalties: Array

    @property
    def kinked(self) -> bool:
        return self.form.kinked

    @property
    def variational(self) -> bool:
        return self.form.variational

    @property
    def starts_at_rest(self) -> bool:
        return self.form.starts_at_rest

    def load_at_rest(self, points: Array) -> Array:
        return self.form.load_at_rest(points)

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """The form less the reactions."""
        linearisation = self.form.linearised(points, values, slopes)
        for one in self.form.problem.inequalities:
            f = self.form.system.fields.index(one.field)
            force = self.reaction(one, points, values[:, f])
            linearisation.terms[:, f, 0] -= force
            linearisation.tangent[:, f, f, 0, 0] += self.penalties[self.tree.locate(points)] * (force != 0)
        return linearisation

    def boundary(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, here: Linearisation,
        share: float = 1.0,
    ) -> BoundaryState:  # fmt: skip
        return self.form.boundary(numbers, points, normals, values, slopes, here, share)

    def reactions(self, points: Array, values: Array) -> Array:
        """λ (M, F) at points (M, d) and fields (M, F)."""
        reactions = np.zeros_like(values)
        for one in self.form.problem.inequalities:
            f = self.form.system.fields.index(one.field)
            reactions[:, f] += self.reaction(one, points, values[:, f])
        return reactions

    def signed(self, points: Array, values: Array) -> Array:
        """The terms (M, F) of reactions in the equations as they were stated."""
        return self.reactions(points, values) * np.array(self.form.system.signs)

    def reaction(self, one: Inequality, points: Array, values: Array) -> Array:
        """λ (M,) of one obstacle, positive below the field and negative above it."""
        side = 1.0 if one.lower else -1.0
        own, penalty = resting_reaction(self.form, one, points), self.penalties[self.tree.locate(points)]
        return side * np.maximum(own + side * penalty * (one.at(points) - values), 0.0)


def resting_reaction(form: QuasilinearForm, one: Inequality, points: Array) -> Array:
    """The reaction (M,) ≥ 0 of an obstacle if the field is equal to it, zero where that is not finite."""
    expression = form.problem.expressions[form.system.names[0]]
    known = form.problem.vocabulary.at(points)
    jets = {}
    for jet in expression.jets:
        formula = one.bound.formula
        for symbol, order in zip(form.problem.vocabulary.symbols, jet.index, strict=True):
            for _ in range(order):
                formula = differentiate(formula, symbol)
        jets[jet] = evaluate([formula], known, one.bound.functions)[0] + 0.0 * points[:, 0]
    left = -form.system.signs[0] * expression.value(known, jets)
    return np.maximum(np.nan_to_num(left if one.lower else -left, posinf=0.0, neginf=0.0), 0.0)


def with_reactions(form: QuasilinearForm, local: LocalMatrices) -> ReactionForm:
    """The form with reactions as strong as the cells of a mesh resolve."""
    nominal = generic_state(RESTING_SAMPLES, form.fields, local.layer.dim)
    diffusion = form.linearised(form.problem.domain.sample(RESTING_SAMPLES, rng=0), *nominal).diffusion
    tree = local.mesh.tree
    lengths = np.array([leaf.lengths.min() for leaf in tree.leaves])
    size = float(np.einsum("mkkii->mki", np.abs(diffusion)).mean())
    return ReactionForm(form, tree, size * (local.layer.degree**2 / lengths) ** 2)


def touching_state(
    form: ReactionForm, local: LocalMatrices, known: Callable[[Array], Array] | None, tol: float, settings: WeakSettings
) -> tuple[HybridState, int]:
    """The state in contact and the steps of Newton's method, from a function or from rest; NewtonFailure otherwise.

    tol : relative size of the last step
    """
    newton = WeakNewton(form, tol, settings)
    try:
        return newton.solve(local, known)
    except NewtonFailure:
        if known is None:
            raise
        return newton.solve(local, None)
