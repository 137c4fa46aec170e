"""Integrals over domains and sides, each with an estimate of its error.

Low dimension: tensor Gauss rules, refined until two successive ones agree. High dimension: independent scrambled Sobol
sequences (or plain Monte-Carlo), whose spread gives a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypedDict

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.region import Region
from rannpde.domains.streams import unit_stream
from rannpde.errors import choose, finite_array, positive_integer, reject, require

Integrand = Callable[[Array], Array]
RuleName = Literal["auto", "gauss", "sobol", "uniform"]

GAUSS_DIMENSIONS = 3
"""Most independent coordinates for which "auto" takes a tensor rule."""
FIRST_NODES = 16
"""Nodes of an axis in the coarsest rule: enough that two rules do not agree by missing the same feature."""
FIRST_CUT = 8
"""Nodes of an axis in the coarsest rule of a domain that is cut out of others."""
PANEL_NODES = 64
"""Nodes of a panel at most: raising the order is best for analytic functions, halving panels for rough ones."""
REPLICATES = 16
"""Independent sequences behind a standard error, whose own relative error is then about 1/√30."""
DEFAULT_TOLERANCE = {"gauss": 1e-8, "sobol": 1e-3, "uniform": 1e-3}
"""Relative error at which refinement stops when none is asked for."""
LARGEST_GAUSS_RULE = 2**24
"""Nodes that one rule may have: their coordinates fill a gigabyte in eight dimensions."""


@dataclass(frozen=True)
class Estimate:
    """A computed number with its uncertainty. ``float(estimate)`` is its value.

    value, error : numbers, or arrays (outputs,) when asked for each output. ``error`` is the difference of two Gauss
        rules, or one standard error of the mean of independent replicates
    points : evaluations of the function behind the value
    rule : what was used, e.g. ``gauss 32 × 32`` or ``sobol 16 × 1024``

    A value whose error exceeds the tolerance asked for has used up its budget of points.
    """

    value: float | Array
    error: float | Array
    points: int
    rule: str

    def __float__(self) -> float:
        return float(np.asarray(self.value).item())


class Options(TypedDict, total=False):
    """How to integrate: the keywords of ``integrate`` that every norm passes on."""

    rule: RuleName
    tolerance: float | None
    budget: int
    rng: Rng


def gauss_rule(region: Region, count: int, *, panels: int = 1) -> tuple[Array, Array]:
    """Points (M, n) and weights (M,) of the tensor Gauss rule with count × panels nodes along each axis of the region.

    Boxes and flat sides: Gauss–Legendre with ``count`` nodes on each of ``panels`` equal panels, exact for polynomials
    of degree 2·count - 1 in each coordinate. Balls and spheres: the matching rule in polar coordinates, trapezoidal in
    the angle and Gauss–Jacobi in r² and in latitudes, spectrally accurate for smooth functions.

    >>> from rannpde.domains import Interval
    >>> points, weights = gauss_rule(Interval(0, 1), 3)
    >>> round(float(weights @ points[:, 0] ** 5), 15) == round(1 / 6, 15)
    True
    """
    count, panels = positive_integer("count", count), positive_integer("panels", panels)
    size = (count * panels) ** checked_region(region).extent
    require(
        size <= LARGEST_GAUSS_RULE, "points of the rule", size, f"≤ {LARGEST_GAUSS_RULE}", "take fewer, or Sobol points"
    )
    return region.rule(count, panels)


def integrate(
    function: Integrand,
    region: Region,
    *,
    rule: RuleName = "auto",
    tolerance: float | None = None,
    budget: int = 2**18,
    rng: Rng = None,
) -> Estimate:
    """∫ function over a domain or side; values of shape (M,) give a number, (M, K) an array of K numbers.

    rule : ``gauss``, ``sobol``, ``uniform`` (plain Monte-Carlo), or ``auto``: Gauss for at most 3 independent
        coordinates, Sobol above
    tolerance : refine until the error of every integral is below this multiple of its size (1e-8 for Gauss, 1e-3
        otherwise) or the next step would take more than ``budget`` points
    rng : scrambles the Sobol sequences; Gauss rules do not use it

    >>> from rannpde.domains import Ball
    >>> second_moment = integrate(lambda points: (points**2).sum(axis=1), Ball((0, 0), 1))
    >>> abs(float(second_moment) - np.pi / 2) < 1e-14, second_moment.rule
    (True, 'gauss 32 × 32')
    """
    if rule == "auto":
        low = checked_region(region).extent <= GAUSS_DIMENSIONS and region.has_rule
        rule = "gauss" if low else "sobol"
    tolerance = choose("rule", rule, DEFAULT_TOLERANCE) if tolerance is None else tolerance
    require(isinstance(tolerance, (int, float)) and tolerance >= 0, "tolerance", tolerance, "a number ≥ 0")
    budget = positive_integer("budget", budget)
    refinements = {"gauss": _gauss, "sobol": _replicates, "uniform": _replicates}
    steps = choose("rule", rule, refinements)(function, region, budget, rule, rng)
    estimate = next(steps, None)
    if estimate is None:
        reject("budget", budget, "enough for the coarsest rule and its comparison", "raise it or choose another rule")
    while np.any(estimate.error > tolerance * np.abs(estimate.value)):
        refined = next(steps, None)
        if refined is None:
            break
        estimate = refined
    return estimate


def checked_region(region: Region) -> Region:
    """The region, refused unless it is a domain or a side."""
    require(isinstance(region, Region), "region", type(region).__name__, "a domain or a side", "e.g. Box(x=(0, 1))")
    return region


def _gauss(function: Integrand, region: Region, budget: int, rule: str, rng: Rng) -> Iterator[Estimate]:
    """Gauss rules with twice the nodes each time, the difference from the one before as their error."""
    dimensions, before = region.extent, None
    # what is cut out of shapes has several panels along each axis already
    nodes = FIRST_NODES if region.exact else FIRST_CUT
    while nodes**dimensions <= min(budget, LARGEST_GAUSS_RULE):
        points, weights = gauss_rule(region, min(nodes, PANEL_NODES), panels=max(1, nodes // PANEL_NODES))
        if before is not None and len(points) > budget:
            return
        terms = _values(function, points)
        value = np.tensordot(weights, terms, axes=1)
        rounding = 8 * np.finfo(float).eps * np.tensordot(weights, np.abs(terms), axes=1)
        if dimensions == 0:
            yield _estimate(value, rounding, 1, "value at a point")
            return
        if before is not None:
            label = " × ".join([str(nodes)] * dimensions)
            yield _estimate(value, np.abs(value - before) + rounding, len(points), f"gauss {label}")
        before, nodes = value, 2 * nodes


def _replicates(function: Integrand, region: Region, budget: int, rule: str, rng: Rng) -> Iterator[Estimate]:
    """Means over independent sequences that double in length, with the standard error that their spread gives."""
    streams = [unit_stream(region.columns, child, rule) for child in np.random.default_rng(rng).spawn(REPLICATES)]
    done, step, sums = 0, 2**6, np.zeros(())
    while REPLICATES * (done + step) <= budget:
        blocks = [_values(function, region.draw(step, stream)).sum(axis=0) for stream in streams]
        sums, done = sums + np.stack(blocks), done + step
        means = region.measure * sums / done
        error = means.std(axis=0, ddof=1) / sqrt(REPLICATES)
        yield _estimate(means.mean(axis=0), error, REPLICATES * done, f"{rule} {REPLICATES} × {done}")
        step = done


def _values(function: Integrand, points: Array) -> Array:
    values = finite_array("values of the function", function(points), (1, 2))
    require(
        len(values) == len(points), "number of values of the function", len(values), f"{len(points)}, one per point"
    )
    return values


def _estimate(value: Array, error: Array, points: int, rule: str) -> Estimate:
    if np.ndim(value) == 0:
        return Estimate(float(value), float(error), points, rule)
    return Estimate(value, error, points, rule)
