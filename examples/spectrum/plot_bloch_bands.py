r"""
Bands of a crystal
==================

Electrons in a periodic potential have waves :math:`u(x + L) = e^{i\theta} u(x)` (Bloch). Over the phase θ their
energies form bands with gaps between them:

.. math:: -u'' + V(x)\,u = E\,u, \quad V(x) = 2q \cos 2x .

At θ = 0 and π these are the characteristic values of Mathieu's equation.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import mathieu_a, mathieu_b

import rannpde as rp

crystal = rp.Problem(
    "-u_xx + 2*q*cos(2*x)*u = E*u", rp.Interval(0, np.pi), {"x": "periodic"}, parameters={"q": 1.5}, eigenvalue="E"
)
phases = np.linspace(0, np.pi, 5 if "RANNPDE_SMALL" in os.environ else 25)
bands = np.array([rp.eigen(crystal, count=4, phase={"x": theta}, tol=1e-9).values.real for theta in phases])
print("largest difference from Mathieu's values:", abs(bands[0] - [mathieu_a(0, 1.5), mathieu_b(2, 1.5),
      mathieu_a(2, 1.5), mathieu_b(4, 1.5)]).max())  # fmt: skip
figure, axes = plt.subplots(figsize=(5, 3.8))
axes.plot(phases / np.pi, bands)
for lower, upper in zip(bands.T[:-1], bands.T[1:], strict=True):
    if upper.min() > lower.max():
        axes.axhspan(lower.max(), upper.min(), color="#dddddd")
axes.set(xlabel=r"phase $\theta/\pi$", ylabel="energy $E$", title="bands, and gaps in grey")
