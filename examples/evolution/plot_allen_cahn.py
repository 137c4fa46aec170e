r"""
Phases that separate: Allen–Cahn
================================

:math:`u_t = 10^{-3}\, u_{xx} + 5\,(u - u^3)` drives :math:`u` to one of the two phases :math:`\pm 1` and leaves
thin walls between them. Periodic problems are solved with Fourier modes, which are added while walls get thinner.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_t = 1e-3*u_xx + 5*(u - u**3)",
    rp.SpaceTime(t=(0, 1), x=(-1, 1)),
    {"start": rp.On("t=0", "u = 0.6*cos(pi*x) + 0.4*sin(3*pi*x)"), "circle": rp.Periodic("x")},
)
solution = rp.solve(problem, tol=1e-3)
print(f"{solution.method}; estimated relative error {solution.estimate:.1e}")

x, t = np.linspace(-1, 1, 400), np.linspace(0, 1, 200)
u = solution(np.stack(np.meshgrid(t, x, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(len(t), len(x))

figure, axes = plt.subplots(figsize=(7, 3.8))
image = axes.pcolormesh(x, t, u, cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
axes.contour(x, t, u, levels=[0], colors="black", linewidths=1)
figure.colorbar(image, label="$u$")
axes.grid(False)
axes.set(xlabel="$x$", ylabel="$t$", title="two phases, and the walls between them (black)")
