"""A study as data: one target, one kind of features, widths and seeds, and the curves that vary them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rannpde.errors import require
from rannpde.studies.cell import (
    MOST_POINTS,
    Fit,
    PathsCell,
    Sampling,
    StudyCell,
    Unbiased,
    check_label,
    check_study_penalty,
    checked_seeds,
    checked_widths,
)
from rannpde.studies.curves import FittedCurve, MeasuredCurve, PathsCurve, StudyCurve, UnbiasedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.target import Target

MOST_CELLS = 10**6
"""A million records are some gigabytes; the paper's studies at full size have a few thousand."""


@dataclass(frozen=True)
class Study:
    """What × widths × seeds. ``cells`` is the work; running it fills records; figures read records.

    >>> from rannpde.studies.target import PorousMedium
    >>> study = Study("demo", target=PorousMedium(), features=Layer(scale=10.0), widths=(16, 32), seeds=(0, 1, 2))
    >>> len(study.cells)
    6
    """

    name: str
    target: Target
    features: Layer
    widths: tuple[int, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    sampling: Sampling = field(default_factory=Sampling)
    penalty: float | str = 1e-5
    curves: tuple[StudyCurve, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and self.name.replace("-", "").replace("_", "").isalnum()
        remedy = "it becomes part of file names"
        require(plain and len(self.name) <= 80, "name", self.name, "up to 80 letters, digits and hyphens", remedy)
        require(isinstance(self.target, Target), "target", self.target, "a target", "see rannpde.studies.target")
        if self.title != "":
            check_label("title", self.title)
        check_study_penalty(self.penalty)
        object.__setattr__(self, "widths", checked_widths(self.widths))
        object.__setattr__(self, "seeds", checked_seeds(self.seeds))
        object.__setattr__(self, "curves", tuple(self.curves) or (FittedCurve(self.title or self.name),))
        labels = [curve.label for curve in self.curves]
        require(len(set(labels)) == len(labels), "curves", labels, "of different labels")
        self._check_size()

    def _check_size(self) -> None:
        cells = len(self.seeds) * sum(len(curve.widths or self.widths) for curve in self.curves)
        remedy = "lower seeds, widths or curves"
        require(cells <= MOST_CELLS, "the number of cells", cells, f"at most {MOST_CELLS}", remedy)
        for curve in self.curves:
            if isinstance(curve, FittedCurve):
                points = (curve.sampling or self.sampling).points_per_width * max(curve.widths or self.widths)
                remedy = "lower points_per_width or widths"
                require(points <= MOST_POINTS, "points_per_width × width", points, f"at most {MOST_POINTS}", remedy)

    @cached_property
    def cells(self) -> tuple[StudyCell, ...]:
        """Seed by seed, so that a whole curve can be seen early."""
        return tuple(cell for seed in self.seeds for curve in self.curves for cell in self.cells_of(curve, (seed,)))

    def cells_of(self, curve: StudyCurve, seeds: Sequence[int] | None = None) -> tuple[StudyCell, ...]:
        """The cells of one curve, by width, then by seed; curves that are not fits are one cell, of the first seed."""
        seeds = self.seeds if seeds is None else seeds
        if isinstance(curve, MeasuredCurve):
            own = replace(curve.measurement, study=self.name, curve=curve.label, seed=self.seeds[0])
            return (own,) if self.seeds[0] in seeds else ()
        if isinstance(curve, UnbiasedCurve):
            setup = (curve.target, self.seeds[0], curve.law, curve.decay, curve.activation, curve.pools)
            one = Unbiased(self.name, curve.label, *setup, curve.widths or self.widths)
            return (one,) if self.seeds[0] in seeds else ()
        if isinstance(curve, PathsCurve):
            size = (curve.steps, curve.training, curve.paths)
            widths = curve.widths or self.widths
            return tuple(PathsCell(self.name, curve.label, curve.target, s, n, *size) for n in widths for s in seeds)
        return tuple(
            Fit(
                self.name,
                curve.label,
                curve.target or self.target,
                seed,
                curve.features or self.features,
                curve.sampling or self.sampling,
                self.penalty if curve.penalty is None else curve.penalty,
                width,
            )
            for width in curve.widths or self.widths
            for seed in seeds
        )
