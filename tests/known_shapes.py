"""Shapes whose measures are known in closed form, shared by test modules."""

from math import pi, sqrt

import pytest
from scipy.special import ellipe

from rannpde.domains import Ball, Box
from rannpde.domains.shapes.formed import Curve, Implicit
from rannpde.domains.shapes.polygon import Polygon
from rannpde.domains.shapes.quadrics import Cylinder, Ellipse, HalfSpace

SQUARE = Box(x=(0, 1), y=(0, 1))
PLATE = Box(x=(0, 4), y=(0, 2)) - Box(x=(0, 2), y=(1, 2)) - Ball((3, 1), 0.2, name="hole")
LENS = 2 * pi / 3 - sqrt(3) / 2  # two unit discs whose centres are 1 apart
FOUR = SQUARE - Ball((0.3, 0.3), 0.1) - Ball((0.7, 0.3), 0.1) - Ball((0.3, 0.7), 0.1) - Ball((0.7, 0.7), 0.1)
PLANE = {
    "plate": (PLATE, 6 - 0.04 * pi, 1 + 2 + 4 + 2 + 1 + 2 + 0.4 * pi),
    "four holes": (FOUR, 1 - 0.04 * pi, 4 + 0.8 * pi),
    "annulus": (Ball((1, 2), 2) - Ball((1, 2), 1), 3 * pi, 6 * pi),
    "crescent": (Ball((0, 0), 1) - Ball((1, 0), 1), pi - LENS, 2 * pi),
    "lens": (Ball((0, 0), 1) & Ball((1, 0), 1), LENS, 4 * pi / 3),
    "two discs": (Ball((0, 0), 1) | Ball((1, 0), 1), 2 * pi - LENS, 8 * pi / 3),
    "bitten corner": (SQUARE - Ball((1, 1), 0.5), 1 - pi / 16, 3 + pi / 4),
    "L": (SQUARE - Box(x=(0.5, 1), y=(0.5, 1)), 0.75, 4),
    "joined": (SQUARE | Box(x=(1, 2), y=(0, 2)), 3, 8),
    "ellipse": (Ellipse((1, 0), (3, 1), 0.3), 3 * pi, 12 * ellipe(1 - 1 / 9)),
    "half disc": (Ball((0, 0), 1) & HalfSpace((1, 1), 0), pi / 2, pi + 2),
    "triangle": (Polygon([(0, 0), (1, 0), (1, 1)]), 0.5, 2 + sqrt(2)),
    "polygon with a hole": (Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2)]]), 15.5, 18 + sqrt(2)),
    "turned square": (SQUARE.rotated(0.3, centre=(2, 1)), 1, 4),
    "scaled plate": (PLATE.scaled(2.0).translated(-1, 3), 24 - 0.16 * pi, 24 + 0.8 * pi),
    "implicit ellipse": (Implicit("x**2/9 + y**2 < 1", Box(x=(-4, 4), y=(-2, 2))), 3 * pi, 12 * ellipe(1 - 1 / 9)),
    "half an ellipse": (Implicit("x**2/9 + y**2 < 1", Box(x=(0, 4), y=(-2, 2))), 1.5 * pi, 6 * ellipe(1 - 1 / 9) + 2),
    "curve": (Curve("cos(s)", "2*sin(s)"), 2 * pi, 8 * ellipe(1 - 1 / 4)),
    "curve the other way": (Curve("sin(s)", "cos(s)"), pi, 2 * pi),
    "square without a curve": (Box(x=(-3, 3), y=(-3, 3)) - Curve("cos(s)", "sin(s)"), 36 - pi, 24 + 2 * pi),
}  # fmt: skip
plane = pytest.mark.parametrize(("domain", "area", "length"), PLANE.values(), ids=PLANE.keys())

CUBE = Box(x=(0, 1), y=(0, 1), z=(0, 1))
TORUS = Implicit("(sqrt(x**2+y**2) - 1)**2 + z**2 < 0.16", Box(x=(-1.5, 1.5), y=(-1.5, 1.5), z=(-0.5, 0.5)))
SPACE = {
    "cube without a ball": (CUBE - Ball((0.5, 0.5, 0.5), 0.3), 1 - 0.036 * pi, 6 + 0.36 * pi),
    "cube without a corner": (CUBE - Ball((1, 1, 1), 0.5), 1 - pi / 48, 6 - 3 * pi / 16 + pi / 8),
    "ball without a ball": (Ball((0, 0, 0), 1) - Ball((1, 0, 0), 1), 4 * pi / 3 - 5 * pi / 12, 4 * pi),
    "bracket": (CUBE - Box(x=(0, 0.5), y=(0, 1), z=(0.5, 1)), 0.75, 5.5),
    "cylinder": (Cylinder((0, 0, 0), (2, 1, 2), 0.5), 0.75 * pi, 3.5 * pi),
    "bored cube": (CUBE - Cylinder((0.5, 0.5, -1), (0.5, 0.5, 2), 0.2), 1 - 0.04 * pi, 6 - 0.08 * pi + 0.4 * pi),
    "torus": (TORUS, 0.32 * pi**2, 1.6 * pi**2),
}
space = pytest.mark.parametrize(("domain", "volume", "area"), SPACE.values(), ids=SPACE.keys())
