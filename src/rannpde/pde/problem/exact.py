"""Exact solutions of problems, as fields that solutions are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.errors import InputError
from rannpde.pde.functions import ExactSolution, Formula
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vector import evaluate_vector
from rannpde.pde.statement.vector_reading import read_vector

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def exact_fields(problem: Problem) -> ExactSolution | None:
    """The exact solution, if one was given for every field."""
    if not problem.exact:
        return None
    return ExactSolution({name: _function(problem, problem.exact[name]) for name in problem.fields})


def _function(problem: Problem, given: Any) -> Any:
    """A formula as a function with derivatives; functions as they are."""
    if not isinstance(given, (str, sympy.Expr, int, float)):
        return given
    words = problem.words(())
    return Formula(read(str(given) if isinstance(given, (int, float)) else given, words), words.symbols)


def exact_values_in_space(problem: Problem, points: Array) -> Array:
    """The exact solution (M,) of a problem in R^d at rows (t, x_1, …, x_d)."""
    form = problem.parabolic
    if form is None or not problem.exact:
        raise InputError("exact_values needs an exact solution of a problem in R^d; give exact={…}")
    given = problem.exact[problem.fields[0]]
    if not isinstance(given, str):
        return np.asarray(given(points), dtype=float)
    values = evaluate_vector(read_vector(given, form.words), {"time": points[:, :1], "point": points[:, 1:]})
    return np.broadcast_to(values, (len(points), 1))[:, 0]
