"""The protocol of discretisations in the adaptive loop on shapes: elliptic systems, flows and plates have one each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.cells.network import CellNetwork
from rannpde.pde.spectrum.settings import SpectrumSettings
from rannpde.pde.spectrum.shapes.cellwise import CellPencil
from rannpde.pde.weak.settings import WeakSettings


@dataclass(frozen=True, eq=False)
class ModeShape:
    """One mode of a discretisation: its eigenvalue, weights (C, n) of the functions of cells and traces (T,)."""

    value: complex
    weights: Array
    traces: Array

    def parts(self) -> list[tuple[Array, Array]]:
        """Weights and traces of the real and, where there is one, the imaginary part."""
        parts = [(self.weights.real, self.traces.real)]
        if np.iscomplexobj(self.weights) and self.weights.imag.any():
            parts.append((self.weights.imag, self.traces.imag))
        return parts


@dataclass(frozen=True, eq=False)
class WeightedFields:
    """Fields as weights (C, F, k) of the functions of cells."""

    weights: Array


class CellDiscretisation(Protocol):
    """A problem on cells; scale : a typical eigenvalue."""

    scale: float

    def first(self) -> Any:
        """The resolution with which the loop begins: a tree of cells and a degree."""
        ...

    def pencil(self, resolution: Any) -> CellPencil:
        """The matrices of a resolution, with random functions of its own."""
        ...

    def quotient(self, pencil: CellPencil, mode: ModeShape) -> tuple[complex, float]:
        """The Rayleigh quotient of a mode, with little rounding, and the sum of the absolute values of its terms, to
        which the rounding error is proportional."""
        ...

    def indicator(self, pencil: CellPencil, mode: ModeShape) -> tuple[Array, float]:
        """Squared indicators (C,) of the error of a mode, and its energy."""
        ...

    def refined(self, resolution: Any, pencil: CellPencil, modes: Array, indicators: Array) -> Any:
        """A finer resolution for modes with weights (K, C, n); None where none is allowed."""
        ...

    def functions(self, resolution: Any, pencil: CellPencil, mode: ModeShape) -> tuple[CellNetwork, CellNetwork | None]:
        """The real and the imaginary part of a mode, the second None where the mode is real."""
        ...


def first_degree(tol: float, dim: int, settings: SpectrumSettings, weak: WeakSettings) -> int:
    """The degree of the first cells, which grows by a constant for each digit of the tolerance."""
    start, per_digit = settings.shape_degree[dim - 2]
    return min(max(round(start - per_digit * log10(tol)), 3), weak.most_degree[dim - 1])


def mode_tables(samples: Sequence[tuple[Array, Array, Array, dict[MultiIndex, Array]]]) -> dict[MultiIndex, Array]:
    """Derivatives (M, F) of a mode from samples of its real and, where there is one, its imaginary part."""
    real = samples[0][3]
    if len(samples) == 1:
        return real
    return {index: table + 1j * samples[1][3][index] for index, table in real.items()}


BudgetCheck = Callable[[], None]
"""A function that raises OutOfBudget when the time allowed is used up."""
