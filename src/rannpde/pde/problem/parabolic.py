"""Parabolic problems in R^d, brought from their statement to the form that simulated paths need.

With s = t for data at the last time and s = t₁ - t for data at the first, every such problem is

    ∂_s u + ½ trace(a ∇²u) + b·∇u + f(t, x, u, ∇u) = 0  for s < S ,    u = g  at s = S ,

whose process is dX = b ds + √a dW; with an obstacle, u ≥ h at all times or at dates, it is one of optimal stopping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import SpaceTime
from rannpde.domains.shapes.euclidean import Euclidean
from rannpde.errors import InputError, reject, require
from rannpde.grammar import StatementError, names, parse, parse_inequality
from rannpde.pde.problem.conditions import On, naming
from rannpde.pde.statement.build import number as constant_number
from rannpde.pde.statement.vector import Operation, combine, evaluate_vector, scalar_constant
from rannpde.pde.statement.vector_reading import (
    DiffusionFactors,
    VectorVocabulary,
    linear_parts,
    read_sides,
    read_vector,
)
from rannpde.rounding import ROUNDED

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

EVERYWHERE = ("interior", "domain", "everywhere")


@dataclass(frozen=True)
class Obstacle:
    """u ≥ payoff, at all times (dates empty) or at dates only, as physical times."""

    payoff: Operation
    dates: tuple[float, ...]


@dataclass(frozen=True)
class KillingWall:
    """A boundary level(x) = 0 on which u = 0, with the text that states it."""

    level: Operation
    text: str


@dataclass(frozen=True)
class Parabolic:
    """The form above.

    backward : whether the data are given at the last time, so that s is t itself
    second : matrices A with ½a = Σ A; drift : summands of b; source : f; data : g
    """

    dim: int
    time: tuple[float, float]
    backward: bool
    second: tuple[DiffusionFactors, ...]
    drift: tuple[Operation, ...]
    source: Operation
    data: Operation
    obstacle: Obstacle | None
    words: VectorVocabulary
    walls: tuple[KillingWall, ...] = ()

    @property
    def length(self) -> float:
        """The length S of the interval of time."""
        return self.time[1] - self.time[0]

    def physical(self, s: float) -> float:
        """The time t at s."""
        return self.time[0] + s if self.backward else self.time[1] - s

    @property
    def first_time(self) -> float:
        """The physical time of s = 0, farthest from the data, at which values are asked by default."""
        return self.physical(0.0)

    def known(self, s: float, points: Array) -> dict[str, Array]:
        """Time and points as a formula wants them."""
        return {"time": np.array([[self.physical(s)]]), "point": points}

    def values(self, formula: Operation, s: float, points: Array) -> Array:
        """A known formula at s and points (M, d): (M,) of a scalar, (M, d) of a vector."""
        values = evaluate_vector(formula, self.known(s, points))
        full = np.broadcast_to(values, (len(points), values.shape[1]))
        return full[:, 0] if formula.kind == "scalar" else full


def vector_space(domain: Any) -> Euclidean | None:
    """R^d, if the problem lives there."""
    space = domain.space if isinstance(domain, SpaceTime) else domain
    return space if isinstance(space, Euclidean) else None


def parabolic_form(problem: Problem) -> Parabolic:
    """The form of a problem stated on SpaceTime(t=…, x=Euclidean(d)); an InputError says what does not fit."""
    domain = problem.domain
    if not isinstance(domain, SpaceTime) or not isinstance(domain.space, Euclidean):
        reject("domain", domain, "a SpaceTime(t=…, x=Euclidean(d))", "stationary problems need a bounded domain")
    for argument in ("bounds", "unknown"):
        require(not getattr(problem, argument), argument, getattr(problem, argument), "left out for a vector in R^d")
    if len(problem.equations) != 1:
        reject("equations", list(problem.equations), "one equation, for one field", "systems in R^d are not solved")
    ((name, statement),) = problem.equations.items()
    require(isinstance(statement, str), f"equation {name!r}", statement, "text, where x is a vector")
    field = _field(problem, statement)
    words = VectorVocabulary(domain.space.size, domain.space.vector, "t", field, problem.parameters, problem.functions)
    with naming(f"equation {name!r}"):
        parts = linear_parts(read_vector(statement, words), _refuse(statement))
        if not parts.rate.constant or not float(evaluate_vector(parts.rate, {})[0, 0]):
            raise InputError(f"{field}_t must stand in it with a constant factor that is not zero")
    data, obstacle, backward, walls = _conditions(problem.conditions, words, domain)
    factor = (1.0 if backward else -1.0) / float(evaluate_vector(parts.rate, {})[0, 0])
    second = tuple(DiffusionFactors(_times(factor, f.scale), f.diagonal, f.left, f.middle) for f in parts.second)
    require(bool(second), f"equation {name!r}", statement, "parabolic: it has no second derivative",
            f"write laplace({field}) or trace(A*hessian({field}))")  # fmt: skip
    drift = tuple(_times(factor, one) for one in parts.drift)
    source = _times(factor, parts.rest)
    return Parabolic(domain.space.size, domain.time, backward, second, drift, source, data, obstacle, words, walls)


def _times(factor: float, node: Operation) -> Operation:
    return combine("multiply", scalar_constant(factor), node)


def _refuse(statement: str) -> Any:
    def refuse(reason: str) -> None:
        raise StatementError(f"{reason}\n    {statement}")

    return refuse


def _field(problem: Problem, statement: str) -> str:
    """The unknown function: what was given, or what stands before ``_t``."""
    given = (problem.fields,) if isinstance(problem.fields, str) else tuple(problem.fields)
    require(len(given) <= 1, "fields", given, "one name, where x is a vector")
    if given:
        return str(given[0])
    fields = [n.text[:-2] for side in parse(statement) if side for n in names(side) if n.text.endswith("_t")]
    if not fields:
        raise InputError(f"the equation {statement!r} has no time derivative of an unknown function, such as u_t")
    return fields[0]


def _conditions(
    conditions: Mapping[str, Any], words: VectorVocabulary, domain: SpaceTime
) -> tuple[Operation, Obstacle | None, bool, tuple[KillingWall, ...]]:
    data: tuple[Operation, bool] | None = None
    obstacle, walls = None, list[KillingWall]()
    for name, condition in conditions.items():
        with naming(f"condition {name!r}"):
            if not isinstance(condition, On) or callable(condition.where) or not isinstance(condition.equation, str):
                reject("it", condition, "an equation at a time, or an inequality u >= …", "R^d has no other sides")
            regions = (condition.where,) if isinstance(condition.where, str) else tuple(condition.where)
            if _is_inequality(condition.equation):
                require(obstacle is None, "a second obstacle", condition.equation, "left out; write u >= max(a, b)")
                obstacle = _obstacle(condition.equation, regions, words, domain)
                continue
            sides = [region for region in regions if region.partition("=")[0].strip() != words.time]
            if sides and all("=" in region for region in regions):
                walls += [_wall(condition.equation, region, words) for region in regions]
                continue
            require(data is None, "a second condition", condition.equation, "left out: data at one end of time suffice")
            require(len(regions) == 1, "its regions", regions, "one end of the interval of time")
            data = _data(condition.equation, regions[0], words, domain)
    if data is None:
        raise InputError(
            f"the problem has no data at an end of time; give one as {words.field} = … at t={domain.time[1]:g}"
        )
    if walls and obstacle is not None:
        reject("an obstacle", obstacle.payoff.name, "left out where the problem has walls", "both are not solved")
    return data[0], obstacle, data[1], tuple(walls)


def _wall(equation: str, side: str, words: VectorVocabulary) -> KillingWall:
    """A side such as x[1]=0 with u = 0 on it."""
    left, right = parse(side)
    if right is None:
        raise InputError(f"{side!r} is no side; write one as x[1]=0")
    sides = read_sides(side, left, right, words)
    if any(one.has("field", "gradient", "time") or not one.known for one in sides):
        raise InputError(f"{side!r} is no side of space; a side is an equation of x alone such as x[1]=0")
    first, second = parse(equation)
    value = None if second is None else _alone(read_sides(equation, first, second, words), words.field, equation)
    if value is None or not value.constant or float(evaluate_vector(value, {})[0, 0]) != 0:
        reject("the equation on a side", equation, f"{words.field} = 0",
               "state the problem for the difference from a function that has the values wanted there")  # fmt: skip
    minus = combine("multiply", scalar_constant(-1.0), sides[1])
    return KillingWall(combine("add", sides[0], minus), side)


def _is_inequality(text: str) -> bool:
    """Whether text that is no equation reads as an inequality."""
    try:
        parse(text)
    except StatementError:
        try:
            parse_inequality(text)
        except StatementError:
            return False  # its own mistakes are reported when it is read as an equation
        return True
    return False


def _data(equation: str, region: str, words: VectorVocabulary, domain: SpaceTime) -> tuple[Operation, bool]:
    left, right = parse(equation)
    if right is None:
        raise InputError(f"{equation!r} is no equation; write {words.field} = …")
    sides = read_sides(equation, left, right, words)
    value = _alone(sides, words.field, equation)
    when, ends = _time(region, words, domain), domain.time
    near = [abs(when - end) <= ROUNDED * (ends[1] - ends[0]) for end in ends]
    require(any(near), "its region", region, f"t={ends[0]:g} or t={ends[1]:g}, an end of the interval of time")
    return value, near[1]


def _obstacle(text: str, regions: tuple[str, ...], words: VectorVocabulary, domain: SpaceTime) -> Obstacle:
    inequality = parse_inequality(text)
    left, right = read_sides(text, inequality.left, inequality.right, words)
    above, below = (left, right) if inequality.operator in (">=", ">") else (right, left)
    if above.name != "field" or not below.known:
        raise InputError(
            f"an obstacle is {words.field} >= a known payoff, not {text!r}; state a maximum as -{words.field}"
        )
    if len(regions) == 1 and regions[0] in EVERYWHERE:
        return Obstacle(below, ())
    times = tuple(sorted(_time(region, words, domain) for region in regions))
    lower, upper = domain.time
    inside = all(lower - ROUNDED <= one <= upper + ROUNDED for one in times)
    require(inside, "its dates", times, f"between {lower:g} and {upper:g}")
    return Obstacle(below, times)


def _alone(sides: tuple[Operation, Operation], field: str, text: str) -> Operation:
    for one, other in (sides, sides[::-1]):
        if one.name == "field" and other.known:
            return other
    raise InputError(f"{text!r} must give {field} itself, as {field} = a known formula")


def _time(region: str, words: VectorVocabulary, domain: SpaceTime) -> float:
    name, equals, value = region.partition("=")
    if not equals or name.strip() != words.time:
        reject("its region", region, f"a time such as t={domain.time[1]:g}", "R^d has no sides")
    numbers = {key: float(v) for key, v in words.parameters.items() if v.ndim == 0}
    return float(constant_number(value.strip(), numbers))
