r"""
Stripes from nothing: Turing's instability
==========================================

Two substances react and diffuse; the mixture at rest, :math:`u = a + b,\ v = b/(a+b)^2`, is stable while they diffuse
alike. Where the second spreads much faster, patterns of one wave length grow out of noise (Turing, 1952; Schnakenberg's
reaction). ``stability`` finds the rates of growth, with bounds; the curve is the dispersion relation.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp
from rannpde.pde.spectrum.stability import stability

a, b, ratio, strength = 0.1, 0.9, 20.0, 200.0
mixture = rp.Problem(
    ["u_xx + g*(a - u + u**2*v) = 0", "q*v_xx + g*(b - u**2*v) = 0"],
    rp.Interval(0, 1),
    {"boundary": ("dn(u) = 0", "dn(v) = 0")},
    parameters={"a": a, "b": b, "q": ratio, "g": strength},
    exact={"u": "1.0", "v": "0.9"},
)
rates = stability(mixture, mixture.exact_solution, 4 if "RANNPDE_SMALL" in os.environ else 8)
print(f"{int((np.real(rates.values) > 0).sum())} modes grow, the fastest at {np.real(rates.values[0]):.6f}")
jacobian = strength * np.array([[-1 + 2 * 0.9, 1.0], [-2 * 0.9, -1.0]])
waves = np.linspace(0, 10, 300)
curve = [np.linalg.eigvals(jacobian - np.diag([1, ratio]) * (np.pi * n) ** 2).real.max() for n in waves]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
x = np.linspace(0, 1, 300)[:, None]
for mode in rates.modes[:3]:
    shape = np.real(mode(x))[:, 0]
    turns = int((np.diff(np.sign(shape)) != 0).sum())
    left.plot(x[:, 0], shape, label=f"{turns} half waves, rate {np.real(mode.value):.2f}")
    right.plot(turns, np.real(mode.value), "o")
right.plot(waves, curve, color="grey", zorder=0)
right.axhline(0, color="black", linewidth=0.8)
left.set(xlabel="$x$", ylabel="perturbation of $u$")
figure.legend(loc="outside lower center", ncols=3)
right.set(xlabel="half waves", ylabel="rate of growth", ylim=(-60, 70))
