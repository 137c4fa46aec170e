"""Shapes cut out of shapes: measures and moments in closed form, names, corners, samples, set identities, bad input."""

from math import asin, cos, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import inked
from known_shapes import CUBE, FOUR, PLANE, PLATE, SPACE, SQUARE, plane, space
from rannpde.domains import Ball, Box, Interval, SpaceTime, gauss_rule, integrate
from rannpde.domains.boundary.solids import AllOrNothing, Branch, Leaf, Tree, tree_level, without_constants
from rannpde.domains.operations.combined import nearby
from rannpde.domains.operations.touching import refuse_touching_solids
from rannpde.domains.shapes.formed import Curve, Implicit
from rannpde.domains.shapes.polygon import Polygon
from rannpde.domains.shapes.quadrics import Cylinder, Ellipse, HalfSpace
from rannpde.errors import InputError

EPS = np.finfo(float).eps
ROUND = 1e-12
"""Relative error of measures: hundreds of terms, each with a few roundings."""


@plane
def test_areas_and_lengths_in_closed_form(domain, area, length):
    assert domain.measure == pytest.approx(area, rel=ROUND, abs=0)
    assert sum(side.measure for side in domain.sides.values()) == pytest.approx(length, rel=ROUND, abs=0)


@space
def test_volumes_and_areas_in_closed_form(domain, volume, area):
    assert domain.measure == pytest.approx(volume, rel=1e-9, abs=0)
    assert sum(side.measure for side in domain.sides.values()) == pytest.approx(area, rel=1e-8, abs=0)


@plane
def test_divergence_theorem_in_the_plane(domain, area, length):
    """∮ F·n = ∫ div F for F = (x² + xy, sin y): rules inside and on the boundary, normals and orientation agree."""
    flux = 0.0
    for side in domain.sides.values():
        points, weights = gauss_rule(side, 24, panels=4)
        x, y = points.T
        flux += weights @ (np.stack([x**2 + x * y, np.sin(y)], axis=1) * side.normals(points)).sum(axis=1)
    inside = float(integrate(lambda p: 2 * p[:, 0] + p[:, 1] + np.cos(p[:, 1]), domain, tolerance=1e-11))
    assert flux == pytest.approx(inside, rel=0, abs=1e-10 * max(1.0, area * 10))


@plane
def test_points_inside_and_on_the_sides(domain, area, length):
    inner = domain.sample(300, rng=0)
    assert domain.contains(inner).all()
    assert (domain.level(inner) <= 0).all()
    for side in domain.sides.values():
        points = side.sample(64, rng=1, method="sobol")
        normals = side.normals(points)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=8 * EPS)
        assert side.contains(points).all()
        assert domain.contains(points).all()
        # corners come closer than the step with odds of about 1e-5 times the number of points
        assert not domain.contains(points + 1e-6 * normals).any()
        assert domain.contains(points - 1e-6 * normals).all()


@plane
def test_bounds_are_tight(domain, area, length):
    points = np.concatenate([side.sample(4000, rng=0, method="sobol") for side in domain.sides.values()])
    lower, upper = domain.bounds.T
    widths = upper - lower
    assert (points >= lower - 1e-12).all()
    assert (points <= upper + 1e-12).all()
    # a smooth extremum of curvature κ is met to κ h²/2, a corner to h, h about length/4000
    assert (points.min(axis=0) <= lower + 0.01 * widths).all()
    assert (points.max(axis=0) >= upper - 0.01 * widths).all()


@space
def test_points_in_space(domain, volume, area):
    inner = domain.sample(200, rng=0, method="sobol")
    assert domain.contains(inner).all()
    for side in domain.sides.values():
        points = side.sample(100, rng=1)
        normals = side.normals(points)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=16 * EPS)
        assert side.contains(points).all()
        assert not domain.contains(points + 1e-5 * normals).any()
        assert domain.contains(points - 1e-5 * normals).all()


