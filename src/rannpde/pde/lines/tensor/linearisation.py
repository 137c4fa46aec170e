"""Linearised rates on a tensor-product basis: the exact product with the Jacobian, and Kronecker sums close to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.lines.tensor.kronecker import CoupledBlock, FieldBlock, KroneckerBlocks
from rannpde.pde.problem.evolution import Component
from rannpde.pde.statement.expression import Jet

if TYPE_CHECKING:
    from rannpde.pde.lines.tensor.system import Orders, TensorSystem


@dataclass(frozen=True, eq=False)
class LinearisedRates:
    """slopes: field → jet → ∂rate/∂jet, a float, or an array (Q_1, …, Q_d) at the nodes of the system."""

    system: TensorSystem
    slopes: Mapping[str, Mapping[Jet, Any]]

    def operator(self) -> KroneckerBlocks:
        """The Jacobian operator: fields decoupled where nothing couples them or eigenvectors are ill-conditioned (by
        transport), all together elsewhere."""
        alone = all(jet.field == name for name, slopes in self.slopes.items() for jet in slopes)
        together = None if alone or not self._same_basis() else self._coupled()
        blocks = (together,) if together is not None else tuple(self._alone(name) for name in self.slopes)
        exact = alone and all(
            isinstance(slope, float) and sum(order > 0 for order in jet.index[1:]) <= 1
            for slopes in self.slopes.values()
            for jet, slope in slopes.items()
        )
        return KroneckerBlocks(blocks, self.product, exact, self.system.tuning)

    def _same_basis(self) -> bool:
        """Whether all fields have the same basis."""
        return all(
            np.array_equal(one.left, other.left)
            for axes in self.system.axes.values()
            for one, other in zip(axes, self.system.first, strict=True)
        )

    def _alone(self, name: str) -> FieldBlock:
        order = self.system.evolution.orders[name]
        slices = tuple(self.system.slices[Component(name, level)] for level in range(order))
        sums = [self._sums(name, Component(name, level)) for level in range(order)]
        return FieldBlock(slices, self.system.shapes[name], sums[0], sums[1] if order == 2 else ())

    def _coupled(self) -> CoupledBlock | None:
        components, links = list(self.system.slices), {}
        for row, component in enumerate(components):
            if self.system.evolution.above(component) is not None:
                links[row, row + 1] = tuple(np.eye(one.rank) / self.system.dim for one in self.system.first)
                continue
            for source in {Component.of(jet): None for jet in self.slopes[component.field]}:
                sums = self._sums(component.field, source)
                links[row, components.index(source)] = sums
        return CoupledBlock.of(tuple(self.system.slices.values()), next(iter(self.system.shapes.values())), links)

    def product(self, change: Array) -> Array:
        """J times a change of the state (n,), real or complex."""
        if np.iscomplexobj(change):
            pair = self.product(np.stack([change.real, change.imag], axis=1))
            return pair[:, 0] + 1j * pair[:, 1]
        system = self.system
        states = change if change.ndim == 2 else change[:, None]
        tensors = {c: states[block].reshape(*system.shapes[c.field], -1) for c, block in system.slices.items()}
        cache: dict[Component, dict[tuple[str, Orders], Array]] = {c: {} for c in system.slices}
        result = np.empty_like(states)
        for component, block in system.slices.items():
            name = component.field
            above = system.evolution.above(component)
            if above is not None:
                result[block] = states[system.slices[above]]
                continue
            total = np.zeros((*system.shapes[name], states.shape[1]))
            inside: Any = 0.0
            for jet, slope in self.slopes[name].items():
                source, orders = Component.of(jet), jet.index[1:]
                if isinstance(slope, float):
                    total = total + slope * system.act(name, jet.field, orders, tensors[source])
                else:
                    inside = inside + slope[..., None] * system.spread(
                        jet.field, orders, tensors[source], cache[source]
                    )
            if isinstance(inside, np.ndarray):
                total = total + system.project(name, inside)
            result[block] = total.reshape(-1, states.shape[1])
        return result if change.ndim == 2 else result[:, 0]

    def _sums(self, name: str, source: Component) -> tuple[Array, ...]:
        """A_axis (r, r) of the jets of a component, coefficients averaged over the other axes; without mixed
        derivatives."""
        system, dim, weights = self.system, self.system.dim, self.system.weights
        axes = system.axes[name]
        sums = [np.zeros((one.rank, one.rank)) for one in axes]
        for jet, slope in self.slopes[name].items():
            orders = jet.index[1:]
            if Component.of(jet) != source or sum(order > 0 for order in orders) > 1:
                continue
            for k, one in enumerate(axes):
                if any(orders) and not orders[k]:
                    continue
                if isinstance(slope, float):
                    small = system.axis_matrix(name, name, k, orders[k])[:, : one.rank]
                    sums[k] += (slope if any(orders) else slope / dim) * small
                    continue
                mean = np.einsum(slope * weights, range(dim), [k]) / np.einsum(weights, range(dim), [k])
                if not any(orders):  # each axis gets its own variation, and all together the mean
                    mean = mean - float((slope * weights).sum() / weights.sum()) * (dim - 1) / dim
                sums[k] += (one.tests * mean) @ one.values(orders[k])[:, : one.rank]
        return tuple(sums)
