"""Linear evolutions in eigenfunctions of space: known solutions, bounds, and when other methods take over."""

import numpy as np
import pytest
from scipy.special import j0, jn_zeros, jv

import rannpde as rp
from draws import some
from rannpde.pde.trefftz.box_modes import AxisModes, BoxModes
from rannpde.pde.trefftz.disc_modes import DiscModes
from rannpde.pde.trefftz.evolution import modal_problem
from rannpde.pde.trefftz.method import Trefftz


@pytest.mark.parametrize("ends", [(np.inf, np.inf), (0.0, np.inf), (0.0, 0.0), (2.3, 0.7), (np.inf, 4.0)])
def test_functions_of_an_axis_are_orthonormal_and_satisfy_their_conditions(ends):
    axis = AxisModes.between((0.3, 1.9), ends, 9)
    nodes, weights = axis.rule
    values = axis.values(nodes, 0)
    assert np.abs((values.T * weights) @ values - np.eye(9)).max() < 1e-13
    for place, normal, height in ((0.3, -1, ends[0]), (1.9, 1, ends[1])):
        value, slope = (axis.values(np.array([place]), order)[0] for order in (0, 1))
        left = value if np.isinf(height) else normal * slope + height * value
        assert np.abs(left).max() < 1e-12 * (1 + axis.frequencies.max())


@pytest.mark.parametrize("condition", [np.inf, 0.0])
def test_functions_of_a_disc(condition):
    disc = DiscModes.below(np.array([0.2, -0.1]), 1.3, condition, 14.0)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=disc.count)
    values = disc.plain(disc.nodes(), (0, 0), weights[:, None])[:, 0]
    assert np.abs(disc.projected(values) - weights).max() < 1e-12  # orthonormal, and the rule is exact
    points = disc.centre + 0.8 * rng.uniform(-1, 1, (7, 2))
    laplacian = disc.columns(points, (2, 0)) + disc.columns(points, (0, 2))
    columns = disc.columns(points, (0, 0))
    assert np.abs(laplacian + disc.negative_laplacian * columns).max() < 1e-10 * disc.negative_laplacian.max()
    turn = rng.uniform(0, 6, 5)
    edge = disc.centre + disc.radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    across = disc.columns(edge, (1, 0)).T * np.cos(turn) + disc.columns(edge, (0, 1)).T * np.sin(turn)
    assert np.abs(disc.columns(edge, (0, 0)) if np.isinf(condition) else across).max() < 1e-10


def _between(x, t, centre, low, high, sign, start):
    """Heat from a Gaussian at the centre, by images."""
    n = np.arange(-12, 13)[:, None]
    width, period = start + t, 2 * (high - low)
    gauss = lambda gap: np.exp(-(gap**2) / (4 * width)) / np.sqrt(4 * np.pi * width)  # noqa: E731
    return (gauss(x - centre + n * period) + sign * gauss(2 * low - x - centre + n * period)).sum(axis=0)


@pytest.mark.parametrize(("seed", "d", "cold"), some([(1, 2, False), (0, 2, True), (2, 3, True)], 2))
def test_heat_from_a_gaussian_is_the_sum_of_its_images(seed, d, cold):
    """Boxes in random units, cold or insulated walls; the maximum principle bounds the largest error."""
    rng = np.random.default_rng(seed)
    unit = float(10 ** rng.uniform(-1, 1))
    low = rng.uniform(-2, 2, d) * unit
    high = low + rng.uniform(0.8, 1.3, d) * unit
    centre = low + (high - low) * rng.uniform(0.3, 0.7, d)
    start, duration = 0.01 * unit**2, 0.05 * unit**2
    names = ["x", "y", "z"][:d]

    def images(t, *place):
        factors = [
            _between(x, t, centre[k], low[k], high[k], -1 if cold else 1, start) * unit for k, x in enumerate(place)
        ]
        return np.prod(factors, axis=0)

    domain = rp.SpaceTime(
        t=(0, duration), **{n: (float(a), float(b)) for n, a, b in zip(names, low, high, strict=True)}
    )
    conditions = {"t=0": f"u = g(t, {', '.join(names)})", "boundary": "u = 0" if cold else "dn(u) = 0"}
    problem = rp.Problem(
        "u_t = laplace(u)", domain, conditions, functions={"g": images}, exact={"u": lambda p: images(*p.T)}
    )
    solution = rp.solve(problem, tol=1e-9)
    assert solution.method.name == "trefftz"
    assert solution.converged
    assert solution.errors()["u"] <= max(2 * solution.estimate, 1e-12)
    points = domain.sample(500, rng=3)
    assert np.abs(solution(points) - images(*points.T)).max() <= solution.history.bound + 1e-12


