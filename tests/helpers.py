"""Lists and small functions that several test modules share."""

from __future__ import annotations

from pathlib import Path

import mpmath as mp
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from rannpde.network import ACTIVATIONS

EPS = np.finfo(float).eps

SMOOTH = [a for a in ACTIVATIONS.values() if a.smoothness == np.inf]
"""Every activation with derivatives of all orders."""

PRECISE = {
    "tanh": mp.tanh,
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
    "cos": mp.cos,
    "sin": mp.sin,
    "gaussian": lambda z: mp.exp(-z * z / 2),
    "softplus": lambda z: mp.log(1 + mp.exp(z)),
    "swish": lambda z: z / (1 + mp.exp(-z)),
}
"""The smooth activations in arbitrary precision, independent of ours."""


def relative(approximation: np.ndarray, exact: np.ndarray) -> float:
    """Relative l² distance."""
    return float(np.linalg.norm(approximation - exact) / np.linalg.norm(exact))


def slope(widths: np.ndarray, errors: np.ndarray) -> float:
    """Least-squares slope of log error against log width."""
    return float(np.polyfit(np.log(widths), np.log(errors), 1)[0])


def inked(figure: Figure, path: Path) -> list[float]:
    """The share of pixels inside each axes of a saved figure that differ from the most frequent colour around it."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    height, width, _ = pixels.shape
    background = pixels[0, 0]
    shares = []
    for axes in figure.axes:
        box = axes.get_position()
        margin = 0.04 * box.width, 0.04 * box.height  # the frame itself proves nothing
        columns = slice(round((box.x0 + margin[0]) * width), round((box.x1 - margin[0]) * width))
        rows = slice(round((1 - box.y1 + margin[1]) * height), round((1 - box.y0 - margin[1]) * height))
        shares.append(float((np.abs(pixels[rows, columns] - background).max(axis=2) > 40).mean()))
    return shares
