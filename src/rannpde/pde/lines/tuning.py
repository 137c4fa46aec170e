"""The empirical numbers of the method of lines, in one place, each with its reason.

``benchmarks/sensitivity.py`` halves and doubles every one of them over the zoo; a pair is for one and two dimensions of
space. "Measured" means: on the evolution problems of the zoo, in benchmarks/evolve.py, unless something else is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rannpde.pde.time.control import HIGH_ORDER_TOLERANCE, StepControl
from rannpde.pde.tolerance import (
    GAIN,
    MUCH_SMALLER,
    PILOT_TOLERANCE,
    RESIDUAL_TOLERANCE,
    TOLERANCE_REDUCTION,
    UNIFORM_SHARE,
    UNSOLVED_RESIDUAL,
)


@dataclass(frozen=True)
class LinesTuning:
    """Iterations, features and quadrature of the method of lines.

    first_tolerances : of the first iterations, which only estimate length scales; those near the wanted tolerance are
        skipped (without them Burgers' shock of width 0.003 takes three times as long). The first does not resolve a
        shock that only comes into being, and its length scales are too short; the second has no more digits than the
        weak form allows, since a basis for them would be as large as for the wanted tolerance
    most_iterations : iterations that do not agree end after this many
    tolerance_factor : every iteration after the first one with the wanted tolerance, and every one with Fourier modes,
        divides the tolerance of the last one by this: two with the same tolerance would take the same steps
    amplitude_samples : times and points at which the running amplitude of a solution is sampled
    least_amplitude : smallest share of the largest amplitude to which the tolerance is relative while the solution is
        small: a factor of a million, as in exp(60 (t - t²)), costs five times the steps of order 8 in the beginning
    residual_tolerance : iterations that agree are rejected when the relative residual of an equation or condition
        on fresh points is above this (0 has 1): correct solutions leave at most 0.02 over the zoo and the
        random problems of tests/honesty, with steps and kinks of data; a rod with value and slope prescribed at both
        ends leaves 0.9 and more

    features_per_length, features_per_digit : features per length scale, and for each digit more: 8 + 2 digits in 1-D
        (Burgers: 32 for twelve digits) and (4 + digits)²/12 per square of a length scale in 2-D (heat)
    least_width, most_width : least and largest number of features; a larger dense basis costs minutes
    basis_share : of the time that is left, which the factorisation of a basis may take: an integration in time with it
        takes some ten times as long
    rough_ratio, rough_lengths : where 1/ℓ of data grows by more than the first when the grid is twice as fine (2 at a
        jump, 1.4 at a kink, 1.0 for a bump of ten grid points), it is no length scale; there the data are resolved
        down to this fraction of the domain only, and the error is in the estimate
    width_excess : a solution that would need this many times the largest width is not resolved by one basis for all
        times
    uniform_share : share of the features and quadrature cells that is spread uniformly, whatever the length scales,
        so that features of the solution that were missed are still found
    cells_per_length, gauss_points : ten Gauss points on a third of ℓ integrate products of features with slopes up to
        1.25/ℓ to rounding: their nearest pole lies at 1.26 ℓ, a Bernstein ellipse of 15, and 15^-20 is below 1e-23
    weak_node_share : share of the quadrature cells that suffices for the weak form, whose error is larger anyway
    boundary_points, boundary_nodes : per side in 2-D, for the conditions and for the integrals of fluxes
    ball_points : along a radius per shortest length scale: a disc has one rule, without cells
    grid : points per axis of the grid that holds length scales, in 1-D and 2-D
    length_scale_times : times at which a solution is sampled to estimate its length scales

    weak_cutoff, strong_cutoff : relative cutoffs of singular values. Test functions that are differentiated lose
        eps/cutoff, so that the weak form is used where eps/weak_cutoff is below the tolerance

    length_factors : a tensor-product basis divides length scales by one of these, the smallest with which the profiles
        of the last iteration are represented to ALGEBRA_SHARE of its tolerance. Ranks multiply: a sine to nine digits
        needs 16 functions at 0.2, 29 at 0.5, 53 at 1; a tanh front has 3 digits at 0.2, 10 at 0.5.
        Before there is a solution, it is the middle one
    nodes_per_function : of the rule of an axis or interval, after the basis is truncated: 4.4 nodes for a wavelength of
        the last function, where Gauss needs π
    unresolved_share, refinements : one of the first iterations stops where the last quarter of the
        basis of an axis holds this share of the solution, and goes on with bases that are finer by ``growth``, at
        most ``refinements`` times: Heat 2d-LT (PINNacle) took 460 steps with fronts that 23 functions did not resolve
    tensor_samples : most values at nodes and times when length scales are estimated on a tensor-product basis
    most_unknowns : of a component in 2-D and 3-D; most_nodes : of the product of the rules
    most_flow : unknowns of each field of an incompressible flow, whose Stokes modes are a dense matrix
    pressure_cutoff : relative eigenvalue of the Schur complement below which a pressure has no effect on the flow
    slow_contraction : where a correction by the Kronecker sum alone leaves more than this share of the residual, GMRES
        follows, with at most krylov_steps, to ALGEBRA_SHARE of the residual; power_steps : of the power method that
        measures the contraction

    first_modes, most_modes : highest Fourier mode per axis, at first and at most, by dimension
    rough_modes : highest Fourier mode for data that no grid resolves
    growth : factor of the size of a basis where it is too small, from one iteration to the next, and after every
        iteration that should have been the last: kinks have no length scale, and iterations over Barenblatt's solution
        do not converge without it
    pilot_power : in several dimensions, the tolerance of the pilot iteration is the wanted one times
        tolerance_factor to this power
    exponential_above : tolerance above which ETDRK4 integrates on periodic boxes of two and three dimensions; below it
        collocation of high order does, whose Newton iterations fail only where non-linear terms are stiff
    resolved_padding : ratio of grid points to highest modes, in several dimensions, while the modes resolve the
        solution: 3 would avoid all aliasing of quadratic terms; at 2.25 it is below the truncation error
    most_work : values on grids that an iteration in Fourier modes may transform, at some 25 ns each
    growth_work : the limit of this work for adding modes in several dimensions: fronts that no number of modes resolves
        end in a minute or two, with an estimate that says so
    window_counts : numbers of windows in time that are tried where one basis for all times would be too wide
    """

    first_tolerances: tuple[float, ...] = (PILOT_TOLERANCE, MUCH_SMALLER * PILOT_TOLERANCE)
    most_iterations: int = 8
    tolerance_factor: float = TOLERANCE_REDUCTION
    amplitude_samples: tuple[int, int] = (64, 64)
    least_amplitude: float = 1e-6
    residual_tolerance: float = UNSOLVED_RESIDUAL

    features_per_length: tuple[int, int] = (8, 4)
    features_per_digit: tuple[int, int] = (2, 1)
    least_width: tuple[int, int] = (60, 350)
    most_width: tuple[int, int] = (1500, 1200)
    basis_share: float = MUCH_SMALLER
    rough_ratio: float = 1 / GAIN
    rough_lengths: tuple[int, int] = (1000, 50)
    width_excess: float = 2.0
    uniform_share: float = UNIFORM_SHARE
    cells_per_length: tuple[float, float] = (3.0, 0.6)
    gauss_points: tuple[int, int] = (10, 8)
    weak_node_share: float = 0.5
    boundary_points: int = 40
    boundary_nodes: int = 64
    ball_points: int = 5
    grid: tuple[int, int] = (4001, 65)
    length_scale_times: int = 161

    weak_cutoff: float = 1e-10
    strong_cutoff: float = 1e-13

    length_factors: tuple[float, ...] = (0.2, 0.3, 0.45, 0.65, 1.0)
    nodes_per_function: float = 2.2
    unresolved_share: float = RESIDUAL_TOLERANCE
    refinements: int = 8
    tensor_samples: int = 1_500_000
    most_unknowns: tuple[int, int] = (20_000, 40_000)
    most_nodes: int = 2_000_000
    most_flow: int = 1_800
    pressure_cutoff: float = 1e-3
    slow_contraction: float = MUCH_SMALLER
    krylov_steps: int = 30
    power_steps: int = 3

    first_modes: tuple[int, int, int] = (16, 8, 4)
    most_modes: tuple[int, int, int] = (1024, 320, 42)
    rough_modes: tuple[int, int, int] = (1024, 96, 20)
    growth: float = 1 / GAIN
    pilot_power: int = 2
    exponential_above: float = HIGH_ORDER_TOLERANCE
    resolved_padding: float = 2.25
    most_work: float = 1e10
    growth_work: float = 2e9
    window_counts: tuple[int, ...] = (4, 16)
    steps: StepControl = field(default_factory=StepControl)
