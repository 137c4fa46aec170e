r"""
A basket of fifty assets, with its Greeks
=========================================

A call on the geometric mean of 50 assets, each a geometric Brownian motion:
:math:`u_t + r\, x\cdot\nabla u + \frac{1}{2} \sigma^2 \sum x_i^2\, u_{x_i x_i} = r u`. The mean of logarithms is
Gaussian, so that Black and Scholes's formula is the reference. The gradient comes with the value: a Delta for every
asset.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import rannpde as rp

d, r, sigma, strike = 50, 0.03, 0.3, 100.0
problem = rp.Problem(
    "u_t + r*dot(x, grad(u)) + trace(diag((sigma*x)**2)*hessian(u))/2 = r*u",
    rp.SpaceTime(t=(0, 1), x=rp.Euclidean(d)),
    {"t=1": "u = max(exp(sum(log(x))/50) - strike, 0)"},
    parameters={"r": r, "sigma": sigma, "strike": strike},
)
point = np.linspace(95, 115, d)
solution = rp.solve(problem, at=point, tol=5e-3)

deviation = sigma / np.sqrt(d)
forward = np.exp(np.log(point).mean() + r - sigma**2 / 2 + deviation**2 / 2)
upper = np.log(forward / strike) / deviation + deviation / 2
exact = np.exp(-r) * (forward * norm.cdf(upper) - strike * norm.cdf(upper - deviation))
deltas = np.exp(-r) * forward * norm.cdf(upper) / (d * point)
print(f"{solution.value:.4f} ± {solution.half_width:.4f}, formula {exact:.4f}")

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.errorbar(point, solution.gradient, 1.96 * solution.gradient_errors[0], fmt=".", label="along paths")
axes.plot(point, deltas, "k:", label="formula")
axes.set(xlabel="price of the asset", ylabel="Delta")
axes.legend()
