"""Inequalities inside the domain, ``{"interior": "u >= psi"}``: the equation holds where a field is free.

With u ≥ ψ the equation N(u) = 0, written such that its diffusion is positive, becomes the complementarity problem

    u ≥ ψ ,   N(u) = λ ≥ 0 ,   λ (u - ψ) = 0 :

an obstacle pushes where it is touched, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rannpde.arrays import Array
from rannpde.errors import InputError, suggestion
from rannpde.pde.problem.conditions import On, naming
from rannpde.pde.statement.expression import Expression, evaluate
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

INSIDE_WORDS = ("interior", "domain", "everywhere")
"""Names of the inside of the domain, where an inequality holds."""


@dataclass(frozen=True, eq=False)
class Inequality:
    """field ≥ bound everywhere, or field ≤ bound; the bound is a formula in the coordinates."""

    name: str
    field: str
    lower: bool
    bound: Expression
    vocabulary: Vocabulary

    def at(self, points: Array) -> Array:
        """The bound (M,) at points (M, d)."""
        known = self.vocabulary.at(points)
        bound = evaluate([self.bound.formula], known, self.bound.functions)[0]
        return bound + 0.0 * points[:, 0]


def is_inequality(condition: Any) -> bool:
    """Whether a condition is an inequality between a field and a bound."""
    if not (isinstance(condition, On) and isinstance(condition.equation, str)):
        return False
    return re.search(r"[<>]=?", re.sub(r"where\s*\(.*", "", condition.equation)) is not None


def inequalities(conditions: Mapping[str, Any], vocabulary: Vocabulary) -> tuple[Inequality, ...]:
    """All inequalities that conditions state; InputError where one cannot be understood.

    >>> words = Vocabulary(("x", "y"), None, ("u",))
    >>> (obstacle,) = inequalities({"obstacle": On("interior", "u >= 1 - x**2")}, words)
    >>> obstacle.field, obstacle.lower, obstacle.bound.formula
    ('u', True, 1 - x**2)
    """
    stated = []
    for name, condition in conditions.items():
        if not is_inequality(condition):
            continue
        regions = (condition.where,) if isinstance(condition.where, str) else condition.where
        if callable(regions) or tuple(regions) not in {(word,) for word in INSIDE_WORDS}:
            raise InputError(
                f"condition {name!r}: the inequality {condition.equation!r} is stated on {condition.where!r}, but must "
                'be stated in the interior: {"interior": "u >= …"}, or On("interior", "u >= …")'
            )
        match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|>|<)(.*)", condition.equation, re.DOTALL)
        if match is None or match[1] not in vocabulary.fields:
            shown = match[1] if match else condition.equation
            raise InputError(
                f"condition {name!r}: an inequality has a field on its left, as u >= 0, and not {shown!r}; "
                f"{suggestion(shown, vocabulary.fields)}"
            )
        with naming(f"condition {name!r}"):
            bound = read(match[3].strip(), vocabulary)
        if bound.jets:
            raise InputError(f"condition {name!r}: the bound of an inequality holds a field, but must be a formula")
        stated.append(Inequality(name, match[1], match[2].startswith(">"), bound, vocabulary))
    return tuple(stated)
