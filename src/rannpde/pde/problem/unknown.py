"""Unknown numbers and functions of some coordinates that are to be identified, with initial guesses and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError, is_real, positive_integer, require
from rannpde.pde.functions import Formula, PointFunction
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Unknown:
    """A number to be estimated from measurements: ``Unknown(guess=0.02, bounds=(0, None))``.

    guess : where the search begins; bounds : (lower, upper), None for no bound, respected by every step
    """

    guess: float
    bounds: Limits = (None, None)

    of = ()

    def __post_init__(self) -> None:
        require(is_real(self.guess) and bool(np.isfinite(self.guess)), "guess", self.guess, "a finite number")
        check_limits("bounds", self.bounds)
        lower, upper = self.limits
        require(lower <= self.guess <= upper, "guess", self.guess, f"within its bounds {self.bounds}")

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where there are none."""
        return as_numbers(self.bounds)


@dataclass(frozen=True)
class UnknownFunction:
    """A function of some coordinates to be estimated from measurements.

    of : names of these coordinates
    guess : number, or formula of them
    bounds : (lower, upper), None for no bound; (0, None) keeps a conductivity positive
    smoothness : order of the prior, which penalises ∫ |∂^smoothness f|²; its regularisation parameter is estimated from
        the data. None lets the data choose between 2, 3 and 4 as well
    degree : the function is sought among functions as rich as polynomials of this degree; None chooses one so large
        that the prior decides
    """

    of: tuple[str, ...]
    guess: Any = 1.0
    bounds: Limits = (None, None)
    smoothness: int | None = None
    degree: int | None = None

    def __post_init__(self) -> None:
        of = (self.of,) if isinstance(self.of, str) else self.of
        named = isinstance(of, (tuple, list)) and all(isinstance(name, str) for name in of) and 0 < len(of) <= 3
        require(named, "of", self.of, "one to three names of coordinates")
        object.__setattr__(self, "of", tuple(of))
        require(is_real(self.guess) or isinstance(self.guess, str), "guess", self.guess, "a number or a formula")
        check_limits("bounds", self.bounds)
        if self.smoothness is not None:
            require(positive_integer("smoothness", self.smoothness) <= 4, "smoothness", self.smoothness, "from 1 to 4")
        if self.degree is not None:
            require(2 <= positive_integer("degree", self.degree) <= 30, "degree", self.degree, "from 2 to 30")
        guess = self.formula(np.zeros((1, len(of))))
        lower, upper = self.limits
        inside = isinstance(self.guess, str) or lower <= float(guess[0]) <= upper
        require(inside, "guess", self.guess, f"within its bounds {self.bounds}")

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where there are none."""
        return as_numbers(self.bounds)

    @property
    def formula(self) -> Formula:
        """The guess, as a function of points (M, k) of its coordinates, with derivatives."""
        words = Vocabulary(self.of)
        return Formula(read(str(self.guess), words), words.symbols)


AnyUnknown: TypeAlias = Unknown | UnknownFunction


@dataclass(frozen=True)
class Bare(PointFunction):
    """A function of points (M, k) of the coordinates ``of``, which equations name without its arguments."""

    of: tuple[str, ...]

    def at(self, points: Array, names: tuple[str, ...], index: MultiIndex) -> Array:
        """∂^index (M,) at points (M, n) of all coordinates."""
        chosen = [names.index(name) for name in self.of]
        if sum(index) != sum(index[k] for k in chosen):
            return np.zeros(len(points))
        return np.asarray(self.function.derivative(points[:, chosen], tuple(index[k] for k in chosen)))


def check_limits(argument: str, pair: Any) -> None:
    """Refuse anything but a pair of bounds."""
    expected = "(lower, upper) with lower < upper, None for no bound"
    require(isinstance(pair, (tuple, list)) and len(pair) == 2, argument, pair, expected)
    for bound in pair:
        number = isinstance(bound, Real) and not isinstance(bound, bool) and bool(np.isfinite(float(bound)))
        require(bound is None or number, argument, pair, expected)
    require(None in pair or pair[0] < pair[1], argument, pair, expected)


def as_numbers(pair: Limits) -> tuple[float, float]:
    """Bounds as numbers, infinite where there are none."""
    lower, upper = pair
    return (-np.inf if lower is None else float(lower), np.inf if upper is None else float(upper))


def check_shared(problems: Sequence[Any]) -> None:
    """Refuse experiments that do not share their unknowns."""
    first = problems[0].unknown
    require(bool(first), "unknown", first, "given: names of numbers or functions to be identified")
    for problem in problems:
        if problem.incomplete:
            raise InputError(
                "incomplete=True leaves the solution open, whatever the unknowns are; state what is missing as unknown "
                "too: On('t=0', 'u = g') with unknown={'g': rp.UnknownFunction(of=('x',))}"
            )
    count = sum(len(one.values) for problem in problems for one in problem.measurements)
    require(
        count > 0, "conditions", sorted(problems[0].conditions), "given with Data, from which unknowns are estimated"
    )
    numbers = sum(isinstance(one, Unknown) for one in first.values())
    if numbers > count:
        raise InputError(f"{numbers} unknown numbers but only {count} measured values; measure more, or fix some")
    for number, problem in enumerate(problems[1:], start=2):
        if dict(problem.unknown) != dict(first):
            raise InputError(f"problem {number} has other unknowns than the first; experiments share all of them")


def check_unknown(unknown: Mapping[str, Any], coordinates: tuple[str, ...]) -> None:
    """Refuse entries of another kind, and functions of what is no coordinate."""
    require(isinstance(unknown, Mapping), "unknown", unknown, "a mapping of names to Unknown or UnknownFunction")
    for name, one in unknown.items():
        expected = "rp.Unknown(guess=…) or rp.UnknownFunction(of=…)"
        require(isinstance(one, AnyUnknown), f"unknown[{name!r}]", one, expected)
        for coordinate in one.of:
            if coordinate not in coordinates:
                raise InputError(
                    f"unknown[{name!r}] depends on {coordinate!r}, which is no coordinate; these are "
                    f"{', '.join(coordinates)}"
                )
