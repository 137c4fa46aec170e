r"""
Heat round discs
================

A cold plate with hot and warm holes: :math:`u_t = \Delta u`, and on every side :math:`\partial_n u = c - u` with the
temperature *c* beyond it. Data do not agree with the plate at the start, so that layers grow from the holes like
:math:`\sqrt{t}`. The weak form on cells is integrated by Radau IIA with steps that are intervals of a binary tree: few
factorisations serve all of them.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

hot, warm = [(-2.0, 2.0, 0.9), (2.2, -1.8, 0.8)], [(2.0, 2.1, 0.5), (-2.1, -2.0, 0.4), (0.0, 0.2, 0.5)]
plate = rp.Box(x=(-4, 4), y=(-4, 4))
names = tuple(f"disc{number}" for number in range(len(hot + warm)))
for name, (x, y, radius) in zip(names, hot + warm, strict=True):
    plate = plate - rp.Ball((x, y), radius, names=("x", "y"), name=name)
problem = rp.Problem(
    "u_t = laplace(u)",
    rp.SpaceTime(t=(0, 3), x=plate),
    {
        "start": rp.On("t=0", "u = 0"),
        "hot": rp.On(names[: len(hot)], "dn(u) = 5 - u"),
        "warm": rp.On(names[len(hot) :], "dn(u) = 1 - u"),
        "outside": rp.On("boundary except " + ", ".join(names), "dn(u) = 0.1 - u"),
    },
)
solution = rp.solve(problem, tol=2e-2 if "RANNPDE_SMALL" in os.environ else 1e-3)
print(f"{solution.method}, {solution.status}; estimate {solution.estimate:.1e}")

x, y = np.meshgrid(np.linspace(-4, 4, 160), np.linspace(-4, 4, 160))
points = np.column_stack([x.ravel(), y.ravel()])
inside = plate.level(points) < 0
figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
for axes, time in zip(panels, (0.1, 0.5, 3.0), strict=True):
    values = np.full(len(points), np.nan)
    values[inside] = solution(np.column_stack([np.full(inside.sum(), time), points[inside]]))
    image = axes.contourf(x, y, values.reshape(x.shape), levels=np.linspace(0, 4, 21), cmap="inferno", extend="both")
    axes.grid(False)
    axes.set(aspect="equal", title=f"t = {time}")
figure.colorbar(image, ax=panels, label="$u$")
