"""Losses of unbiased networks of all widths from one pool of neurons: one evaluation of the widest serves all.

The network of the first N neurons of a pool is again a network of Theorem 1. Its derivatives at fixed points are sums
over the first N columns, so that one product of the widest layer with a matrix of K columns gives those of K widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.domains.region import Region
from rannpde.network.features import RandomFeatures
from rannpde.network.network import Network
from rannpde.studies.true_solutions import TrueSolution
from rannpde.theory.losses import CACHED_BYTES, loss_rule


@dataclass(frozen=True)
class TabulatedFunction:
    """A function that is known, with derivatives (M, outputs), at one set of points: all that a fixed rule asks for."""

    table: dict[MultiIndex, Array]

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """A derivative at the points of the table."""
        values = self.table[derivative]
        assert len(values) == len(points)
        return values


class PooledLosses:
    """√J_PDE, J_ic and J_bc of networks at fixed points; the solution's values there are computed once."""

    def __init__(self, solution: TrueSolution) -> None:
        self._solution = solution
        self._inner = loss_rule(solution.domain)
        rims: dict[str, list[Region]] = {
            "initial": [solution.domain.initial],
            "boundary": list(solution.domain.sides.values()),
        }
        self._rims = {
            name: [(*rule, solution.values(rule[0]).reshape(len(rule[0]), -1)) for rule in map(loss_rule, regions)]
            for name, regions in rims.items()
        }
        points = self._inner[0]
        system = solution.system
        targets = [{i: u.derivative(points, i) for i in system.indices} for u in solution.functions]
        exact = TabulatedFunction({i: np.stack([one[i] for one in targets], axis=1) for i in system.indices})
        self._exact_residuals = system.residuals(exact, points)

    def of(self, pool: Sequence[Network], widths: Sequence[int]) -> list[dict[str, float]]:
        """For each width: "error" = √J_PDE, "difference" = ∫ |𝓝(u_N) - 𝓝(u)|², "initial", "boundary".

        "equation 1", … are the losses of the equations (J¹, J² of a flow), "difference 1" that of the first alone.
        """
        system, (points, weights) = self._solution.system, self._inner
        results = []
        for network in nested_networks(pool, widths, points, system.indices):
            residuals = system.residuals(network, points)
            losses, differences = (weights @ np.square(gap) for gap in (residuals, residuals - self._exact_residuals))
            results.append({"error": float(losses.sum()) ** 0.5, "difference": float(differences.sum())})
            results[-1] |= {f"equation {k}": float(loss) for k, loss in enumerate(losses, 1)}
            results[-1]["difference 1"] = float(differences[0])
        for name, rules in self._rims.items():
            total = np.zeros(len(widths))
            for nodes, masses, exact in rules:
                index = (0,) * nodes.shape[1]
                values = [one.table[index] for one in nested_networks(pool, widths, nodes, [index])]
                total += [float(masses @ np.square(value - exact).sum(axis=1)) for value in values]
            for one, loss in zip(results, total, strict=True):
                one[name] = float(loss)
        return results


def nested_networks(
    pool: Sequence[Network], widths: Sequence[int], points: Array, indices: Sequence[MultiIndex]
) -> list[TabulatedFunction]:
    """The networks of the first N neurons of every field's pool, N in widths, tabulated at the points."""
    tables = [{index: np.empty((len(points), len(pool))) for index in indices} for _ in widths]
    for field, network in enumerate(pool):
        features, coefficients = network.features, network.coefficients
        assert isinstance(features, RandomFeatures)
        # column k holds the weights of width k, which are W/N times those of the pool for the first N neurons
        columns = np.stack([np.where(np.arange(features.width) < n, features.width / n, 0.0) for n in widths], axis=1)
        columns *= coefficients[:, None]
        rows = block_rows(features.columns, CACHED_BYTES)
        for block in row_blocks(len(points), rows):
            for order in {sum(index) for index in indices}:
                design = features.ridge(points[block], order)
                for index in (index for index in indices if sum(index) == order):
                    values = design @ (features.factor(index)[:, None] * columns)
                    for table, column in zip(tables, values.T, strict=True):
                        table[index][block, field] = column
    return [TabulatedFunction(table) for table in tables]
