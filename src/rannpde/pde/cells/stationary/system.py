"""The least-squares system of a stationary problem on a mesh.

The unknowns are the output weights y of every cell and the traces λ on every face. The rows are the equations at the
points of a cell, the conditions at boundary points in it, and the continuity constraints ∂_axis^k u = λ_k on its faces
for k below the order of the equations; where a flux jumps, flux · n = λ. Every row is made dimensionless: it is divided
by the size that its terms would have for a field of known magnitude that varies over the length of the cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.checkpoints import bound_checkpoint
from rannpde.pde.cells.basis.basis import Cell
from rannpde.pde.cells.condensation.blocks import PivotBlock, SchurComplement
from rannpde.pde.cells.condensation.dissection import solve_traces
from rannpde.pde.cells.constraints.continuity import ContinuityConstraints, FluxOperator
from rannpde.pde.cells.constraints.fluxes import FaceFluxes, Fluxes
from rannpde.pde.cells.constraints.points import (
    CollocationPoints,
    Flows,
    collocation_points,
    corner_weights,
    field_jets,
    outflow_weight,
    record_flow,
)
from rannpde.pde.cells.mesh.mesh import Mesh
from rannpde.pde.cells.network import Weights
from rannpde.pde.functions import State
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import jets_of
from rannpde.pde.statement.expression import Jet
from rannpde.threads import one_thread

JetTable = Mapping["CollocationPoints", Mapping[Jet, Array]]


class Given(Protocol):
    """Unknowns of a problem that are not fields: their jets, and the derivatives of these with respect to ``count``
    numbers."""

    @property
    def count(self) -> int: ...

    def value(self, jet: Jet, points: Array) -> Array:
        """Return the jet (P,) at points (P, n)."""
        ...

    def slopes(self, jet: Jet, points: Array) -> Array:
        """Return the derivatives (P, count) of the jet with respect to the numbers."""
        ...


class NoLinearisation(np.linalg.LinAlgError):
    """A term is not finite where it is linearised: a root, a logarithm or a quotient leaves its domain there."""

    def __init__(self, term: str) -> None:
        super().__init__(f"the term {term!r} is not finite where it is linearised")
        self.term = term


class CellsSystem:
    """The rows of a problem on a mesh.

    sizes (fields,) : estimated magnitudes of the fields
    weak_outflow (leaves,) : where a value prescribed at an outflow may be missed (see ``points.outflow_weight``)
    factors : name of a term → factor of its rows
    given : unknowns other than the fields
    """

    def __init__(
        self,
        problem: Problem,
        mesh: Mesh,
        sizes: Array,
        weak_outflow: Array,
        factors: Mapping[str, float],
        seed: int,
        given: Given | None = None,
    ) -> None:
        self.given = given
        self.problem, self.mesh, self.sizes, self.weak_outflow, self.factors = (
            problem,
            mesh,
            sizes,
            weak_outflow,
            factors,
        )
        self.basis = next(cell.basis for _, cell in mesh.present)
        self.tuning = self.basis.tuning
        fields, axes = list(enumerate(problem.fields)), range(problem.domain.dim)
        traces = [[(n, k) for n, name in fields for k in range(max(1, problem.order(name, a)))] for a in axes]
        self.face_fluxes: FaceFluxes | None = None
        self.continuity = ContinuityConstraints(mesh, traces, sizes)
        if problem.jumping:
            fluxes = Fluxes(problem)
            self.continuity = ContinuityConstraints(mesh, traces, sizes, fluxes.flux_traces, len(fluxes))
            self.face_fluxes = FaceFluxes(problem, mesh, self.continuity, fluxes, self.tuning.largest_contrast_weight)
        mixed = len({max(problem.order(name, axis) for axis in axes) for _, name in fields}) > 1
        self.corner_weights = (
            corner_weights(mesh.tree, problem.domain, self.tuning.corner_exponent)
            if mixed
            else np.ones(len(mesh.cells))
        )
        self.collocations = collocation_points(problem, mesh, np.random.default_rng(seed))
        self.roots: list[list[Array]] = [[] for _ in mesh.cells]
        self.noise: list[list[Array]] | None = None
        self.amplitudes: dict[int, float] = {}
        """Identity of a cell → the size of the solution in it, relative to the sizes of the fields; 1 by default."""

    # -------------------------------------------------------------------------------------------------------- rows

    def _given_jets(self, collocation: CollocationPoints) -> dict[Jet, Array]:
        """Return the jets of the given unknowns."""
        if self.given is None:
            return {}
        others = [jet for jet in collocation.term.expression.jets if jet.field not in self.problem.fields]
        return {jet: self.given.value(jet, collocation.points) for jet in others}

    def jets(self, collocation: CollocationPoints, weights: Array) -> dict[Jet, Array]:
        fields = self.problem.fields
        jets = field_jets(self.problem, collocation.term)
        values = {jet: collocation.tables[jet.index] @ weights[:, fields.index(jet.field)] for jet in jets}
        return values | self._given_jets(collocation)

    def _jets_of_state(self, state: State) -> dict[CollocationPoints, dict[Jet, Array]]:
        """Return the jets of a function at all collocation points; zero for a linear problem, where any linearisation
        will do."""
        collocations = [collocation for of_cell in self.collocations for collocation in of_cell]
        collocations += self.face_fluxes.collocations if self.face_fluxes is not None else []
        if self.problem.linear:
            zero = {p: dict.fromkeys(field_jets(self.problem, p.term), np.zeros(len(p.points))) for p in collocations}
            return {p: jets | self._given_jets(p) for p, jets in zero.items()}
        needed = dict.fromkeys(
            jet for collocation in collocations for jet in field_jets(self.problem, collocation.term)
        )
        points = np.concatenate([collocation.points for collocation in collocations])
        values = jets_of(state, self.problem.fields, points, needed)
        ends = np.cumsum([len(collocation.points) for collocation in collocations])
        jets = {}
        for collocation, end in zip(collocations, ends, strict=True):
            rows = slice(end - len(collocation.points), end)
            jets[collocation] = {
                jet: values[jet][rows] for jet in field_jets(self.problem, collocation.term)
            } | self._given_jets(collocation)
        return jets

    def linearised(
        self, cell: Cell, collocation: CollocationPoints, jets: Mapping[Jet, Array]
    ) -> tuple[Array, list[Array], float]:
        """Return value and partial derivatives of a term, and the size that makes its rows dimensionless."""
        value, partials = collocation.term.expression.linearised(collocation.known, jets)
        natural = 0.0
        for jet, partial in zip(collocation.term.expression.jets, partials, strict=True):
            if jet.field not in self.problem.fields:
                continue
            size = self.sizes[self.problem.fields.index(jet.field)] * self.amplitudes.get(id(cell), 1.0)
            with np.errstate(over="ignore"):  # what is not finite is refused below
                natural += float(np.sqrt(np.mean(np.square(partial)))) * cell.factor(jet.index) * size
        if not (np.isfinite(natural) and np.isfinite(value).all()):
            raise NoLinearisation(collocation.term.name)
        return np.broadcast_to(value, len(collocation.points)), partials, max(natural, 1e-300)

    def row_weight(self, collocation: CollocationPoints, number: int) -> float:
        """Return the weight of the rows of a term in a cell, relative to equations away from corners."""
        factor = (
            collocation.term.weight * self.factors.get(collocation.term.name, 1.0) * float(self.corner_weights[number])
        )
        inside = collocation.term.kind == "interior"
        return (
            factor
            if inside
            else self.tuning.condition_weight[self.basis.dim - 1] * factor * float(self.corner_weights[number])
        )

    def constraint_weights(self, number: int) -> Array:
        """Return the factors (fields,) of the continuity rows of a cell.

        Where a solution is small before it grows, a jump is relative to its size there, as residuals are.
        """
        weights = (
            np.ones(len(self.problem.fields))
            if self.face_fluxes is None
            else self.face_fluxes.constraint_weights(number)
        )
        amplitude = self.amplitudes.get(id(self.mesh.cells[number]), 1.0)
        return np.asarray(self.corner_weights[number] * weights) / amplitude

    def _leaf(self, number: int, linearisation: JetTable | Weights) -> tuple[PivotBlock, SchurComplement] | None:
        """Return the pivot block and Schur complement of a cell (static condensation of its weights)."""
        cell = self.mesh.cells[number]
        if cell is None:
            return None
        functions = cell.functions
        blocks: list[Array] = []
        roots: list[Array] = []
        flows: Flows = {}
        for collocation in self.collocations[number]:
            jets = self._jets_at(collocation, number, linearisation)
            value, partials, natural = self.linearised(cell, collocation, jets)
            if collocation.term.kind == "interior":
                record_flow(flows, collocation, partials)
            weight = self.row_weight(collocation, number)
            weight *= 1.0 if self.face_fluxes is None else self.face_fluxes.row_weight(collocation, number)
            root = np.sqrt(collocation.weights) * (weight / natural)
            root = root * outflow_weight(cell, collocation, flows) if self.weak_outflow[number] else root
            block = self._block(collocation, root, jets, value, partials, functions)
            if self.noise is not None:
                block[:, -1] = root * natural * self.noise[number][len(blocks)]
            blocks.append(block)
            roots.append(root)
        self.roots[number] = roots
        flux_operator = self._flux_operators(number, cell, linearisation)
        return self.continuity.condensed(number, blocks, functions, flux_operator, self.constraint_weights(number))

    def _flux_operators(self, number: int, cell: Cell, linearisation: JetTable | Weights) -> list[FluxOperator]:
        """Return the rows of the fluxes that jump across faces of a cell."""
        if self.face_fluxes is None:
            return []
        operators = []
        for face_flux in self.face_fluxes.of_cell[number]:
            jets = self._jets_at(face_flux.collocation, number, linearisation)
            value, partials, _ = self.linearised(cell, face_flux.collocation, jets)
            plain = np.ones(len(face_flux.collocation.points))
            block = self._block(face_flux.collocation, plain, jets, value, partials, cell.functions)
            operators.append(self.face_fluxes.row(face_flux, block))
        return operators

    def _coefficients(
        self, collocation: CollocationPoints, number: int, linearisation: JetTable | Weights
    ) -> tuple[list[Array], float]:
        """Return the partial derivatives of a term in a cell, and its natural size."""
        cell = self.mesh.cells[number]
        assert cell is not None
        return self.linearised(cell, collocation, self._jets_at(collocation, number, linearisation))[1:]

    @property
    def rhs(self) -> int:
        """Number of right-hand sides: one, one for each number of the given unknowns, and one for a perturbation."""
        return 1 + (0 if self.given is None else self.given.count) + (self.noise is not None)

    def _jets_at(
        self, collocation: CollocationPoints, number: int, linearisation: JetTable | Weights
    ) -> Mapping[Jet, Array]:
        """Return the jets at collocation points of a cell at which terms are linearised."""
        return (
            self.jets(collocation, linearisation.cells[number])
            if isinstance(linearisation, Weights)
            else linearisation[collocation]
        )

    def _block(
        self,
        collocation: CollocationPoints,
        root: Array,
        jets: Mapping[Jet, Array],
        value: Array,
        partials: list[Array],
        functions: int,
    ) -> Array:
        """Return the rows (P, local + rhs) of a term linearised at jets, multiplied by ``root`` (P,)."""
        fields, local = self.problem.fields, functions * len(self.problem.fields)
        block = np.zeros((len(root), local + self.rhs))
        shift = -value
        for jet, partial in zip(collocation.term.expression.jets, partials, strict=True):
            if jet.field not in fields:
                assert self.given is not None
                block[:, local + 1 :] -= (root * partial)[:, None] * self.given.slopes(jet, collocation.points)
                continue
            start = fields.index(jet.field) * functions
            factor = root * partial
            block[:, start : start + functions] += collocation.tables[jet.index] * factor[:, None]
            shift = shift + partial * jets[jet]
        block[:, local] = shift * root
        return block

    # ---------------------------------------------------------------------------------------------------- solution

    def solve(self, state: State | Weights) -> tuple[Weights, bool]:
        """Return the weights of the problem linearised at a state, and whether the system is rank deficient."""
        solutions, rank_deficient = self.solve_all(state)
        return solutions[0], rank_deficient

    def solve_all(self, state: State | Weights) -> tuple[list[Weights], bool]:
        """Return what ``solve`` returns, then the derivatives of the weights by each number of the given unknowns."""
        linearisation: JetTable | Weights = state if isinstance(state, Weights) else self._jets_of_state(state)
        if self.face_fluxes is not None and self.face_fluxes.collocations:
            self.face_fluxes.rescale(
                self.collocations, lambda collocation, number: self._coefficients(collocation, number, linearisation)
            )

        check_budget = bound_checkpoint()

        def condense(number: int) -> tuple[PivotBlock, SchurComplement] | None:
            check_budget()
            return self._leaf(number, linearisation)

        with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
            leaves = list(pool.map(condense, range(len(self.mesh.cells))))
        traces, rank_deficient = solve_traces(self.mesh.tree, self.mesh.owners, self.continuity.widths, leaves)
        fields, rhs = len(self.problem.fields), self.rhs
        cells = []
        for leaf in leaves:
            solved, deficient = (np.empty((0, rhs)), False) if leaf is None else leaf[0].solve(traces)
            cells.append(solved.reshape(fields, -1, rhs))
            rank_deficient |= deficient
        columns = range(rhs)
        return [
            Weights(tuple(c[:, :, k].T for c in cells), tuple(t[:, k] for t in traces)) for k in columns
        ], rank_deficient

    def perturbed(self, weights: Weights, rng: np.random.Generator, levels: Array | None = None) -> Weights:
        """Return the change of the weights under a random residual: independent standard normal numbers at all points,
        relative to the natural size of each term.

        Its size is the factor by which the linearised problem amplifies residuals, an estimate of its stability
        constant: white noise has a component along the left singular vector of the smallest singular value, however
        smooth or rough that is.

        levels (C,) : with the residual of each leaf, the change is that under residuals of this size and of a random
            sign in each leaf: an estimate of the error that they leave, defect times stability
        """
        if levels is None:
            noise = [[rng.standard_normal(len(term.points)) for term in of_cell] for of_cell in self.collocations]
        else:
            signs = rng.choice([-1.0, 1.0], len(self.collocations)) * levels
            noise = [
                [np.full(len(term.points), sign) for term in of_cell]
                for sign, of_cell in zip(signs, self.collocations, strict=True)
            ]
        return self.response(weights, noise)

    def response(self, weights: Weights, noise: list[list[Array]]) -> Weights:
        """Return the change of the weights under residuals at the points of all terms, relative to the natural size of
        each term."""
        self.noise = noise
        try:
            return self.solve_all(weights)[0][-1]
        finally:
            self.noise = None
