"""Numbers of the interpolation in parameters that were chosen by experiment, each with its unit and reason."""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.pde.tolerance import ALGEBRA_SHARE, MUCH_SMALLER, SAME_SOLUTION


@dataclass(frozen=True)
class FamilySettings:
    """Settings of the interpolation of solutions in parameters.

    points : points of the domain at which solutions are compared; a norm from 1,500 has 3 % statistical error
    most_solves : solves at most; a family that needs more by its decay so far ends as stalled
    member_share : tolerance of the solves over that of the family. The interpolation amplifies independent errors of
        the solves by the norm of its weights, 1 to 3 for the nodes used here
    checks : solves at random values beside the nodes, for each parameter and one more, which the interpolation must
        predict
    smallest_share : solutions smaller than this share of the largest are judged relative to that share
    believed_decay : an indicator is at least this share of the surplus before it, and its square of that before
        this one: surpluses may be small by chance, but not three in a row
    noise_level : coefficients below this multiple of the errors of the solves are these errors, and do not decay
    first_levels : nodes of every parameter beside the first, before any decay of the surpluses is relied on
    judged_values : values of the parameters at which the error estimate is maximised
    table_degree : degree of the polynomials of the table of values; table_points : its points at most, per solution
    table_share : error of the table over the tolerance of the family
    """

    points: int = 1500
    most_solves: int = 300
    member_share: float = MUCH_SMALLER
    checks: int = 2
    smallest_share: float = SAME_SOLUTION
    believed_decay: float = 0.5
    noise_level: float = 1 / MUCH_SMALLER
    first_levels: int = 4
    judged_values: int = 256
    table_degree: int = 12
    table_points: int = 120_000
    table_share: float = ALGEBRA_SHARE
