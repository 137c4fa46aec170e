"""Classical solvers against solutions that are known in closed form, and finite elements against each other."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

import rannpde as rp
from benchmarks.harness.case import relative_error
from benchmarks.harness.coefficients import read_numbers
from benchmarks.harness.reference_solution import read_reference
from benchmarks.pinnacle import heat, poisson, waves
from benchmarks.pinnacle.table import CASES
from benchmarks.reference_solvers import chebyshev, fourier, steady
from rannpde.pde.zoo.cole_hopf import ColeHopf

SIN, PI = np.sin, np.pi


def places(count, *bounds, moments=()):
    """Random points of a box; the first column is time where moments are given."""
    lower, upper = np.array(bounds).T
    points = lower + np.random.default_rng(3).random((count, len(bounds))) * (upper - lower)
    return np.column_stack([np.resize(moments, count), points]) if moments else points


def gap(function, exact, points):
    return relative_error(function(points), np.reshape(exact(points), (len(points), -1)))


def test_burgers_by_chebyshev_is_cole_hopf():
    points = places(200, (0, 1), (-1, 1))
    assert gap(chebyshev.burgers(0.1, 64, 1e-8), ColeHopf(0.1), points) < 1e-6  # a hundred steps of 1e-8 each


def test_the_wave_by_chebyshev():
    exact = CASES["wave-1d"].problem().exact_solution
    assert gap(chebyshev.wave(32, 1e-7), exact, places(200, (0, 1), (0, 1))) < 1e-5


def test_heat_in_a_ball_by_chebyshev():
    exact = lambda p: np.exp(np.square(p[:, 1:]).sum(axis=1) / 2 + p[:, 0])  # noqa: E731
    points = places(200, (0, 1), *[(-0.4, 0.4)] * 5)
    assert gap(chebyshev.ball_heat(12, 1e-8), exact, points) < 1e-7


@pytest.mark.parametrize("dim", [2, 3])
def test_poisson_by_fast_diagonalisation_converges_geometrically(dim):
    exact = lambda p: SIN(p.sum(axis=1))  # noqa: E731
    points = places(100, *[(0, 1)] * dim)
    errors = [gap(chebyshev.poisson(dim, n, lambda p: dim * exact(p), exact), exact, points) for n in (4, 8, 12)]
    assert errors[1] < 1e-4 * errors[0]
    assert errors[2] < 1e-12


def test_modes_follow_their_law():
    exact = lambda p: np.exp(-5 * PI**2 * p[:, 0]) * SIN(PI * p[:, 1]) * SIN(2 * PI * p[:, 2])  # noqa: E731
    start = lambda p: SIN(PI * p[:, 0]) * SIN(2 * PI * p[:, 1])  # noqa: E731
    found = chebyshev.modal((20, 24), (1.0, 1.0), start, lambda rates, t: np.exp(rates * t))
    assert gap(found, exact, places(100, (0, 1), (0, 1), moments=(0.01, 0.05))) < 1e-11


def test_driven_heat_with_a_constant_coefficient():
    """One mode: c' = -2π² a c + sin ωt, c(0) = 0."""
    decay, omega = 4 * PI**2, 3.0

    def exact(p):
        t = p[:, 0]
        c = (decay * SIN(omega * t) - omega * np.cos(omega * t) + omega * np.exp(-decay * t)) / (decay**2 + omega**2)
        return c * SIN(PI * p[:, 1]) * SIN(PI * p[:, 2])

    load = lambda x, y: SIN(PI * x) * SIN(PI * y)  # noqa: E731
    found = chebyshev.driven_heat(14, lambda x, y: 2.0 + 0 * x, load, omega, (0.02, 0.3, 1.0))
    assert gap(found, exact, places(90, (0, 1), (0, 1), moments=(0.02, 0.3, 1.0))) < 1e-9


def test_steady_flow_by_chebyshev_is_kovasznay():
    problem = rp.zoo("kovasznay")
    exact = problem.exact_solution
    level = float(exact(np.array([[-0.5, 0.0]]))[0, 2])
    bounds = [tuple(pair) for pair in problem.domain.bounds]
    found = steady.navier_stokes(bounds, 1 / 40, lambda p: exact(p)[:, :2], (-0.5, 0.0, level), 18)
    assert gap(found, exact, problem.domain.sample(200, rng=0)) < 1e-5


def test_burgers_by_fourier_is_cole_hopf():
    moments = (0.25, 0.5)
    first = lambda x, y: np.stack([-SIN(PI * x), 0 * x])  # noqa: E731
    found = fourier.square((-1.0, 1.0), 48, 200, moments, fourier.diffusion(0.3, 0.3), fourier.carried, first)
    points = places(100, (-1, 1), (-1, 1), moments=moments)
    assert relative_error(found(points)[:, :1], ColeHopf(0.3)(points[:, :2])[:, None]) < 1e-9


def test_etdrk4_has_order_four():
    moments = (0.5,)
    first = lambda x, y: np.stack([-SIN(PI * x), 0 * x])  # noqa: E731
    points = places(50, (-1, 1), (-1, 1), moments=moments)

    def solve(steps):
        linear = fourier.diffusion(0.2, 0.2)
        return fourier.square((-1.0, 1.0), 24, steps, moments, linear, fourier.carried, first)(points)[:, :1]

    fine = solve(160)
    coarse, middle = (relative_error(solve(steps), fine) for steps in (10, 20))
    assert 3.5 < np.log2(coarse / middle) < 5


