"""Errors of fitted networks in Sobolev norms: least squares on values, and on values and derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rannpde.domains.norms import derivative_indices, evaluate
from rannpde.errors import choose, positive_integer, require
from rannpde.fitting.fit import fit
from rannpde.fitting.sobolev import sobolev_samples
from rannpde.network.features import FourierFeatures
from rannpde.studies.cell import MeasurementCell
from rannpde.studies.true_solutions import TrueSolution
from rannpde.theory.losses import derivatives_of

SOBOLEV_KINDS = ("values", "derivatives")
_TEST_POINTS = 2048
"""Sobol points of the norms: their error is far below the spread of the draws."""
_POINTS_PER_NEURON = 10
"""M = 10 N, as in the paper."""


@dataclass(frozen=True)
class SobolevRate(MeasurementCell):
    """Relative errors in H^p_t H^q_x of Fourier fits at all widths, for several draws.

    kind : "values", or "derivatives": those of the same norm are fitted, too
    """

    kind: str = "values"
    time_order: int = 0
    space_order: int = 0
    scale: float = 2.0
    penalty: float = 1e-10
    draws: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("kind", self.kind, dict.fromkeys(SOBOLEV_KINDS))
        positive_integer("draws", self.draws)
        require(isinstance(self.target, TrueSolution), "target", self.target, "a true solution")

    @property
    def cost(self) -> float:
        """Normal equations of 2N columns."""
        return 1e9 + self.draws * 100 * float(max(self.networks)) ** 3

    def measure(self) -> dict[str, list[list[float]]]:
        return {"error": [[self._error(width, draw) for draw in range(self.draws)] for width in self.networks]}

    def _error(self, width: int, draw: int) -> float:
        solution = self.target
        assert isinstance(solution, TrueSolution)
        domain, exact = solution.domain, solution.exact
        rng = np.random.default_rng([self.seed, draw, width])
        features = FourierFeatures.sample(width=width, scale=self.scale, rng=rng, domain=domain)
        points = domain.sample(_POINTS_PER_NEURON * width, rng=rng)
        orders = {"time_order": self.time_order, "space_order": self.space_order}
        values, derivatives = sobolev_samples(exact, points, **orders)
        given = derivatives if self.kind == "derivatives" and derivatives else None
        network = fit(features, points, values, penalty=self.penalty, derivatives=given)
        test = domain.sample(_TEST_POINTS, rng=rng, method="sobol")
        wrong = size = 0.0
        for index, approximate in derivatives_of(network, test, derivative_indices(domain, **orders)).items():
            true = evaluate(exact, test, index)
            wrong += float(np.square(approximate - true).sum())
            size += float(np.square(true).sum())
        return float(np.sqrt(wrong / size))
