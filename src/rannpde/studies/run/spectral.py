"""Errors by frequency: a sum of plane waves in octaves, fitted with several laws of the hidden weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains import Box
from rannpde.errors import choose, positive_integer
from rannpde.fitting.adaptive import PASSES, adaptive_features
from rannpde.fitting.fit import fit
from rannpde.network.features import FourierFeatures
from rannpde.network.laws import HeavyTailed
from rannpde.studies.cell import MeasurementCell
from rannpde.studies.target import PlainTarget

_LAWS = ("pi", "gaussian", "adapted")
GRID = 96
"""Points a side of the grid on which errors are transformed: six times the highest wave number."""
BANDS = 4
"""Octaves: wave numbers 1, 2–3, 4–7, 8–15, whose disc holds about 700 modes: fewer than 512 neurons have columns."""
WAVES = 3
"""Plane waves of each octave."""
POINTS_PER_COLUMN = 6
"""Training points for each column, Fourier features having two a neuron."""


@dataclass(frozen=True)
class PlaneWaves(PlainTarget):
    """Σ over octaves of WAVES plane waves cos(2π κ·z + φ) of equal size on (0, 1)², κ integer: d = 1 and time."""

    space_dim: int = 1

    @property
    def bounds(self) -> Array:
        return np.array([[0.0, 1.0], [0.0, 1.0]])

    def values(self, points: Array) -> Array:
        waves, phases = _waves()
        return np.asarray(np.cos(2 * pi * points @ waves.T + phases).sum(axis=1))


@lru_cache(maxsize=1)
def _waves() -> tuple[Array, Array]:
    """Wave vectors (BANDS · WAVES, 2) and phases, fixed."""
    rng = np.random.default_rng(2017)
    waves: list[tuple[int, int]] = []
    for band in range(BANDS):
        choices = [
            (a, b)
            for a in range(2 ** (band + 1))
            for b in range(-(2 ** (band + 1)) + 1, 2 ** (band + 1))
            if 2**band <= (a * a + b * b) ** 0.5 < 2 ** (band + 1) and (a, b) > (0, 0)
        ]
        waves += [choices[k] for k in rng.choice(len(choices), WAVES, replace=False)]
    return np.array(waves, dtype=float), rng.uniform(0, 2 * pi, len(waves))


@dataclass(frozen=True)
class BandErrors(MeasurementCell):
    """Relative errors by octave of ridge fits: quantities "band 0", …, and "error" for all.

    law : "pi" (π of Theorem 1 times ``scale``, Fourier features), "gaussian" (Fourier features of that scale), or
        "adapted" (tanh neurons placed where the data vary)
    """

    law: str = "gaussian"
    scale: float = 10.0
    penalty: float = 1e-8
    draws: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("law", self.law, dict.fromkeys(_LAWS))
        positive_integer("draws", self.draws)

    @property
    def cost(self) -> float:
        """Dense normal equations; adapted neurons are placed by several fits."""
        fits = 1 + 3 * PASSES if self.law == "adapted" else 1
        return 1e9 + fits * self.draws * 20 * float(max(self.networks)) ** 3

    def measure(self) -> dict[str, list[list[float]]]:
        names = ["error", *(f"band {band}" for band in range(BANDS))]
        rows: dict[str, list[list[float]]] = {name: [] for name in names}
        for width in self.networks:
            errors = [self._errors(width, draw) for draw in range(self.draws)]
            for k, name in enumerate(names):
                rows[name].append([of_draw[k] for of_draw in errors])
        return rows

    def _errors(self, width: int, draw: int) -> list[float]:
        rng = np.random.default_rng([self.seed, draw, width])
        points = rng.random((POINTS_PER_COLUMN * 2 * width, 2))
        values = self.target.values(points)
        network = fit(self._features(width, points, values, rng), points, values, penalty=self.penalty)
        axis = np.arange(GRID) / GRID
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        error = (network(grid) - self.target.values(grid)).reshape(GRID, GRID)
        spectrum = np.abs(np.fft.fft2(error)) ** 2
        number = np.fft.fftfreq(GRID, 1 / GRID)
        length = np.hypot(*np.meshgrid(number, number, indexing="ij"))
        size = 0.5 * WAVES * GRID**4  # of each octave: WAVES waves of mean square 1/2, by Parseval
        bands = [
            float(np.sqrt(spectrum[(length >= 2**b) & (length < 2 ** (b + 1))].sum() / size)) for b in range(BANDS)
        ]
        return [float(np.sqrt(spectrum.sum() / (size * BANDS))), *bands]

    def _features(self, width: int, points: Array, values: Array, rng: np.random.Generator) -> Any:
        if self.law == "adapted":
            return adaptive_features(points, values, 2 * width, rng=rng)  # as many columns as Fourier features have
        if self.law == "gaussian":
            return FourierFeatures.sample(width=width, scale=self.scale, rng=rng, domain=Box([(0, 1)] * 2))
        weights, _ = HeavyTailed(1.0, 1.0).sample(width, 2, rng=rng)
        centre = np.full(2, 0.5)
        return FourierFeatures(self.scale * weights, rng.uniform(0, 2 * pi, width), centre, centre)
