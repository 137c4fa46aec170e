r"""
A page and a moving picture of any solution
===========================================

``to_html`` writes one self-contained page with a slider over time, the residual map and everything that was
measured; ``animate`` writes a GIF. ``rannpde solve file.toml`` leaves the page by itself.
"""

import os

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
problem = rp.Problem(
    "u_t = kappa*laplace(u) + 30*exp(-30*((x - 0.5 - 0.3*cos(6*t))**2 + (y - 0.5 - 0.3*sin(6*t))**2))",
    rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1)),
    {"start": rp.On("t=0", "u = 0"), "walls": rp.On("boundary", "u = 0")},
    parameters={"kappa": 0.1},
    name="A moving heater",
)
solution = rp.solve(problem, tol=1e-2 if small else 1e-4)
print(solution.to_html("heater.html"), f"estimated relative error {solution.estimate:.1e}")
moving = solution.animate("heater.gif", frames=4 if small else 40)

# %%
# And the figure for print: three times, on one scale.

figure = solution.plot()
