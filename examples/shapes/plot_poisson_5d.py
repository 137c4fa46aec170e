r"""
Five dimensions without a grid
==============================

:math:`-\Delta u = f` on the cube :math:`(0, 1)^5`, with a Gaussian as its solution. A grid of 50 points a side
would have 300 million of them. Random features are learned from pass to pass: here they find that the solution
depends on one quadratic form only.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import rannpde as rp

names = [f"x{k}" for k in range(1, 6)]
square = " + ".join(f"({name} - 1/2)**2" for name in names)
bump = f"exp(-({square}))"
problem = rp.Problem(
    f"-laplace(u) = (10 - 4*({square}))*{bump}",
    rp.Box(x=[(0, 1)] * 5),
    {"faces": rp.On("boundary", f"u = {bump}")},
    exact={"u": bump},
)
solution = rp.solve(problem, tol=1e-6)
print(f"relative error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}, {solution.seconds:.1f} s")

axis = np.linspace(0, 1, 80)
grid = np.full((6400, 5), 0.5)
grid[:, [0, 3]] = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
found, wanted = solution(grid), problem.exact_solution(grid)[:, 0]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.7))
for ax, values, title, colours in (
    (axes[0], found, "$u$ on a slice", "viridis"),
    (axes[1], np.log10(np.abs(found - wanted) + 1e-17), r"$\log_{10}$ |error|", "magma"),
):
    image = ax.contourf(axis, axis, values.reshape(80, 80), levels=24, cmap=colours)
    figure.colorbar(image, ax=ax, ticks=MaxNLocator(6))
    ax.grid(False)
    ax.set(xlabel="$x_1$", ylabel="$x_4$", title=title, aspect="equal")
