"""Uncertainty propagation: moments and Sobol indices of polynomials in random parameters, exact, and their quantiles.

The interpolation is Σ_ν s_ν Π_j h_{ν_j}(y_j). With independent parameters, expectations of products are products of
expectations in one parameter, so that mean, variance and the variances of conditional expectations follow from the
surpluses s_ν and the one-dimensional moments E[h_k] and E[h_k h_l] without sampling (Sobol 1993, Sudret 2008).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.errors import (
    InputError,
    choose,
    finite_array,
    is_real,
    positive_integer,
    probability,
    random_generator,
    require,
)
from rannpde.pde.family.nodes import hierarchical
from rannpde.pde.family.polynomial import ParameterPolynomial
from rannpde.pde.family.quadrature import law_rule, law_within
from rannpde.pde.solution import Report
from rannpde.pde.tolerance import CONFIDENCE

QUANTILE_DRAWS = 2**14
"""Quasi-random values of the parameters for quantiles, for which polynomials have no formula; their error is 1e-3 of
the spread, measured on normal and on bimodal quantities."""
QUANTILE_BLOCK = 2**22
"""Sampled values that are in memory at once."""


@dataclass(frozen=True, eq=False)
class Propagated:
    """A quantity of random parameters: a number or, for fields at points, arrays of the shape of the quantity.

    mean, std : moments of the polynomial, exact up to rounding
    first : parameter → first-order Sobol index, the share of the variance that it explains alone
    total : parameter → total Sobol index, the share of the variance that it explains alone or together with others
    error : largest error of the quantity; the errors of mean and std are at most twice as large
    """

    polynomial: ParameterPolynomial
    laws: Mapping[str, Any]
    mean: Any
    std: Any
    first: Mapping[str, Any]
    total: Mapping[str, Any]
    error: float
    seed: int

    def quantiles(self, probabilities: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles (k, …) at these probabilities, from a quasi-random sample of the polynomial."""
        levels = finite_array("probabilities", np.atleast_1d(probabilities), 1)
        inside = len(levels) > 0 and bool(((levels > 0) & (levels < 1)).all())
        require(inside, "probabilities", probabilities, "between 0 and 1", "0.95 means 95 %")
        weights = self.polynomial.grid.weights(self._draws(QUANTILE_DRAWS))
        flat = self.polynomial.values.reshape(len(self.polynomial.values), -1)
        step = max(1, QUANTILE_BLOCK // QUANTILE_DRAWS)
        blocks = [np.quantile(weights @ flat[:, k : k + step], levels, axis=0) for k in range(0, flat.shape[1], step)]
        return np.concatenate(blocks, axis=1).reshape(len(levels), *self.polynomial.values.shape[1:])

    def band(self, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval that holds the quantity with that probability."""
        confidence = probability("confidence", confidence)
        lower, upper = self.quantiles(((1 - confidence) / 2, (1 + confidence) / 2))
        return lower, upper

    def sample(self, count: int, rng: Rng = 0) -> Array:
        """Independent random values (count, …) of the quantity."""
        size = (positive_integer("count", count), len(self.polynomial.ranges))
        uniform = random_generator("rng", rng).uniform(size=size)
        weights = self.polynomial.grid.weights(self._reduced(uniform))
        return np.asarray(np.tensordot(weights, self.polynomial.values, axes=1))

    def _draws(self, count: int) -> Array:
        from scipy.stats import qmc  # loading it takes half a second

        sequence = qmc.Sobol(len(self.polynomial.ranges), rng=np.random.default_rng(self.seed))
        return self._reduced(sequence.random(count))

    def _reduced(self, uniform: Array) -> Array:
        columns = []
        for (name, span), share in zip(self.polynomial.ranges.items(), uniform.T, strict=True):
            law = self.laws[name]
            value = np.full(len(share), law) if is_real(law) else law.ppf(share)
            columns.append(span.reduced(np.clip(value, span.lower, span.upper)))
        return np.stack(columns, axis=1)

    def report(self) -> Report:
        """Mean, deviation, central interval and Sobol indices; of an array, the largest over its entries."""
        lower, upper = self.band()
        lines = []
        if np.ndim(self.mean) == 0:
            lines.append(f"mean {self.mean:.8g}, standard deviation {self.std:.4g} (error of values {self.error:.1e})")
            lines.append(f"  95 % in [{float(lower):.6g}, {float(upper):.6g}]")
        else:
            lines.append(f"{np.size(self.mean)} values, largest standard deviation {np.max(self.std):.4g}")
        for name in self.first:
            first, total = (float(np.nanmax(table[name])) for table in (self.first, self.total))
            lines.append(f"  {name}: Sobol index {first:.4f}, total {total:.4f}")
        return Report("\n".join(lines))


def propagate(polynomial: ParameterPolynomial, laws: Mapping[str, Any], rng: Rng = 0) -> Propagated:
    """Moments and Sobol indices of a polynomial in independent random parameters.

    laws : parameter → a frozen distribution of ``scipy.stats`` within its range, or a number that fixes it

    >>> from scipy import stats
    >>> from rannpde.pde.family.nodes import SparseGrid
    >>> from rannpde.pde.problem.ranges import Range
    >>> grid = SparseGrid(((0,), (1,), (2,)))
    >>> square = ParameterPolynomial({"a": Range(-1, 1)}, grid, grid.nodes[:, 0] ** 2, 0.0)
    >>> moments = propagate(square, {"a": stats.uniform(-1, 2)})
    >>> round(moments.mean, 12), round(moments.std**2, 12)  # 1/3 and 4/45
    (0.333333333333, 0.088888888889)
    """
    require(isinstance(laws, Mapping), "laws", laws, "a mapping of parameters to distributions of scipy.stats")
    for name in laws:
        choose("the parameter", name, polynomial.ranges)
    checked: dict[str, Any] = {}
    for name, span in polynomial.ranges.items():
        if name not in laws:
            raise InputError(f"the parameter {name!r} has no law; give a distribution of scipy.stats, or a number")
        if is_real(laws[name]):
            require(span.contains(laws[name]), name, laws[name], f"from {span.lower:g} to {span.upper:g}")
            checked[name] = float(laws[name])
        else:
            checked[name] = law_within(name, laws[name], span)
    grid = polynomial.grid
    firsts, seconds = [], []
    for axis, (name, span) in enumerate(polynomial.ranges.items()):
        law = checked[name]
        nodes, weights = (span.reduced([law]), np.ones(1)) if is_real(law) else law_rule(law, span)
        table = hierarchical(int(grid.levels[:, axis].max()), nodes)[:, grid.levels[:, axis]]
        firsts.append(weights @ table)
        seconds.append(table.T @ (weights[:, None] * table))
    surpluses = np.tensordot(grid.surplus_matrix, polynomial.values, axes=1)
    flat = surpluses.reshape(len(surpluses), -1)
    mean = np.prod(firsts, axis=0) @ flat
    flat = flat.copy()
    flat[0] -= mean  # H_0 = 1: the centred quantity has no cancellation in its second moments
    variance = np.maximum(_second_moment(flat, firsts, seconds, set(range(len(firsts)))), 0.0)
    shape = polynomial.values.shape[1:]
    first, total = {}, {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for axis, name in enumerate(polynomial.ranges):
            if is_real(checked[name]):
                continue
            alone = _second_moment(flat, firsts, seconds, {axis})
            without = _second_moment(flat, firsts, seconds, set(range(len(firsts))) - {axis})
            first[name] = _number_or_array(alone / variance, shape)
            total[name] = _number_or_array(1 - without / variance, shape)
    seed = int(random_generator("rng", rng).integers(2**32))
    return Propagated(
        polynomial, checked, _number_or_array(mean, shape), _number_or_array(np.sqrt(variance), shape), first, total,
        polynomial.error, seed,
    )  # fmt: skip


def _second_moment(surpluses: Array, firsts: Sequence[Array], seconds: Sequence[Array], known: set[int]) -> Array:
    """E[E[q | known parameters]²] of the quantity with surpluses (n, m): (m,)."""
    matrix = np.ones_like(seconds[0])
    for axis, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        matrix = matrix * (second if axis in known else np.outer(first, first))
    return np.asarray(np.einsum("im,ij,jm->m", surpluses, matrix, surpluses, optimize=True))


def _number_or_array(value: Array, shape: tuple[int, ...]) -> Any:
    return float(value[0]) if shape == () else value.reshape(shape)
