r"""
A front with an edge: the porous medium
=======================================

Gas in a porous rock, :math:`u_t = (u^2)_{xx}`, spreads with an edge behind which nothing has arrived yet. Its
density must not become negative: the bound is declared, and the equation is stated as the divergence that it is.
Barenblatt's solution is known, so that the error can be drawn.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.zoo("porous_medium", radius=0.2)
print(problem.equations, problem.bounds)
solution = rp.solve(problem, tol=2e-2 if "RANNPDE_SMALL" in os.environ else 1e-3)
print(f"relative error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}")

x = np.linspace(0, 1, 600)
exact = problem.exact_solution
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for shade, t in zip(np.linspace(0, 0.85, 5), (0.1, 0.15, 0.25, 0.5, 1.1), strict=True):
    points = np.column_stack([np.full_like(x, t), x])
    left.plot(x, solution(points), color=plt.cm.viridis(shade), label=f"$t = {t}$")
    right.semilogy(x, np.abs(solution(points) - exact(points)[:, 0]) + 1e-12, color=plt.cm.viridis(shade))
left.set(xlabel="$x$", ylabel="$u$", title="the edge moves outwards")
left.legend()
right.set(xlabel="$x$", title="error: largest at the edge", ylabel="error of $u$", ylim=(1e-10, 1e-2))
