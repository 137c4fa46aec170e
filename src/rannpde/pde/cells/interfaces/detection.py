"""Detection of interfaces: sets on which the coefficients of a problem jump or have kinks.

Flat interfaces become splits of the tree, others level sets that divide its leaves. Across an interface the fields of
an equation whose flux jumps are continuous, and so is the normal flux; other fields have as many continuous derivatives
as they have inside a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.roots import bisected
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.interfaces import interface_levels, smooth_levels
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.rounding import difference_step

SCAN_POINTS = 4097
"""Points of an axis between which the zeros of a function of one coordinate are bracketed."""
SAME_POSITION = 1e-11
"""Two zeros closer than this, relative to the axis, are taken for one."""
MAX_CROSSED_EDGES = MUCH_SMALLER
"""An interface without a jumping flux is ignored if it crosses more than this fraction of the edges of a coarse grid: a
line crosses few of them, a circle 0.03."""
QUADRANTS = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
"""Directions into the four quadrants around a crossing of two interfaces."""
JUMP_TOLERANCE = difference_step() ** 0.5
"""Relative difference of coefficients on two sides that is a jump, at the distance h of a difference quotient: what
has a derivative changes by a multiple of h, not of √h."""


@dataclass(frozen=True)
class Interfaces:
    """The interfaces of a problem.

    flat : (axis, position, whether a flux jumps there); curved : all others
    corners : points of the plane where interfaces with jumping fluxes meet; the solution behaves like r^λ with λ < 1
        there
    """

    flat: tuple[tuple[int, float, bool], ...] = ()
    curved: tuple[Interface, ...] = ()
    corners: tuple[tuple[float, ...], ...] = ()

    @property
    def crossings(self) -> list[tuple[float, ...]]:
        """The points of the plane where two flat interfaces cross; with a Laplacian u has a term r² log r there."""
        if {axis for axis, _, _ in self.flat} - {0, 1}:
            return []
        positions = ([position for normal, position, _ in self.flat if normal == axis] for axis in (0, 1))
        return list(product(*positions))

    def flux_at(self, axis: int, position: float) -> bool:
        """Return whether a flux jumps across the plane where a coordinate has this value."""
        return (axis, position, True) in self.flat


def interfaces_of(problem: Problem, skipped: int = 0) -> Interfaces:
    """Return the interfaces of the equations.

    skipped : number of leading coordinates that the mesh does not have, such as time in time integration

    >>> from rannpde.domains import Box
    >>> from rannpde.pde.problem.conditions import On
    >>> square, walls = Box(x=(-1, 1), y=(-1, 1)), {"walls": On("boundary", "u = 0")}
    >>> lines = interfaces_of(Problem("div(where(abs(x) < 0.5, 1, 9)*grad(u)) = where(y < x, 1, 2)", square, walls))
    >>> lines.flat, [one.formula for one in lines.curved]
    (((0, -0.5, True), (0, 0.5, True)), [x - y])
    """
    symbols = problem.vocabulary.symbols[skipped:]
    bounds = np.asarray(problem.domain.bounds, dtype=float)[skipped:]
    expressions = problem.expressions.values()
    jumping = set(smooth_levels((level for e in expressions for level in e.jumps), symbols))
    flat: list[tuple[int, float, bool]] = []
    curved = []
    for level in interface_levels((e.formula for e in expressions), symbols):
        interface = Interface(level, tuple(symbols), level in jumping)
        axes = [axis for axis, symbol in enumerate(symbols) if symbol in level.free_symbols]
        if len(axes) > 1:
            curved += [interface] if interface.flux or _crosses_few_edges(interface, bounds) else []
        else:
            flat += [(axes[0], root, interface.flux) for root in _zeros(interface, axes[0], bounds)]
    planes = _merged(flat, bounds)
    return Interfaces(planes, tuple(curved), _corners(problem, planes) if len(bounds) == 2 and not skipped else ())


def _corners(problem: Problem, planes: Sequence[tuple[int, float, bool]]) -> tuple[tuple[float, ...], ...]:
    """Return the points where two flat interfaces cross and the flux jumps across both.

    >>> from rannpde.domains import Box
    >>> from rannpde.pde.problem.conditions import On
    >>> square, walls = Box(x=(-1, 1), y=(-1, 1)), {"walls": On("boundary", "u = 0")}
    >>> inside = "max(abs(x - 0.1), abs(y)) < 0.5"
    >>> sorted(interfaces_of(Problem(f"div(where({inside}, 9, 1)*grad(u)) = 1", square, walls)).corners)
    [(-0.4, -0.5), (-0.4, 0.5), (0.6, -0.5), (0.6, 0.5)]
    """
    words, corners = problem.vocabulary, []
    step = difference_step() * np.diff(np.asarray(problem.domain.bounds, dtype=float), axis=1)[:, 0]
    for first, second in product(
        *([position for axis, position, flux in planes if flux and axis == k] for k in (0, 1))
    ):
        around = np.array([(first, second)]) + step * QUADRANTS
        if not problem.domain.contains(around).all():
            continue
        known = dict(zip(words.symbols, around.T, strict=True)) | dict.fromkeys(words.normals, np.ones(4))
        fluxes = [e.flux for e in problem.expressions.values() if e.flux is not None]
        factors = [
            np.broadcast_to(part, 4)
            for flux in fluxes
            for part in flux.linearised(known, dict.fromkeys(flux.jets, np.ones(4)))[1]
        ]
        values = np.stack(factors, axis=1).reshape(2, 2, -1)  # by side along x, by side along y
        sides = [np.moveaxis(values, axis, 0) for axis in (0, 1)]
        if all(not np.allclose(below, above, rtol=JUMP_TOLERANCE) for below, above in sides):
            corners.append((first, second))
    return tuple(corners)


def _crosses_few_edges(interface: Interface, bounds: Array) -> bool:
    """Return whether an interface is simple enough to be resolved: sign(sin(99*x*y)) would divide all cells."""
    count = {2: 65, 3: 33}.get(len(bounds), 9)
    axes = np.meshgrid(*[np.linspace(lower, upper, count) for lower, upper in bounds], indexing="ij")
    positive = (interface.value(np.stack([axis.ravel() for axis in axes], axis=1)) > 0).reshape(axes[0].shape)
    changes = [np.mean(np.diff(positive, axis=axis)) for axis in range(len(bounds))]
    return float(np.mean(changes)) < MAX_CROSSED_EDGES


def _zeros(interface: Interface, axis: int, bounds: Array) -> list[float]:
    """Return where a function of one coordinate changes its sign inside the domain."""

    def value(coordinates: Array) -> Array:
        points = np.zeros((len(coordinates), len(bounds)))
        points[:, axis] = coordinates
        return interface.value(points)

    coordinates = np.linspace(bounds[axis, 0], bounds[axis, 1], SCAN_POINTS)
    positive = value(coordinates) > 0
    changes = np.flatnonzero(positive[1:] != positive[:-1])
    ends = coordinates[changes], coordinates[changes + 1]
    zeros = []
    for upper in bisected(lambda middle: (value(middle) > 0) == positive[changes], *ends)[1]:
        near = round(float(upper), 12)  # split at 0.3 for x < 0.3, not at a rounded value next to it
        rounding = 64 * np.finfo(float).eps * np.abs(bounds[axis]).max()
        zeros.append(near if abs(near - upper) <= rounding else float(upper))
    return zeros


def _merged(flat: Sequence[tuple[int, float, bool]], bounds: Array) -> tuple[tuple[int, float, bool], ...]:
    """Merge planes that differ by rounding; a flux jumps across the result if it jumps across one of them."""
    planes: list[tuple[int, float, bool]] = []
    for axis, position, flux in flat:
        near = [
            k
            for k, plane in enumerate(planes)
            if plane[0] == axis and abs(plane[1] - position) < SAME_POSITION * np.ptp(bounds[axis])
        ]
        if near:
            planes[near[0]] = (axis, planes[near[0]][1], flux or planes[near[0]][2])
        else:
            planes.append((axis, position, flux))
    return tuple(planes)
