"""The result of ``solve`` in many dimensions: values with intervals at points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError, reject
from rannpde.io import PathLike
from rannpde.network.storage import floats
from rannpde.pde.paths.intervals import PathsIteration
from rannpde.pde.paths.region import RegionNetwork
from rannpde.pde.solution import Report, Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class PointTable:
    """Values at the points that were asked for, and nowhere else.

    points (k, 1 + d); values, standard_errors, half_widths (k,); gradients, gradient_errors (k, d); bounds (k, 2) of
    optimal stopping
    """

    points: Array
    values: Array
    standard_errors: Array
    half_widths: Array
    gradients: Array
    gradient_errors: Array
    confidence: float
    width: int
    bounds: Array | None = None

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Values (M, 1), or a first derivative in space, at points that were asked for."""
        order = sum(derivative)
        if order > 1 or derivative[0]:
            reject("derivative", derivative, "none, or one first derivative in space", "more is not known along paths")
        values = np.empty((len(points), 1))
        for k, point in enumerate(points):
            same = np.flatnonzero((np.abs(self.points - point) <= 1e-12 * (1 + np.abs(point))).all(axis=1))
            if not len(same):
                raise InputError(
                    "points has one that was not asked for; the solution is known at solution.points, ask with at=…"
                )
            table = self.gradients[:, derivative.index(1) - 1] if order else self.values
            values[k, 0] = table[same[0]]
        return values

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = {"function": "points", "confidence": self.confidence, "width": self.width}
        names: tuple[str, ...] = ("points", "values", "standard_errors", "half_widths", "gradients", "gradient_errors")
        names += () if self.bounds is None else ("bounds",)
        return header, {name: np.asarray(getattr(self, name), dtype=float) for name in names}


