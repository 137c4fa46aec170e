"""Shapes, names, volumes and sides of the domains; the divergence theorem ties volumes, sides and normals together."""

import re
from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rannpde.domains import Ball, Box, FlatSide, Interval, SpaceTime, gauss_rule
from rannpde.errors import InputError

EPS = np.finfo(float).eps

DOMAINS = {
    "interval": Interval(-1, 2),
    "rectangle": Box(x=(0, 1), y=(-2, 1)),
    "box": Box([(0, 1), (1, 3), (-1, 1)]),
    "disc": Ball((1, -1), 0.5),
    "ball": Ball((0, 1, 2), 2),
    "ball4": Ball((0, 0, 1, 0), 1.5),
    "space-time": SpaceTime(t=(0.5, 2), x=(-1, 1)),
    "space-time 2": SpaceTime(t=(0, 2), x=(-1, 1), y=(0, 3)),
    "cylinder": SpaceTime(t=(0, 2), x=Ball((1, 0), 0.5)),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())


def all_sides(domain):
    """Every part of the boundary, also the first and the last time."""
    slices = [domain.initial, domain.final] if isinstance(domain, SpaceTime) else []
    return [*domain.sides.values(), *slices]


def test_names_follow_the_keywords():
    assert Box(x=(0, 1), y=(0, 1)).names == ("x", "y")
    assert Box([(0, 1)] * 3).names == ("x1", "x2", "x3")
    assert Box(x=[(0, 1)] * 2, y=(0, 1)).names == ("x1", "x2", "y")
    assert Interval(0, 1, name="r").names == ("r",)
    assert SpaceTime(t=(0, 1), x=(-1, 1)).names == ("t", "x")
    assert SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 5).names == ("t", "x1", "x2", "x3", "x4", "x5")
    assert SpaceTime(t=(0, 1), x=Ball((0, 0), 1, names=("x", "y"))).names == ("t", "x", "y")


def test_volumes_and_measures_in_closed_form():
    assert Interval(-1, 2).volume == 3
    assert Box(x=(0, 2), y=(1, 4)).volume == 6
    assert Ball((1, 2), 3).volume == pytest.approx(9 * pi, rel=4 * EPS, abs=0)
    assert Ball((0, 0, 0), 2).volume == pytest.approx(32 * pi / 3, rel=4 * EPS, abs=0)
    assert Ball([0] * 5, 1).volume == pytest.approx(8 * pi**2 / 15, rel=4 * EPS, abs=0)
    assert Ball([0] * 5, 1).side("boundary").measure == pytest.approx(8 * pi**2 / 3, rel=4 * EPS, abs=0)
    assert SpaceTime(t=(1, 3), x=Ball((0, 0), 1)).volume == pytest.approx(2 * pi, rel=4 * EPS, abs=0)
    assert SpaceTime(t=(1, 3), x=Ball((0, 0), 1)).side("boundary").measure == pytest.approx(4 * pi, rel=4 * EPS, abs=0)
    assert SpaceTime(t=(1, 3), x=[(0, 2), (0, 5)]).side("x1=0").measure == 10
    assert Interval(0, 7).side("x=7").measure == 1  # a point


@every_domain
def test_bounds_enclose_the_points_tightly(domain):
    points = domain.sample(4096, rng=0, method="sobol")
    lower, upper = domain.bounds.T
    assert domain.bounds.shape == (domain.dim, 2) == (len(domain.names), 2)
    assert (points >= lower).all()
    assert (points <= upper).all()
    # the least likely case, the 4-D ball: a cap of that height holds 4.0 % of the volume, 164 points are expected
    assert (points.min(axis=0) < lower + 0.15 * (upper - lower)).all()
    assert (points.max(axis=0) > upper - 0.15 * (upper - lower)).all()


@every_domain
def test_contains_tells_inside_from_outside(domain):
    centre, widths = domain.bounds.mean(axis=1), np.diff(domain.bounds, axis=1)[:, 0]
    shifts = np.concatenate([np.diag(widths), -np.diag(widths)])
    assert domain.contains(centre[None, :]).all()
    assert not domain.contains(centre + 0.51 * shifts).any()
    assert domain.contains(centre + 0.49 * shifts).all()


def test_a_corner_of_the_bounds_is_outside_a_ball():
    ball = Ball((1, 2), 0.5)
    assert not ball.contains(ball.bounds.T).any()


@every_domain
def test_sides_lie_on_the_boundary(domain):
    for side in all_sides(domain):
        points = side.sample(64, rng=1)
        normals = side.normals(points)
        assert points.shape == (64, domain.dim)
        assert side.contains(points).all()
        assert domain.contains(points).all()
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=4 * EPS)
        assert not domain.contains(points + 1e-6 * normals).any()
        assert not side.contains(points - 1e-6 * normals).any()
        assert domain.contains(points - 1e-6 * normals).all()


