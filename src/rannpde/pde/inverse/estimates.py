"""Estimates of unknowns: numbers with intervals, functions with bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf, isfinite, log10
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import stdtrit  # scipy.stats, which has it too, takes half a second to load

from rannpde.arrays import Array
from rannpde.errors import FileError, finite_points
from rannpde.network.features import FourierFeatures
from rannpde.network.storage import floats
from rannpde.pde.cells.basis.basis import BasisSample, Cell
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.inverse.unknowns import Expanded, FunctionBasis
from rannpde.pde.problem.unknown import UnknownFunction
from rannpde.pde.tolerance import CONFIDENCE, MUCH_SMALLER


@dataclass(frozen=True)
class Parameter:
    """An identified number: ``float(parameter)`` is its value.

    std : standard deviation; infinite where the data do not determine it
    interval : holds the true value with the probability ``confidence``, if the model is right
    note : a remark, such as an active bound, no determination by the data, or an interval by profile
    """

    name: str
    value: float
    std: float
    interval: tuple[float, float]
    confidence: float = CONFIDENCE
    note: str = ""

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        """
        >>> str(Parameter("nu", 0.00318309, 1.07e-6, (0.00318099, 0.00318519)))
        '0.0031831 ± 0.0000021 (95 %)'
        """
        lower, upper = self.interval
        aside = f"; {self.note}" if self.note else ""
        if not (isfinite(lower) and isfinite(upper)):
            return f"{self.value:.3g}, not known{aside}"
        half = 0.5 * (upper - lower)
        level = f"({100 * self.confidence:g} %{aside})"
        if abs(0.5 * (lower + upper) - self.value) > MUCH_SMALLER * half:
            return f"{self.value:.6g} in [{lower:.6g}, {upper:.6g}] {level}"
        if half == 0 or half < 1e-15 * abs(self.value):
            return f"{self.value:.16g} {level}"
        digits = 1 - floor(log10(half))
        if -4 < digits <= 12:
            decimals = max(digits, 0)
            return f"{self.value:.{decimals}f} ± {half:.{decimals}f} {level}"
        whole = max(floor(log10(abs(self.value) or half)) + digits, 1)
        return f"{self.value:.{min(whole, 16)}e} ± {half:.1e} {level}"

    __repr__ = __str__


def factor_of(confidence: float, freedom: float) -> float:
    """Half width of a two-sided interval in standard deviations; infinite freedom for noise that is known.

    >>> round(factor_of(0.95, inf), 2), round(factor_of(0.95, 5), 2)
    (1.96, 2.57)
    """
    level = 0.5 + 0.5 * confidence
    return NormalDist().inv_cdf(level) if freedom == inf else float(stdtrit(freedom, level))


@dataclass(frozen=True, eq=False)
class FunctionEstimate:
    """An identified function; call it with points (M, k) of its coordinates ``of``.

    covariance : covariance of its weights; discretisation_error : difference of two discretisations in
        them; factor : half width of its bands in standard deviations
    regularisation, smoothness : parameter and order of the prior, of largest evidence; note : as in a Parameter
    """

    name: str
    of: tuple[str, ...]
    expanded: Expanded
    covariance: Array
    discretisation_error: Array
    factor: float
    regularisation: float
    smoothness: int
    note: str = ""

    def __call__(self, points: Array) -> Array:
        """The values (M,) at points."""
        return self.expanded(finite_points("points", points, len(self.of)))

    def std(self, points: Array) -> Array:
        """Standard deviation (M,) at points, the discretisation's own error included."""
        points = finite_points("points", points, len(self.of))
        table = self.expanded.basis.table(points, (0,) * len(self.of))
        noise = np.einsum("ij,jk,ik->i", table, self.covariance, table)
        return np.sqrt(np.maximum(noise, 0.0) + np.square(table @ self.discretisation_error))

    def band(self, points: Array) -> tuple[Array, Array]:
        """Lower and upper ends (M,) of pointwise intervals."""
        middle, half = self(points), self.factor * self.std(points)
        return middle - half, middle + half

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        basis = self.expanded.basis
        features, cell = basis.cell.basis.features, basis.cell
        arrays = {
            "weights": features.weights, "phases": features.phases, "bounds": cell.bounds,
            "transform": cell.transform, "turn": basis.turn, "roughness": basis.roughness,
            "vector": self.expanded.weights, "covariance": self.covariance, "discretisation_error":
            self.discretisation_error,
        }  # fmt: skip
        about = {
            "name": self.name,
            "degree": cell.basis.degree,
            "factor": self.factor,
            "regularisation": self.regularisation,
        }
        return about | {"smoothness": self.smoothness, "note": self.note}, arrays

    def __repr__(self) -> str:
        points = self.expanded.basis.cell.points
        values, spread = self(points), self.factor * self.std(points)
        notes = f"from {values.min():.4g} to {values.max():.4g}, ± {np.sqrt(np.mean(spread**2)):.2g} on average"
        return f"{self.name}({', '.join(self.of)}): {notes}" + (f"; {self.note}" if self.note else "")


def unpack_function(
    about: Mapping[str, Any], arrays: Mapping[str, Array], unknown: UnknownFunction
) -> FunctionEstimate:
    """The inverse of ``FunctionEstimate.pack``; FileError where the parts do not fit each other."""
    dim = len(unknown.of)
    weights = floats(arrays, "weights", (dim, None))
    width = weights.shape[1]
    bounds = floats(arrays, "bounds", (dim, 2))
    degree = int(about["degree"])
    if not (bounds[:, 0] < bounds[:, 1]).all() or not 2 <= degree <= 30 or not width:
        raise FileError("the functions of the file do not fit their coordinates")
    features = FourierFeatures(weights, floats(arrays, "phases", (width,)), np.zeros(dim), np.ones(dim))
    transform = floats(arrays, "transform", (features.columns, None))
    turn = floats(arrays, "turn", (transform.shape[1], None))
    count = turn.shape[1]
    sample = BasisSample(features, degree, CellsTuning())
    middle, half = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
    nodes, shares = sample.grid
    cell = Cell(sample, bounds, middle + half * nodes, shares, transform, uncut=False)
    basis = FunctionBasis(unknown, cell, turn, floats(arrays, "roughness", (count,)))
    expanded = Expanded(basis, floats(arrays, "vector", (count,)))
    covariance = floats(arrays, "covariance", (count, count))
    difference = floats(arrays, "discretisation_error", (count,))
    numbers = float(about["factor"]), float(about["regularisation"]), int(about["smoothness"]), str(about["note"])
    return FunctionEstimate(str(about["name"]), unknown.of, expanded, covariance, difference, *numbers)