def test_sides_are_sampled_uniformly():
    """Means of x, x² over an ellipse against the rule: five standard errors have odds 6e-7 for each."""
    side = Ellipse((0, 0), (3, 1)).side("ellipse1")
    points, weights = gauss_rule(side, 32, panels=4)
    count = 20_000
    drawn = side.sample(count, rng=0)[:, 0]
    for power in (1, 2):
        mean = weights @ points[:, 0] ** power / side.measure
        deviation = sqrt(weights @ (points[:, 0] ** power - mean) ** 2 / side.measure)
        assert abs((drawn**power).mean() - mean) < 5 * deviation / sqrt(count)


@pytest.mark.parametrize("name", ["cube without a corner", "torus"])
def test_surfaces_are_sampled_uniformly(name):
    """The same for z, z² on a bitten face and on a torus, whose pieces have uneven densities."""
    side = list(SPACE[name][0].sides.values())[-1]
    points, weights = gauss_rule(side, 5)
    count, z = 20_000, points[:, 2]
    drawn = side.sample(count, rng=2)[:, 2]
    for power in (1, 2):
        mean = weights @ z**power / weights.sum()
        deviation = sqrt(weights @ (z**power - mean) ** 2 / weights.sum())
        assert abs((drawn**power).mean() - mean) < 5 * deviation / sqrt(count)


def test_domains_are_sampled_uniformly():
    """The share of a plate's points near its hole: 0.25π - 0.04π of 6 - 0.04π; five standard deviations."""
    count, share = 20_000, (0.25 - 0.04) * pi / (6 - 0.04 * pi)
    near = (np.linalg.norm(PLATE.sample(count, rng=0) - (3, 1), axis=1) < 0.5).mean()
    assert abs(near - share) < 5 * sqrt(share * (1 - share) / count)


def test_moments_of_cut_domains():
    disc = integrate(lambda p: (p**2).sum(axis=1), Ball((0, 0), 1) - Ball((0, 0), 0.5), tolerance=1e-12)
    assert float(disc) == pytest.approx(pi / 2 * (1 - 1 / 16), rel=1e-12, abs=0)
    ell = integrate(lambda p: p[:, 0] ** 2, Ellipse((0, 0), (3, 1), 0.3), tolerance=1e-12)
    assert float(ell) == pytest.approx(0.75 * pi * (9 * cos(0.3) ** 2 + sin(0.3) ** 2), rel=1e-12, abs=0)
    corner = integrate(lambda p: p[:, 0], PLANE["L"][0])
    assert float(corner) == pytest.approx(0.5 - 0.25 * 0.75, rel=1e-13, abs=0)
    holes = integrate(lambda p: p[:, 0] ** 2, FOUR, tolerance=1e-12)
    own = sum(pi * 0.01 * (c**2 + 0.01 / 4) for c in (0.3, 0.7, 0.3, 0.7))
    assert float(holes) == pytest.approx(1 / 3 - own, rel=1e-11, abs=0)


def test_moments_in_space():
    ball = integrate(lambda p: p[:, 2] ** 2, SPACE["cube without a ball"][0])
    own = 0.036 * pi * 0.25 + 4 * pi / 15 * 0.3**5
    assert float(ball) == pytest.approx(1 / 3 - own, rel=1e-9, abs=0)
    bored = integrate(lambda p: p[:, 2], SPACE["bored cube"][0])
    assert float(bored) == pytest.approx(0.5 * (1 - 0.04 * pi), rel=1e-9, abs=0)


