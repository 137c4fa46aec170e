"""Problems on shapes: conditions on named sides, parts, files that come back the same."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import InputError
from rannpde.pde.problem.restrict import restrict_time
from rannpde.pde.problem.toml import from_table, read_problem, to_table

PLATE = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2)) - rp.Ball((3, 1), 0.2, name="hole")
SHAPES = {
    "plate": PLATE,
    "ellipse": rp.Ellipse((0, 0), (2, 1), 0.3, names=("x", "y")),
    "polygon": rp.Polygon([(0, 0), (4, 0), (4, 4)], [[(2, 1), (3, 1), (3, 2)]], names=("x", "y")),
    "named edges": rp.Polygon([(0, 0), (4, 0), (4, 4)], names=("x", "y"), edges=("low", "rest", "rest")),
    "half": rp.Box(x=(0, 1), y=(0, 1), name="block") & rp.HalfSpace((1, 1), 1),
    "implicit": rp.Implicit("x**2/4 + y**2 < 1", rp.Box(x=(-3, 3), y=(-2, 2)), name="rim"),
    "curve": rp.Curve("2*cos(s)", "sin(s)", names=("x", "y")),
    "moved": PLATE.rotated(0.3).scaled(2),
    "union": rp.Ball((0, 0), 1, names=("x", "y")) | rp.Ball((1, 0), 1),
    "cylinder": rp.Cylinder((0, 0, 0), (0, 0, 1), 0.5, names=("x", "y", "z")),
}


def problem(domain, **conditions):
    given = conditions or {"all": rp.On("boundary", "u = 0")}
    return rp.Problem("laplace(u) = 1", domain, given)


@pytest.mark.parametrize("domain", SHAPES.values(), ids=SHAPES.keys())
def test_files_keep_shapes(domain):
    stated = problem(domain)
    again = from_table(to_table(stated))
    assert again.domain == domain
    assert again.fingerprint == stated.fingerprint
    timed = rp.Problem(
        "u_t = laplace(u)",
        rp.SpaceTime(t=(0, 3), x=domain),
        {"start": rp.On("t=0", "u = 0"), "all": rp.On("boundary", "u = 0")},
    )
    assert from_table(to_table(timed)).domain == timed.domain


def test_sides_in_conditions():
    stated = problem(
        PLATE,
        hole=rp.On("hole", "dn(u) = 5 - u"),
        inlet=rp.On("x = 0.0", "u = 4*y*(1-y)"),
        rest=rp.On("boundary except x=0, hole", "u = 0"),
    )
    sides = {(term.name, term.region.name): term.measure for term in stated.constraints}
    assert sides == pytest.approx({
        ("hole", "hole"): 0.4 * np.pi, ("inlet", "x=0"): 1, ("rest", "x=4"): 2, ("rest", "y=0"): 4,
        ("rest", "y=2"): 2, ("rest", "x=2"): 1, ("rest", "y=1"): 2,
    })  # fmt: skip
    assert {term.kind for term in stated.constraints} == {"boundary"}
    points = PLATE.side("hole").sample(3, rng=0)
    normals = stated.constraints[0].known(points, stated.vocabulary)
    assert len(normals) == 4


def test_except_works_on_boxes_and_in_space_time():
    box = rp.Box(x=(0, 1), y=(0, 1))
    stated = problem(box, left=rp.On("x=0", "u = 1"), rest=rp.On("boundary except x=0", "u = 1"))
    assert [term.region.name for term in stated.constraints] == ["x=0", "x=1", "y=0", "y=1"]


def test_a_part_of_the_boundary_by_a_function():
    where = rp.On(lambda points: points[:, 0] < 1e-9, "u = 0")
    stated = problem(PLATE, left=where, hole=rp.On("hole", "u = 1"))
    assert stated.constraints[0].measure == pytest.approx(1)
    assert to_table(stated) is None
    timed = rp.Problem(
        "u_t = laplace(u)",
        rp.SpaceTime(t=(0, 3), x=PLATE),
        {"start": rp.On("t=0", "u = 0"), "left": rp.On(lambda points: points[:, 1] < 1e-9, "u = 0")},
    )
    shorter = restrict_time(timed, (0.0, 1.0))
    assert shorter.constraints[1].measure == pytest.approx(1)


TEXT = """
equations = ["laplace(u) = 0"]
[domain]
x = [0, "L"]
y = [0, 2]
without = [{ box = { x = [0, 2], y = [1, 2] } }, { ball = { centre = [3, 1], radius = 0.2, name = "hole" } }]
[parameters]
L = 4
[conditions.hole]
on = "hole"
equation = "u = 1"
[conditions.rest]
on = "boundary except hole"
equation = "u = 1"
"""


def test_a_file_with_holes(tmp_path):
    path = tmp_path / "plate.toml"
    path.write_text(TEXT)
    assert read_problem(path)[0].domain == PLATE


WRONG = {
    "radius": ("radius = 0.2", "radius = -1", "radius"),
    "unknown shape": ("ball =", "bal =", "did you mean 'ball'"),
    "unknown key": ("radius =", "radios =", "did you mean 'radius'"),
    "a side that is not there": ('on = "hole"', 'on = "hloe"', "did you mean 'hole'"),
    "a side left out twice": ("except hole", "except hole, hole", "or twice"),
    "nothing left": ("without = [", 'without = ["a", ', "a table"),
    "no condition": ('"boundary except hole"', '"x=0"', "has no condition"),
    "hole outside": ("centre = [3, 1]", "centre = [9, 9]", "no part in the boundary"),
    "touching": ("centre = [3, 1]", "centre = [3, 0.2]", "touch in a point"),
    "slice": ('"boundary except hole"', '"x=3"', "does not exist in this shape"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_files_are_refused(old, new, message, tmp_path):
    path = tmp_path / "plate.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_problem(path)


def test_periodic_needs_a_box():
    with pytest.raises(InputError, match="no box"):
        problem(PLATE, around=rp.Periodic("x"))


def test_lines_says_that_the_space_does_not_suit():
    timed = rp.Problem(
        "u_t = laplace(u)",
        rp.SpaceTime(t=(0, 1), x=PLATE),
        {"start": rp.On("t=0", "u = 0"), "all": rp.On("boundary", "u = 0")},
    )
    assert "neither a box nor a ball" in rp.Lines().obstacles(timed)[0]


def test_the_corners_of_a_polygon_alone_are_enough():
    corners = [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2], [0, 2]]
    rest = {"equations": ["laplace(u) = 1"], "conditions": {"boundary": "u = 0"}}
    short = from_table(rest | {"domain": {"polygon": corners}})
    assert short.domain.measure == pytest.approx(3)
    assert (
        to_table(short)["domain"]
        == to_table(from_table(rest | {"domain": {"polygon": {"corners": corners}}}))["domain"]
    )
