"""The same problem with values of its unknowns or parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rannpde.errors import choose
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.conditions import Data
from rannpde.pde.problem.unknown import Bare, Unknown

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def without_unknowns(problem: Problem, values: Mapping[str, Any]) -> Problem:
    """See ``Problem.at``."""
    numbers, functions = {}, {}
    for name, one in problem.unknown.items():
        if isinstance(one, Unknown):
            numbers[name] = float(values.get(name, one.guess))
        else:
            functions[name] = Bare(values.get(name, one.formula), one.of)
    pinned = {term.name for term in problem.pins}
    stated = {n: c for n, c in problem.conditions.items() if not isinstance(c, Data) and n not in pinned}
    with warnings.catch_warnings():  # corner values conflict for every guess, or were checked with the first
        warnings.simplefilter("ignore", ConditionWarning)
        forward = replace(
            problem, conditions=stated, parameters={**problem.parameters, **numbers},
            functions={**problem.functions, **functions}, unknown={},
            exact={name: given for name, given in problem.exact.items() if name in problem.fields},
        )  # fmt: skip
    if set(functions) & set(values):  # unknown functions are smooth: the variation is that of their guesses
        object.__setattr__(forward, "variation", problem.at(numbers).variation if numbers else problem.variation)
    return forward


def with_values(problem: Problem, values: Mapping[str, float]) -> Problem:
    """See ``Problem.with_parameters``."""
    for name in values:
        choose("parameter", name, problem.parameters)
    with warnings.catch_warnings():  # corner values were checked when the problem was stated
        warnings.simplefilter("ignore", ConditionWarning)
        moved: Any = problem.parametric_domain or problem.domain
        return replace(problem, parameters={**problem.parameters, **values}, domain=moved)
