"""Fluxes of scalars through sides, by the weak residual as other fluxes, each scalar with a bound of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rannpde.arrays import Array
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.form import FlowForm
from rannpde.pde.flow.matrices import FlowState
from rannpde.pde.flow.scalars import scalar_diffusion
from rannpde.pde.statement.expression import Expression
from rannpde.pde.weak.assembly import HybridSolution
from rannpde.pde.weak.fluxes import FluxRecord, SideFluxes, as_flux, bounded_fluxes, side_fluxes
from rannpde.pde.weak.mesh import ConditionFinder

ScalarFluxes = Mapping[str, SideFluxes]
"""Scalar → side → ∫ κ ∂_n T, as the only one of its fluxes, and a bound of its error."""


def scalar_fluxes(system: FlowSystem, state: FlowState) -> dict[str, Array]:
    """Side → ∫ κ ∂_n T (S,) through every side with conditions of scalars."""
    local, form = system.local, system.form
    if local.diffusion is None:
        return {}
    solution = HybridSolution(state.scalars, state.traces, state.scalars[:, 0, 0])
    return side_fluxes(local.diffusion, solution, ConditionFinder(form.scalar_terms, len(form.scalars)))


def bounded_scalar_fluxes(form: FlowForm, records: Sequence[FluxRecord], safety: float) -> ScalarFluxes:
    """The fluxes of the last iteration, with bounds by their changes since the iterations before it."""
    fluxes = {}
    for s, one in enumerate(form.scalars):
        own = [FluxRecord({name: row[s : s + 1] for name, row in r.fluxes.items()}, r.indicator) for r in records]
        fluxes[one.field] = bounded_fluxes(own, safety)
    return fluxes


def as_scalar_flux(
    form: FlowForm, expression: Expression, sides: Sequence[tuple[str, Array, Array]], fluxes: ScalarFluxes
) -> tuple[float, float] | None:
    """∫ of an expression over sides, if it is a multiple of the normal derivative of one scalar, and its bound."""
    scalar = next((one for one in form.scalars if expression.fields == (one.field,)), None)
    if scalar is None or scalar.field not in fluxes:
        return None
    return as_flux(scalar_diffusion(form.problem, [scalar], ()), expression, sides, fluxes[scalar.field])
