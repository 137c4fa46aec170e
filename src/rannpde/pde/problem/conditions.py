"""Conditions of a problem, and the loss terms that equations and conditions become.

A *term* is one sum of the PINN loss (paper, section "Physics-informed machine learning"): an expression that must
vanish on a region (the interior, a side, a slice), or at given points for measured data. Periodic conditions are
exact, by periodic features, where all fields share them; otherwise values and derivatives are matched in pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide, Side
from rannpde.domains.boundary.slits import slit_lips
from rannpde.domains.domain import Ball, Box, Domain, SpaceTime
from rannpde.errors import InputError, choose, finite_array, finite_points, positive_number, reject, require, suggestion
from rannpde.io import PathLike, read_csv
from rannpde.pde.residual import DATA_SYMBOL, Term
from rannpde.pde.statement.build import number
from rannpde.pde.statement.expansion import compile_expression
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.rounding import ROUNDED


@dataclass(frozen=True)
class On:
    """An equation on a part of the domain: ``On("t=0", "u = sin(x)")``, ``On(("x=0", "x=1"), "u = 0")``.

    where : a side such as ``x=0`` or ``hole``, a slice inside such as ``t=0.5``, ``boundary`` for all sides in space,
        ``boundary except x=0, hole``, one of these with an inequality, ``y=0 where x < 0``, both lips of a cut of no
        width, ``slit (0, 0) to (1, 0)``, or one of them, ``slit (0, 0) to (1, 0), left``, several of these, or a
        function of points (M, n) that is true on a part of the boundary:
        ``On(lambda points: points[:, 0] < 1e-9, "u = 0")``
    equation : text or SymPy, or a list of them; ``dn(u)`` is the derivative along the outward normal
    weight : factor of its rows, beside the balance that the solver finds
    """

    where: str | tuple[str, ...] | Callable[[Array], Any]
    equation: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        positive_number("weight", self.weight)
        if callable(self.where):
            return
        texts = (self.where,) if isinstance(self.where, str) else self.where
        listed = isinstance(texts, (tuple, list)) and all(isinstance(text, str) for text in texts)
        require(listed, "where", self.where, "a side such as 'x=0', a tuple of sides, or a function of points")


@dataclass(frozen=True)
class Periodic:
    """The fields (all by default) are periodic in that coordinate, with the length of the domain."""

    coordinate: str
    fields: tuple[str, ...] | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        require(isinstance(self.coordinate, str), "coordinate", self.coordinate, "the name of a coordinate")
        names = self.fields is None or isinstance(self.fields, (tuple, list))
        names = names and all(isinstance(name, str) for name in self.fields or ())
        require(names, "fields", self.fields, "a tuple of names of fields, or None for all")
        positive_number("weight", self.weight)


@dataclass(frozen=True, eq=False)
class Data:
    """Measured values (M,) of a field, or of any expression such as ``u_x``, at points (M, n).

    Where a problem has unknowns, values are noisy measurements, from which these are estimated:

    noise : standard deviation, one for all or one per value; 0 for exact values; None has it estimated
    loss : "squares", or "huber", which hardly follows single values that are far off
    over : the values are means, each over a region: domains, names of sides or slices, or pairs of end points of lines;
        points is then None, and the quantity may be written ``mean(u)``
    """

    points: Array | None
    values: Array
    quantity: Any = "u"
    weight: float = 1.0
    noise: Any = None
    loss: str = "squares"
    over: Any = None

    @classmethod
    def from_csv(cls, path: PathLike, quantity: Any = "u", **settings: Any) -> Data:
        """Data from a file of comma-separated values: the coordinates of a point, then the value measured there."""
        rows = read_csv(path)
        require(rows.shape[1] >= 2, f"columns of {path}", rows.shape[1], "coordinates, then the value")
        return cls(rows[:, :-1], rows[:, -1], quantity, **settings)

    def __post_init__(self) -> None:
        positive_number("weight", self.weight)
        choose("loss", self.loss, dict.fromkeys(("squares", "huber")))


Condition = On | Periodic | Data


def stated_conditions(given: Mapping[str, Any]) -> dict[str, Condition]:
    """Conditions by name, one equation each, with what was written in short: an equation under the name of the region
    where it holds, or several; ``"periodic"`` under the name of a coordinate.

    >>> stated = stated_conditions({"t=0": "u = sin(x)", "x": "periodic", "boundary": ("u = 0", "v = 0")})
    >>> stated["t=0"], stated["x"].coordinate, list(stated)[2:]
    (On(where='t=0', equation='u = sin(x)', weight=1.0), 'x', ['boundary 1', 'boundary 2'])
    """
    conditions: dict[str, Condition] = {}
    for name, one in given.items():
        if isinstance(one, (list, tuple)):
            one = On(name, one)
        if isinstance(one, On) and isinstance(one.equation, (list, tuple)):
            require(bool(one.equation), f"the equations of conditions[{name!r}]", one.equation, "one or more")
            several = enumerate(one.equation, start=1)
            conditions |= {f"{name} {number}": replace(one, equation=equation) for number, equation in several}
        elif isinstance(one, str) and one.strip() == "periodic":
            conditions[name] = Periodic(name)
        elif isinstance(one, str) and get_close_matches(one.strip(), ["periodic"]):
            reject(f"conditions[{name!r}]", one, "an equation, or 'periodic'")
        else:
            conditions[name] = On(name, one) if isinstance(one, (str, sympy.Basic)) else one
    return conditions


@dataclass(frozen=True)
class Pairing:
    """A periodic condition of some fields only: ∂^k of a field agrees at both ends for k below its order."""

    name: str
    coordinate: str
    orders: Mapping[str, int]
    weight: float = 1.0


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Prefix the errors raised inside with what they are about."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{what}: {error}") from None


def equation_terms(equations: Mapping[str, Expression], domain: Domain) -> list[Term]:
    """The interior terms J_PDE."""
    return [Term(name, "interior", expression, domain) for name, expression in equations.items()]


def bound_terms(
    bounds: Mapping[str, tuple[float | None, float | None]], domain: Domain, vocabulary: Vocabulary
) -> list[Term]:
    """Return max(lower - u, 0) = 0 and max(u - upper, 0) = 0 inside the domain, which act only where a bound is
    violated."""
    texts = []
    for name, (lower, upper) in bounds.items():
        texts += [(name, f"max({float(lower)!r} - {name}, 0)")] if lower is not None else []
        texts += [(name, f"max({name} - {float(upper)!r}, 0)")] if upper is not None else []
    return [Term(f"bounds of {name}", "bounds", read(text, vocabulary), domain) for name, text in texts]


def condition_terms(name: str, condition: Condition, domain: Domain, vocabulary: Vocabulary) -> list[Term]:
    """The terms of one On or Data condition, one per side."""
    if isinstance(condition, Data):
        return [_data_term(name, condition, domain, vocabulary)]
    if not isinstance(condition, On):
        remedy = "a value is an equation: 'u = 0'"
        if callable(condition):
            remedy = "a function is named and called: functions={'g': …} and 'u = g(x)'"
        reject(f"conditions[{name!r}]", condition, "an equation, On(…), Periodic(…) or Data(…)", remedy)
    with_context = f"condition {name!r}: "
    with naming(f"condition {name!r}"):
        expression = read(condition.equation, vocabulary)
        if expression.functionals and not expression.source.free_symbols.intersection(vocabulary.symbols):
            return [Term(name, "functional", expression, None, domain.bounds.mean(axis=1)[None, :])]  # holds anywhere
        regions = named_sides(condition.where, domain, vocabulary.parameters, name)
    if not expression.jets:
        raise InputError(
            f"{with_context}it names no field, so it has no effect; fields: {', '.join(vocabulary.fields)}"
        )
    normals = expression.formula.free_symbols.intersection(vocabulary.normals)
    for region in regions:
        if normals and _kind(region, domain) != "boundary":
            raise InputError(
                f"{with_context}dn(…) needs an outward normal, which {region.name} has not; write u_x instead"
            )
    return [Term(name, _kind(region, domain), expression, region, weight=condition.weight) for region in regions]


def check_data_points(key: str, given: Any, values: Array, domain: Domain) -> Array:
    """Points (M, n) of measured values (M,), refused where they are outside of the domain or not as many."""
    points = finite_points(f"{key}.points", given, domain.dim)
    require(len(values) == len(points) > 0, f"{key}.values with shape", values.shape, f"({len(points)},), not empty")
    inside = domain.contains(points)
    if not inside.all():
        row = int(np.flatnonzero(~inside)[0])
        raise InputError(f"{key}.points row {row} lies outside the domain {domain!r}; remove it or enlarge the domain")
    return points


def _data_term(name: str, condition: Data, domain: Domain, vocabulary: Vocabulary) -> Term:
    key = f"conditions[{name!r}]"
    given = {"noise": condition.noise is not None, "over": condition.over is not None}
    given["loss"] = condition.loss != "squares"
    for setting, unused in given.items():
        if unused:
            raise InputError(f"{key}.{setting} is given, but the problem has no unknowns; leave it out")
    try:
        values = finite_array(f"{key}.values", condition.values, 1)
        points = check_data_points(key, condition.points, values, domain)
    except OverflowError:
        raise InputError(f"{key} holds a whole number beyond float64; give floats") from None
    with naming(f"condition {name!r}"):
        quantity = read(condition.quantity, vocabulary)
        expression = compile_expression(quantity.source - DATA_SYMBOL, vocabulary)
    if not expression.jets:
        raise InputError(f"condition {name!r}: the quantity {condition.quantity!r} names no field")
    return Term(name, "data", expression, None, points, values, condition.weight)


SideChoice = str | tuple[str, ...] | list[str] | Callable[[Array], Any]


def named_sides(where: SideChoice, domain: Domain, parameters: Mapping[str, float], name: str = "part") -> list[Side]:
    """The sides and slices that a condition names; ``name`` is that of a part given by a function of points."""
    if callable(where):
        return [domain.part(where, name)]
    texts = [where] if isinstance(where, str) else list(where)
    require(bool(texts), "where", where, "at least one side", f"e.g. {next(iter(domain.sides), 't=0')!r}")
    sides: dict[str, Side] = {}
    for text in texts:
        for side in _place(str(text), domain, parameters):
            if side.name in sides:
                raise InputError(f"the side {side.name} is named twice in {where!r}")
            sides[side.name] = side
    return list(sides.values())


def _place(text: str, domain: Domain, parameters: Mapping[str, float]) -> list[Side]:
    if text.strip() in domain.sides:
        return [domain.sides[text.strip()]]
    beyond = outside(text, domain, parameters)
    if beyond is not None:
        axis, _, end = beyond
        return _place(f"{domain.names[axis]}={end!r}", domain, parameters) if "=" in text else []
    if re.match(r"\s*slit\b", text):
        return list(slit_lips(text, domain, lambda word: number(word, parameters)))
    part = re.match(r"(?P<side>.*\S)\s+where\s+(?P<test>\S.*)$", text, re.DOTALL)
    if part:
        return _restricted(part["side"].strip(), part["test"].strip(), domain, parameters)
    words = re.match(r"\s*boundary(?:\s+except\s+(?P<rest>.+))?\s*$", text, re.DOTALL)
    if words:
        return _all_but(words["rest"], domain, parameters)
    compact = re.sub(r"\s+", "", text)
    coordinate, equals, value = compact.partition("=")
    if not equals or coordinate not in domain.names:
        known = [*domain.sides, *([domain.initial.name] if isinstance(domain, SpaceTime) else []), "boundary"]
        raise InputError(f"the side {text!r} does not exist; {suggestion(compact, known)}")
    axis, at = domain.names.index(coordinate), number(value, parameters)
    lower, upper = domain.bounds[axis]
    slack = ROUNDED * max(abs(lower), abs(upper))
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if not isinstance(space, Box) and not (isinstance(domain, SpaceTime) and axis == 0):
        return [_flat_piece(text, domain, coordinate, at, slack)]
    if not lower - slack <= at <= upper + slack:
        raise InputError(
            f"the side {text!r} lies outside the domain, where {coordinate} goes from {lower:g} to {upper:g}"
        )
    outward = -1 if abs(at - lower) <= slack else 1 if abs(at - upper) <= slack else 0
    at = (at, float(upper), float(lower))[outward]  # decimals in a text may be read one unit of rounding off
    return [FlatSide(f"{coordinate}={at + 0.0:g}", domain, axis, at, outward, _face(domain, axis))]


def outside(text: str, domain: Domain, parameters: Mapping[str, float]) -> tuple[int, int, float] | None:
    """Axis, direction and end of what lies beyond an end of a coordinate, such as ``t <= 0``; None for other regions.

    >>> from rannpde.domains import Box
    >>> outside("t <= 0", Box(t=(0, 5)), {}), outside("t=0", Box(t=(0, 5)), {})
    ((0, -1, 0.0), None)
    """
    parts = re.fullmatch(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S.*)", text, re.DOTALL)
    if parts is None or parts[1] not in domain.names:
        return None
    axis, direction = domain.names.index(parts[1]), -1 if "<" in parts[2] else 1
    at, end = number(parts[3], parameters), float(domain.bounds[axis, max(direction, 0)])
    if abs(at - end) > ROUNDED * float(np.abs(domain.bounds[axis]).max()):
        raise InputError(
            f"the region {text!r} is not what lies beyond an end of {parts[1]}; write "
            f"'{parts[1]} {parts[2]} {end:g}' for values outside the domain"
        )
    return axis, direction, end


def _restricted(text: str, test: str, domain: Domain, parameters: Mapping[str, float]) -> list[Side]:
    """Sides of a region where an inequality in the coordinates holds, such as ``y=0 where x < 0``.

    >>> from rannpde.domains import Box
    >>> (left,) = _place("y=0 where x < a", Box(x=(-1, 1), y=(0, 1)), {"a": 0.25})
    >>> left.name, round(left.measure, 12)
    ('y=0 where x < a', 1.25)
    """
    words = Vocabulary(tuple(domain.names), "t" if isinstance(domain, SpaceTime) else None, (), parameters)
    inside = read(f"where({test}, 1, 0)", words)

    def holds(points: Array) -> Array:
        known = words.at(points)
        return np.broadcast_to(inside.value(known, {}) > 0.5, (len(points),))

    sides_within = []
    for side in _place(text, domain, parameters):
        with suppress(InputError):  # the inequality may hold nowhere on one of several sides
            sides_within.append(_part(side, holds, test))
    if not sides_within:
        raise InputError(f"'{text} where {test}' is empty: the inequality holds nowhere there; change it")
    return sides_within


def _part(side: Side, holds: Callable[[Array], Array], test: str) -> Side:
    def chosen(points: Array) -> Array:
        return np.asarray(side.contains(points) & holds(points))

    return side.domain.part(chosen, f"{side.name} where {test}")


def _all_but(rest: str | None, domain: Domain, parameters: Mapping[str, float]) -> list[Side]:
    """All sides in space without those of a list such as ``x=0, hole``."""
    sides = dict(domain.sides)
    for text in [] if rest is None else rest.split(","):
        for side in _place(text, domain, parameters):
            known = [key for key, other in sides.items() if other == side or key == side.name]
            if not known:
                raise InputError(
                    f"'boundary except {rest}' leaves out {text.strip()!r}, which is no side in space, or twice"
                )
            del sides[known[0]]
    if not sides:
        raise InputError(f"'boundary except {rest}' leaves no side")
    return list(sides.values())


def _flat_piece(text: str, domain: Domain, coordinate: str, at: float, slack: float) -> Side:
    """The side of a shape that is no box, which its name calls by a coordinate and a value, within rounding."""
    named = [(name.partition("="), side) for name, side in domain.sides.items()]
    flat = [(float(value), side) for (own, equals, value), side in named if equals and own == coordinate]
    near = [side for value, side in flat if abs(value - at) <= slack]
    near += [side for value, side in flat if f"{value + 0.0:g}" == f"{at + 0.0:g}"]  # names have six digits
    if near:
        return near[0]
    known = [*domain.sides, "boundary"]
    kind = "a ball" if isinstance(domain, Ball) else "this shape"
    raise InputError(f"the side {text!r} does not exist in {kind}; {suggestion(text, known)}")


def _face(domain: Domain, axis: int) -> Domain:
    """The domain of the other coordinates."""
    if isinstance(domain, SpaceTime) and axis == 0:
        return domain.space
    intervals = dict(zip(domain.names, (tuple(pair) for pair in domain.bounds), strict=True))
    del intervals[domain.names[axis]]
    return Box(**intervals) if intervals else Box([])


def _kind(region: Side, domain: Domain) -> str:
    if not isinstance(region, FlatSide):
        return "boundary"
    if isinstance(domain, SpaceTime) and region.axis == 0:
        return "initial" if region.outward == -1 else "slice"
    return "boundary" if region.outward else "slice"
