"""The numbers behind eigenvalues, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.pde.tolerance import FINER_FACTOR, MUCH_SMALLER, RESIDUAL_TOLERANCE
from rannpde.rounding import HALF_DIGITS, ROOT_ROUNDED

SAME_EIGENVALUE = ROOT_ROUNDED
"""Relative difference below which eigenvalues are one cluster: the root of rounding, by which defective ones differ."""
DISTINCT_EIGENVALUES = SAME_EIGENVALUE / MUCH_SMALLER
"""Relative difference above which eigenvalues of one discretisation are distinct; approximations may differ as much."""


@dataclass(frozen=True)
class SpectrumSettings:
    """Discretisation, linear algebra and error bounds.

    degree, more_degree : degree of the highest derivative on a cell of an interval; what a second discretisation adds
    first_cells : cells of an interval at the start
    most_cells : cells of an interval, where refinement ends
    box_unknowns : most unknowns of tensor products on boxes, symmetric and other problems: dense matrices of a few
        seconds
    dense : unknowns up to which all eigenvalues of a discretisation are computed; beyond it, those near the wanted ones
    spare : eigenvalues that are computed beyond the wanted ones: they give gaps, and show that none lies between
    same : relative difference below which eigenvalues are computed as one cluster: the root of rounding
    rounding : factor of the first-order bound of rounding errors, which holds for one operation at each entry
    trust : factor of the difference of two discretisations in a bound of the error of the finer one
    residual_limit : residual of the equation on a grid twice as fine, relative to its terms, above which a mode is
        spurious; eigenvalues that particular solutions refine are located and counted with this error
    coefficient_tail : last Legendre coefficients, over the largest, at which the coefficients of equations count as
        resolved on a cell
    shape_degree : by dimension, the degree of cells of shapes at tol = 1, and the increase for each digit: in space an
        iteration costs about four times as much as the one before, so that coarse first ones cost little
    shape_rounding : as ``rounding``, on shapes, where integrals over cells are two more sums; 2 to 13 was measured on
        squares
    shape_spare : as ``spare``, on shapes, where clusters are common
    most_iterations : iterations of the adaptive loop at most
    """

    degree: int = 18
    more_degree: int = 6
    first_cells: int = 2
    most_cells: int = 400
    box_unknowns: tuple[int, int] = (3600, 1500)
    dense: int = 420
    spare: int = 2
    same: float = SAME_EIGENVALUE
    rounding: float = 4.0
    trust: float = FINER_FACTOR
    residual_limit: float = RESIDUAL_TOLERANCE
    coefficient_tail: float = HALF_DIGITS
    shape_degree: tuple[tuple[float, float], tuple[float, float]] = ((3.0, 0.9), (3.0, 0.2))
    shape_rounding: float = 16.0
    shape_spare: int = 4
    most_iterations: int = 24
