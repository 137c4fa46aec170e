"""Names of a problem and what they mean: coordinates, fields, parameters, functions; the words of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from numbers import Integral, Real
from typing import Any

import sympy

from rannpde.arrays import Array
from rannpde.errors import InputError, reject, require
from rannpde.pde.statement.kinks import Absolute, Exponential, Sign, largest, smallest
from rannpde.pde.statement.special import SPECIAL_FUNCTIONS

_SMOOTH = "sin cos tan asin acos atan sinh cosh tanh asinh exp log sqrt erf"
FUNCTIONS: dict[str, Callable[..., sympy.Expr]] = {name: getattr(sympy, name) for name in _SMOOTH.split()}
FUNCTIONS |= {"exp": Exponential, "abs": Absolute, "sign": Sign, "max": largest, "min": smallest}
FUNCTIONS |= SPECIAL_FUNCTIONS
OPERATORS = ("d", "grad", "div", "laplace", "dot", "dn", "where")
INTEGRALS = ("integral", "mean")
"""Words for integrals of fields; in problems that have a function of such a name, that is meant."""
CONSTANTS = {"pi": sympy.pi}
WORD_LIMIT = 40
"""Characters of a name: long enough for words, short enough for messages."""
SUBSCRIPT_LIMIT = 64
"""Characters of a subscript: eight derivatives in coordinates with names of eight letters."""


@dataclass(frozen=True)
class Vocabulary:
    """What the names of a problem stand for.

    coordinates : names of the coordinates, in the order of the columns of points
    time : the coordinate that is time, or None; the others are space, on which grad, div and laplace act
    fields : names of the unknown functions
    parameters : name → number
    functions : name → callable of arrays, the user's own functions of the coordinates; one with an attribute ``of``,
        names of coordinates, is written without its arguments
    unknown : name → the coordinates that an unknown to be identified depends on, none for a number
    extent : coordinate → its ends, of intervals and boxes, over which ``mean(u)`` is taken
    variables : names of the variables of the integrals around an expression
    """

    coordinates: tuple[str, ...]
    time: str | None = None
    fields: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extent: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken: dict[str, str] = dict.fromkeys([*FUNCTIONS, *OPERATORS], "a function of the language")
        taken |= dict.fromkeys(CONSTANTS, "a constant")
        groups = {"a coordinate": self.coordinates, "a field": self.fields}
        groups |= {"a parameter": tuple(self.parameters), "a function": tuple(self.functions)}
        groups |= {"an unknown": tuple(self.unknown)}
        for meaning, group in groups.items():
            for name in group:
                _require_word(name, meaning)
                if name in taken:
                    raise InputError(
                        f"the name {name!r} stands for {taken[name]} and for {meaning}; rename one of them"
                    )
                taken[name] = meaning
        for name, meaning in taken.items():
            split = self.subscript(name)
            if split is not None and (split[0] in self.fields or split[0] in self.bare):
                raise InputError(f"the name {name!r} of {meaning} reads as a derivative of {split[0]}; rename it")
        object.__setattr__(self, "parameters", plain_parameters(self.parameters))
        for name, function in self.functions.items():
            require(callable(function), f"functions[{name!r}]", function, "callable")

    @cached_property
    def space(self) -> tuple[str, ...]:
        return tuple(name for name in self.coordinates if name != self.time)

    @cached_property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """The coordinates as SymPy symbols."""
        return tuple(coordinate_symbol(name) for name in self.coordinates)

    @cached_property
    def normals(self) -> tuple[sympy.Symbol, ...]:
        """The components of the outward normal, known on boundaries only."""
        return tuple(normal_symbol(name) for name in self.coordinates)

    def at(self, points: Array, normals: Array | None = None) -> dict[sympy.Symbol, Array]:
        """Values (M,) of the coordinates at points (M, n), and of the components of normals (M, n) there."""
        known = dict(zip(self.symbols, points.T, strict=True))
        return known if normals is None else known | dict(zip(self.normals, normals.T, strict=True))

    @cached_property
    def bare(self) -> dict[str, sympy.Expr]:
        """Unknowns, and functions that know their coordinates, as SymPy: what their names alone stand for."""
        known = {name: function.of for name, function in self.functions.items() if hasattr(function, "of")}
        table = {name: tuple(map(coordinate_symbol, of)) for name, of in {**known, **self.unknown}.items()}
        number = {name: sympy.Symbol(name, real=True) for name, of in table.items() if not of}
        return number | {name: sympy.Function(name, real=True)(*of) for name, of in table.items() if of}

    @property
    def jet_names(self) -> tuple[str, ...]:
        """The names whose derivatives are jets: fields, and unknowns."""
        return (*self.fields, *self.unknown)

    def field_function(self, name: str) -> sympy.Expr:
        """u(t, x, …) for the field of that name; of an unknown, what its name stands for."""
        return self.bare[name] if name in self.unknown else sympy.Function(name, real=True)(*self.symbols)

    def derivative(self, name: str, index: tuple[int, ...]) -> sympy.Expr:
        """∂^index of the field of that name."""
        orders = [(symbol, order) for symbol, order in zip(self.symbols, index, strict=True) if order]
        function = self.field_function(name)
        return sympy.Derivative(function, *orders) if orders else function

    def known(self) -> list[str]:
        """Every name an equation may use, for suggestions."""
        own = [*self.coordinates, *self.fields, *self.parameters, *self.functions, *self.unknown]
        return sorted({*own, *FUNCTIONS, *OPERATORS, *INTEGRALS, *CONSTANTS, *self.variables})

    def subscript(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """("u", ("x", "x")) for "u_xx"; None when the part after the last underscore is not made of coordinates."""
        stem, underscore, letters = text.rpartition("_")
        if not (stem and underscore and letters) or len(letters) > SUBSCRIPT_LIMIT:
            return None
        ways: list[tuple[str, ...] | None] = [()] + [None] * len(letters)
        for start in range(len(letters)):
            for name in self.coordinates:
                if ways[start] is not None and letters.startswith(name, start):
                    ways[start + len(name)] = (*ways[start], name)  # type: ignore[misc]
        return None if ways[-1] is None else (stem, ways[-1])


def coordinate_symbol(name: str) -> sympy.Symbol:
    """The SymPy symbol of a coordinate."""
    return sympy.Symbol(name, real=True)


def normal_symbol(name: str) -> sympy.Symbol:
    """Component of the outward normal along that coordinate, known on boundaries only (``dn``)."""
    return sympy.Symbol(f"normal {name}", real=True)  # a space: no field or parameter can have this name


def _require_word(name: Any, meaning: str) -> None:
    word = isinstance(name, str) and name.isidentifier() and len(name) <= WORD_LIMIT
    require(word, f"the name of {meaning}", name, "a short word of letters, digits and underscores")


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Parameters as Python's own numbers, whatever kind of real number they were given as.

    >>> import numpy as np
    >>> plain_parameters({"nu": np.float32(0.5), "m": np.int64(3)})
    {'nu': 0.5, 'm': 3}
    """
    require(isinstance(parameters, Mapping), "parameters", parameters, "a mapping of names to numbers")
    return {name: _plain(f"parameters[{name!r}]", value) for name, value in parameters.items()}


def _plain(argument: str, value: Any) -> float:
    try:
        if isinstance(value, Real) and not isinstance(value, bool) and isfinite(value):
            return int(value) if isinstance(value, Integral) else float(value)
    except OverflowError:  # a whole number beyond float64
        value = f"a whole number of {int(value).bit_length()} bits"
    remedy = "functions go into functions={…}, numbers that are to be identified into unknown={…}"
    return reject(argument, value, "a finite number", remedy)
