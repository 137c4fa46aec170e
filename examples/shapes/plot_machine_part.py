r"""
Heat in a machine part
======================

:math:`\Delta u = 0` in a flange with bolt holes: hot oil in the large bore, cooled by air elsewhere
(:math:`\partial_n u = -h u`), insulated at the bolts.
"""

import os

import rannpde as rp

names = ("x", "y")
part = (
    rp.Ellipse((1.5, 0.8), (1.6, 0.85), names=names, name="rim")
    - rp.Ball((1.1, 0.8), 0.45, names, name="bore")
    - rp.Ball((2.2, 0.8), 0.15, names, name="bolt1")
    - rp.Ball((2.65, 0.8), 0.12, names, name="bolt2")
)
problem = rp.Problem(
    "laplace(u) = 0",
    part,
    {
        "oil": rp.On("bore", "u = 80"),
        "bolts": rp.On(("bolt1", "bolt2"), "dn(u) = 0"),
        "air": rp.On("rim", "dn(u) = -h*u"),
    },
    parameters={"h": 0.4},
    name="Heat in a machine part, degrees above the air",
)
solution = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-4)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")
figure = solution.plot()
