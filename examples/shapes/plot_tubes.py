r"""
Hot tubes in a plate: heat on a shape, in time
==============================================

:math:`u_t = \Delta u`, cold at the start. Tubes heat the plate (:math:`\partial_n u = 5 - u`), its rim loses little
(:math:`\partial_n u = 0.1 - u`). Space is divided into cells that follow the circles; time has long and short steps.
"""

import os

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
centres = [(0, 0)] if small else [(-2, 1), (0, -1), (2, 1)]
plate = rp.Box(x=(-4, 4), y=(-3, 3))
for number, centre in enumerate(centres):
    plate = plate - rp.Ball(centre, 0.8, name=f"tube{number}")
tubes = tuple(f"tube{number}" for number in range(len(centres)))
problem = rp.Problem(
    "u_t = laplace(u)",
    rp.SpaceTime(t=(0, 3), x=plate),
    {
        "start": rp.On("t=0", "u = 0"),
        "tubes": rp.On(tubes, "dn(u) = 5 - u"),
        "rim": rp.On(f"boundary except {', '.join(tubes)}", "dn(u) = 0.1 - u"),
    },
    name="Hot tubes in a plate",
)
solution = rp.solve(problem, tol=1e-1 if small else 1e-2)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")
figure = solution.plot()
