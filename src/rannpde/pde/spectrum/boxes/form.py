"""A problem on a box in tensor products: conditions along each axis, and the matrices of Galerkin's method.

Every equation is tested with the functions of one field, whose own equation it is. The functions satisfy all
conditions, so that the matrices of a self-adjoint problem are symmetric, and its discrete eigenvalues are upper bounds.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import FlatSide
from rannpde.domains.domain import is_box
from rannpde.pde.spectrum.boxes.axes import BoxAxis, EndCondition, FourierAxis, LegendreAxis
from rannpde.pde.spectrum.boxes.function import ProductFunction
from rannpde.pde.spectrum.pencil import PENCIL_SAMPLES, LinearTerm, Pencil
from rannpde.pde.statement.expression import Jet


class NotSeparable(Exception):
    """Raised, with the reason, where no tensor products of functions of one coordinate satisfy all conditions."""


@dataclass(frozen=True, eq=False)
class BoxForm:
    """A problem on a box, ready for any degrees; phases : periodic coordinate → angle by which modes turn."""

    pencil: Pencil
    phases: Mapping[str, float]

    def __post_init__(self) -> None:
        problem = self.pencil.problem
        if not is_box(problem.domain) or problem.slits:
            raise NotSeparable("the domain is no box")
        if problem.kinked:
            raise NotSeparable("coefficients jump or have kinks")
        if problem.pairings:
            raise NotSeparable("some fields are periodic and others are not")
        if len(self.pencil.equations) != len(self.fields):
            raise NotSeparable("the numbers of equations and of fields differ")
        _ = self.ends, self.equations  # both are computed now, so that NotSeparable is raised here

    @property
    def fields(self) -> tuple[str, ...]:
        return self.pencil.fields

    @cached_property
    def bounds(self) -> Array:
        return np.asarray(self.pencil.problem.domain.bounds, dtype=float)

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @cached_property
    def periodic(self) -> tuple[bool, ...]:
        problem = self.pencil.problem
        return tuple(name in problem.periodic for name in problem.domain.names)

    @cached_property
    def complex(self) -> bool:
        return self.pencil.complex or any(angle % (2 * np.pi) for angle in self.phases.values())

    def order(self, field: str, axis: int) -> int:
        """The highest derivative of a field along an axis in the equations."""
        jets = [jet for equation in self.pencil.equations for jet in equation.coefficients if jet.field == field]
        return max((jet.index[axis] for jet in jets), default=0)

    @cached_property
    def equations(self) -> tuple[LinearTerm, ...]:
        """For each field, the equation with its eigenvalue term and its highest derivatives."""
        shares = np.zeros((len(self.fields), len(self.fields)))
        masses = np.zeros_like(shares)
        for k, equation in enumerate(self.pencil.equations):
            for jet, powers in equation.coefficients.items():
                f = self.fields.index(jet.field)
                shares[k, f] = max(shares[k, f], jet.order / max(self.pencil.order(jet.field), 1))
                masses[k, f] = max(masses[k, f], float(max(powers) > 0))
        rows, columns = linear_sum_assignment(-(shares + masses))
        row_of = dict(zip(columns.tolist(), rows.tolist(), strict=True))
        return tuple(self.pencil.equations[row_of[f]] for f in range(len(self.fields)))

    @cached_property
    def ends(self) -> dict[tuple[str, int], tuple[EndCondition, ...]]:
        """(field, axis) → the conditions at the two ends, by normal derivatives alone."""
        sides: dict[tuple[int, int], list[dict[Jet, complex]]] = {}
        for condition in self.pencil.conditions:
            region = condition.term.region
            if not isinstance(region, FlatSide) or not region.outward:
                raise NotSeparable(f"condition {condition.name!r} is not on a whole side")
            sides.setdefault((region.axis, region.outward), []).append(self._constants(condition))
        by_end: dict[tuple[str, int], list[EndCondition]] = {}
        for (axis, outward), conditions in sides.items():
            for field, row in _normal_rows(conditions, axis):
                by_end.setdefault((field, axis), []).append((outward, row))
        return {key: tuple(end_conditions) for key, end_conditions in by_end.items()}

    def _constants(self, condition: LinearTerm) -> dict[Jet, builtins.complex]:
        """Jet → its factor in a condition, which must be a real constant."""
        assert condition.term.region is not None
        points = condition.term.region.sample(PENCIL_SAMPLES, rng=0)
        known = condition.term.known(points, self.pencil.problem.vocabulary)
        constants = {}
        for jet, powers in condition.at(known, len(points)).items():
            values = powers.get(0, np.zeros(1))
            if set(powers) != {0} or np.abs(values - values[0]).max() > 1e-13 * np.abs(values).max():
                raise NotSeparable(f"condition {condition.name!r} varies or contains the eigenvalue")
            if np.iscomplexobj(values) and np.abs(values.imag).max() > 0:
                raise NotSeparable(f"condition {condition.name!r} is complex")
            if np.abs(values).max() > 0:
                constants[jet] = complex(values[0])
        return constants

    @cached_property
    def scale(self) -> float:
        """A typical eigenvalue: that of the longest wave that fits in."""
        points = self.pencil.problem.domain.sample(PENCIL_SAMPLES, rng=0)
        leading = [equation for equation in self.equations if equation.degree == self.pencil.degree]
        return self.pencil.typical_eigenvalue(leading, points, float(np.ptp(self.bounds, axis=1).max()))

    def axes(self, degrees: tuple[int, ...]) -> dict[tuple[str, int], BoxAxis]:
        """(field, axis) → the functions of the field along the axis, for these degrees."""
        axes: dict[tuple[str, int], BoxAxis] = {}
        names = self.pencil.problem.domain.names
        for axis, degree in enumerate(degrees):
            low, high = map(float, self.bounds[axis])
            most = max(self.order(name, axis) for name in self.fields)
            for field in self.fields:
                if self.periodic[axis]:
                    phase = self.phases.get(names[axis], 0.0) % (2 * np.pi)
                    axes[field, axis] = FourierAxis(low, high, degree // 2, phase)
                    continue
                end_conditions, order = self.ends.get((field, axis), ()), self.order(field, axis)
                # a field without conditions, such as a pressure, has two degrees less: no spurious pressures (inf-sup)
                less = 2 if not end_conditions and order < most else 0
                axes[field, axis] = LegendreAxis.of((low, high), degree - less, (order + 1) // 2, end_conditions)
        return axes

    def free_constant(self, field: str) -> bool:
        """Whether a constant may be added to a field, as to a pressure: no jet of it is without a derivative."""
        jets = [jet for one in self.pencil.terms for jet in one.coefficients if jet.field == field]
        return all(jet.order for jet in jets)


def _normal_rows(conditions: list[dict[Jet, complex]], axis: int) -> list[tuple[str, dict[int, complex]]]:
    """Conditions of a side as (field, normal order → factor).

    Where a field or a normal derivative vanishes on the side, so do its tangential derivatives, which are left out.
    """
    vanishing: set[tuple[str, int]] = set()
    rows = [dict(condition) for condition in conditions]
    while True:
        for row in rows:
            if len(row) == 1 and next(iter(row)).order == next(iter(row)).index[axis]:
                vanishing.add((next(iter(row)).field, next(iter(row)).index[axis]))
        reduced = [
            row if len(row) == 1 else {j: v for j, v in row.items() if (j.field, j.index[axis]) not in vanishing}
            for row in rows
        ]
        if [set(row) for row in reduced] == [set(row) for row in rows]:
            break
        rows = reduced
    normal_rows = []
    for row in rows:
        if any(jet.order != jet.index[axis] for jet in row) or len({jet.field for jet in row}) > 1:
            raise NotSeparable("a condition couples fields or derivatives along its side")
        if row:
            normal_rows.append((next(iter(row)).field, {jet.index[axis]: value for jet, value in row.items()}))
    return normal_rows


class BoxSystem:
    """The matrices of a problem on a box with these degrees along the axes."""

    def __init__(self, form: BoxForm, degrees: tuple[int, ...]) -> None:
        self.form, self.degrees = form, degrees
        self.axes = form.axes(degrees)
        self.shapes = {f: tuple(self.axes[f, a].size for a in range(form.dim)) for f in form.fields}
        self.kept: dict[str, Array] = {}
        for field, shape in self.shapes.items():
            kept = np.arange(int(np.prod(shape)))
            self.kept[field] = kept[1:] if form.free_constant(field) and self._has_constant(field) else kept
        self.offsets = np.concatenate([[0], np.cumsum([len(self.kept[f]) for f in form.fields])])

    def _has_constant(self, field: str) -> bool:
        axes = [self.axes[field, a] for a in range(self.form.dim)]
        return all(np.allclose(one.table(np.linspace(one.low, one.high, 5), 0)[:, 0], one.table(
            np.array([one.low]), 0)[0, 0]) for one in axes)  # fmt: skip

    @property
    def size(self) -> int:
        return int(self.offsets[-1])

    def grid(self, more: int = 0) -> tuple[list[Array], list[Array]]:
        """Nodes and weights of a rule along each axis that resolves products of functions and coefficients."""
        rules = []
        for a, degree in enumerate(self.degrees):
            periodic = self.form.periodic[a]
            count = 2 * degree + 8 + more if periodic else degree + degree // 2 + 8 + more
            rules.append(self.axes[self.form.fields[0], a].nodes(count))
        return [points for points, _ in rules], [weights for _, weights in rules]

    def coefficients(self, equation: LinearTerm, nodes: list[Array]) -> dict[Jet, dict[int, Array]]:
        """The coefficients of an equation on the grid of these nodes, each with the shape of the grid."""
        mesh = np.meshgrid(*nodes, indexing="ij")
        known = {s: m.ravel() for s, m in zip(self.form.pencil.problem.vocabulary.symbols, mesh, strict=True)}
        coefficients = equation.at(known, mesh[0].size)
        shape = mesh[0].shape
        return {jet: {p: v.reshape(shape) for p, v in powers.items()} for jet, powers in coefficients.items()}

    def matrices(self) -> list[Array]:
        """A_k (N, N) of Σ λ^k A_k, by powers of the eigenvalue."""
        form = self.form
        kind = complex if form.complex else float
        matrices = [np.zeros((self.size, self.size), dtype=kind) for _ in range(form.pencil.degree + 1)]
        nodes, weights = self.grid()
        for f, (field, equation) in enumerate(zip(form.fields, form.equations, strict=True)):
            tests = [self.axes[field, a].table(nodes[a], 0).conj() * weights[a][:, None] for a in range(form.dim)]
            for jet, powers in self.coefficients(equation, nodes).items():
                g = form.fields.index(jet.field)
                trial = [self.axes[jet.field, a].table(nodes[a], jet.index[a]) for a in range(form.dim)]
                rows = slice(self.offsets[f], self.offsets[f + 1])
                columns = slice(self.offsets[g], self.offsets[g + 1])
                for power, values in powers.items():
                    block = _product_matrix(values, tests, trial)
                    matrices[power][rows, columns] += block[np.ix_(self.kept[field], self.kept[jet.field])]
        return matrices

    def function(self, vector: Array) -> ProductFunction:
        """The fields of a vector of unknowns (N,), as products of polynomials or Fourier modes along the axes."""
        form = self.form
        arrays = []
        for f, field in enumerate(form.fields):
            of_field = np.zeros(int(np.prod(self.shapes[field])), dtype=vector.dtype)
            of_field[self.kept[field]] = vector[self.offsets[f] : self.offsets[f + 1]]
            values = of_field.reshape(self.shapes[field])
            for a in range(form.dim):
                values = np.moveaxis(np.tensordot(self.axes[field, a].coefficients, values, axes=(1, a)), 0, a)
            arrays.append(values)
        sizes = [max(one.shape[a] for one in arrays) for a in range(form.dim)]
        padded = [np.pad(one, [(0, n - m) for n, m in zip(sizes, one.shape, strict=True)]) for one in arrays]
        waves = tuple(
            self.axes[form.fields[0], a].phase if form.periodic[a] else None  # type: ignore[union-attr]
            for a in range(form.dim)
        )
        return ProductFunction(form.bounds, waves, np.stack(padded, axis=-1))


def _product_matrix(values: Array, tests: list[Array], trial: list[Array]) -> Array:
    """∫ a φ_i ψ_j for products of functions along the axes, by sums over one axis after the other."""
    if np.ptp(values.real) == 0 and np.ptp(values.imag) == 0:
        matrix = np.full((1, 1), values.ravel()[0])
        for test, function in zip(tests, trial, strict=True):
            matrix = np.kron(matrix, test.T @ function)
        return matrix
    block = values
    for test, function in zip(tests, trial, strict=True):
        products = (test[:, :, None] * function[:, None, :]).reshape(len(test), -1)
        block = np.tensordot(block, products, axes=(0, 0))
    dim = len(tests)
    sizes = [(test.shape[1], function.shape[1]) for test, function in zip(tests, trial, strict=True)]
    shaped = block.reshape([n for pair in sizes for n in pair])
    turned = shaped.transpose([*range(0, 2 * dim, 2), *range(1, 2 * dim, 2)])
    return np.asarray(turned.reshape(int(np.prod([t.shape[1] for t in tests])), -1))