def test_names_of_sides():
    assert list(PLATE.sides) == ["x=0", "x=4", "y=0", "y=2", "x=2", "y=1", "hole"]
    assert list(FOUR.sides) == ["x=0", "x=1", "y=0", "y=1", "ball1", "ball2", "ball3", "ball4"]
    assert list((SQUARE - Box(x=(0.2, 0.4), y=(0.2, 0.4), name="slot")).sides)[4:] == [
        "slot.x=0.2", "slot.x=0.4", "slot.y=0.2", "slot.y=0.4",
    ]  # fmt: skip
    assert list((SQUARE - Ball((0.5, 0.5), 0.1, name="ball1") - Ball((0.2, 0.2), 0.1)).sides)[4:] == ["ball1", "ball2"]
    assert list(Polygon([(0, 0), (1, 0), (1, 1)], name="wing").sides) == ["wing.edge1", "wing.edge2", "wing.edge3"]
    assert list(Cylinder((0, 0, 0), (0, 0, 1), 1).sides) == ["wall", "start", "end"]
    assert list(Polygon([(0, 0), (1, 0), (1, 1)], edges=("low", "rest", "rest")).sides) == ["low", "rest"]
    assert Ball((0, 0), 1, name="rim").side("rim").name == "rim"
    both = SQUARE - Box(x=(0.2, 0.4), y=(0.2, 0.4)) - Box(x=(0.2, 0.4), y=(0.6, 0.8))  # two faces in x = 0.2
    assert both.side("x=0.2").measure == pytest.approx(0.4, rel=ROUND)
    assert PLATE.side("x = 2.0").name == "x=2"


def test_what_was_cut_off_a_side_is_not_on_it():
    points = np.array([[1.0, 2.0], [3.0, 2.0], [0.0, 1.5], [0.0, 0.5]])
    assert PLATE.side("y=2").contains(points).tolist() == [False, True, False, False]
    assert PLATE.side("x=0").contains(points).tolist() == [False, False, False, True]


def test_corners_are_re_entrant_ones():
    (corner,) = PLATE.corners
    assert corner.point == pytest.approx((2, 1))
    assert corner.angle == pytest.approx(1.5 * pi, rel=ROUND)
    assert corner.sides == ("y=1", "x=2")
    assert corner.direction == pytest.approx((-1, 0))
    assert PLANE["crescent"][0].corners == ()
    pair = PLANE["two discs"][0].corners
    assert [c.angle for c in pair] == pytest.approx([4 * pi / 3] * 2, rel=1e-10)
    assert sorted(c.point[1] for c in pair) == pytest.approx([-sqrt(3) / 2, sqrt(3) / 2])
    hole = PLANE["polygon with a hole"][0].corners
    assert sorted(c.angle for c in hole) == pytest.approx([1.5 * pi, 1.75 * pi, 1.75 * pi])
    assert SpaceTime(t=(0, 1), x=PLATE).corners == PLATE.corners


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0.0, 1.0)] * 2, st.floats(0.05, 0.5)), min_size=3, max_size=3), st.booleans())
def test_set_identities_hold_at_every_point(discs, boxes):
    """A - (B | C) = (A - B) - C, A & B = A - (A - B), |A ∪ B| = |A| + |B| - |A ∩ B|, point by point."""
    shapes = [Box(x=(x - r, x + r), y=(y - r, y + r)) if boxes else Ball((x, y), r, ("x", "y")) for x, y, r in discs]
    a, b, c = shapes
    points = np.random.default_rng(0).uniform(-0.6, 1.6, (400, 2))

    def inside(domain):
        return domain.level(points) < 0

    np.testing.assert_array_equal(inside(a - (b | c)), inside(a - b - c))
    np.testing.assert_array_equal(inside(a | b), inside(a) | inside(b))
    np.testing.assert_array_equal(inside(a & b), inside(a) & inside(b))
    np.testing.assert_array_equal(inside(a - b), inside(a) & ~(b.level(points) <= 0))


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 0.9), st.floats(0.3, 0.9), st.floats(-pi, pi))
def test_two_discs_at_any_distance(radius, distance, angle):
    """The area of a disc without another one, by the formula of the circular lens."""
    assume(distance + radius >= 1 + 1e-3)  # they cross: nearer they touch, or one holds the other
    domain = Ball((0, 0), 1) - Ball((distance * cos(angle), distance * sin(angle)), radius)
    d1 = (distance**2 + 1 - radius**2) / (2 * distance)
    d2 = distance - d1
    lens = _cap(1.0, d1) + _cap(radius, d2)
    assert domain.measure == pytest.approx(pi - lens, rel=1e-10)


def _cap(radius, height):
    """The part of a disc beyond a chord at that height."""
    return radius**2 * (pi / 2 - asin(height / radius)) - height * sqrt(radius**2 - height**2)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_domain_of_any_size(scale):
    domain = PLATE.scaled(scale)
    assert domain.measure == pytest.approx(scale**2 * PLATE.measure, rel=1e-11)
    assert len(domain.corners) == 1


