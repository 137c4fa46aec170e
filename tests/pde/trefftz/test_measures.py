"""Harmonic and caloric measures of the walls of boxes: series of eigenfunctions, published numbers, neighbours."""

import os
from math import inf

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.trefftz.axis_measures import AxisWalls
from rannpde.pde.trefftz.constant_walls import stationary_walls
from rannpde.pde.trefftz.measures import WallMeasures, wall_measures

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or draws(2, 6)
"""Random boxes; RANNPDE_FUZZ draws more of them."""
PLATE = 0.4240113870336883
"""The hundred-digit challenge (Trefethen, 2002): the centre of a plate with one side at 5 has 1 at this time."""
HARMONIC = 3.837587979251226e-7
"""The same: Brownian motion from the middle of a 10 × 1 box ends at the short sides with this probability."""


def random_axes(rng: np.random.Generator, d: int) -> tuple[AxisWalls, ...]:
    unit, found = float(10 ** rng.uniform(-3, 2)), []
    for axis in range(d):
        low, high = rng.choice([-3.0, 0.0, 20.0, 55.5], 2)
        kept = rng.integers(4 if axis else 3)  # the first axis is not insulated at both ends
        walls = (low if kept in (0, 1) else inf, high if kept in (0, 2) else inf)
        found.append(AxisWalls(float(rng.uniform(-2, 2)) * unit, float(rng.uniform(0.5, 3)) * unit,
                               float(rng.uniform(0.3, 2)) * unit**2, *map(float, walls)))  # fmt: skip
    return tuple(found)


def change(axes, killing, initial, points, first, second, count=24):
    """u(second) - u(first) by eigenfunctions, whose coefficients of u_t are known by Green's formula."""
    values, totals, slopes, rates = [], [], [], []
    for walls, x in zip(axes, points.T, strict=True):
        free = (np.isinf(walls.low), np.isinf(walls.high))
        w = (np.arange(count) + {(False, False): 1.0, (True, True): 0.0}.get(free, 0.5)) * np.pi / walls.length
        phase = 0.0 if free[0] else np.pi / 2
        size = np.sqrt(np.where(w > 0, walls.length / 2, walls.length))
        values.append(np.cos((x - walls.start)[:, None] * w - phase) / size)
        ends = [np.sin(w * end - phase) / size for end in (0.0, walls.length)]
        totals.append(np.where(w > 0, (ends[1] - ends[0]) / np.where(w > 0, w, 1), walls.length / size))
        given = [0.0 if np.isinf(value) else value for value in (walls.low, walls.high)]
        slopes.append(walls.diffusivity * (given[0] * -w * ends[0] - given[1] * -w * ends[1]))
        rates.append(walls.diffusivity * w**2)
    outer = lambda parts: np.prod(np.meshgrid(*parts, indexing="ij"), axis=0)  # noqa: E731
    decay = killing + np.sum(np.meshgrid(*rates, indexing="ij"), axis=0)
    pushed = sum(outer([slopes[k] if k == axis else totals[k] for k in range(len(axes))]) for axis in range(len(axes)))
    speed = pushed - decay * initial * outer(totals)
    safe = np.where(decay > 0, decay, 1.0)
    share = speed * (np.exp(-decay * first) - np.exp(-decay * second)) / safe
    found = np.tensordot(values[0], share, axes=(1, 0))
    for table in values[1:]:
        found = np.einsum("mk,mk...->m...", table, found)
    return found


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_boxes_change_as_their_eigenfunctions_say(seed):
    """One to three dimensions, units, diffusivities, insulated walls, killing, any initial value."""
    rng = np.random.default_rng(seed)
    axes = random_axes(rng, int(rng.integers(1, 4)))
    scale = min(walls.length**2 / walls.diffusivity for walls in axes)
    killing = float(rng.choice([0.0, 0.7])) / scale
    initial = float(rng.choice([0.0, 20.0, 7.25]))
    found = wall_measures(axes, killing, initial, start=0.5)
    points = np.stack([w.start + w.length * rng.uniform(0.01, 0.99, 20) for w in axes], axis=1)
    first, second = 0.1 * scale, 0.6 * scale
    late, early = (
        found.derivative(np.insert(points, 0, 0.5 + time, axis=1), (0,) * (1 + len(axes))) for time in (second, first)
    )
    wanted = change(axes, killing, initial, points, first, second)
    assert np.abs(late - early - wanted).max() < 1e-9
    start = found.derivative(np.insert(points, 0, 0.5 + 1e-9 * scale, axis=1), (0,) * (1 + len(axes)))
    assert np.abs(start - initial).max() < 1e-9 * (1 + abs(initial)) + 60 * 1e-9  # nothing has come there yet


