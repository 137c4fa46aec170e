r"""
Ignition: the fold of Bratu's problem
=====================================

Heat that is produced at the rate :math:`\lambda e^u` leaves a square through its cold walls,

.. math:: \Delta u + \lambda e^u = 0 .

Up to :math:`\lambda = 6.808124423` there are two states, of which the hotter one is unstable; beyond there is none, and
the body ignites. Pseudo-arclength continuation goes around the fold.
"""

import os

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
walls = {"boundary": "u = 0"}
square = rp.Problem("laplace(u) + lam*exp(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), walls, parameters={"lam": 0.0},
                    name="Bratu's problem on the unit square")  # fmt: skip
found = rp.continuation(square, "lam", 5.5 if small else 2.0, 8.0, tol=1e-6 if small else 1e-8)
(fold,) = found.folds
print(f"fold at {fold.parameter:.9f} ± {fold.bound:.0e} (6.808124423 is known), hottest point {fold.extreme:.7f}")
figure = found.plot()
