r"""
A corner that pricks: the L-shape
=================================

At the re-entrant corner of an L the gradient of a harmonic function is infinite: :math:`u = r^{2/3} \sin(2\theta/3)`.
Meshes are refined there by hand; here cells shrink towards the corner by themselves.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import rannpde as rp


def singular(x, y):
    """Zero on both sides of the corner."""
    angle = np.mod(np.arctan2(y, x), 2 * np.pi)
    return np.hypot(x, y) ** (2 / 3) * np.sin(2 * angle / 3)


ell = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
problem = rp.Problem(
    "laplace(u) = 0",
    ell,
    {"corner": rp.On(("x=0", "y=0"), "u = 0"), "rest": rp.On("boundary except x=0, y=0", "u = g(x, y)")},
    functions={"g": singular},
)
solution = rp.solve(problem, tol=1e-5 if "RANNPDE_SMALL" in os.environ else 1e-6)
print(f"{solution.method}, {solution.status}; estimated relative error {solution.estimate:.1e}")

axis = np.linspace(-0.999, 0.999, 200)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
inside = ell.contains(grid)
shown = np.full((2, len(grid)), np.nan)
shown[0, inside] = solution(grid[inside])
shown[1, inside] = np.log10(np.abs(shown[0, inside] - singular(*grid[inside].T)) + 1e-16)
figure, axes = plt.subplots(1, 2, figsize=(9, 4))
styles = (("$u$", "viridis"), (r"$\log_{10}$ |error|", "magma"))
for ax, values, (name, colours) in zip(axes, shown, styles, strict=True):
    image = ax.contourf(axis, axis, values.reshape(200, 200), levels=24, cmap=colours)
    figure.colorbar(image, ax=ax, shrink=0.8, ticks=MaxNLocator(6))
    ax.plot([-1, 0, 0, 1, 1, -1, -1], [-1, -1, 0, 0, 1, 1, -1], color="black", linewidth=1)
    ax.grid(False)
    ax.set(aspect="equal", title=name, xlabel="$x$", ylabel="$y$")
