r"""
Features that find a layer
==========================

A function with a layer of width 0.01 is hard for random features that are spread evenly. ``"adaptive"`` draws them
in passes: fit, measure how far the function goes before it changes its shape, place neurons there.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

x = np.linspace(-1, 1, 3000)
layer = np.tanh(100 * (x - 0.3)) + 0.3 * np.sin(4 * x)
even = rp.RandomFeatures.sample(width=200, law=rp.Uniform(20.0), activation="tanh", domain=rp.Interval(-1, 1), rng=0)
fits = {
    "spread evenly": (rp.fit(even, x, layer, penalty=0), "#D55E00"),
    "adaptive": (rp.fit("adaptive", x, layer, penalty=0, width=200, rng=0), "#0072B2"),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.5))
left.plot(x, layer, color="black")
left.set(xlabel="$x$", title="a function with a layer")
for name, (network, colour) in fits.items():
    gap = np.abs(network(x) - layer)
    print(f"{name}: largest error {gap.max():.1e}")
    right.semilogy(x, np.maximum(gap, 1e-16), color=colour, linewidth=0.9, label=name)
right.set(xlabel="$x$", title="error with 200 neurons", ylim=(1e-16, 3))
right.legend()
