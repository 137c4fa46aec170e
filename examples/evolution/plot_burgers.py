r"""
A shock that viscosity holds: Burgers
=====================================

:math:`u_t + u\, u_x = \nu\, u_{xx}` steepens a sine into a layer of width :math:`\nu`. The solver places its random
features where the layer is, and says how accurate it became: there is nothing to set but the error wanted.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_t + u*u_x = nu*u_xx",
    domain=rp.SpaceTime(t=(0, 1), x=(-1, 1)),
    conditions={"start": rp.On("t=0", "u = -sin(pi*x)"), "walls": rp.On(("x=-1", "x=1"), "u = 0")},
    parameters={"nu": 0.01 / np.pi},
)
solution = rp.solve(problem, tol=1e-3 if "RANNPDE_SMALL" in os.environ else 1e-8)
print(f"{solution.status}; estimated relative error {solution.estimate:.1e}")

# %%
# Snapshots from blue to orange, and the slope :math:`u_x` at the layer, which is an exact derivative of the network.

x = np.linspace(-1, 1, 801)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(3, 2))
for t in np.linspace(0, 1, 9):
    left.plot(x, solution(np.column_stack([np.full_like(x, t), x])), color=plt.cm.plasma(0.85 * t))
left.set(xlabel="$x$", ylabel="$u$", title="$t = 0$ (dark) to $t = 1$ (light)")
times = np.linspace(0, 1, 201)
slope = solution.derivative(np.column_stack([times, 0 * times]), (0, 1))
right.plot(times, -slope, color="#D55E00")
right.set(xlabel="$t$", title=r"steepness $-u_x(t, 0)$, largest %.0f" % -slope.min())
