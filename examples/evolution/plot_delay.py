r"""
Blood cells with a delay: Mackey and Glass
==========================================

:math:`u_t = \beta\,u(t-\tau)/(1 + u(t-\tau)^n) - \gamma u`: what the body produces depends on how many cells there were
:math:`\tau` days ago. Short delays settle; longer ones oscillate, and then do so without a period. The history is the
condition at ``t <= 0``. Next to it, an integral equation with memory that never fades: a renewal equation,
:math:`u = f + \int_0^t k(t-s)\,u(s)\,ds`.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2))
t = np.linspace(0, 20, 600)
for colour, delay in zip(("#0072B2", "#D55E00"), (0.6, 2.0), strict=True):
    cells = rp.Problem(
        "u_t = 2*u(t - tau)/(1 + u(t - tau)**9) - u",
        rp.Box(t=(0, 20)),
        {"t <= 0": "u = 1/2"},
        parameters={"tau": delay},
    )
    solution = rp.solve(cells, tol=1e-4)
    print(f"delay {delay}: converged {solution.converged}, estimated error {solution.estimate:.1e}")
    left.plot(t, solution(t=t), color=colour, label=rf"$\tau = {delay}$")
left.set(xlabel="$t$", ylabel="$u$", title="blood cells")
left.legend()

renewal = rp.Problem(
    "u = exp(-t) + integral((t - s)*exp(-(t - s))*u(s), s, 0, t)",
    rp.Box(t=(0, 8)),
    exact={"u": "(1 + exp(-2*t))/2"},
)
solution = rp.solve(renewal, tol=1e-10)
print(f"renewal: error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}")
s = np.linspace(0, 8, 300)
right.plot(s, solution(t=s), color="#009E73")
right.set(xlabel="$t$", title="births: the renewal equation")
