r"""
A million points in seconds
===========================

Noisy values of a rough function at a million points, fitted with 1,000 frequencies. The normal equations of Fourier
features are sums that a non-uniform fast Fourier transform takes: the design matrix of 16 GB is never made.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

count = 100_000 if "RANNPDE_SMALL" in os.environ else 1_000_000
rng = np.random.default_rng(0)
points = rng.uniform(-1, 1, (count, 2))


def truth(z):
    """Ripples round two centres."""
    first, second = (np.hypot(z[:, 0] - a, z[:, 1] - b) for a, b in ((-0.4, -0.3), (0.5, 0.4)))
    return np.cos(25 * first) * np.exp(-2 * first) + 0.7 * np.cos(35 * second) * np.exp(-3 * second)


values = truth(points) + 0.5 * rng.standard_normal(count)
features = rp.FourierFeatures.sample(width=1000, dim=2, scale=22.0, rng=0)
network = rp.fit(features, points, values, penalty=1e-6)
about = network.about
print(f"{count:,} points, solver {about['solver']}, {about['seconds']:.1f} s")

axis = np.linspace(-1, 1, 300)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True)
axes[0].scatter(*points[:20000].T, c=values[:20000], s=1, cmap="RdBu_r", vmin=-1.2, vmax=1.2)
for place, shown in ((axes[1], network(grid)), (axes[2], truth(grid))):
    image = place.pcolormesh(axis, axis, shown.reshape(300, 300), cmap="RdBu_r", vmin=-1.2, vmax=1.2, shading="gouraud")
for place, title in zip(axes, ("20,000 of the noisy points", "the fit", "the truth"), strict=True):
    place.grid(False)
    place.set(title=title, aspect="equal", xlabel="$x$", xlim=(-1, 1), ylim=(-1, 1))
axes[0].set_ylabel("$y$")
figure.colorbar(image, ax=axes)