def test_heat_and_waves_on_a_disc():
    zero = jn_zeros(0, 2)
    profile = lambda x, y: j0(zero[0] * np.hypot(x, y)) - 0.3 * j0(zero[1] * np.hypot(x, y))  # noqa: E731
    domain = rp.SpaceTime(t=(0, 0.4), x=rp.Ball((0, 0), 1))

    def cooled(points):
        t, x, y = points.T
        parts = [np.exp(-(z**2) * t) * j0(z * np.hypot(x, y)) for z in zero]
        return parts[0] - 0.3 * parts[1]

    heat = rp.Problem(
        "u_t = laplace(u)", domain, {"t=0": "u = 3 + g(x, y)", "boundary": "u = 3"}, functions={"g": profile},
        exact={"u": lambda points: 3 + cooled(points)},
    )  # fmt: skip
    solution = rp.solve(heat, tol=1e-10)
    assert solution.method.name == "trefftz"
    assert solution.errors()["u"] < 1e-11

    alpha = jn_zeros(2, 3)[2]
    ring = lambda x, y: jv(2, alpha * np.hypot(x, y)) * np.cos(2 * np.arctan2(y, x))  # noqa: E731
    long = rp.SpaceTime(t=(0, 100), x=rp.Ball((0, 0), 1))
    drum = rp.Problem(
        "u_tt = laplace(u)", long, {"t=0": ("u = g(x, y)", "u_t = 0"), "boundary": "u = 0"}, functions={"g": ring},
        exact={"u": lambda p: np.cos(alpha * p[:, 0]) * ring(p[:, 1], p[:, 2])},
    )  # fmt: skip
    solution = rp.solve(drum, tol=1e-10, method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] <= solution.estimate < 1e-10


@pytest.mark.parametrize(
    ("equation", "start", "exact", "walls"),
    [
        ("u_tt = laplace(u)", ("u = cos(pi*x)", "u_t = 2"), "cos(pi*t)*cos(pi*x) + 2*t", "dn(u) = 0"),
        ("u_tt + 2*u_t = laplace(u) - u", ("u = 0", "u_t = sin(pi*x)*sin(pi*y)"),
         "exp(-t)*sin(sqrt(2)*pi*t)/(sqrt(2)*pi)*sin(pi*x)*sin(pi*y)", "u = 0"),
        ("u_t = laplace(u) + sin(pi*x)*sin(pi*y)", ("u = 0",),
         "(1 - exp(-2*pi**2*t))/(2*pi**2)*sin(pi*x)*sin(pi*y)", "u = 0"),
        ("u_t = laplace(u) + 1", ("u = cos(pi*y)",), "t + exp(-pi**2*t)*cos(pi*y)", "dn(u) = 0"),
        ("u_t = 0.3*u_xx + 2*u_yy", ("u = 1 + sin(pi*x)*sin(2*pi*y)",),
         "1 + exp(-8.3*pi**2*t)*sin(pi*x)*sin(2*pi*y)", "u = 1"),
    ],
)  # fmt: skip
def test_evolutions_with_one_mode(equation, start, exact, walls):
    domain = rp.SpaceTime(t=(0, 3), x=(0, 1), y=(0, 1))
    problem = rp.Problem(equation, domain, {"t=0": start, "boundary": walls}, exact={"u": exact})
    solution = rp.solve(problem, tol=1e-9, method="trefftz")
    assert solution.converged
    assert solution.errors()["u"] < 1e-11


