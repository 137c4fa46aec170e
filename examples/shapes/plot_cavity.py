r"""
Stirred by its lid: the cavity
==============================

The stationary Navier–Stokes equations in a square whose lid moves, at the Reynolds number 1,000. In two corners the lid
meets walls at rest: there the pressure is like :math:`1/r`, cells shrink towards both, and errors are those of the
velocity. Published: the least u on the vertical centre line is -0.3885698.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
warnings.filterwarnings("ignore", "conditions .* differ by 1 in the corner")  # as they do in this problem
problem = rp.Problem(
    {
        "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    },
    rp.Box(x=(0, 1), y=(0, 1)),
    {
        "lid": rp.On("y=1", ["u = 1", "v = 0"]),
        "walls": rp.On(("x=0", "x=1", "y=0"), ["u = 0", "v = 0"]),
        "level": rp.Data([[0.5, 0.5]], [0.0], "p"),
    },
    parameters={"nu": 0.01 if small else 0.001},
    fields=("u", "v", "p"),
)
solution = rp.solve(problem, tol=3e-2 if small else 1e-3)
line = np.stack([np.full(1001, 0.5), np.linspace(0, 1, 1001)], axis=1)
print(f"{solution.method}; error {solution.estimate:.1e}; least u on the centre line {solution(line)[:, 0].min():.5f}")

axis = np.linspace(0, 1, 121)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
u, v, p = (part.reshape(121, 121) for part in solution(grid).T)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9))
speed = left.pcolormesh(axis, axis, np.hypot(u, v), cmap="viridis", shading="gouraud")
left.streamplot(axis, axis, u, v, color="white", linewidth=0.7, arrowsize=0.7, density=1.4)
left.set(title="speed and streamlines", xlabel="$x$", ylabel="$y$", aspect="equal", xlim=(0, 1), ylim=(0, 1))
pressure = right.contourf(axis, axis, p, levels=np.linspace(-0.1, 0.1, 25), cmap="RdBu_r", extend="both")
right.set(title="pressure", xlabel="$x$", aspect="equal")
for ax, shown, ticks in ((left, speed, None), (right, pressure, [-0.1, -0.05, 0, 0.05, 0.1])):
    ax.grid(False)
    figure.colorbar(shown, ax=ax, ticks=ticks).outline.set_visible(False)
