"""Random deep splitting (Neufeld, Schmocker, Wu 2024) in NumPy: a regression per step, on random features."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


def deep_splitting(
    data: Callable[[np.ndarray], np.ndarray], source: Callable[[np.ndarray, np.ndarray], np.ndarray], length: float,
    reference: float, name: str, dim: int = 100, steps: int = 24, paths: int = 2000, width: int = 200, seed: int = 0,
) -> None:  # fmt: skip
    """Random deep splitting: Brownian paths √2 W, one regression of u + h f per step on random tanh features."""
    rng, h = np.random.default_rng(seed), length / steps
    begin, clock = time.process_time(), time.perf_counter()
    states = [np.zeros((paths, dim))]
    for _ in range(steps):
        states.append(states[-1] + np.sqrt(2 * h) * rng.standard_normal((paths, dim)))
    shift = 1e-3
    value = data(states[-1])
    slope = _difference(data, states[-1], shift)
    for n in range(steps - 1, -1, -1):
        target = value + h * source(value, slope)
        if n == 0:
            break
        scale = np.sqrt(2 * n * h)
        weights = rng.standard_normal((dim, width)) / np.sqrt(dim)
        radial, bias = rng.standard_normal(width), rng.uniform(-2, 2, width)

        def columns(
            x: np.ndarray, scale: float = scale, weights: Any = weights, radial: Any = radial, bias: Any = bias
        ) -> np.ndarray:
            z = x / scale
            q = ((z**2).sum(axis=1) - dim) / np.sqrt(2 * dim)
            return np.column_stack([np.tanh(z @ weights + q[:, None] * radial + bias), np.ones(len(x))])

        design = columns(states[n])
        fit = np.linalg.solve(design.T @ design + 1e-6 * len(design) * np.eye(width + 1), design.T @ target)
        value = design @ fit
        slope = _difference(columns, states[n], shift, fit)
    found = float(target.mean())
    print(
        f"peer, deep splitting, {name}: {found:.6g} (reference {reference:.9g}, {abs(found / reference - 1):.1e}) "
        f"{time.process_time() - begin:.2f} s of processors, clock {time.perf_counter() - clock:.2f} s, no interval",
        flush=True,
    )  # fmt: skip


def _difference(
    columns: Callable[[np.ndarray], np.ndarray], x: np.ndarray, shift: float, fit: np.ndarray | None = None
) -> np.ndarray:
    """The radial part of the gradient, which is all of it for the two problems of the peer.

    Of a function of points (M, d), or of its columns combined with the weights ``fit``.
    """
    radius = np.linalg.norm(x, axis=1, keepdims=True)
    unit = np.divide(x, radius, out=np.zeros_like(x), where=radius > 0)
    change = columns(x + shift * unit) - columns(x - shift * unit)
    return (change if fit is None else change @ fit) / (2 * shift)
