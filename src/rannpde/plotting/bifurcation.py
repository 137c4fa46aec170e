"""The bifurcation diagram of a continuation."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from rannpde.arrays import Array
from rannpde.io import PathLike
from rannpde.pde.spectrum.continuation.result import Continuation, SolutionBranch
from rannpde.plotting.figures import HEADING, canvas, finished
from rannpde.plotting.style import COLOURS, style
from rannpde.plotting.typeset import inline_equation

STABILITY_LINES = {0: "-", 1: "--", -1: ":"}
STABILITY_WORDS = {0: "stable", 1: "unstable", -1: "stability not known"}
"""By the sign of the number of perturbations that grow."""


def plot_continuation(continuation: Continuation, path: PathLike | None = None) -> Figure:
    """Extreme values over the parameter: stable solutions as lines, unstable ones dashed, special points marked."""
    with style():
        figure, axes = canvas(1, 1, width=5.6, height=4.0)
        ax = axes[0, 0]
        for number, branch in enumerate(continuation.branches):
            colour = COLOURS[number % len(COLOURS)]
            at, extremes, kinds = _through_folds(branch)
            changes = np.flatnonzero(np.diff(kinds)) + 1
            for piece in np.split(np.arange(len(at)), changes):
                joined = np.append(piece, min(piece[-1] + 1, len(at) - 1))
                line = STABILITY_LINES[int(kinds[piece[0]])]
                ax.plot(at[joined], extremes[joined], line, color=colour)
        for kind, marker in (("fold", "o"), ("branch point", "s"), ("Hopf point", "^")):
            points = [one for one in continuation.special if one.kind == kind]
            if points:
                curve = [one.parameter for one in points], [one.extreme for one in points]
                ax.plot(*curve, marker, color="black", label=kind)
        seen = {int(kind) for branch in continuation.branches for kind in np.sign(branch.unstable)}
        for known in sorted(seen):
            ax.plot([], [], STABILITY_LINES[known], color="#888888", label=STABILITY_WORDS[known])
        ax.legend()
        ax.set_xlabel(inline_equation(continuation.parameter))
        ax.set_ylabel(f"extreme value of {inline_equation(continuation.problem.fields[0])}")
        figure.suptitle(continuation.problem.name or "Bifurcation diagram", fontsize=HEADING)
        return finished(figure, path)


def _through_folds(branch: SolutionBranch) -> tuple[Array, Array, Array]:
    """Parameters, extreme values and signs of the numbers of growing perturbations, with the folds between the points
    that they lie between: 0 stable, 1 unstable, -1 not known."""
    at, extremes, kinds = branch.parameters, branch.extremes, np.sign(branch.unstable)
    for fold in (one for one in branch.special if one.kind == "fold"):
        between = (extremes[:-1] - fold.extreme) * (extremes[1:] - fold.extreme) <= 0
        if between.any():
            away = np.abs(at[:-1] - fold.parameter) + np.abs(at[1:] - fold.parameter)
            k = int(np.where(between, away, np.inf).argmin()) + 1
            at, extremes = np.insert(at, k, fold.parameter), np.insert(extremes, k, fold.extreme)
            kinds = np.insert(kinds, k, kinds[k])
    return at, extremes, kinds
