r"""
An uncertain rod: bands, Sobol indices, a posterior
===================================================

.. math:: u_t = k u_{xx} + q, \quad u(0, x) = \sin 2 \pi x

Diffusivity and heating are uncertain. The family of their values gives mean and band of the temperature without a
single further solve, and which of the two matters where. Measurements with heavy-tailed noise then narrow them down.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import rannpde as rp

problem = rp.Problem(
    "u_t = k*u_xx + q",
    rp.SpaceTime(t=(0, 0.5), x=(0, 1)),
    {"t=0": "u = sin(2*pi*x)", "boundary": "u = 0"},
    parameters={"k": rp.Range(0.05, 0.2, scale="log"), "q": rp.Range(0, 1)},
)
family = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-4)
x = np.linspace(0, 1, 101)
line = np.column_stack([np.full(101, 0.5), x])
spread = family.propagate({"k": stats.uniform(0.06, 0.1), "q": stats.beta(2, 5)}, points=line)
lower, upper = spread.band(0.9)

rng = np.random.default_rng(1)
noise = stats.t(3, scale=0.01)
measured = family(line[10::10], k=0.09, q=0.35) + noise.rvs(len(line[10::10]), random_state=rng)
posterior = family.posterior(measured, noise, points=line[10::10])
print(posterior.report())

figure, (first, second, third) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
first.fill_between(x, lower, upper, color="#0072B2", alpha=0.25, label="90 % band")
first.plot(x, spread.mean, color="#0072B2", label="mean")
first.plot(x[10::10], measured, "k.", label="measured")
first.set(xlabel="$x$", ylabel="$u(0.5, x)$", title="temperature")
first.legend()
inner = slice(1, -1)  # at the ends nothing varies
second.plot(x[inner], spread.first["k"][inner], color="#D55E00", label="diffusivity $k$")
second.plot(x[inner], spread.first["q"][inner], color="#009E73", label="heating $q$")
second.set(xlabel="$x$", title="first-order Sobol indices", ylim=(0, 1.3))
second.legend(loc="upper center", ncols=2)
third.plot(posterior.samples["k"], posterior.samples["q"], ".", markersize=1, color="#999999")
third.plot(0.09, 0.35, "k+", markersize=12, label="true values")
third.set(xlabel="$k$", ylabel="$q$", title="posterior samples")
third.legend()
