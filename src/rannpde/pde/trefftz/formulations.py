"""Formulations of a problem for Trefftz networks: networks on its domain or on parts of it, local solutions in cells,
eigenfunctions of space, or the measures of walls. Each says when another method is better, and solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rannpde.pde.adaptivity.loop import Inadmissible
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Solution
from rannpde.pde.trefftz.adaptive import (
    INSIDE_POINTS,
    AdaptiveTrefftz,
    TrefftzDiscretisation,
    TrefftzIteration,
    TrefftzResult,
)
from rannpde.pde.trefftz.bounds import BoundaryErrors
from rannpde.pde.trefftz.evolution import ModalProblem
from rannpde.pde.trefftz.measures import WallMeasures
from rannpde.pde.trefftz.modal_solution import modal_solution
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.operator import CanonicalForm, canonical_form, linear_equations
from rannpde.pde.trefftz.particular import NoParticular, Particular
from rannpde.pde.trefftz.result import TrefftzTask, no_result
from rannpde.pde.trefftz.setting import TYPICAL_TOLERANCE
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.solver import VaryingSolver
from rannpde.threads import one_thread

VARYING_REASON = "the equation is linear, and its solutions vary faster than its coefficients"
"""Why it is taken where coefficients vary."""
NEWTON_REASON = "the solutions of the linearised equation vary faster than cells resolve"
"""Why it is taken where the equation is not linear."""


class Formulation(Protocol):
    """One way in which a problem is solved.

    reason : why it is taken, where that is not the reason of the method
    """

    @property
    def reason(self) -> str | None: ...

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Reasons to prefer another method that can solve the problem too."""
        ...

    def solve(self, task: TrefftzTask) -> Solution:
        """The solution to the tolerance of a task, or the best that was found, with its estimate."""
        ...


class NetworkSetting(Protocol):
    """The equations, the boundaries and the features of one network or of several that share a domain."""

    @property
    def forms(self) -> Sequence[CanonicalForm]:
        """The canonical form of each network."""
        ...

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]: ...

    def particulars(self, problem: Problem, tol: float) -> list[list[Particular]]:
        """Particular solutions of all fields for each network; NoParticular where there are none."""
        ...

    def discretisation(
        self, problem: Problem, tol: float, tuning: TrefftzTuning, parts: Sequence[Sequence[Particular]]
    ) -> TrefftzDiscretisation:
        """Their laws of features, with their particular solutions."""
        ...

    def boundary_errors(
        self, problem: Problem, result: TrefftzResult, parts: Sequence[Sequence[Particular]]
    ) -> BoundaryErrors | None:
        """The errors of a result on the boundary, where the maximum principle makes a bound of them; else None."""
        ...


@dataclass(frozen=True, eq=False)
class NetworkFormulation:
    """Features that satisfy an equation with constant coefficients, fitted to all conditions by least squares."""

    setting: NetworkSetting
    reason: str | None = None

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """The drawbacks of the setting."""
        return self.setting.drawbacks(problem, tuning)

    def solve(self, task: TrefftzTask) -> Solution:
        """Solve by the adaptive iteration."""
        problem, setting = task.problem, self.setting
        try:
            parts = setting.particulars(problem, task.tol)
        except NoParticular as reason:
            return task.solution(no_result(problem, setting.forms[0], str(reason)), "")
        discretisation = setting.discretisation(problem, task.tol, task.tuning, parts)
        defect = sum(part.defect * part.gain for cell in parts for part in cell)
        with one_thread():
            loop = AdaptiveTrefftz(problem, discretisation, defect, task.tol, task.monitor, task.tuning)
            result = loop.run(task.rng)
            boundary = setting.boundary_errors(problem, result, parts)
        return task.solution(result, boundary=boundary)


