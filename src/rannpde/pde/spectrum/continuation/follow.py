"""Pseudo-arclength continuation: along a branch of F(u, λ) = 0 past folds, where Newton's method in u alone ends.

A step of length h solves F(u, λ) = 0 with t·(z - z0) = h, z = (u, λ), t the unit tangent. Along the branch the
component of t along λ changes sign at a fold, and the determinant of the bordered matrix (F_u, F_λ; t) at a branch
point, where another branch crosses (Keller 1977; Seydel, Practical Bifurcation and Stability Analysis).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import cos

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgetrf
from scipy.optimize import brentq

from rannpde.arrays import Array
from rannpde.pde.spectrum.continuation.collocation import StationarySystem
from rannpde.pde.tolerance import LINEAR_CHANGE, MUCH_SMALLER, SAME_SOLUTION, SUFFICIENT_DECREASE, UNBOUNDED
from rannpde.rounding import COMPUTED, EPS, HALF_DIGITS

CORRECTIONS = 12
"""Newton iterations of a corrector; it converges quadratically or the step is too long."""
CORRECTED = 1e-11
"""Relative change at which Newton's method has converged; rounding of the derivatives is about this."""
ALL_RATES = 900
"""Unknowns up to which all rates of growth are computed; beyond, stability is not known."""
LOCATED = 1e-10
"""Share of a step to which a special point is located: nearer to it, factorisations are singular."""
LEAST_STEP = EPS**0.5
"""Least step of the arclength, in units of the scaled branch: shorter ones do not change the direction of the
tangent."""


class NoConvergence(Exception):
    """Newton's method did not converge."""


@dataclass(frozen=True, eq=False)
class BranchState:
    """A point of a branch: values (N,), parameter, tangent (N + 1,) of length one; sign and log of the determinant
    of the bordered matrix (N + 1, N + 1)."""

    values: Array
    parameter: float
    tangent: Array
    sign: float
    log: float
    bordered: Array


@dataclass(frozen=True)
class FollowSettings:
    """Steps in scaled arclength: longest, first; turn : cosine of the angle between tangents beyond which a step is too
    long to be predicted by the first of them;
    most : most points of a branch; largest : size of the solution over that at the start, beyond which it is said to
    go to infinity."""

    longest: float = 0.25
    first: float = MUCH_SMALLER * longest
    turn: float = cos(LINEAR_CHANGE)
    most: int = 400
    largest: float = UNBOUNDED**0.5


