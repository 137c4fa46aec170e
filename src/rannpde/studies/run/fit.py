"""A fitted network: draw, fit, test."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.norms import relative_errors
from rannpde.errors import positive_integer, require
from rannpde.fitting import NormalEquations
from rannpde.fitting.fit import fit
from rannpde.fitting.normal import add_dense
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.network import Network
from rannpde.studies.cell import Fit
from rannpde.studies.target import Target

HELD_OUT_SHARE = 0.2
"""Share of the training points that are held out: the customary fifth; the fit that counts is made again on all of
them."""
HELD_OUT_PENALTIES = tuple(10.0**k for k in range(-14, 1))
"""From the rounding of normal equations to a penalty as large as the columns."""


@dataclass(frozen=True)
class FitResult:
    """The record of a finished fit.

    error : relative L² error on the test points, all fields together; field_errors : error of each field
    training_error : relative root-mean-square error on the training points; penalty : λ used, also where it was chosen
    validation_error : relative error on held-out training points, where these chose λ
    solver : how the fit was solved; seconds : the fit alone; total_seconds : with sampling and testing
    """

    error: float
    field_errors: dict[str, float]
    training_error: float
    penalty: float
    condition: float
    solver: str
    points: int
    columns: int
    seconds: float
    total_seconds: float
    validation_error: float | None = None

    def __post_init__(self) -> None:
        for name in ("error", "training_error", "penalty", "seconds", "total_seconds"):
            check_measured(name, getattr(self, name))
        if self.validation_error is not None:
            check_measured("validation_error", self.validation_error)
        require(isinstance(self.condition, float), "condition", self.condition, "a number")  # perhaps infinite
        require(isinstance(self.solver, str), "solver", self.solver, "a text")
        require(isinstance(self.field_errors, dict), "field_errors", self.field_errors, "a table")
        for name, error in self.field_errors.items():
            check_measured(f"error of {name}", error)
        positive_integer("points", self.points)
        positive_integer("columns", self.columns)

    @property
    def last_error(self) -> float:
        """The error at the cell's largest width, which is its only one."""
        return self.error


def check_measured(name: str, value: Any) -> None:
    """Refuse anything but a finite float ≥ 0: any other result must neither be stored nor used."""
    require(isinstance(value, float) and 0 <= value < np.inf, name, value, "a finite number ≥ 0")


def run_fit(cell: Fit) -> FitResult:
    """Fit the cell's target and measure the error. Depends on the cell alone."""
    started = time.perf_counter()
    target, sampling = cell.target, cell.sampling
    features = cell.features.sample(cell.width, target.bounds, cell.stream("features"))
    points = training_points(cell)
    values = target.values(points)
    fitting = time.perf_counter()
    penalty: Any = cell.penalty
    validation_error = None
    if penalty == "held-out":
        penalty, validation_error = _held_out(cell, features, points, values)
    network = fit(features, points, values, penalty=penalty)
    seconds = time.perf_counter() - fitting
    test = mixed_points(target, sampling.test_points, sampling.test_focus, cell.stream("test"))
    error, field_errors = errors_of(network(test), target.values(test))
    about = network.about
    return FitResult(
        error=error,
        field_errors=dict(zip(target.fields, field_errors, strict=True)),
        training_error=float(about["training_error"]),
        penalty=float(about["penalty"]),
        condition=float(about["condition"]),
        solver=str(about["solver"]),
        points=len(points),
        columns=int(about["columns"]),
        seconds=seconds,
        total_seconds=time.perf_counter() - started,
        validation_error=validation_error,
    )


def warm_up() -> None:
    """Load the compiled kernels and libraries that the first fit would otherwise be charged for."""
    features = FourierFeatures.sample(width=4, dim=2, scale=1.0, rng=0)
    points = np.random.default_rng(0).random((64, 2))
    fit(features, points, points[:, 0], method="dense")
    fit(features, points, points[:, 0], method="nufft")


def training_points(cell: Fit) -> Array:
    """M points (M, dim): the uniform share, then the focused one."""
    return mixed_points(cell.target, cell.points, cell.sampling.focus, cell.stream("points"))


def mixed_points(target: Target, count: int, focus: float, rng: np.random.Generator) -> Array:
    """count points (count, dim): uniform ones, then the share ``focus`` near the difficult part."""
    focused = round(focus * count)
    uniform = target.uniform(count - focused, rng)
    return np.concatenate([uniform, target.focused(focused, rng)]) if focused else uniform


def errors_of(approximation: Array, exact: Array) -> tuple[float, list[float]]:
    """The relative error over all fields, and that of each field alone."""
    exact = exact.reshape(len(exact), -1)
    approximation = approximation.reshape(exact.shape)
    seen = bool((exact != 0).any(axis=0).all())
    require(seen, "a field of the target", 0.0, "somewhere not 0", "it has no relative error")
    together = relative_errors(approximation.reshape(-1, 1), exact.reshape(-1, 1))
    return float(together[0]), relative_errors(approximation, exact).tolist()


def _held_out(
    cell: Fit, features: FourierFeatures | RandomFeatures, points: Array, values: Array
) -> tuple[float, float]:
    """The λ of a grid with the least error on a fifth of the training points, fitted on the others; and that error."""
    order = cell.stream("split").permutation(len(points))
    split = max(1, round(HELD_OUT_SHARE * len(points)))
    held, fitted = order[:split], order[split:]
    columns = values.reshape(len(values), -1)
    equations = NormalEquations(features.columns, columns.shape[1], features.constant)
    add_dense(equations, features, points[fitted], columns[fitted], None)
    fits = equations.path().solve_all(HELD_OUT_PENALTIES)
    predictions = Network(features, np.hstack([linear.coefficients for linear in fits]))(points[held])
    errors = np.square(predictions.reshape(split, len(fits), -1) - columns[held][:, None, :]).sum(axis=(0, 2))
    best = int(np.argmin(errors))
    return HELD_OUT_PENALTIES[best], float(np.sqrt(errors[best] / np.square(columns[held]).sum()))
