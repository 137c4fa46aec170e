r"""
Hunters and hunted: a system of ordinary differential equations
===============================================================

:math:`a_t = a - a b`, :math:`b_t = a b - b`: an equation without space is a problem on an interval of time. The
closed curves in the plane of both populations are a test: :math:`a - \log a + b - \log b` must not change.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(3, 2))
for colour, first in zip(("#0072B2", "#D55E00", "#009E73"), (1.3, 1.6, 2.0), strict=True):
    problem = rp.Problem(
        {"prey": "a_t = a - a*b", "predators": "b_t = a*b - b"},
        rp.Box(t=(0, 7)),
        {"prey at start": rp.On("t=0", "a = first"), "predators at start": rp.On("t=0", "b = 1")},
        parameters={"first": first},
    )
    turning = {"a": "1 + 0.5*cos(t)", "b": "1 + 0.5*sin(t)"}  # a guess for Newton's iteration: nearly a circle
    solution = rp.solve(problem, tol=1e-6, method=rp.Cells(guess=turning))
    t = np.linspace(0, 7, 500)
    a, b = solution(t[:, None]).T
    kept = a - np.log(a) + b - np.log(b)
    print(f"start {first}: estimated error {solution.estimate:.1e}, the constant changes by {np.ptp(kept):.1e}")
    left.plot(t, a, color=colour, label=f"$a(0) = {first}$")
    left.plot(t, b, color=colour, linestyle=":")
    right.plot(a, b, color=colour)
left.set(xlabel="$t$", title="prey (solid) and predators (dotted)")
left.legend()
right.set(xlabel="prey $a$", ylabel="predators $b$", aspect="equal")
