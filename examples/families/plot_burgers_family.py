r"""
Burgers' equation for every viscosity
=====================================

.. math:: u_t + u u_x = \nu u_{xx}, \quad u(0, x) = -\sin \pi x, \quad \nu \in [0.02, 0.2]

One solve for a range of viscosities gives the solution for each of them, with an estimate of its error over the whole
range. The picture shows the front that steepens as the viscosity falls, and how the error falls with the solves.
"""

import os

import numpy as np

import rannpde as rp

problem = rp.Problem(
    "u_t + u*u_x = nu*u_xx",
    rp.SpaceTime(t=(0, 1), x=(-1, 1)),
    {"t=0": "u = -sin(pi*x)", "boundary": "u = 0"},
    parameters={"nu": rp.Range(0.02, 0.2, scale="log")},
    name="Burgers' equation",
)
family = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-6)
print(family.report())
figure = family.plot()

# %%
# An independent solve at a value that is no node: the difference is below the estimate there.

points = problem.domain.sample(2000, rng=0)
reference = rp.solve(problem.with_parameters({"nu": 0.05}), tol=1e-9)(points)
error = np.linalg.norm(family(points, nu=0.05) - reference) / np.linalg.norm(reference)
print(f"error {error:.1e}, estimate {family.error(nu=0.05):.1e}")
