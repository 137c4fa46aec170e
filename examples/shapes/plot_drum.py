r"""
A drum with twelve corners
==========================

:math:`-\Delta u = 1` on a polygon with twelve corners, some of them re-entrant, :math:`u = 0` on its rim. At each
corner the gradient may be infinite; poles that crowd there from outside, exponentially close to the corner, make
features that are harmonic inside and follow the singularity. By the maximum principle the error on the rim bounds
the error everywhere.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

rng = np.random.default_rng(5)
turn = (np.arange(12) + rng.uniform(-0.35, 0.35, 12)) * np.pi / 6
reach = rng.uniform(0.5, 1.0, 12)
corners = np.stack([reach * np.cos(turn), reach * np.sin(turn)], axis=1)
drum = rp.Polygon(corners)
problem = rp.Problem("-laplace(u) = 1", drum, {"boundary": "u = 0"})
solution = rp.solve(problem, tol=1e-4 if "RANNPDE_SMALL" in os.environ else 1e-7)
print(solution.report())

x = y = np.linspace(-1, 1, 300)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
values, inside = np.full(len(grid), np.nan), drum.contains(grid)
values[inside] = solution(grid[inside])
figure, axes = plt.subplots(figsize=(5.6, 5))
shown = axes.contourf(x, y, values.reshape(300, 300), levels=24, cmap="viridis")
closed = np.concatenate([corners, corners[:1]])
axes.plot(*closed.T, color="black", linewidth=1)
axes.set(aspect="equal", title=f"error below {solution.history.bound:.0e} everywhere")
axes.grid(False)
figure.colorbar(shown, ax=axes).outline.set_visible(False)
