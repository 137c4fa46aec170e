"""Strains that are far stiffer than others, as changes of volume of nearly incompressible bodies: iterated penalty.

A matrix K_c + τ K_d whose second part acts on few strains, by a large factor τ, is rounded by τ times as much as K_c.
Therefore the load w = τ (K_d u - g_d) of these strains, the pressure of nearly incompressible bodies, is iterated,

    K_c u = f - w ,     w ← τ/(1 + τ) (w + K_d u - g_d) ,

with the factors of K_c, in which no strain is far stiffer than another. This is the method of augmented Lagrangians;
the discrete solution is the same. With K_c = K_0 + K_d and K_d φ = θ K_0 φ, an error along φ shrinks by
τ/(1 + τ)/(1 + θ) in every iteration, however large τ is. Of slender bodies few θ are small, those of bending, like
(height/length)². Anderson's acceleration, which is GMRES for linear iterations, deals with one of them in each step.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from rannpde.pde.weak.assembly import HybridSolution, HybridSystem
from rannpde.pde.weak.evaluation import volume_points
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.form import StiffnessPart
from rannpde.pde.weak.kernel import FreeMotions
from rannpde.pde.weak.local import CellBatch, DistinctMatrices, LocalMatrices, by_kind
from rannpde.rounding import COMPUTED, EPS

MOST_MULTIPLIERS = 60
"""Iterations of the multiplier at most: by then errors that shrink by a quarter in each are rounding."""


def limited_ratio(tol: float) -> float:
    """The ratio of stiffnesses in the matrix that is factorised: half, in digits, of what rounding allows.

    >>> round(limited_ratio(1e-6)), limited_ratio(1e-12)
    (33, 2.0)
    """
    return max(sqrt(tol / COMPUTED), 2.0)


class IteratedPenalty:
    """The linear system of a form with stiff strains on the cells of a mesh.

    tol : relative size of the last change; remaining : estimate of the sum of it and of those that were left out
    """

    def __init__(self, local: LocalMatrices, ratio: float, tol: float) -> None:
        self.local, self.tol, self.remaining = local, tol, np.inf
        part = StiffnessPart(ratio)
        self.factor = part.excess(local.form.at(volume_points(local)[0]).diffusion)
        self.limited = self._part(part)
        self.rest = self._part(StiffnessPart(ratio, self.factor))
        self._stiff: list[tuple[CellBatch, DistinctMatrices]] = []
        for batch in self.rest.batches():
            self._stiff.append((batch, self.rest.condensed(batch)))

    def _part(self, part: StiffnessPart) -> LocalMatrices:
        local = self.local
        return LocalMatrices(
            replace(local.form, part=part), local.mesh, local.layer, local.check_budget, local.functions
        )

    def solve(self, motions: FreeMotions | None = None) -> HybridSolution:
        """Iterate until the multiplier does not change the solution any more."""
        whole, system = HybridSystem(self.local), HybridSystem(self.limited, keep=True)
        first = system.solve(motions)
        known, before = HybridState(first.weights, first.traces), 0.0
        load = HybridState(np.zeros_like(first.weights), np.zeros_like(first.traces))
        for batch, matrices, _ in system.eliminations:
            load.weights[batch.cells] = matrices.load.reshape(len(batch.cells), *load.weights.shape[1:])
        multiplier, share = load.moved(load, -1.0), self.factor / (1 + self.factor)
        mixing = AndersonMixing()
        for _ in range(MOST_MULTIPLIERS):
            pushed = multiplier.moved(self._stiff_load(system, known), 1.0)
            multiplier = mixing.next(multiplier, HybridState(share * pushed.weights, share * pushed.traces))
            rest = load.moved(multiplier, -1.0)
            now = HybridState(*system.solved(rest.weights, rest.traces))
            change = self._size(now.moved(known, -1.0)) / max(self._size(now), 1e-300)
            known, rate = now, change / before if before else 1.0
            self.remaining = change / (1 - rate) if rate < 1 else np.inf
            if self.remaining <= self.tol:
                break
            before = change
            self.local.check_budget()
        if motions is not None and len(motions):
            whole.centre(known.weights, known.traces, motions)
        return HybridSolution(known.weights, known.traces, whole.jumps(known.weights, known.traces))

    def _stiff_load(self, system: HybridSystem, state: HybridState) -> HybridState:
        """K_d u - g_d of a state, without the motions of cells, on which no strain acts."""
        weights, traces = np.zeros_like(state.weights), np.zeros(state.traces.size)
        strained = system.without_motions(state.weights, state.traces)
        for (batch, matrices), (inside, around) in zip(self._stiff, strained, strict=True):
            pushed = by_kind(matrices.square, matrices.same, inside) - matrices.load
            if batch.faces:
                pushed += by_kind(matrices.upper, matrices.same, around)
                pulled = by_kind(matrices.lower, matrices.same, inside)
                pulled += by_kind(matrices.corner, matrices.same, around)
                np.add.at(traces, self.rest.dofs(batch), pulled)
            weights[batch.cells] = pushed.reshape(len(batch.cells), *state.weights.shape[1:])
        return HybridState(weights, traces.reshape(state.traces.shape))

    def _size(self, state: HybridState) -> float:
        """The root of the sum of squares of values and slopes in the coordinates of cells, weighted by volume."""
        volume = self.local.mesh.halfwidths.prod(axis=1)
        return float(np.sqrt(np.einsum("c,cfk->", volume, state.weights**2)))


class AndersonMixing:
    """Anderson mixing of an iteration x ← Φ(x): the combination of all states before whose change is least."""

    def __init__(self) -> None:
        self._states: list[HybridState] = []
        self._changes: list[HybridState] = []

    def next(self, state: HybridState, image: HybridState) -> HybridState:
        """The next state, from a state and its image Φ(state)."""
        change = image.moved(state, -1.0)
        steps = [
            image.moved(one, -1.0).moved(other, -1.0) for one, other in zip(self._states, self._changes, strict=True)
        ]
        drops = [change.moved(one, -1.0) for one in self._changes]
        self._states.append(state)
        self._changes.append(change)
        if not drops:
            return image
        columns = np.stack([np.concatenate([one.weights.ravel(), one.traces.ravel()]) for one in drops], axis=1)
        wanted = np.concatenate([change.weights.ravel(), change.traces.ravel()])
        amounts = np.linalg.lstsq(columns, wanted, rcond=len(drops) * EPS)[0]
        for amount, step in zip(amounts, steps, strict=True):
            image = image.moved(step, -float(amount))
        return image
