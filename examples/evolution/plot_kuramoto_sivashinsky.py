r"""
Order falls apart: Kuramoto–Sivashinsky
=======================================

:math:`u_t + u\, u_x + u_{xx} + u_{xxxx} = 0` models flame fronts. A gentle wave breaks into cells that split and
merge in a way that no one can predict for long; up to there, two independent computations agree.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

end = 30 if "RANNPDE_SMALL" in os.environ else 80  # a shorter time where the tests run it
problem = rp.Problem(
    "u_t + u*u_x + u_xx + u_xxxx = 0",
    rp.SpaceTime(t=(0, end), x=(0, 32 * np.pi)),
    {"start": rp.On("t=0", "u = cos(x/16)*(1 + sin(x/16))"), "ring": rp.Periodic("x")},
)
warnings.simplefilter("ignore", rp.ConvergenceWarning)
solution = rp.solve(problem, tol=1e-3, seconds=60)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

x, t = np.linspace(0, 32 * np.pi, 360), np.linspace(0, end, 300)
u = solution(np.stack(np.meshgrid(t, x, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(len(t), len(x))
figure, axes = plt.subplots(figsize=(7, 4.4))
image = axes.pcolormesh(x, t, u, cmap="RdBu_r", shading="gouraud", vmin=-3.2, vmax=3.2)
figure.colorbar(image, label="$u$")
axes.grid(False)
axes.set(xlabel="$x$", ylabel="$t$", title="a flame front breaks into cells")
