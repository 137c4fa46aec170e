"""The request to all solvers of eigenvalues (intervals, boxes, shapes, solids), and their result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.monitor import Monitor, Status
from rannpde.pde.solution import Choice, SolvedFunction
from rannpde.pde.spectrum.pencil import Pencil
from rannpde.pde.spectrum.result import Mode, Spectrum, SpectrumIteration
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.wanted import Wanted
from rannpde.rounding import ROUNDED


@dataclass(frozen=True, eq=False)
class EigenRequest:
    """The operators, which eigenvalues are wanted, how many, to which relative error, and by which means."""

    pencil: Pencil
    wanted: Wanted
    count: int
    tol: float
    settings: SpectrumSettings
    rng: np.random.Generator
    monitor: Monitor

    def recorded(
        self, iterations: list[SpectrumIteration], cells: int, unknowns: int, estimate: float
    ) -> None:  # fmt: skip
        """Add an iteration to a list, and report the progress."""
        iterations.append(SpectrumIteration(cells, unknowns, float(estimate), self.monitor.elapsed))
        self.monitor.tell(len(iterations), 1, width=unknowns, estimate=estimate)


Parts = tuple[SolvedFunction, SolvedFunction | None]
"""The real and the imaginary part of a mode, the second None where the mode is real."""


@dataclass(frozen=True, eq=False)
class EigenResult:
    """Eigenvalues with bounds and modes, what the bounds rest on, how they were counted, and how it ended.

    scale : a typical eigenvalue, to which an error is relative where the eigenvalue is smaller
    """

    values: Array
    bounds: Array
    functions: tuple[Parts, ...]
    method: Choice
    wanted: Wanted
    counted: str
    status: Status
    detail: str
    iterations: tuple[SpectrumIteration, ...]
    scale: float
    assurance: str

    def spectrum(self, request: EigenRequest) -> Spectrum:
        """The result of ``rp.eigen``."""
        problem, fields = request.pencil.problem, request.pencil.problem.fields
        modes = tuple(
            Mode(value.item(), float(bound), fields, *parts)
            for value, bound, parts in zip(self.values, self.bounds, self.functions, strict=True)
        )
        return Spectrum(
            problem, fields, self.values, self.bounds, modes, self.wanted.described, self.counted, self.method,
            self.status, self.detail, request.tol, self.scale, self.iterations, request.monitor.elapsed,
            self.assurance,
        )  # fmt: skip


def are_real(values: Array, bounds: Array) -> bool:
    """Whether eigenvalues (K,) may all be real, given the bounds of their errors."""
    return bool((np.abs(np.imag(values)) <= bounds + ROUNDED * np.abs(values)).all())
