"""The empirical numbers of identification, each with its unit and reason."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

from rannpde.pde.tolerance import (
    ALGEBRA_SHARE,
    COMPARABLE,
    CONFIDENCE,
    PILOT_TOLERANCE,
    RESIDUAL_TOLERANCE,
)
from rannpde.rounding import EPS


@dataclass(frozen=True)
class IdentificationSettings:
    """Outer iterations, their tolerances, and the checks of a result.

    first_tolerance : relative L² error of the solves in the first outer iterations, which only locate the unknowns
    first_iterations, final_iterations : most outer iterations with that tolerance, and with the final one
    first_change : relative change of the unknowns by an outer iteration up to which its discretisation, made for the
        values before, was good enough to locate them: half an order of magnitude
    error_share : errors of the discretisation are to be below this share of the standard deviation that the noise
        leaves
    constraint_tolerance : error with which an unknown function meets the conditions on it, relative to its size; its
        inverse w is the weight of their rows: the method of weighting has an error of order w^-2 and rounding of order
        eps·w, so that eps^(-1/3) is best
    residual_tolerance : the same error up to which a result is accepted: a basis that is too small cannot meet a
        condition
    contradicting_misfit : root mean square of the residuals, in standard deviations of the noise given, beyond which
        the model cannot be right, so that its intervals mean nothing: normal noise rarely exceeds it in a single value
    """

    first_tolerance: float = PILOT_TOLERANCE
    first_iterations: int = 5
    final_iterations: int = 4
    first_change: float = 1 / COMPARABLE
    error_share: float = ALGEBRA_SHARE
    constraint_tolerance: float = EPS ** (1 / 3)
    residual_tolerance: float = RESIDUAL_TOLERANCE
    contradicting_misfit: float = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
