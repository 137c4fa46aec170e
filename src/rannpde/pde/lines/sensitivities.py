"""A march again in the basis of one that is done, with the sensitivities of its fields as further fields.

The fields and their sensitivities fall into groups of the same kind. A group depends on the first one and on itself;
Newton's matrix keeps the groups' own blocks only, each factorised alone, and the iteration carries the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from rannpde.arrays import Array
from rannpde.pde.lines.equations import Equations
from rannpde.pde.lines.fourier import Spectral
from rannpde.pde.lines.galerkin import Galerkin, build_basis
from rannpde.pde.lines.march import Evolved, March, Stretch
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.data import Clock
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.threads import one_thread

LENIENT = 30.0
"""How much less exact the march of a sensitivity may be than that of the solution."""


def can_march_again(solution: Evolved) -> bool:
    """Whether the solution is one stretch of random features, or Fourier modes without constraints."""
    kinds = {type(stretch.system) for stretch in solution.stretches}
    if solution.evolution.constraints:
        return False
    return kinds == {Spectral} or (kinds == {Galerkin} and len(solution.stretches) == 1)


def march_again(
    solution: Evolved, together: Problem, values: Sequence[float], tol: float, over: Callable[[], bool]
) -> Evolved:
    """The fields of a problem with sensitivities to numbers of these values, in the basis of a solution of the first.

    tol : of the march, relative to the size of each field; of what a change of a number by its own size makes of it,
        far less: steps that are right for the solution give the exact sensitivities of what is computed
    over : whether the time allowed is used up
    """
    tuning = LinesTuning()
    system = solution.stretches[-1].system
    weak = isinstance(system, Spectral) or system.evolution.weak
    evolution = evolution_form(together, weak=weak)
    with one_thread(evolution.domain.space.dim == 1):
        again: Galerkin | Spectral
        if isinstance(system, Spectral):
            again = Spectral(Equations.of(evolution), system.modes, _scales(evolution, system, values))
        else:
            assert isinstance(system, Galerkin)
            again = _grouped(system, evolution, values)
        clock = Clock.of(evolution, tuning.steps.lengths_per_step)
        march = March(tuning.march_share * tol, tuning, clock, over=over)
        if isinstance(again, Spectral):
            march = replace(march, keep=again.kept)
        path = march.run(again, evolution.domain.time, again.initial_state())
    return Evolved(evolution, (Stretch(again, path),))


def _scales(evolution: Evolution, system: Galerkin | Spectral, values: Sequence[float]) -> dict[Component, float]:
    """Sizes of the components: those of the solution as known, of its sensitivities over the values."""
    known = list(system.scales.values())
    sizes = list(known)
    for value in values:
        sizes += [LENIENT * size / max(abs(value), 1e-300) for size in known]
    return dict(zip(evolution.components, sizes, strict=True))


def _grouped(system: Galerkin, evolution: Evolution, values: Sequence[float]) -> Grouped:
    names, first = list(evolution.orders), system.bases
    fields = len(first)
    bases = {}
    for place, name in enumerate(names):
        like = first[names[place % fields]]
        bases[name] = build_basis(
            like.features, like.rule, evolution, name,
            cutoff=0.5 * float(like.singular_values[-1]), boundary_points=like.boundary_points,
        )  # fmt: skip
    return Grouped(evolution, bases, _scales(evolution, system, values), fields)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A Jacobian that keeps diagonal blocks only: places and matrices."""

    places: tuple[slice, ...]
    matrices: tuple[Array, ...]

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        factors = [
            lu_factor(shift * np.eye(len(one)) - one, overwrite_a=True, check_finite=False) for one in self.matrices
        ]

        def solve(right: Array) -> Array:
            parts = [lu_solve(f, right[p], check_finite=False) for f, p in zip(factors, self.places, strict=True)]
            return np.concatenate(parts)

        return solve


@dataclass(frozen=True, eq=False)
class Grouped(Galerkin):
    """A Galerkin system of groups of ``fields`` fields, each coupled to the first group and itself."""

    fields: int = 1

    def jacobian(self, time: float, state: Array) -> Blocks:  # type: ignore[override]
        whole = self.matrix(time, state)
        places = list(self.slices.values())
        size = len(places) * self.fields // len(self.evolution.orders)
        spans = tuple(slice(places[k].start, places[k + size - 1].stop) for k in range(0, len(places), size))
        return Blocks(spans, tuple(whole[span, span].copy() for span in spans))
