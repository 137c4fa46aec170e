"""Solve a problem for all values of its parameters: solves at the nodes of an adaptive interpolation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, require
from rannpde.pde.family.adaptive import AdaptiveInterpolation, Sample, WorstPoint, interpolate_adaptively
from rannpde.pde.family.family import Family, middle_of
from rannpde.pde.family.history import FamilyHistory
from rannpde.pde.family.nodes import SparseGrid
from rannpde.pde.family.residuals import ParametricResidual
from rannpde.pde.family.settings import FamilySettings
from rannpde.pde.family.shape_family import ShapeFamily, nearest_to_middle
from rannpde.pde.family.table import ValueTable, box_of, value_table
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solution import Choice, Solution, SolvedFunction

RESERVED = ("points", "derivative", "by", "name", "self")
"""Names of arguments of a family's methods, which take the values of parameters by their names too."""


@dataclass(frozen=True, eq=False)
class MemberTask:
    """One solve of a family.

    like : the solution of a neighbour, from whose discretisation a method may start; seconds, memory : allowed
    of_outputs : whether ``tol`` is the relative error wanted of every output, and not that of the fields
    """

    problem: Problem
    tol: float
    rng: np.random.Generator
    like: SolvedFunction | None
    seconds: float | None
    memory: float | None
    of_outputs: bool = False


class MemberSolver(Protocol):
    """Solves members of a family, one after the other or side by side."""

    @property
    def workers(self) -> int:
        """How many members are solved at once."""
        ...

    def __call__(self, tasks: Sequence[MemberTask], /) -> list[Solution]: ...


