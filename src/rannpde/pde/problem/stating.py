"""Steps in which a problem is stated: arguments are checked, equations named, forms of special problems compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy

from rannpde.domains.domain import Domain
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.problem.conditions import naming
from rannpde.pde.problem.output_checks import check_outputs
from rannpde.pde.problem.parabolic import parabolic_form
from rannpde.pde.statement.divergence import NoDivergenceForm
from rannpde.pde.statement.hints import no_derivative
from rannpde.pde.statement.reading import infer_fields

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem


def check_arguments(problem: Problem) -> None:
    """Refuse arguments of a wrong type."""
    known, remedy = "an Interval, a Box, a Ball or a SpaceTime", "e.g. rp.Interval(0, 1)"
    require(isinstance(problem.domain, Domain), "domain", problem.domain, known, remedy)
    require(
        isinstance(problem.conditions, Mapping),
        "conditions",
        problem.conditions,
        "a mapping of names to On, Periodic or Data",
        'e.g. {"boundary": "u = 0"}',
    )
    for argument in ("parameters", "functions", "bounds", "exact"):
        table = getattr(problem, argument)
        require(isinstance(table, Mapping), argument, table, "a mapping of names")
    require(isinstance(problem.name, str), "name", problem.name, "text")
    require(
        isinstance(problem.eigenvalue, str), "eigenvalue", problem.eigenvalue, "the name of a number, such as 'lam'"
    )


def named_equations(equations: Any) -> dict[str, Any]:
    """Equations by name: a single one is ``equation``, those of a list ``equation 1``, ``equation 2``, …"""
    if isinstance(equations, Mapping):
        require(bool(equations), "equations", equations, "at least one equation")
        for name in equations:
            require(isinstance(name, str), "the name of an equation", name, "text")
        return dict(equations)
    if isinstance(equations, (str, sympy.Basic)):
        return {"equation": equations}
    require(isinstance(equations, (list, tuple)), "equations", equations, "an equation, a list or a mapping of them")
    listed = list(equations)
    require(bool(listed), "equations", equations, "at least one equation")
    return {"equation": listed[0]} if len(listed) == 1 else {f"equation {k}": e for k, e in enumerate(listed, start=1)}


def state_in_space(problem: Problem) -> None:
    """State a problem for a vector in R^d: it has no expressions in scalars, and only its parabolic form is read."""
    object.__setattr__(problem, "equations", named_equations(problem.equations))
    form = parabolic_form(problem)
    object.__setattr__(problem, "parabolic", form)
    object.__setattr__(problem, "fields", (form.words.field,))
    for name in problem.exact:
        require(name in problem.fields, "exact", name, f"that of {problem.fields[0]}")
    object.__setattr__(problem, "limits", ())
    object.__setattr__(problem, "forms", {})
    object.__setattr__(problem, "variation", None)
    object.__setattr__(problem, "obstacles", ("space is all of R^d",))


def state_with_functionals(problem: Problem) -> None:
    """State a problem with integrals or values elsewhere: there are neither forms in time nor divergence forms."""
    why = f"it contains {problem.functionals[0]}"
    object.__setattr__(problem, "limits", ())
    object.__setattr__(problem, "forms", {})
    object.__setattr__(problem, "variation", None)
    object.__setattr__(problem, "obstacles", (why,))
    object.__setattr__(problem, "elliptic", NoDivergenceForm(why))
    check_outputs(problem)


def take_over(problem: Problem, forward: Problem) -> None:
    """Take all compiled forms from a problem with numbers instead of unknowns or of the eigenvalue."""
    for key in ("limits", "obstacles", "forms", "variation", "elliptic"):
        object.__setattr__(problem, key, getattr(forward, key))


def take_from_guesses(problem: Problem, forward: Problem) -> None:
    """Check that all unknowns occur; everything else was checked with the guesses in their place."""
    take_over(problem, forward)
    used = {jet.field for term in (*problem.terms, *problem.pins) for jet in term.expression.jets}
    used |= {jet.field for data in problem.measurements for jet in data.expression.jets}
    for name in problem.exact:
        if name not in (*problem.fields, *problem.unknown):
            known = [*problem.fields, *problem.unknown]
            raise InputError(f"exact names {name!r}, which is no field and no unknown; {suggestion(name, known)}")
    for name in problem.unknown:
        if name not in used:
            raise InputError(f"the unknown {name!r} stands in no equation, condition or measurement; use or drop it")


def stated_fields(problem: Problem, equations: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the fields as stated; where they are not, those whose derivatives the equations contain."""
    fields = (problem.fields,) if isinstance(problem.fields, str) else problem.fields
    require(isinstance(fields, (tuple, list)), "fields", fields, "a tuple of names")
    fields = tuple(name for name in fields if name not in problem.unknown)
    if not fields:
        words = problem.words(())
        for name, statement in equations.items():
            with naming(f"equation {name!r}"):
                fields = tuple(dict.fromkeys((*fields, *infer_fields([statement], words, equations.values()))))
    if not fields:
        raise InputError(no_derivative(list(equations.values())))
    return fields


def check_no_family(problem: Problem) -> None:
    """Refuse unknowns beside parameters with a range."""
    if problem.unknown and problem.ranges:
        raise InputError(
            f"{', '.join(problem.ranges)} has a range and {', '.join(problem.unknown)} is unknown; identify through "
            "the family instead: family.posterior(…)"
        )


def check_no_exterior(problem: Problem) -> None:
    """Refuse values outside the domain where no equation needs them."""
    if problem.exterior:
        raise InputError(
            f"{problem.exterior[0].field!r} is given outside the domain, but no equation has an integral or a value "
            "there; write t=0 for t <= 0"
        )