@dataclass(frozen=True, eq=False)
class LocalFormulation:
    """Solutions of an equation whose coefficients vary, or of the linearised equation, joined by least squares."""

    equation: VaryingEquation

    @property
    def reason(self) -> str:
        return VARYING_REASON if self.equation.linear else NEWTON_REASON

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Whether something is singular, or cells of polynomials resolve the solutions as well."""
        what = "its coefficients vary" if self.equation.linear else "it is not linear"
        if self.equation.singular:
            return (f"{what}, and it has no features for what is singular at corners or where conditions change",)
        return () if self.equation.oscillates else (f"{what}, and solutions vary no faster than cells resolve",)

    def solve(self, task: TrefftzTask) -> Solution:
        """Solve by the adaptive loop over meshes."""
        with one_thread():
            try:
                return task.solution(VaryingSolver(self.equation, task.tol, task.monitor, task.solution).run())
            except Inadmissible as stop:  # already on the first mesh
                plain = CanonicalForm(np.eye(2), self.equation.bounds.mean(axis=1), np.zeros(2), 0.0, 1.0, 0.0)
                return task.solution(no_result(task.problem, plain, stop.detail, stop.status))


@dataclass(frozen=True, eq=False)
class ModalFormulation:
    """A linear evolution by eigenfunctions in space, each with its rates in time."""

    modal: ModalProblem
    reason: str | None = None

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """Whether lines are as good, or eigenfunctions converge slowly."""
        modal = self.modal
        if modal.measured is not None or modal.jumps:
            return ()
        if modal.domain.space.dim == 1:
            return ("in one dimension of space lines are as fast",)
        if modal.evolution.parities is not None:
            return ("lines have the same sines and cosines",)
        if not modal.resolved(TYPICAL_TOLERANCE, np.random.default_rng(0)):
            return ("initial values and walls do not suit each other, and eigenfunctions converge slowly",)
        return ()

    def solve(self, task: TrefftzTask) -> Solution:
        """Solve with more and more eigenfunctions."""
        with one_thread():
            return self._solved(task)

    def _solved(self, task: TrefftzTask) -> Solution:
        done: list[TrefftzIteration] = []
        best: TrefftzResult | None = None
        bound: float | None = None

        def result(end: Status, detail: str) -> Solution:
            assert best is not None
            outcome = replace(best, iterations=tuple(done), status=end, detail=detail)
            return task.solution(outcome, bound=bound, checked=True)

        for number, now in enumerate(modal_solution(self.modal, task.tol, task.rng), start=1):
            columns = sum(now.network.widths)
            record = TrefftzIteration(
                columns, columns, columns, now.initial, now.largest, now.amplification, now.estimate,
                task.monitor.elapsed,
            )  # fmt: skip
            done.append(record)
            if best is None or now.estimate < best.best.estimate:
                best, bound = TrefftzResult(now.network, record, (), Status.STALLED, "", now.scale), now.bound
            task.monitor.keep(result)
            task.monitor.tell(number, 1, width=columns, estimate=now.estimate)
            if now.estimate <= task.tol:
                return result(Status.CONVERGED, "the error of the initial values is below the tolerance")
            if task.monitor.exhausted:
                return result(Status.BUDGET, "")
        # from a jump no other method gets farther: it is not handed over
        end = Status.DISAGREE if self.modal.jumps else Status.STALLED
        return result(end, "initial values do not suit the walls, and eigenfunctions converge slowly")


@dataclass(frozen=True, eq=False)
class WallFormulation:
    """A box by the harmonic measures of its walls: conditions hold exactly, and integrals have the error."""

    measures: WallMeasures
    reason: str | None = None

    def drawbacks(self, problem: Problem, tuning: TrefftzTuning) -> tuple[str, ...]:
        """None."""
        return ()

    def solve(self, task: TrefftzTask) -> Solution:
        """Solve by quadrature."""
        problem = task.problem
        inside = problem.domain.sample(INSIDE_POINTS, rng=task.rng, method="sobol")
        finer, error = self.measures.refined(inside, task.tol)
        equations = linear_equations(problem)
        assert not isinstance(equations, str)
        form = canonical_form(equations[0].symbols[problem.fields[0]], problem.domain.bounds.mean(axis=1))
        assert form is not None
        network = TrefftzNetwork((), np.empty(0), (finer,), form)
        scale = float(np.sqrt(np.mean(np.square(network(inside))))) or 1.0
        record = TrefftzIteration(0, 0, 0, 0.0, error / scale, 1.0, error / scale, task.monitor.elapsed)
        status, detail = Status.STALLED, "integrals of the measures of the walls converge slowly"
        if error <= task.tol * scale:
            status, detail = Status.CONVERGED, "integrals of the measures of the walls are exact to the tolerance"
        result = TrefftzResult(network, record, (record,), status, detail, scale)
        return task.solution(result, "harmonic measures of the walls", bound=error)
