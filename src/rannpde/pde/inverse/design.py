"""sensitivity(): optimal design, the points at which measurements determine the unknowns best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import choose, finite_points, positive_integer, require
from rannpde.io import PathLike
from rannpde.pde.forward_model import Response
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.problem.problem import Problem
from rannpde.rounding import ROOT_ROUNDED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CANDIDATES = 2000
"""Points among which sensors are chosen."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitivities of the fields to the unknown numbers at given values: a map for placing sensors.

    values : name → number at which they were computed; response : fields with their derivatives by all unknowns
    """

    problem: Problem
    unknowns: Unknowns
    values: dict[str, float]
    response: Response

    def __call__(self, points: Array, field: str | None = None) -> dict[str, Array]:
        """Unknown → θ ∂u/∂θ (M,) at points: the change of a field with a relative change of the unknown."""
        points = finite_points("points", points, self.problem.domain.dim)
        slopes = self._slopes(points, field)
        return {name: slopes[:, k] for k, name in enumerate(self.values)}

    def _slopes(self, points: Array, field: str | None) -> Array:
        fields = self.problem.fields
        number = 0 if field is None else fields.index(choose("field", field, {name: name for name in fields}))
        _, derivatives = self.response.jets(points, (0,) * points.shape[1])
        sizes = [abs(value) or 1.0 for value in self.values.values()]
        return derivatives[:, [self.unknowns.slices[name].start for name in self.values], number] * sizes

    def best(self, count: int, field: str | None = None, candidates: Array | None = None) -> Array:
        """The ``count`` points (count, n) that together determine the unknowns best, chosen greedily.

        Each maximises the determinant of the information (D-optimal); candidates (M, n): where sensors may stand, the
        whole domain by default.
        """
        points = self.problem.domain.sample(CANDIDATES, rng=0) if candidates is None else candidates
        points = finite_points("candidates", points, self.problem.domain.dim)
        require(positive_integer("count", count) <= len(points), "count", count, f"at most {len(points)}")
        slopes = self._slopes(points, field)
        slopes = slopes / np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
        inverse = np.eye(slopes.shape[1]) / ROOT_ROUNDED  # a wide prior
        chosen: list[int] = []
        for _ in range(count):
            gains = np.einsum("ij,jk,ik->i", slopes, inverse, slopes)
            gains[chosen] = -1.0
            best = int(np.argmax(gains))
            chosen.append(best)
            direction = inverse @ slopes[best]
            inverse -= np.outer(direction, direction) / (1.0 + slopes[best] @ direction)
        return points[chosen]

    def expected(self, points: Array, noise: float, field: str | None = None) -> dict[str, float]:
        """Unknown → relative standard deviation that sensors with that noise at these points would leave."""
        slopes = self._slopes(finite_points("points", points, self.problem.domain.dim), field) / noise
        _, singular, right = np.linalg.svd(slopes, full_matrices=False)
        if len(singular) < len(self.values) or singular[-1] < 1e-12 * singular[0]:
            return dict.fromkeys(self.values, np.inf)
        variances = np.square(right.T / singular).sum(axis=1)
        return dict(zip(self.values, np.sqrt(variances).tolist(), strict=True))

    def plot(self, path: PathLike | None = None) -> Figure:
        """A map for every unknown, with the best points for sensors."""
        from rannpde.plotting.identified import plot_sensitivity  # pictures load when they are wanted

        return plot_sensitivity(self, path)
