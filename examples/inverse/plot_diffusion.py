r"""
An unknown diffusion, with its band
===================================

Noisy temperatures of a heated rod, :math:`(a\, u')' + 4 = 0`: where does it conduct well? The diffusion :math:`a(x)` is
known at the ends only. What is found comes with what it is worth.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

rod, ends = rp.Interval(0, 1), {"ends": rp.On(("x=0", "x=1"), "u = 0")}
truth = "1 + exp(-60*(x - 0.3)**2)"
x = np.random.default_rng(0).uniform(0, 1, 150)[:, None]
temperature = rp.solve(rp.Problem(f"div(({truth})*grad(u)) + 4 = 0", rod, ends), tol=1e-8)(x)
measured = temperature + 0.001 * np.random.default_rng(1).standard_normal(150)

problem = rp.Problem(
    "div(a*grad(u)) + 4 = 0",
    domain=rod,
    conditions={
        **ends,
        "known": rp.On(("x=0", "x=1"), f"a = {truth}"),
        "sensors": rp.Data(x, measured, "u", noise=0.001),
    },
    unknown={"a": rp.UnknownFunction(of=("x",), guess=1.0, bounds=(0, None))},
)
solution = rp.solve(problem, tol=1e-4)
print(solution.functions["a"])

# %%
# The band is widest where the rod is warmest: there :math:`u' = 0`, and no temperature depends on :math:`a`.

line = np.linspace(0, 1, 300)
lower, upper = solution.functions["a"].band(line[:, None])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(x, measured, ".", color="#D55E00", label="measured")
left.plot(line, solution(line[:, None]), color="#0072B2", label="$u$")
left.set(xlabel="$x$", ylabel="$u$")
left.legend()
right.fill_between(line, lower, upper, color="#0072B2", alpha=0.25, linewidth=0, label="95 % band")
right.plot(line, solution.functions["a"](line[:, None]), color="#0072B2", label="$a$ found")
right.plot(line, 1 + np.exp(-60 * (line - 0.3) ** 2), "k:", label="$a$ true")
right.set(xlabel="$x$", ylabel="$a$")
right.legend()
