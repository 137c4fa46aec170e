"""Newton's method on the weak form: line search, on the energy where there is one, and continuation of the load.

With an energy E the derivative along a step is the residual times the step. A step that goes beyond the minimum, where
that derivative is positive and not small, is shortened by the secant through both ends. Without an energy a step is
accepted if the next one, with the same tangent, would be shorter (the natural monotonicity test of Deuflhard), which no
scaling of equations or unknowns changes.

Where Newton's method fails from u = 0, the load is applied in parts: the form with a share s of what it leaves at
u = 0 has the solution 0 at s = 0, and each solution is the start of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.statement.quasilinear import Linearisation, generic_state
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.factorised_tangent import FactorisedTangent, HybridState
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.quasilinear_form import BoundaryState, NewtonForm
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.tangent import TangentSystem


class NewtonFailure(Exception):
    """Newton's method did not converge: the share of the load up to which it did, the state there, the steps taken."""

    def __init__(self, share: float, state: HybridState, steps: int) -> None:
        super().__init__(share)
        self.share, self.state, self.steps = share, state, steps

    def __str__(self) -> str:
        if self.share >= 1:
            return "Newton's method found a solution on a coarse mesh, which comes back, and none on a finer one"
        if self.share > 0:
            return (
                f"Newton's method found solutions up to {self.share:.1%} of the load, and none beyond: what comes back "
                "belongs to that share"
            )
        return "Newton's method found no solution at any share of the load: what comes back is zero"


@dataclass(frozen=True, eq=False)
class NewtonOutcome:
    """The state reached, the steps it took, and whether it is a solution to the wanted size of the last step."""

    state: HybridState
    steps: int
    converged: bool


@dataclass(frozen=True)
class WeakNewton:
    """Newton's method on one mesh.

    form : what is solved; tol : relative size of the last step; settings : limits of steps and of the line search
    """

    form: NewtonForm
    tol: float
    settings: WeakSettings

    def solve(self, local: LocalMatrices, known: Callable[[Array], Array] | None) -> tuple[HybridState, int]:
        """The solution and the number of steps, from a function or from rest; NewtonFailure where there is none.

        known : a solution on another mesh
        """
        system = TangentSystem(local, self.form)
        if known is not None:
            outcome = self._iterated(system, system.projected(known))
            if outcome.converged:
                return outcome.state, outcome.steps
            raise NewtonFailure(1.0, system.projected(known), outcome.steps)
        outcome = self._iterated(system, self._start(system))
        return (outcome.state, outcome.steps) if outcome.converged else self._continued(local, outcome.steps)

    def _start(self, system: TangentSystem) -> HybridState:
        """u = 0 where the form is elliptic there, else the solution with the diffusion of a generic state."""
        if self.form.starts_at_rest:
            return system.rest()
        linear = TangentSystem(system.local, StartForm(self.form))
        residual, tangent = linear.linearise(linear.rest())
        return linear.rest().moved(tangent.solve(residual), -1.0)

    def _continued(self, local: LocalMatrices, steps: int) -> tuple[HybridState, int]:
        """By shares of the load, with steps that grow where few iterations were needed."""
        share, step = 0.0, 0.25
        state: HybridState | None = None
        while share < 1:
            if step < self.settings.least_load:
                raise NewtonFailure(share, state or TangentSystem(local, self.form).rest(), steps)
            aim = min(share + step, 1.0)
            system = TangentSystem(local, self.form, aim)
            outcome = self._iterated(system, self._start(system) if state is None else state)
            steps += outcome.steps
            if outcome.converged:
                state, share = outcome.state, aim
                step *= 2 if outcome.steps <= self.settings.few_steps else 1
            else:
                step /= 2
        assert state is not None
        return state, steps

    def _iterated(self, system: TangentSystem, state: HybridState) -> NewtonOutcome:
        """Newton's method from a state on."""
        before = np.inf
        for count in range(1, self.settings.most_newton + 1):
            try:
                with np.errstate(all="ignore"):
                    residual, tangent = system.linearise(state)
                    step = tangent.solve(residual)
            except np.linalg.LinAlgError:
                return NewtonOutcome(state, count, False)
            size = system.relative(step, state.moved(step, -1.0))
            if not np.isfinite(size):
                return NewtonOutcome(state, count, False)
            following = size * max(size, self.settings.newton_rate)
            if following <= self.tol or (size <= self.settings.newton_floor and size > 0.5 * before):
                return NewtonOutcome(state.moved(step, -1.0), count, True)
            length: float | None = 1.0
            if size > self.settings.sure_step:
                with np.errstate(all="ignore"):
                    length = self._length(system, tangent, state, step, residual)
            if length is None:
                return NewtonOutcome(state, count, False)
            state = state.moved(step, -length)
            before = size
        return NewtonOutcome(state, self.settings.most_newton, False)

    def _length(
        self, system: TangentSystem, tangent: FactorisedTangent, state: HybridState, step: HybridState,
        residual: HybridState,
    ) -> float | None:  # fmt: skip
        """The share of a step (to be taken off) that is accepted; None where none is."""
        length, slope = 1.0, -residual.dot(step)
        while length >= self.settings.least_step:
            try:
                left = system.residual(state.moved(step, -length))
            except np.linalg.LinAlgError:
                length /= 2
                continue
            if self.form.variational and slope < 0:
                here = -left.dot(step)
                if here <= 0.5 * abs(slope):
                    return length
                length *= float(np.clip(slope / (slope - here), MUCH_SMALLER, 0.5))
            else:
                following, aim = tangent.solve(left), state.moved(step, -1.0)
                size = system.relative(step, aim)
                if system.relative(following, aim) <= (1 - length / 4) * size:
                    return length
                best = 0.5 * size * length**2 / max(system.relative(following.moved(step, length - 1.0), aim), 1e-300)
                length = float(np.clip(best, MUCH_SMALLER * length, 0.5 * length))
        return None


@dataclass(frozen=True, eq=False)
class StartForm:
    """A linear form for a first state: the diffusion of a generic state, and the load at rest."""

    form: NewtonForm

    @property
    def fields(self) -> int:
        return self.form.fields

    @property
    def kinked(self) -> bool:
        return self.form.kinked

    def load_at_rest(self, points: Array) -> Array:
        return self.form.load_at_rest(points)

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """-f at rest and A∇u, with A at a generic state."""
        state = generic_state(1, self.fields, points.shape[1])
        nominal = [np.broadcast_to(one, (len(points), *one.shape[1:])) for one in state]
        usual = self.form.linearised(points, *nominal)
        tangent = np.zeros_like(usual.tangent)
        tangent[..., 1:, 1:] = usual.diffusion
        terms = self.load_at_rest(points)
        terms[:, :, 1:] = np.einsum("mkfij,mfj->mki", usual.diffusion, slopes)
        return Linearisation(terms, tangent)

    def boundary(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, here: Linearisation,
        share: float = 1.0,
    ) -> BoundaryState:  # fmt: skip
        """What is prescribed; no flux elsewhere."""
        state = self.form.boundary(numbers, points, normals, values, slopes, here, share)
        return replace(state, flux=np.zeros_like(state.flux), robin=np.zeros_like(state.robin))
