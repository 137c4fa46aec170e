"""The bifurcation diagram of a continuation."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from rannpde.io import PathLike
from rannpde.pde.spectrum.continuation.result import Continuation
from rannpde.plotting.figures import HEADING, canvas, finished
from rannpde.plotting.style import COLOURS, style
from rannpde.plotting.typeset import inline_equation

STABILITY_LINES = {0: "-", 1: "--", -1: ":"}
STABILITY_WORDS = {0: "stable", 1: "unstable", -1: "stability not known"}
"""By the sign of the number of perturbations that grow."""


def plot_continuation(found: Continuation, path: PathLike | None = None) -> Figure:
    """Extreme values over the parameter: stable solutions as lines, unstable ones dashed, special points marked."""
    with style():
        figure, axes = canvas(1, 1, width=5.6, height=4.0)
        place = axes[0, 0]
        for number, branch in enumerate(found.branches):
            colour = COLOURS[number % len(COLOURS)]
            kinds = np.sign(branch.unstable)  # 0 stable, 1 unstable, -1 not known
            changes = np.flatnonzero(np.diff(kinds)) + 1
            for piece in np.split(np.arange(len(branch)), changes):
                joined = np.append(piece, min(piece[-1] + 1, len(branch) - 1))
                line = STABILITY_LINES[int(kinds[piece[0]])]
                place.plot(branch.parameters[joined], branch.extremes[joined], line, color=colour)
        for kind, marker in (("fold", "o"), ("branch point", "s"), ("Hopf point", "^")):
            points = [one for one in found.special if one.kind == kind]
            if points:
                at = [one.parameter for one in points], [one.extreme for one in points]
                place.plot(*at, marker, color="black", label=kind)
        seen = {int(kind) for branch in found.branches for kind in np.sign(branch.unstable)}
        for known in sorted(seen):
            place.plot([], [], STABILITY_LINES[known], color="#888888", label=STABILITY_WORDS[known])
        place.legend()
        place.set_xlabel(inline_equation(found.parameter))
        place.set_ylabel(f"extreme value of {inline_equation(found.problem.fields[0])}")
        figure.suptitle(found.problem.name or "Bifurcation diagram", fontsize=HEADING)
        return finished(figure, path)
