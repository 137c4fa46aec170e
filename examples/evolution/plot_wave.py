r"""
A drop in a box: the wave equation
==================================

:math:`u_{tt} = \Delta u` in a square with fixed walls, from a bump at rest. Second derivatives in time need nothing
special: two initial conditions instead of one.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_tt = laplace(u)",
    rp.SpaceTime(t=(0, 1.5), x=(0, 1), y=(0, 1)),
    {
        "start": rp.On("t=0", "u = exp(-60*((x - 0.35)**2 + (y - 0.4)**2))*sin(pi*x)*sin(pi*y)"),
        "at rest": rp.On("t=0", "u_t = 0"),
        "walls": rp.On("boundary", "u = 0"),
    },
)
solution = rp.solve(problem, tol=3e-2 if "RANNPDE_SMALL" in os.environ else 1e-4)
print(f"{solution.method}; estimated relative error {solution.estimate:.1e}")

axis = np.linspace(0, 1, 140)
figure, axes = plt.subplots(1, 4, figsize=(11, 3), sharey=True)
for place, t in zip(axes, (0.0, 0.3, 0.7, 1.5), strict=True):
    grid = np.stack(np.meshgrid([t], axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    u = solution(grid).reshape(140, 140).T
    image = place.pcolormesh(axis, axis, u, cmap="RdBu_r", vmin=-0.4, vmax=0.4, shading="gouraud")
    place.grid(False)
    place.set(aspect="equal", title=f"$t = {t}$", xlabel="$x$")
axes[0].set_ylabel("$y$")
figure.colorbar(image, ax=axes, label="$u$", extend="max")
