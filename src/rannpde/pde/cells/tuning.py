"""The empirical settings of the method of cells, each with its reason.

"Measured" means: on the problems of benchmarks/solve.py, unless others are named.
"""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.pde.time.control import HIGH_ORDER_TOLERANCE
from rannpde.pde.time.tableau import RadauTableau, radau_tableau
from rannpde.pde.tolerance import (
    CONDITION_WEIGHT,
    DOERFLER_SHARE,
    ESTIMATOR_FACTOR,
    GAIN,
    ILL_POSED_RATIO,
    MUCH_SMALLER,
    PILOT_TOLERANCE,
    RESIDUAL_TOLERANCE,
    STRONG_RESIDUAL_TOLERANCE,
    TIME_SHARE,
    TOLERANCE_REDUCTION,
    UNSOLVED_RESIDUAL,
)
from rannpde.rounding import HALF_DIGITS, ROUNDED

NEWTON_CONVERGED = ROUNDED**0.5
"""Relative size of a Newton step after which the next one, of the order of its square, is rounding; one that is not
much smaller than the one before is rounding itself."""


@dataclass(frozen=True)
class CellsTuning:
    """Settings of the basis, of row weights, of adaptivity and of time integration. Triples are by dimension.

    Basis and quadrature:

    columns_per_polynomial : cosines, sines and 1 per polynomial of the degree; fewer lose digits, more cost time
    frequency_per_degree : largest frequency on [-1, 1] divided by the degree; 0.2 to 0.25 gave most digits in one and
        two dimensions; in three, degrees are low: with 0.2 smooth solutions in a cube ended at 2e-8, with 0.14 at 2e-9
    variation : splits are moved by up to this fraction of the adjacent cells, differently in each iteration, so that
        two iterations have less of their error in common; in the plane 0.12 takes twice the time of 0.06, since the
        largest cell decides, and makes slivers at curved sides. Frequencies vary by the first of these in all
        dimensions, for the same reason
    first_splits : splits along each axis that any initial mesh has; a single box could not be jittered
    extra_nodes : quadrature nodes per axis beyond the degree
    singular_value_cutoff : singular functions below it, relative to 1, are left out; what they would add to a solution
        is lost, multiplied by the fourth power of the degree in second derivatives; 1e-13 costs a digit or two, 3e-16
        is rounding
    points_per_function : collocation points per function in a clipped cell
    trace_degree_reduction : difference of the degrees of cells and traces; in three dimensions traces dominate the
        cost, and one degree less changed no error in its second digit
    trace_cutoff : singular values of the polynomials on a clipped face or an interface below it, relative to the
        largest, are left out; anything from 1e-13 to 1e-7 will do

    Weights of rows:

    condition_weight : weight of conditions and of continuity constraints relative to equations; in three dimensions a
        cell has more constraints than functions to satisfy them: with 10 the error of Poisson 3d-CG is three times that
        with 1
    corner_exponent : power of the distance from a re-entrant corner that multiplies rows near it, twice that for
        conditions; behind a backward-facing step 0 leaves ten times the error of 0.5, 1 twice as much, 1.5 loses the
        corner
    largest_contrast_weight : bound on the weight of an equation in a cell of strong diffusion next to weak diffusion:
        beyond it, other rows would lose more than half of their digits
    outflow_misfit : misfit of values prescribed at an outflow above which they have a smaller weight where the layer is
        thinner than the cell; layers of 1e-4 are then resolved cell by cell and not smeared

    Initial mesh and degree:

    degree : polynomial degree at tol = 1, and the increase per digit of tol
    max_degree : beyond which rounding dominates
    similar_mesh_ratio : an iteration whose mesh has fewer cells than this multiple of the previous one uses one degree
        more or less: with the same degree, two samples of functions differ, but not in what both cannot represent, and
        the estimate is too low (by a factor of 17 behind a backward-facing step)

    Marking and refinement:

    marking_factor, theta : marked cells hold the share theta (Dörfler) of the squared residuals above marking_factor ·
        tol, since residuals, which have derivatives in them, exceed errors by more than that. Degrees are high, so that
        a cell that is split leaves next to nothing: what is not marked decides how far one iteration gets
    max_threshold_reduction : the threshold falls where no cell is marked and iterations still differ, to this fraction
        of the largest residual at most
    anisotropy_threshold : a cell is split across an axis whose last Legendre coefficients (TAIL_START) hold at least
        this share of the largest such tail; a clipped cell in three dimensions by its second derivatives
    crease_levels : how often marked cells at re-entrant edges of solids are split in one iteration; there are many of
        them, so that only marked ones are split
    max_cells, max_iterations : limits of the adaptive loop
    max_newton_steps : limit on the steps on one mesh
    newton_rounding : a step that changes the solution by less and does not reduce the residual has reached rounding
    newton_shortest_step : the line search gives up below this step length

    Error estimate and stopping rules:

    singular_estimator_factor : estimate divided by the difference of two iterations for flows and other systems around
        re-entrant corners, for re-entrant edges of solids, and where interfaces cross; behind a step errors were three
        and four times that difference, at an edge twice, at crossings up to seven times
    residual_gain_factor, min_gain, min_gain_in_time : where the later iteration has a smaller residual, the estimate is
        multiplied by residual_gain_factor times that ratio, but not by less than min_gain (min_gain_in_time for time
        integration)
    cell_residual_tolerance, residual_tolerance, residual_tolerance_in_time : largest residual of a cell, and largest
        relative residual on held-out points, with which a problem is called solved; in time integration the collocation
        polynomials have fewer correct digits in ∂_t than in values
    gain_floor : for smaller differences of two iterations a smaller residual does not imply a smaller error (rounding)
    max_rounded_iterations : after this many iterations with residuals at rounding level that still differ, the loop
        ends
    undetermined_ratio : iterations that differ by more than that multiple of their residuals are not determined by the
        equations

    Time integration:

    max_corrections : simplified Newton steps per time step; where the contraction so far does not reach the tolerance
        in them, a new factorisation or a shorter step is needed (Hairer & Wanner, IV.8)
    spatial_error_ratio : the error is one of space where a shorter step leaves more than this fraction of it
    steps_per_factor : remaining steps from which on longer ones pay for new factorisations, which cost about eight
        steps
    five_stage_tolerance : below this step tolerance a step has five stages, otherwise three
    first_step_level : the first step of the first integration is 2 to the minus this of the time
    max_cached_factors : step lengths whose factorisations are kept: those between which the controller alternates
    max_correction : a correction larger than this multiple of the fields means divergence
    pilot_level, max_pilot_steps : a pilot integration with 2^pilot_level steps, or at most max_pilot_steps where only
        short ones converge, estimates the sizes of the fields
    max_step_tolerance, step_tolerance_reduction : step tolerance in the first iteration, and relative to the residual
        of the previous one in later iterations; and the factor between iterations once space is resolved
    """

    columns_per_polynomial: float = 1.3
    frequency_per_degree: tuple[float, float, float] = (0.2, 0.2, 0.14)
    variation: tuple[float, float, float] = (0.2, 0.06, 0.06)
    first_splits: tuple[int, int, int] = (1, 1, 0)
    extra_nodes: int = 4
    singular_value_cutoff: float = 1e-15
    points_per_function: float = 2.5
    trace_degree_reduction: tuple[int, int, int] = (0, 0, 1)
    trace_cutoff: float = 1e-9

    condition_weight: tuple[float, float, float] = (CONDITION_WEIGHT, CONDITION_WEIGHT, 1.0)
    corner_exponent: float = 0.5
    largest_contrast_weight: float = 1 / HALF_DIGITS
    outflow_misfit: float = UNSOLVED_RESIDUAL

    degree: tuple[float, float] = (7.0, 0.8)
    max_degree: tuple[int, int, int] = (20, 16, 9)
    similar_mesh_ratio: float = 1 / GAIN

    marking_factor: float = 1 / MUCH_SMALLER
    theta: float = DOERFLER_SHARE
    max_threshold_reduction: float = MUCH_SMALLER
    anisotropy_threshold: float = MUCH_SMALLER
    crease_levels: int = 2
    max_cells: tuple[int, int, int] = (4000, 1500, 300)
    max_iterations: int = 30
    max_newton_steps: int = 25
    newton_rounding: float = NEWTON_CONVERGED
    newton_shortest_step: float = 1 / 64

    singular_estimator_factor: float = ESTIMATOR_FACTOR
    residual_gain_factor: float = ESTIMATOR_FACTOR
    min_gain: float = MUCH_SMALLER
    min_gain_in_time: float = 1 / ESTIMATOR_FACTOR
    cell_residual_tolerance: float = STRONG_RESIDUAL_TOLERANCE
    residual_tolerance: float = RESIDUAL_TOLERANCE
    residual_tolerance_in_time: float = RESIDUAL_TOLERANCE / MUCH_SMALLER
    gain_floor: float = 1e-9
    max_rounded_iterations: int = 3
    undetermined_ratio: float = ILL_POSED_RATIO

    max_corrections: int = 10
    spatial_error_ratio: float = GAIN
    steps_per_factor: int = 16
    five_stage_tolerance: float = HIGH_ORDER_TOLERANCE
    first_step_level: int = 2
    max_cached_factors: int = 3
    max_correction: float = 1e8
    pilot_level: int = 2
    max_pilot_steps: int = 24
    max_step_tolerance: float = PILOT_TOLERANCE
    step_tolerance_reduction: float = TOLERANCE_REDUCTION

    def step_tolerance(self, tol: float, iteration: int) -> float:
        """Return the tolerance of a step in an iteration, each of which is as much tighter than the one before."""
        return TIME_SHARE * tol / self.step_tolerance_reduction**iteration

    def tableau(self, step_tolerance: float) -> RadauTableau:
        """Return the method of three or five stages."""
        return radau_tableau(3 if step_tolerance > self.five_stage_tolerance else 5)