@pytest.mark.parametrize("seed", range(COUNT))
def test_derivatives_are_those_of_the_values(seed):
    rng = np.random.default_rng(100 + seed)
    axes = random_axes(rng, int(rng.integers(1, 4)))
    scale = min(walls.length**2 / walls.diffusivity for walls in axes)
    found = wall_measures(axes, 0.4 / scale, 3.0, start=0.0)
    dim = 1 + len(axes)
    points = np.stack([w.start + w.length * rng.uniform(0.2, 0.8, 9) for w in axes], axis=1)
    points = np.insert(points, 0, scale * rng.uniform(0.1, 0.5, 9), axis=1)
    lengths = [scale, *(w.length for w in axes)]
    for axis in range(dim):
        for order in (1, 2):
            step, index = np.zeros(dim), [0] * dim
            step[axis], index[axis] = 1e-4 * lengths[axis], order - 1
            lower = [found.derivative(points + sign * step, tuple(index)) for sign in (1, -1)]
            index[axis] = order
            exact = found.derivative(points, tuple(index)) * lengths[axis] ** order
            assert np.allclose((lower[0] - lower[1]) / 2e-4 * lengths[axis] ** (order - 1), exact, atol=2e-5 * 60)


def test_small_probabilities_keep_their_digits():
    for length, value in ((10.0, HARMONIC), (40.0, 8 / np.pi * np.exp(-20 * np.pi))):
        box = wall_measures((AxisWalls(0, length, 1.0, 1, 1), AxisWalls(0, 1, 1.0, 0, 0)), 0.0, None)
        finer, _ = box.refined(np.array([[length / 2, 0.5]]), 1e-12)
        assert finer.derivative(np.array([[length / 2, 0.5]]), (0, 0))[0] == pytest.approx(value, rel=1e-12)
    assert isinstance(finer, WallMeasures)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("length", "width"), [(10, 1), (8.3, 1.1), (0.005, 0.0007)])