BOXES = [(0.02, 0), (1e-3, 1), (1e-4, 2)]


@pytest.mark.parametrize(("size", "seed"), BOXES)
@pytest.mark.parametrize("name", ["plate", "ellipse", "implicit ellipse", "curve", "turned square"])
def test_within_finds_the_side_in_small_boxes(name, size, seed):
    """A box around a point of a side has as many points as asked for, spread over the whole stretch inside."""
    for side in PLANE[name][0].sides.values():
        (point,) = side.sample(1, rng=seed)
        bounds = np.stack([point - size, point + size], axis=1)
        found = side.within(bounds, 40, rng=seed)
        assert found.shape == (40, 2)
        assert side.contains(found).all()
        assert ((found >= bounds[:, 0]) & (found <= bounds[:, 1])).all()
        # it runs from the point to a wall of the box, unless a corner ends it: the ends of 40 strata are close to both
        assert np.linalg.norm(found.max(axis=0) - found.min(axis=0)) > 0.5 * size
        far = bounds + 100.0
        assert side.within(far, 5, rng=0).shape == (0, 2)


def test_within_is_stratified():
    side = Ball((0, 0), 1).side("boundary")
    found = side.within([(-2, 2), (0, 2)], 100, rng=0)
    angles = np.sort(np.arctan2(found[:, 1], found[:, 0]))
    assert np.array_equal(np.floor(angles / pi * 100), np.arange(100))


@pytest.mark.parametrize("size", [0.2, 1e-3])
def test_within_in_space(size):
    for name in ("cube without a corner", "torus", "bored cube"):
        side = list(SPACE[name][0].sides.values())[-1]
        (point,) = side.sample(1, rng=3)
        bounds = np.stack([point - size, point + size], axis=1)
        found = side.within(bounds, 30, rng=0)
        assert found.shape == (30, 3)
        assert side.contains(found).all()
        assert ((found >= bounds[:, 0]) & (found <= bounds[:, 1])).all()
        assert side.within(bounds + 50.0, 5, rng=0).shape == (0, 3)
    face = CUBE.side("x=1")
    assert (face.within([(0.9, 1), (0, 0.1), (0, 0.1)], 20, rng=0) <= (1, 0.1, 0.1)).all()
    assert face.within([(0.1, 0.9), (0, 1), (0, 1)], 20).shape == (0, 3)


def test_domains_within_boxes():
    found = PLATE.within([(2.9, 3.5), (0.9, 1.1)], 50, rng=0)
    assert found.shape == (50, 2)
    assert PLATE.contains(found).all()
    assert PLATE.within([(2.95, 3.05), (0.95, 1.05)], 50, rng=0).shape == (0, 2)  # inside the hole
    assert Interval(0, 1).within([(0.5, 3)], 4, rng=0).shape == (4, 1)


def test_levels_are_distances_near_the_boundary():
    for domain, *_ in [*PLANE.values(), *SPACE.values()]:
        for side in domain.sides.values():
            points = side.sample(20, rng=4)
            normals = side.normals(points)
            step = 1e-5
            out, into = domain.level(points + step * normals), domain.level(points - step * normals)
            # relative to the curvature times the step, and to corners closer than it
            np.testing.assert_allclose(out, step, rtol=1e-3)
            np.testing.assert_allclose(into, -step, rtol=1e-3)


def test_thin_solids_are_not_called_empty():
    """A plate that no point of a coarse grid is in is measured exactly; what has no point at all is refused."""
    plate = CUBE - Box(x=(-1, 2), y=(-1, 2), z=(0.01, 2))
    assert len(plate.sides) == 6
    assert plate.measure == pytest.approx(0.01, rel=1e-9)
    with pytest.raises(InputError, match="is empty"):
        (CUBE - Ball((0.5, 0.5, 0.5), 2)).sides


