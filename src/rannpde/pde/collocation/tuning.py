"""The empirical settings of collocation, each with its reason.

``benchmarks/sensitivity.py`` halves and doubles every one of them over the zoo. "Measured" means: on the problems of
benchmarks/solve.py, unless others are named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rannpde.pde.tolerance import (
    COMPARABLE,
    CONDITION_WEIGHT,
    ESTIMATOR_FACTOR,
    GAIN,
    ILL_POSED_RATIO,
    MUCH_SMALLER,
    NEARBY,
    SAME_SOLUTION,
    STRONG_RESIDUAL_TOLERANCE,
    UNIFORM_SHARE,
    UNSOLVED_RESIDUAL,
)

MIN_REDUCTION = GAIN**3
"""Residuals and differences fall by GAIN where the cost of a solve doubles, which is the cube of the width: this is for
widths that double."""
TRIAL_FACTOR = 1.5
"""Factor from one length that is tried to the next: two of them double it, which residuals show."""


@dataclass(frozen=True)
class PlacementTuning:
    """Placement of neurons by the local length scale ℓ of a solution, chosen for travelling waves and free boundaries.

    slopes : the slope of a neuron is uniform between these multiples of 1/ℓ, or of 1 for those of random direction
    isotropic_fraction : fraction of neurons of random direction, for smooth parts
    sharpness : neurons and points are sampled with density ∝ ℓ^-sharpness from ``candidates`` uniform points; with 1
        (equidistribution) errors of Burgers' front with 200 neurons were up to 2.3 times as large
    uniform_fraction : fraction of neurons sampled regardless of ℓ
    probes : distances over which the change of the gradient is measured, as fractions of the half-width: kinks count
        too
    min_gradient : a gradient below this has no direction: along the domain values would count as the same
    """

    slopes: tuple[float, float] = (0.3, 3.5)
    isotropic_fraction: float = UNIFORM_SHARE
    sharpness: float = 1.5
    uniform_fraction: float = UNIFORM_SHARE
    probes: tuple[float, float] = (SAME_SOLUTION, NEARBY)
    min_gradient: float = SAME_SOLUTION
    candidates: int = 8000


@dataclass(frozen=True)
class GrowingTuning:
    """Placed features on a growing time window.

    first, factor : length of the first window as a fraction of the time interval, over which the solution hardly leaves
        the initial values, and growth from one solve to the next
    early_width : limit on the neurons before the last window; more would resolve a kink of the guess too sharply
    iterations : solves on the last window, each with features placed for the previous one
    cutoff : rank tolerance; larger than elsewhere, since small coefficients extrapolate better
    points_per_column : more than elsewhere, as points concentrate at the front
    width : neurons unless given
    """

    first: float = SAME_SOLUTION
    factor: float = TRIAL_FACTOR
    early_width: int = 200
    iterations: int = 4
    cutoff: float = 1e-10
    points_per_column: int = 6
    width: int = 400


@dataclass(frozen=True)
class LearningTuning:
    """Feature learning: laws fitted to the previous iteration, in many coordinates; chosen for Poisson problems in 5-D,
    10-D.

    dimensions : from this many coordinates on; below, ridges reach every tolerance
    step : factor between scales of the cosines' frequencies, tried where an iteration reduces the residual by less than
        min_reduction; the first scale is 1 for a gradient of length one on [-1, 1]^n, and 0.5 to 1 are best throughout
    isotropic_fraction : fraction of ridges of random direction: few, or digits are lost where the structure is exact;
        all but this fraction where an iteration gains little, as they represent what the structure does not
    points, lines, degrees : samples of the gradient; lines in each coordinate, and Legendre polynomials on each
    first_width, search_solves : neurons of the first iteration, and solves of its search for a scale
    min_reduction, max_idle : iterations of one width continue while the residual falls to this fraction, and this many
        more
    iterations : limit on the iterations of one width
    estimator_factor : factor of error estimates, as two realisations of a fitted law have in common what the structure
        does not represent: over sixty random problems, the error was up to 3.3 times the plain estimate (a product and
        1e-4 of a ridge)
    """

    dimensions: int = 4
    step: float = TRIAL_FACTOR
    isotropic_fraction: float = UNIFORM_SHARE
    points: int = 2000
    lines: int = 150
    degrees: int = 16
    first_width: int = 200
    search_solves: int = 4
    min_reduction: float = MIN_REDUCTION
    max_idle: int = 2
    iterations: int = 10
    estimator_factor: float = ESTIMATOR_FACTOR


@dataclass(frozen=True)
class CollocationTuning:
    """Widths, scales, points and weights of collocation.

    first_width, last_width : neurons of the first and of the widest iteration; max_columns : of all fields together,
        since an orthogonal factorisation costs the cube
    ill_posed_ratio, ill_posed_factor : realisations that differ by more than this multiple of their residuals have an
        error in common that a small residual does not show (Cauchy data for Laplace: error 11 times the plain estimate;
        a load of width 1e-4: 3 times); the estimate is then multiplied by the factor, and where the difference is above
        SAME_SOLUTION too, the equations do not determine the solution
    unsolved_residual : with a larger residual no second realisation is made, and there is no estimate
    similar_residual_ratio : realisations whose residuals differ by a larger factor do not measure the error of the
        better one: a third is made
    min_reduction : iterations end when difference and residual both exceed this fraction of those at half the width
    residual_tolerance : the largest relative held-out residual of a solution that is called solved, or 3 tol

    search_width : scales are searched with at most this many columns of all fields: a solve costs their cube
    search_solves, later_search_solves : solves of the first search, and of later ones that continue it
    few_coordinates_from : from this many coordinates on, a neuron depends on few of them
    lengths_to_scale, lengths_to_width : the first search begins at this share of the data's own rate, with this many
        neurons per length (sin 10πx sin 10πy, of rate 8, needs a scale of 2 to 3 and 1600 neurons)

    condition_weight : weight of conditions relative to equations after balancing
    points_per_column : collocation points inside per column; conditions have one per column together
    focus_fraction : fraction of points and neurons where the data vary, if that is concentrated (a load of width 1e-4)
    candidates_per_point : candidates sampled for each point that a density keeps
    placement_residual : above this residual, features placed for the solution are tried
    """

    first_width: int = 100
    last_width: int = 1600
    max_columns: int = 3200
    ill_posed_ratio: float = ILL_POSED_RATIO
    ill_posed_factor: float = 1 / MUCH_SMALLER
    unsolved_residual: float = UNSOLVED_RESIDUAL
    similar_residual_ratio: float = 1 / MUCH_SMALLER
    min_reduction: float = MIN_REDUCTION
    residual_tolerance: float = STRONG_RESIDUAL_TOLERANCE

    search_width: int = 400
    search_solves: int = 12
    later_search_solves: int = 5
    few_coordinates_from: int = 5
    lengths_to_scale: float = COMPARABLE
    lengths_to_width: int = 15

    condition_weight: float = CONDITION_WEIGHT
    points_per_column: int = 3
    focus_fraction: float = COMPARABLE
    candidates_per_point: int = 2
    placement_residual: float = STRONG_RESIDUAL_TOLERANCE

    placement: PlacementTuning = field(default_factory=PlacementTuning)
    growing: GrowingTuning = field(default_factory=GrowingTuning)
    learning: LearningTuning = field(default_factory=LearningTuning)
