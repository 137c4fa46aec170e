r"""
A wave meets three obstacles
============================

A plane wave is scattered by three sound-soft discs. The scattered field is a combination of Hankel functions, which
satisfy Helmholtz' equation and radiate to infinity exactly: there is no artificial boundary, and a few hundred output
weights are found from the condition on the discs alone.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

k = 8.0 if "RANNPDE_SMALL" in os.environ else 30.0
obstacles = rp.Ball((0, 0), 0.4) | rp.Ball((1.2, 0.3), 0.3) | rp.Ball((0.3, -1.1), 0.5)
wave = rp.scatter(obstacles, k, angle=0.3, tol=1e-8)
print(f"{len(wave.weights)} features, error on the obstacles {wave.boundary_error:.1e}, {wave.seconds:.2f} s")

x, y = np.linspace(-1.5, 2.5, 300), np.linspace(-2.2, 1.5, 280)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
total = wave.total(grid).reshape(280, 300)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True)
left.pcolormesh(x, y, total.real, cmap="RdBu_r", vmin=-2, vmax=2, shading="gouraud")
left.set(title="the field at one time", aspect="equal")
right.pcolormesh(x, y, np.abs(total), cmap="viridis", vmin=0, vmax=2.2, shading="gouraud")
right.set(title="its amplitude", aspect="equal")
for axes in (left, right):
    axes.grid(False)