def test_sines_and_cosines_without_a_force_are_exact():
    decay = fourier.sines(
        (16, 16), 8, (0.5, 1.0), 0.1, lambda u, t, x, y: 0 * u, lambda x, y: SIN(PI * x) * SIN(3 * PI * y)
    )
    exact = lambda p: np.exp(-(PI**2) * p[:, 0]) * SIN(PI * p[:, 1]) * SIN(3 * PI * p[:, 2])  # noqa: E731
    assert gap(decay, exact, places(60, (0, 1), (0, 1), moments=(0.5, 1.0))) < 1e-12
    ring = fourier.reflected_wave(
        12, (0.7, 2.0), lambda x, y: 4.0 + 0 * x, lambda x, y: np.cos(PI * (x + 1)) * np.cos(PI * (y + 1) / 2)
    )
    speed = 2 * np.hypot(PI, PI / 2)
    shape = lambda p: np.cos(PI * (p[:, 1] + 1)) * np.cos(PI * (p[:, 2] + 1) / 2)  # noqa: E731
    assert (
        gap(ring, lambda p: np.cos(speed * p[:, 0]) * shape(p), places(60, (-1, 1), (-1, 1), moments=(0.7, 2.0)))
        < 1e-11
    )


def test_kuramoto_sivashinsky_early_is_the_reference():
    """Ten hundredths of the time with a coarse grid: before the chaos both agree to the coarse grid's error."""
    reference = read_reference("kuramoto-sivashinsky")
    early = reference.points[:, 0] < 0.105
    linear = lambda k: 100 / 16**2 * k**2 - 100 / 16**4 * k**4  # noqa: E731
    start = lambda x: np.cos(x) * (1 + np.sin(x))  # noqa: E731
    coarse = fourier.circle(96, 400, waves.MOMENTS_KS[:10], linear, -100 / 32, start)
    assert relative_error(coarse(reference.points[early]), reference.values[early]) < 1e-6


def test_plain_finite_differences_find_the_reference_of_2d_ms():
    """Five points and ghosts at the rim: second order, with blocks that end between nodes."""
    count = 100
    step = 20 / count
    x = -10 + step * (np.arange(count) + 0.5)
    block = ((x + 10) // 4).astype(int)
    mean, wave = poisson.block_loads()
    sines = np.abs(SIN(PI * (x + 10) / 4))
    load = (mean[np.ix_(block, block)] + wave[np.ix_(block, block)] * np.outer(sines, sines)) / read_numbers(
        "poisson_2d_ms_a"
    )[np.ix_(block, block)]
    main = np.full(count, 2.0)
    main[[0, -1]] -= (1 - step / 2) / (1 + step / 2)  # ∂_n u = -u between the last node and its ghost
    side = -np.ones(count - 1)
    line = sparse.diags_array([side, main, side], offsets=[-1, 0, 1]) / step**2
    one = sparse.eye_array(count)
    u = spsolve((sparse.kron(line, one) + sparse.kron(one, line)).tocsc(), load.ravel()).reshape(count, count)
    reference = read_reference("poisson-2d-ms")
    nearest = np.rint((reference.points + 10) / step - 0.5).astype(int).clip(1, count - 2)
    slopes, offset, at = np.gradient(u, step), reference.points - x[nearest], tuple(nearest.T)
    found = u[at] + slopes[0][at] * offset[:, 0] + slopes[1][at] * offset[:, 1]
    assert relative_error(found[:, None], reference.values) < 5e-3


ELEMENTS = {
    "poisson-2d-c": ("discs_elements", (0.2, 5), 1e-4),
    "poisson-2d-cg": ("uneven_elements", (0.25, 8), 1e-3),
    "poisson-2d-ms": ("block_elements", (2.0, 5, 1), 1e-4),
    "ns-2d-c": ("cavity_elements", (0.25, 5, 1), 2e-2),
    "ns-2d-cg": ("step_elements", (0.5, 4, 2), 2e-2),
}
"""Coarse grids that take a second, and how far they may be from the reference solution."""


EARLY = (0.125, 0.25)


def test_sines_of_a_quarter_are_the_reference_of_the_square():
    """The reference solution's own grid is twice as fine; points lie in all quarters."""
    reference = read_reference("heat-2d-lt-small")
    assert relative_error(heat.long_time(96, 160, EARLY)(reference.points), reference.values) < 1e-4


def test_an_unsteady_flow_is_near_the_reference():
    pytest.importorskip("ngsolve")
    from benchmarks.pinnacle import by_elements

    reference = read_reference("ns-2d-lt-small")
    coarse = by_elements.channel_elements(4, 2, 1, 4, 30, 0.2, EARLY)
    assert relative_error(coarse(reference.points), reference.values, 2) < 1e-2


@pytest.mark.parametrize("name", ELEMENTS)
def test_coarse_elements_are_near_the_reference(name):
    pytest.importorskip("ngsolve")
    from benchmarks.pinnacle import by_elements

    solver, grid, bound = ELEMENTS[name]
    reference = read_reference(name)
    assert (
        relative_error(getattr(by_elements, solver)(*grid)(reference.points), reference.values, CASES[name].fields)
        < bound
    )


def test_elements_read_formulas_as_we_do():
    pytest.importorskip("ngsolve")
    from benchmarks.reference_solvers import elements, meshes

    mesh = meshes.lidded(0.5, 1, 0)
    text = poisson.LOAD_2D
    known = rp.Problem("u_xx = 0", rp.Box(x=(0, 1), y=(0, 1)), exact={"u": text}, incomplete=True).exact_solution
    points = places(20, (0.1, 0.9), (0.1, 0.9))
    found = elements.Elements(mesh, (elements.formula(text), elements.formula("exp(-x**3/2) - 1")), 0)(points)
    assert found[:, 0] == pytest.approx(known(points)[:, 0], rel=1e-12)
    assert found[:, 1] == pytest.approx(np.exp(-(points[:, 0] ** 3) / 2) - 1, rel=1e-12)
