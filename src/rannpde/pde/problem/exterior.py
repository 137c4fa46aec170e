"""Values outside the domain, ``{"t <= 0": "u = cos(t)"}``: histories of delay equations, and what lies beyond ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rannpde.domains.domain import Box, Domain, SpaceTime
from rannpde.errors import InputError
from rannpde.pde.functional_values import Exterior, Surroundings
from rannpde.pde.functions import Formula
from rannpde.pde.problem.conditions import On, naming, outside
from rannpde.pde.residual import Term
from rannpde.pde.statement.expansion import compile_expression
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary


def exterior_values(conditions: Mapping[str, Any], domain: Domain, vocabulary: Vocabulary) -> tuple[Exterior, ...]:
    """The values that conditions prescribe for fields beyond the ends of coordinates.

    >>> from rannpde.domains import Box
    >>> words = Vocabulary(("t",), None, ("u",))
    >>> (exterior,) = exterior_values({"history": On("t <= 0", "2*u = t**2")}, Box(t=(0, 1)), words)
    >>> exterior.field, exterior.direction, exterior.formula.expression.formula
    ('u', -1, t**2/2)
    """
    exteriors = []
    for name, condition in conditions.items():
        if not isinstance(condition, On) or callable(condition.where):
            continue
        for text in (condition.where,) if isinstance(condition.where, str) else condition.where:
            beyond = outside(text, domain, vocabulary.parameters)
            if beyond is not None:
                with naming(f"condition {name!r}"):
                    term = Term(name, "initial", read(condition.equation, vocabulary), None)
                    stated = term.prescribed
                    if stated is None or stated[0].order or stated[0].field not in vocabulary.fields:
                        raise InputError(
                            f"{condition.equation!r} must give a field outside the domain, as in u = cos(t)"
                        )
                    plain = replace(vocabulary, fields=())
                    formula = Formula(compile_expression(stated[1], plain), vocabulary.symbols)
                    exteriors.append(Exterior(stated[0].field, *beyond[:2], formula))
    return tuple(exteriors)


def box_extent(domain: Domain) -> dict[str, tuple[float, float]]:
    """The ends of the coordinates of an interval or a box in space; empty for other shapes."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if not isinstance(space, Box):
        return {}
    return {name: (float(a), float(b)) for name, (a, b) in zip(space.names, space.bounds, strict=True)}


def with_surroundings(terms: Iterable[Term], surroundings: Callable[[], Surroundings]) -> tuple[Term, ...]:
    """The terms, those with functionals knowing what lies outside the domain."""
    own = [replace(term, surroundings=surroundings()) if term.expression.functionals else term for term in terms]
    return tuple(own)
