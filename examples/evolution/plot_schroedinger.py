r"""
A wave packet meets a barrier: Schrödinger
==========================================

:math:`i\,\psi_t = -\frac{1}{2}\,\psi_{xx} + V\,\psi` as two real fields, :math:`\psi = u + i v`. A packet runs
against a smooth barrier a little higher than its energy: a part tunnels, the rest is thrown back.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

barrier = "12*exp(-2*x**2)"
problem = rp.Problem(
    {"real": f"u_t = -v_xx/2 + {barrier}*v", "imaginary": f"v_t = u_xx/2 - {barrier}*u"},
    rp.SpaceTime(t=(0, 2.4), x=(-14, 14)),
    {
        "u at start": rp.On("t=0", "u = exp(-(x + 6)**2/2)*cos(5*x)"),
        "v at start": rp.On("t=0", "v = exp(-(x + 6)**2/2)*sin(5*x)"),
        "ring": rp.Periodic("x"),
    },
)
solution = rp.solve(problem, tol=1e-4)
print(f"estimated relative error {solution.estimate:.1e} in {solution.seconds:.1f} s")

x = np.linspace(-14, 14, 700)
figure, axes = plt.subplots(3, 1, figsize=(7, 5), sharex=True, sharey=True)
for place, t in zip(axes, (0.0, 1.3, 2.4), strict=True):
    u, v = solution(np.column_stack([np.full_like(x, t), x])).T
    place.fill_between(x, -np.hypot(u, v), np.hypot(u, v), color="#56B4E9", alpha=0.4, label=r"$\pm|\psi|$")
    place.plot(x, u, color="#0072B2", linewidth=1, label=r"Re $\psi$")
    place.fill_between(x, -0.1 * np.exp(-2 * x**2) * 12, -1.3, color="#D55E00", alpha=0.0)
    place.axvspan(-0.8, 0.8, color="#D55E00", alpha=0.25, linewidth=0)
    place.set(ylabel=f"$t = {t}$", ylim=(-1.2, 1.2))
axes[0].legend(loc="upper right", ncols=2)
axes[0].set_title("a packet, and a barrier (orange)")
axes[2].set_xlabel("$x$")
