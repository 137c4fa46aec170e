"""Draw the figures of the paper: each from what the library computes when this runs (about two minutes).

python paper/figures/make.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp
from rannpde.plotting.style import COLOURS, MARKERS, style

FOLDER = Path(__file__).parent
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9)
PROBLEMS = ("advection", "burgers", "heat", "korteweg_de_vries", "wave", "nonlinear_poisson")


def solved() -> None:
    """A solution in time, and one on a shape."""
    burgers = rp.Problem(
        "u_t + u*u_x = nu*u_xx",
        rp.SpaceTime(t=(0, 1), x=(-1, 1)),
        {"start": rp.On("t=0", "u = -sin(pi*x)"), "walls": rp.On("boundary", "u = 0")},
        parameters={"nu": 0.01 / np.pi},
    )
    plate = rp.Box(x=(0, 2), y=(0, 1)) - rp.Ball((0.7, 0.5), 0.25, names=("x", "y"), name="pillar")
    heat = rp.Problem(
        "laplace(u) = 0",
        plate,
        {"pillar": rp.On("pillar", "u = 1"), "walls": rp.On("boundary except pillar", "dn(u) = -u")},
    )
    first, second = rp.solve(burgers, tol=1e-8), rp.solve(heat, tol=1e-4)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.1), width_ratios=(1, 1.15))
    x = np.linspace(-1, 1, 801)
    for t in np.linspace(0, 1, 7):
        left.plot(x, first(np.column_stack([np.full_like(x, t), x])), color=plt.cm.plasma(0.85 * t))
    left.set(xlabel="$x$", ylabel="$u$", title=rf"Burgers, $\nu = 0.01/\pi$, estimated error {first.estimate:.0e}")
    across, up = np.linspace(0.001, 1.999, 240), np.linspace(0.001, 0.999, 120)
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    inside, u = plate.contains(grid), np.full(len(grid), np.nan)
    u[inside] = second(grid[inside])
    image = right.contourf(across, up, u.reshape(120, 240), levels=24, cmap="viridis")
    right.add_patch(plt.Circle((0.7, 0.5), 0.25, facecolor="white", edgecolor="black"))
    right.grid(visible=False)
    title = rf"$\Delta u = 0$ round a pillar, estimated error {second.estimate:.0e}"
    right.set(aspect="equal", xlabel="$x$", title=title)
    figure.colorbar(image, ax=right, shrink=0.8)
    figure.savefig(FOLDER / "solved.png", dpi=200)


def honest() -> None:
    """Estimates against true errors over problems with exact solutions."""
    figure, axes = plt.subplots(figsize=(5.2, 4))
    for number, name in enumerate(PROBLEMS):
        found = [rp.solve(rp.zoo(name), tol=tol) for tol in TOLERANCES]
        errors = [max(one.errors().values()) for one in found]
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "linestyle": "none"}
        axes.loglog(errors, [one.estimate for one in found], label=name.replace("_", " "), **look)
    ends = np.array([1e-14, 1e-2])
    axes.loglog(ends, ends, color="black", linewidth=1)
    axes.fill_between(ends, ends / 10, 10 * ends, color="#dddddd", zorder=0)
    axes.set(xlabel="true relative $L^2$ error", ylabel="estimate", xlim=ends, ylim=ends, title="band: a factor of 10")
    axes.legend()
    figure.savefig(FOLDER / "estimates.png", dpi=200)


if __name__ == "__main__":
    with style():
        solved()
        honest()
