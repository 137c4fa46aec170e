"""Harmonic and caloric measures of the sides of boxes: exact solutions for constant values on walls, with jumps.

Brownian motion with the generator Σ a_i ∂_i² - κ starts at x, is reflected at insulated walls, and ends at the others.
With the values g_k of those walls and c at the start,

    u(t, x) = Σ_k g_k P(it has ended at wall k before t) + c P(it has not ended by t)

solves u_t = Σ a_i ∂_i² u - κ u, however much the values differ at edges and at the start; for t = ∞ it is harmonic.
Axes are independent: with S_j(s) the probability that axis j has not ended by the time s, G_i(s) the expected value at
the walls of axis i, and W_i = exp(-κs) Π_{j≠i} S_j, the part of axis i is

    ∫_0^t G_i' W_i ds = G_i(t) W_i(t) - ∫_0^t G_i W_i' ds,

an integral in log s of an analytic function. All its terms have one sign where values on walls have, so that small
probabilities keep their digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, inf
from typing import ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.checkpoints import checkpoint
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.trefftz.axis_measures import CUT_OFF, AxisWalls

LOG_PANEL = 2.5
"""Length in log s of the panels of integrals: an integrand like exp(-1/s) is a polynomial of low degree on it."""

LOG_NODES, MOST_LOG_NODES = 12, 48
"""Gauss nodes of a panel that are tried, twice as many each time: integrands are analytic."""


@dataclass(frozen=True, eq=False)
class WallMeasures:
    """The exact solution for constant values on walls; points are (t, x) where ``start`` is finite, else x alone.

    origin : added to everything; initial : the value at the start; killing : κ; nodes : of each panel of integrals
    """

    kind: ClassVar[str] = "wall measures"
    axes: tuple[AxisWalls, ...]
    killing: float
    origin: float
    initial: float
    start: float = inf
    nodes: int = LOG_NODES

    @property
    def timed(self) -> bool:
        return np.isfinite(self.start)

    def derivative(self, points: Array, index: MultiIndex) -> Array:
        """∂^index (M,)."""
        values = np.empty(len(points))
        per_point = 8 * self.nodes * len(self.axes)
        for rows in row_blocks(len(points), block_rows(per_point)):
            checkpoint()
            values[rows] = self._block(points[rows], index)
        return values

    def _block(self, points: Array, index: MultiIndex) -> Array:
        space = points[:, 1:] if self.timed else points
        time = points[:, 0] - self.start if self.timed else np.full(len(points), inf)
        clock, orders = (index[0], index[1:]) if self.timed else (0, index)
        still = not any(index)
        values = np.full(len(points), float(self.origin) if still else 0.0)
        begun = time > 0
        values[~begun] += self.initial if still else 0.0
        if still:
            begun &= ~self._on_walls(space, time, values)
        now, x = time[begun], space[begun]
        total = self._survived(now, x, clock, orders) if self.initial else np.zeros(len(x))
        for axis, walls in enumerate(self.axes):
            if any(np.isfinite(value) and value for value in (walls.low, walls.high)):
                total += self._part(axis, now, x, clock, orders)
        values[begun] += total
        return values

    def _on_walls(self, x: Array, time: Array, values: Array) -> Array:
        """Which points are on walls (M,); values : gets theirs, at edges those of the last axis."""
        every = np.zeros(len(x), dtype=bool)
        for axis, walls in enumerate(self.axes):
            for position, value in ((walls.start, walls.low), (walls.start + walls.length, walls.high)):
                rounding = 2 * np.finfo(float).eps * max(abs(position), walls.length)
                here = (np.abs(x[:, axis] - position) <= rounding) & (time > 0) & np.isfinite(value)
                values[here] = self.origin + value
                every |= here
        return every

    def _survived(self, time: Array, x: Array, clock: int, orders: MultiIndex) -> Array:
        """initial · exp(-κt) Π S_j."""
        if not self.timed:
            return np.zeros(len(x))
        return self.initial * self._product(range(len(self.axes)), time[:, None], x, clock, orders)[:, 0]

    def _product(self, axes: Sequence[int], s: Array, x: Array, clock: int, orders: MultiIndex) -> Array:
        """∂_s^clock ∂^orders of exp(-κs) Π S_j over some axes (M, Q), by Leibniz' rule and ∂_s S = a ∂²S."""
        if not axes:
            return (
                (-self.killing) ** clock * np.exp(-self.killing * s) if self.killing else np.full(s.shape, clock == 0.0)
            )
        axis, walls = axes[0], self.axes[axes[0]]
        total = np.zeros(s.shape)
        for k in range(clock + 1):
            first = walls.diffusivity**k * walls.survival(s, x[:, axis], orders[axis] + 2 * k)
            total += comb(clock, k) * first * self._product(axes[1:], s, x, clock - k, orders)
        return total

    def _part(self, axis: int, time: Array, x: Array, clock: int, orders: MultiIndex) -> Array:
        """∂_t^clock ∂^orders of the part of one axis (M,)."""
        walls = self.axes[axis]
        others = [k for k in range(len(self.axes)) if k != axis]
        if clock:
            if not self.timed:
                return np.zeros(len(x))
            return self._rate(axis, others, time, x, clock - 1, orders)
        if orders[axis] >= 2:  # by the equation, which leaves no singular integrals
            lower = _raised(orders, axis, -2)
            total = self._part(axis, time, x, 1, lower) + self.killing * self._part(axis, time, x, 0, lower)
            for k in others:
                if self.axes[k].open:
                    total -= self.axes[k].diffusivity * self._part(axis, time, x, 0, _raised(lower, k, 2))
            return total / walls.diffusivity
        decay = self.killing + sum(self.axes[k].decay for k in others)
        if any(orders[k] and not self.axes[k].open for k in others):
            return np.zeros(len(x))
        end = np.where(np.isfinite(time), time, 1e300)[:, None]
        last = walls.ended(end, x[:, axis], orders[axis])
        if decay == 0:
            return last[:, 0]
        total = (last * self._product(others, end, x, 0, orders))[:, 0] if self.timed else np.zeros(len(x))
        low, length = self._limits(axis, others, time, x, decay)
        panels = np.ceil(length / LOG_PANEL).astype(int)
        for count in np.unique(panels[panels > 0]):  # points near edges need many
            own = panels == count
            s, weights = self._rule(low[own], length[own], int(count))
            inside = walls.ended(s, x[own, axis], orders[axis]) * self._product(others, s, x[own], 1, orders)
            total[own] -= np.sum(weights * inside, axis=1)
        return total

    def _rate(self, axis: int, others: list[int], time: Array, x: Array, clock: int, orders: MultiIndex) -> Array:
        """∂_t^clock (∂_t G_i · W_i)."""
        walls, s = self.axes[axis], time[:, None]
        total = np.zeros(len(x))
        for k in range(clock + 1):
            own = walls.diffusivity ** (k + 1) * walls.ended(s, x[:, axis], orders[axis] + 2 * (k + 1))
            total += comb(clock, k) * (own * self._product(others, s, x, clock - k, orders))[:, 0]
        return total

    def _limits(self, axis: int, others: list[int], time: Array, x: Array, decay: float) -> tuple[Array, Array]:
        """Where the integrand in log s begins, and over which length (M,): below and above it has no digits.

        Up to powers it is exp(-d²/4s - λs), with the distance d to the walls that it feels, and the decay λ.
        """
        square = self.axes[axis].distance(x[:, axis]) ** 2
        if not self.killing:
            near = [self.axes[k].distance(x[:, k]) ** 2 for k in others if self.axes[k].open]
            square = square + np.min(near, axis=0)
        smallest = min(walls.length**2 / walls.diffusivity for walls in self.axes) * np.finfo(float).eps ** 2
        square = np.maximum(square, smallest)
        peak = np.minimum(0.5 * np.sqrt(square / decay), time)
        least = square / peak / 4 + decay * peak + CUT_OFF  # the exponent at the peak, and the digits below it
        root = np.sqrt(np.maximum(least**2 - decay * square, 0.0))
        low = np.log(0.5 * square / (least + root))
        high = np.minimum(np.log((least + root) / (2 * decay)), np.log(time))
        return low, np.maximum(high - low, 0.0)

    def _rule(self, low: Array, length: Array, panels: int) -> tuple[Array, Array]:
        """Times (M, Q) and weights of Gauss' rules on panels in log s."""
        unit, share = np.polynomial.legendre.leggauss(self.nodes)
        both = (0.5 * (unit + 1) + np.arange(panels)[:, None]).ravel() / panels
        s = np.exp(low[:, None] + length[:, None] * both)
        return s, np.tile(0.5 * share / panels, panels) * length[:, None] * s

    def refined(self, points: Array, tol: float) -> tuple[WallMeasures, float]:
        """The measures with as many nodes as a tolerance needs at all points (M, n), and their error, by twice as many.

        Small probabilities count as much as large ones.
        """
        now, still = self, (0,) * points.shape[1]
        values = now.derivative(points, still)
        while True:
            finer = replace(now, nodes=2 * now.nodes)
            better = finer.derivative(points, still)
            errors, rounding = np.abs(better - values), np.finfo(float).eps * float(np.abs(better).max(initial=0.0))
            if (errors <= MUCH_SMALLER * tol * np.abs(better)).all() or finer.nodes >= MOST_LOG_NODES:
                return finer, float(errors.max(initial=0.0)) + rounding
            now, values = finer, better

    def pack(self) -> dict[str, Array]:
        rows = [[one.start, one.length, one.diffusivity, one.low, one.high] for one in self.axes]
        numbers = [self.killing, self.origin, self.initial, self.start, self.nodes]
        return {"axes": np.array(rows), "numbers": np.array(numbers, dtype=float)}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array]) -> WallMeasures:
        """The inverse of ``pack``."""
        *numbers, nodes = map(float, arrays["numbers"])
        killing, origin, initial, start = numbers
        axes = tuple(AxisWalls(*map(float, row)) for row in arrays["axes"])
        return cls(axes, killing, origin, initial, start, int(nodes))


def wall_measures(
    axes: tuple[AxisWalls, ...], killing: float, initial: float | None, start: float = inf
) -> WallMeasures:
    """The measures of walls. Without killing, the most common value is subtracted first, so that fewer walls count.

    initial : the value at the start; None for a stationary problem
    """
    values = [value for walls in axes for value in (walls.low, walls.high) if np.isfinite(value)]
    every = sorted([*values, *([] if initial is None else [initial])], key=abs)
    origin = max(every, key=every.count) if not killing else 0.0
    moved = tuple(replace(walls, low=walls.low - origin, high=walls.high - origin) for walls in axes)
    return WallMeasures(moved, killing, origin, 0.0 if initial is None else initial - origin, start)


def _raised(orders: MultiIndex, axis: int, by: int) -> MultiIndex:
    return tuple(order + by * (k == axis) for k, order in enumerate(orders))
