"""The rows of a mesh: continuity across faces and conditions on the boundary, and what a solve leaves of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.checkpoints import FLOAT_BYTES, checkpoint, reserve
from rannpde.pde.trefftz.geometry import JOINED_ENDS
from rannpde.pde.trefftz.rows import ConditionPoints, condition_rows
from rannpde.pde.trefftz.segments import BoundarySegment
from rannpde.pde.trefftz.varying.dissection import Dissection, NeighbourRows
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.local import LocalOperator, LocalSolutions
from rannpde.pde.trefftz.varying.mesh import BoxMesh, BoxSegment
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.pde.trefftz.varying.polynomials import square_polynomials, unit_gauss


@dataclass(frozen=True, eq=False)
class VaryingState:
    """One solve: the function, what it misses, and how stable the problem is.

    scale : root mean square of the function; missed : of jumps and conditions; residual : largest of a cell, relative
    indicators (C,) : squared, of the error of each cell; rows : their number
    stability : what a unit of what is missed may be inside
    """

    network: VaryingNetwork
    scale: float
    missed: float
    largest: float
    residual: float
    indicators: Array
    stability: float
    rows: int


@dataclass(frozen=True, eq=False)
class VaryingSystem:
    """An equation on a mesh with polynomials of a degree."""

    equation: VaryingEquation
    mesh: BoxMesh
    degree: int

    def solved(self) -> VaryingState:
        """The least-squares solution."""
        square, mesh = square_polynomials(self.degree), self.mesh
        reserve(
            FLOAT_BYTES * square.solutions * len(mesh) * (square.count + 16 * square.solutions), "features of all cells"
        )
        operator = LocalOperator(self.equation, square, mesh)
        local = []
        for number in range(len(mesh)):
            checkpoint()
            local.append(operator.solutions(number))
        rows = []
        for face in mesh.faces:
            checkpoint()
            rows.append(self._face_rows(face, local))
        factors = Dissection.of(rows, mesh.cells, square.solutions)
        unknowns = factors.solved()
        left = [one.rhs - one.applied(unknowns) for one in rows]
        unknowns = unknowns + factors.corrected(_products(rows, left, unknowns.shape))
        if not np.isfinite(unknowns).all():
            raise np.linalg.LinAlgError("the conditions leave something free")
        left = [one.rhs - one.applied(unknowns) for one in rows]
        coefficients = np.array([one.coefficients(c) for one, c in zip(local, unknowns, strict=True)])
        shares = np.prod(mesh.halves, axis=1) / np.prod(np.ptp(self.equation.bounds, axis=1))
        smallest = factors.smallest_singular_value(np.sqrt(shares))
        network = VaryingNetwork(mesh, self.degree, coefficients)
        return self._judged(operator, network, rows, left, shares, smallest)

    def _judged(
        self, operator: LocalOperator, network: VaryingNetwork, rows: Sequence[NeighbourRows], left: Sequence[Array],
        shares: Array, smallest: float,
    ) -> VaryingState:  # fmt: skip
        squares = shares * np.square(network.coefficients).sum(axis=1)
        scale = float(np.sqrt(squares.sum()))
        defects = np.array([operator.defect(k, own) for k, own in enumerate(network.coefficients)])
        relative = defects[:, 0] / max(float(defects[:, 1].max()), 1e-300)
        highest = np.add(*operator.square.powers) >= self.degree - 1
        indicators = shares * np.square(network.coefficients[:, highest]).sum(axis=1)
        missed = 0.0
        for one, error in zip(rows, left, strict=True):
            own = float(error @ error)
            missed += own
            for cell in one.cells:
                indicators[cell] += own / len(one.cells)
        worst = max(float(np.abs(error).max() * np.sqrt(len(error))) for error in left)
        return VaryingState(
            network, scale or 1.0, float(np.sqrt(missed)), worst, float(relative.max()), indicators,
            1 / max(smallest, 1e-300), sum(len(one.rhs) for one in rows),
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------- rows

    def _face_rows(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        return self._continuity(face, local) if min(face.cells) >= 0 else self._condition(face, local)

    def _roots(self, face: BoxSegment, weights: Array) -> Array:
        """The roots (K,) of the shares of the boundary of the domain that nodes of a face with these weights have."""
        around = 2 * float(np.ptp(self.equation.bounds, axis=1).sum())
        return np.sqrt(0.5 * weights * face.length / around)

    def _scale(self, face: BoxSegment) -> float:
        """The length over which functions of the cells at a face vary across it."""
        own = [cell for cell in face.cells if cell >= 0]
        return float(self.mesh.halves[own, face.axis].min()) / self.degree

    def _traces(
        self, face: BoxSegment, cell: int, nodes: Array, indices: Sequence[MultiIndex], local: LocalSolutions
    ) -> dict[MultiIndex, tuple[Array, Array]]:
        """∂^index of the features (K, m) and of the particular solution (K,) of a cell at nodes (K,) of a face."""
        square, halves, axis = square_polynomials(self.degree), self.mesh.halves[cell], face.axis
        end = 1 if face.cells[0] == cell else -1
        low, high = face.ends
        scaled = (0.5 * (low + high) - self.mesh.middles[cell, 1 - axis] + 0.5 * (high - low) * nodes) / halves[
            1 - axis
        ]
        traces = {}
        for index in indices:
            across = square.trace(axis, end, index[axis]) / np.prod(halves ** np.array(index))
            along = square.along(scaled, index[1 - axis])
            traces[index] = along @ (across @ local.homogeneous), along @ (across @ local.particular)
        return traces

    def _continuity(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        """Values and normal derivatives, polynomials on the face whose squares Gauss' rule integrates."""
        nodes, shares = unit_gauss(self.degree + 1)
        roots = self._roots(face, shares)
        across = (1, 0) if face.axis == 0 else (0, 1)
        lower, upper = (self._traces(face, cell, nodes, ((0, 0), across), local[cell]) for cell in face.cells)
        matrices, sides = [], []
        for index, factor in (((0, 0), 1.0), (across, self._scale(face))):
            weights = roots * factor
            matrices.append(np.hstack([lower[index][0], -upper[index][0]]) * weights[:, None])
            sides.append((upper[index][1] - lower[index][1]) * weights)
        return NeighbourRows(face.cells, np.vstack(matrices), np.concatenate(sides))

    def _condition(self, face: BoxSegment, local: Sequence[LocalSolutions]) -> NeighbourRows:
        cell, words = max(face.cells), self.equation.problem.vocabulary
        nodes, shares = unit_gauss(2 * self.degree)
        points, roots = face.points(nodes), self._roots(face, shares)
        (term,) = self._segment(face).terms
        indices = list(dict.fromkeys(jet.index for jet in term.expression.jets))
        tables = self._traces(face, cell, nodes, indices, local[cell])
        condition = ConditionPoints(term, points, roots, np.full(len(points), self._scale(face)), np.zeros(len(points)))
        matrix, residual, size = condition_rows(
            term.expression,
            term.known(points, words, term.data),
            {index: own[:, None] for index, (_, own) in tables.items()},
            condition,
            {index: own[:, None, :] for index, (own, _) in tables.items()},
            words,
        )
        weights = roots * term.weight / size
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


def _products(rows: Sequence[NeighbourRows], left: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """The adjoint of all rows applied to residuals: (C, m)."""
    total = np.zeros(shape)
    for one, error in zip(rows, left, strict=True):
        total[list(one.cells)] += (one.matrix.T @ error).reshape(len(one.cells), -1)
    return total
