"""Cells, the smallest units of work of a study, and what they are made of: samples, widths, seeds.

``Fit`` is one fitted network: one curve at one width with one seed. ``Unbiased`` is the measurement of the networks of
Theorem 1, which need no fit, at all widths of a curve. A cell's key is the SHA-256 of everything that determines its
result, so a changed parameter is another cell, and records never mix.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np

from rannpde.errors import positive_integer, reject, require
from rannpde.studies.layer import Layer
from rannpde.studies.target import Target

PROTOCOL = 3
"""Raised whenever the code changes what a cell computes from the same parameters, or their names; part of every key."""
PENALTY_RULES = ("gcv", "held-out")
"""Words in place of a number: λ is chosen from the data."""
LARGEST_WIDTH = 100_000
"""Neurons: the normal equations of 10⁵ columns take 80 GB, more than a study can mean."""
MOST_SEEDS = 10_000
"""Number of samples from which the spread of an error is known to a hundredth of itself."""
MOST_POINTS = 10**8
"""Training points of a cell, and test points: each takes 8 bytes for every coordinate and value."""
LARGEST_INTEGER = 2**53
"""Seeds, and whole numbers in study files: what SQLite, JSON and floats keep exactly."""


@dataclass(frozen=True)
class Sampling:
    """M = points_per_width · N training points, a share ``focus`` of them where the function is difficult.

    Errors are relative L² on ``test_points`` points, a share ``test_focus`` of them where the function is difficult
    and the others uniform: fresh for each cell, or one fixed set for all.
    """

    points_per_width: int = 10
    focus: float = 0.5
    test_points: int = 20_000
    fixed_test: bool = False
    test_focus: float = 0.0

    def __post_init__(self) -> None:
        for name in ("points_per_width", "test_points"):
            count = positive_integer(name, getattr(self, name))
            require(count <= MOST_POINTS, name, count, f"at most {MOST_POINTS}")
        for name in ("focus", "test_focus"):
            require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "a share in [0, 1]")
        require(isinstance(self.fixed_test, bool), "fixed_test", self.fixed_test, "true or false")


@dataclass(frozen=True)
class StudyCell(ABC):
    """Everything that determines one result, and the names under which it is shown."""

    study: str
    curve: str
    target: Target
    seed: int

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """The widths at which the cell gives errors, increasing."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """A guess of the work in flops, for the time left; the factors were fitted to times measured on 2 cores."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All of it as JSON-able data; the curve's label is a name, not a parameter."""
        data: dict[str, Any] = as_data(self)
        return {"protocol": PROTOCOL} | {name: value for name, value in data.items() if name != "curve"}

    @property
    def canonical(self) -> str:
        """The parameters as one text, the same for the same parameters."""
        return json.dumps(self.parameters, sort_keys=True, separators=(",", ":"))

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical text."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Fit(StudyCell):
    """One fitted network."""

    features: Layer
    sampling: Sampling
    penalty: float | str
    width: int

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def points(self) -> int:
        """M, the number of training points."""
        return self.sampling.points_per_width * self.width

    @property
    def cost(self) -> float:
        """Dense sums, or the NUFFT's where it applies, then the factorisation, the test, and what every cell costs."""
        columns = self.features.columns(self.width)
        fast = self.features.activation == "fourier" and self.target.space_dim <= 2
        sums = min(columns**2, 5e4 if fast else inf) * self.points
        factorisation = columns**3 * (10 if self.penalty in PENALTY_RULES else 1 / 3)
        return 4e8 + sums + factorisation + 60 * columns * self.sampling.test_points

    def stream(self, purpose: str) -> np.random.Generator:
        """The random numbers for that purpose: a function of seed, width and dimension alone.

        Curves that differ in penalty or scale therefore share their draws, and are compared in pairs.
        """
        number = ("features", "points", "split", "test").index(purpose)
        fixed = purpose == "test" and self.sampling.fixed_test
        entropy = (number, self.target.space_dim) if fixed else (number, self.target.space_dim, self.width, self.seed)
        return np.random.default_rng(np.random.SeedSequence(entropy))


