r"""
Two solitons collide: Korteweg–de Vries
=======================================

Solutions of :math:`u_t + 6\, u\, u_x + u_{xxx} = 0` include waves that keep their shape. A tall one is faster,
overtakes a small one, and both leave as they came, a little displaced.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_t + 6*u*u_x + u_xxx = 0",
    rp.SpaceTime(t=(0, 2.4), x=(-15, 15)),
    {
        "start": rp.On("t=0", "u = 3/cosh(sqrt(1.5)*(x + 6))**2 + 1/cosh(sqrt(0.5)*(x + 1))**2"),
        "ring": rp.Periodic("x"),
    },
)
solution = rp.solve(problem, tol=1e-3)
print(f"estimated relative error {solution.estimate:.1e} in {solution.seconds:.1f} s")

x = np.linspace(-10, 12, 600)
figure, axes = plt.subplots(figsize=(7, 5))
for t in np.linspace(2.4, 0, 40):
    u = solution(np.column_stack([np.full_like(x, t), x]))
    axes.fill_between(x, 6 * t, 6 * t + u, color="white", zorder=-t)
    axes.plot(x, 6 * t + u, color=plt.cm.viridis(t / 2.7), linewidth=1.1, zorder=-t)
axes.grid(False)
axes.set(xlabel="$x$", yticks=[0, 6, 12], yticklabels=["0", "1", "2"], ylabel="$t$", title="the tall soliton overtakes")
