r"""
Two drums that sound alike
==========================

Can one hear the shape of a drum? No: the two polygons of Gordon, Webb and Wolpert (1992) have the same eigenvalues,

.. math:: -\Delta u = \lambda u, \quad u = 0 \text{ on the boundary,}

though no motion maps one to the other. The weak form on cells computes them with bounds; the signs of the factorisation
count that none is missing.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
KNOWN = np.array([2.53794399980, 3.65550971352, 5.17555935622, 6.53755744376, 7.24807786256])
polygons = [
    [(0, 0), (0, 2), (4, 6), (4, 4), (6, 4), (4, 2), (2, 2), (2, 0)],
    [(0, 2), (0, 4), (4, 4), (4, 6), (6, 4), (4, 2), (2, 2), (2, 0)],
]
figure, axes = plt.subplots(2, 3, figsize=(8, 5.4))
for row, corners in zip(axes, polygons, strict=True):
    drum = rp.Problem("-laplace(u) = lam*u", rp.Polygon(corners), {"boundary": "u = 0"}, eigenvalue="lam")
    tones = rp.eigen(drum, count=3, tol=1e-3 if small else 1e-6)
    off = np.abs(tones.values / KNOWN[:3] - 1).max()
    print(f"{tones.values.round(8)}, off by {off:.1e} at most; {tones.counted}")
    x, y = np.meshgrid(np.linspace(0, 6, 161), np.linspace(0, 6, 161))
    points = np.column_stack([x.ravel(), y.ravel()])
    inside = drum.domain.contains(points)
    for place, mode in zip(row, tones, strict=True):
        values = np.full(len(points), np.nan)
        values[inside] = mode(points[inside])
        place.pcolormesh(x, y, values.reshape(x.shape), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
        place.plot(*np.array([*corners, corners[0]]).T, color="black", linewidth=1)
        place.set(aspect="equal", title=rf"$\lambda = {mode.value:.6f}$")
        place.set_axis_off()
