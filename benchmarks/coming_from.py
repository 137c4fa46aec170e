"""The picture of docs/coming_from.md: its blocks run, and each solution is drawn (python -m benchmarks.coming_from)."""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rannpde.domains import SpaceTime
from rannpde.domains.export.simplices import filled
from rannpde.plotting.style import style

DOCS = Path(__file__).parents[1] / "docs"
PROBLEMS = {
    "beam": "Euler beam", "helmholtz": "Helmholtz", "corner": "L-shape", "inverse": "unknown coefficient",
    "line": "Poisson, a line", "packet": "Schrödinger", "diffusion": "varying diffusion", "string": "Klein–Gordon",
    "poisson": "Poisson", "deflection": "membrane", "nonlinear": "non-linear Poisson", "elastic": "elasticity",
    "channel": "channel", "pulse": "KdV–Burgers", "star": "Lane–Emden",
}  # fmt: skip


def solutions() -> dict[str, Any]:
    """What the blocks of the page define."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "coming_from.md").read_text(encoding="utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "page.py"
        script.write_text("\n".join(blocks), encoding="utf-8")
        return runpy.run_path(str(script))


def draw(figure: Figure, axes: Any, solution: Any) -> None:
    """One panel: a line, lines at four times, or a map; a displacement as the shape that it makes."""
    domain = solution.stated.domain
    if domain.dim == 1 or isinstance(domain, SpaceTime):
        x = np.linspace(*domain.bounds[-1], 400)
        for time in np.linspace(*domain.bounds[0], 4) if domain.dim == 2 else [None]:
            values = solution(x) if time is None else solution(time, x).reshape(len(x), -1)[:, 0]
            axes.plot(x, values, label=None if time is None else f"$t={time:.2g}$")
        if domain.dim == 2:
            axes.legend()
        axes.set_xlabel(f"${domain.names[-1]}$")
        return
    points, triangles = filled(domain, 80)
    values = solution(points)
    if values.ndim == 2:
        points, values = points + 0.1 * values / np.abs(values).max(), np.linalg.norm(values, axis=1)
    image = axes.tripcolor(*points.T, triangles, values, shading="gouraud", rasterized=True)
    axes.set_aspect("equal")
    figure.colorbar(image, ax=axes)


def main() -> None:
    """Draw the page's picture."""
    known = solutions()
    with style():
        figure = Figure(figsize=(11, 13), layout="constrained")
        panels = figure.subplots(5, 3).flat
        for number, ((name, title), axes) in enumerate(zip(PROBLEMS.items(), panels, strict=True), start=1):
            draw(figure, axes, known[name])
            axes.set_title(f"{number}. {title}", fontsize=10)
        figure.savefig(DOCS / "images" / "coming_from.png", dpi=70)


if __name__ == "__main__":
    main()
