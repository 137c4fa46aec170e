"""Fits in Sobolev norms: values and derivatives at the points together, the same closed form.

    minimise (1/M) Σ_i Σ_α ω_α |∂^α u(z_i) - y_α,i|² + λ‖W‖²

over the output weights W, with α = 0 and ω_0 = 1 for the values. With all α of H^p_t H^q_x and weights 1 the sum is the
Monte-Carlo estimate of the squared norm of that space, in which Theorem 1 measures errors.

For Fourier features every ∂^α permutes cosines and sines and multiplies by Π_l w_l^α_l, so that all derivatives share
one Gram matrix, and with the NUFFT the cost hardly depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.domains.norms import Function, evaluate
from rannpde.errors import finite_array, is_real, require
from rannpde.fitting.normal import NormalEquations
from rannpde.fitting.nufft import normal_sums
from rannpde.fitting.orthogonal import OrthogonalEquations
from rannpde.network.features import FourierFeatures, multi_index

if TYPE_CHECKING:
    from rannpde.fitting.fit import FitEquations, RandomLayer

Derivatives = Mapping[MultiIndex, Array | tuple[Array, float]]
"""Multi-index → values (M,) or (M, outputs), or a pair of them and the weight ω > 0."""


@dataclass(frozen=True, eq=False)
class DerivativeData:
    """∂^index u ≈ values (M, outputs) at all points, counted ``weight`` times."""

    index: MultiIndex
    values: Array
    weight: float


def sobolev_samples(
    function: Function, points: Array, *, time_order: int = 0, space_order: int = 1
) -> tuple[Array, dict[MultiIndex, Array]]:
    """Values and all derivatives of H^p_t H^q_x of a function at the points: what ``fit(…, derivatives=…)`` takes.

    points (M, n), time first; p = time_order, q = space_order; without time leave time_order at 0

    >>> wave = {(0, 0): lambda z: np.sin(z[:, 1]), (0, 1): lambda z: np.cos(z[:, 1])}
    >>> values, derivatives = sobolev_samples(wave, np.zeros((3, 2)))
    >>> sorted(derivatives), values.shape
    ([(0, 1)], (3, 1))
    """
    for name, order in (("time_order", time_order), ("space_order", space_order)):
        require(isinstance(order, (int, np.integer)) and order >= 0, name, order, "a whole number ≥ 0")
    n = np.shape(points)[1]
    space = [beta for beta in product(range(space_order + 1), repeat=n - 1) if sum(beta) <= space_order]
    derivatives = {(k, *beta): evaluate(function, points, (k, *beta)) for k in range(time_order + 1) for beta in space}
    return derivatives.pop((0,) * n), derivatives


def checked_derivatives(derivatives: Any, dim: int, shape: tuple[int, ...]) -> list[DerivativeData]:
    """The data of each derivative as columns, refused unless finite and of the shape of the values."""
    mapping = isinstance(derivatives, Mapping) and len(derivatives) > 0
    remedy = "write derivatives={(1, 0): values_of_u_t, (0, 1): values_of_u_x}"
    require(mapping, "derivatives", derivatives, "a table from multi-indices to values", remedy)
    checked = []
    for key, entry in derivatives.items():
        index = multi_index(key, dim)
        require(sum(index) > 0, "a multi-index of derivatives", index, "of order ≥ 1", "the values are given as values")
        values, weight = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1.0)
        require(is_real(weight) and 0 < weight < np.inf, f"weight of derivative {index}", weight, "a number > 0")
        array = finite_array(f"values of derivative {index}", values, (1, 2))
        same = array.reshape(len(array), -1).shape == (shape[0], int(np.prod(shape[1:], dtype=int)))
        require(same, f"values of derivative {index} with shape", array.shape, f"of shape {shape}, as the values")
        checked.append(DerivativeData(index, array.reshape(len(array), -1), float(weight)))
    return checked


def add_derivatives(
    equations: FitEquations,
    features: RandomLayer,
    points: Array,
    data: list[DerivativeData],
    weights: Array | None,
    unit: float,
    shared: Array | None,
) -> None:
    """Add the rows of all derivatives; the number of rows that the penalty refers to stays that of the points.

    shared : Σ φφᵀ of the same points where it is known (Fourier features), its lower triangle
    """
    count = equations.count
    for one in data:
        if shared is not None and isinstance(features, FourierFeatures) and isinstance(equations, NormalEquations):
            _add_shared(equations, features, points, one, weights, unit, shared)
        else:
            _add_rows(equations, features, points, one, weights, unit)
    equations.count = count


def _add_rows(
    equations: FitEquations,
    features: RandomLayer,
    points: Array,
    data: DerivativeData,
    weights: Array | None,
    unit: float,
) -> None:
    orthogonal = isinstance(equations, OrthogonalEquations)
    rows = max(4 * features.columns, 4096) if orthogonal else block_rows(features.columns)
    for block in row_blocks(len(points), rows):
        design = np.ascontiguousarray(features(points[block], data.index))
        scale = np.full(len(design), data.weight) if weights is None else data.weight * weights[block]
        equations.add(design, data.values[block] / unit, scale)


def _add_shared(
    equations: NormalEquations,
    features: FourierFeatures,
    points: Array,
    data: DerivativeData,
    weights: Array | None,
    unit: float,
    shared: Array,
) -> None:
    """Σ φ_α φ_αᵀ = S (Σ φφᵀ) Sᵀ, where S permutes and scales; Σ φ_α y by one more transform."""
    permutation, scale = _derivative_columns(features, data.index)
    full = np.tril(shared) + np.tril(shared, -1).T
    gram = full[np.ix_(permutation, permutation)] * np.outer(scale, scale)
    values = data.values / unit
    _, moment = normal_sums(features, points, values, weights, only_moment=True)
    energy = (np.square(values) * (1.0 if weights is None else weights[:, None])).sum(axis=0)
    equations.add_sums(
        data.weight * np.tril(gram), data.weight * scale[:, None] * moment[permutation], data.weight * energy, 0.0
    )


def _derivative_columns(features: FourierFeatures, index: MultiIndex) -> tuple[Array, Array]:
    """Column c of ∂^α φ is scale_c times column permutation_c of φ: cos → -sin → -cos → sin with every derivative."""
    width, order = features.width, sum(index)
    cos, sin = np.arange(width), width + np.arange(width)
    permutation = np.concatenate([sin, cos] if order % 2 else [cos, sin])
    signs = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))[order % 4]
    scale = np.repeat(signs, width) * features.factor(index)[: 2 * width]
    if features.constant:
        return np.append(permutation, 2 * width), np.append(scale, 0.0)
    return permutation, scale
