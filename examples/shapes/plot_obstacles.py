r"""
Slow flow round obstacles
=========================

Stokes' equations :math:`-\Delta u + p_x = 0`, :math:`-\Delta v + p_y = 0`, :math:`u_x + v_y = 0` in a channel with
round pillars. Shapes are added and subtracted; every piece of the boundary has a name.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
pillars = {"first": (0.7, 0.42, 0.2), "second": (1.45, 0.62, 0.16)}
if small:
    pillars = {"first": (0.7, 0.42, 0.2)}
channel = rp.Box(x=(0, 2.2), y=(0, 1))
for name, (x, y, radius) in pillars.items():
    channel = channel - rp.Ball((x, y), radius, names=("x", "y"), name=name)
problem = rp.Problem(
    {"x": "-laplace(u) + p_x = 0", "y": "-laplace(v) + p_y = 0", "mass": "u_x + v_y = 0"},
    channel,
    {
        "in and out": rp.On(("x=0", "x=2.2"), "u = 4*y*(1 - y)"),
        "walls": rp.On("boundary except x=0, x=2.2", "u = 0"),
        "everywhere": rp.On("boundary", "v = 0"),
        "level": rp.Data([[0.1, 0.5]], [0.0], "p"),
    },
    fields=("u", "v", "p"),
)
solution = rp.solve(problem, tol=1e-1 if small else 1e-3)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

x, y = np.linspace(0.001, 2.199, 220), np.linspace(0.001, 0.999, 100)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
inside = channel.contains(grid)
u, v = np.full((2, len(grid)), np.nan)
u[inside], v[inside] = solution(grid[inside])[:, :2].T
u, v = u.reshape(100, 220), v.reshape(100, 220)
figure, axes = plt.subplots(figsize=(9, 4))
image = axes.pcolormesh(x, y, np.hypot(u, v), cmap="viridis", shading="gouraud")
axes.streamplot(x, y, u, v, color="white", linewidth=0.6, arrowsize=0.6, density=(2.2, 1.2))
for across, up, radius in pillars.values():
    axes.add_patch(plt.Circle((across, up), radius, facecolor="#dddddd", edgecolor="black"))
figure.colorbar(image, label="speed", shrink=0.8)
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="speed and streamlines", xlim=(0, 2.2), ylim=(0, 1))
