"""The error estimate of an interpolation in parameters, over the whole range and at each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError
from rannpde.network.storage import floats
from rannpde.pde.family.nodes import SparseGrid


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Relative errors of the interpolation at any value of the parameters.

    grid : the nodes; active : positions of those whose surpluses stand for the missing terms
    indicators : (n, fields), sizes of the surpluses; node_errors : (n, fields), absolute errors of the values at nodes
    gram : (fields, n, n), mean products of the values, from which the size of a combination of them follows
    floor : (fields,), the size to which errors are relative where the solution is smaller than it
    missed : largest error of a check that the estimate did not cover
    """

    grid: SparseGrid
    active: Array
    indicators: Array
    node_errors: Array
    gram: Array
    floor: Array
    missed: float = 0.0

    def errors(self, reduced: Array) -> tuple[Array, Array]:
        """Estimated relative errors (K,) at reduced coordinates (K, d): of interpolation, and of the solves.

        Errors of solves are independent of each other, or vary slowly with the parameters. Their squares are therefore
        added, and not their absolute values, which would assume the worst combination of signs.
        """
        functions = np.abs(self.grid.functions(reduced))[:, self.active]
        weights = self.grid.weights(reduced)
        sizes = np.maximum(np.sqrt(np.maximum(np.einsum("kn,fnm,km->kf", weights, self.gram, weights), 0)), self.floor)
        interpolation = functions @ self.indicators[self.active] / sizes
        with np.errstate(invalid="ignore"):  # an error that is unknown is infinite, and stays so
            solved = np.sqrt(np.square(weights) @ np.square(self.node_errors)) / sizes
        solved = np.where(np.isnan(solved), np.inf, solved)
        return interpolation.max(axis=1) + self.missed, solved.max(axis=1)

    def largest(self, count: int) -> tuple[float, float]:
        """The largest errors over the range, at ``count`` values: of interpolation, and of the solves."""
        interpolation, solved = self.errors(judged_values(self.grid.dim, count))
        return float(interpolation.max()), float(solved.max())

    def pack(self) -> dict[str, Array]:
        """Arrays for a file."""
        known = np.where(np.isfinite(self.node_errors), self.node_errors, -1.0)  # files hold finite numbers only
        missed = np.array([self.missed if np.isfinite(self.missed) else -1.0])
        return {
            "indices": self.grid.levels.astype("<i8"), "active": np.asarray(self.active, dtype="<i8"), "own": known,
            "indicators": self.indicators, "gram": self.gram, "floor": self.floor, "missed": missed,
        }  # fmt: skip


def unpack_errors(arrays: Mapping[str, Array]) -> ErrorModel:
    """The model that ``pack`` made."""
    levels, active = arrays["indices"], arrays["active"]
    whole = levels.ndim == 2 and levels.dtype == active.dtype == np.dtype("<i8") and levels.size > 0
    if not whole or levels.min() < 0 or levels.max() > 10_000 or active.min(initial=0) < 0:
        raise FileError("the nodes of the family are no whole numbers, or too large")
    count = len(levels)
    if active.max(initial=-1) >= count:
        raise FileError("the active nodes of the family are not among its nodes")
    indicators = floats(arrays, "indicators", (count, None))
    fields = indicators.shape[1]
    errors, missed = floats(arrays, "own", (count, fields)), float(floats(arrays, "missed", (1,))[0])
    grid: Any = SparseGrid(tuple(tuple(int(n) for n in row) for row in levels))
    return ErrorModel(
        grid, active, indicators, np.where(errors < 0, np.inf, errors), floats(arrays, "gram", (fields, count, count)),
        floats(arrays, "floor", (fields,)), np.inf if missed < 0 else missed,
    )  # fmt: skip


def judged_values(dim: int, count: int) -> Array:
    """Reduced coordinates (count, dim) that fill the range evenly: a Halton sequence without random shift."""
    from scipy.stats import qmc  # loading it takes half a second

    return 2 * qmc.Halton(dim, scramble=False).random(count + 1)[1:] - 1
