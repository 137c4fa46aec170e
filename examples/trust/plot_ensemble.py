r"""
How much is chance? An ensemble
===============================

Random features are drawn, so that a solution has a random error. Independent draws show it, and so does the
estimate of a single one. The true error, known here, is of the same size as both.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.zoo("helmholtz")
draws = rp.ensemble(problem, 5, tol=5e-3, method=rp.Collocation(width=110, scale=30.0))
print(draws.report())

x = np.linspace(*problem.domain.bounds[0], 400)
points = x[:, None]
exact = problem.exact_solution(points)[:, 0]
figure, (first, second) = plt.subplots(1, 2, figsize=(9.5, 3.6))
first.plot(x, draws(points), color="#0072B2", label="mean of 5 draws")
first.plot(x, exact, "k:", label="exact")
first.set(xlabel="$x$", ylabel="$u$", title="oscillations (Helmholtz)", ylim=(0.8, 3.7))
first.legend()
for member in draws.members:
    second.semilogy(x, np.abs(member(points) - exact) + 1e-12, color="#999999", linewidth=0.7)
second.semilogy(x, draws.spread(points) + 1e-12, color="#D55E00", linewidth=1.8, label="spread of the draws")
second.axhline(draws.members[0].estimate, color="#009E73", linestyle="--", label="estimate of the first")
second.set(xlabel="$x$", title="errors (grey)", ylim=(1e-10, 1))
second.legend()
