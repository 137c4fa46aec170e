r"""
Hamilton–Jacobi–Bellman in 100 dimensions
=========================================

:math:`u_t + \Delta u = |\nabla u|^2` with :math:`u(1, x) = \log\frac{1 + |x|^2}{2}`: the cost of steering a Brownian
motion in :math:`\mathbb{R}^{100}`. Cole and Hopf's transformation gives the value at the origin as one integral,
which the interval must hold.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.stats import chi2

import rannpde as rp

dimensions, values, widths, references = (1, 10, 100), [], [], []
for d in dimensions:
    problem = rp.Problem(
        "u_t + laplace(u) = dot(grad(u), grad(u))",
        rp.SpaceTime(t=(0, 1), x=rp.Euclidean(d)),
        {"t=1": "u = log((1 + norm(x)**2)/2)"},
    )
    solution = rp.solve(problem, at=np.zeros(d), tol=1e-3 if d > 1 else 0.1)
    law = chi2(d)
    integral = quad(lambda r, law=law: 2 / (1 + 2 * r) * law.pdf(r), 0, law.isf(1e-16), points=[law.mean()], limit=200)
    values.append(solution.value)
    widths.append(solution.half_width)
    references.append(-np.log(integral[0]))
    print(f"d = {d}: {solution.value:.6f} ± {solution.half_width:.1e}, Cole–Hopf {references[-1]:.6f}")

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
relative = np.array(widths) / np.abs(values)
axes.loglog(dimensions, relative, "o-", label="half-width of the 95 % interval")
axes.loglog(dimensions, np.abs(np.array(values) / references - 1), "s:", label="error")
axes.set(xlabel="dimension $d$", ylabel="relative to $u(0, 0)$")
axes.legend()
