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
from functools import cached_property

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.newton import NewtonFailure, NewtonIteration, Stepper, is_contracting, shorter_length
from rannpde.pde.statement.quasilinear import Linearisation, generic_state
from rannpde.pde.tolerance import MUCH_SMALLER
from rannpde.pde.weak.factorised_tangent import FactorisedTangent, HybridState
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.quasilinear_form import BoundaryState, NewtonForm
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.tangent import TangentSystem


@dataclass(frozen=True, eq=False)
class WeakStep:
    """A step that is subtracted from a state; residual : of that state."""

    system: TangentSystem
    form: NewtonForm
    settings: WeakSettings
    state: HybridState
    residual: HybridState
    tangent: FactorisedTangent
    step: HybridState

    @cached_property
    def aim(self) -> HybridState:
        return self.state.moved(self.step, -1.0)

    @cached_property
    def size(self) -> float:
        return self.system.relative(self.step, self.aim)

    def accepted(self, before: Sequence[float]) -> HybridState | None:
        """The state after as much of the step as a line search accepts."""
        if self.size <= self.settings.sure_step:
            return self.aim
        length, slope = 1.0, -self.residual.dot(self.step)
        while length >= self.settings.least_step:
            reached = self.state.moved(self.step, -length)
            try:
                left = self.system.residual(reached)
            except np.linalg.LinAlgError:
                length /= 2
                continue
            if self.form.variational and slope < 0:
                here = -left.dot(self.step)
                if here <= 0.5 * abs(slope):
                    return reached
                length *= float(np.clip(slope / (slope - here), MUCH_SMALLER, 0.5))
            else:
                following = self.tangent.solve(left)
                if is_contracting(length, self.size, self.system.relative(following, self.aim)):
                    return reached
                bend = self.system.relative(following.moved(self.step, length - 1.0), self.aim)
                length = shorter_length(length, self.size, bend, MUCH_SMALLER)
        return None


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
        newton = NewtonIteration(self.tol, self.settings.newton, "the load")
        system = TangentSystem(local, self.form)
        start = self._start(system) if known is None else system.projected(known)
        try:
            return newton.run(self._stepper(system), start)
        except NewtonFailure as failure:
            if known is not None:
                raise
            steps = failure.steps

        def at(share: float) -> Stepper[HybridState]:
            return self._stepper(TangentSystem(local, self.form, share))

        return newton.continued(at, system.rest(), start, 0.25, steps)

    def _start(self, system: TangentSystem) -> HybridState:
        """u = 0 where the form is elliptic there, else the solution with the diffusion of a generic state."""
        if self.form.starts_at_rest:
            return system.rest()
        linear = TangentSystem(system.local, StartForm(self.form))
        residual, tangent = linear.linearise(linear.rest())
        return linear.rest().moved(tangent.solve(residual), -1.0)

    def _stepper(self, system: TangentSystem) -> Stepper[HybridState]:
        def step(state: HybridState) -> WeakStep:
            residual, tangent = system.linearise(state)
            return WeakStep(system, self.form, self.settings, state, residual, tangent, tangent.solve(residual))

        return step


@dataclass(frozen=True, eq=False)
class StartForm:
    """A linear form for a first state: the diffusion of a generic state, and the load at rest."""

    form: NewtonForm

    @property
    def kinked(self) -> bool:
        return self.form.kinked

    def load_at_rest(self, points: Array) -> Array:
        return self.form.load_at_rest(points)

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """-f at rest and A∇u, with A at a generic state."""
        state = generic_state(1, *slopes.shape[1:])
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
        """The prescribed values, and zero fluxes elsewhere."""
        state = self.form.boundary(numbers, points, normals, values, slopes, here, share)
        return replace(state, flux=np.zeros_like(state.flux), robin=np.zeros_like(state.robin))
