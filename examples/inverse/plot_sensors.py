r"""
Where to put sensors
====================

A rod cools: :math:`u_t = k\, u_{xx}` with an amplitude :math:`A` at the start. How much :math:`u` changes with each
unknown is known before anything is measured; the best sensors follow, and how sure one will be.
"""

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
# How :math:`u` answers to each unknown, and the four points (dots): at the start, and when diffusion has acted.

figure = map_of.plot()
