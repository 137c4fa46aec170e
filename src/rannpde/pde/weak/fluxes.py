"""Fluxes through sides by the weak residual, and which outputs are such fluxes.

Where values are given, the flux of the method is n·A∇u - η (u - g): the residual of the equation tested with one at the
side. Fluxes through all sides balance the load exactly, and they converge twice as fast as the derivatives in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.statement.expression import Expression
from rannpde.pde.weak.assembly import HybridSolution
from rannpde.pde.weak.form import WeakForm
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.pde.weak.quasilinear_form import linearised_condition
from rannpde.rounding import COMPUTED

SideFluxes = Mapping[str, tuple[tuple[float, ...], float]]
"""Side → ∫ n·A∇u for each equation, and a bound of the error of each."""


@dataclass(frozen=True, eq=False)
class FluxRecord:
    """Side → fluxes (K,) of one iteration, and its relative indicator."""

    fluxes: Mapping[str, Array]
    indicator: float


def side_fluxes(local: LocalMatrices, solution: HybridSolution, finder: ConditionFinder) -> dict[str, Array]:
    """Side → ∫ n·A∇u (K,) through every side with conditions; nothing where advection has a flux too."""
    patches = local.mesh.patches
    pairs = local.interior + np.arange(len(patches))
    if not len(pairs):
        return {}
    flux, penalty, drift = local.pair_coefficients(pairs)
    if drift.any():
        return {}
    u, slopes = local.functions.at(local.functions.jets(solution.weights), local.cell[pairs], local.points[pairs])
    normal = np.einsum("pqkfj,pqfj->pqk", flux, slopes, optimize=True)
    held = local.projection
    lack = np.einsum("pqkf,pqf->pqk", held, u) - local.values
    acting = np.einsum("pqkl,pql->pqk", held, normal - np.einsum("pqkl,pql->pqk", penalty, lack))
    acting += local.natural - np.einsum("pqkf,pqf->pqk", local.robin, u)
    through = np.einsum("pq,pqk->pk", local.weights[pairs], acting)
    middle = patches.points.shape[1] // 2
    holds = finder.holds(patches.points[:, middle], patches.normals[:, middle])
    regions = [term.region for term in finder.terms if isinstance(term.region, Side)]
    return {str(region.name): through[holds[:, k]].sum(axis=0) for k, region in enumerate(regions)}


def bounded_fluxes(records: Sequence[FluxRecord], safety: float) -> dict[str, tuple[tuple[float, ...], float]]:
    """The fluxes of the last iteration, with bounds by their changes since the two iterations before it.

    The change since the earlier one is lowered by the factor by which the indicators fell since. All fluxes have the
    bound of the largest change, since a single flux may agree by chance.

    safety : the bound over the change from which it is computed
    """
    if len(records) < 2:
        return {}
    last, changes = records[-1], []
    for back, one in enumerate(records[-3:-1][::-1]):
        gain = 1.0 if back == 0 else min(safety * last.indicator / max(one.indicator, 1e-300), 1.0)
        changes.append(gain * max(float(np.abs(flux - one.fluxes[name]).max()) for name, flux in last.fluxes.items()))
    size = max(float(np.abs(flux).max()) for flux in last.fluxes.values())
    bound = safety * max(changes) + COMPUTED * size
    return {name: (tuple(map(float, flux)), bound) for name, flux in last.fluxes.items()}


def as_flux(
    form: WeakForm, expression: Expression, sides: Sequence[tuple[str, Array, Array]], fluxes: SideFluxes
) -> tuple[float, float] | None:
    """∫ of an expression over sides, if it is c·(n·A∇u) with constants c (K,), and its bound.

    sides : name, points (M, d) and outward normals (M, d) of each; None for any other expression
    """
    if not expression.linear or not expression.jets or not all(name in fluxes for name, _, _ in sides):
        return None
    if any(jet.order != 1 or jet.field not in form.system.fields for jet in expression.jets):
        return None
    combinations = [_combination(form, expression, points, normals) for _, points, normals in sides]
    first = combinations[0]
    if first is None:
        return None
    for other in combinations[1:]:
        if other is None or np.abs(other - first).max() > COMPUTED * np.abs(first).max():
            return None
    value = sum(float(first @ np.array(fluxes[name][0])) for name, _, _ in sides)
    return value, sum(float(np.abs(first).sum()) * fluxes[name][1] for name, _, _ in sides)


def _combination(form: WeakForm, expression: Expression, points: Array, normals: Array) -> Array | None:
    """c (K,) of an expression, which is the same at all points (M, d); None where it is no such flux."""
    known, zero = form.problem.vocabulary.at(points, normals), {jet: np.zeros(len(points)) for jet in expression.jets}
    constant, _, wanted = linearised_condition(expression, form.system.fields, known, zero, points.shape)
    assert wanted is not None
    rows = np.einsum("mi,mkfij->kmfj", normals, form.at(points).diffusion).reshape(form.fields, -1)
    coefficients = np.linalg.lstsq(rows.T, wanted.ravel(), rcond=None)[0]
    left = float(np.abs(coefficients @ rows - wanted.ravel()).max())
    size = float(np.abs(wanted).max())
    return coefficients if left <= COMPUTED * size and not np.any(constant) else None
