r"""
Drops that grow into rings: Gray–Scott
======================================

Two substances, one fed and one that eats it: :math:`u_t = 2 D \Delta u - u v^2 + F(1 - u)`,
:math:`v_t = D \Delta v + u v^2 - (F + k)\, v`. From a few drops,
rings grow and meet. Two coupled equations in two dimensions, periodic, stated in two lines.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

small = "RANNPDE_SMALL" in os.environ
end, D = (80, 6e-4) if small else (240, 1.5e-4)
drops = " + ".join(f"exp(-30*((x - {a})**2 + (y - {b})**2))" for a, b in ((-0.3, 0.1), (0.35, 0.3), (0.1, -0.35)))
problem = rp.Problem(
    {"food": "u_t = 2*D*laplace(u) - u*v**2 + F*(1 - u)", "eater": "v_t = D*laplace(v) + u*v**2 - (F + k)*v"},
    rp.SpaceTime(t=(0, end), x=(-1, 1), y=(-1, 1)),
    {
        "u at start": rp.On("t=0", f"u = 1 - 0.5*({drops})"),
        "v at start": rp.On("t=0", f"v = 0.3*({drops})"),
        "around x": rp.Periodic("x"),
        "around y": rp.Periodic("y"),
    },
    parameters={"F": 0.04, "k": 0.06, "D": D},
)
warnings.simplefilter("ignore", rp.ConvergenceWarning)
solution = rp.solve(problem, tol=1e-1 if small else 5e-2, seconds=60)
print(f"{solution.reason}; estimated relative error {solution.estimate:.1e}")

axis, times = np.linspace(-1, 1, 90), (0, end / 3, end)
grid = np.stack(np.meshgrid(times, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
pictures = solution.field("v", grid).reshape(3, 90, 90)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for place, t, v in zip(axes, times, pictures, strict=True):
    image = place.pcolormesh(axis, axis, v.T, cmap="magma", vmin=0, vmax=pictures.max(), shading="gouraud")
    place.grid(False)
    place.set(aspect="equal", title=f"$t = {t:.0f}$", xlabel="$x$")
axes[0].set_ylabel("$y$")
figure.colorbar(image, ax=axes, label="$v$")