@dataclass(eq=False)
class Follower:
    """Follows the branches of one discretised problem.

    extent : length of the range of the parameter; size : size of the solution; both scale the arclength
    """

    system: StationarySystem
    extent: float
    size: float = 1.0
    settings: FollowSettings = field(default_factory=FollowSettings)

    @property
    def metric(self) -> Array:
        """Weights (N + 1,) of the inner product of states."""
        count = self.system.size
        return np.concatenate([np.full(count, 1 / (count * self.size**2)), [1 / self.extent**2]])

    def solve(self, values: Array, parameter: float) -> Array:
        """Newton's method at a fixed parameter, with halved steps where the residual does not fall."""
        values = values.copy()
        for _ in range(4 * CORRECTIONS):
            residual, matrix, _ = self.system.linearised(values, parameter)
            step = _solved(matrix, residual)
            length, norm = 1.0, np.linalg.norm(residual)
            while length > SAME_SOLUTION**2:
                trial = values - length * step
                with np.errstate(all="ignore"):  # a step may lead where an exponential overflows
                    after = np.linalg.norm(self.system.residual(trial, parameter))
                if np.isfinite(after) and (after <= (1 - SUFFICIENT_DECREASE * length) * norm or norm < 1e-12):
                    break
                length *= 0.5
            else:
                raise NoConvergence
            values = values - length * step
            if np.abs(step).max() * length <= CORRECTED * max(float(np.abs(values).max()), 1e-8):
                return values
            if not np.isfinite(values).all():
                break
        if np.abs(step).max() <= HALF_DIGITS * max(float(np.abs(values).max()), 1e-8):
            return values  # rounding keeps it from settling further
        raise NoConvergence

    def state(self, values: Array, parameter: float, along: Array | None) -> BranchState:
        """The point with its tangent, in the direction of ``along`` (N + 1,), or of a growing parameter."""
        _, matrix, slope = self.system.linearised(values, parameter)
        metric = self.metric
        border = along * metric if along is not None else np.eye(len(metric))[-1]
        bordered = np.block([[matrix, slope[:, None]], [border[None, :]]])
        factors = _factorised(bordered)
        tangent = scipy.linalg.lu_solve(factors, np.eye(len(metric))[-1])
        tangent /= np.sqrt((metric * tangent**2).sum())
        border = tangent * metric
        bordered[-1] = border / np.linalg.norm(border)
        sign, log = np.linalg.slogdet(bordered)
        return BranchState(values, parameter, tangent, float(sign), float(log), bordered)

    @staticmethod
    def change(before: BranchState, after: BranchState) -> Array:
        """Eigenvalues of B₀⁻¹ B₁, complex, B₀ and B₁ the bordered matrices of two states.

        On the straight line between them (1 - τ) B₀ + τ B₁ is singular where 1 - 1/τ is an eigenvalue: each negative
        one is a branch point between the states. The determinant only shows whether their number is odd.
        """
        return np.linalg.eigvals(_solved(before.bordered, after.bordered))

    def branch_points_between(self, before: BranchState, after: BranchState, doubtful: bool) -> int:
        """How many branches cross between two states.

        doubtful : whether complex pairs count, which two that are close may be on the straight line between the states
        """
        if len(before.bordered) > ALL_RATES:
            return int(before.sign * after.sign < 0)
        eigenvalues = self.change(before, after)
        eigenvalues = eigenvalues[eigenvalues.real < 0]
        return len(eigenvalues) if doubtful else int((np.abs(eigenvalues.imag) <= COMPUTED * np.abs(eigenvalues)).sum())

    def step(self, state: BranchState, length: float, direction: Array | None = None) -> tuple[BranchState, int]:
        """The point of the branch at this arclength from a state, and Newton iterations; NoConvergence otherwise."""
        metric = self.metric
        along = state.tangent if direction is None else direction
        start = np.append(state.values, state.parameter)
        z = start + length * along
        for number in range(1, CORRECTIONS + 1):
            residual, matrix, slope = self.system.linearised(z[:-1], float(z[-1]))
            border = along * metric
            scale = np.linalg.norm(border)
            bordered = np.block([[matrix, slope[:, None]], [border[None, :] / scale]])
            lack = ((z - start) * border).sum() - length
            change = _solved(bordered, np.append(residual, lack / scale))
            z = z - change
            if not np.isfinite(z).all():
                raise NoConvergence
            moved = np.sqrt((metric * change**2).sum())
            if moved <= CORRECTED * max(1.0, np.sqrt((metric * z**2).sum())):
                return self.state(z[:-1], float(z[-1]), along if direction is None else z - start), number
        if moved <= 1e-8:
            return self.state(z[:-1], float(z[-1]), along if direction is None else z - start), CORRECTIONS
        raise NoConvergence

    def located(self, state: BranchState, length: float, measure: Callable[[BranchState], float]) -> BranchState:
        """The state between here and a step of this length at which a measure changes its sign; NoConvergence where it
        does not."""
        known: dict[float, BranchState] = {0.0: state}

        def at(share: float) -> float:
            if share not in known:
                known[share] = self.step(state, share)[0]
            return measure(known[share])

        try:
            root = float(brentq(at, 0.0, length, xtol=LOCATED * length, rtol=1e-12, maxiter=60))
        except ValueError:  # it has the same sign at both ends
            raise NoConvergence from None
        at(root)
        return known[root]

    def kernel(self, state: BranchState) -> Array:
        """The direction (N + 1,) across the tangent in which another branch leaves a branch point."""
        _, matrix, slope = self.system.linearised(state.values, state.parameter)
        rows = np.vstack([np.column_stack([matrix, slope]), (state.tangent * self.metric)[None, :]])
        scale = 1 / np.sqrt(self.metric)
        size = np.abs(rows).max(axis=1, keepdims=True)
        direction = np.linalg.svd(rows / size * scale)[2][-1] * scale
        return np.asarray(direction / np.sqrt((self.metric * direction**2).sum()))

    def rates(self, values: Array, parameter: float, order: Array, signs: Array) -> Array | None:
        """All rates of growth, complex, with the conditions held; None where there are too many.

        order, signs (fields,) : equation k gives the rate of field order[k], times signs[k]; constraints have sign 0
        """
        _, matrix, _ = self.system.linearised(values, parameter)
        held = self.system.constrained
        inner = np.flatnonzero(~held)
        outer = np.flatnonzero(held)
        inside = matrix[np.ix_(inner, inner)]
        inside = inside - matrix[np.ix_(inner, outer)] @ _solved(
            matrix[np.ix_(outer, outer)], matrix[np.ix_(outer, inner)]
        )
        inside *= np.tile(np.where(signs == 0, 1.0, signs), len(inner) // len(signs))[:, None]
        permutation = (np.arange(len(inner)).reshape(-1, len(signs))[:, np.argsort(order)]).ravel()
        inside = inside[permutation]
        moving = np.tile(signs[np.argsort(order)] != 0, len(inner) // len(signs))
        if not moving.all():  # constraints are eliminated
            rest = _solved(inside[np.ix_(~moving, ~moving)], inside[np.ix_(~moving, moving)])
            inside = inside[np.ix_(moving, moving)] - inside[np.ix_(moving, ~moving)] @ rest
        if len(inside) > ALL_RATES:  # those nearest to zero would not suffice: a large rate may hide behind them
            return None
        return np.linalg.eigvals(inside)


def _factorised(matrix: Array) -> tuple[Array, Array]:
    if not np.isfinite(matrix).all():
        raise NoConvergence
    factors, order, _ = dgetrf(matrix)
    pivots = np.abs(np.diag(factors))
    lost = np.flatnonzero(pivots <= np.finfo(float).tiny)  # exactly at a branch point; rounding replaces them
    factors[lost, lost] = np.finfo(float).eps * pivots.max()
    return factors, order


def _solved(matrix: Array, right: Array) -> Array:
    return np.asarray(scipy.linalg.lu_solve(_factorised(matrix), right, check_finite=False))
