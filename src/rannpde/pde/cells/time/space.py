"""The rows of an evolution problem on a mesh of space, for all stages of a time step.

At each stage the unknowns are the output weights of every cell and the traces on every face, concatenated in a vector.
Time derivatives are linear combinations of stages (see ``radau``), so that a term with ∂_t^k ∂^α u becomes, for one
eigenvalue λ, the row of a stationary problem with (λ/h)^k ∂^α u. The triangular factors of these rows are reused over
many steps; residuals are always evaluated with the terms themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from os import cpu_count

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import bound_checkpoint
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis.basis import Cell
from rannpde.pde.cells.condensation.blocks import IllConditioned, PivotBlock, SchurComplement
from rannpde.pde.cells.condensation.dissection import dissect_normal, factorise
from rannpde.pde.cells.condensation.seminormal import SeminormalFactor
from rannpde.pde.cells.constraints.continuity import ContinuityConstraints
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.cells.time.rows import CellRows, RowsBuilder, SpaceRows
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet
from rannpde.threads import one_thread

CoefficientTable = dict[tuple[int, MultiIndex], Array]
"""(field, spatial derivative) → its coefficient at all points of a term."""


@dataclass(frozen=True, eq=False)
class FieldConstraint:
    """The continuity rows (R, functions) of one field of a cell, and the traces (H,) to which the first H are equal."""

    column: int
    rows: Array
    traces: Array


@dataclass(frozen=True, eq=False)
class StageFactor:
    """The triangular factor for one eigenvalue, and the coefficients and row factors (N,) it was made from, by term."""

    factor: SeminormalFactor
    coefficients: tuple[CoefficientTable, ...]
    roots: tuple[Array, ...]


class SpaceSystem:
    """The rows of an evolution problem (see the module).

    sizes (fields,) : magnitudes of the fields, as far as known; factors : factors of the rows of a term, by name
    """

    def __init__(self, problem: Problem, mesh: Mesh, sizes: Array, factors: Mapping[str, float], seed: int) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.mesh, self.sizes, self.factors = problem, mesh, sizes, factors
        self.space, (self.start, self.end) = problem.domain.space, problem.domain.time
        self.basis = next(cell.basis for _, cell in mesh.present)
        self.tuning = self.basis.tuning
        self.terms = [term for term in problem.terms if term.kind != "initial"]
        count = len(problem.fields)
        axes = range(1, problem.domain.dim)
        orders = [
            [(n, k) for n, f in enumerate(problem.fields) for k in range(max(1, problem.order(f, a)))] for a in axes
        ]
        self.continuity = ContinuityConstraints(mesh, orders, sizes)
        self.functions = [0 if cell is None else cell.functions for cell in mesh.cells]
        ends = np.cumsum([0, *(count * width for width in self.functions)])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.inner, self.total = int(ends[-1]), int(ends[-1]) + sum(self.continuity.widths)
        builder = RowsBuilder(problem, mesh, seed)
        self.rows = [builder.build(term) for term in self.terms]
        self.constraints = [self._constraints_of(number) for number in range(len(mesh.cells))]
        self.constraint_products = [
            self.continuity.normal_products(number, width) for number, width in enumerate(self.functions)
        ]
        volumes = np.array(
            [
                np.prod(leaf.lengths) * (cell is not None)
                for leaf, cell in zip(mesh.tree.leaves, mesh.cells, strict=True)
            ]
        )
        volume_fractions = volumes / volumes.sum()
        repeats = [count * width for width in self.functions]
        self.volume_fractions = np.repeat(volume_fractions, repeats)
        self.field = np.concatenate([np.repeat(np.arange(count), width) for width in self.functions])

    def like(self, problem: Problem) -> SpaceSystem:
        """Return the same rows for a problem that differs in the values of its parameters only."""
        other = copy(self)
        other.problem, other.terms = problem, [term for term in problem.terms if term.kind != "initial"]
        other.rows = [replace(rows, term=term) for rows, term in zip(self.rows, other.terms, strict=True)]
        return other

    @property
    def order(self) -> int:
        """The highest time derivative."""
        return max(jet.index[0] for term in self.terms for jet in term.expression.jets)

    def _constraints_of(self, number: int) -> list[FieldConstraint]:
        starts = np.cumsum([0, *self.continuity.widths])
        constraints = []
        for column in range(len(self.problem.fields)):
            projected, traces, complement = [], [], []
            for operator in self.continuity.operators[number]:
                at = starts[operator.face]
                for (own, _), projection, rest in zip(
                    operator.traces, operator.projected, operator.complement, strict=True
                ):
                    if own == column:
                        projected.append(projection)
                        traces.append(np.arange(at, at + len(projection)))
                        complement.append(rest)
                    at += len(projection)
            if projected:
                rows = self.continuity.face_weight * np.concatenate(projected + complement)
                constraints.append(FieldConstraint(column, rows, np.concatenate(traces)))
        return constraints

    # ------------------------------------------------------------------------------------------------------ weights

    def cell_weights(self, vectors: Array, number: int) -> Array:
        """Return the weights (…, fields, functions) of one cell in vectors (…, total)."""
        shape = (*vectors.shape[:-1], len(self.sizes), self.functions[number])
        return vectors[..., self.spans[number]].reshape(shape)

    def norms(self, vectors: Array) -> Array:
        """Return root mean squares over space, relative to the sizes of the fields: (…, fields)."""
        squares = np.square(vectors[..., : self.inner]) * self.volume_fractions
        sums = [squares[..., self.field == n].sum(axis=-1) for n in range(len(self.sizes))]
        return np.sqrt(np.stack(sums, axis=-1)) / self.sizes

    def sizes_by_cell(self, vector: Array) -> Array:
        """Return root mean squares (C,) of a vector (total,) over each cell, relative to the sizes; the largest over
        the fields."""
        sizes = [np.linalg.norm(self.cell_weights(vector, k), axis=1) / self.sizes for k in range(len(self.functions))]
        return np.max(sizes, axis=1)

    def jets(self, rows: SpaceRows, weights: Sequence[Array]) -> dict[Jet, Array]:
        """Return the jets of a term at all its points, each (stages · N,); ``weights`` : by order in time (stages,
        total)."""
        fields, count = self.problem.fields, len(weights[0])
        values = {jet: np.empty((count, len(rows.weights))) for jet in rows.term.expression.jets}
        positions = {
            jet: (rows.columns.index(fields.index(jet.field)), rows.indices.index(jet.index[1:])) for jet in values
        }
        chosen = list(rows.columns)
        for cell_rows in rows.by_cell:
            own = self.cell_weights(weights[0], cell_rows.cell)[:, chosen]
            every = own.reshape(-1, own.shape[2]) @ cell_rows.tables.T
            every = every.reshape(count, len(chosen), len(rows.indices), -1)
            for jet, (column, number) in positions.items():
                if jet.index[0] == 0:
                    values[jet][:, cell_rows.rows] = every[:, column, number]
                else:
                    part = self.cell_weights(weights[jet.index[0]], cell_rows.cell)[:, chosen[column]]
                    values[jet][:, cell_rows.rows] = part @ cell_rows.table(number).T
        return {jet: value.ravel() for jet, value in values.items()}

    # --------------------------------------------------------------------------------------------------------- rows

    def residuals(self, times: Array, weights: Sequence[Array]) -> tuple[list[Array], list[list[Array]]]:
        """Return the residuals of terms (stages, N), and of continuity constraints by cell and field (stages, R)."""
        equation_residuals = []
        for rows in self.rows:
            value = rows.term.expression.value(rows.known(times), self.jets(rows, weights))
            equation_residuals.append(np.broadcast_to(value, len(times) * len(rows.weights)).reshape(len(times), -1))
        vectors, face_residuals = weights[0], []
        for number, constraints in enumerate(self.constraints):
            own = self.cell_weights(vectors, number)
            parts = []
            for constraint in constraints:
                gap = own[:, constraint.column] @ constraint.rows.T
                gap[:, : len(constraint.traces)] -= (
                    self.continuity.face_weight * vectors[:, self.inner + constraint.traces]
                )
                parts.append(gap)
            face_residuals.append(parts)
        return equation_residuals, face_residuals

    def linearised(self, time: float, weights: Sequence[Array]) -> list[list[Array]]:
        """Return by term and jet the partial derivatives (N,) at one time; ``weights`` : as in ``residuals``, of one
        stage."""
        derivatives = []
        for rows in self.rows:
            _, partials = rows.term.expression.linearised(rows.known(np.array([time])), self.jets(rows, weights))
            derivatives.append([np.broadcast_to(partial, len(rows.weights)) for partial in partials])
        return derivatives

    def natural(self, rows: SpaceRows, partials: Sequence[Array], rate: float) -> Array:
        """Return the natural size (N,) of a term: for fields of their sizes that vary over a cell, with ∂_t of size
        ``rate``."""
        scales = np.empty(len(rows.weights))
        for cell_rows in rows.by_cell:
            cell, total = self._cell(cell_rows.cell), 0.0
            for jet, partial in zip(rows.term.expression.jets, partials, strict=True):
                size = self.sizes[self.problem.fields.index(jet.field)] * rate ** jet.index[0]
                mean = float(np.sqrt(np.mean(np.square(partial[cell_rows.rows]))))
                total += mean * cell.factor(jet.index[1:]) * size
            scales[cell_rows.rows] = max(total, 1e-300)
        return scales

    def weight(self, rows: SpaceRows) -> float:
        """Return the weight of the rows of a term relative to equations."""
        factor = rows.term.weight * self.factors.get(rows.term.name, 1.0)
        return factor if rows.term.kind == "interior" else self.tuning.condition_weight[self.basis.dim - 1] * factor

    def _cell(self, number: int) -> Cell:
        cell = self.mesh.cells[number]
        assert cell is not None
        return cell

    def factor(self, partials: Sequence[Sequence[Array]], shift: float | complex) -> StageFactor:
        """Factorise the rows with ∂_t^k replaced by shift^k along the tree."""
        roots, coefficients = [], []
        for rows, own in zip(self.rows, partials, strict=True):
            natural = self.natural(rows, own, abs(shift))
            root = np.sqrt(rows.weights) * (self.weight(rows) / natural)
            table: CoefficientTable = {}
            for jet, partial in zip(rows.term.expression.jets, own, strict=True):
                key = (self.problem.fields.index(jet.field), jet.index[1:])
                table[key] = table.get(key, 0.0) + root * partial * shift ** jet.index[0]
            roots.append(root)
            coefficients.append(table)
        kind = np.result_type(type(shift), float)
        rows_of_cell: list[list[tuple[SpaceRows, CoefficientTable, CellRows]]] = [[] for _ in self.mesh.cells]
        for rows, table in zip(self.rows, coefficients, strict=True):
            for cell_rows in rows.by_cell:
                rows_of_cell[cell_rows.cell].append((rows, table, cell_rows))

        ask = bound_checkpoint()

        def leaf(number: int) -> tuple[PivotBlock, SchurComplement] | None:
            if self.mesh.cells[number] is None:
                return None
            ask()
            functions, blocks = self.functions[number], []
            for rows, table, cell_rows in rows_of_cell[number]:
                height = cell_rows.rows.stop - cell_rows.rows.start
                block = np.zeros((height, functions * len(self.sizes) + 1), dtype=kind)
                for (column, index), factor in table.items():
                    here = block[:, column * functions : (column + 1) * functions]
                    here += cell_rows.table(rows.indices.index(index)) * factor[cell_rows.rows, None]
                blocks.append(block)
            return condense(number, blocks, functions)

        def condense_all() -> list[tuple[PivotBlock, SchurComplement] | None]:
            with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
                return list(pool.map(leaf, range(len(self.mesh.cells))))

        condense = self._condensed_normal
        leaves = condense_all()
        complements = [None if one is None else one[1] for one in leaves]
        try:
            elimination = dissect_normal(self.mesh.tree, self.mesh.owners, self.continuity.widths, complements)
        except IllConditioned:
            condense = self.continuity.condensed
            leaves = condense_all()
            elimination, _ = factorise(self.mesh.tree, self.mesh.owners, self.continuity.widths, leaves)
        pivots = [None if one is None else one[0] for one in leaves]
        return StageFactor(
            SeminormalFactor(pivots, elimination, self.continuity.widths), tuple(coefficients), tuple(roots)
        )

    def _condensed_normal(
        self, number: int, blocks: Sequence[Array], functions: int
    ) -> tuple[PivotBlock, SchurComplement]:
        return self.continuity.condensed_normal(number, blocks, functions, self.constraint_products[number])

    def correction(
        self, factor: StageFactor, equation_residuals: Sequence[Array], face_residuals: Sequence[Sequence[Array]]
    ) -> Array:
        """Return the vector (total,) that minimises the residuals (N,), (R,) in the least-squares sense of a factor."""
        kind = complex if any(np.iscomplexobj(part) for part in equation_residuals) else float
        cells = [np.zeros((len(self.sizes), width), dtype=kind) for width in self.functions]
        traces = np.zeros(self.total - self.inner, dtype=kind)
        for rows, table, root, residual in zip(
            self.rows, factor.coefficients, factor.roots, equation_residuals, strict=True
        ):
            weighted = root * residual
            ready = np.zeros((len(rows.columns), len(rows.indices), len(weighted)), dtype=kind)
            for (column, index), coefficient in table.items():
                ready[rows.columns.index(column), rows.indices.index(index)] = np.conj(coefficient) * weighted
            chosen = list(rows.columns)
            for cell_rows in rows.by_cell:
                part = ready[:, :, cell_rows.rows].reshape(len(chosen), -1)
                cells[cell_rows.cell][chosen] -= _adjoint(cell_rows.tables, part)
        for number, (constraints, gaps) in enumerate(zip(self.constraints, face_residuals, strict=True)):
            for constraint, gap in zip(constraints, gaps, strict=True):
                cells[number][constraint.column] -= _adjoint(constraint.rows, gap)
                np.add.at(traces, constraint.traces, self.continuity.face_weight * gap[: len(constraint.traces)])
        solved, ties_solved = factor.factor.solve([part.ravel() for part in cells], traces)
        return np.concatenate([*solved, ties_solved])


def _adjoint(table: Array, values: Array) -> Array:
    """Return values · table for a real table and possibly complex values (…, P), without a complex copy of the
    table."""
    if not np.iscomplexobj(values):
        return np.asarray(values @ table)
    both = np.concatenate([np.atleast_2d(values.real), np.atleast_2d(values.imag)]) @ table
    half = len(both) // 2
    return (both[:half] + 1j * both[half:]).reshape(*values.shape[:-1], table.shape[1])
