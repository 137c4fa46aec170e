"""Test errors against the number M of noisy samples, for widths that stay and widths that grow with M."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from rannpde.domains import Box
from rannpde.errors import choose, positive_integer, require
from rannpde.fitting.fit import fit
from rannpde.network.features import FourierFeatures
from rannpde.studies.cell import MeasurementCell

WIDTH_RULES = ("fixed", "root", "root-log")
_TEST_POINTS = 4000
"""Fresh uniform points without noise."""


@dataclass(frozen=True)
class SampleError(MeasurementCell):
    """Relative L² errors of ridge fits to M samples with noise; here the sizes ``networks`` are the numbers M.

    noise : standard deviation of the noise, in units of the root mean square of the function
    rule : N = width ("fixed"), N = √M ("root") or N = √M log M ("root-log", Rudi and Rosasco's number of features)
    strength : λ = strength · M^(-1/2), their choice of the penalty
    """

    noise: float = 0.1
    rule: str = "root"
    width: int = 64
    scale: float = 4.0
    strength: float = 1e-4
    draws: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("rule", self.rule, dict.fromkeys(WIDTH_RULES))
        require(self.noise >= 0, "noise", self.noise, "≥ 0")
        positive_integer("width", self.width)
        positive_integer("draws", self.draws)

    @property
    def cost(self) -> float:
        """Normal equations of the largest fit."""
        most = max(self.networks)
        return 1e9 + self.draws * most * 4 * float(self.neurons(most)) ** 2

    def neurons(self, samples: int) -> int:
        """N for that many samples."""
        return {"fixed": self.width, "root": ceil(sqrt(samples)), "root-log": ceil(sqrt(samples) * log(samples))}[
            self.rule
        ]

    def measure(self) -> dict[str, list[list[float]]]:
        return {"error": [[self._error(count, draw) for draw in range(self.draws)] for count in self.networks]}

    def _error(self, count: int, draw: int) -> float:
        target = self.target
        rng = np.random.default_rng([self.seed, draw, count])
        points = target.uniform(count, rng)
        values = target.values(points)
        noisy = values + self.noise * float(np.sqrt(np.mean(values**2))) * rng.standard_normal(values.shape)
        features = FourierFeatures.sample(
            width=self.neurons(count), scale=self.scale, rng=rng, domain=Box(np.asarray(target.bounds).tolist())
        )
        network = fit(features, points, noisy, penalty=self.strength / sqrt(count))
        test = target.uniform(_TEST_POINTS, rng)
        exact = target.values(test)
        return float(np.linalg.norm(network(test) - exact) / np.linalg.norm(exact))
