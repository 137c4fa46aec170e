r"""
A wire in an insulator: a coefficient that jumps
================================================

:math:`\nabla\cdot(k\,\nabla u) = 0` with :math:`k = 1000` in a round wire and 1 around it, in a field from left to
right. Cells end at the circle, where the flux is continuous and the slope is not.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "div(where(x**2 + y**2 < 0.16, k, 1)*grad(u)) = 0",
    rp.Box(x=(-1, 1), y=(-1, 1)),
    {"x=-1": "u = -1", "x=1": "u = 1", "y=-1": "dn(u) = 0", "y=1": "dn(u) = 0"},
    parameters={"k": 1000},
)
solution = rp.solve(problem, tol=1e-3 if "RANNPDE_SMALL" in os.environ else 1e-8)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

axis = np.linspace(-1, 1, 161)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
potential = solution(grid).reshape(161, 161)
line = np.column_stack([axis, 0 * axis])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9))
left.contourf(axis, axis, potential, levels=np.linspace(-1, 1, 21), cmap="RdBu_r")
left.add_patch(plt.Circle((0, 0), 0.4, fill=False, edgecolor="black"))
left.set(title="potential", xlabel="$x$", ylabel="$y$", aspect="equal")
right.plot(axis, solution(line), color="#0072B2", label="$u$")
right.plot(axis, solution.derivative(line, (1, 0)), color="#D55E00", label="$u_x$")
right.set(title="along $y = 0$", xlabel="$x$")
right.legend()
left.grid(False)
