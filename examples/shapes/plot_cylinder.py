r"""
Drag and lift of a cylinder
===========================

The benchmark DFG 2D-1: the stationary Navier–Stokes equations in a channel with a cylinder, in metres. Velocities are
curls of random networks, so that :math:`u_x + v_y = 0` holds exactly, and forces come from the residual of momentum.
Published: drag 5.57953523384, lift 0.010618948146.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
channel = rp.Box(x=(0, 2.2), y=(0, 0.41)) - rp.Ball((0.2, 0.2), 0.05, name="cylinder")
problem = rp.Problem(
    {
        "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    },
    channel,
    {
        "inflow": rp.On("x=0", ["u = 1.2*y*(0.41 - y)/0.41**2", "v = 0"]),
        "walls": rp.On(("y=0", "y=0.41", "cylinder"), ["u = 0", "v = 0"]),
        "outflow": rp.On("x=2.2", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    },
    parameters={"nu": 1e-3},
    fields=("u", "v", "p"),
    outputs={
        "drag": rp.Output("500*(p*nx - nu*dn(u))", on="cylinder"),
        "lift": rp.Output("500*(p*ny - nu*dn(v))", on="cylinder"),
    },
)
solution = rp.solve(problem, tol=5e-2 if small else 1e-4)
print(f"{solution.method}; drag {solution.outputs['drag']}, lift {solution.outputs['lift']}")

x, y = np.linspace(0, 2.2, 441), np.linspace(0, 0.41, 83)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
inside = channel.contains(grid)
fields = np.full((len(grid), 3), np.nan)
fields[inside] = solution(grid[inside])
u, v, p = (part.reshape(83, 441) for part in fields.T)
figure, panels = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True, layout="constrained")
speed = panels[0].pcolormesh(x, y, np.hypot(u, v), cmap="viridis", shading="gouraud")
panels[0].streamplot(x, y, u, v, color="white", linewidth=0.5, arrowsize=0.5, density=(2.5, 0.9))
pressure = panels[1].contourf(x, y, p, levels=24, cmap="RdBu_r")
for panel, shown, title in zip(panels, (speed, pressure), ("speed and streamlines", "pressure"), strict=True):
    panel.add_patch(plt.Circle((0.2, 0.2), 0.05, facecolor="#dddddd", edgecolor="black"))
    panel.set(title=title, ylabel="$y$", aspect="equal", xlim=(0, 2.2), ylim=(0, 0.41))
    panel.grid(False)
    figure.colorbar(shown, ax=panel, shrink=0.8, ticks=MaxNLocator(5)).outline.set_visible(False)
panels[1].set_xlabel("$x$")
