r"""
A cantilever that bends under its weight
========================================

The first tutorial of every finite-element library. A beam of length 1 and height 0.2 is clamped at the left; all other
sides are free, :math:`\sigma n = 0`. Written out, plane strain reads

.. math:: (\lambda + 2\mu) u_{xx} + \mu u_{yy} + (\lambda + \mu) v_{xy} = 0, \quad
          \mu v_{xx} + (\lambda + 2\mu) v_{yy} + (\lambda + \mu) u_{xy} = \varrho .

Mixed derivatives are split such that the tractions are the natural conditions; cells shrink towards the two corners of
the clamp, where stresses are infinite.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

body = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = rho"]
across_x = ["(lam+2*mu)*u_x + lam*v_y = 0", "mu*(u_y + v_x) = 0"]
across_y = ["mu*(u_y + v_x) = 0", "(lam+2*mu)*v_y + lam*u_x = 0"]
beam = rp.Problem(
    body,
    rp.Box(x=(0, 1), y=(0, 0.2)),
    {
        "clamp": rp.On("x=0", ["u = 0", "v = 0"]),
        "tip": rp.On("x=1", across_x),
        "long": rp.On(("y=0", "y=0.2"), across_y),
    },
    parameters={"lam": 1.25, "mu": 1.0, "rho": 0.016},
)
solution = rp.solve(beam, tol=1e-3 if "RANNPDE_SMALL" in os.environ else 1e-5, method="weak")
tip = solution(np.array([[1.0, 0.1]]))[0, 1]
print(f"{solution.method}, {solution.status}; the tip sinks by {-tip:.7f} (0.2246553 is known)")

x, y = np.meshgrid(np.linspace(0, 1, 161), np.linspace(0, 0.2, 41))
points = np.column_stack([x.ravel(), y.ravel()])
u, v = solution(points).T.reshape(2, *x.shape)
slopes = [solution.derivative(points, index).T.reshape(2, *x.shape) for index in ((1, 0), (0, 1))]
shear = slopes[1][0] + slopes[0][1]
pressure = [1.25 * (slopes[0][0] + slopes[1][1]) + 2 * slopes[k][k] for k in (0, 1)]
mises = np.sqrt(pressure[0] ** 2 - pressure[0] * pressure[1] + pressure[1] ** 2 + 3 * shear**2)
figure, axes = plt.subplots(figsize=(8, 3.2))
image = axes.pcolormesh(x + u, y + v, mises, cmap="viridis", shading="gouraud", vmax=float(np.quantile(mises, 0.995)))
axes.plot([0, 1, 1, 0, 0], [0, 0, 0.2, 0.2, 0], color="grey", linewidth=0.8, linestyle="--")
figure.colorbar(image, ax=axes, label="von Mises stress")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="deformed beam")
