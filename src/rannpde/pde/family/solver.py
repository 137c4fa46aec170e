"""Solve a problem for all values of its parameters: solves at the nodes of an adaptive interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.family.adaptive import AdaptiveInterpolation, Sample, interpolate_adaptively
from rannpde.pde.family.family import Family, middle_of
from rannpde.pde.family.history import FamilyHistory
from rannpde.pde.family.settings import FamilySettings
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
    """

    problem: Problem
    tol: float
    rng: np.random.Generator
    like: SolvedFunction | None
    seconds: float | None
    memory: float | None


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
    settings: FamilySettings | None = None,
) -> Family:
    """The family of a problem with ranges, to the relative L² error ``tol`` for every value of the parameters."""
    settings = settings or FamilySettings()
    for name in problem.ranges:
        if name in RESERVED:
            raise InputError(f"the parameter {name!r} has a range and the name of an argument; rename it")
    choice_rng, seeds = rng.spawn(2)
    members = _Members(problem, settings.member_share * tol, solver, seeds, monitor, settings)
    found = interpolate_adaptively(
        members, len(problem.ranges), tol, settings, choice_rng, monitor, batch=solver.workers
    )
    return _family(problem, tol, found, settings, monitor)


@dataclass(eq=False)
class _Members:
    """Solutions at nodes, each with its values at fixed points of the domain."""

    problem: Problem
    tol: float
    solver: MemberSolver
    rng: np.random.Generator
    monitor: Monitor
    settings: FamilySettings
    known: list[tuple[Array, Solution]] = field(default_factory=list)
    points: Array = field(init=False)

    def __post_init__(self) -> None:
        self.points = self.problem.domain.sample(self.settings.points, rng=20_231)

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

    def _task(self, node: Array) -> MemberTask:
        values = {name: one.value(y) for (name, one), y in zip(self.problem.ranges.items(), node, strict=True)}
        shown = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        try:
            problem = self.problem.with_parameters(values)
        except InputError as error:
            raise InputError(f"at {shown}: {error}") from None
        near = min(self.known, key=lambda one: float(np.linalg.norm(one[0] - node)), default=None)
        limited = self.monitor.budget.seconds is not None
        seconds = max(self.monitor.budget.remaining, 0.1) if limited else None
        like = None if near is None else near[1].function
        return MemberTask(problem, self.tol, self.rng.spawn(1)[0], like, seconds, self.monitor.budget.memory)

    def _sample(self, node: Array, solution: Solution) -> Sample:
        ended = solution.status if solution.status.by_caller else None
        self.known.append((node, solution))
        values = np.asarray(solution.function(self.points))
        return Sample(values, float(solution.estimate), solution, ended)


def _family(
    problem: Problem, tol: float, found: AdaptiveInterpolation, settings: FamilySettings, monitor: Monitor
) -> Family:
    state = found.interpolant
    usable = [bool(np.isfinite(sample.values).all()) for sample in state.samples]
    if not all(usable) and any(usable):  # the last one was not finite, and those before it are kept
        state.keep(sum(usable))
    members = tuple(sample.result for sample in state.samples)
    checked = tuple(sample.result for sample in found.check_samples)
    model = state.model()
    complete = bool(found.rounds) and all(usable)  # before the first round, no decay was seen
    estimate = sum(model.largest(settings.judged_values)) if complete else np.inf
    table = _table(problem, members, tol, settings, monitor) if np.isfinite(estimate) else None
    names = tuple(problem.ranges)
    values = [tuple(one.value(y) for one, y in zip(problem.ranges.values(), row, strict=True)) for row in found.checked]
    slowest = max((one.seconds for one in members), default=0.0)
    history = FamilyHistory(
        names, found.rounds, tuple(zip(values, found.checks, strict=True)), slowest, table is not None
    )
    detail = found.detail
    failed = next((one for one in members if not one.converged), None)
    if not found.status.converged and failed is not None and not found.status.by_caller:
        shown = ", ".join(f"{name} = {failed.stated.parameters[name]:g}" for name in names)
        detail = f"{detail or found.status}; the solve at {shown} ended so: {failed.reason}"
    kinds = " and ".join(dict.fromkeys(one.method.name for one in members))
    way = "Leja points" if len(names) == 1 else "a sparse grid of Leja points"
    label = f"interpolation in {', '.join(names)} at {way} of solves by {kinds}"
    terms = ("held_out", "losses", "integrals")
    worst: dict[str, Any] = {key: _largest([getattr(one, key) for one in members]) for key in terms}
    return Family(
        problem=problem, fields=problem.fields, function=middle_of(problem.ranges, model, members),
        method=Choice("family", label, f"parameters with a range; {members[0].method.why}"), status=found.status,
        detail=detail, estimate=float(estimate), history=history, seconds=monitor.elapsed, members=members,
        checked=checked, model=model, table=table, **worst,
    )  # fmt: skip


def _largest(tables: Sequence[object]) -> dict[str, float]:
    """The largest value of every name."""
    found: dict[str, float] = {}
    for table in tables:
        for name, value in dict(table).items():  # type: ignore[call-overload]
            found[name] = max(float(value), found.get(name, 0.0))
    return found


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