@every_domain
def test_flat_sides_have_exactly_their_value(domain):
    for side in all_sides(domain):
        if isinstance(side, FlatSide):
            assert (side.sample(32, rng=0)[:, side.axis] == side.value).all()
            assert side.face.dim == domain.dim - 1
            assert side.face.volume == side.measure
            np.testing.assert_array_equal(
                np.delete(side.embed(side.face.sample(8, rng=2)), side.axis, axis=1), side.face.sample(8, rng=2)
            )


@every_domain
def test_divergence_theorem(domain):
    """∮ F·n = ∫ div F for the polynomial field F_i = z_i² + z_1 z_i, integrated exactly by 6-point rules."""

    def field(points):
        return points**2 + points[:, :1] * points

    def divergence(points):
        # ∂_i(z_i² + z_1 z_i) = 2 z_i + z_1, and one more z_1 for i = 1
        return 2 * points.sum(axis=1) + (domain.dim + 1) * points[:, 0]

    flux, scale = 0.0, 0.0
    for side in all_sides(domain):
        points, weights = gauss_rule(side, 6)
        terms = (field(points) * side.normals(points)).sum(axis=1)
        flux, scale = flux + weights @ terms, scale + weights @ np.abs(terms)
    points, weights = gauss_rule(domain, 6)
    assert abs(flux - weights @ divergence(points)) < 64 * EPS * scale


def test_side_names_use_six_digits_or_what_tells_the_ends_apart():
    assert list(Box(x=(-1, 1), y=(0, 0.5)).sides) == ["x=-1", "x=1", "y=0", "y=0.5"]
    assert list(SpaceTime(t=(0, 1), x=[(0, 1)] * 2).sides) == ["x1=0", "x1=1", "x2=0", "x2=1"]
    assert list(Interval(1 / 3, 1).sides) == ["x=0.333333", "x=1"]
    assert list(Interval(-0.0, 1).sides) == ["x=0", "x=1"]
    assert list(Interval(1.0, 1.0000001).sides) == ["x=1.0", "x=1.0000001"]


def test_sides_are_found_however_they_are_written():
    domain = SpaceTime(t=(0, 1), x=(-1, 1 / 3))
    assert domain.side("x = -1.0").name == domain.side(" x=-1e0").name == "x=-1"
    assert domain.side(f"x={1 / 3}").value == 1 / 3
    assert domain.side("t = 0").name == domain.initial.name == "t=0"
    assert domain.side("t=1.0").outward == domain.final.outward == 1
    assert "t=0" not in domain.sides


@pytest.mark.parametrize("text", ["x=2", "y=0", "left", "x=one", "x=", ""])
def test_unknown_sides_are_answered_with_the_known_ones(text):
    with pytest.raises(InputError, match=re.escape("known: t=0, t=1, x=-1, x=1")):
        SpaceTime(t=(0, 1), x=(-1, 1)).side(text)


def test_restrict_changes_named_coordinates_and_groups():
    domain = SpaceTime(t=(0, 1), x=[(0, 1)] * 3)
    assert domain.restrict(x=[(0.2, 0.8)] * 3).bounds.tolist() == [[0, 1], [0.2, 0.8], [0.2, 0.8], [0.2, 0.8]]
    assert domain.restrict(x=(0.2, 0.8)) == domain.restrict(x=[(0.2, 0.8)] * 3)
    assert domain.restrict(t=(0.5, 1), x2=(0, 0.1)).bounds.tolist() == [[0.5, 1], [0, 1], [0, 0.1], [0, 1]]
    assert SpaceTime(t=(0, 1), x=(0, 1)).restrict(x=[(0.2, 0.8)]).bounds[1].tolist() == [0.2, 0.8]
    assert SpaceTime(t=(0, 1), x=Ball((0, 0), 1)).restrict(t=(0, 0.5)).time == (0, 0.5)
    assert domain.restrict() == domain


def test_domains_print_as_the_call_that_builds_them():
    assert repr(Box(x=(0, 1), y=(0, 2))) == "Box(x=(0.0, 1.0), y=(0.0, 2.0))"
    ball = Ball((0, 1), 2)
    assert repr(ball) == "Ball(centre=(0.0, 1.0), radius=2.0, names=('x', 'y'))"
    assert repr(SpaceTime(t=(0, 1), x=[(0, 1)] * 2)) == "SpaceTime(t=(0.0, 1.0), x1=(0.0, 1.0), x2=(0.0, 1.0))"
    assert repr(SpaceTime(t=(0, 1), x=ball)) == f"SpaceTime(t=(0.0, 1.0), x={ball!r})"


@every_domain
def test_domains_are_values(domain):
    assert domain in set(DOMAINS.values())
    assert [other for other in DOMAINS.values() if other == domain] == [domain]
    with pytest.raises(AttributeError):
        domain.names = ("a",)


finite = st.floats(-1e6, 1e6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.booleans())
def test_samples_of_any_box_lie_in_it(ends, seed, sobol):
    intervals = [(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]] or [(0, 1)]
    box = Box(intervals)
    assert box.contains(box.sample(17, rng=seed, method="sobol" if sobol else "uniform")).all()
    for side in box.sides.values():
        assert side.contains(side.sample(5, rng=seed)).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(finite, min_size=2, max_size=6), st.floats(1e-3, 1e6), st.integers(0, 2**32 - 1), st.booleans())