def test_a_set_without_its_constant_parts_is_the_same_set():
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 1.5, (200, 2))
    for _ in range(100):
        tree = random_tree(rng, 3)
        less = without_constants(tree)
        np.testing.assert_array_equal(tree_level(less, points) < 0, tree_level(tree, points) < 0)
        assert tidy(less)


def tidy(tree: Tree) -> bool:
    """Whether only that from which others are taken is everything, or the whole tree is one leaf."""
    if isinstance(tree, Leaf):
        return True
    others = tree.parts[1 if tree.operation == "difference" else 0 :]
    constant = any(isinstance(part, Leaf) and isinstance(part.solid, AllOrNothing) for part in others)
    return not constant and all(map(tidy, tree.parts))


def random_tree(rng: np.random.Generator, depth: int) -> Tree:
    if depth == 0 or rng.uniform() < 0.2:
        solid = (SQUARE, Ball((0.5, 0.5), 0.5), AllOrNothing(True), AllOrNothing(False))[rng.integers(4)]
        return Leaf(solid)
    parts = tuple(random_tree(rng, depth - 1) for _ in range(rng.integers(2, 4)))
    return Branch(("union", "intersection", "difference")[rng.integers(3)], parts)


def test_parts_of_the_boundary_by_a_condition():
    upper = PLATE.part(lambda points: (points[:, 1] > 1) & (np.linalg.norm(points - (3, 1), axis=1) < 0.3))
    assert upper.measure == pytest.approx(0.2 * pi, rel=1e-12)
    points = upper.sample(50, rng=0)
    assert (points[:, 1] >= 1).all()
    assert upper.contains(points).all()
    assert not upper.contains(PLATE.side("hole").sample(50, rng=0)).all()
    timed = SpaceTime(t=(0, 2), x=PLATE).part(lambda points: points[:, 1] < 1e-9)
    assert timed.measure == pytest.approx(2.0, rel=1e-12)
    assert Interval(0, 1).part(lambda points: points[:, 0] < 0.5).name == "x=0"
    hemisphere = Ball((0, 0, 0), 1).part(lambda points: points[:, 2] > 0)
    assert (hemisphere.sample(50, rng=0)[:, 2] > 0).all()


def test_space_time_over_a_shape():
    domain = SpaceTime(t=(0, 3), x=PLATE)
    assert domain.names == ("t", "x", "y")
    assert domain.volume == pytest.approx(3 * PLATE.volume, rel=ROUND)
    assert domain.contains(domain.sample(100, rng=0, method="sobol")).all()
    hole = domain.side("hole")
    points = hole.sample(60, rng=0)
    assert hole.measure == pytest.approx(1.2 * pi, rel=ROUND)
    assert hole.contains(points).all()
    assert (hole.normals(points)[:, 0] == 0).all()
    assert not domain.contains(points + 1e-6 * hole.normals(points)).any()
    assert domain.initial.contains(domain.initial.sample(20, rng=0)).all()
    assert domain.restrict(t=(0, 1)).volume == pytest.approx(PLATE.volume, rel=ROUND)
    near = hole.within([(1, 1.1), (3.1, 3.3), (0.9, 1.1)], 32, rng=0)
    assert near.shape == (32, 3)
    assert ((near[:, 0] >= 1) & (near[:, 0] <= 1.1)).all()
    assert float(integrate(lambda p: p[:, 0], domain)) == pytest.approx(4.5 * PLATE.volume, rel=1e-11)
    assert float(integrate(lambda p: p[:, 0], hole)) == pytest.approx(4.5 * 0.4 * pi, rel=1e-11)


