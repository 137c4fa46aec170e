r"""
A vortex street behind a cylinder
=================================

The benchmark DFG 2D-2: the Navier–Stokes equations in time at the Reynolds number 100. A cylinder a little below the
middle of a channel sheds vortices. The start is the parabola of the inflow with a gust beside the cylinder, so that the
periodic state is reached within a few periods. Drag and lift are forces by the residual of momentum; their largest
values and the frequency of the lift are outputs of the problem.
Published: largest drag 3.22 to 3.24, largest lift 0.99 to 1.01, Strouhal number 0.295 to 0.305.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
viscosity, end = (5e-3, 0.4) if small else (1e-3, 2.5)  # the small one is quick, and sheds nothing
late = (0.5 * end, end)
channel = rp.Box(x=(0, 2.2), y=(0, 0.41)) - rp.Ball((0.2, 0.2), 0.05, name="cylinder")
inflow = "6*y*(0.41 - y)/0.41**2"
drag, lift = "20*(p*nx - nu*dn(u))", "20*(p*ny - nu*dn(v))"
problem = rp.Problem(
    {
        "momentum x": "u_t + u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "v_t + u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    },
    rp.SpaceTime(t=(0, end), x=channel),
    {
        "start": rp.On("t=0", [f"u = {inflow}", "v = 0.8*exp(-((x - 0.3)**2 + (y - 0.2)**2)/0.01)"]),
        "inflow": rp.On("x=0", [f"u = {inflow}", "v = 0"]),
        "walls": rp.On(("y=0", "y=0.41", "cylinder"), ["u = 0", "v = 0"]),
        "outflow": rp.On("x=2.2", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    },
    parameters={"nu": viscosity},
    fields=("u", "v", "p"),
    outputs={
        "largest drag": rp.Output(drag, on="cylinder", kind="maximum in time", t=late),
        "largest lift": rp.Output(lift, on="cylinder", kind="maximum in time", t=late),
        "frequency": rp.Output(lift, on="cylinder", kind="frequency", t=late),
    },
)
solution = rp.solve(problem, tol=0.3 if small else 8e-3, method="flow", seconds=60 if small else 900)
for name, found in solution.outputs.items():
    print(f"{name}: {found}")
print(f"Strouhal number 0.1 × frequency; {solution.method}; estimate {solution.estimate:.1e}")

# %%
# The vorticity at the end, and both forces in time.

x, y, slope = np.linspace(0, 2.2, 441), np.linspace(0, 0.41, 83), solution.function.derivative
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
inside = channel.contains(grid)
points = np.insert(grid[inside], 0, end, axis=1)
vorticity = np.full(len(grid), np.nan)
vorticity[inside] = slope(points, (0, 1, 0))[:, 1] - slope(points, (0, 0, 1))[:, 0]
figure, panels = plt.subplots(2, 1, figsize=(9, 4.6), layout="constrained")
panels[0].pcolormesh(x, y, vorticity.reshape(83, 441), cmap="RdBu_r", vmin=-40, vmax=40, shading="gouraud")
panels[0].add_patch(plt.Circle((0.2, 0.2), 0.05, facecolor="#dddddd", edgecolor="black"))
panels[0].set(title=f"vorticity at t = {end}", xlabel="$x$", ylabel="$y$", aspect="equal")
series = solution.history.series[0]
force, times = 20 * np.array(series.forces["cylinder"]), np.array(series.times)
shown = times > 0.1 * end
panels[1].plot(times[shown], force[shown, 0], label="drag")
panels[1].plot(times[shown], force[shown, 1], label="lift")
panels[1].set(xlabel="$t$", title="coefficients of drag and lift")
panels[1].legend(loc="center right")
