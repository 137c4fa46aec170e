"""A march again: the functions of space of one that is done, other numbers and functions in the equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rannpde.pde.lines.evolved import Evolved, ProjectedSystem, Stretch
from rannpde.pde.lines.galerkin import Galerkin, build_basis
from rannpde.pde.lines.march import March
from rannpde.pde.lines.periodic.equations import Equations
from rannpde.pde.lines.periodic.iterations import whole_period
from rannpde.pde.lines.periodic.modes import EXACT, Modes
from rannpde.pde.lines.periodic.spectral import Spectral
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.response.influence import weak_form
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import Clock
from rannpde.pde.problem.evolution import Evolution, constraints_of, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.threads import one_thread


def march_again(
    solution: Evolved, problem: Problem, tol: float, over: Callable[[], bool], clock: Clock | None = None
) -> Evolved:
    """A problem that differs in its numbers and functions only, marched with the functions of space of a solution.

    clock : of its data in time, where it is known already; over : whether the time allowed is used up
    """
    tuning, system = LinesTuning(), solution.stretches[-1].system
    evolution = evolution_form(problem, weak=weak_form(solution))
    with one_thread(evolution.domain.space.dim == 1):
        again = _moved(system, evolution)
        clock = clock or Clock.of(evolution, tuning.steps.lengths_per_step)
        path = March(tuning.march_share * tol, tuning, clock, over=over).run(
            again, evolution.domain.time, again.initial_state()
        )
    return Evolved(evolution, (Stretch(again, path),))


def _whole(modes: Modes, evolution: Evolution) -> Modes:
    """Modes of the whole box: data may repeat themselves at some values of the unknowns and not at others."""
    bounds = whole_period(evolution)
    pairs = zip(bounds, modes.bounds, modes.highest, strict=True)
    highest = tuple(round((b - a) / (d - c)) * high for (a, b), (c, d), high in pairs)
    return replace(modes, bounds=bounds, highest=highest, padding=EXACT)


def _moved(system: ProjectedSystem, evolution: Evolution) -> Galerkin | Products | Spectral:
    """The same functions of space for another evolution."""
    scales = dict(zip(evolution.components, system.scales.values(), strict=True))
    if isinstance(system, Spectral):
        return Spectral(Equations.of(evolution), _whole(system.modes, evolution), scales)
    if isinstance(system, Products):
        return replace(system, evolution=evolution, scales=scales)
    assert isinstance(system, Galerkin)
    bases = {}
    for name, basis in system.bases.items():
        rows = constraints_of(evolution, name, basis.boundary_points)
        same = all(
            np.array_equal(one.coefficients[k], other.coefficients.get(k))  # type: ignore[arg-type]
            for one, other in zip(rows, basis.constraints, strict=True)
            for k in one.coefficients
        )
        bases[name] = replace(basis, constraints=rows) if same else build_basis(
            basis.features, basis.rule, evolution, name,
            cutoff=0.5 * float(basis.singular_values[-1]), boundary_points=basis.boundary_points,
        )  # fmt: skip
    return Galerkin(evolution, bases, scales)