def test_shapes_are_values_that_print_as_calls():
    assert Box(x=(0, 4), y=(0, 2)) - Box(x=(0, 2), y=(1, 2)) - Ball((3, 1), 0.2, name="hole") == PLATE
    assert PLATE.translated(1, 0) != PLATE
    assert hash(PLATE) == hash(Box(x=(0, 4), y=(0, 2)) - Box(x=(0, 2), y=(1, 2)) - Ball((3, 1), 0.2, name="hole"))
    shapes = [domain for domain, *_ in PLANE.values()]
    assert len(set(shapes)) == len(shapes)
    texts = [repr(domain) for domain in shapes]
    assert len(set(texts)) == len(texts)  # every argument that tells shapes apart is in the text
    printed = "(Box(x=(0.0, 4.0), y=(0.0, 2.0)) - Box(x=(0.0, 2.0), y=(1.0, 2.0)) - {})"
    assert repr(PLATE) == printed.format("Ball(centre=(3.0, 1.0), radius=0.2, names=('x', 'y'), name='hole')")
    assert repr(Ellipse((1, 0), (3, 1), 0.3)) == "Ellipse((1.0, 0.0), (3.0, 1.0), angle=0.3, names=('x', 'y'))"
    assert repr(HalfSpace((1, 1), 0)) == "HalfSpace((1.0, 1.0), 0.0, names=('x', 'y'))"
    rim = Implicit("x < 1", Box(x=(0, 2), y=(0, 1)), name="rim")
    assert repr(rim) == "Implicit('x < 1', within=Box(x=(0.0, 2.0), y=(0.0, 1.0)), name='rim')"
    turn = "Curve('cos(s)', 'sin(s)', span=(0.0, 6.283185307179586), names=('x', 'y'))"
    assert repr(Curve("cos(s)", "sin(s)")) == turn
    rod = Cylinder((0, 0, 0), (0, 0, 1), 1)
    assert repr(rod) == "Cylinder((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 1.0, names=('x', 'y', 'z'))"


def test_moves_compose_and_come_back():
    domain = PLATE.translated(1, 2).rotated(0.7).scaled(3)
    back = domain.scaled(1 / 3).rotated(-0.7).translated(-1, -2)
    points = PLATE.sample(100, rng=0)
    np.testing.assert_allclose(back.level(points), PLATE.level(points), atol=1e-13)
    assert SQUARE.translated(1, 2) == Box(x=(1, 2), y=(2, 3))
    assert SQUARE.scaled(2, centre=(1, 1)) == Box(x=(-1, 1), y=(-1, 1))
    assert Ball((1, 0), 1).rotated(pi / 2).centre == pytest.approx((0, 1))
    turned = CUBE.rotated(0.4, axis=(1, 1, 0))
    assert turned.measure == pytest.approx(1, rel=1e-12)
    assert list(turned.sides) == [f"side{k}" for k in range(1, 7)]


def test_pictures(tmp_path):
    for name, domain in {"plate": PLATE, "time": SpaceTime(t=(0, 1), x=FOUR), "cube": CUBE}.items():
        figure = domain.plot(tmp_path / f"{name}.png")
        assert min(inked(figure, tmp_path / f"{name}.png")) > 0.005
    with pytest.raises(InputError, match="to be drawn"):
        Interval(0, 1).plot()


