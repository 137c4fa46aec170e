r"""
When to stop: an option on the dearest of five assets
=====================================================

The holder may take :math:`\max_i x_i - 100` at ten dates, and the assets pay dividends. Whatever rule one follows
gives a lower bound, any martingale an upper one; the regression has both, and the value stands between two numbers.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

payoff = "max(max(x) - 100, 0)"
dates = tuple(f"t={3 * k / 9}" for k in range(10))
problem = rp.Problem(
    "u_t - 0.05*dot(x, grad(u)) + trace(diag((0.2*x)**2)*hessian(u))/2 = 0.05*u",
    rp.SpaceTime(t=(0, 3), x=rp.Euclidean(5)),
    {"t=3": f"u = {payoff}", "exercise": rp.On(dates, f"u >= {payoff}")},
)
starts, tol = ((100.0,), 1e-1) if "RANNPDE_SMALL" in os.environ else ((90.0, 100.0, 110.0), 2e-2)
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for start in starts:
    solution = rp.solve(problem, at=np.full(5, start), tol=tol)
    lower, upper = solution.bounds
    print(f"from {start:g}: between {lower:.3f} and {upper:.3f}, with errors of sampling {solution.interval}")
    middle = 0.5 * (lower + upper)
    for ends, width, label in ((solution.interval, 1.5, "with errors of sampling"), ((lower, upper), 8, "the bounds")):
        axes.plot([start, start], 100 * (np.array(ends) / middle - 1), color="C0", lw=width, label=label)
    axes.annotate(f"{middle:.2f}", (start, 0.0), (12, 0), textcoords="offset points", va="center")
axes.set(xlabel="price of every asset at the start", ylabel="per cent of the middle of both")
axes.margins(x=0.25)
axes.legend(*(entries[:2] for entries in axes.get_legend_handles_labels()), loc="lower right")
