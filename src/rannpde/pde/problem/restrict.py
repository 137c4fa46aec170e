"""A problem on a part of its time: a window from the start, or a slab that continues a solution."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rannpde.domains.boundary.sides import FlatSide
from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError
from rannpde.pde.functions import OneField, PointFunction, State
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.conditions import Condition, Data, On, named_sides
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet, jet_name


def restrict_time(problem: Problem, interval: tuple[float, float], before: State | None = None) -> Problem:
    """The problem on a shorter time interval: a window from the start, or a slab that continues a solution.

    The values of ``before`` replace initial conditions, if given.
    """
    domain = problem.domain
    if not isinstance(domain, SpaceTime):
        raise InputError("slabs and windows cut time, but the domain has none; leave slabs out")
    shorter = domain.restrict(t=interval)
    conditions: dict[str, Condition] = {}
    functions: dict[str, Any] = dict(problem.functions)
    for name, condition in problem.conditions.items():
        shortened = _shortened(condition, problem, interval, drop_initial=before is not None)
        if shortened is not None:
            conditions[name] = shortened
    if before is not None:
        conditions |= _carried(problem, interval[0], before, functions)
    with warnings.catch_warnings():  # corners were checked with the whole problem; continued values differ by its error
        warnings.simplefilter("ignore", ConditionWarning)
        return replace(problem, domain=shorter, conditions=conditions, functions=functions, incomplete=True)


def _shortened(
    condition: Condition, problem: Problem, interval: tuple[float, float], drop_initial: bool
) -> Condition | None:
    if isinstance(condition, Data):
        times = np.asarray(condition.points, dtype=float)[:, 0]
        inside = (times >= interval[0]) & (times <= interval[1])
        chosen = replace(
            condition, points=np.asarray(condition.points)[inside], values=np.asarray(condition.values)[inside]
        )
        return chosen if inside.any() else None
    if not isinstance(condition, On) or callable(condition.where):
        return condition
    names = []
    for side in named_sides(condition.where, problem.domain, problem.numbers):
        if not isinstance(side, FlatSide):
            names.append(side.name)
        elif side.axis > 0 or (interval[0] <= side.value <= interval[1] and not (drop_initial and side.outward == -1)):
            names.append(f"{problem.domain.names[side.axis]}={side.value!r}")
    return replace(condition, where=tuple(names)) if names else None


def _carried(problem: Problem, start: float, before: State, functions: dict[str, Any]) -> Mapping[str, Condition]:
    conditions: dict[str, Condition] = {}
    arguments = ", ".join(problem.domain.names)
    for number, name in enumerate(problem.fields):
        for order in range(max(problem.order(name, 0), 0)):
            jet = Jet(name, (order,) + (0,) * (problem.domain.dim - 1))
            quantity = jet_name(jet, problem.domain.names)
            functions[f"carried_{quantity}"] = PointFunction(OneField(before, number, jet.index))
            conditions[f"carried {quantity}"] = On(f"t={start!r}", f"{quantity} = carried_{quantity}({arguments})")
    return conditions
