r"""
A compressible travelling wave: Navier–Stokes
=============================================

Gas in Lagrangian coordinates with a pressure that becomes singular when it is packed densely, :math:`v_t = u_x`,
:math:`u_t + (\varepsilon/(v-1)^\gamma)_x = \mu\,(u_x/v)_x`: the second experiment of the paper, here solved from
its equations rather than fitted.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.zoo("navier_stokes_lagrangian")
solution = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-5)
print(solution.errors(), f"estimated {solution.estimate:.1e}")

x = np.linspace(-5, 5, 700)
exact = problem.exact_solution
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
for shade, t in zip((0.1, 0.45, 0.8), (0.0, 0.5, 1.0), strict=True):
    points = np.column_stack([np.full_like(x, t), x])
    for ax, computed, wanted in zip(axes, solution(points).T, exact(points).T, strict=True):
        ax.plot(x, computed, color=plt.cm.viridis(shade), label=f"$t = {t}$")
        ax.plot(x, wanted, "k:", linewidth=1)
axes[0].set(xlabel="$x$", ylabel="$v$", title="specific volume (dotted: exact)")
axes[1].set(xlabel="$x$", ylabel="$u$", title="velocity")
axes[0].legend()
