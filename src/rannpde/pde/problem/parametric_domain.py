"""Domains that depend on parameters: a function of them, or a table of a problem file in which their names stand."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rannpde.domains import Domain
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.problem.shapes import domain_from_table


@dataclass(frozen=True, eq=False)
class ParametricDomain:
    """A domain for every value of some parameters.

    names : names of the parameters that it depends on
    make : name → number, of all parameters, to the domain
    table : the table of a problem file, if it was stated there; None for a function of the user's
    """

    names: tuple[str, ...]
    make: Callable[[Mapping[str, float]], Any]
    table: Mapping[str, Any] | None = None

    def at(self, numbers: Mapping[str, float]) -> Domain:
        """The domain at these values; an InputError that names them where there is none."""
        shown = ", ".join(f"{name} = {numbers[name]:g}" for name in self.names)
        try:
            domain = self.make(numbers)
        except InputError as error:
            raise InputError(f"the domain at {shown}: {error}") from None
        require(isinstance(domain, Domain), f"the domain at {shown}", domain, "a shape, a box or a SpaceTime")
        return domain


def domain_of_function(function: Callable[..., Any], parameters: Mapping[str, Any]) -> ParametricDomain:
    """The domain that a function of parameters makes; its arguments bear the names of parameters.

    >>> from rannpde.domains.shapes.boxes import Ball
    >>> disc = domain_of_function(lambda r: Ball((0, 0), r), {"r": 0.5, "nu": 1.0})
    >>> disc.names, disc.at({"r": 0.5, "nu": 1.0}).radius
    (('r',), 0.5)
    """
    names = tuple(inspect.signature(function).parameters)
    require(bool(names), "domain", function, "a domain, or a function of parameters that gives one")
    for name in names:
        if name not in parameters:
            raise InputError(
                f"domain is a function of {name!r}, which is no parameter; "
                f"{suggestion(name, parameters) if parameters else 'give parameters={…}'}"
            )
    return ParametricDomain(names, lambda numbers: function(**{name: numbers[name] for name in names}))


def domain_of_table(table: Any, parameters: Mapping[str, Any]) -> ParametricDomain:
    """The domain that the table ``domain`` of a file states, in whose texts names of parameters may stand."""
    words = {word for text in _texts(table) for word in re.findall(r"[A-Za-z_]\w*", text)}
    names = tuple(name for name in parameters if name in words)
    return ParametricDomain(names, lambda numbers: domain_from_table(table, numbers), table)


def _texts(value: Any) -> Iterator[str]:
    """All texts in nested tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