def test_samples_of_any_ball_lie_in_it(centre, radius, seed, sobol):
    ball = Ball(centre, radius)
    assert ball.contains(ball.sample(17, rng=seed, method="sobol" if sobol else "uniform")).all()
    side = ball.side("boundary")
    assert side.contains(side.sample(17, rng=seed)).all()


BAD = {
    "reversed": (lambda: Interval(1, 0), "lower < upper"),
    "empty": (lambda: Box(x=(1, 1)), "lower < upper"),
    "nan": (lambda: Box(x=(0, float("nan"))), "NaN"),
    "infinite": (lambda: Interval(0, float("inf")), "infinite"),
    "too long": (lambda: Interval(-1e308, 1e308), "finite length"),
    "three ends": (lambda: Box(x=(0, 1, 2)), "interval"),
    "text": (lambda: Box(x="0,1"), "array of numbers"),
    "no coordinates": (lambda: Box(), "at least one"),
    "both ways": (lambda: Box([(0, 1)], y=(0, 1)), "left out"),
    "same names": (lambda: Box(x=[(0, 1)], x1=(0, 1)), "different names"),
    "odd name": (lambda: Interval(0, 1, name="x-y"), "letters and digits"),
    "zero radius": (lambda: Ball((0, 0), 0), "> 0"),
    "nan radius": (lambda: Ball((0, 0), float("nan")), "NaN"),
    "nan centre": (lambda: Ball((0, float("nan")), 1), "NaN"),
    "ball in 1-D": (lambda: Ball((0,), 1), "Interval"),
    "ball's names": (lambda: Ball((0, 0), 1, names=("x",)), "2 names"),
    "no space": (lambda: SpaceTime(t=(0, 1)), "space"),
    "space of no dimension": (lambda: SpaceTime(t=(0, 1), x=[]), "one dimension"),
    "two spaces": (lambda: SpaceTime(t=(0, 1), x=Ball((0, 0), 1), y=(0, 1)), "one Box or Ball"),
    "time in space": (lambda: SpaceTime(t=(0, 1), x=Box(t=(0, 1))), "different names"),
    "space-time in space": (lambda: SpaceTime(t=(0, 1), x=SpaceTime(t=(0, 1), x=(0, 1))), "a Box, a Ball"),
    "reversed time": (lambda: SpaceTime(t=(1, 0), x=(0, 1)), "lower < upper"),
    "restrict unknown": (lambda: Box(x=(0, 1)).restrict(z=(0, 1)), "known: x"),
    "restrict outside": (lambda: Box(x=(0, 1)).restrict(x=(0, 2)), "inside"),
    "restrict a group wrongly": (lambda: Box([(0, 1)] * 3).restrict(x=[(0, 1)] * 2), "3 intervals"),
    "restrict a ball": (lambda: SpaceTime(t=(0, 1), x=Ball((0, 0), 1)).restrict(x=(0, 0.1)), "smaller Ball"),
    "count 0": (lambda: Interval(0, 1).sample(0), "count is 0"),
    "count of a side": (lambda: Interval(0, 1).side("x=0").sample(-1), "count is -1"),
    "method": (lambda: Interval(0, 1).sample(3, method="sobl"), "did you mean 'sobol'"),
    "points' shape": (lambda: Box(x=(0, 1), y=(0, 1)).contains(np.zeros((3, 3))), r"\(M, 2\)"),
    "points' shape on a side": (lambda: Ball((0, 0), 1).side("boundary").contains(np.zeros(3)), r"\(M, 2\)"),
    "nan points": (lambda: Interval(0, 1).contains([0.0, np.nan]), "row 1"),
    "normal at the centre": (lambda: Ball((0, 0), 1).side("boundary").normals([[0, 0]]), "boundary"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_the_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_space_and_time_are_taken_in_any_order():
    disc, wanted = Ball((0, 0), 1, names=("x", "y")), ("t", "x", "y")
    for domain in (
        SpaceTime(disc, t=(0, 2)),
        SpaceTime(t=(0, 2), x=disc),
        SpaceTime((0, 2), disc),
        SpaceTime(disc, (0, 2)),
    ):
        assert domain.names == wanted
        assert domain == SpaceTime((0, 2), x=disc)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpaceTime(x=(0, 1)),
        lambda: SpaceTime(),
        lambda: SpaceTime((0, 1)),
        lambda: SpaceTime((0, 1), (0, 1)),
        lambda: SpaceTime(Ball((0, 0), 1)),
        lambda: SpaceTime(Ball((0, 0), 1), t=(0, 1), x=(0, 1)),
        lambda: SpaceTime(Ball((0, 0), 1), Ball((0, 0), 1), t=(0, 1)),
    ],
)
def test_parts_that_are_missing_or_given_twice_are_named(make):
    with pytest.raises(InputError, match=r"^(t|x|space) is .*SpaceTime\("):
        make()
