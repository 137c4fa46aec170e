"""The numbers of the method of lines that were found by trying, in one place, each with its reason.

``benchmarks/sensitivity.py`` halves and doubles every one of them over the zoo; a pair is for one and two dimensions of
space. "Measured" means: on the evolution problems of the zoo, in benchmarks/evolve.py, unless something else is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class StepControl:
    """Step sizes and Newton iterations of the Radau collocation.

    iterations : of Newton in one step at most; a smaller step is better than more of them
    newton_share : Newton stops at this share of the tolerance, so that its error does not count
    growth, shrink, safety : of step sizes, as usual (Hairer & Wanner, IV.8)
    rounding : corrections below this share of the state are rounding, which Newton cannot better
    blow_up, creeping : a solution this many times its scale is called a blow-up if steps are below that share of the
        time left; bounded sources make large solutions too, but not small steps
    most_steps, sure_after : ends a march that creeps, or after the second would need more than the first at its pace: a
        wave that grows at an outflow went on for minutes; layers in time take some dozen small steps, not a thousand
    lengths_per_step : a step may not pass more of the data's own lengths in time, or a short pulse is stepped over (a
        source of width 5e-4 that comes and goes)
    """

    iterations: int = 12
    newton_share: float = 0.05
    growth: float = 6.0
    shrink: float = 0.1
    safety: float = 0.85
    rounding: float = 50 * float(np.finfo(float).eps)
    blow_up: float = 1e6
    creeping: float = 1e-3
    most_steps: int = 100_000
    sure_after: int = 1000
    lengths_per_step: float = 4.0


@dataclass(frozen=True)
class LinesTuning:
    """Iterations, features and quadrature of the method of lines.

    early : tolerances of the first iterations, which only find out how fine the solution is; skipped near the wanted
        one (without them Burgers' shock of width 0.003 takes three times as long)
    most_passes : after which iterations that do not agree are given up, as they are when ``patience`` comparable ones
        in a row each keep more than ``gain`` of the disagreement
    tighter : every iteration after the first of the wanted tolerance marches with one this much smaller than the
        last, so that errors in time show, and fall
    growth_looks : times and places at which an iteration looks how large its solution was so far
    least_share : a march is never held to a smaller share of its tolerance because the solution has yet to grow: a
        million, as exp(60 (t - t²)), costs five times the steps of order 8 in the beginning
    march_share : share of an iteration's tolerance that the march in time may use
    foreign_share : of that for integrators of SciPy's, whose errors add up (measured on heat and transport)
    vetoed : iterations that agree are not believed when an equation or condition is left with this relative residual on
        fresh points (1: nothing is solved): honest solutions leave at most 0.02 over the zoo and the random problems of
        tests/honesty, steps and kinks of data among them; value and slope at both ends of a rod leave 0.9 and more
    estimate_share : error of the last iteration over its difference to the one before (0.7 for equally good
        iterations, 0.3 for one three times better; measured 0.4 to 2.8 times the true error over the zoo)
    finer : lengths shrink by this factor with every iteration that should have been the last: kinks have no length, and
        iterations over Barenblatt's solution do not come together without it

    features_first, features_digit : features per length and per digit, 8 + 2 digits in 1-D (Burgers: 32 for twelve
        digits) and (4 + digits)²/12 per square of a length in 2-D (heat)
    narrowest, widest : features at least and at most; a dense basis of more costs minutes
    rough_ratio, rough_lengths : 1/ℓ of data that grows by more than the first when the grid is twice as fine (2 at a
        jump, 1.4 at a kink, 1.0 for a bump of ten places) is no length; there the data are followed down to this share
        of the domain only, and what that leaves of them is in the estimate
    hopeless : a solution that wants this many times the widest basis is not resolved by one for all times
    uniform_share : of features and of quadrature cells that ignore the lengths: what was not seen is still found
    cells_per_length, gauss_points : ten Gauss points on a third of ℓ integrate products of features with slopes up to
        1.25/ℓ to rounding: their nearest pole lies at 1.26 ℓ, a Bernstein ellipse of 15, and 15^-20 is below 1e-23
    loose_nodes : share of the quadrature cells that suffices for the weak form, where the error is larger anyway
    boundary_points, boundary_nodes : per side in 2-D, for the conditions and for the integrals of fluxes
    ball_points : along a radius per shortest length: a disc has one rule, without cells
    grid : places per axis at which lengths are kept; looks : times at which an iteration looks for the shortest length

    weak_cutoff, strong_cutoff : relative singular values kept. Test functions that are differentiated lose eps/cutoff,
        so the weak form is taken where eps/weak_cutoff is below the tolerance

    stretches : products take lengths that many times longer, the longest that carry the profiles of the last
        iteration to profile_share of its tolerance. Ranks multiply: a sine to nine digits needs 16 functions at 0.2,
        29 at 0.5, 53 at 1; a tanh front has 3 digits at 0.2, 10 at 0.5. first_stretch : where nothing has been seen yet
    product_density : share of the quadrature cells for products: ten points on 0.8 lengths leave 6^-20
    nodes_per_function : of the rule of an axis: 4.4 nodes a wavelength of the last function, where Gauss needs π
    unresolved : a first or early iteration stops where the last quarter of an axis' functions holds this share of the
        solution, and goes on from there with axes for what it saw, ``much_finer``, at most ``refinements`` times:
        fronts that 23 functions could not carry made Heat 2d-LT (bench/pinnacle) take 460 steps that showed nothing
    product_looks : values at nodes and times, at most, when an iteration looks at products
    most_unknowns : of a component in 2-D and 3-D; most_nodes : of the product of the rules
    most_flow : unknowns of each field of an incompressible flow, whose modes are a dense matrix
    felt : pressures whose part of the Schur complement is less are not felt
    slow_newton : corrections by the Kronecker sum alone that leave more than this are bettered by Krylov steps, at
        most krylov_steps of them, to krylov_share of the residual; power_steps : with which that is found out

    first_modes, most_modes : highest Fourier mode per axis; rough_modes : of data that no grid resolves
    tail_share : of the tolerance that the highest eighth of the modes may hold; mode_growth : factor where that is more
    mode_step : factor from one iteration to the next
    mode_tighter : every iteration with Fourier modes marches with a tolerance this much smaller than the one before:
        two of one tolerance take the same steps, and of kinks carried around, whose error in time falls like √tol, a
        factor of 2 hid nine tenths
    scouting : in several dimensions, the first iteration has mode_tighter to this power times the tolerance wanted
    exponential_from : tolerance from which on periodic boxes of two and three dimensions are marched by ETDRK4, below
        it by collocation of high order, whose iterations do not converge only where what is not linear is stiff
    resolved_padding : points of the grid over highest modes, in several dimensions, while the modes resolve it: 3
        would leave no aliases of quadratic terms; with 2.25 they are below what the modes leave out anyway
    kept_share : of the tolerance of an iteration that is left out of what is kept of it
    most_work : values on grids that an iteration in Fourier modes may transform, some 25 ns each: it is given up beyond
    growth_work : no modes are added in several dimensions where that would take more to the end: fronts that no number
        of modes resolves end in a minute or two, with an estimate that says so
    window_counts : numbers of windows in time that are tried where one basis for all times is too wide
    """

    early: tuple[float, ...] = (1e-3, 1e-6)
    most_passes: int = 8
    patience: int = 3
    gain: float = 0.7
    tighter: float = 2.0
    growth_looks: tuple[int, int] = (64, 64)
    least_share: float = 1e-6
    march_share: float = 0.3
    foreign_share: float = 0.03
    vetoed: float = 0.3
    estimate_share: float = 0.5
    finer: float = 1.15

    features_first: tuple[float, float] = (8.0, 4.0)
    features_digit: tuple[float, float] = (2.0, 1.0)
    narrowest: tuple[int, int] = (60, 350)
    widest: tuple[int, int] = (1500, 1200)
    rough_ratio: float = 1.25
    rough_lengths: tuple[float, float] = (1000.0, 50.0)
    hopeless: float = 2.0
    uniform_share: float = 0.2
    cells_per_length: tuple[float, float] = (3.0, 0.6)
    gauss_points: tuple[int, int] = (10, 8)
    loose_nodes: float = 0.5
    boundary_points: int = 40
    boundary_nodes: int = 64
    ball_points: float = 5.0
    grid: tuple[int, int] = (4001, 65)
    looks: int = 161

    weak_cutoff: float = 1e-10
    strong_cutoff: float = 1e-13

    stretches: tuple[float, ...] = (0.2, 0.3, 0.45, 0.65, 1.0)
    first_stretch: float = 0.45
    profile_share: float = 0.05
    product_density: float = 0.4
    nodes_per_function: float = 2.2
    unresolved: float = 0.02
    refinements: int = 8
    much_finer: float = 1.3
    product_looks: int = 1_500_000
    most_unknowns: tuple[int, int] = (20_000, 40_000)
    most_nodes: int = 2_000_000
    most_flow: int = 1_800
    felt: float = 1e-3
    slow_newton: float = 0.15
    krylov_share: float = 0.03
    krylov_steps: int = 30
    power_steps: int = 3

    first_modes: tuple[int, int, int] = (16, 8, 4)
    most_modes: tuple[int, int, int] = (1024, 320, 42)
    rough_modes: tuple[int, int, int] = (1024, 96, 20)
    tail_share: float = 0.1
    mode_growth: float = 1.25
    mode_step: float = 1.3
    mode_tighter: float = 4.0
    scouting: int = 2
    exponential_from: float = 1e-6
    resolved_padding: float = 2.25
    kept_share: float = 0.02
    most_work: float = 1e10
    growth_work: float = 2e9
    window_counts: tuple[int, ...] = (4, 16)
    steps: StepControl = field(default_factory=StepControl)
