"""Exponents of corners against closed forms, powers as features, and flows in channels of any size."""

import numpy as np
import pytest

import rannpde as rp
from draws import some
from rannpde.pde.trefftz.analytic import PowerFamily
from rannpde.pde.trefftz.exponents import RayCondition, corner_exponents, turned_conditions
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.potentials import PotentialModel

VALUE = ((1.0, 0, (0, 0)),)
FLAT = CanonicalForm(np.eye(2), np.zeros(2), np.zeros(2), 0.0, 1.0, 0.0)


def normal_slope(angle, side):
    """∂_n u on the ray of an angle: the outward normal is a quarter turn to the right of the first ray."""
    turn = angle + side * np.pi / 2
    return ((float(np.cos(turn)), 0, (1, 0)), (float(np.sin(turn)), 0, (0, 1)))


@pytest.mark.parametrize("opening", [0.3, 1.1, 2.5, 4.0, 1.5 * np.pi, 6.0])
@pytest.mark.parametrize("turned", [0.0, 2.1])
def test_harmonic_exponents(opening, turned):
    middle = turned + opening / 2
    ends = turned, turned + opening
    both = tuple(RayCondition(angle, VALUE) for angle in ends)
    mixed = (RayCondition(ends[0], VALUE), RayCondition(ends[1], normal_slope(ends[1], 1)))
    for conditions, shift in ((both, 0.0), (mixed, 0.5)):
        top = 6.2 * np.pi / opening
        known = (np.arange(1, 8) - shift) * np.pi / opening
        known = known[(known <= top) & (np.abs(known - np.round(known)) > 1e-3)]
        assert np.allclose(corner_exponents(conditions, middle, opening, None, top), known, rtol=1e-8)


@pytest.mark.parametrize("opening", [0.9, np.pi / 2, 2.0, 4.5])
def test_exponents_of_flows_and_plates(opening):
    """Between no-slip walls sin²(λω) = λ² sin²ω (Dean and Montagnon, Moffatt); a clamped plate has the same; elastic
    bodies that are fixed on both sides κ² sin²(λω) = λ² sin²ω (Williams)."""
    stokes = PotentialModel("stokes", (0, 1, 2), 2.0, 2.0)
    walls = tuple(RayCondition(a, ((1.0, f, (0, 0)),)) for a in (0.0, opening) for f in (0, 1))
    found = corner_exponents(walls, opening / 2, opening, stokes, 7.0)
    assert len(found) >= 2
    assert np.abs(np.sin(found * opening) ** 2 - (found * np.sin(opening)) ** 2).max() < 1e-7
    clamped = tuple(
        RayCondition(a, jets) for a, side in ((0.0, -1), (opening, 1)) for jets in (VALUE, normal_slope(a, side))
    )
    plate = corner_exponents(clamped, opening / 2, opening, PotentialModel("plate", (0,)), 7.0)
    assert np.allclose(np.sort_complex(plate), np.sort_complex(found), atol=1e-7)
    elastic = corner_exponents(walls, opening / 2, opening, PotentialModel("elastic", (0, 1), 3.2), 7.0)
    assert np.abs(2.2**2 * np.sin(elastic * opening) ** 2 - (elastic * np.sin(opening)) ** 2).max() < 1e-7


def test_powers_are_harmonic_and_their_derivatives_are_derivatives():
    corner, out = np.array([[0.2, -0.1]] * 2), np.array([[-0.6, -0.8]] * 2)
    family = PowerFamily(FLAT, corner, out, np.array([2 / 3, 2.7 + 1.1j]), np.full(2, 1.3))
    points, step = corner[0] + np.random.default_rng(0).uniform(0.1, 0.5, (6, 2)), 1e-5
    second = family.values(points, (2, 0)) + family.values(points, (0, 2))
    assert np.abs(second).max() < 1e-13 * np.abs(family.values(points, (2, 0))).max()
    for axis, index in ((0, (1, 0)), (1, (0, 1))):
        shift = step * np.eye(2)[axis]
        slope = (family.values(points + shift, (0, 0)) - family.values(points - shift, (0, 0))) / (2 * step)
        assert np.abs(slope - family.values(points, index)).max() < 1e-8
    assert np.isfinite(family.values(corner[:1], (0, 0))).all()


