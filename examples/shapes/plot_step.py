r"""
A backward step: flow that turns round
======================================

A channel becomes twice as wide, and behind the step the flow goes backwards. This is Gartling's problem (1990) at the
Reynolds number 800: a channel 30 heights long, stated without the part before the step. Newton's method takes inertia
in shares until it has all of it. The wall shear :math:`u_y` changes its sign where the flow separates and where it
reattaches; Gartling published 6.10 on the lower wall, 4.85 and 10.48 on the upper one.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
reynolds, length = (100, 8) if small else (800, 30)
problem = rp.Problem(
    {
        "momentum x": "u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    },
    rp.Box(x=(0, length), y=(-0.5, 0.5)),
    {
        "inflow": rp.On("x=0 where y > 0", ["u = 24*y*(0.5 - y)", "v = 0"]),
        "step": rp.On("x=0 where y < 0", ["u = 0", "v = 0"]),
        "walls": rp.On(("y=-0.5", "y=0.5"), ["u = 0", "v = 0"]),
        "outflow": rp.On(f"x={length}", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    },
    parameters={"nu": 1 / reynolds},
    fields=("u", "v", "p"),
)
solution = rp.solve(problem, tol=3e-2 if small else 1e-3)

sign_changes = {}
for wall in (-0.5, 0.5):
    x = np.linspace(0.1, length - 0.1, 300)
    signs = np.sign(solution.derivative("u_y", x=x, y=wall))
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    sign_changes[wall] = [
        brentq(lambda x, y=wall: float(solution.derivative("u_y", x=x, y=y)), x[k], x[k + 1]) for k in turns
    ]
listed = "; ".join(
    f"{name} {', '.join(f'{x:.3f}' for x in sign_changes[y])}" for name, y in (("lower", -0.5), ("upper", 0.5))
)
print(f"{solution.method}; error {solution.estimate:.1e}; sign changes of the shear: {listed}")

end = 0.5 * length
x, y = np.linspace(0, end, 361), np.linspace(-0.5, 0.5, 61)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
u, v = (part.reshape(61, 361) for part in solution(grid).T[:2])
figure, axes = plt.subplots(figsize=(9, 2.4), layout="constrained")
image = axes.pcolormesh(x, y, u, cmap="RdBu_r", vmin=-1.5, vmax=1.5, shading="gouraud")
stream = np.concatenate([np.zeros((1, 361)), np.cumsum(0.5 * (u[1:] + u[:-1]), axis=0) * (y[1] - y[0])])
levels = [-0.04, -0.02, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.505, 0.51]
axes.contour(x, y, stream, levels=levels, colors="black", linewidths=0.6, linestyles="solid")
for wall, found in sign_changes.items():
    axes.plot(found, [wall] * len(found), "o", color="black", markersize=4, clip_on=False)
figure.colorbar(image, label="$u$").outline.set_visible(False)
axes.grid(False)
axes.set(xlabel="$x$", ylabel="$y$", title="velocity along the channel, streamlines, ends of the eddies", xlim=(0, end))
