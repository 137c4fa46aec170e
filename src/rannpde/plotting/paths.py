"""Pictures and pages of values at points of R^d: iterations with their intervals, and the gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rannpde.io import PathLike
from rannpde.pde.paths.region import RegionNetwork
from rannpde.pde.paths.solution import PathsHistory, PathsSolution
from rannpde.plotting.document import write_summary
from rannpde.plotting.style import style

COMPONENTS = 200
"""Components of a gradient that a picture shows."""


def plot_paths(solution: PathsSolution, path: PathLike | None = None) -> Figure:
    """Left the three errors of every round, right the value with its interval, or the gradient at a single point."""
    with style():
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        assert isinstance(solution.history, PathsHistory)
        iterations = solution.history.iterations[0]
        numbers = np.arange(1, len(iterations) + 1)
        for key in ("in_time", "regression", "sampling"):
            sizes = [max(getattr(one, key), 1e-300) for one in iterations]
            if max(sizes) > 1e-290:
                left.semilogy(numbers, sizes, marker="o", label=key.replace("_", " "))
        left.set_xticks(numbers)
        left.set_xlabel("round")
        left.set_ylabel("half-width of the interval")
        left.legend()
        _right(solution, right)
        figure.suptitle(solution.title)
        if path is not None:
            figure.savefig(path)
        return figure


def _right(solution: PathsSolution, axes) -> None:  # type: ignore[no-untyped-def]
    if isinstance(solution.function, RegionNetwork):
        axes.text(0.5, 0.5, f"a network on a region,\neach value ± {solution.half_width:.2g}", ha="center", va="center")
        axes.set_axis_off()
    elif len(solution.points) == 1:
        gradient, error = solution.gradients[0][:COMPONENTS], solution.gradient_errors[0][:COMPONENTS]
        axes.errorbar(np.arange(1, len(gradient) + 1), gradient, 1.96 * error, fmt=".", linewidth=0.8)
        axes.set_xlabel("component")
        axes.set_ylabel("gradient")
        axes.set_title(f"{solution.fields[0]} = {solution.value:.7g} ± {solution.half_width:.1g}")
    else:
        middle = solution.values
        axes.errorbar(np.arange(1, len(middle) + 1), middle, 0.5 * np.ptp(solution.intervals, axis=1), fmt="o")
        axes.set_xlabel("point")
        axes.set_ylabel(solution.fields[0])


def write_paths_page(solution: PathsSolution, path: PathLike, command: str = "") -> Path:
    """A page without scripts: statement, report, picture."""
    return write_summary(solution, path, plot_paths(solution), command=command)