@pytest.mark.parametrize("seed", range(4))
def test_exponents_do_not_depend_on_the_direction_of_a_corner(seed):
    """Conditions of plates, elastic bodies and flows, turned to the bisector and combined otherwise."""
    rng = np.random.default_rng(seed)
    model = (None, PotentialModel("plate", (0,)), PotentialModel("elastic", (0, 1), 3.7),
             PotentialModel("stokes", (0, 1, 2), 2.0, 1.7))[seed]  # fmt: skip
    opening, middle = float(rng.uniform(0.6, 1.9) * np.pi), float(rng.uniform(-3, 3))
    conditions = []
    for end in (-0.5, 0.5):
        angle = middle + end * opening
        normal = np.array([np.sin(angle), -np.cos(angle)]).tolist()
        slope = ((normal[0], 0, (1, 0)), (normal[1], 0, (0, 1)))
        value, other = ((1.0, 0, (0, 0)),), ((1.0, 0, (0, 0)), (0.7, 1, (0, 0)))
        stated = {0: [slope if end < 0 else value], 1: [value, slope]}.get(seed, [value, other])
        conditions += [RayCondition(angle, jets) for jets in stated]
    plain = corner_exponents(tuple(conditions), middle, opening, model, 5.0)
    turned = corner_exponents(turned_conditions(conditions, middle, model), 0.0, opening, model, 5.0)
    assert len(plain) > 1
    assert np.allclose(np.sort_complex(plain), np.sort_complex(turned), rtol=0, atol=1e-7)  # as zeros are told apart


def channel(rng, inflow):
    """A channel of random size and unit with a disc or two; the same profile leaves as enters."""
    unit = float(10 ** rng.uniform(-1, 1))
    length = float(rng.uniform(1.5, 4)) * unit
    domain = rp.Box(x=(0, length), y=(0, unit))
    for share in rng.uniform(0.25, 0.75, 1):
        domain = domain - rp.Ball((float(share) * length, unit * float(rng.uniform(0.4, 0.6))), 0.15 * unit)
    profile = inflow.replace("y", f"(y/{unit!r})")
    ends = rp.On(("x=0", f"x={length!r}"), [f"u = {profile}", "v = 0"])
    walls = rp.On(f"boundary except x=0, x={length!r}", ["u = 0", "v = 0"])
    pin = rp.Data([[0.05 * length, 0.5 * unit]], [0.0], "p")
    return rp.Problem(
        ["laplace(u) = p_x", "laplace(v) = p_y", "u_x + v_y = 0"], domain, {"ends": ends, "walls": walls, "pin": pin}
    )


@pytest.mark.parametrize(("seed", "inflow"), some([(0, "y*(1 - y)"), (1, "y**2*(1 - y)")], 1))
def test_flows_through_channels(seed, inflow):
    """Mass is conserved through every section, and a second realisation at a tighter tolerance agrees."""
    problem = channel(np.random.default_rng(seed), inflow)
    one = rp.solve(problem, tol=1e-5, method="trefftz")
    other = rp.solve(problem, tol=1e-8, method="trefftz", rng=3)
    assert one.converged
    assert other.converged
    assert "powers at corners" in other.method.label
    points = problem.domain.sample(400, rng=1)
    gap = np.linalg.norm(one.function(points) - other.function(points), axis=0)
    assert (gap / np.linalg.norm(other.function(points), axis=0)).max() < one.estimate + other.estimate


def test_jumps_at_the_corners_of_a_hole():
    """The angle about a corner of a hole is cut within the hole: the solution is smooth beyond it."""
    hole = rp.Polygon([(-0.3, -0.3), (0.3, -0.3), (0.35, 0.3), (-0.3, 0.35)])
    domain = rp.Box(x=(-1, 1), y=(-1, 1)) - hole
    problem = rp.Problem("laplace(u) = 0", domain, {"edge1": "u = 1", "boundary except edge1": "u = 0"})
    solution = rp.solve(problem, tol=1e-5, method="trefftz")
    assert solution.converged
    assert "angles" in solution.method.label
    inside = domain.sample(500, rng=1)
    values = solution(inside)
    assert values.min() > -1e-3
    assert values.max() < 1 + 1e-3


PLATE = ["3*u_xx + u_yy + 2*v_xy = 0", "v_xx + 3*v_yy + 2*u_xy = 0"]
TRACTIONS = {
    "left": rp.On("x=0", ["u = 0", "v = 0"]),
    "right": rp.On("x=1", ["3*u_x + v_y = 1", "u_y + v_x = 0"]),
    "roller": rp.On("y=0", ["v = 0", "u_y + v_x = 0"]),
    "spring": rp.On("y=1", ["u_y + v_x + 2*u = 0", "3*v_y + u_x + v = 0"]),
}


@pytest.mark.parametrize("side", ["right", "roller", "spring"])
def test_at_corners_elastic_conditions_with_derivatives_must_be_tractions(side):
    box, disc = rp.Box(x=(0, 1), y=(0, 1)), rp.Ball((0, 0), 1)
    assert not rp.Trefftz().obstacles(rp.Problem(PLATE, box, TRACTIONS))
    slopes = rp.On(TRACTIONS[side].where, ["dn(u) = 1", "dn(v) = 0"])
    (reason,) = rp.Trefftz().obstacles(rp.Problem(PLATE, box, TRACTIONS | {side: slopes}))
    assert side in reason
    assert "tractions" in reason
    assert not rp.Trefftz().obstacles(
        rp.Problem(PLATE, disc, {"rim": rp.On("boundary", ["dn(u) + u = x", "dn(v) + v = y"])})
    )
