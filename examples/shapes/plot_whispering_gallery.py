r"""
A whispering gallery
====================

Sound of wave number :math:`k` in an elliptic hall, :math:`\Delta u + k^2 u = 0`, driven from the wall with a pattern
that runs around it: the waves cling to the wall, as in the gallery of St Paul's. The features are plane waves of random
directions with exactly this wave number, so that only the wall is left to fit.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

k, around = (20.0, 17) if "RANNPDE_SMALL" in os.environ else (60.0, 54)
hall = rp.Ellipse((0, 0), (1.2, 1.0))
angle = np.arctan2


def driven(x, y):
    return np.cos(around * angle(y, x / 1.2))


problem = rp.Problem(f"laplace(u) + {k}**2*u = 0", hall, {"boundary": "u = g(x, y)"}, functions={"g": driven})
solution = rp.solve(problem, tol=1e-8)
print(solution.report())

x, y = np.linspace(-1.2, 1.2, 320), np.linspace(-1, 1, 280)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
values = np.full(len(grid), np.nan)
inside = hall.contains(grid)
values[inside] = solution(grid[inside])
figure, axes = plt.subplots(figsize=(6.4, 5))
limit = np.nanpercentile(np.abs(values), 99)
shown = axes.pcolormesh(x, y, values.reshape(280, 320), cmap="RdBu_r", vmin=-limit, vmax=limit, shading="gouraud")
axes.set(aspect="equal", title=f"k = {k:g}: {sum(solution.widths)} features, estimated error {solution.estimate:.0e}")
axes.grid(False)
figure.colorbar(shown, ax=axes).outline.set_visible(False)
