r"""
A checkerboard of contrast ten thousand
=======================================

Two materials in a checkerboard, one ten thousand times as conductive as the other. Where the interfaces cross, the
potential is like :math:`r^{0.013}`: no mesh that ends at the rounding of coordinates resolves it. The rings of cells
round the crossing are similar to each other, though, so that the response of infinitely many of them is found by
doubling, and Kellogg's exact solution is met to many digits.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

contrast, at = 1e4, (0.1, -0.2)
power = 4 / np.pi * np.arctan(contrast**-0.5)


def kellogg(x, y):
    """:math:`r^\\lambda \\Phi(\\theta)` from the crossing."""
    x, y = x - at[0], y - at[1]
    angle, radius = np.mod(np.arctan2(y, x), 2 * np.pi), np.hypot(x, y)
    sector = np.floor(angle / (np.pi / 2))
    own = power * (angle - (sector + 0.5) * np.pi / 2)
    inside = np.where(sector % 2 == 0, np.cos(own), -np.sin(own) / np.tan(power * np.pi / 4))
    return radius**power * np.where(sector < 2, 1.0, -1.0) * inside


problem = rp.Problem(
    "div(where((x - a)*(y - b) > 0, k, 1)*grad(u)) = 0",
    rp.Box(x=(-1, 1), y=(-1, 1)),
    {"rim": rp.On("boundary", "u = kellogg(x, y)")},
    parameters={"k": contrast, "a": at[0], "b": at[1]},
    functions={"kellogg": kellogg},
    exact={"u": lambda points: kellogg(points[:, 0], points[:, 1])},
)
solution = rp.solve(problem, tol=1e-3 if "RANNPDE_SMALL" in os.environ else 1e-6)
print(f"{solution.method}, {solution.status}; error {solution.errors()['u']:.1e}, estimate {solution.estimate:.1e}")

x, y = np.meshgrid(np.linspace(-1, 1, 240), np.linspace(-1, 1, 240))
figure, axes = plt.subplots(figsize=(5.6, 4.6))
values = solution(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
image = axes.contourf(x, y, values, levels=25, cmap="RdBu_r")
for lower, upper in solution.function.boxes.transpose(0, 2, 1):
    axes.add_patch(plt.Rectangle(lower, *(upper - lower), fill=False, edgecolor="0.3", linewidth=0.4, alpha=0.6))
figure.colorbar(image, ax=axes, label="$u$")
axes.grid(False)
axes.set(
    aspect="equal", xticks=np.linspace(-1, 1, 5), xlabel="$x$", ylabel="$y$", title="u in a checkerboard, and the cells"
)
