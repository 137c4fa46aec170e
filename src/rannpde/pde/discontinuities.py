"""Jumps that a solution keeps: where nothing smooths them, smooth functions converge slowly, and estimates know it.

Transport carries a jump of its data along, and a conservation law makes one of smooth data. A method of order p in
steps h smooths it over a length of the order of h^(p/(p+1)). The L² error at a jump is the root of that, and at a kink
its power 3/2, whatever the accuracy elsewhere, so that two solutions of similar resolution differ by less than their
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from rannpde.arrays import Array, ArrayMap
from rannpde.domains.domain import SpaceTime, is_box
from rannpde.pde.problem.evolution import Component, Evolution, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.rounding import ROOT_ROUNDED

LINE_INTERVALS = 2**12
"""Intervals of a line along which initial values are sampled."""
STEP_ORDER = 5
"""Order of the time integration at the tolerances at which a jump can be followed: three stages of Radau IIA."""
NEAR_CORNER = float(np.finfo(float).eps) ** 0.5
"""Distance from a corner, relative to the sides, at which prescribed values are compared."""
ADVICE = (
    "nothing smooths jumps here, which smooth features follow slowly: use finite volumes (Clawpack, OpenFOAM, "
    "Trixi.jl; see docs/choose.md), or add diffusion"
)


def without_smoothing(problem: Problem) -> bool:
    """Whether no derivative in space is of a higher order than those in time, as in transport and waves."""
    if not isinstance(problem.domain, SpaceTime) or problem.parabolic is not None:
        return False
    jets = [jet for term in problem.interior for jet in term.expression.jets]
    in_time = max((jet.index[0] for jet in jets), default=0)
    return 0 < max((sum(jet.index[1:]) for jet in jets), default=0) <= in_time


def jumps(values: Array) -> bool:
    """Whether values on an even grid jump: a change between neighbours hardly falls with the spacing.

    Half the spacing halves the changes of a Lipschitz function, kinks included; √½ is a square root's. The least
    spacing is two intervals, so that a mean value at the jump itself, as that of ``sign``, is stepped over.

    >>> grid = np.linspace(0, 1, 101)
    >>> jumps(np.sign(grid - 0.3)), jumps(np.abs(grid - 0.3)), jumps(np.sin(9 * grid))
    (True, False, False)
    """
    near, far = (float(np.abs(values[step:] - values[:-step]).max()) for step in (2, 4))
    return near > 0.5**0.5 * far


def initial_smoothness(evolution: Evolution) -> float:
    """The power of a length over which initial values are smoothed that is the L² error: 1/2 where they jump along one
    of the axes of space, through its middle, 3/2 where they have a kink there, and infinity elsewhere."""
    powers = [np.inf]
    for values in _initial_lines(evolution):
        slopes = np.diff(values)
        bent = np.ptp(slopes) > ROOT_ROUNDED * np.abs(slopes).max()  # by more than rounding
        powers.append(1 / 2 if jumps(values) else 3 / 2 if bent and jumps(slopes) else np.inf)
    return min(powers)


def _initial_lines(evolution: Evolution) -> Iterator[Array]:
    """The initial values of each component along each axis, through the middle."""
    bounds = evolution.domain.space.bounds
    for axis, (lower, upper) in enumerate(bounds):
        points = np.tile(bounds.mean(axis=1), (LINE_INTERVALS + 1, 1))
        points[:, axis] = np.linspace(lower, upper, LINE_INTERVALS + 1)
        for name, order in evolution.orders.items():
            component = Component(name, 0)
            if order and component in evolution.initial:
                yield evolution.initial_values(component, points)


def averaged_at_jumps(function: ArrayMap, nodes: Array, weights: Array, lower: float) -> Array:
    """Return the values (Q,) of a function of points (M, 1) at the nodes (Q,) of a quadrature rule, averaged at jumps.

    A node stands for an interval as long as its weight; in order these begin at ``lower`` (a node of a Gauss rule lies
    in its own). The value of one in which the function jumps is the mean over it. The rule then integrates a jump as
    if it were between two nodes, where it would miss the height of the jump times a part of the spacing; and what
    is conserved would be wrong by that for all times.

    >>> nodes, weights = np.linspace(0.05, 0.95, 10), np.full(10, 0.1)
    >>> values = averaged_at_jumps(lambda points: np.where(points[:, 0] < 0.269, 1.0, 0.0), nodes, weights, 0.0)
    >>> values.round(2).tolist(), round(float(weights @ values), 12)
    ([1.0, 1.0, 0.69, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.269)
    """
    order = np.argsort(nodes)
    values: Array = np.array(function(nodes[:, None]), dtype=float)
    left, right, below, above = nodes[order[:-1]], nodes[order[1:]], values[order[:-1]], values[order[1:]]
    change = np.abs(above - below)
    for _ in range(np.finfo(float).nmant):  # towards the half that changes more
        middle = 0.5 * (left + right)
        between = np.asarray(function(middle[:, None]), dtype=float)
        first = np.abs(between - below) > np.abs(above - between)
        left, below = np.where(first, left, middle), np.where(first, below, between)
        right, above = np.where(first, middle, right), np.where(first, between, above)
    edges = lower + np.cumsum(weights[order])[:-1]  # between the intervals of neighbours
    height = np.where(np.abs(above - below) > 0.5**0.5 * change, above - below, 0.0)
    values[order[:-1]] += height * np.maximum(edges - left, 0.0) / weights[order[:-1]]
    values[order[1:]] -= height * np.maximum(left - edges, 0.0) / weights[order[1:]]
    return values


def error_over_difference(factor: float, power: float) -> float:
    """The L² error at a jump or a kink over the difference to a solution with ``factor`` times the tolerance in time.

    A step is tol^(1/(p+1)) long, and the error is a power of the length over which that smooths, e = step^(power
    p/(p+1)) = tol^(power p/(p+1)²). The finer solution holds more of the frequencies of the same jump, so that
    differences are orthogonal: d² = e_coarse² - e².

    >>> [round(error_over_difference(factor, 0.5), 1) for factor in (4.0, 2.0)]  # a jump
    [2.2, 3.1]
    >>> [round(error_over_difference(factor, 1.5), 1) for factor in (4.0, 2.0)]  # a kink
    [1.1, 1.7]
    """
    rate = factor ** (power * STEP_ORDER / (STEP_ORDER + 1) ** 2)
    return float((rate**2 - 1) ** -0.5)


def shock_advice(problem: Problem | None) -> str:
    """What to do where a solution did not converge because it jumps; empty for other problems."""
    if problem is None or not without_smoothing(problem):
        return ""
    evolves = not problem.obstacles
    return ADVICE if not problem.linear or (evolves and initial_smoothness(evolution_form(problem)) < 1) else ""


def corner_jumps(problem: Problem) -> list[tuple[float, ...]]:
    """The corners of a plane box at which the values prescribed on its two sides differ, at the last time.

    Near such a corner a solution depends on the angle alone: no function that is continuous there is close to it.
    """
    domain = problem.domain
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if space.dim != 2 or not is_box(space):
        return []
    end = domain.bounds[: domain.dim - 2, 1]
    around = {}
    for corner in product(*space.bounds.tolist()):
        # close to the corner, and at points along both sides at which no period of the data vanishes
        shares = (NEAR_CORNER, *(prime**-0.5 for prime in (2, 3, 5, 7)))
        steps = [share * step for share in shares for step in np.diag(space.bounds.mean(axis=1) - corner)]
        around[corner] = [prescribed_values(problem, np.concatenate([end, corner + step])[None]) for step in steps]
    corners = []
    for name in problem.fields:
        size = max((abs(one[name]) for sides in around.values() for one in sides if name in one), default=0.0)
        for corner, sides in around.items():
            near = [one[name] for one in sides[:2] if name in one]
            # continuous data, even a square root's, differ by less
            if near and np.ptp(near) > NEAR_CORNER ** (1 / 4) * size:
                corners.append(corner)
    return list(dict.fromkeys(corners))


def prescribed_values(problem: Problem, point: Array) -> dict[str, float]:
    """Field → its value that a boundary condition prescribes at a point (1, n)."""
    values = {}
    for term in problem.constraints:
        jets = term.expression.jets
        if term.kind == "boundary" and len(jets) == 1 and jets[0].order == 0 and term.region is not None:
            if not term.region.contains(point)[0]:
                continue
            zero = {jets[0]: np.zeros(1)}
            value, (slope,) = term.expression.linearised(term.known(point, problem.vocabulary), zero)
            with np.errstate(divide="ignore", invalid="ignore"):
                values[jets[0].field] = float(np.ravel(-np.asarray(value) / slope)[0])
    return values
