r"""
An unknown diffusion, with its band
===================================

Noisy temperatures on a plate, :math:`\nabla\cdot(a\, \nabla u) + 4 = 0`: where does it conduct well? The diffusion
:math:`a(x, y)` is known at the edge only. What is found comes with what it is worth.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

plate = rp.Box(x=(0, 1), y=(0, 1))
truth = "1 + exp(-30*(x - 0.35)**2 - 30*(y - 0.35)**2) + 0.7*exp(-40*(x - 0.7)**2 - 40*(y - 0.65)**2)"
edge = {"walls": rp.On("boundary", "u = 0")}
sensors = plate.sample(400, rng=0)
temperature = rp.solve(rp.Problem(f"div(({truth})*grad(u)) + 4 = 0", plate, edge), tol=1e-4)(sensors)
measured = temperature + 0.002 * np.random.default_rng(1).standard_normal(400)

problem = rp.Problem(
    "div(a*grad(u)) + 4 = 0",
    domain=plate,
    conditions=edge
    | {"known": rp.On("boundary", f"a = {truth}"), "sensors": rp.Data(sensors, measured, "u", noise=0.002)},
    unknown={"a": rp.UnknownFunction(of=("x", "y"), guess=1.0, bounds=(0, None))},
)
solution = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-3)
print(solution.functions["a"])

# %%
# The true diffusion, the one that was found, and its band, which is widest where the plate is warmest: there
# :math:`\nabla u = 0`, and no temperature depends on :math:`a`.

x = np.linspace(0, 1, 90)
grid = np.column_stack([np.tile(x, 90), np.repeat(x, 90)])
true = 1 + np.exp(-30 * ((grid - 0.35) ** 2).sum(1)) + 0.7 * np.exp(-40 * ((grid - [0.7, 0.65]) ** 2).sum(1))
lower, upper = solution.functions["a"].band(grid)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
panels = {"$a$, true": true, "$a$, found": solution.functions["a"](grid), r"$\pm$ of $a$, 95 %": (upper - lower) / 2}
for place, (title, values) in zip(axes, panels.items(), strict=True):
    limits = {"vmin": 1.0, "vmax": 2.05} if title.startswith("$a$") else {"cmap": "magma"}
    shown = place.pcolormesh(x, x, values.reshape(90, 90), shading="gouraud", **limits)
    place.set(title=title, xlabel="$x$", ylabel="$y$", aspect="equal")
    place.grid(False)
    figure.colorbar(shown, ax=place).outline.set_visible(False)
axes[1].plot(*sensors.T, ".", color="white", markersize=2)
