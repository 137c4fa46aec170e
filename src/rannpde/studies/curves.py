"""The curves of a study: what varies with the width, and with which settings."""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.errors import choose, positive_integer, positive_number, require
from rannpde.network.activations import ACTIVATIONS
from rannpde.studies.cell import MeasurementCell, Sampling, check_label, check_study_penalty, checked_widths
from rannpde.studies.layer import Layer
from rannpde.studies.target import Target, TheoremTarget


@dataclass(frozen=True)
class FittedCurve:
    """One line of a study, of fitted networks. What is None is taken from the study."""

    label: str
    target: Target | None = None
    features: Layer | None = None
    sampling: Sampling | None = None
    penalty: float | str | None = None
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_label("label", self.label)
        if self.penalty is not None:
            check_study_penalty(self.penalty)
        if self.widths is not None:
            object.__setattr__(self, "widths", checked_widths(self.widths))


@dataclass(frozen=True)
class UnbiasedCurve:
    """One line of networks of Theorem 1 with output weights that are computed, not fitted.

    law : "heavy-tailed", π with λ_τ = 1/2 + decay and λ_a = d/2 + decay, or "best", the law of least variance
    pools : draws of neurons; each is cut into disjoint networks of every width
    """

    label: str
    target: TheoremTarget
    law: str = "heavy-tailed"
    decay: float = 0.25
    activation: str = "tanh"
    widths: tuple[int, ...] | None = None
    pools: int = 8

    def __post_init__(self) -> None:
        check_label("label", self.label)
        require(isinstance(self.target, TheoremTarget), "target", self.target, "one with a transform")
        choose("law", self.law, {"heavy-tailed": None, "best": None})
        positive_number("decay", self.decay)
        choose("activation", self.activation, ACTIVATIONS)
        require(positive_integer("pools", self.pools) >= 2, "pools", self.pools, "at least 2, for the spread")
        if self.widths is not None:
            object.__setattr__(self, "widths", checked_widths(self.widths))


@dataclass(frozen=True)
class MeasuredCurve:
    """One line of a chapter that brings its own kind of measurement: all widths and realisations in one cell."""

    label: str
    measurement: MeasurementCell

    def __post_init__(self) -> None:
        check_label("label", self.label)

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of the measurement."""
        return self.measurement.widths


@dataclass(frozen=True)
class PathsCurve:
    """One line of values along paths (``rp.Paths``), with the same steps, training paths and fresh paths throughout."""

    label: str
    target: Target
    steps: int
    training: int
    paths: int
    widths: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_label("label", self.label)
        for name in ("steps", "training", "paths"):
            positive_integer(name, getattr(self, name))
        if self.widths is not None:
            object.__setattr__(self, "widths", checked_widths(self.widths))


StudyCurve = FittedCurve | UnbiasedCurve | MeasuredCurve | PathsCurve