def unpack_points(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> PointTable:
    """The table that ``pack`` made."""
    points = floats(arrays, "points", (None, None))
    count, dim = points.shape
    bounds = floats(arrays, "bounds", (count, 2)) if "bounds" in arrays else None
    numbers = {name: floats(arrays, name, (count,)) for name in ("values", "standard_errors", "half_widths")}
    slopes = {name: floats(arrays, name, (count, dim - 1)) for name in ("gradients", "gradient_errors")}
    own = {"confidence": float(header["confidence"]), "width": int(header["width"]), "bounds": bounds}
    return PointTable(points=points, **numbers, **slopes, **own)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class PathsSolution(Solution):
    """Values of a parabolic problem at points of R^d, each with its interval.

    ``value``, ``interval`` and ``gradient`` are those of a single point; ``values``, ``intervals``, ``gradients`` of
    all.
    """

    def __repr__(self) -> str:
        """One line: the value with its interval, or how many there are, and how the solve ended."""
        verdict = "converged" if self.converged else f"not converged ({self.status.name.lower()})"
        return f"<{type(self).__name__} {self._told()}, by {self.method.name}: {verdict}>"

    def _told(self) -> str:
        field = self.fields[0]
        if isinstance(self.function, RegionNetwork):
            return f"{field} on a region of R^{self.function.dim - 1}, each value within ± {self.half_width:.2g}"
        dim = f"in R^{self.table.dim - 1}"
        if len(self.values) == 1:
            return f"{field} = {self.value:.8g} ± {self.half_width:.2g} ({100 * self.table.confidence:g} %) {dim}"
        return f"{field} at {len(self.values)} points {dim}, each within ± {self.table.half_widths.max():.2g}"

    @property
    def table(self) -> PointTable:
        if not isinstance(self.function, PointTable):
            reject("solution", "a network on a region", "one at points", "call it at points, see half_width")
        return self.function

    @property
    def half_width(self) -> float:
        """Half the interval of each value of a network on a region, or of the value at a single point."""
        if isinstance(self.function, RegionNetwork):
            return self.function.half_width
        return float(self._single(self.table.half_widths))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and the upper bound of optimal stopping at a single point, without their standard errors."""
        if self.table.bounds is None:
            reject("solution", "one without an obstacle", "one of optimal stopping", "see interval")
        lower, upper = self._single(self.table.bounds)
        return float(lower), float(upper)

    def __call__(self, *points: Any, **coordinates: Any) -> Array:
        """Values (M,): of a network on a region at points (M, d) or (M, 1 + d), of a table at its own points."""
        if isinstance(self.function, RegionNetwork) and len(points) == 1 and not coordinates:
            return self.function(points[0])[:, 0]
        return super().__call__(*points, **coordinates)

    @property
    def points(self) -> Array:
        """Rows (t, x_1, …, x_d) that were asked for."""
        return self.table.points

    @property
    def values(self) -> Array:
        return self.table.values

    @property
    def intervals(self) -> Array:
        """Lower and upper ends (k, 2), with the errors in time and of regression inside."""
        return np.stack([self.values - self.table.half_widths, self.values + self.table.half_widths], axis=1)

    @property
    def standard_errors(self) -> Array:
        """Standard errors (k,) of the values, by sampling alone."""
        return self.table.standard_errors

    @property
    def gradients(self) -> Array:
        """∇u (k, d)."""
        return self.table.gradients

    @property
    def gradient_errors(self) -> Array:
        """Standard errors of the components of the gradients (k, d)."""
        return self.table.gradient_errors

    def _single(self, table: Array) -> Any:
        if len(self.points) != 1:
            reject("solution", f"known at {len(self.points)} points", "that of one", "use values, intervals, gradients")
        return table[0]

    @property
    def value(self) -> float:
        return float(self._single(self.values))

    @property
    def interval(self) -> tuple[float, float]:
        lower, upper = self._single(self.intervals)
        return float(lower), float(upper)

    @property
    def standard_error(self) -> float:
        return float(self._single(self.standard_errors))

    @property
    def gradient(self) -> Array:
        return np.asarray(self._single(self.gradients))

    def errors(self, count: int = 0, rng: int = 0) -> dict[str, float]:
        """Field → largest relative error at the points, where the problem knows its exact solution."""
        form = self.stated.parabolic
        if form is None or not self.stated.exact:
            return {}
        if isinstance(self.function, RegionNetwork):
            return {}
        exact = self.stated.exact_values(self.points)
        return {self.fields[0]: float(np.max(np.abs(self.values - exact) / np.maximum(np.abs(exact), 1e-300)))}

    def plot(self, path: PathLike | None = None) -> Figure:
        """The iterations with their intervals, and the gradient where it is known; a matplotlib Figure."""
        from rannpde.plotting.paths import plot_paths  # pictures load when they are wanted

        return plot_paths(self, path)

    def to_html(self, path: PathLike, command: str = "") -> Path:
        """One page with the report and the picture; gives back the path."""
        from rannpde.plotting.paths import write_paths_page

        return write_paths_page(self, path, command)

    def _shown(self) -> list[tuple[float, Array]]:
        if isinstance(self.function, RegionNetwork):
            return []
        return list(zip(self.values.tolist(), self.intervals, strict=True))

    def report(self) -> Report:
        """A page of text: values, intervals, and the iterations behind them."""
        verdict = "converged" if self.converged else "not converged"
        lines = [f"{self.title}: {verdict} ({self.reason})", f"  {self.method}"]
        if isinstance(self.function, RegionNetwork):
            lines.append(f"  {self.fields[0]} on the region, each value within ± {self.half_width:.3g}")
        for k, (value, (lower, upper)) in enumerate(self._shown()):
            where = "" if len(self.values) == 1 else f" at point {k + 1}"
            interval = f"{100 * self.table.confidence:g} % in [{lower:.8g}, {upper:.8g}]"
            lines.append(f"  {self.fields[0]}{where} = {value:.8g}, {interval}")
        if self.problem is not None:
            lines += [f"  relative error of {name}: {error:.2e}" for name, error in self.errors().items()]
        lines += [f"  {line}" for line in self.history.lines()]
        lines.append(f"  {self.seconds:.2f} s")
        return Report("\n".join(lines))


@dataclass(frozen=True)
class PathsHistory:
    """The iterations of every point."""

    iterations: tuple[tuple[PathsIteration, ...], ...]

    advice = "more seconds, more paths of rp.Paths(paths=…) or a larger tol may help"

    def lines(self) -> list[str]:
        """The lines of a report."""
        return [f"iteration {k}: {one}" for own in self.iterations for k, one in enumerate(own, start=1)]

    def to_table(self) -> dict[str, Any]:
        """The history as data that JSON can hold."""
        return {"iterations": [[list(vars(one).values()) for one in own] for own in self.iterations]}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> PathsHistory:
        return cls(tuple(tuple(PathsIteration(*row) for row in own) for own in table["iterations"]))
