"""Measurements: values of expressions at points, or their means over regions, with their noise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.domains.quadrature.integrals import gauss_rule
from rannpde.domains.region import Region
from rannpde.errors import InputError, finite_array, reject, require
from rannpde.pde.problem.conditions import Data, check_data_points, named_sides, naming
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.reading import read

if TYPE_CHECKING:
    from rannpde.pde.problem.problem import Problem

REGION_NODES, LINE_NODES = 24, 64
"""Gauss nodes along an axis of a region that a value is the mean over, and of a line."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measured values (N,): means of an expression over points (Q, n); point j belongs to value owners[j] with
    shares[j].

    noise : standard deviation (N,), zeros for exact data, or None where it is to be estimated
    loss : "squares", or "huber" where some values may be outliers
    """

    name: str
    expression: Expression
    values: Array
    points: Array
    owners: Array
    shares: Array
    noise: Array | None
    loss: str

    def gathered(self, at_points: Array) -> Array:
        """(N, …): for each value, the mean of ``at_points`` (Q, …) over its points."""
        if len(self.points) == len(self.values):
            return at_points
        result = np.zeros((len(self.values), *at_points.shape[1:]))
        shares = self.shares.reshape(-1, *[1] * (at_points.ndim - 1))
        np.add.at(result, self.owners, shares * at_points)
        return result


def measurement(name: str, data: Data, problem: Problem) -> Measurement:
    """The measurement that a Data condition states; refused where it contradicts itself."""
    key = f"conditions[{name!r}]"
    values = finite_array(f"{key}.values", data.values, 1)
    require(len(values) > 0, f"{key}.values with shape", values.shape, "not empty")
    text = data.quantity
    if data.over is not None:
        require(data.points is None, f"{key}.points", "given", "None where over says what the values are means of")
        points, owners, shares = _spread(key, data.over, len(values), problem)
        inner = re.fullmatch(r"\s*mean\((.*)\)\s*", text, re.DOTALL) if isinstance(text, str) else None
        text = inner[1] if inner else text
    else:
        points = check_data_points(key, data.points, values, problem.domain)
        owners, shares = np.arange(len(values)), np.ones(len(values))
    with naming(f"condition {name!r}"):
        expression = read(text, problem.vocabulary)
    if not expression.jets:
        raise InputError(f"condition {name!r}: the quantity {data.quantity!r} names no field and no unknown")
    noise = None if data.noise is None else _noise(key, data.noise, len(values))
    if noise is not None and (noise == 0).any() and data.over is None:
        _refuse_contradictions(key, points[noise == 0], values[noise == 0])
    return Measurement(name, expression, values, points, owners, shares, noise, data.loss)


def _noise(key: str, noise: Any, count: int) -> Array:
    try:
        given = np.broadcast_to(np.asarray(noise, dtype=float), (count,))
    except (TypeError, ValueError):
        reject(f"{key}.noise", noise, f"a number, or one for each of the {count} values, or None")
    require(bool(np.isfinite(given).all() and (given >= 0).all()), f"{key}.noise", noise, "finite and ≥ 0")
    require(bool((given > 0).all() or (given == 0).all()), f"{key}.noise", noise, "zero for all values or for none")
    return given


def _refuse_contradictions(key: str, points: Array, values: Array) -> None:
    order = np.lexsort(points.T)
    same = (np.diff(points[order], axis=0) == 0).all(axis=1)
    gaps = np.abs(np.diff(values[order]))
    if (gaps[same] > 0).any():
        at = points[order][:-1][same][np.argmax(gaps[same])]
        raise InputError(
            f"{key} has noise 0 but two different values at the point {at.tolist()}; give the noise, or None to have "
            "it estimated"
        )


def _spread(key: str, over: Any, count: int, problem: Problem) -> tuple[Array, Array, Array]:
    """Points, owners and shares of means over regions, one for each value."""
    regions = [over] if _is_region(over) else over
    listed = isinstance(regions, (list, tuple)) and len(regions) == count
    require(listed, f"{key}.over", over, f"a region, or a list of {count}: domains, names of sides, pairs of points")
    parts = [_nodes(f"{key}.over", region, problem) for region in regions]
    points = np.concatenate([part[0] for part in parts])
    inside = problem.domain.contains(points)
    if not inside.all():
        raise InputError(f"{key}.over reaches outside the domain, at {points[~inside][0].tolist()}")
    owners = np.repeat(np.arange(count), [len(part[0]) for part in parts])
    return points, owners, np.concatenate([part[1] for part in parts])


def _is_region(over: Any) -> bool:
    return isinstance(over, (str, Region)) or _is_line(over)


def _is_line(over: Any) -> bool:
    """Whether it is a pair of points; the ends of a pair of lines are no numbers."""
    pair = isinstance(over, (tuple, list, np.ndarray)) and len(over) == 2
    return pair and all(
        isinstance(end, (tuple, list, np.ndarray)) and all(isinstance(z, (int, float, np.number)) for z in end)
        for end in over
    )


def _nodes(key: str, region: Any, problem: Problem) -> tuple[Array, Array]:
    """Points (M, n) and shares (M,), sum 1."""
    dim = problem.domain.dim
    if isinstance(region, str):
        (region,) = named_sides(region, problem.domain, problem.numbers)
    if isinstance(region, Region):
        if isinstance(region, Domain):
            require(region.dim == dim, key, region, f"in the {dim} coordinates of the problem")
        points, weights = gauss_rule(region, REGION_NODES)
        return points, weights / weights.sum()
    require(_is_line(region), key, region, "a domain, the name of a side, or the two ends of a line")
    ends = finite_array(key, np.array(region, dtype=float), 2)
    require(ends.shape[1] == dim, key, region, f"points of {dim} coordinates")
    nodes, weights = np.polynomial.legendre.leggauss(LINE_NODES)
    return ends[0] + np.outer(0.5 * (1 + nodes), ends[1] - ends[0]), 0.5 * weights
