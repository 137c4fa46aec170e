"""The Barenblatt profile: the equation it solves, its mass, its edge, its derivatives."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from rannpde.errors import InputError
from rannpde.pde.zoo.barenblatt import Barenblatt

EPS = np.finfo(float).eps
CASES = [(m, d) for m in (1.3, 2.0, 3.0, 4.5) for d in (1, 2, 5)]


def inner_points(profile: Barenblatt, rng: np.random.Generator, count: int = 400) -> np.ndarray:
    """Points with distance at most 0.9 of the radius from the centre, where nothing is singular."""
    d = profile.space_dim
    time = rng.uniform(0.1, 1.1, count)
    direction = rng.standard_normal((count, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    distance = 0.9 * profile.radius(time) * rng.random(count)
    return np.column_stack([time, np.array(profile.centre) + distance[:, None] * direction])


def unit(d: int, *axes: int) -> tuple[int, ...]:
    index = [0] * (1 + d)
    for axis in axes:
        index[axis] += 1
    return tuple(index)


@pytest.mark.parametrize(("m", "d"), CASES)
def test_it_solves_the_porous_medium_equation(m: float, d: int) -> None:
    profile = Barenblatt.with_radius(0.3, time=0.1, space_dim=d, exponent=m)
    points = inner_points(profile, np.random.default_rng(0))
    u, u_t = profile(points), profile.derivative(points, unit(d, 0))
    gradient = [profile.derivative(points, unit(d, i)) for i in range(1, d + 1)]
    laplacian = sum(profile.derivative(points, unit(d, i, i)) for i in range(1, d + 1))
    terms = m * u ** (m - 1) * laplacian, m * (m - 1) * u ** (m - 2) * sum(g**2 for g in gradient)
    size = np.abs(u_t) + np.abs(terms[0]) + np.abs(terms[1])
    # near the edge q = b - … keeps 1 - 0.9² of its digits' size: a factor 6 on each of some ten roundings
    assert np.abs(u_t - sum(terms)).max() < 200 * EPS * size.max()


@pytest.mark.parametrize(("m", "d"), CASES)
def test_derivatives_are_those_of_finite_differences(m: float, d: int) -> None:
    profile = Barenblatt.with_radius(0.3, time=0.1, space_dim=d, exponent=m, centre=np.linspace(0.3, 0.6, d))
    points = inner_points(profile, np.random.default_rng(1), 50)
    step = 1e-5

    def difference(index: tuple[int, ...], axis: int) -> np.ndarray:
        shift = step * np.array(unit(d, axis))
        return (profile.derivative(points + shift, index) - profile.derivative(points - shift, index)) / (2 * step)

    for axis in range(1 + d):
        exact = profile.derivative(points, unit(d, axis))
        # truncation: third derivatives grow at most like the fifth power of 1/(distance to the edge)
        assert np.allclose(difference(unit(d), axis), exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())
    for i, j in combinations_with_replacement(range(1 + d), 2):
        exact = profile.derivative(points, unit(d, i, j))
        assert np.allclose(difference(unit(d, i), j), exact, rtol=1e-4, atol=1e-5 * np.abs(exact).max() + 1e-8)


@pytest.mark.parametrize("m", [1.5, 2.0, 3.5])
def test_its_mass_is_the_closed_form_at_every_time(m: float) -> None:
    profile = Barenblatt((0.2,), 0.7, m)
    for time in (0.05, 1.0, 7.0):
        radius = profile.radius(time)

        def along(angle: float, time: float = time, radius: float = radius) -> float:
            x = 0.2 + radius * np.sin(angle)  # sin removes the root at the edge, so that quad sees a smooth function
            return float(profile(np.array([[time, x]]))[0] * radius * np.cos(angle))

        assert quad(along, -np.pi / 2, np.pi / 2, epsabs=1e-13)[0] == pytest.approx(profile.mass, rel=1e-9)


def test_mass_in_several_dimensions_by_shells() -> None:
    profile = Barenblatt.with_radius(0.3, time=0.1, space_dim=3)

    def shell(r: float) -> float:
        return 4 * np.pi * r**2 * float(profile(np.array([[0.1, 0.5 + r, 0.5, 0.5]]))[0])

    assert quad(shell, 0, 0.3)[0] == pytest.approx(profile.mass, rel=1e-10)


@settings(deadline=None)
@given(
    radius=st.floats(0.01, 5.0),
    time=st.floats(0.01, 10.0),
    d=st.integers(1, 6),
    m=st.floats(1.05, 6.0),
    later=st.floats(1.0, 50.0),
)
def test_support_has_the_wanted_radius_and_only_grows(
    radius: float, time: float, d: int, m: float, later: float
) -> None:
    profile = Barenblatt.with_radius(radius, time=time, space_dim=d, exponent=m)
    assert profile.radius(time) == pytest.approx(radius, rel=1e-12)
    assert profile.radius(later * time) >= profile.radius(time)
    edge = np.array(profile.centre)
    points = np.array([[time, edge[0] + factor * radius, *edge[1:]] for factor in (0.99, 1.01)])
    assert profile.inside(points).tolist() == [True, False]
    assert profile(points)[1] == 0.0


def test_everything_vanishes_outside() -> None:
    profile = Barenblatt.with_radius(0.3, time=0.1, space_dim=2)
    outside = np.array([[0.1, 0.95, 0.5], [0.2, 0.0, 0.0]])
    for index in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1), (2, 0, 0)):
        assert (profile.derivative(outside, index) == 0).all()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"centre": (), "mass_parameter": 1.0}, "centre"),
        ({"centre": (np.nan,), "mass_parameter": 1.0}, "centre"),
        ({"centre": (0.5,), "mass_parameter": 0.0}, "mass_parameter"),
        ({"centre": (0.5,), "mass_parameter": 1.0, "exponent": 1.0}, "exponent"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict, name: str) -> None:
    with pytest.raises(InputError, match=name):
        Barenblatt(**arguments)


def test_wrong_points_and_orders_are_refused() -> None:
    profile = Barenblatt((0.5,), 1.0)
    with pytest.raises(InputError, match="time of the first bad point is 0"):
        profile([[1.0, 0.5], [0.0, 0.5]])
    with pytest.raises(InputError, match=r"shape"):
        profile(np.zeros((3, 3)))
    with pytest.raises(InputError, match="at most 2"):
        profile.derivative([[1.0, 0.5]], (1, 2))
