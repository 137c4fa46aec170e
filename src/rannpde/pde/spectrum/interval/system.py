"""Matrices of an eigenvalue problem on cells of an interval: collocation at Gauss points, continuity, conditions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
from numpy.polynomial.legendre import leggauss

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.errors import InputError
from rannpde.pde.cells.interfaces.detection import interfaces_of
from rannpde.pde.spectrum.algebra import MatrixPencil
from rannpde.pde.spectrum.interval.basis import IntegratedLegendre, PiecewisePolynomial
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, LinearTerm, Pencil
from rannpde.pde.statement.expression import Jet, evaluate

BESIDE_JUMP = 1e-13
"""Distance from a jump at which coefficients on both sides are evaluated, relative to the interval."""


@dataclass(frozen=True, eq=False)
class IntervalForm:
    """A problem on an interval, ready for any cells: orders of the fields, conditions at the ends, Bloch phase.

    phase : angle θ by which periodic fields turn from end to end, u(b) = exp(iθ) u(a)
    """

    pencil: Pencil
    phase: float = 0.0

    @property
    def fields(self) -> tuple[str, ...]:
        return self.pencil.fields

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """The highest derivative of each field in the equations."""
        return tuple(self.pencil.order(name) for name in self.fields)

    @cached_property
    def ends(self) -> tuple[float, float]:
        lower, upper = np.asarray(self.pencil.problem.domain.bounds, dtype=float)[0]
        return float(lower), float(upper)

    @cached_property
    def periodic(self) -> tuple[str, ...]:
        """Fields that are periodic."""
        problem = self.pencil.problem
        if problem.periodic:
            return self.fields
        return tuple(name for pairing in problem.pairings for name in pairing.orders)

    @cached_property
    def jumps(self) -> dict[float, bool]:
        """Positions inside where coefficients jump or have kinks, and whether a flux jumps there."""
        plain = self.pencil.problem.at_eigenvalue(1.0)
        if not plain.kinked:
            return {}
        return {position: flux for _, position, flux in interfaces_of(plain).flat}

    @cached_property
    def complex(self) -> bool:
        return self.pencil.complex or bool(np.abs(np.sin(self.phase)) > 1e-15)

    def check(self) -> None:
        """Raise an InputError unless all conditions are at the ends, and as many as the orders of the fields."""
        problem = self.pencil.problem
        if len(self.pencil.equations) != len(self.fields):
            raise InputError(f"{len(self.pencil.equations)} equations for {len(self.fields)} fields; give one for each")
        for condition in self.pencil.conditions:
            region = condition.term.region
            if not isinstance(region, FlatSide) or not region.outward:
                raise InputError(
                    f"condition {condition.name!r} is not at an end of the interval; state it at {self.ends}"
                )
            for jet in condition.coefficients:
                if jet.order > self.orders[self.fields.index(jet.field)]:
                    raise InputError(
                        f"condition {condition.name!r} has the derivative {jet.order} of {jet.field}, beyond those of "
                        "the equations; use the equation to lower it"
                    )
        needed = sum(m for name, m in zip(self.fields, self.orders, strict=True) if name not in self.periodic)
        if needed != len(self.pencil.conditions):
            raise InputError(
                f"{len(self.pencil.conditions)} conditions at the ends, but the equations need {needed} (the sum of "
                "the orders of the fields that are not periodic); state as many"
            )
        if self.phase and not self.periodic:
            raise InputError(f"phase is {self.phase}, but {problem.domain.names[0]} is not periodic; leave it out")

    @cached_property
    def scale(self) -> float:
        """A typical eigenvalue: that of the longest wave that fits in."""
        lower, upper = self.ends
        points = lower + (upper - lower) * (np.arange(PENCIL_SAMPLES) + 0.5) / PENCIL_SAMPLES
        return self.pencil.typical_eigenvalue(self.pencil.equations, points[:, None], upper - lower)


@dataclass(frozen=True, eq=False)
class IntervalSystem:
    """The problem on cells with these edges, the highest derivatives of this degree."""

    form: IntervalForm
    edges: Array
    degree: int

    @cached_property
    def bases(self) -> tuple[IntegratedLegendre, ...]:
        return tuple(IntegratedLegendre(order, self.degree) for order in self.form.orders)

    @cached_property
    def offsets(self) -> Array:
        """Where the unknowns of each field begin within a cell, and the size of a cell."""
        return np.concatenate([[0], np.cumsum([basis.size for basis in self.bases])])

    @property
    def size(self) -> int:
        return int(self.offsets[-1]) * (len(self.edges) - 1)

    @cached_property
    def half(self) -> Array:
        return 0.5 * np.diff(self.edges)

    def matrices(self) -> MatrixPencil:
        """The pencil of all rows."""
        rows = _Rows(self.form.pencil.degree + 1, self.form.complex)
        nodes, weights = leggauss(self.degree + 1)
        tables = {(f, j): basis.table(nodes, j) for f, basis in enumerate(self.bases) for j in range(basis.order + 1)}
        symbol = self.form.pencil.problem.vocabulary.symbols[0]
        width = int(self.offsets[-1])
        for cell, half in enumerate(self.half):
            points = self.edges[cell] + half * (nodes + 1)
            for equation in self.form.pencil.equations:
                for jet, powers in equation.at({symbol: points}, len(points)).items():
                    f = self.form.fields.index(jet.field)
                    table = tables[f, jet.order] * (np.sqrt(weights) / half**jet.order)[:, None]
                    for power, values in powers.items():
                        rows.add(power, values[:, None] * table, cell * width + self.offsets[f])
                rows.step(len(points))
        for edge in range(1, len(self.edges) - 1):
            self._join(rows, edge)
        self._periodic(rows)
        for condition in self.form.pencil.conditions:
            self._condition(rows, condition)
        return MatrixPencil(rows.matrices(self.size), self.form.scale)

    def _ends(self, field: int, order: int, end: int, cell: int) -> Array:
        """A derivative of the functions of a field at an end (-1 or 1) of a cell, (1, size)."""
        return self.bases[field].table(np.array([float(end)]), order) / self.half[cell] ** order

    def _join(self, rows: _Rows, edge: int) -> None:
        """Add the rows of continuity at an edge: of all derivatives below the order, or of the flux where one jumps."""
        width = int(self.offsets[-1])
        fluxes = self._fluxes(float(self.edges[edge]))
        for f, basis in enumerate(self.bases):
            for order in range(basis.order):
                scale = min(self.half[edge - 1], self.half[edge]) ** order
                for cell, end, sign in ((edge - 1, 1, 1.0), (edge, -1, -1.0)):
                    if (f, order) in fluxes:
                        for jet, value in fluxes[f, order][0 if end > 0 else 1].items():
                            g = self.form.fields.index(jet.field)
                            trace = value * self._ends(g, jet.order, end, cell)
                            rows.add(0, sign * scale * trace, cell * width + self.offsets[g])
                    else:
                        rows.add(0, sign * scale * self._ends(f, order, end, cell), cell * width + self.offsets[f])
                rows.step(1)

    def _fluxes(self, position: float) -> dict[tuple[int, int], tuple[dict[Jet, float], dict[Jet, float]]]:
        """(field, order) → coefficients, on both sides, of the flux that is continuous instead of this derivative."""
        jumping = [at for at, flux in self.form.jumps.items() if flux]
        lower, upper = self.form.ends
        if not any(abs(position - at) <= 1e-10 * (upper - lower) for at in jumping):
            return {}
        fluxes = {}
        words = self.form.pencil.problem.vocabulary
        for equation in self.form.pencil.equations:
            flux = equation.expression.flux
            if flux is None or not equation.expression.jumps:
                continue
            sides = []
            for sign in (-1, 1):
                at = {words.symbols[0]: np.array([position + sign * BESIDE_JUMP * (upper - lower)])}
                at[words.normals[0]] = np.ones(1)
                values = evaluate(flux.partials, at, flux.functions)
                sides.append({jet: float(np.ravel(v)[0]) for jet, v in zip(flux.jets, values, strict=True)})
            top = max(flux.jets, key=lambda jet: jet.order)
            fluxes[self.form.fields.index(top.field), top.order] = (sides[0], sides[1])
        return fluxes

    def _periodic(self, rows: _Rows) -> None:
        width, last = int(self.offsets[-1]), len(self.half) - 1
        turn = np.exp(1j * self.form.phase) if self.form.complex else np.cos(self.form.phase)
        for f, basis in enumerate(self.bases):
            if self.form.fields[f] not in self.form.periodic:
                continue
            for order in range(basis.order):
                scale = min(self.half[0], self.half[-1]) ** order
                rows.add(0, scale * self._ends(f, order, 1, last), last * width + self.offsets[f])
                rows.add(0, -turn * scale * self._ends(f, order, -1, 0), self.offsets[f])
                rows.step(1)

    def _condition(self, rows: _Rows, condition: LinearTerm) -> None:
        region = condition.term.region
        assert isinstance(region, FlatSide)
        words, width = self.form.pencil.problem.vocabulary, int(self.offsets[-1])
        cell, end = (0, -1) if region.outward < 0 else (len(self.half) - 1, 1)
        known = {words.symbols[0]: np.array([region.value]), words.normals[0]: np.array([float(region.outward)])}
        for jet, powers in condition.at(known, 1).items():
            f = self.form.fields.index(jet.field)
            for power, value in powers.items():
                rows.add(power, value[0] * self._ends(f, jet.order, end, cell), cell * width + self.offsets[f])
        rows.step(1)

    # ----------------------------------------------------------------------------------------------------- functions

    def series(self, vector: Array) -> Array:
        """Legendre coefficients (C, fields, K) of the fields of a vector of unknowns (N,)."""
        cells, width = len(self.half), int(self.offsets[-1])
        most = max(basis.size for basis in self.bases)
        series = np.zeros((cells, len(self.bases), most), dtype=vector.dtype)
        by_cell = vector.reshape(cells, width)
        for f, basis in enumerate(self.bases):
            series[:, f, : basis.size] = by_cell[:, self.offsets[f] : self.offsets[f + 1]] @ basis.series(0).T
        return series

    def function(self, series: Array) -> PiecewisePolynomial:
        return PiecewisePolynomial(self.edges, series)


class _Rows:
    """Rows of sparse matrices, filled from the top."""

    def __init__(self, powers: int, is_complex: bool) -> None:
        self.count = 0
        self.kind = complex if is_complex else float
        self.parts: list[list[tuple[Array, Array, Array]]] = [[] for _ in range(powers)]

    def add(self, power: int, block: Array, column: int) -> None:
        """Add a block (r, c) to the present rows, from this column on."""
        rows, columns = np.indices(block.shape)
        self.parts[power].append(((rows + self.count).ravel(), (columns + column).ravel(), block.ravel()))

    def step(self, count: int) -> None:
        self.count += count

    def matrices(self, size: int) -> tuple[sparse.csc_matrix, ...]:
        matrices = []
        for parts in self.parts:
            empty = np.zeros(0, dtype=int)
            rows, columns, entries = (np.concatenate([part[k] for part in parts]) if parts else empty for k in range(3))
            matrices.append(sparse.csc_matrix((entries.astype(self.kind), (rows, columns)), (size, size)))
        return tuple(matrices)
