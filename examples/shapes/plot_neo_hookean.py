r"""
A block of rubber pulled by a half
==================================

A neo-Hookean body stores the energy :math:`\frac{\mu}{2} (|F|^2 - 2 - 2\log J) + \frac{\lambda}{2} (\log J)^2`, with
:math:`F = I + \nabla u` and :math:`J = \det F`. In equilibrium its stress has no divergence,

.. math:: \operatorname{div} P = 0, \qquad P = \mu (F - F^{-T}) + \lambda \log J \, F^{-T} .

The block is clamped at both ends; the long sides are free, :math:`P n = 0`. Newton's method on the weak form begins on
four cells, and follows the solution to meshes that shrink towards the four corners, where stresses are infinite.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

mu, lam = 1.0, 10.0
volume = "((1 + u_x)*(1 + v_y) - u_y*v_x)"
factor = f"(lam*log({volume}) - mu)/{volume}"
p, q = f"(mu*(1 + u_x) + {factor}*(1 + v_y))", f"(mu*u_y - {factor}*v_x)"
r, s = f"(mu*v_x - {factor}*u_y)", f"(mu*(1 + v_y) + {factor}*(1 + u_x))"
block = rp.Problem(
    [f"div({p}, {q}) = 0", f"div({r}, {s}) = 0"],
    rp.Box(x=(0, 1), y=(0, 1)),
    {
        "left": rp.On("x=0", ["u = 0", "v = 0"]),
        "right": rp.On("x=1", ["u = 0.5", "v = 0"]),
        "free": rp.On(("y=0", "y=1"), [f"{q} = 0", f"{s} = 0"]),
    },
    parameters={"mu": mu, "lam": lam},
)
solution = rp.solve(block, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-4)
neck = solution(np.array([[0.5, 1.0]]))[0, 1]
print(f"{solution.method}, {solution.status}; the middle of the free side moves in by {-neck:.6f} (0.172719 is known)")

x, y = np.meshgrid(np.linspace(0, 1, 121), np.linspace(0, 1, 121))
points = np.column_stack([x.ravel(), y.ravel()])
u, v = solution(points).T.reshape(2, *x.shape)
across = solution.derivative(points, (1, 0)).T.reshape(2, *x.shape)
stretch = np.hypot(1 + across[0], across[1])
figure, axes = plt.subplots(figsize=(7, 4))
image = axes.pcolormesh(
    x + u, y + v, stretch, cmap="viridis", shading="gouraud", vmax=float(np.quantile(stretch, 0.995))
)
for k in range(0, 121, 12):
    axes.plot((x + u)[k], (y + v)[k], color="white", linewidth=0.4)
    axes.plot((x + u)[:, k], (y + v)[:, k], color="white", linewidth=0.4)
axes.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color="grey", linewidth=0.8, linestyle="--")
figure.colorbar(image, ax=axes, label="stretch of lines along $x$")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="deformed block")
