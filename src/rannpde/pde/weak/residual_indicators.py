"""Local error indicators: the residuals of a solution within cells, in the dual norm of the energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import first_derivatives
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.mesh import WeakMesh
from rannpde.pde.weak.obstacle import ReactionForm

FieldSamples = tuple[Array, Array, Array, dict[MultiIndex, Array]]
"""Points (M, d), weights (M,), their cells (M,), derivatives of the fields (M, F): what ``sampled`` returns."""


class CellsWithLayer(Protocol):
    """Cells and the features of their functions."""

    @property
    def mesh(self) -> WeakMesh: ...

    @property
    def layer(self) -> HiddenLayer: ...


def residual_indices(problem: Problem) -> list[MultiIndex]:
    """The derivatives that residuals and energies need."""
    stated = {jet.index for term in problem.interior for jet in term.expression.jets}
    return sorted(stated | {*first_derivatives(problem.domain.dim), (0,) * problem.domain.dim})


def mean_diffusion(diffusion: Array) -> Array:
    """The size (M, K) of the diffusion (M, K, F, d, d) of each equation, the same in all directions."""
    return np.asarray(np.abs(np.einsum("mkkii->mk", diffusion)) / diffusion.shape[4])


def residual_squares(local: CellsWithLayer, weights: Array, owners: Array, residuals: Array, diffusion: Array) -> Array:
    """(h/p)² ∫ Σ residual² / diffusion of each cell (C,), for residuals (M, K) at points with weights in their cells.

    A residual without low degrees weighs, in the dual norm of the energy, by the shortest length of its cell.
    """
    squares = (np.abs(residuals) ** 2 / np.maximum(mean_diffusion(diffusion), 1e-300)).sum(axis=1)
    lengths = 2 * local.mesh.halfwidths.min(axis=1)[owners] / local.layer.degree
    return np.bincount(owners, weights * lengths**2 * squares, local.mesh.count)


def slopes_of(tables: Mapping[MultiIndex, Array], dim: int) -> Array:
    """Slopes (M, F, d) of fields from their derivatives."""
    return np.stack([tables[axis] for axis in first_derivatives(dim)], axis=2)


def solution_indicators(
    form: WeakForm, reaction: ReactionForm | None, local: CellsWithLayer, samples: FieldSamples
) -> tuple[Array, float]:
    """The squared indicators (C,) of a solution, and its energy, from samples; reaction : of obstacles."""
    points, weights, owners, tables = samples
    problem, fields, dim = form.problem, form.system.fields, points.shape[1]
    terms, known = {term.name: term for term in problem.interior}, problem.vocabulary.at(points)
    values, slopes = tables[(0,) * dim], slopes_of(tables, dim)
    diffusion = form.diffusion(points, values, slopes)
    residuals = np.empty((len(points), len(form.system.names)))
    for k, name in enumerate(form.system.names):
        expression = terms[name].expression
        residuals[:, k] = expression.value(
            known, {jet: tables[jet.index][:, fields.index(jet.field)] for jet in expression.jets}
        )
    if reaction is not None:
        residuals += reaction.signed(points, values)
    # where natural conditions are no tractions, mixed derivatives are split such that the form need not be positive
    density = np.abs(np.einsum("mki,mkfij,mfj->m", slopes, diffusion, slopes, optimize=True))
    return residual_squares(local, weights, owners, residuals, diffusion), float(weights @ density)
