"""Newton's method where an equation is not linear: each step is a problem with coefficients that vary.

The steps are damped by the natural monotonicity test (Deuflhard, 2004), which asks for the next step with the same
factorisation. As soon as such steps of the simplified method shrink fast enough they are taken too. They cost little
beside a factorisation, and near a solution, as that on a coarser mesh is, one factorisation is enough.

Where Newton's method fails from a guess, the flow u_t = ± F(u) is followed from there, by implicit steps in which what
grows is damped (pseudo-transient continuation: Kelley and Keyes, 1998), until it converges. It leads to solutions that
are stable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.functions import State
from rannpde.pde.newton import is_contracting, shorter_length
from rannpde.pde.tolerance import ALGEBRA_SHARE, COMPARABLE, LINEAR_CHANGE, PILOT_TOLERANCE
from rannpde.pde.trefftz.varying.equation import VaryingEquation
from rannpde.pde.trefftz.varying.mesh import BoxMesh, first_mesh
from rannpde.pde.trefftz.varying.network import VaryingNetwork
from rannpde.pde.trefftz.varying.polynomials import square_polynomials
from rannpde.pde.trefftz.varying.system import FactorisedSystem, VaryingState, VaryingSystem
from rannpde.rounding import ROOT_ROUNDED

NEWTON_FACTORISATIONS = 2 * ceil(log(PILOT_TOLERANCE) / log(1 - 1 / 4))
"""Factorisations on one mesh at most: twice as many as full steps need, each of which just passes the test, to shrink
to few digits. More are no longer Newton's method."""


class NoNewtonSolution(Exception):
    """Newton's method reaches no solution."""


@dataclass(frozen=True, eq=False)
class VaryingNewton:
    """Newton's method on one mesh, until the remaining step is below a share of ``tol``."""

    equation: VaryingEquation
    mesh: BoxMesh
    degree: int
    tol: float

    def solved(self, state: State) -> VaryingState:
        """The solution that is reached from a state; NoNewtonSolution where there is none."""
        here = self.projected(state)
        for count in range(1, NEWTON_FACTORISATIONS + 1):
            equation = self.equation.at(VaryingNetwork(self.mesh, self.degree, here))
            tangent = VaryingSystem(equation, self.mesh, self.degree, here).factorised()
            step = tangent.solution() - here
            length, following = self._damped(tangent, here, step)
            here = here + length * step
            if NEWTON_FACTORISATIONS * length * max(1.0, self.size(step) / (self.size(here) or 1.0)) < 1:
                raise NoNewtonSolution("a path of smaller and smaller data ends at a fold, beyond which it turns back")
            if length == 1:
                here, left = self._simplified(tangent, here, step, following)
                if left is not None:
                    return replace(tangent.judged(here), algebra=left, steps=count)
        raise NoNewtonSolution(f"Newton's method did not converge in {NEWTON_FACTORISATIONS} steps")

    def size(self, coefficients: Array) -> float:
        """The root mean square of a function with coefficients (C, N)."""
        return float(np.sqrt(self.mesh.shares @ np.square(coefficients).sum(axis=1)))

    def projected(self, state: State) -> Array:
        """Coefficients (C, N) of the projection of a state."""
        square = square_polynomials(self.degree)
        points = self.mesh.middles[:, None] + self.mesh.halves[:, None] * square.points
        values = state.derivative(points.reshape(-1, 2), (0, 0)).reshape(len(self.mesh), -1)
        return np.asarray((values * square.weights) @ square.table((0, 0)))

    def _damped(self, tangent: FactorisedSystem, here: Array, step: Array) -> tuple[float, Array]:
        """The share of a step that is taken, and the step (C, N) of the simplified method after it.

        A step within rounding is taken whole: the next one shows nothing. From a state far away, where the non-linear
        terms are still small, the first step may be longer than the solution by orders of magnitude: rounding is the
        only lower limit of the share.
        """
        size, length = self.size(step), 1.0
        rounding = size <= ROOT_ROUNDED * self.size(here + step)
        while length >= ROOT_ROUNDED:
            following = tangent.correction(here + length * step)
            if np.isfinite(following).all():
                if rounding or is_contracting(length, size, self.size(following)):
                    return length, following
                bend = self.size(following - (1 - length) * step)
                length = shorter_length(length, size, bend, PILOT_TOLERANCE**0.5)
            else:
                length *= 0.5
        raise NoNewtonSolution("no step of Newton's method, however short, comes nearer to a solution")

    def _simplified(
        self, tangent: FactorisedSystem, here: Array, step: Array, following: Array
    ) -> tuple[Array, float | None]:
        """Steps with one tangent as long as they shrink: the state that they reach, and the size of the remaining step.

        The size is None where another tangent is needed.
        """
        whole, first = self.size(here) or 1.0, self.size(step)
        before, size = first, self.size(following)
        while np.isfinite(size):
            if size <= ALGEBRA_SHARE * self.tol * whole:
                return here + following, size / whole
            if size > COMPARABLE * before:  # a step from within rounding that does not shrink is rounding itself
                return here, size / whole if first <= ROOT_ROUNDED * whole else None
            here = here + following
            before, following = size, tangent.correction(here)
            size = self.size(following)
        return here, None


def pilot_solution(newton: VaryingNewton, start: State) -> VaryingState:
    """A solution of few digits on a coarse mesh, from a guess; NoNewtonSolution where there is none."""
    equation = newton.equation
    try:
        return newton.solved(start)
    except (NoNewtonSolution, np.linalg.LinAlgError):
        slowed = equation.at(start).slowed
        if not slowed.shift:
            raise
    flow, before = pilot_newton(slowed, start), np.inf
    here = flow.projected(start)
    for _ in range(NEWTON_FACTORISATIONS):
        state = VaryingNetwork(flow.mesh, flow.degree, here)
        now = equation.at(state).slowed
        aim = VaryingSystem(now, flow.mesh, flow.degree, here).factorised().solution()
        # relative to the time of the first step: a shorter step changes less wherever it is
        change, here = max(now.shift / slowed.shift, 1.0) * flow.size(aim - here) / (flow.size(aim) or 1.0), aim
        if not change <= before:  # it leads away from what seemed to be a solution, as beyond a fold
            break
        if change <= LINEAR_CHANGE * min(before, 1.0):  # nearer than at the attempt before
            before, state = change, VaryingNetwork(flow.mesh, flow.degree, here)
            try:
                return pilot_newton(equation.at(state), state).solved(state)
            except (NoNewtonSolution, np.linalg.LinAlgError):
                continue
    raise NoNewtonSolution("Newton's method reaches no solution, nor does the flow to one that is stable")


def pilot_newton(equation: VaryingEquation, state: State) -> VaryingNewton:
    """Newton's method for few digits, on a coarse mesh for solutions that vary as the equation says at a state."""
    mesh, degree = first_mesh(equation.at(state), PILOT_TOLERANCE)
    return VaryingNewton(equation, mesh, degree, PILOT_TOLERANCE)
