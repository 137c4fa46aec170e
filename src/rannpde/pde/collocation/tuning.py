"""The numbers of collocation that were found by trying, in one place, each with its reason.

``benchmarks/sensitivity.py`` halves and doubles every one of them over the zoo. "Measured" means: on the problems of
benchmarks/solve.py, unless something else is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PlacementTuning:
    """Neurons placed by the lengths of a solution. Travelling waves and free boundaries set them.

    slopes : the slope of a neuron is uniform between these multiples of 1/ℓ
    free, free_slope : share of neurons of random direction, and their slope, for what is smooth
    sharpness : neurons and points are drawn with density ∝ ℓ^-sharpness; candidates of which they are drawn
    uniform : share of neurons drawn with no regard to ℓ
    probes : distances over which the change of the gradient is measured, as shares of the half-width: kinks count too
    flat : a gradient below this, for unit range, has no direction
    """

    slopes: tuple[float, float] = (0.3, 3.5)
    free: float = 0.1
    free_slope: float = 2.0
    sharpness: float = 1.5
    uniform: float = 0.2
    probes: tuple[float, float] = (1e-2, 2e-3)
    flat: float = 1e-3
    candidates: int = 8000


@dataclass(frozen=True)
class GrowingTuning:
    """Placed features on a time window that grows.

    first, factor : the first window as a share of the time interval, and its growth from one solve to the next
    early_width : most neurons before the last window; more would resolve a kink of the guess too sharply
    iterations : solves on the last window, each with features placed for the one before
    cutoff : rank cut; larger than elsewhere, since small coefficients extrapolate better
    points_per_column : more than elsewhere, as points gather at the front
    width : neurons unless given
    """

    first: float = 0.02
    factor: float = 1.4
    early_width: int = 200
    iterations: int = 4
    cutoff: float = 1e-10
    points_per_column: float = 6.0
    width: int = 400


@dataclass(frozen=True)
class LearningTuning:
    """Laws learned from the iteration before, in many coordinates. Poisson problems in 5-D and 10-D set them.

    dimensions : from this many coordinates on; below, ridges reach every tolerance
    scale : of the cosines' frequencies, for a gradient of length one on [-1, 1]^n; 0.5 to 1 is best throughout
    step : other scales are this factor away, tried where an iteration gains less than ``gain``
    free, freer : shares of ridges of any direction beside what was learned: few, or digits are lost where the structure
        is exact; more where an iteration gains little, as what the structure leaves out is theirs
    points, lines, degrees : where gradients are averaged; lines in each coordinate, and Legendre polynomials on each
    first_width, rounds : neurons of the first iteration, and solves of its search for a scale
    gain : iterations of one width go on while the residual falls to this share, and ``idle`` iterations beyond
    iterations : most iterations of one width
    common : estimates are so many times larger, as two draws of a learned law share what the structure leaves out: over
        sixty random problems, the error was up to 3.3 times the plain estimate (a product and 1e-4 of a ridge)
    hopeless : a residual above this shows nothing that could be learned
    """

    dimensions: int = 4
    scale: float = 0.7
    step: float = 1.5
    free: float = 0.2
    freer: float = 0.7
    points: int = 2000
    lines: int = 150
    degrees: int = 16
    first_width: int = 200
    rounds: int = 4
    gain: float = 0.5
    idle: int = 2
    iterations: int = 10
    common: float = 3.0
    hopeless: float = 0.9


@dataclass(frozen=True)
class CollocationTuning:
    """Widths, scales, points and weights of collocation.

    first_width, last_width : neurons of the first and of the widest iteration; most_columns : of all fields together,
        since an orthogonal factorisation costs the cube
    estimate_share : error of the better of two draws of one width over their difference: 0.7 if they are alike
    ill_conditioned, ill_share : draws that differ by so many times their residual share what a small residual does not
        see (Cauchy data for Laplace: error 11 times the plain estimate; a load of width 1e-4: 3 times); the estimate is
        then so many times larger
    unsolved : a residual above this is not worth a second draw, and no estimate is known
    alike : draws whose residuals differ by more are no measure of the better one: a third is made
    stall : iterations end when difference and residual both keep more than this share of those at half the width
    undetermined : draws that differ by this many times their residuals differ by what the equations leave free
    lenient : the largest relative held-out residual of a solution that is called solved, or three times the tolerance

    search_width : scales are searched with this many columns of all fields at most: a solve costs their cube
    rounds, later_rounds : solves of the first search, and of later ones that go on from where it ended
    few_coordinates_from : from this many coordinates on, neurons see few of them
    lengths_to_scale, lengths_to_width : the scale at which the first search begins is this multiple of the data's own
        rate, the first width this many neurons per length (sin 10πx sin 10πy, of rate 8, wants a scale of 2 to 3 and
        1600 neurons)

    condition_weight : of conditions against the equation, whose rows are as long as theirs after balancing; non-linear
        Poisson gains up to a digit over weight 1
    points_per_column : collocation points inside per column; conditions share one per column
    focus_share : of points and neurons where the data vary, if that is concentrated (a load of width 1e-4)
    spread : candidates drawn for each point that a density keeps
    rough : above this residual, features placed by the solution are tried
    """

    first_width: int = 100
    last_width: int = 1600
    most_columns: int = 3200
    estimate_share: float = 0.7
    ill_conditioned: float = 1e3
    ill_share: float = 5.0
    unsolved: float = 0.3
    alike: float = 10.0
    stall: float = 0.5
    undetermined: float = 1e5
    lenient: float = 1e-3

    search_width: int = 400
    rounds: int = 12
    later_rounds: int = 5
    few_coordinates_from: int = 5
    lengths_to_scale: float = 0.3
    lengths_to_width: float = 15.0

    condition_weight: float = 10.0
    points_per_column: float = 3.0
    focus_share: float = 0.3
    spread: int = 2
    rough: float = 3e-3

    placement: PlacementTuning = field(default_factory=PlacementTuning)
    growing: GrowingTuning = field(default_factory=GrowingTuning)
    learning: LearningTuning = field(default_factory=LearningTuning)