def solve_family(
    problem: Problem,
    tol: float,
    solver: MemberSolver,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Family | ShapeFamily:
    """The family of a problem with ranges, to the relative error ``tol`` for every value of the parameters.

    The error is that of the fields in L²; where the domain changes with the parameters, that of the outputs.
    """
    settings = FamilySettings()
    for name in problem.ranges:
        if name in RESERVED:
            raise InputError(f"the parameter {name!r} has a range and the name of an argument; rename it")
    choice_rng, seeds = rng.spawn(2)
    measure = OutputValues(tuple(problem.outputs)) if problem.changing_domain else FieldValues.of(problem, settings)
    members = _Members(problem, settings.member_share * tol, solver, seeds, monitor, measure)
    interpolation = interpolate_adaptively(
        members, len(problem.ranges), tol, settings, choice_rng, monitor, solver.workers, _worst_residual(problem)
    )
    return _family(problem, tol, interpolation, settings, monitor, members)


def _worst_residual(problem: Problem) -> WorstPoint | None:
    """Where the residual of the equations is largest; None where the domain changes, or the residual is not known."""
    residual = None if problem.changing_domain else ParametricResidual.of(problem)
    if residual is None:
        return None

    def worst_point(samples: Sequence[Sample], grid: SparseGrid, reduced: Array) -> Array | None:
        return residual.worst([sample.result.function for sample in samples], grid, reduced)

    return worst_point


class Measure(Protocol):
    """The values (m, columns) of a solution that are interpolated over the parameters, and their relative error."""

    def __call__(self, solution: Solution, /) -> tuple[Array, float]: ...


@dataclass(frozen=True, eq=False)
class FieldValues:
    """The fields at fixed points of a domain that is the same for all parameters."""

    points: Array

    @classmethod
    def of(cls, problem: Problem, settings: FamilySettings) -> FieldValues:
        return cls(problem.domain.sample(settings.points, rng=20_231))

    def __call__(self, solution: Solution, /) -> tuple[Array, float]:
        return np.asarray(solution.function(self.points)), float(solution.estimate)


@dataclass(frozen=True)
class OutputValues:
    """The outputs of the problem, where the domain changes with the parameters and fields cannot be compared."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        remedy = 'state what is wanted of it, e.g. outputs={"flux": rp.Output("dn(u)", on="hole")}'
        require(bool(self.names), "outputs", {}, "given where the domain depends on a parameter with a range", remedy)

    def __call__(self, solution: Solution, /) -> tuple[Array, float]:
        quantities = [solution.outputs[name] for name in self.names]
        for name, one in zip(self.names, quantities, strict=True):
            require(np.ndim(one.value) == 0, f"output {name!r}", "a time series", "a single number", "give one time")
        relative = [float(np.max(one.relative_bound)) for one in quantities]
        return np.array([[float(one) for one in quantities]]), max(relative)


@dataclass(eq=False)
class _Members:
    """Solutions at nodes, and what is measured of each."""

    problem: Problem
    tol: float
    solver: MemberSolver
    rng: np.random.Generator
    monitor: Monitor
    measure: Measure
    known: list[tuple[Array, Solution]] = field(default_factory=list)

    def __call__(self, nodes: Sequence[Array], /) -> list[Sample]:
        samples: list[Sample] = []
        for start in range(0, len(nodes), self.solver.workers):
            batch = nodes[start : start + self.solver.workers]
            solutions = self.solver([self._task(node) for node in batch])
            samples += [self._sample(node, one) for node, one in zip(batch, solutions, strict=True)]
            self.monitor.tell(len(self.known), len(self.known), width=sum(solutions[-1].widths))
            if samples[-1].ended is not None:
                break
        return samples

    def solved_at(self, values: Mapping[str, float]) -> Solution:
        """The solution at values of the parameters, solved anew without a limit of time."""
        task = self._task_at(values, None)
        return self.solver([replace(task, seconds=None)])[0]

    def _task(self, node: Array) -> MemberTask:
        values = {name: one.value(y) for (name, one), y in zip(self.problem.ranges.items(), node, strict=True)}
        near = min(self.known, key=lambda one: float(np.linalg.norm(one[0] - node)), default=None)
        return self._task_at(values, None if near is None else near[1].function)

    def _task_at(self, values: Mapping[str, float], like: SolvedFunction | None) -> MemberTask:
        shown = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        try:
            problem = self.problem.with_parameters(values)
        except InputError as error:
            raise InputError(f"at {shown}: {error}") from None
        budget = self.monitor.rest().budget
        of_outputs = isinstance(self.measure, OutputValues)
        return MemberTask(problem, self.tol, self.rng.spawn(1)[0], like, budget.seconds, budget.memory, of_outputs)

    def _sample(self, node: Array, solution: Solution) -> Sample:
        ended = solution.status if solution.status.by_caller else None
        self.known.append((node, solution))
        values, error = self.measure(solution)
        return Sample(values, error, solution, ended)


def _family(
    problem: Problem,
    tol: float,
    interpolation: AdaptiveInterpolation,
    settings: FamilySettings,
    monitor: Monitor,
    solves: _Members,
) -> Family | ShapeFamily:
    state = interpolation.interpolant
    usable = [bool(np.isfinite(sample.values).all()) for sample in state.samples]
    if not all(usable) and any(usable):  # the last one was not finite, and those before it are kept
        state.keep(sum(usable))
    members = tuple(sample.result for sample in state.samples)
    checked = tuple(sample.result for sample in interpolation.check_samples)
    model = state.model()
    complete = bool(interpolation.iterations) and all(usable)  # before the first iteration, no decay was seen
    estimate = sum(model.largest(settings.judged_values)) if complete else np.inf
    fixed = not problem.changing_domain
    table = _table(problem, members, tol, settings, monitor) if fixed and np.isfinite(estimate) else None
    names = tuple(problem.ranges)
    values = [
        tuple(one.value(y) for one, y in zip(problem.ranges.values(), row, strict=True))
        for row in interpolation.checked
    ]
    slowest = max((one.seconds for one in members), default=0.0)
    history = FamilyHistory(
        names,
        interpolation.iterations,
        tuple(zip(values, interpolation.checks, strict=True)),
        slowest,
        table is not None,
    )
    detail = interpolation.detail
    failed = next((one for one in members if not one.converged), None)
    if not interpolation.status.converged and failed is not None and not interpolation.status.by_caller:
        shown = ", ".join(f"{name} = {failed.stated.parameters[name]:g}" for name in names)
        detail = f"{detail or interpolation.status}; the solve at {shown} ended so: {failed.reason}"
    kinds = " and ".join(dict.fromkeys(one.method.name for one in members))
    way = "Leja points" if len(names) == 1 else "a sparse grid of Leja points"
    what = "interpolation" if fixed else "interpolation of outputs"
    label = f"{what} in {', '.join(names)} at {way} of solves by {kinds}"
    terms = ("held_out", "losses", "integrals")
    worst: dict[str, Any] = {key: _largest([getattr(one, key) for one in members]) for key in terms}
    common: dict[str, Any] = dict(
        problem=problem, fields=problem.fields, status=interpolation.status, detail=detail, estimate=float(estimate),
        method=Choice("family", label, f"parameters with a range; {members[0].method.why}"),
        history=history, seconds=monitor.elapsed, members=members, checked=checked, model=model, **worst,
    )  # fmt: skip
    if fixed:
        return Family(function=middle_of(problem.ranges, model, members), table=table, **common)
    return ShapeFamily(function=nearest_to_middle(model, members).function, solver=solves.solved_at, **common)


def _largest(tables: Sequence[object]) -> dict[str, float]:
    """The largest value of every name."""
    largest: dict[str, float] = {}
    for table in tables:
        for name, value in dict(table).items():  # type: ignore[call-overload]
            largest[name] = max(float(value), largest.get(name, 0.0))
    return largest


def _table(
    problem: Problem, members: Sequence[Solution], tol: float, settings: FamilySettings, monitor: Monitor
) -> ValueTable | None:
    """A table of values of all members, checked at points that are none of its own; None where it cannot be had."""
    if not box_of(problem.domain) or monitor.budget.exhausted:
        return None
    functions = [member.function for member in members]
    share = settings.table_share * tol
    guides = [functions[k] for k in sorted({*range(min(3, len(functions))), len(functions) - 1})]
    table = value_table(problem.domain, functions, guides, share / 2, settings.table_degree, settings.table_points)
    if table is None:
        return None
    points = problem.domain.sample(500, rng=20_232)
    for k, function in enumerate(functions):
        exact = function(points)
        missed = np.linalg.norm(table(np.eye(len(functions))[k], points) - exact, axis=0)
        if np.any(missed > share * np.linalg.norm(exact, axis=0) + 1e-300):
            return None
    return table
