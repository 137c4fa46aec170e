"""A hash of the statements of a problem, by which files recognise it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def fingerprint_of(problem: Problem) -> str:
    """See ``Problem.fingerprint``."""
    if problem.parabolic is not None:
        parts = [
            repr(problem.domain),
            repr(sorted(problem.equations.items())),
            repr(sorted(problem.conditions.items())),
        ]
        parts += [f"{name}: {value.tolist()}" for name, value in problem.parabolic.words.parameters.items()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    said = [repr(problem.domain), *(f"{term.name}: {term.kind} {term.expression.formula}" for term in problem.terms)]
    said += [
        f"{one.name}: {one.field} {'>=' if one.lower else '<='} {one.bound.formula}" for one in problem.inequalities
    ]
    said += [f"{name}: flux {problem.expressions[name].flux}" for name in problem.jumping]
    if problem.functionals:
        said += [repr(term.expression.functionals) for term in problem.terms] + [repr(one) for one in problem.exterior]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()
