r"""
Sound in a flower: Helmholtz on a curved domain
===============================================

:math:`\Delta u + k^2 u = 0` inside a closed curve that is given by its formula and stays what it is: no polygon
takes its place. A plane wave is prescribed on the rim, so that the error is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

flower = rp.Curve("(1 + 0.25*cos(5*s))*cos(s)", "(1 + 0.25*cos(5*s))*sin(s)", names=("x", "y"), name="rim")
problem = rp.Problem(
    "laplace(u) + k**2*u = 0",
    flower,
    {"rim": rp.On("rim", "u = cos(k*(0.6*x + 0.8*y)) + sin(k*x)")},
    parameters={"k": 12.0},
    exact={"u": "cos(k*(0.6*x + 0.8*y)) + sin(k*x)"},
)
solution = rp.solve(problem, tol=1e-2)
print(f"relative error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}")

axis = np.linspace(-1.3, 1.3, 260)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
u, inside = np.full(len(grid), np.nan), flower.contains(grid)
u[inside] = solution(grid[inside])
s = np.linspace(0, 2 * np.pi, 600)
figure, axes = plt.subplots(figsize=(5.2, 4.4))
image = axes.pcolormesh(axis, axis, u.reshape(260, 260), cmap="RdBu_r", vmin=-2, vmax=2, shading="auto")
radius = 1 + 0.25 * np.cos(5 * s)
axes.plot(radius * np.cos(s), radius * np.sin(s), color="black", linewidth=1.5)
figure.colorbar(image, label="$u$")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title=r"$\Delta u + k^2 u = 0$, $k = 12$")
