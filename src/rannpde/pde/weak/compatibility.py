"""Convex edges of solids at which data are not compatible, near which solutions are like r² log r.

Where values are prescribed on two sides that meet in a right angle, they determine all second derivatives at the edge
but the mixed one across it. With u = 0 on both sides, -Δu = 1 contradicts them: no polynomial of degree two satisfies
equation and conditions, and r² log r takes its place. Degrees help little against it, one thin layer of cells does.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import sqrt

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.weak.edges import SingularEdge, SolidEdge, rectilinear, solid_edges
from rannpde.pde.weak.form import COEFFICIENT_SAMPLES, WeakForm
from rannpde.pde.weak.mesh import ConditionFinder
from rannpde.rounding import COMPUTED, difference_step

EDGE_NODES = 7
"""Points along each axis to which polynomials are fitted for derivatives at an edge."""


def incompatible_edges(form: WeakForm, finder: ConditionFinder) -> tuple[SingularEdge, ...]:
    """All convex edges of a rectilinear solid between prescribed values that contradict the equations."""
    domain = form.problem.domain
    if domain.dim != 3 or not rectilinear(domain):
        return ()
    exponent = 2.0  # π over the right angle between prescribed values: the degree of a polynomial, hence the logarithm
    convex = [edge for edge in solid_edges(domain) if not edge.reentrant]
    contradictions = [_contradiction(form, finder, edge) for edge in convex]
    load = np.abs(form.at(domain.sample(COEFFICIENT_SAMPLES, rng=0)).load).max()
    scale = max(float(load), *(size for _, size in contradictions), 1e-300)
    return tuple(
        SingularEdge(edge.axis, tuple(edge.point.tolist()), edge.span, exponent, edge.axes)
        for edge, (left, _) in zip(convex, contradictions, strict=True)
        if left > sqrt(COMPUTED) * scale
    )


def _contradiction(form: WeakForm, finder: ConditionFinder, edge: SolidEdge) -> tuple[float, float]:
    """The residual of equations and conditions at the middle of an edge, the least over all mixed derivatives across
    it, and the size of its summands; zeros where not all fields are prescribed on both sides."""
    jets: dict[MultiIndex, Array] = {}
    for number in (0, 1):
        derivatives = _derivatives(form, finder, edge, number)
        if derivatives is None:
            return 0.0, 0.0
        jets |= derivatives
    mixed = tuple(int(axis in edge.axes) for axis in range(3))
    problem, names = form.problem, form.system.fields
    jets[mixed] = np.zeros(form.fields)
    known = {symbol: np.array([value]) for symbol, value in zip(problem.vocabulary.symbols, edge.point, strict=True)}
    left, free, sizes = [], np.zeros((len(problem.interior), form.fields)), []
    for row, term in enumerate(problem.interior):
        stated = term.expression.jets
        values = {jet: jets[jet.index][[names.index(jet.field)]] for jet in stated}
        value, partials = term.expression.linearised(known, values)
        parts = [float(np.ravel(p)[0]) * float(values[j][0]) for p, j in zip(partials, stated, strict=True)]
        for partial, jet in zip(partials, stated, strict=True):
            if jet.index == mixed:
                free[row, names.index(jet.field)] += float(np.ravel(partial)[0])
        left.append(float(np.ravel(value)[0]))
        sizes.append(abs(left[-1] - sum(parts)) + sum(map(abs, parts)))
    rest = np.array(left) - free @ np.linalg.lstsq(free, np.array(left), rcond=COMPUTED)[0]
    return float(np.abs(rest).max()), max(sizes)


def _derivatives(
    form: WeakForm, finder: ConditionFinder, edge: SolidEdge, number: int
) -> dict[MultiIndex, Array] | None:
    """Derivatives (F,) up to the second order along the side across one of the axes, at the middle of an edge, if all
    fields are prescribed there."""
    along, normal_axis = edge.axes[1 - number], edge.axes[number]
    lengths = [edge.span[1] - edge.span[0], float(np.ptp(form.problem.domain.bounds, axis=1).min())]
    reach = difference_step(EDGE_NODES - 2) * min(lengths)
    nodes = np.arange(1, EDGE_NODES + 1) / EDGE_NODES
    grid = np.array(list(product(2 * nodes - nodes[0] - 1, nodes)))  # along the edge, and away from it
    points = np.repeat(edge.point[None], len(grid), axis=0)
    points[:, edge.axis] += reach * grid[:, 0]
    points[:, along] += reach * edge.odd[1 - number] * grid[:, 1]
    normals = np.zeros_like(points)
    normals[:, normal_axis] = -edge.odd[number]
    groups = finder.groups(points, normals)
    if any(one != other for one, other in pairwise(groups.tolist())):
        return None
    rows = form.rows(finder.conditions[groups[0]], points, normals)
    if np.abs(rows.projection - np.eye(form.fields)).max() > COMPUTED:
        return None
    powers = [(i, j) for i in range(EDGE_NODES) for j in range(EDGE_NODES - i)]
    table = np.stack([grid[:, 0] ** i * grid[:, 1] ** j for i, j in powers], axis=1)
    fitted = np.linalg.lstsq(table, rows.values, rcond=None)[0]  # (powers, F)
    derivatives = {}
    for (i, j), value in zip(powers, fitted, strict=True):
        if i + j <= 2:
            index = [0, 0, 0]
            index[edge.axis], index[along] = i, j
            factor = (2.0 if 2 in (i, j) else 1.0) * edge.odd[1 - number] ** j / reach ** (i + j)
            derivatives[tuple(index)] = value * factor
    return derivatives
