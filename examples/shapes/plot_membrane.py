r"""
A membrane over two hills
=========================

A membrane is held at the rim of a square and lies over an obstacle :math:`\psi`. Where it is free it is harmonic; where
it rests, the obstacle pushes:

.. math:: u \geq \psi, \qquad -\Delta u = \lambda \geq 0, \qquad \lambda (u - \psi) = 0 .

Which part rests is not known before. Newton's method for the complementarity conditions is the primal-dual active set
strategy; cells shrink towards the free boundary, across which the second derivatives jump.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

hills = "max(0.8 - 3*((x + 0.8)**2 + (y + 0.3)**2), 0.5 - 2*((x - 0.7)**2 + (y - 0.5)**2))"
membrane = rp.Problem(
    "laplace(u) = 0", rp.Box(x=(-2, 2), y=(-2, 2)), {"boundary": "u = 0", "interior": f"u >= {hills}"}
)
solution = rp.solve(membrane, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 5e-4)
print(f"{solution.method}, {solution.status}; estimate {solution.estimate:.1e}")

x, y = np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-2, 2, 201))
u = solution(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
psi = np.maximum(0.8 - 3 * ((x + 0.8) ** 2 + (y + 0.3) ** 2), 0.5 - 2 * ((x - 0.7) ** 2 + (y - 0.5) ** 2))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
image = left.pcolormesh(x, y, u, cmap="viridis", shading="gouraud")
left.contour(x, y, u - psi, levels=[2e-3], colors="white", linewidths=0.8)
figure.colorbar(image, ax=left, label="$u$; free boundary in white")
left.grid(False)
left.set(aspect="equal", xlabel="$x$", ylabel="$y$")
row = int(np.argmin(np.abs(y[:, 0] + 0.3)))
right.plot(x[row], u[row], label="membrane")
right.plot(x[row], np.maximum(psi[row], -0.1), linestyle="--", label="obstacle")
right.set(xlabel="$x$", title="cut along $y = -0.3$", ylim=(-0.1, 0.9))
right.legend()
