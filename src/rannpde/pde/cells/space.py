"""The rows of an evolution problem on a mesh of space, for all stages of a step in time.

Unknown at each stage are the output weights of every cell and the traces on every joint, one behind the other in a
vector. Time derivatives are combinations of stages (see ``stages``), so a term that holds ∂_t^k ∂^α u becomes, for one
eigenvalue λ, the rows of a stationary problem with (λ/h)^k ∂^α u. Their triangles are kept and used again: what a step
still lacks is always measured with the terms themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from os import cpu_count

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.domain import SpaceTime
from rannpde.pde.cells.basis import Cell
from rannpde.pde.cells.elimination import Delicate, Kept, Remainder, along_products, factorise
from rannpde.pde.cells.mesh import Mesh
from rannpde.pde.cells.rows import CellPoints, RowsBuilder, SpaceRows
from rannpde.pde.cells.ties import Ties
from rannpde.pde.cells.triangles import SeminormalFactor
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.expression import Jet
from rannpde.threads import one_thread

CoefficientTable = dict[tuple[int, MultiIndex], Array]
"""(field, derivative in space) → what it is multiplied by, at all points of a term."""


@dataclass(frozen=True, eq=False)
class Tie:
    """Rows (R, functions) of one field of a cell on its joints, and the traces (H,) that the first H are equal to."""

    column: int
    rows: Array
    traces: Array


@dataclass(frozen=True, eq=False)
class StageFactor:
    """Triangles for one eigenvalue, with what A was made of: coefficients and factors (N,) of the rows, by term."""

    triangles: SeminormalFactor
    coefficients: tuple[CoefficientTable, ...]
    roots: tuple[Array, ...]


class SpaceSystem:
    """See the module.

    sizes (fields,) : of the fields, as far as known; factors : of the rows of a term, by name
    """

    def __init__(self, problem: Problem, mesh: Mesh, sizes: Array, factors: Mapping[str, float], seed: int) -> None:
        assert isinstance(problem.domain, SpaceTime)
        self.problem, self.mesh, self.sizes, self.factors = problem, mesh, sizes, factors
        self.space, (self.start, self.end) = problem.domain.space, problem.domain.time
        self.draw = next(cell.draw for _, cell in mesh.present)
        self.tuning = self.draw.tuning
        self.terms = [term for term in problem.terms if term.kind != "initial"]
        count = len(problem.fields)
        axes = range(1, problem.domain.dim)
        orders = [
            [(n, k) for n, f in enumerate(problem.fields) for k in range(max(1, problem.order(f, a)))] for a in axes
        ]
        self.ties = Ties(mesh, orders, sizes)
        self.functions = [0 if cell is None else cell.functions for cell in mesh.cells]
        ends = np.cumsum([0, *(count * width for width in self.functions)])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.inner, self.total = int(ends[-1]), int(ends[-1]) + sum(self.ties.widths)
        builder = RowsBuilder(problem, mesh, seed)
        self.rows = [builder.build(term) for term in self.terms]
        self.joined = [self._tie(number) for number in range(len(mesh.cells))]
        self.tied = [self.ties.products(number, width) for number, width in enumerate(self.functions)]
        volumes = np.array(
            [
                np.prod(leaf.lengths) * (cell is not None)
                for leaf, cell in zip(mesh.tree.leaves, mesh.cells, strict=True)
            ]
        )
        shares = volumes / volumes.sum()
        repeats = [count * width for width in self.functions]
        self.shares = np.repeat(shares, repeats)
        self.field = np.concatenate([np.repeat(np.arange(count), width) for width in self.functions])

    def like(self, problem: Problem) -> SpaceSystem:
        """The same rows of a problem that differs in its numbers only."""
        other = copy(self)
        other.problem, other.terms = problem, [term for term in problem.terms if term.kind != "initial"]
        other.rows = [replace(rows, term=term) for rows, term in zip(self.rows, other.terms, strict=True)]
        return other

    @property
    def order(self) -> int:
        """The highest derivative in time."""
        return max(jet.index[0] for term in self.terms for jet in term.expression.jets)

    def _tie(self, number: int) -> list[Tie]:
        starts = np.cumsum([0, *self.ties.widths])
        found = []
        for column in range(len(self.problem.fields)):
            held, traces, lost = [], [], []
            for crossing in self.ties.crossings[number]:
                at = starts[crossing.joint]
                for (own, _), inside, outside in zip(crossing.traces, crossing.held, crossing.lost, strict=True):
                    if own == column:
                        held.append(inside)
                        traces.append(np.arange(at, at + len(inside)))
                        lost.append(outside)
                    at += len(inside)
            if held:
                rows = self.ties.heavy * np.concatenate(held + lost)
                found.append(Tie(column, rows, np.concatenate(traces)))
        return found

    # ------------------------------------------------------------------------------------------------------ weights

    def cell_weights(self, vectors: Array, number: int) -> Array:
        """The weights (…, fields, functions) of one cell in vectors (…, total)."""
        shape = (*vectors.shape[:-1], len(self.sizes), self.functions[number])
        return vectors[..., self.spans[number]].reshape(shape)

    def norms(self, vectors: Array) -> Array:
        """Root mean squares over space, over the sizes of the fields: (…, fields)."""
        squares = np.square(vectors[..., : self.inner]) * self.shares
        found = [squares[..., self.field == n].sum(axis=-1) for n in range(len(self.sizes))]
        return np.sqrt(np.stack(found, axis=-1)) / self.sizes

    def sizes_by_cell(self, vector: Array) -> Array:
        """Root mean squares (C,) over each cell of a vector (total,), over the sizes of the fields, the largest."""
        found = [np.linalg.norm(self.cell_weights(vector, k), axis=1) / self.sizes for k in range(len(self.functions))]
        return np.max(found, axis=1)

    def jets(self, rows: SpaceRows, weights: Sequence[Array]) -> dict[Jet, Array]:
        """At all points of a term; ``weights`` : by order in time (stages, total). Each (stages · N,)."""
        fields, count = self.problem.fields, len(weights[0])
        found = {jet: np.empty((count, len(rows.weights))) for jet in rows.term.expression.jets}
        places = {
            jet: (rows.columns.index(fields.index(jet.field)), rows.indices.index(jet.index[1:])) for jet in found
        }
        chosen = list(rows.columns)
        for stretch in rows.stretches:
            own = self.cell_weights(weights[0], stretch.cell)[:, chosen]
            every = own.reshape(-1, own.shape[2]) @ stretch.tables.T
            every = every.reshape(count, len(chosen), len(rows.indices), -1)
            for jet, (column, number) in places.items():
                if jet.index[0] == 0:
                    found[jet][:, stretch.rows] = every[:, column, number]
                else:
                    part = self.cell_weights(weights[jet.index[0]], stretch.cell)[:, chosen[column]]
                    found[jet][:, stretch.rows] = part @ stretch.table(number).T
        return {jet: values.ravel() for jet, values in found.items()}

    # --------------------------------------------------------------------------------------------------------- rows

    def residuals(self, times: Array, weights: Sequence[Array]) -> tuple[list[Array], list[list[Array]]]:
        """What terms leave (stages, N), and what joints leave, by cell and field (stages, R)."""
        inside = []
        for rows in self.rows:
            value = rows.term.expression.value(rows.known(times), self.jets(rows, weights))
            inside.append(np.broadcast_to(value, len(times) * len(rows.weights)).reshape(len(times), -1))
        vectors, between = weights[0], []
        for number, ties in enumerate(self.joined):
            own = self.cell_weights(vectors, number)
            parts = []
            for tie in ties:
                gap = own[:, tie.column] @ tie.rows.T
                gap[:, : len(tie.traces)] -= self.ties.heavy * vectors[:, self.inner + tie.traces]
                parts.append(gap)
            between.append(parts)
        return inside, between

    def linearised(self, time: float, weights: Sequence[Array]) -> list[list[Array]]:
        """By term and jet the partial derivatives (N,) at one time; ``weights`` as of ``residuals``, of one stage."""
        found = []
        for rows in self.rows:
            _, partials = rows.term.expression.linearised(rows.known(np.array([time])), self.jets(rows, weights))
            found.append([np.broadcast_to(partial, len(rows.weights)) for partial in partials])
        return found

    def natural(self, rows: SpaceRows, partials: Sequence[Array], rate: float) -> Array:
        """(N,): what the summands of a term are for fields of their sizes that vary over a cell, ∂_t at that rate."""
        found = np.empty(len(rows.weights))
        for stretch in rows.stretches:
            cell, total = self._cell(stretch.cell), 0.0
            for jet, partial in zip(rows.term.expression.jets, partials, strict=True):
                size = self.sizes[self.problem.fields.index(jet.field)] * rate ** jet.index[0]
                mean = float(np.sqrt(np.mean(np.square(partial[stretch.rows]))))
                total += mean * cell.factor(jet.index[1:]) * size
            found[stretch.rows] = max(total, 1e-300)
        return found

    def weight(self, rows: SpaceRows) -> float:
        """Of the rows of a term over those of equations."""
        factor = rows.term.weight * self.factors.get(rows.term.name, 1.0)
        return factor if rows.term.kind == "interior" else self.tuning.condition_weight[self.draw.dim - 1] * factor

    def _cell(self, number: int) -> Cell:
        cell = self.mesh.cells[number]
        assert cell is not None
        return cell

    def factor(
        self, partials: Sequence[Sequence[Array]], shift: float | complex, checkpoint: Callable[[], None]
    ) -> StageFactor:
        """The rows with ∂_t^k replaced by shift^k, factorised along the tree."""
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
        homes: list[list[tuple[SpaceRows, CoefficientTable, CellPoints]]] = [[] for _ in self.mesh.cells]
        for rows, table in zip(self.rows, coefficients, strict=True):
            for stretch in rows.stretches:
                homes[stretch.cell].append((rows, table, stretch))

        def leaf(number: int) -> tuple[Kept, Remainder] | None:
            if self.mesh.cells[number] is None:
                return None
            checkpoint()
            functions, blocks = self.functions[number], []
            for rows, table, stretch in homes[number]:
                height = stretch.rows.stop - stretch.rows.start
                block = np.zeros((height, functions * len(self.sizes) + 1), dtype=kind)
                for (column, index), factor in table.items():
                    here = block[:, column * functions : (column + 1) * functions]
                    here += stretch.table(rows.indices.index(index)) * factor[stretch.rows, None]
                blocks.append(block)
            return eliminated(number, blocks, functions)

        def leaves_of() -> list[tuple[Kept, Remainder] | None]:
            with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
                return list(pool.map(leaf, range(len(self.mesh.cells))))

        eliminated = self._squared
        leaves = leaves_of()
        left = [None if one is None else one[1] for one in leaves]
        try:
            order = along_products(self.mesh.tree, self.mesh.owners, self.ties.widths, left, checkpoint)
        except Delicate:
            eliminated = self.ties.eliminated
            leaves = leaves_of()
            order, _ = factorise(self.mesh.tree, self.mesh.owners, self.ties.widths, leaves, checkpoint)
        kept = [None if one is None else one[0] for one in leaves]
        return StageFactor(SeminormalFactor(kept, order, self.ties.widths), tuple(coefficients), tuple(roots))

    def _squared(self, number: int, blocks: Sequence[Array], functions: int) -> tuple[Kept, Remainder]:
        return self.ties.squared(number, blocks, functions, self.tied[number])

    def correction(self, factor: StageFactor, inside: Sequence[Array], between: Sequence[Sequence[Array]]) -> Array:
        """The vector (total,) that takes away these residuals (N,), (R,) as well as the rows of a factor can."""
        kind = complex if any(np.iscomplexobj(part) for part in inside) else float
        cells = [np.zeros((len(self.sizes), width), dtype=kind) for width in self.functions]
        traces = np.zeros(self.total - self.inner, dtype=kind)
        for rows, table, root, residual in zip(self.rows, factor.coefficients, factor.roots, inside, strict=True):
            weighted = root * residual
            ready = np.zeros((len(rows.columns), len(rows.indices), len(weighted)), dtype=kind)
            for (column, index), coefficient in table.items():
                ready[rows.columns.index(column), rows.indices.index(index)] = np.conj(coefficient) * weighted
            chosen = list(rows.columns)
            for stretch in rows.stretches:
                part = ready[:, :, stretch.rows].reshape(len(chosen), -1)
                cells[stretch.cell][chosen] -= _adjoint(stretch.tables, part)
        for number, (ties, gaps) in enumerate(zip(self.joined, between, strict=True)):
            for tie, gap in zip(ties, gaps, strict=True):
                cells[number][tie.column] -= _adjoint(tie.rows, gap)
                np.add.at(traces, tie.traces, self.ties.heavy * gap[: len(tie.traces)])
        solved, ties_solved = factor.triangles.solve([part.ravel() for part in cells], traces)
        return np.concatenate([*solved, ties_solved])


def _adjoint(table: Array, values: Array) -> Array:
    """values · table for a real table and values (…, P) that may be complex, without a complex copy of the table."""
    if not np.iscomplexobj(values):
        return np.asarray(values @ table)
    both = np.concatenate([np.atleast_2d(values.real), np.atleast_2d(values.imag)]) @ table
    half = len(both) // 2
    return (both[:half] + 1j * both[half:]).reshape(*values.shape[:-1], table.shape[1])
