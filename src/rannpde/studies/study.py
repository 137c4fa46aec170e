"""A study as data: one problem, one kind of features, widths and seeds, and the curves that vary them.

A cell is the smallest unit of work: one curve at one width with one seed. Its key is the SHA-256 of everything that
determines its result, so a changed parameter is another cell, and records never mix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.errors import positive_integer, reject, require
from rannpde.studies.layer import Layer
from rannpde.studies.problems import Problem

PROTOCOL = 1
"""Raised whenever the code changes what a cell computes from the same parameters; part of every key."""

PENALTY_RULES = ("gcv", "held-out")


@dataclass(frozen=True)
class Sampling:
    """M = points_per_width · N training points, a share ``focus`` of them where the function is difficult.

    Errors are relative L² on ``test_points`` uniform points: fresh for each cell, or one fixed set for all.
    """

    points_per_width: int = 10
    focus: float = 0.5
    test_points: int = 20_000
    fixed_test: bool = False

    def __post_init__(self) -> None:
        positive_integer("points_per_width", self.points_per_width)
        positive_integer("test_points", self.test_points)
        require(0 <= self.focus <= 1, "focus", self.focus, "a share in [0, 1]")


@dataclass(frozen=True)
class Curve:
    """One line of a study. What is None is taken from the study."""

    label: str
    problem: Problem | None = None
    features: Layer | None = None
    sampling: Sampling | None = None
    penalty: float | str | None = None
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.label, str) and bool(self.label), "label", self.label, "a text")
        if self.penalty is not None:
            check_penalty(self.penalty)
        if self.widths is not None:
            object.__setattr__(self, "widths", _whole_numbers("widths", self.widths, 1))


@dataclass(frozen=True)
class Cell:
    """One fit: everything that determines its result, and the names under which it is shown."""

    study: str
    curve: str
    problem: Problem
    features: Layer
    sampling: Sampling
    penalty: float | str
    width: int
    seed: int

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """All of it as JSON-able data; the curve's label is a name, not a parameter."""
        names = [f.name for f in fields(self) if f.name != "curve"]
        return {"protocol": PROTOCOL} | {name: describe(getattr(self, name)) for name in names}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the parameters."""
        return hashlib.sha256(json.dumps(self.parameters, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def points(self) -> int:
        """M, the number of training points."""
        return self.sampling.points_per_width * self.width

    @property
    def cost(self) -> float:
        """A guess of the work in flops, for the time left; the factors were fitted to measured times.

        Dense sums, or the NUFFT's where it applies, then the factorisation, the test, and what every cell costs.
        """
        columns = self.features.columns(self.width)
        fast = self.features.activation == "fourier" and self.problem.space_dim <= 2
        sums = min(columns**2, 5e4 if fast else np.inf) * self.points
        factorisation = columns**3 * (10 if self.penalty in PENALTY_RULES else 1 / 3)
        return 4e8 + sums + factorisation + 60 * columns * self.sampling.test_points

    def stream(self, purpose: str) -> np.random.Generator:
        """The random numbers for that purpose: a function of seed, width and dimension alone.

        Curves that differ in penalty or scale therefore share their draws, and are compared in pairs.
        """
        number = ("features", "points", "split", "test").index(purpose)
        fixed = purpose == "test" and self.sampling.fixed_test
        entropy = (number, self.problem.space_dim) if fixed else (number, self.problem.space_dim, self.width, self.seed)
        return np.random.default_rng(np.random.SeedSequence(entropy))


@dataclass(frozen=True)
class Study:
    """What × widths × seeds. ``cells`` is the work; running it fills records; figures read records.

    >>> from rannpde.studies.problems import PorousMedium
    >>> study = Study("demo", problem=PorousMedium(), features=Layer(scale=10.0), widths=(16, 32), seeds=(0, 1, 2))
    >>> len(study.cells)
    6
    """

    name: str
    problem: Problem
    features: Layer
    widths: tuple[int, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    sampling: Sampling = Sampling()
    penalty: float | str = 1e-5
    curves: tuple[Curve, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and self.name.replace("-", "").replace("_", "").isalnum()
        require(plain, "name", self.name, "letters, digits and hyphens", "it becomes part of file names")
        require(isinstance(self.problem, Problem), "problem", self.problem, "a problem", "see rannpde.studies.problems")
        check_penalty(self.penalty)
        object.__setattr__(self, "widths", _whole_numbers("widths", self.widths, 1))
        object.__setattr__(self, "seeds", _whole_numbers("seeds", self.seeds, 0))
        object.__setattr__(self, "curves", tuple(self.curves) or (Curve(self.title or self.name),))
        labels = [curve.label for curve in self.curves]
        require(len(set(labels)) == len(labels), "curves", labels, "of different labels")

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Seed by seed, so that a whole curve can be seen early."""
        return tuple(cell for seed in self.seeds for curve in self.curves for cell in self.cells_of(curve, (seed,)))

    def cells_of(self, curve: Curve, seeds: Sequence[int] | None = None) -> tuple[Cell, ...]:
        """The cells of one curve, by width, then by seed."""
        setup = (
            curve.problem or self.problem,
            curve.features or self.features,
            curve.sampling or self.sampling,
            self.penalty if curve.penalty is None else curve.penalty,
        )
        return tuple(
            Cell(self.name, curve.label, *setup, width, seed)
            for width in curve.widths or self.widths
            for seed in (self.seeds if seeds is None else seeds)
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The whole study as JSON-able data."""
        return describe(self)


def describe(value: Any) -> Any:
    """Dataclasses as {"kind": name, field: …}, tuples as lists, numbers as they are; anything else is refused."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: describe(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    if isinstance(value, np.generic):
        return describe(value.item())
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 10 and 10.0 are the same parameter
    plain = value is None or isinstance(value, (bool, int, float, str))
    require(plain, "parameter", value, "a number, a text, or a dataclass of these", "only data can be recorded")
    return value


def check_penalty(penalty: Any) -> None:
    """Refuse anything but a finite number ≥ 0 or a rule."""
    number = isinstance(penalty, (int, float)) and not isinstance(penalty, bool) and 0 <= penalty < np.inf
    rules = " or ".join(map(repr, PENALTY_RULES))
    require(number or penalty in PENALTY_RULES, "penalty", penalty, f"a number ≥ 0, {rules}")


def _whole_numbers(argument: str, values: Any, least: int) -> tuple[int, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence | range | np.ndarray):
        reject(argument, values, "a list of whole numbers")
    require(len(values) > 0, argument, values, "a list with at least one entry")
    for value in values:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        require(bool(whole and value >= least), f"an entry of {argument}", value, f"a whole number ≥ {least}")
    require(len(set(values)) == len(values), argument, list(values), "without repetition")
    return tuple(int(value) for value in values)