UNIT = Ball((0, 0), 1)
BALL = Ball((0, 0, 0), 1)
BAD = {
    "hole outside": (lambda: (UNIT - Ball((5, 0), 1)).sides, "no part in the boundary"),
    "hole covers all": (lambda: (UNIT - Ball((0, 0), 2)).sides, "empty"),
    "no common part": (lambda: (UNIT & Ball((5, 0), 1)).measure, "do not meet"),
    "touch from inside": (lambda: (Ball((0, 0), 2) - Ball((1, 0), 1)).sides, "touch in a point"),
    "touch in a corner": (lambda: (SQUARE | Box(x=(1, 2), y=(1, 2))).sides, "touch in a point"),
    "touch from outside": (lambda: (UNIT | Ball((2, 0), 1)).sides, "touch in a point"),
    "balls that touch": (lambda: (BALL | Ball((2, 0, 0), 1)).sides, r"touch in a point, \(1, 0, 0\)"),
    "a ball that touches from inside": (
        lambda: (BALL - Ball((0.5, 0, 0), 0.5)).sides,
        r"touch in a point, \(1, 0, 0\)",
    ),
    "the same, written first": (lambda: (Ball((0.5, 0, 0), 0.5) & BALL).sides, "touch in a point"),
    "a ball on a face": (lambda: (CUBE - Ball((0.5, 0.5, 0.3), 0.3)).sides, "touch in a point"),
    "a ball beside a corner": (lambda: (CUBE | Ball((1 + 3**-0.5, 1 + 3**-0.5, 1 + 3**-0.5), 1)).sides, "touch in a"),
    "boxes with a common edge": (lambda: (CUBE | Box(x=(1, 2), y=(1, 2), z=(0, 1))).sides, "touch in a point"),
    "a name twice": (lambda: (Ball((0, 0), 1, name="a") - Ball((0, 0), 0.1, name="a")).sides, "used twice"),
    "a name as a side": (lambda: (SQUARE - Ball((0.5, 0.5), 0.1, name="boundary")).sides, "another word"),
    "odd name": (lambda: Ball((0, 0), 1, name="x=0"), "letters"),
    "dimensions": (lambda: SQUARE - Ball((0, 0, 0), 1), "equal"),
    "coordinates": (lambda: SQUARE - Box(u=(0, 1), v=(0, 1)), "same names"),
    "in one dimension": (lambda: Interval(0, 1) - Interval(0.2, 0.3), "2 or 3"),
    "not a shape": (lambda: SQUARE - 3, "a domain such as"),
    "space-time": (lambda: SpaceTime(t=(0, 1), x=SQUARE) - SQUARE, "combine or move the space"),
    "moved space-time": (lambda: SpaceTime(t=(0, 1), x=(0, 1)).translated(1, 1), "a shape in space"),
    "unbounded": (lambda: HalfSpace((1, 0), 0).measure, "not bounded"),
    "crossing polygon": (lambda: Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), "crosses or touches"),
    "touching polygon": (lambda: Polygon([(0, 0), (2, 0), (1, 1), (2, 2), (0, 2), (1, 1)]), "crosses or touches"),
    "two corners": (lambda: Polygon([(0, 0), (1, 0)]), "shape"),
    "polygon's hole outside": (lambda: Polygon([(0, 0), (1, 0), (1, 1)], [[(5, 5), (6, 5), (6, 6)]]), "inside"),
    "names of edges": (lambda: Polygon([(0, 0), (1, 0), (1, 1)], edges=("a",)), "3 names"),
    "ellipse": (lambda: Ellipse((0, 0), (1, -1)), "> 0"),
    "turned ellipsoid": (lambda: Ellipse((0, 0, 0), (1, 1, 1), 0.3), "rotated"),
    "no normal": (lambda: HalfSpace((0, 0), 1), "not 0"),
    "flat cylinder": (lambda: Cylinder((0, 0, 0), (0, 0, 0), 1), "different"),
    "curve that crosses": (lambda: Curve("cos(s)", "sin(2*s)"), "crosses itself"),
    "curve that is open": (lambda: Curve("cos(s)", "sin(s)", span=(0, 3)), "whole turn"),
    "curve with a corner": (lambda: Curve("cos(s)*abs(sin(s/2))", "sin(s)*abs(sin(s/2))"), "stands still|smooth"),
    "unknown word": (lambda: Implicit("x**2 + w < 1", SQUARE), "the name 'w' is unknown"),
    "no inequality": (lambda: Implicit("x**2 + y**2", SQUARE), "inequality"),
    "code": (lambda: Implicit("__import__('os').getcwd() < 1", SQUARE), "has no meaning"),
    "implicit of nothing": (lambda: Implicit("x**2 + y**2 < -1", SQUARE).measure, "empty|boundary"),
    "no frame": (lambda: Implicit("x < 1", (0, 1)), "a Box"),
    "renamed formula": (lambda: Implicit("x < 1", Box(x=(0, 1), y=(0, 1))).with_names(("u", "v")), "in its formula"),
    "axis": (lambda: CUBE.rotated(1.0), "axis=\\(0, 0, 1\\)"),
    "factor": (lambda: PLATE.scaled(0), "factor"),
    "shift": (lambda: PLATE.translated(1), "2 numbers"),
    "part of nothing": (lambda: PLATE.part(lambda points: points[:, 0] > 9), "holds nowhere"),
    "part that moves": (lambda: SpaceTime(t=(0, 1), x=PLATE).part(lambda p: p[:, 0] < 0.5), "changes with time"),
    "part of numbers": (lambda: PLATE.part(lambda points: points[:, 0]), "bool of shape"),
    "bounds": (lambda: PLATE.side("hole").within([(0, 1)], 3), "shape"),
    "unknown side": (lambda: PLATE.side("hloe"), "did you mean 'hole'"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_the_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_contacts_that_another_shape_covers_are_allowed():
    """Two balls touch inside a third one: no point of the boundary."""
    refuse_touching_solids((BALL | Ball((2, 0, 0), 1) | Ball((1, 0, 0), 0.5)).tree, 4.0)
    refuse_touching_solids((CUBE | Box(x=(1, 2), y=(0, 1), z=(0, 1))).tree, 2.0)  # a whole face is no point
    with pytest.raises(InputError, match="touch"):
        refuse_touching_solids((BALL | Ball((2, 0, 0), 1)).tree, 4.0)


def test_faces_that_two_shapes_share_bound_nothing():
    """What a smaller box takes from a larger one up to its rim leaves no face there."""
    corner = Box(x=(-1, 1), y=(-1, 1)) - Box(x=(0, 1), y=(-1, 0))
    inside = [(-0.5, -1), (0, -0.5), (0, 0), (1, 0.5), (0, -1), (0.5, 0)]
    outside = [(0.27, -1), (1, -0.5), (1, -1)]
    assert corner.contains(np.array(inside)).all()
    assert not corner.contains(np.array(outside)).any()


@pytest.mark.parametrize("half", [0.01, 0.03, 0.07, 1 / 3])
@pytest.mark.parametrize("length", [1.0, 1e-3, 1e-6])
def test_a_side_along_a_face_of_a_box_lies_in_it(half, length):
    """Its points are off the face by rounding, to one side or the other, and belong to the boxes on both."""
    slit = Box(x=(-1, 1), y=(-1, 1)) - Box(x=(-0.5, 0.5), y=(-half, half))
    for sign in (-1, 1):
        side = slit.side(f"y={sign * half:g}" if half != 1 / 3 else list(slit.sides)[6 if sign < 0 else 7])
        for way in (-1, 1):
            ends = sorted((sign * half, sign * half + way * length))
            found = side.within([(0.1, 0.1 + 0.3 * length), ends], 20, rng=0)
            assert found.shape == (20, 2)
            assert np.abs(found[:, 1] - sign * half).max() <= 4 * EPS


@pytest.mark.parametrize("seed", range(5))
def test_parts_far_from_a_box_have_no_say_in_it(seed):
    rng = np.random.default_rng(seed)
    shape = Box(x=(0, 8), y=(0, 8)) | Ball((9, 4), 2, names=("x", "y"))
    for place in rng.uniform(1, 7, (12, 2)):
        shape = shape - Ball(tuple(place), float(rng.uniform(0.05, 0.4)), names=("x", "y"))
    fewer = 0
    for corner in rng.uniform(0, 9, (30, 2)):
        bounds = np.stack([corner, corner + rng.uniform(0.1, 2.0, 2)], axis=1)
        points = bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) * rng.random((200, 2))
        near = nearby(shape, bounds)
        fewer += near is not shape
        assert np.array_equal(near.level(points) < 0, shape.level(points) < 0)
        assert np.array_equal(near.contains(points), shape.contains(points))
    assert fewer > 20


@pytest.mark.parametrize(("thickness", "axis"), [(1e-2, 0), (1e-3, 1), (1e-5, 2)])
def test_thin_plates_have_all_of_their_sides(thickness, axis):
    """Random points of a surface miss the rims, which are a thousandth of it and less."""
    names = "xyz"
    away = {name: (thickness, 2.0) if k == axis else (-1.0, 2.0) for k, name in enumerate(names)}
    plate = Box(x=(0, 1), y=(0, 1), z=(0, 1)) - Box(**away)
    assert len(plate.sides) == 6
    assert plate.volume == pytest.approx(thickness, rel=1e-9)
