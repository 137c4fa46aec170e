r"""
When does a flow between plates become unstable?
================================================

Small disturbances :math:`v(y)\,e^{i\alpha(x - ct)}` of plane Poiseuille flow satisfy the Orr–Sommerfeld equation

.. math:: \frac{(D^2 - \alpha^2)^2 v}{R} = i\alpha\left[(U - c)(D^2 - \alpha^2) v - U'' v\right], \quad U = 1 - y^2 .

Those with a positive imaginary part of c grow. At R = 10,000 and α = 1 there is one, 0.23752649 + 0.00373967i
(Orszag, 1971); below R = 5772 there is none.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

EQUATION = "(v_yyyy - 2*a**2*v_yy + a**4*v)/R = i*a*((1 - y**2 - c)*(v_yy - a**2*v) + 2*v)"


def flow(reynolds: float, wave: float) -> rp.Problem:
    walls = {"boundary": ("v = 0", "dn(v) = 0")}
    numbers = {"i": 1j, "a": wave, "R": reynolds}
    return rp.Problem(EQUATION, rp.Interval(-1, 1, "y"), walls, parameters=numbers, eigenvalue="c")


small = "RANNPDE_SMALL" in os.environ
found = rp.eigen(flow(1e4, 1.0), count=4 if small else 24, which="highest imaginary", tol=1e-6)
print(f"c = {found.values[0]:.9f}, bound {found.bounds[0]:.0e}")
speeds = np.linspace(4500, 8000, 3 if small else 8)
growth = [rp.eigen(flow(r, 1.02056), near=0.264, count=1).values[0].imag * 1.02056 for r in speeds]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
left.plot(found.values.real, found.values.imag, "o")
left.axhline(0, color="grey", linewidth=0.8)
left.set(xlabel="real part of $c$", ylabel="imaginary part", title="$R = 10{,}000$, $\\alpha = 1$")
right.plot(speeds, growth, "o-")
right.axhline(0, color="grey", linewidth=0.8)
right.axvline(5772.22, color="black", linestyle=":", label="$R = 5772.22$")
right.set(xlabel="Reynolds number", ylabel="growth rate", title="$\\alpha = 1.02056$")
right.legend()