def test_harmonic_measure_of_a_long_box(length, width):
    box = rp.Box(x=(0, length), y=(0, width))
    sides = {"ends": rp.On(("x=0", f"x={length}"), "u = 1"), "rest": rp.On(("y=0", f"y={width}"), "u = 0")}
    problem = rp.Problem("laplace(u) = 0", box, sides, outputs={"p": f"u({length / 2!r}, {width / 2!r})"})
    solution = rp.solve(problem, tol={"p": 1e-9})
    odd = np.arange(1, 40, 2)
    exact = np.sum(4 / np.pi / odd * (-1.0) ** ((odd - 1) // 2) / np.cosh(odd * np.pi * length / (2 * width)))
    assert solution.converged
    assert float(solution.outputs["p"]) == pytest.approx(exact, rel=1e-12)
    assert abs(float(solution.outputs["p"]) - exact) <= solution.outputs["p"].bound < 1e-9 * exact


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("half", "hot", "speed"), [(1.0, 5.0, 1.0), (0.0123, 5.0, 1.0), (1.0, 37.5, 0.3)])
def test_the_time_at_which_a_hot_plate_is_warm(half, hot, speed):
    """Sizes, values and diffusivities scale the published number; what is asked for is a fifth of the side's value."""
    scale = half**2 / speed
    plate = rp.SpaceTime(t=(0, scale), x=(-half, half), y=(-half, half))
    sides = {
        "start": rp.On("t=0", "u = 0"),
        "hot": rp.On(f"x={half}", f"u = {hot}"),
        "cold": rp.On(f"boundary except x={half}", "u = 0"),
    }
    problem = rp.Problem(f"u_t = {speed}*laplace(u)", plate, sides, outputs={"warm": f"u(0, 0) = {hot / 5}"})
    solution = rp.solve(problem, tol={"warm": 1e-8})
    warm = solution.outputs["warm"]
    assert solution.converged
    assert abs(float(warm) - PLATE * scale) <= warm.bound < 1e-8 * scale
    assert solution(0.5 * scale, half, 0.3 * half) == hot
    assert solution(1e-6 * scale, 0.5 * half, 0.3 * half) == 0


@pytest.mark.filterwarnings("ignore")
def test_a_hot_disc_and_a_plate_that_begins_with_a_bump():
    disc = rp.SpaceTime(t=(0, 1), x=rp.Ball((0.3, 0), 1, name="rim"))
    sides = {"start": rp.On("t=0", "u = 0"), "rim": rp.On("rim", "u = 5")}
    warm = rp.solve(
        rp.Problem("u_t = laplace(u)", disc, sides, outputs={"warm": "u(0.3, 0) = 1"}), tol={"warm": 1e-6}
    ).outputs["warm"]
    assert abs(float(warm) - 0.1128762814977611) <= warm.bound < 1e-7  # Σ 2 exp(-α²t)/(α J₁(α)) = 4/5
    plate = rp.SpaceTime(t=(0, 0.4), x=(0, 1), y=(0, 1))
    sides = {"start": rp.On("t=0", "u = 1 + sin(pi*x)*sin(pi*y)"), "walls": rp.On("boundary", "u = 0")}
    solution = rp.solve(rp.Problem("u_t = laplace(u)", plate, sides), tol=1e-6)
    odd = np.arange(1, 12, 2)
    one = np.sum(4 / np.pi / odd * (-1.0) ** ((odd - 1) // 2) * np.exp(-((odd * np.pi) ** 2) * 0.1))
    assert solution(0.1, 0.5, 0.5) == pytest.approx(one**2 + np.exp(-0.2 * np.pi**2), rel=1e-9)


def test_what_is_no_such_box_is_left_to_other_features():
    box, disc = rp.Box(x=(0, 1), y=(0, 1)), rp.Ball((0, 0), 1)
    for equation, domain, condition in (
        ("laplace(u) = 0", box, "u = x"), ("laplace(u) = 1", box, "u = 1"), ("laplace(u) + u = 0", box, "u = 1"),
        ("laplace(u) + u_x = 0", box, "u = 1"), ("laplace(u) = 0", disc, "u = 1"),
        ("laplace(u) = 0", box, "dn(u) + u = 1"),
    ):  # fmt: skip
        assert stationary_walls(rp.Problem(equation, domain, {"boundary": condition})) is None
    assert stationary_walls(rp.Problem("u - 2*laplace(u) = 0", box, {"boundary": "u = 1"})) is not None


@pytest.mark.filterwarnings("ignore")
def test_files_keep_measures(tmp_path):
    box = rp.Box(x=(0, 2), y=(0, 1))
    sides = {"end": rp.On("x=0", "u = 1"), "rest": rp.On("boundary except x=0", "u = 0")}
    solution = rp.solve(rp.Problem("laplace(u) = 0", box, sides), tol=1e-6)
    solution.save(tmp_path / "box.rann")
    again = rp.load(tmp_path / "box.rann")
    points = box.sample(5, rng=0)
    assert (again(points) == solution(points)).all()
    assert again.derivative("u_x", points) == pytest.approx(solution.derivative("u_x", points))
