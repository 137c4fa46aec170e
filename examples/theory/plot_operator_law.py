r"""
A law that knows the operator
=============================

The same equation, :math:`\Delta u + 20^2 u = 0` on a square, by four laws of the hidden weights: the heavy-tailed
:math:`\pi` of Theorem 1, Gaussian and uniform weights, and the law that is read off the operator, :math:`|w| = 20`.
The first three fit the equation at points inside and the values on the boundary by least squares, the last one needs
the boundary only. Each error is the mean over three realisations.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import y0

k, side = 20.0, 1.0
small = "RANNPDE_SMALL" in os.environ
widths = (20, 40, 80) if small else (20, 40, 80, 160, 320)


def exact(points):
    return y0(k * np.hypot(points[:, 0] + 0.2, points[:, 1] + 0.15))


def weights(law, count, rng):
    if law == "the operator's":
        angle = (np.arange(count) + rng.uniform(0, 1, count)) * np.pi / count
        return k * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if law == "Gaussian":
        return k * rng.normal(size=(count, 2)) / np.sqrt(2)
    if law == "uniform":
        return 1.5 * k * rng.uniform(-1, 1, (count, 2))
    direction = rng.normal(size=(count, 2))  # π: Cauchy tails, Student's t with one degree of freedom
    return 0.4 * k * direction / np.abs(rng.normal(size=(count, 1)))


def columns(points, w):
    phase = points @ w.T
    return np.hstack([np.cos(phase), np.sin(phase)])


def error(law, count, seed):
    rng = np.random.default_rng(seed)
    w = weights(law, count, rng)
    edge = rng.uniform(0, side, 6 * count + 40)
    end = rng.integers(0, 4, len(edge))
    points = np.stack([np.where(end < 2, edge, side * (end == 2)), np.where(end < 2, side * (end == 1), edge)], axis=1)
    rows, values = [columns(points, w)], [exact(points)]
    symbol = np.tile((k**2 - (w**2).sum(axis=1)) / k**2, 2)
    if law != "the operator's":  # the symbol vanishes on its variety: nothing is left of the equation
        inside = rng.uniform(0, side, (8 * count, 2))
        rows.append(columns(inside, w) * symbol)
        values.append(np.zeros(len(inside)))
    matrix, right = np.concatenate(rows), np.concatenate(values)
    found = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
    fresh = rng.uniform(0, side, (1500, 2))
    return np.linalg.norm(columns(fresh, w) @ found - exact(fresh)) / np.linalg.norm(exact(fresh))


figure, axes = plt.subplots(figsize=(6, 4))
for law in ("π of Theorem 1", "uniform", "Gaussian", "the operator's"):
    errors = [np.exp(np.mean([np.log(error(law, count, seed)) for seed in range(3)])) for count in widths]
    axes.loglog(widths, errors, marker="o", label=law)
    print(f"{law:16s}", " ".join(f"{one:.1e}" for one in errors))
axes.set(xlabel="neurons $N$", ylabel="relative $L^2$ error", title=r"$\Delta u + 20^2 u = 0$, a source outside")
axes.legend()
