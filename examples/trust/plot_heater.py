r"""
When has it cooled down? Events
===============================

A rod is heated until :math:`t = 0.1` and then cools: :math:`u_t = u_{xx} + q(t, x)`. When has its middle half of
its highest temperature? An event is a function of time and solution; the march also stops at the jump of the
source, which no step may pass unseen. The exact answer is :math:`0.1 + \log(2)/\pi^2`.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

warmest = 20 / np.pi**2 * (1 - np.exp(-0.1 * np.pi**2))


def half(time, u):
    """Zero when the middle has half of the highest temperature."""
    return u(np.array([[0.5]]))[0, 0] - warmest / 2


problem = rp.Problem(
    "u_t = u_xx + where(t < 0.1, 20*sin(pi*x), 0)",
    rp.SpaceTime(t=(0, 0.4), x=(0, 1)),
    {"start": rp.On("t=0", "u = 0"), "ends": rp.On("boundary", "u = 0")},
)
solution = rp.solve(problem, tol=1e-8, method=rp.Lines(events={"half": half}))
found, exact = solution.events["half"][-1], 0.1 + np.log(2) / np.pi**2
print(f"half as warm at t = {found:.10f}, exactly {exact:.10f}")

t = np.linspace(0, 0.4, 400)
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.axvspan(0, 0.1, color="#E69F00", alpha=0.2, linewidth=0, label="heated")
for place, colour in ((0.5, "#D55E00"), (0.25, "#CC79A7"), (0.1, "#0072B2")):
    axes.plot(t, solution(np.column_stack([t, np.full_like(t, place)])), color=colour, label=f"$x = {place}$")
axes.plot(found, warmest / 2, "ko", markersize=7)
axes.annotate(f"$t = {found:.6f}$", (found, warmest / 2), (0.22, 0.75), arrowprops={"arrowstyle": "->"})
axes.set(xlabel="$t$", ylabel="temperature $u$", title="a rod, heated and cooling")
axes.legend()
