r"""
A crack in a plate
==================

A slit of no width runs from the middle of a square to its right side. Its lips are insulated. Below it the right side
is held at -1, above it at 1, and the potential goes round the end of the crack, where it is like
:math:`\sqrt{r}\cos(\theta/2)` and its gradient is infinite. Cells shrink geometrically towards that point. An
equilibrated flux bounds the energy of the error, without any unknown constant.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "laplace(u) = 0",
    rp.Box(x=(-1, 1), y=(-1, 1)),
    {
        "crack": rp.On("slit (0, 0) to (1, 0)", "dn(u) = 0"),
        "above": rp.On("x=1 where y > 0", "u = 1"),
        "below": rp.On("x=1 where y < 0", "u = -1"),
        "rest": rp.On("boundary except x=1", "dn(u) = 0"),
    },
)
solution = rp.solve(problem, tol=1e-3 if "RANNPDE_SMALL" in os.environ else 1e-6)
radius, angle = 0.2, (np.arange(400) + 0.5) * 2 * np.pi / 400
circle = solution(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
intensity = 2 * np.mean(circle * np.cos(angle / 2)) / np.sqrt(radius)
print(f"{solution.method}, {solution.status}; factor of the root: {intensity:.6f}")
print(f"energy norm of the error at most {solution.history.bound:.1e} of that of the solution")

x, y = np.meshgrid(np.linspace(-1, 1, 240), np.linspace(-1, 1, 240))
figure, axes = plt.subplots(figsize=(5.6, 4.6))
values = solution(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
image = axes.contourf(x, y, values, levels=np.linspace(-1, 1, 25), cmap="RdBu_r", extend="both")
for lower, upper in solution.function.boxes.transpose(0, 2, 1):
    axes.add_patch(plt.Rectangle(lower, *(upper - lower), fill=False, edgecolor="0.3", linewidth=0.4, alpha=0.6))
axes.plot([0, 1], [0, 0], color="black", linewidth=2)
figure.colorbar(image, ax=axes, label="$u$")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="u round the end of a crack, and the cells")
