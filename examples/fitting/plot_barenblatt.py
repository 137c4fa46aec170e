r"""
The paper's first experiment: a fit of Barenblatt's profile
===========================================================

:math:`N` Fourier features with frequencies :math:`N(0, 10^2)`, :math:`M = 10 N` points, half of them in the inner
box, ridge penalty :math:`10^{-5}`: the protocol of the paper. The profile has a kink at the edge of its support,
which is what the error shows.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

width = 512
domain = rp.SpaceTime(t=(0.1, 1.1), x=(0, 1))
exact = rp.zoo("porous_medium", radius=0.3).exact["u"]
points = rp.mixture([(0.5, domain), (0.5, domain.restrict(x=(0.2, 0.8)))], 10 * width, rng=0)
features = rp.FourierFeatures.sample(width=width, dim=2, scale=10.0, rng=0)
network = rp.fit(features, points, exact(points), penalty=1e-5)
error = rp.relative_l2(network, exact, domain)
print(f"relative L² error {error.value:.2e} ± {error.error:.0e}, solver {network.about['solver']}")

x, t = np.linspace(0, 1, 301), np.linspace(0.1, 1.1, 201)
grid = np.stack(np.meshgrid(t, x, indexing="ij"), axis=-1).reshape(-1, 2)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.7))
for time, colour in ((0.1, "#0072B2"), (0.3, "#D55E00"), (1.1, "#009E73")):
    at = np.column_stack([np.full_like(x, time), x])
    left.plot(x, network(at), color=colour, label=f"$t = {time}$")
    left.plot(x, exact(at), "k:", linewidth=1)
left.set(xlabel="$x$", ylabel="$u$", title="random network, and the exact profile (dotted)")
left.legend()
gap = np.log10(np.maximum(np.abs(network(grid) - exact(grid)), 1e-6)).reshape(201, 301)
image = right.pcolormesh(x, t, gap, cmap="magma", shading="gouraud")
right.grid(False)
figure.colorbar(image, label=r"$\log_{10}$ |error|")
right.set(xlabel="$x$", ylabel="$t$", title="largest at the moving edge")
