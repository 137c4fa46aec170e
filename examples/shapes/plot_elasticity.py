r"""
A plate with a hole is pulled: elasticity
=========================================

The balance of forces in a thin plate, :math:`\nabla\cdot\sigma = 0`, under a pull of 1 along :math:`x`. By symmetry
a quarter is enough. The stress, a combination of first derivatives, is largest beside the hole: three times the
pull in an infinite plate (Kirsch), a little more in this one.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

xx, yy, xy = "(u_x + 0.3*v_y)/0.91", "(v_y + 0.3*u_x)/0.91", "(u_y + v_x)/2.6"
quarter = rp.Box(x=(0, 3), y=(0, 2)) - rp.Ball((0, 0), 0.6, ("x", "y"), name="hole")
problem = rp.Problem(
    {"x": f"d({xx}, x) + d({xy}, y) = 0", "y": f"d({xy}, x) + d({yy}, y) = 0"},
    quarter,
    {
        "symmetry in x": rp.On("x=0", "u = 0"),
        "symmetry in y": rp.On("y=0", "v = 0"),
        "no shear": rp.On(("x=0", "y=0", "x=3", "y=2"), f"{xy} = 0"),
        "pulled": rp.On("x=3", f"{xx} = 1"),
        "free side": rp.On("y=2", f"{yy} = 0"),
        "rim along x": rp.On("hole", f"{xx}*dn(x) + {xy}*dn(y) = 0"),
        "rim along y": rp.On("hole", f"{xy}*dn(x) + {yy}*dn(y) = 0"),
    },
    fields=("u", "v"),
)
solution = rp.solve(problem, tol=1e-2 if "RANNPDE_SMALL" in os.environ else 1e-5)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

# %%
# The stress, drawn on the plate as it is deformed (displacements times 0.1), and mirrored to all four quarters.

x, y = np.linspace(0, 3, 241), np.linspace(0, 2, 161)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
inside = quarter.contains(grid)
stress, moved = np.full(len(grid), np.nan), grid.copy()
u_x, v_y = (solution.derivative(grid[inside], index) for index in ((1, 0), (0, 1)))
stress[inside] = (u_x[:, 0] + 0.3 * v_y[:, 1]) / 0.91
moved[inside] += 0.1 * solution(grid[inside])
across, up = moved.T.reshape(2, 161, 241)
print(f"largest stress {np.nanmax(stress):.2f}")
figure, axes = plt.subplots(figsize=(8, 4.6))
for signs in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
    image = axes.pcolormesh(
        signs[0] * across, signs[1] * up, stress.reshape(161, 241), cmap="magma", vmin=0, vmax=3.2, shading="gouraud"
    )
figure.colorbar(image, label=r"stress $\sigma_{xx}$ / pull")
axes.grid(False)
axes.set(aspect="equal", xlabel="$x$", ylabel="$y$", title="stress beside a hole")
