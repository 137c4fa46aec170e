"""Propagation of errors in time: the defect of collocation times the stability of the equations.

A step of collocation has factorised λ/h - J for the eigenvalues λ of the inverse Butcher matrix D. With these factors
the linearised equation of an error takes the same step,

    e' = J e + d,        (D/h ⊗ 1 - 1 ⊗ J) E = D e_n/h + d,        e_{n+1} = E_s,

for one solution more, a fraction of what Newton's method needs. Without a defect d, it shows how perturbations grow,
whatever their cause. With the defect of the step's own polynomial U, d = f(U) - U', it gives the error in time of the
integration so far: "defect times stability", an error that another integration with the same steps shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.polynomial import legendre

from rannpde.arrays import Array
from rannpde.pde.time.dynamics import Dynamics
from rannpde.pde.time.tableau import RadauTableau
from rannpde.pde.tolerance import SAME_SOLUTION


@dataclass(frozen=True, eq=False)
class CollocationStep:
    """A step of collocation that was accepted.

    time, length : where it begins, and its length with its sign; start (n,) : the state there
    series (n, s + 1) : Legendre coefficients of the polynomial U - start
    tol : the error allowed, which grows with the solution; truncation : the size of what the polynomial lacks
    solve : right-hand sides (n, s) of the Newton system → its solution
    """

    time: float
    length: float
    start: Array
    series: Array
    tol: float
    truncation: float
    tableau: RadauTableau
    dynamics: Dynamics
    solve: Callable[[Array], Array]

    def propagated(self, error: Array, defect: Array | None = None) -> Array:
        """The linearised error at the stages (n, s), from that at the start (n,) and a defect (n, s) there."""
        rhs = np.multiply.outer(error, self.tableau.derivative.sum(axis=1) / self.length)
        return self.solve(rhs if defect is None else rhs + defect)

    def perturbed(self, error: Array) -> Array:
        """The change of the stages (n, s) by a small change of the start (n,).

        The factors may be those of an old Jacobian, with which Newton's method still converges: its iterations follow,
        until they change the perturbation by less than the relative difference of two solutions that are the same.
        """
        derivative, nodes, size = self.tableau.derivative.T / self.length, self.tableau.nodes, self.dynamics.size
        stages = self.series @ legendre.legvander(2.0 * nodes - 1.0, len(nodes)).T
        times, states, slopes = self.time + self.length * nodes, self.start[:, None] + stages, stages @ derivative
        change = self.propagated(error)
        for _ in nodes:  # each gains an order, and there are no more than those of the stages
            correction = self.solve(
                self.dynamics.rates(times, states + change) - slopes - (change - error[:, None]) @ derivative
            )
            change = change + correction
            if not size(correction) > SAME_SOLUTION * size(change):
                break
        return change

    def defect(self) -> Array:
        """The defect f(U) - U' as a polynomial of one degree less, at the stages (n, s).

        It vanishes at the stages, and so is a multiple of P_s - P_{s-1} up to terms of higher order; one value, half
        way to the first stage, gives the factor. The projection on polynomials of degree s - 1 is the multiple
        of P_{s-1}.
        """
        count, nodes = len(self.tableau), self.tableau.nodes
        share = 0.5 * nodes[:1]
        local = 2.0 * share - 1.0
        values = legendre.legvander(local, count)
        slope = legendre.legder(self.series, scl=2.0 / self.length, axis=1) @ values[0, :count]
        state = self.start + self.series @ values[0]
        rate = self.dynamics.rates(self.time + self.length * share, state[:, None])[:, 0]
        factor = (rate - slope) / (values[0, count] - values[0, count - 1])
        return np.multiply.outer(factor, -legendre.legvander(2.0 * nodes - 1.0, count - 1)[:, -1])


class StepObserver(Protocol):
    """An observer of an integration, which is called after every accepted step."""

    def observe(self, step: CollocationStep) -> None: ...


class PerturbationGrowth:
    """The largest factor by which a perturbation grew, at any time after it arose, relative to the tolerance.

    Perturbations arise at all times: one that was damped is joined by a new one of the same size, with the spectrum of
    the solution and random signs, so that what becomes unstable later is excited too.
    """

    def __init__(self) -> None:
        self.largest = self._grown = 1.0
        self._perturbation: Array | None = None
        self._tol = 1.0
        self._rng = np.random.default_rng(0)

    def observe(self, step: CollocationStep) -> None:
        """Carry the perturbation to the end of a step."""
        size, before = step.dynamics.size, self._perturbation
        self._grown *= self._tol / step.tol  # the tolerance has grown with the solution
        if before is None or self._grown <= 1.0:  # none yet, or damped
            fresh = step.dynamics.perturbation(step.start, self._rng)
            if before is not None and np.vdot(fresh, before).real < 0:  # so that they do not cancel
                fresh = -fresh
            parts = [part for part in (fresh, before) if part is not None and size(part) > 0]
            if not parts:  # at rest
                return
            before, self._grown = np.sum([part / size(part) for part in parts], axis=0), 1.0
        unit: Array = before * (step.tol / size(before))  # as small as the tolerance, whatever its growth
        with np.errstate(all="ignore"):
            after = step.perturbed(unit)[:, -1]
        grown, self._tol = size(after), step.tol
        self._perturbation = after if np.isfinite(grown) and grown > 0 else None
        if self._perturbation is not None:
            self._grown *= grown / step.tol
            self.largest = max(self.largest, self._grown)


class PropagatedDefect:
    """The error in time of the solution so far, and of its polynomials: their defect, propagated."""

    def __init__(self) -> None:
        self._error: Array | None = None
        self._integral = self._duration = 0.0

    def observe(self, step: CollocationStep) -> None:
        """Carry the error to the end of a step, and add what the step contributes."""
        before = np.zeros_like(step.start) if self._error is None else self._error
        stages = step.propagated(before, step.defect())
        self._error = stages[:, -1]
        between = max(step.dynamics.size(stages), step.truncation)  # stages of stiff equations do not contain it
        self._integral += abs(step.length) * between**2
        self._duration += abs(step.length)

    @property
    def error(self) -> float:
        """The root mean square over time of the largest error in each step, relative to the solution."""
        return sqrt(self._integral / self._duration) if self._duration else 0.0