def test_schroedingers_equation_conserves_its_norm(tmp_path):
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1.2))
    packet = "u = exp(-((x - 0.6)**2 + (y - 0.55)**2)/0.005)*exp(i*20*x)"
    problem = rp.Problem("i*u_t = -laplace(u)", domain, {"t=0": packet, "boundary": "u = 0"}, complex=True)
    solution = rp.solve(problem, tol=1e-8)
    assert solution.method.name == "trefftz"
    assert solution.converged
    nodes, weights = np.polynomial.legendre.leggauss(110)
    x, y = 0.5 * (nodes + 1), 0.6 * (nodes + 1)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = []
    for t in (0.0, 0.37, 1.0):
        values = solution.function(np.column_stack([np.full(len(grid), t), grid]))
        masses.append(np.outer(weights, weights).ravel() @ np.square(values).sum(axis=1))
    assert np.ptp(masses) < 1e-8 * masses[0]
    again = rp.load(solution.save(tmp_path / "packet.npz"))
    points = domain.sample(20, rng=1)
    assert np.array_equal(again.function(points), solution.function(points))
    assert again.history == solution.history


def test_what_eigenfunctions_do_not_suit_is_left_to_others():
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    rough = rp.Problem("u_t = laplace(u)", domain, {"t=0": "u = x*(1 - x)*y*(1 - y)", "boundary": "u = 0"})
    assert "slowly" in Trefftz().drawbacks(rough)[0]  # Δu does not vanish on the walls
    reasons = {
        "u_t = laplace(u) + u_x": "odd order",
        "u_t = laplace(u) + x*u": "varies",
        "u_t = laplace(u) - u**2": "not linear",
        "u_t = laplace(u) + cos(t)": "in time",
    }
    for equation, reason in reasons.items():
        problem = rp.Problem(equation, domain, {"t=0": "u = sin(pi*x)*sin(pi*y)", "boundary": "u = 0"})
        assert any(reason in one for one in Trefftz().obstacles(problem)), equation
    moving = rp.Problem("u_t = laplace(u)", domain, {"t=0": "u = 0", "boundary": "u = t"})
    assert Trefftz().obstacles(moving)
    line = rp.SpaceTime(t=(0, 1), x=(0, 1))
    short = rp.Problem("u_t = u_xx", line, {"t=0": "u = sin(pi*x)", "boundary": "u = 0"})
    assert rp.solve(short, tol=1e-6).method.name == "lines"
    assert rp.solve(short, tol=1e-6, method="trefftz").method.name == "trefftz"


@pytest.mark.slow
def test_incompatible_values_are_not_called_converged():
    """u = 0.1 at the start meets u = 0 on a wall: coefficients decay like 1/k."""
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    with pytest.warns(UserWarning, match="no smooth solution"):
        problem = rp.Problem("u_t = u_xx", domain, {"t=0": "u = sin(pi*x) + 0.1*x", "boundary": "u = 0"})
    modal = modal_problem(problem)
    assert not isinstance(modal, str)
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-8, method="trefftz")
    assert not solution.converged


def test_modes_of_boxes_separate():
    box = BoxModes((AxisModes.between((0, 1), (np.inf, 0.0), 4), AxisModes.between((-1, 1), (0.0, 0.0), 5)))
    rng = np.random.default_rng(1)
    points, weights = rng.uniform(0, 1, (6, 2)), rng.normal(size=(20, 2))
    assert np.allclose(box.plain(points, (1, 2), weights), box.columns(points, (1, 2)) @ weights, rtol=1e-12)
