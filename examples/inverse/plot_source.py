r"""
An unknown source, with its band
================================

Eighty noisy values of :math:`u` in :math:`-u'' + u = f`: the source :math:`f(x)` is found as a random network under a
smoothness prior, whose strength follows from the data. The band is wide where the data say little.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

rng = np.random.default_rng(1)
x = rng.uniform(0, 1, 80)
measured = np.cos(np.pi * x) + 0.01 * rng.standard_normal(80)

problem = rp.Problem(
    "-u_xx + u = f",
    domain=rp.Interval(0, 1),
    conditions={
        "walls": rp.On(("x=0", "x=1"), "u_x = 0"),
        "sensors": rp.Data(x[:, None], measured, "u"),  # the noise is estimated
    },
    unknown={"f": rp.UnknownFunction(of=("x",), guess=0.0)},
)
solution = rp.solve(problem, tol=1e-6)
print(solution.functions["f"], f"noise {solution.noise['sensors']:.4f}")

# %%
# The true source, dotted, lies in the band.

line = np.linspace(0, 1, 300)[:, None]
lower, upper = solution.functions["f"].band(line)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(x, measured, ".", color="#D55E00", label="measured")
left.plot(line, solution(line), color="#0072B2", label="$u$")
left.set(xlabel="$x$", ylabel="$u$")
left.legend()
right.fill_between(line[:, 0], lower, upper, color="#0072B2", alpha=0.25, linewidth=0, label="95 % band")
right.plot(line, solution.functions["f"](line), color="#0072B2", label="$f$ found")
right.plot(line, (1 + np.pi**2) * np.cos(np.pi * line), "k:", label="$f$ true")
right.set(xlabel="$x$", ylabel="$f$")
right.legend()
