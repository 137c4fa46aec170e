"""The rows of a mesh: continuity across faces and conditions on the boundary, and the residuals of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.residual import Term
from rannpde.pde.trefftz.geometry import JOINED_ENDS
from rannpde.pde.trefftz.rows import ConditionPoints, condition_residual, condition_rows
from rannpde.pde.trefftz.segments import BoundarySegment
from rannpde.pde.trefftz.varying.dissection import Dissection, NeighbourRows
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.local import LocalOperator, LocalSolutions
from rannpde.pde.trefftz.varying.mesh import BoxMesh, BoxSegment
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.pde.trefftz.varying.polynomials import square_polynomials, unit_gauss


@dataclass(frozen=True, eq=False)
class VaryingState:
    """One solve: the function, its residuals, and how stable the problem is.

    scale : root mean square of the function; missed : error of jumps and conditions
    residual : that of the equation, relative to its terms, in the worst cell
    indicators (C,) : squared, of the error of each cell; rows : number of rows
    stability : bound of the error inside for a unit residual
    algebra : relative size of the remaining step of Newton's method; steps : factorisations that it took
    """

    network: VaryingNetwork
    scale: float
    missed: float
    largest: float
    residual: float
    indicators: Array
    stability: float
    rows: int
    algebra: float = 0.0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class VaryingSystem:
    """An equation on a mesh with polynomials of a degree.

    start : coefficients (C, N) of the state at which an equation that is not linear is linearised
    """

    equation: VaryingEquation
    mesh: BoxMesh
    degree: int
    start: Array | None = None

    def solved(self) -> VaryingState:
        """The least-squares solution of an equation that is linear."""
        factorised = self.factorised()
        return factorised.judged(factorised.solution())

    def factorised(self) -> FactorisedSystem:
        """All local solutions, and the triangular factor of their rows."""
        square, mesh = square_polynomials(self.degree), self.mesh
        kept = square.count if self.start is None else 2 * square.count
        reserve(FLOAT_BYTES * square.solutions * len(mesh) * (kept + 16 * square.solutions), "features of all cells")
        operator = LocalOperator(self.equation, square, mesh, self.start)
        local = []
        for number in range(len(mesh)):
            checkpoint()
            local.append(operator.solutions(number))
        rows = []
        for face in mesh.faces:
            checkpoint()
            rows.append(self._face_rows(face, local))
        return FactorisedSystem(self, operator, local, rows, Dissection.of(rows, mesh.cells, square.solutions))

    # ---------------------------------------------------------------------------------------------------- rows

    def _face_rows(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        return self._continuity(face, local) if min(face.cells) >= 0 else self._condition(face, local)

    def face_rhs(self, face: BoxSegment, coefficients: Array) -> Array:
        """Minus the residual of polynomials with coefficients (C, N) on a face, weighted like the rows of the face."""
        if min(face.cells) < 0:
            cell = max(face.cells)
            term, condition = self._condition_points(face)
            tables = self._traces(face, cell, 2 * self.degree, _derivatives(term), coefficients[cell])
            here = {index: own[:, None] for index, own in tables.items()}
            residual, size, _ = condition_residual(condition, here, self.equation.problem.vocabulary)
            return np.asarray(-residual * condition.weights * term.weight / size)
        nodes = self.degree + 1
        weights = self._continuity_weights(face)
        lower, upper = (self._traces(face, cell, nodes, list(weights), coefficients[cell]) for cell in face.cells)
        return np.concatenate([(upper[index] - lower[index]) * own for index, own in weights.items()])

    def _roots(self, face: BoxSegment, weights: Array) -> Array:
        """The roots (K,) of the shares of the boundary of the domain that nodes of a face with these weights have."""
        return np.sqrt(0.5 * weights * face.length / self.equation.length)

    def _scale(self, face: BoxSegment) -> float:
        """The length over which functions of the cells at a face vary across it."""
        own = [cell for cell in face.cells if cell >= 0]
        return float(self.mesh.halves[own, face.axis].min()) / self.degree

    def _traces(
        self, face: BoxSegment, cell: int, nodes: int, indices: Sequence[MultiIndex], coefficients: Array
    ) -> dict[MultiIndex, Array]:
        """∂^index (K, …) of polynomials with coefficients (N, …) in a cell at ``nodes`` Gauss nodes K of a face."""
        square, halves, axis = square_polynomials(self.degree), self.mesh.halves[cell], face.axis
        end = 1 if face.cells[0] == cell else -1
        low, high = (float((one - self.mesh.middles[cell, 1 - axis]) / halves[1 - axis]) for one in face.ends)
        traces = {}
        for index in indices:
            across = square.trace(axis, end, index[axis]) @ coefficients / np.prod(halves ** np.array(index))
            traces[index] = square.on_segment(low, high, nodes, index[1 - axis]) @ across
        return traces

    def _continuity_weights(self, face: BoxSegment) -> dict[MultiIndex, Array]:
        """The weights (K,) of jumps of values and of normal derivatives at the nodes of a face."""
        roots = self._roots(face, unit_gauss(self.degree + 1)[1])
        across = (1, 0) if face.axis == 0 else (0, 1)
        return {(0, 0): roots, across: roots * self._scale(face)}

    def _continuity(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        """Values and normal derivatives, polynomials on the face whose squares Gauss' rule integrates."""
        nodes = self.degree + 1
        weights = self._continuity_weights(face)
        lower, upper = (self._traces(face, c, nodes, list(weights), local[c].columns) for c in face.cells)
        matrices, sides = [], []
        for index, own in weights.items():
            matrices.append(np.hstack([lower[index][:, 1:], -upper[index][:, 1:]]) * own[:, None])
            sides.append((upper[index][:, 0] - lower[index][:, 0]) * own)
        return NeighbourRows(face.cells, np.vstack(matrices), np.concatenate(sides))

    def _condition_points(self, face: BoxSegment) -> tuple[Term, ConditionPoints]:
        """The condition on a face of the boundary, and its collocation points."""
        nodes, shares = unit_gauss(2 * self.degree)
        points, roots = face.points(nodes), self._roots(face, shares)
        (term,) = self._segment(face).terms
        scales = np.full(len(points), self._scale(face))
        return term, ConditionPoints(term, points, roots, scales, np.zeros(len(points)))

    def _condition(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        cell, words = max(face.cells), self.equation.problem.vocabulary
        term, condition = self._condition_points(face)
        tables = self._traces(face, cell, 2 * self.degree, _derivatives(term), local[cell].columns)
        matrix, residual, size = condition_rows(
            term.expression,
            term.known(condition.points, words, term.data),
            {index: own[:, :1] for index, own in tables.items()},
            condition,
            {index: own[:, None, 1:] for index, own in tables.items()},
            words,
        )
        weights = condition.weights * term.weight / size
        rows, rhs = matrix * weights[:, None], -residual * weights
        if not (np.isfinite(rows).all() and np.isfinite(rhs).all()):
            raise np.linalg.LinAlgError(f"the condition {term.name!r} is not finite on the boundary")
        return NeighbourRows((cell,), rows, rhs)

    def _segment(self, face: BoxSegment) -> BoundarySegment:
        """The segment of the boundary that a face belongs to."""
        (middle,) = face.points(np.zeros(1))
        near = JOINED_ENDS * float(np.ptp(self.equation.bounds, axis=1).max())
        for segment in self.equation.segments:
            ends = np.sort(segment.points(np.array([0.0, 1.0])), axis=0)
            if (ends[0] - near <= middle).all() and (middle <= ends[1] + near).all():
                return segment
        raise AssertionError("conditions cover the boundary")


@dataclass(frozen=True, eq=False)
class FactorisedSystem:
    """A system with its local solutions, the rows of all faces, and their triangular factor."""

    system: VaryingSystem
    operator: LocalOperator
    local: Sequence[LocalSolutions]
    rows: Sequence[NeighbourRows]
    factors: Dissection

    def solution(self) -> Array:
        """Coefficients (C, N) of the minimiser."""
        unknowns = self.factors.solved()
        residuals = [one.rhs - one.applied(unknowns) for one in self.rows]
        unknowns = unknowns + self.factors.corrected(self._products(residuals))
        if not np.isfinite(unknowns).all():
            raise np.linalg.LinAlgError("the conditions do not determine the solution")
        return np.array([one.coefficients(c) for one, c in zip(self.local, unknowns, strict=True)])

    def correction(self, coefficients: Array) -> Array:
        """The step (C, N) of Newton's method at another state (C, N) with the tangent of this one (simplified Newton
        method), by semi-normal equations; not finite where the equation is not."""
        system, steps = self.system, []
        for number, (own, one) in enumerate(zip(coefficients, self.local, strict=True)):
            checkpoint()
            steps.append(one.response(-self.operator.residual(number, own)))
        moved = coefficients + np.array(steps)
        weights = self.factors.corrected(self._products([system.face_rhs(face, moved) for face in system.mesh.faces]))
        homogeneous = [one.homogeneous @ own for one, own in zip(self.local, weights, strict=True)]
        return np.asarray(steps) + np.array(homogeneous)

    def judged(self, coefficients: Array) -> VaryingState:
        """The residuals and indicators of the function with coefficients (C, N)."""
        system, mesh = self.system, self.system.mesh
        network = VaryingNetwork(mesh, system.degree, coefficients)
        operator = self.operator
        if not system.equation.linear:
            operator = LocalOperator(system.equation.at(network), operator.square, mesh)
        shares = mesh.shares
        scale = float(np.sqrt((shares * np.square(coefficients).sum(axis=1)).sum()))
        defects = np.array([operator.defect(k, own) for k, own in enumerate(coefficients)])
        relative = defects[:, 0] / max(float(defects[:, 1].max()), 1e-300)
        highest = np.add(*operator.square.powers) >= system.degree - 1
        indicators = shares * np.square(coefficients[:, highest]).sum(axis=1)
        missed, worst = 0.0, 0.0
        for face in mesh.faces:
            error = system.face_rhs(face, coefficients)
            cells = [cell for cell in face.cells if cell >= 0]
            own = float(error @ error)
            missed, worst = missed + own, max(worst, float(np.abs(error).max() * np.sqrt(len(error))))
            indicators[cells] += own / len(cells)
        smallest = self.factors.smallest_singular_value(np.sqrt(shares))
        return VaryingState(
            network, scale or 1.0, float(np.sqrt(missed)), worst, float(relative.max()), indicators,
            1 / max(smallest, 1e-300), sum(len(one.rhs) for one in self.rows),
        )  # fmt: skip

    def _products(self, residuals: Sequence[Array]) -> Array:
        """The adjoint of all rows applied to residuals: (C, m)."""
        total = np.zeros((self.factors.count, self.factors.width))
        for one, error in zip(self.rows, residuals, strict=True):
            total[list(one.cells)] += (one.matrix.T @ error).reshape(len(one.cells), -1)
        return total


def _derivatives(term: Term) -> list[MultiIndex]:
    return list(dict.fromkeys(jet.index for jet in term.expression.jets))
