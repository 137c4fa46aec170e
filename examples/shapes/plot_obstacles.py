r"""
Slow flow round obstacles
=========================

Stokes' equations :math:`-\Delta u + p_x = 0`, :math:`-\Delta v + p_y = 0`, :math:`u_x + v_y = 0` in a channel with
two round pillars and a wedge. Shapes are added and subtracted; every piece of the boundary has a name.
"""

import os

import rannpde as rp

channel = (
    rp.Box(x=(0, 3), y=(0, 1))
    - rp.Ball((0.8, 0.35), 0.18, names=("x", "y"), name="first")
    - rp.Ball((1.5, 0.7), 0.14, names=("x", "y"), name="second")
    - rp.Polygon([(2.1, 0.25), (2.5, 0.4), (2.1, 0.55)], names=("x", "y"), name="wedge")
)
flow = {"x=0": "u = 4*y*(1 - y)", "x=3": "u = 4*y*(1 - y)"}
problem = rp.Problem(
    {"x": "-laplace(u) + p_x = 0", "y": "-laplace(v) + p_y = 0", "mass": "u_x + v_y = 0"},
    channel,
    {
        "in": rp.On("x=0", "u = 4*y*(1 - y)"),
        "out": rp.On("x=3", "u = 4*y*(1 - y)"),
        "walls": rp.On("boundary except x=0, x=3", "u = 0"),
        "everywhere": rp.On("boundary", "v = 0"),
        "level": rp.Data([[0.1, 0.5]], [0.0], "p"),
    },
    fields=("u", "v", "p"),
    name="Slow flow round obstacles",
)
solution = rp.solve(problem, tol=1e-1 if "RANNPDE_SMALL" in os.environ else 1e-3, seconds=90)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

# %%
# ``solution.plot()`` ends at the boundary, and draws streamlines where the divergence vanishes.

figure = solution.plot()
