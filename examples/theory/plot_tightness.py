r"""
How tight is the bound?
=======================

Theorem 1 bounds the error of that network by a constant over :math:`\sqrt{N}`. The exact variance can be computed,
so that one sees how much the bound gives away in each dimension, and how much the best possible law of the weights
would gain.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from rannpde.domains import SpaceTime
from rannpde.network.laws import HeavyTailed
from rannpde.theory import GaussianMixture, estimator, growth, theorem_bound

dims = (1,) if "RANNPDE_SMALL" in os.environ else (1, 2, 3, 4, 5)
exact, bound = [], []
for d in dims:
    domain = SpaceTime(t=(0, 1), x=[(-1, 1)] * d)
    choice = estimator(GaussianMixture.gaussian(d + 1), HeavyTailed(0.75, d / 2 + 0.25), activation="tanh")
    exact.append(float(choice.variance(domain)))
    bound.append(theorem_bound(choice, domain).corrected)
    print(f"d = {d}: exact variance {exact[-1]:.3g}, bound {bound[-1]:.3g}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6))
left.semilogy(dims, bound, "s-", color="#D55E00", label="the theorem's bound")
left.semilogy(dims, exact, "o-", color="#0072B2", label="exact")
left.set(xlabel="dimension $d$ of space", title=r"$N \cdot$ mean square error", xticks=dims)
left.legend()
many = np.arange(1, 51, 7)
grown = [growth(int(d), "tanh") for d in many]
right.semilogy(many, np.exp([one.moment for one in grown]), color="#0072B2", label=r"under $\pi$")
right.semilogy(many, np.exp([one.least for one in grown]), color="#009E73", label="best law")
right.set(xlabel="dimension $d$ of space", title="second moment: slow growth")
right.legend()
