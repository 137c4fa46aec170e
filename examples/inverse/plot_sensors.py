r"""
Where to put sensors
====================

A rod cools: :math:`u_t = k\, u_{xx}` with an amplitude :math:`A` at the start. How much :math:`u` changes with each
unknown is known before anything is measured; the best sensors follow, and how sure one will be.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_t = k*u_xx",
    domain=rp.SpaceTime(t=(0, 1), x=(0, 1)),
    conditions={"start": rp.On("t=0", "u = A*sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")},
    unknown={"k": rp.Unknown(guess=0.3, bounds=(0, None)), "A": rp.Unknown(guess=1.7)},
)
map_of = rp.sensitivity(problem)
best = map_of.best(4)
expected = map_of.expected(best, noise=0.01)
print({name: f"{100 * value:.2f} %" for name, value in expected.items()})

# %%
# The change of :math:`u` with one per cent of each unknown, and the four places (dots).

t, x = np.linspace(0, 1, 120), np.linspace(0, 1, 90)
grid = np.column_stack([np.repeat(t, len(x)), np.tile(x, len(t))])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for place, (name, values) in zip(axes, map_of(grid).items(), strict=True):
    size = 0.01 * np.abs(values).max()
    shown = place.pcolormesh(t, x, 0.01 * values.reshape(len(t), -1).T, cmap="RdBu_r", vmin=-size, vmax=size)
    place.plot(best[:, 0], best[:, 1], "o", color="black", markeredgecolor="white")
    place.set(xlabel="$t$", title=f"change of $u$ with 1 % of ${name}$", xlim=(-0.02, 1))
    figure.colorbar(shown, ax=place)
axes[0].set(ylabel="$x$")
