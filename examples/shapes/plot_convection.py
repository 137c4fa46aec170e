r"""
Natural convection: a square heated from the side
=================================================

Warm fluid rises. Momentum with buoyancy :math:`Ra\,Pr\,T`, mass and the transport of heat are stated as four plain
equations; velocity, pressure and temperature are found together. The heat through a wall, Nusselt's number, comes from
the weak residual, with a bound. De Vahl Davis (1983) published 4.519 for :math:`Ra = 10^5`, a result of extrapolation.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
problem = rp.Problem(
    {
        "momentum x": "u*u_x + v*u_y + p_x = Pr*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = Pr*laplace(v) + Ra*Pr*T",
        "mass": "u_x + v_y = 0",
        "heat": "u*T_x + v*T_y = laplace(T)",
    },
    rp.Box(x=(0, 1), y=(0, 1)),
    {
        "walls": rp.On("boundary", ["u = 0", "v = 0"]),
        "hot": rp.On("x=0", "T = 1"),
        "cold": rp.On("x=1", "T = 0"),
        "insulated": rp.On(("y=0", "y=1"), "dn(T) = 0"),
    },
    parameters={"Ra": 1e3 if small else 1e5, "Pr": 0.71},
    fields=("u", "v", "p", "T"),
)
solution = rp.solve(problem, tol=1e-2 if small else 1e-3)
print(f"{solution.method}; error {solution.estimate:.1e}; Nusselt's number {solution.integral('dn(T)', on='x=0')}")

axis = np.linspace(0, 1, 121)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
u, v, _, warmth = (part.reshape(121, 121) for part in solution(grid).T)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9))
heat = left.contourf(axis, axis, warmth, levels=np.linspace(0, 1, 21), cmap="inferno")
left.set(title="temperature", xlabel="$x$", ylabel="$y$", aspect="equal")
speed = right.pcolormesh(axis, axis, np.hypot(u, v), cmap="viridis", shading="gouraud")
right.streamplot(axis, axis, u, v, color="white", linewidth=0.7, arrowsize=0.7, density=1.2)
right.set(title="speed and streamlines", xlabel="$x$", aspect="equal", xlim=(0, 1), ylim=(0, 1))
for ax, shown, ticks in ((left, heat, [0, 0.5, 1]), (right, speed, None)):
    ax.grid(False)
    figure.colorbar(shown, ax=ax, ticks=ticks).outline.set_visible(False)