@dataclass(frozen=True)
class Unbiased(StudyCell):
    """Errors of unbiased networks of all widths from common pools of neurons, and their exact variance."""

    law: str
    decay: float
    activation: str
    pools: int
    networks: tuple[int, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        return self.networks

    @property
    def cost(self) -> float:
        """Quadratures for the variance and, for the best law, for its normaliser; then the pools."""
        return (7e10 if self.law == "best" else 1e10) + 1e5 * self.pools * max(self.networks)


@dataclass(frozen=True)
class MeasurementCell(StudyCell):
    """A cell of a chapter's own kind: a frozen dataclass of plain data that knows how to measure itself.

    Give study, curve and seed any values in a ``MeasuredCurve``: the study fills in its own.
    relative : whether errors are shares of the function's size
    """

    relative: ClassVar[bool] = True
    networks: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "networks", checked_widths(self.networks))

    @property
    def widths(self) -> tuple[int, ...]:
        return self.networks

    @abstractmethod
    def measure(self) -> dict[str, list[list[float]]]:
        """Quantities by name, "error" among them: a row for each width, a number for each realisation.

        Depends on the cell alone.
        """


@dataclass(frozen=True)
class PathsCell(StudyCell):
    """One value along paths."""

    width: int
    steps: int
    training: int
    paths: int

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def cost(self) -> float:
        """Two products with the directions of the neurons and some dozen passes over the states, for every step."""
        return float((4 * self.width + 200) * self.target.space_dim * self.steps * (2 * self.training + self.paths))


def as_data(value: Any) -> Any:
    """Dataclasses as {"kind": name, field: …}, tuples as lists, numbers as they are; anything else is refused."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: as_data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (tuple, list)):
        return [as_data(item) for item in value]
    if isinstance(value, np.generic):
        return as_data(value.item())
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 10 and 10.0 are the same parameter
    plain = value is None or isinstance(value, (bool, int, float, str))
    require(plain, "parameter", value, "a number, a text, or a dataclass of these", "only data can be recorded")
    return value


def check_study_penalty(penalty: Any) -> None:
    """Refuse anything but a finite number ≥ 0 or a rule."""
    number = isinstance(penalty, (int, float)) and not isinstance(penalty, bool) and 0 <= penalty < inf
    rules = " or ".join(map(repr, PENALTY_RULES))
    require(number or penalty in PENALTY_RULES, "penalty", penalty, f"a number ≥ 0, {rules}")


def checked_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds as a tuple, refused unless they are few enough, different and ≥ 0."""
    many = isinstance(seeds, Sequence | range | np.ndarray) and len(seeds) > MOST_SEEDS
    require(not many, "the number of seeds", len(seeds) if many else 0, f"at most {MOST_SEEDS}")
    return _whole_numbers("seeds", seeds, 0, LARGEST_INTEGER)


def checked_widths(widths: Any) -> tuple[int, ...]:
    return _whole_numbers("widths", widths, 1, LARGEST_WIDTH)


def _whole_numbers(argument: str, values: Any, least: int, most: int) -> tuple[int, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence | range | np.ndarray):
        reject(argument, values, "a list of whole numbers", f"write {argument} = [16, 32, 64]")
    require(len(values) > 0, argument, values, "a list with at least one entry")
    expected = f"a whole number from {least} to {most}"
    for value in values:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        require(bool(whole and least <= value <= most), f"an entry of {argument}", value, expected)
    require(len(set(values)) == len(values), argument, list(values), "without repetition")
    return tuple(int(value) for value in values)


def check_label(argument: str, value: Any) -> None:
    text = isinstance(value, str) and 0 < len(value) <= 500
    require(text, argument, value, "a text of 1 to 500 characters")
