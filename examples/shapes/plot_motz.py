r"""
Where a condition changes: Motz' problem
========================================

On the side :math:`y = 0` of a box the condition :math:`u = 0` turns into :math:`\partial_n u = 0` at the origin, and
the gradient of the harmonic function :math:`u = \sum_k a_k r^{k+1/2} \cos((k + \frac{1}{2})\theta)` is infinite
there. The leading coefficient is known, :math:`a_0 = 401.1624537452`. Least squares of the strong form is off by over
a tenth; the weak form is not.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "laplace(u) = 0",
    rp.Box(x=(-1, 1), y=(0, 1)),
    {
        "cold": rp.On("y=0 where x < 0", "u = 0"),
        "floor": rp.On("y=0 where x > 0", "dn(u) = 0"),
        "hot": rp.On("x=1", "u = 500"),
        "rest": rp.On(("x=-1", "y=1"), "dn(u) = 0"),
    },
)
solution = rp.solve(problem, tol=1e-4 if "RANNPDE_SMALL" in os.environ else 1e-8, method="weak")
angle = (np.arange(400) + 0.5) * np.pi / 400
circle = solution(0.3 * np.column_stack([np.cos(angle), np.sin(angle)]))
leading = 2 * np.mean(circle * np.cos(angle / 2)) / np.sqrt(0.3)
print(f"{solution.method}, {solution.status}; a_0 = {leading:.8f}, off by {abs(leading / 401.1624537452 - 1):.1e}")

x, y = np.meshgrid(np.linspace(-1, 1, 241), np.linspace(0, 1, 121))
figure, axes = plt.subplots(figsize=(8, 3.6))
image = axes.contourf(x, y, solution(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape), levels=25, cmap="magma")
for lower, upper in solution.function.boxes.transpose(0, 2, 1):
    axes.add_patch(plt.Rectangle(lower, *(upper - lower), fill=False, edgecolor="white", linewidth=0.4, alpha=0.7))
figure.colorbar(image, ax=axes, label="$u$")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="u and the cells, which shrink towards the origin")
