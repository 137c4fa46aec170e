"""Running one cell: draw, fit, test."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rannpde.fitting import NormalEquations, fit
from rannpde.fitting.fit import add_dense
from rannpde.network.features import FourierFeatures
from rannpde.network.network import Network
from rannpde.studies.study import Cell

Array = np.ndarray

HELD_OUT_SHARE = 0.2
HELD_OUT_PENALTIES = tuple(10.0**k for k in range(-14, 1))


@dataclass(frozen=True)
class Result:
    """What a finished cell is recorded with.

    error : relative L² error on the test points, all fields together; field_errors : of each field
    training_error : relative root-mean-square error on the training points; penalty : λ used, also where it was chosen
    validation_error : relative error on held-out training points, where these chose λ
    path : how the normal equations were formed; seconds : the fit alone; total_seconds : with sampling and testing
    """

    error: float
    field_errors: dict[str, float]
    training_error: float
    penalty: float
    condition: float
    path: str
    points: int
    columns: int
    seconds: float
    total_seconds: float
    validation_error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_cell(cell: Cell) -> Result:
    """Fit the cell's problem and measure the error. Depends on the cell alone."""
    started = time.perf_counter()
    problem, sampling = cell.problem, cell.sampling
    features = cell.features.sample(cell.width, problem.bounds, cell.stream("features"))
    points = training_points(cell)
    values = problem.values(points)
    fitting = time.perf_counter()
    penalty: Any = cell.penalty
    validation_error = None
    if penalty == "held-out":
        penalty, validation_error = _held_out(cell, features, points, values)
    network = fit(features, points, values, penalty=penalty)
    seconds = time.perf_counter() - fitting
    test = problem.uniform(sampling.test_points, cell.stream("test"))
    error, field_errors = relative_errors(network(test), problem.values(test))
    about = network.about
    return Result(
        error=error,
        field_errors=dict(zip(problem.fields, field_errors, strict=True)),
        training_error=float(about["training_error"]),
        penalty=float(about["penalty"]),
        condition=float(about["condition"]),
        path=str(about["path"]),
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


def training_points(cell: Cell) -> Array:
    """M points (M, dim): the uniform share, then the focused one."""
    rng = cell.stream("points")
    focused = round(cell.sampling.focus * cell.points)
    uniform = cell.problem.uniform(cell.points - focused, rng)
    return np.concatenate([uniform, cell.problem.focused(focused, rng)]) if focused else uniform


def relative_errors(approximation: Array, exact: Array) -> tuple[float, list[float]]:
    """‖approximation - exact‖ / ‖exact‖ over all fields, and of each field alone."""
    exact = exact.reshape(len(exact), -1)
    squares = np.square(approximation.reshape(exact.shape) - exact).sum(axis=0)
    norms = np.square(exact).sum(axis=0)
    return float(np.sqrt(squares.sum() / norms.sum())), [float(e) for e in np.sqrt(squares / norms)]


def _held_out(cell: Cell, features: Any, points: Array, values: Array) -> tuple[float, float]:
    """The λ of a grid with the least error on a fifth of the training points, fitted on the others; and that error."""
    order = cell.stream("split").permutation(len(points))
    split = max(1, round(HELD_OUT_SHARE * len(points)))
    held, kept = order[:split], order[split:]
    columns = values.reshape(len(values), -1)
    equations = NormalEquations(features.columns, columns.shape[1], features.constant)
    add_dense(equations, features, points[kept], columns[kept], None)
    fits = equations.path().solve_all(HELD_OUT_PENALTIES)
    predictions = Network(features, np.hstack([linear.coefficients for linear in fits]))(points[held])
    errors = np.square(predictions.reshape(split, len(fits), -1) - columns[held][:, None, :]).sum(axis=(0, 2))
    best = int(np.argmin(errors))
    return HELD_OUT_PENALTIES[best], float(np.sqrt(errors[best] / np.square(columns[held]).sum()))
