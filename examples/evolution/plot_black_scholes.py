r"""
The price of an option: Black–Scholes
=====================================

With the time :math:`t` to expiry, :math:`V_t = \frac{1}{2}\sigma^2 S^2\, V_{SS} + r S\, V_S - r V` from the payoff
:math:`\max(S - K, 0)`, which has a kink. The slope :math:`V_S`, the trader's Delta, is a derivative of the
solution.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import rannpde as rp

K, r, sigma = 1.0, 0.05, 0.3
problem = rp.Problem(
    "V_t = sigma**2*S**2*V_SS/2 + r*S*V_S - r*V",
    rp.SpaceTime(t=(0, 1), S=(0, 3)),
    {
        "payoff": rp.On("t=0", "V = max(S - K, 0)"),
        "worthless": rp.On("S=0", "V = 0"),
        "forward": rp.On("S=3", "V = S - K*exp(-r*t)"),
    },
    parameters={"K": K, "r": r, "sigma": sigma},
)
solution = rp.solve(problem, tol=1e-3)

S = np.linspace(0.01, 3, 500)
upper = (np.log(S / K) + r + sigma**2 / 2) / sigma
exact = S * norm.cdf(upper) - K * np.exp(-r) * norm.cdf(upper - sigma)
points = np.column_stack([np.ones_like(S), S])
print(f"largest error at t = 1: {np.abs(solution(points) - exact).max():.1e}, estimated {solution.estimate:.1e}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
for shade, t in zip((0.1, 0.4, 0.75), (0.02, 0.25, 1.0), strict=True):
    now = np.column_stack([np.full_like(S, t), S])
    left.plot(S, solution(now), color=plt.cm.viridis(shade), label=f"$t = {t}$")
    right.plot(S, solution.derivative(now, (0, 1)), color=plt.cm.viridis(shade))
left.plot(S, exact, "k:", label="formula, $t = 1$")
left.set(xlabel="price $S$ of the stock / $K$", ylabel="value $V$ / $K$", xlim=(0, 2.2), ylim=(-0.05, 1.3))
left.legend()
right.set(xlabel="price $S$ of the stock / $K$", ylabel=r"Delta, $V_S$", xlim=(0, 2.2))
