"""A network as a function in plain NumPy: this file, with the numbers added, is what ``to_numpy(path)`` writes.

The function is a sum of features on boxes. In the box c that a point z lies in, s = (z - centre_c) / halfwidth_c, and

    u(z) = Σ_d P_d(s_1) Σ_j coefficients[c, d, j] column_j(s),      column_j = σ(w_j·s + b_j), and 1 at the end,

with Legendre polynomials P_d of the first coordinate, which is then time; d = 0 alone where there are none.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from rannpde.network.profiles import ACTIVATION_PROFILES

POINTS_AT_ONCE = 4096
"""Points whose columns are held in memory at one time."""
KEYS = ("boxes", "centre", "halfwidth", "layer", "weights", "biases", "coefficients")


class PlainFunction:
    """Call it with points (M, n); the values are (M,) for a single output, (M, outputs) otherwise.

    boxes (C, n, 2), centre (C, n), halfwidth (C, n), layer (C,) : boxes, their scaling, and the hidden layer of each
    weights (L, n, N), biases (L, N) : hidden layers; activation : "tanh" …, or "fourier" for cosines and sines
    coefficients (C, D, J, outputs) : J = N + 1 columns, 2 N + 1 of "fourier"
    """

    def __init__(self, activation: str, single: bool, **arrays: Any) -> None:
        self.activation, self.single = activation, single
        self.arrays = {key: np.asarray(arrays[key], dtype=int if key == "layer" else float) for key in KEYS}

    @property
    def dim(self) -> int:
        """Number of coordinates n."""
        return int(self.arrays["centre"].shape[1])

    @property
    def in_time(self) -> bool:
        """Whether the first coordinate enters by polynomials."""
        return bool(self.arrays["coefficients"].shape[1] > 1)

    def __call__(self, points: Any) -> Any:
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points: Any, index: Any) -> Any:
        """The partial derivative of a multi-index, such as (0, 1), at points (M, n)."""
        points = np.asarray(points, dtype=float)
        if points.ndim != 2 or points.shape[1] != self.dim or len(index) != self.dim:
            raise ValueError(f"points must have shape (M, {self.dim}) and the index {self.dim} entries")
        values = np.empty((len(points), self.arrays["coefficients"].shape[3]))
        for start in range(0, len(points), POINTS_AT_ONCE):
            rows = slice(start, start + POINTS_AT_ONCE)
            home = self.locate(points[rows])
            for number in np.unique(home):
                chosen = np.flatnonzero(home == number)
                values[start + chosen] = self.in_box(int(number), points[rows][chosen], tuple(index))
        return values[:, 0] if self.single else values

    def locate(self, points: Any) -> Any:
        """The box of each point (M,), the nearest one where it lies in none."""
        lower, upper = np.moveaxis(self.arrays["boxes"], 2, 0)
        if len(lower) == 1:
            return np.zeros(len(points), dtype=int)
        away = np.maximum(np.maximum(lower - points[:, None], points[:, None] - upper), 0.0)
        return np.square(away).sum(axis=2).argmin(axis=1)

    def in_box(self, number: int, points: Any, index: tuple[int, ...]) -> Any:
        """A derivative (M, outputs) of the function of one box."""
        parts = self.arrays
        layer, half = parts["layer"][number], parts["halfwidth"][number]
        weights, coefficients = parts["weights"][layer], parts["coefficients"][number]
        scaled = (points - parts["centre"][number]) / half
        spatial = (0, *index[1:]) if self.in_time else index
        order = sum(spatial)
        phase = scaled @ weights + parts["biases"][layer]
        names = ("cos", "sin") if self.activation == "fourier" else (self.activation,)
        factor = np.prod((weights / half[:, None]) ** np.array(spatial)[:, None], axis=0)
        columns = [ACTIVATION_PROFILES[name](phase, order) * factor for name in names]
        columns.append(np.full((len(points), 1), 0.0 if order else 1.0))
        table = np.concatenate(columns, axis=1)
        if not self.in_time:
            return table @ coefficients[0]
        degree = len(coefficients) - 1
        basis = legendre.legvander(scaled[:, 0], degree)
        if index[0]:
            derived = legendre.legder(np.eye(degree + 1), index[0])
            basis = basis[:, : len(derived)] @ derived / half[0] ** index[0]
        return np.einsum("md,mdk->mk", basis, np.einsum("mj,djk->mdk", table, coefficients))

    def to_text(self) -> str:
        """The numbers as text that ``from_text`` reads."""
        buffer = io.BytesIO()
        parts: dict[str, Any] = {"activation": self.activation, "single": self.single, **self.arrays}
        np.savez_compressed(buffer, **parts)
        return base64.b64encode(buffer.getvalue()).decode()

    @classmethod
    def from_text(cls, text: str) -> PlainFunction:
        """The function whose numbers ``to_text`` wrote."""
        with np.load(io.BytesIO(base64.b64decode(text))) as data:
            return cls(str(data["activation"]), bool(data["single"]), **{key: data[key] for key in KEYS})
