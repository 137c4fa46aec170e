"""Formulations of a problem in weak form: those of a stationary problem, of a plate, and of an evolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rannpde.domains.domain import SpaceTime
from rannpde.pde.problem.problem import Problem
from rannpde.pde.weak.bounds import EnergyBound, energy_bound
from rannpde.pde.weak.dual_weighted import WeightedOutput, weighted_outputs
from rannpde.pde.weak.evolution import weak_evolution
from rannpde.pde.weak.evolution_solver import EvolutionDiscretisation
from rannpde.pde.weak.fluxes import FluxRecord, side_fluxes
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.functionals import WeightableOutput, weightable_outputs
from rannpde.pde.weak.plate import PlateDiscretisation, PlateState
from rannpde.pde.weak.plate_form import plate_form
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakState
from rannpde.rounding import COMPUTED


@dataclass(frozen=True, eq=False)
class StateRecord:
    """The quantities that are stored of a state: fluxes through sides, and outputs with their adjoints."""

    fluxes: FluxRecord | None = None
    weighted: Mapping[str, WeightedOutput] | None = None


class WeakFormulation(Protocol):
    """A discretisation for the adaptive loop, with the records and bounds of its states.

    sentences : about the form, for the report
    """

    @property
    def discretisation(self) -> Any: ...

    @property
    def sentences(self) -> tuple[str, ...]: ...

    @property
    def failure(self) -> str | None:
        """Why Newton's method failed, if it did."""
        ...

    @property
    def free(self) -> str | None:
        """The part of the solution that equations and conditions do not determine, in words; None if there is none."""
        ...

    @property
    def rounding(self) -> str:
        """Why rounding counts more than usual, for a solve that stalled; empty where it does not."""
        ...

    def record(self, state: Any) -> StateRecord:
        """The quantities that are stored of a state."""
        ...

    def bound(self, state: Any) -> EnergyBound | None:
        """A guaranteed bound of the error of a state in the energy norm; None where there is none."""
        ...


@dataclass(frozen=True, eq=False)
class StationaryFormulation:
    """A stationary problem of second order."""

    discretisation: WeakDiscretisation
    outputs: tuple[WeightableOutput, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.discretisation.form.described(), *_displacement(self.discretisation))

    @property
    def failure(self) -> str | None:
        failure = self.discretisation.failure
        return None if failure is None else str(failure)

    @property
    def free(self) -> str | None:
        weak = self.discretisation
        return weak.motions.described(weak.problem.fields) if len(weak.motions) else None

    @property
    def rounding(self) -> str:
        weak = self.discretisation
        if weak.tol < COMPUTED or not weak.rounded:
            return ""
        return (
            f"; a change of volume or another strain is {weak.stiffness_ratio:.0e} times as stiff as others, as in "
            "nearly incompressible materials, and rounding counts as many times"
        )

    def record(self, state: WeakState) -> StateRecord:
        """Fluxes by the weak residual where the problem is linear, and the weighted outputs."""
        weak, fluxes, weighted = self.discretisation, None, None
        if weak.form.quasilinear is None and not len(weak.motions):
            through = side_fluxes(state.local, state.solution, weak.finder)
            fluxes = FluxRecord(through, state.relative_indicator) if through else None
        if self.outputs:
            weighted = weighted_outputs(weak, state, self.outputs)
        return StateRecord(fluxes, weighted)

    def bound(self, state: WeakState) -> EnergyBound | None:
        return energy_bound(state.local, state.solution)


@dataclass(frozen=True, eq=False)
class LinearFormulation:
    """A linear evolution, or an equation of fourth order: no fluxes or outputs are stored, and no bound is known."""

    discretisation: EvolutionDiscretisation | PlateDiscretisation
    sentences: tuple[str, ...]
    failure: None = None
    free: None = None
    rounding: str = ""

    def record(self, state: WeakState | PlateState) -> StateRecord:
        """An empty record."""
        return StateRecord()

    def bound(self, state: WeakState | PlateState) -> EnergyBound | None:
        """None: no bound is known."""
        return None


def _displacement(weak: WeakDiscretisation) -> tuple[str, ...]:
    if not weak.displacement:
        return ()
    return (f"errors of {', '.join(weak.problem.fields)} are those of one vector, a displacement",)


def formulation_of(
    problem: Problem, tol: float, settings: WeakSettings, rng: np.random.Generator, check_budget: Callable[[], None],
    stop: Callable[[], bool], degree: int | None,
) -> WeakFormulation:  # fmt: skip
    """The discretisation of a problem; ``stop`` returns whether the integration in time has to end."""
    if isinstance(problem.domain, SpaceTime):
        evolution = EvolutionDiscretisation(weak_evolution(problem), tol, settings, rng, check_budget, stop, degree)
        space = evolution.space
        return LinearFormulation(evolution, (*space.form.described(), *_displacement(space)))
    if fourth_order(problem):
        plate = PlateDiscretisation(plate_form(problem), tol, settings, rng, check_budget, degree)
        return LinearFormulation(plate, tuple(plate.form.described()))
    weak = WeakDiscretisation(weak_formulation(problem), tol, settings, rng, check_budget, degree)
    outputs = tuple(weightable_outputs(problem).values())
    weak.with_adjoints = bool(outputs)
    return StationaryFormulation(weak, outputs)


def fourth_order(problem: Problem) -> bool:
    """Whether a problem is one of a plate."""
    return max(jet.order for term in problem.interior for jet in term.expression.jets) == 4
