"""Values of functionals (u(t - 1/2), ∫ k u ds) for given fields, with their exact linearisation.

Integrals are Gauss–Legendre sums on panels that end wherever the integrand is known not to be smooth: at kinks of the
kernel such as that of |x - s|, and where a field passes from one polynomial to the next. The panels therefore depend on
the point, and rows of a functional are sums of the rows of its point values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from scipy.sparse import csr_array, dia_array, vstack

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.checkpoints import checkpoint
from rannpde.domains.quadrature.integrals import PANEL_NODES
from rannpde.errors import InputError
from rannpde.pde.functions import Formula, State
from rannpde.pde.statement.expression import Functional, Jet, evaluate
from rannpde.pde.statement.functionals import DefiniteIntegral, FieldValue, common_power


@dataclass(frozen=True, eq=False)
class Linearised:
    """Values (K,), and rows (K, N): their derivatives by the coefficients of the fields, None where not wanted."""

    values: Array
    rows: csr_array | None


Lookup = Callable[[str, Array, MultiIndex], Linearised]
"""∂^index of a field at points (K, n) of the domain."""


@dataclass(frozen=True)
class Exterior:
    """A field beyond an end of a coordinate: below the lower end (-1) or above the upper one (1)."""

    field: str
    axis: int
    direction: int
    formula: Formula


@dataclass(frozen=True)
class Surroundings:
    """The values of fields outside of a box: the ends (n, 2) of its coordinates, prescribed values beyond, periods."""

    names: tuple[str, ...]
    bounds: Array
    exterior: tuple[Exterior, ...] = ()
    periodic: tuple[int, ...] = ()

    def value(self, one: FieldValue, points: Array, lookup: Lookup) -> Linearised:
        """A field at points (K, n) in the domain, or where it is given outside."""
        points = np.array(points, dtype=float)
        lower, upper = self.bounds.T
        for axis in self.periodic:
            points[:, axis] = lower[axis] + np.mod(points[:, axis] - lower[axis], upper[axis] - lower[axis])
        slack = 8 * np.finfo(float).eps * np.maximum(np.abs(self.bounds).max(axis=1), upper - lower)
        below, above = points < lower - slack, points > upper + slack
        outside = (below | above).any(axis=1)
        value = lookup(one.field, np.clip(points, lower, upper), one.index)
        if not outside.any():
            return value
        values = value.values.copy()
        values[outside] = self._beyond(one, points[outside], below[outside], above[outside])
        if value.rows is None:
            return Linearised(values, None)
        return Linearised(values, csr_array(_diagonal((~outside).astype(float)) @ value.rows))

    def _beyond(self, one: FieldValue, points: Array, below: Array, above: Array) -> Array:
        values = np.full(len(points), np.nan)
        for part in self.exterior:
            where = (below if part.direction < 0 else above)[:, part.axis] & np.isnan(values)
            if part.field == one.field and where.any():
                values[where] = part.formula.derivative(points[where], one.index)
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            row = missing[0]
            axis = int(np.flatnonzero(below[row] | above[row])[0])
            name, low = self.names[axis], bool(below[row, axis])
            end = self.bounds[axis, 0 if low else 1]
            raise InputError(
                f"{one.text} asks for {one.field} at {name} = {points[row, axis]:.4g}, outside the domain; state it "
                f"there by a condition such as {{'{name} {'<=' if low else '>='} {end:g}': '{one.field} = …'}}"
            )
        return values


@dataclass(frozen=True)
class FunctionalRule:
    """Settings with which functionals are computed.

    edges : for each coordinate, the positions between which fields are smooth
    nodes : Gauss nodes of a panel
    functions : the user's own, which arguments and limits may call
    panels : equal parts of each interval on which the integrand is smooth
    roots : positions at which fields are smooth in a root of the distance; power : that of z which makes them smooth
    """

    surroundings: Surroundings
    edges: tuple[tuple[float, ...], ...]
    nodes: int
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    panels: int = 1
    roots: tuple[float, ...] = ()
    power: int = 1

    def of(
        self, one: Functional, known: Mapping[sympy.Symbol, Array], count: int, lookup: Lookup, width: int = 1
    ) -> Linearised:
        """A functional at ``count`` points, whose coordinates are known (count,); ``width`` is the entries of a row."""
        if not isinstance(one, DefiniteIntegral):
            return self._of(one, known, slice(0, count), lookup, width)
        needed = {symbol: np.broadcast_to(value, count) for symbol, value in known.items() if symbol in one.depends}
        if not needed:  # the same everywhere
            single = self._of(one, {}, slice(0, 1), lookup, width)
            rows = None if single.rows is None else csr_array(single.rows[np.zeros(count, dtype=int)])
            return Linearised(np.broadcast_to(single.values, count), rows)
        table, inverse = np.unique(np.stack(list(needed.values()), axis=1), axis=0, return_inverse=True)
        distinct = dict(zip(needed, table.T, strict=True))
        intervals = len(list(one.breaks(self._periodic_edges()))) + 1
        blocks = row_blocks(len(table), block_rows(2 * width * intervals * self.panels * self.nodes))
        parts = [self._of(one, {s: v[own] for s, v in distinct.items()}, own, lookup, width) for own in blocks]
        original = inverse.ravel()
        rows = None if parts[0].rows is None else csr_array(csr_array(vstack([part.rows for part in parts]))[original])
        return Linearised(np.concatenate([part.values for part in parts])[original], rows)

    def _of(
        self, one: Functional, known: Mapping[sympy.Symbol, Array], part: slice, lookup: Lookup, width: int
    ) -> Linearised:
        checkpoint()
        count = part.stop - part.start
        if isinstance(one, FieldValue):
            points = [np.broadcast_to(value, count) for value in evaluate(one.arguments, known, self.functions)]
            return self.surroundings.value(one, np.stack(points, axis=1), lookup)
        assert isinstance(one, DefiniteIntegral)
        nodes, weights = self._nodes(one, known, count)
        owners = np.repeat(np.arange(count), nodes.shape[1])
        used = np.flatnonzero(weights.ravel())  # panels beyond the limits have no weight
        owners, flat = owners[used], weights.ravel()[used]
        inner = {symbol: np.broadcast_to(value, count)[owners] for symbol, value in known.items()}
        inner[one.variable] = nodes.ravel()[used]
        below = {name: self.of(own, inner, len(used), lookup, width) for name, own in one.integrand.functionals.items()}
        jets = {jet: below[jet.field].values for jet in one.integrand.jets}
        value, slopes = one.integrand.linearised(inner, jets)
        total = csr_array((flat, (owners, np.arange(len(used)))), shape=(count, len(used)))
        rows = None
        for jet, slope in zip(one.integrand.jets, slopes, strict=True):
            inner_rows = below[jet.field].rows
            if inner_rows is not None:
                more = csr_array(total @ _diagonal(np.broadcast_to(slope, len(used)))) @ inner_rows
                rows = more if rows is None else rows + more
        return Linearised(total @ np.broadcast_to(value, len(used)), rows)

    def _nodes(self, one: DefiniteIntegral, known: Mapping[sympy.Symbol, Array], count: int) -> tuple[Array, Array]:
        """Positions (count, Q) and weights (count, Q) of the rule."""
        roots = one.singularities
        formulas = [one.lower, one.upper, *roots, *one.breaks(self._periodic_edges())]
        lower, upper, *breaks = (np.broadcast_to(value, count) for value in evaluate(formulas, known, self.functions))
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise InputError(f"{one.text} has limits that are not finite; map the integral to a bounded interval")
        power = common_power((one.grading, self.power))
        low, high = np.minimum(lower, upper), np.maximum(lower, upper)
        inside = [np.clip(np.nan_to_num(cut, nan=0.0), low, high) for cut in breaks]
        for root in inside[: len(roots)]:
            inside = [*inside, *_rings(root, inside[len(roots) :], low, high)]
        ends = np.sort(np.stack([low, *inside, high], axis=1), axis=1)
        if power > 1:
            singular = np.zeros(ends.shape, dtype=bool)
            for root in inside[: len(roots)]:
                singular |= ends == root[:, None]
            sign = np.where(upper >= lower, 1.0, -1.0)
            return self._graded(ends, sign, power, singular, singular | np.isin(ends, self.roots), one.exponent)
        shares = np.arange(self.panels) / self.panels
        starts = ends[:, :-1, None] + np.diff(ends, axis=1)[:, :, None] * shares
        widths = np.repeat(np.diff(ends, axis=1) / self.panels, self.panels, axis=1)
        nodes, weights = np.polynomial.legendre.leggauss(self.nodes)
        positions = starts.reshape(count, -1, 1) + widths[:, :, None] * (0.5 * (nodes + 1))
        sign = np.where(upper >= lower, 1.0, -1.0)
        shares = sign[:, None, None] * widths[:, :, None] * (0.5 * weights)
        return positions.reshape(count, -1), shares.reshape(count, -1)

    def _graded(
        self, ends: Array, sign: Array, power: int, singular: Array, graded: Array, exponent: float
    ) -> tuple[Array, Array]:
        """Nodes and weights on intervals between ends (count, B): halves, by z^power from outer ends that are graded.

        Powers of the distance from an end that are multiples of 1/power become polynomials in z.
        graded (count, B) : at which ends the integrand is not smooth
        singular (count, B) : the ends at which the integrand is like the distance to the power of ``exponent``; there
        weights make up for what rounding changes of the small distances of nodes, x - (x - 1e-12) among them
        """
        nodes, weights = np.polynomial.legendre.leggauss(self.nodes)
        steps = np.arange(self.panels)[:, None]
        z = ((steps + 0.5 * (nodes + 1)) / self.panels).ravel()
        share = np.tile(0.5 * weights / self.panels, self.panels)
        half = 0.5 * np.diff(ends, axis=1)[:, :, None]
        nodes_of_halves, shares = [], []
        for outer, at, side in ((ends[:, :-1], slice(None, -1), 1.0), (ends[:, 1:], slice(1, None), -1.0)):
            here = graded[:, at, None]
            distance = half * np.where(here, z**power, z)
            own = outer[:, :, None] + side * distance
            actual = side * (own - outer[:, :, None])
            ratio = np.divide(distance, actual, out=np.ones_like(distance), where=actual > 0)
            ratio = np.where(singular[:, at, None], ratio**exponent, 1.0) * np.where(
                here, power * z ** (power - 1), 1.0
            )
            nodes_of_halves.append(own)
            # what rounding moves to an end, where a kernel may be infinite, is less than rounding of the sum
            shares.append(np.where(actual > 0, share * half * ratio, 0.0) * sign[:, None, None])
        joined = [np.concatenate(own, axis=2).reshape(len(ends), -1) for own in (nodes_of_halves, shares)]
        return joined[0], joined[1]

    def _periodic_edges(self) -> tuple[tuple[float, ...], ...]:
        """The edges, and along periodic coordinates those of the periods beside the domain."""
        edges = []
        for axis, own in enumerate(self.edges):
            length = float(np.ptp(self.surroundings.bounds[axis]))
            shifts = (-length, 0.0, length) if axis in self.surroundings.periodic else (0.0,)
            edges.append(tuple(edge + shift for shift in shifts for edge in own))
        return tuple(edges)


def _rings(root: Array, edges: list[Array], low: Array, high: Array) -> list[Array]:
    """Where to cut beyond the edges next to a root (count,), so that no panel is much longer than its distance from it.

    Fields pass to another polynomial at an edge. With a root close to it, the panel beyond would begin next to the
    singularity of a kernel; distances that grow by a factor of four make the rule converge alike everywhere.
    """
    cuts: list[Array] = []
    for side in (-1.0, 1.0):
        gaps = [np.where(side * (edge - root) > 0, np.abs(edge - root), np.inf) for edge in edges]
        nearest = np.min(gaps, axis=0, initial=np.inf)
        reach = np.where(side > 0, high - root, root - low)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.max(np.where(nearest < reach, reach / nearest, 1.0), initial=1.0))
        step = side * np.where(np.isfinite(nearest), nearest, 0.0)
        count = int(np.ceil(np.log(ratio) / np.log(4)))
        cuts += [np.clip(root + step * 4**k, low, high) for k in range(1, count)]
    return cuts


def _diagonal(values: Array) -> dia_array:
    return dia_array((values[None, :], [0]), shape=(len(values), len(values)))


def functional_values(
    functionals: Mapping[str, Functional],
    state: State,
    fields: tuple[str, ...],
    surroundings: Surroundings,
    known: Mapping[sympy.Symbol, Array],
    functions: Mapping[str, Callable[..., Any]],
) -> dict[Jet, Array]:
    """Jet → values (M,) of functionals of given functions; ``known`` has the coordinates of the points."""
    edges = getattr(state, "edges", surroundings.bounds)
    ends = tuple(tuple(map(float, own)) for own in edges)
    roots, power = getattr(state, "roots", ((), 1))
    rule = FunctionalRule(surroundings, ends, PANEL_NODES, functions, roots=roots, power=power)
    still = (0,) * len(surroundings.names)
    count = len(next(iter(known.values())))

    def lookup(name: str, points: Array, index: MultiIndex) -> Linearised:
        return Linearised(state.derivative(points, index)[:, fields.index(name)], None)

    return {Jet(name, still): rule.of(one, known, count, lookup).values for name, one in functionals.items()}
