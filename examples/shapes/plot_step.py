r"""
A backward step: flow that turns round
======================================

The stationary Navier–Stokes equations, :math:`\nu = 0.01`, in a channel that becomes twice as wide. Behind the step the
flow goes backwards. The corner is found from the geometry, and cells shrink towards it.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
channel = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2))
problem = rp.Problem(
    {
        "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    },
    channel,
    {
        "inflow": rp.On("x=0", ["u = 4*y*(1 - y)", "v = 0"]),
        "outflow": rp.On("x=4", ["p = nu*u_x", "v_x = 0"]),
        "walls": rp.On("boundary except x=0, x=4", ["u = 0", "v = 0"]),
    },
    parameters={"nu": 0.1 if small else 0.01},
    fields=("u", "v", "p"),
)
solution = rp.solve(problem, tol=1e-1 if small else 1e-2)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

x, y = np.linspace(0.001, 3.999, 241), np.linspace(0.001, 1.999, 121)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
inside = channel.contains(grid)
u, v = np.full((2, len(grid)), np.nan)
u[inside], v[inside] = solution(grid[inside])[:, :2].T
u, v = u.reshape(121, 241), v.reshape(121, 241)
figure, axes = plt.subplots(figsize=(9, 4.2))
image = axes.pcolormesh(x, y, np.hypot(u, v), cmap="viridis", shading="gouraud")
axes.streamplot(x, y, u, v, color="white", linewidth=0.6, arrowsize=0.6, density=(2.2, 1.4))
axes.add_patch(plt.Rectangle((0, 1), 2, 1, facecolor="#dddddd", edgecolor="black"))
figure.colorbar(image, label="speed", shrink=0.8)
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="speed and streamlines", xlim=(0, 4), ylim=(0, 2))
