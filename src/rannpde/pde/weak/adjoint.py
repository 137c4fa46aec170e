"""The adjoint of a weak form, on the cells and with the factors of its solution.

Cells and traces have the matrix [S U; L C], which was condensed to C - L S⁻¹ U. For the derivative j of an output along
the functions of the cells, the adjoint Bᵀ(z, ẑ) = (j, 0) is

    (C - L S⁻¹ U)ᵀ ẑ = -(S⁻¹ U)ᵀ j ,      z = S⁻ᵀ (j - Lᵀ ẑ) ,

so that it costs no more than one further right-hand side. It says by how much a residual changes the output. For a
form that is not linear it is that of the tangent at the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.weak.assembly import HybridSolution, HybridSystem
from rannpde.pde.weak.factorised_tangent import FactorisedTangent, HybridState
from rannpde.pde.weak.local import LocalMatrices, by_kind
from rannpde.pde.weak.quasilinear_form import QuasilinearForm
from rannpde.pde.weak.tangent import TangentSystem


class AdjointSystem(Protocol):
    """Solves adjoints of a solution."""

    def solve(self, load: Array) -> HybridState:
        """The adjoint of a load (C, F, k)."""
        ...

    def jumps(self, adjoint: HybridState, given: Array, natural: Array) -> Array:
        """∫_∂K η |z - ẑ|² of each cell (C,), for boundary values and fluxes (B, q, K) of the adjoint."""
        ...

    def algebraic_error(self, load: Array, weights: Array, adjoint: HybridState) -> float:
        """The error of the output by rounding, or by Newton's method, at fields of weights (C, F, k)."""
        ...


@dataclass(frozen=True, eq=False)
class LinearAdjoint:
    """The adjoint of a linear form, by a system that has stored its matrices."""

    system: HybridSystem

    def solve(self, load: Array) -> HybridState:
        system = self.system
        local, flat = system.local, load.reshape(len(load), -1)
        shape = (system.mesh.faces, system.fields, system.layer.face_functions.shape[1])
        traces = np.zeros(int(np.prod(shape)))
        for batch, matrices, response in system.eliminations:
            if batch.faces:
                pulled = by_kind(np.swapaxes(response, 1, 2), matrices.same, flat[batch.cells])
                np.subtract.at(traces, local.dofs(batch), pulled)
        if system.factors is not None:
            traces = system.factors.solve(traces, transposed=True)
        weights = np.zeros_like(load)
        for batch, matrices, response in system.eliminations:
            own = flat[batch.cells]
            around = traces[local.dofs(batch)] if batch.faces else None
            if local.form.symmetric:  # S⁻ᵀ Lᵀ is the response, and most outputs act on few cells
                whole = _solved(matrices.square, matrices.same, own)
                whole = whole if around is None else whole - by_kind(response, matrices.same, around)
            else:
                pushed = (
                    own if around is None else own - by_kind(np.swapaxes(matrices.lower, 1, 2), matrices.same, around)
                )
                whole = _solved(matrices.square, matrices.same, pushed)
            weights[batch.cells] = whole.reshape(len(batch.cells), *load.shape[1:])
        return HybridState(weights, traces.reshape(shape))

    def jumps(self, adjoint: HybridState, given: Array, natural: Array) -> Array:
        return self.system.jumps(adjoint.weights, adjoint.traces, given, natural)

    def algebraic_error(self, load: Array, weights: Array, adjoint: HybridState) -> float:
        """|j·u - f·z| for B u = f and Bᵀ z = j, which would vanish without rounding."""
        total = float(np.vdot(load, weights))
        for batch, matrices, _ in self.system.eliminations:
            total -= float(np.vdot(matrices.load, adjoint.weights[batch.cells].reshape(len(batch.cells), -1)))
        return abs(total)


@dataclass(frozen=True, eq=False)
class TangentAdjoint:
    """The adjoint of the tangent of a form at a state."""

    system: TangentSystem
    tangent: FactorisedTangent
    state: HybridState
    residual: HybridState

    @classmethod
    def at(cls, local: LocalMatrices, form: QuasilinearForm, solution: HybridSolution) -> TangentAdjoint:
        """The adjoint system at a solution; LinAlgError where the tangent is singular."""
        system, state = TangentSystem(local, form), HybridState(solution.weights, solution.traces)
        residual, tangent = system.linearise(state)
        return cls(system, tangent, state, residual)

    def solve(self, load: Array) -> HybridState:
        return self.tangent.adjoint(load)

    def jumps(self, adjoint: HybridState, given: Array, natural: Array) -> Array:
        return self.system.adjoint_jumps(self.state, adjoint, given)

    def algebraic_error(self, load: Array, weights: Array, adjoint: HybridState) -> float:
        """The residual of the form at the state, weighted by the adjoint."""
        return abs(self.residual.dot(adjoint))


def _solved(square: Array, same: Array, right: Array) -> Array:
    """square[same[b]]⁻ᵀ right[b] for all b: (B, n); kinds of cells without a right-hand side cost nothing."""
    solutions = np.zeros_like(right)
    for kind in np.unique(same[right.any(axis=1)]):
        mine = np.flatnonzero(same == kind)
        solutions[mine] = np.linalg.solve(square[kind].T, right[mine].T).T
    return solutions
