"""Problems with an eigenvalue: what may be combined with it, and complex parameters, which only these have."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

from rannpde.domains.domain import SpaceTime
from rannpde.errors import InputError, reject, require
from rannpde.pde.problem.conditions import Data

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

GENERIC_EIGENVALUE = (sqrt(5) - 1) / 2
"""The number that replaces an eigenvalue where a problem is checked and counted: any but special ones."""


def check_eigenvalue(problem: Problem) -> None:
    """Refuse what a problem with an eigenvalue cannot have beside it."""
    name = problem.eigenvalue
    require(name.isidentifier(), "eigenvalue", name, "a word, such as 'lam'")
    for argument in ("unknown", "bounds", "exact"):
        if getattr(problem, argument):
            raise InputError(f"{argument} is given beside eigenvalue={name!r}; leave one of them out")
    if problem.complex:
        reject("complex", True, f"left out beside eigenvalue={name!r}", 'state i by parameters={"i": 1j}')
    if isinstance(problem.fields, Mapping) or problem.definitions:
        raise InputError(f"vectors and definitions are given beside eigenvalue={name!r}; write out the components")
    if name in problem.parameters:
        raise InputError(f"{name!r} is the eigenvalue and a parameter; leave it out of the parameters")
    if isinstance(problem.domain, SpaceTime):
        reject("domain", problem.domain, "one without time beside an eigenvalue", "state u_t as lam*u")
    for key, condition in problem.conditions.items():
        if isinstance(condition, Data):
            raise InputError(f"condition {key!r} holds measured values, but an eigenvalue problem is homogeneous")


def split_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, complex]]:
    """Real parameters, as they were given, and complex ones.

    >>> split_parameters({"k": 2, "i": 1j})
    ({'k': 2}, {'i': 1j})
    """
    complex_numbers = {name: complex(one) for name, one in parameters.items() if isinstance(one, complex)}
    for name, one in complex_numbers.items():
        require(isfinite(one.real) and isfinite(one.imag), f"parameters[{name!r}]", one, "a finite number")
    return {name: one for name, one in parameters.items() if name not in complex_numbers}, complex_numbers
