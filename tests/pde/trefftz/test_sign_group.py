"""Symmetric solids: their groups, least squares by characters, and points that are denser at edges."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.trefftz.least_squares import least_squares
from rannpde.pde.trefftz.patches import SurfacePatches
from rannpde.pde.trefftz.rows import boundary_rows
from rannpde.pde.trefftz.setting import trefftz_setting
from rannpde.pde.trefftz.sign_group import SignGroup
from rannpde.pde.trefftz.single import OneNetwork
from rannpde.pde.trefftz.tuning import TrefftzTuning

BOX = rp.Box(x=(0.3, 2.3), y=(-1, 1), z=(-1.5, 1.5))
HOLE = rp.Ball((0.8, 0.4, 0.0), 0.2, name="hole")


def law(domain, conditions, equation="laplace(u) + 4*u = 0"):
    problem = rp.Problem(equation, domain, conditions)
    setting = trefftz_setting(problem)
    return problem, setting, setting.law(problem, 1e-4, TrefftzTuning())


@pytest.mark.parametrize(
    ("domain", "conditions", "equation", "order"),
    [
        (BOX, {"boundary": "u = exp(x) + y"}, "laplace(u) = 0", 8),
        (BOX, {"boundary": "u = exp(x) + y"}, "laplace(u) + u_x = 0", 1),  # a drift is not symmetric
        (BOX, {"boundary": "u = exp(x) + y"}, "u_xx + 2*u_yy + u_zz = 0", 8),
        (BOX, {"boundary": "u = exp(x) + y"}, "u_xx + u_yy + u_zz + 0.2*u_xy = 0", 1),
        (BOX - HOLE, {"boundary": "u = 1"}, "laplace(u) = 0", 2),  # z alone
        (BOX - HOLE - rp.Ball((1.8, -0.4, 0.0), 0.2), {"boundary": "u = 1"}, "laplace(u) = 0", 4),
        (BOX - HOLE - rp.Ball((1.8, -0.4, 1e-9), 0.2), {"boundary": "u = 1"}, "laplace(u) = 0", 1),
        (BOX, {"x=0.3": "dn(u) + u = 1", "boundary except x=0.3": "u = y"}, "laplace(u) = 0", 4),
        (BOX, {"x=0.3": "dn(u) + u = 1", "x=2.3": "dn(u) + u = z", "boundary except x=0.3, x=2.3": "u = y"},
         "laplace(u) = 0", 8),
        (BOX, {"x=0.3": "u_x + u = 1", "x=2.3": "u_x + u = z", "boundary except x=0.3, x=2.3": "u = y"},
         "laplace(u) = 0", 4),  # not the outward derivative
        (BOX, {"boundary": "dn(u) + (2 + y)*u = z"}, "laplace(u) = 0", 4),
        (rp.Ball((1, 2, 3), 0.7), {"boundary": "u = x"}, "laplace(u) - u = 0", 8),
    ],
)  # fmt: skip
def test_symmetries_are_those_of_domain_operator_and_conditions(domain, conditions, equation, order) -> None:
    assert law(domain, conditions, equation)[2].group.order == order


def test_characters_are_orthogonal_and_a_fundamental_domain_holds_one_image_of_every_point() -> None:
    flips = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    group = SignGroup(np.array([0.5, 0.0, -1.0]), flips, np.zeros((4, 1), dtype=int))
    assert np.array_equal(group.characters @ group.characters.T, 4 * np.eye(4))
    points = np.random.default_rng(0).normal(size=(200, 3))
    inside = [group.fundamental(image) for image in group.images(points)]
    assert np.array_equal(np.sum(inside, axis=0), np.ones(200))


@pytest.mark.parametrize("sources", [0, 2])
def test_characters_give_the_least_squares_solution_of_all_rows(sources: int) -> None:
    """With a pair of holes, a condition on derivatives, and sources: coefficients, responses and deviations."""
    domain = BOX - HOLE - rp.Ball((1.8, -0.4, 0.0), 0.2, name="other")
    conditions = {"boundary except hole, other": "u = exp(x)*y", "hole": "dn(u) = x", "other": "dn(u) = y*z"}
    problem, setting, own = law(domain, conditions)
    first = own.first()
    resolution = type(first)(6, (3, 3), tuple(np.full(len(own.patches.sides), sources)))
    families = own.families(resolution, np.random.default_rng(0))
    parts = tuple(part for part in (setting.particulars(problem, 1e-4)[0]))
    network = OneNetwork(own, setting.form, tuple(one.part for one in parts), problem.vocabulary)
    found = network.rows(families, resolution, 0.5).solved()
    assert len(found.blocks) == 4
    every = boundary_rows(families, network.network([], np.empty(0)), own.conditions(resolution, 0.5), network.words)
    whole = least_squares(every.matrix * every.weights[:, None], every.rhs * every.weights)
    points = domain.sample(50, rng=3)
    values = network.values(families, points)[:, 0]
    reference = values @ whole.coefficients
    assert np.allclose(values @ found.coefficients, reference, rtol=0, atol=1e-7 * np.abs(reference).max())
    one, other = (np.linalg.svd(x.responses(values), compute_uv=False)[0] for x in (found, whole))
    assert one == pytest.approx(other, rel=1e-6)


def test_points_are_denser_at_edges_as_the_arcsine_law_has_it() -> None:
    sides = list(rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1)).sides.values())
    patches = SurfacePatches.of(sides, SignGroup.trivial(3, 6))
    points, homes, areas = patches.collocation(np.ceil(4000 * patches.shares / patches.shares.sum()).astype(int), 3)
    assert areas.sum() == pytest.approx(24, rel=0.05)
    across = points[patches.sides[homes] == 0][:, 1]
    share = float(np.mean(np.abs(across) > 0.9))
    arcsine = 1 - 2 * np.arcsin(0.9) / np.pi  # 0.29 instead of 0.1; it ends at the spacing of the samples
    assert 0.7 * arcsine < share < arcsine
    assert np.sum(areas * points[:, 0] ** 2) == pytest.approx(8 + 4 * 4 / 3, rel=0.05)
    ball = SurfacePatches.of(list(rp.Ball((0, 0, 0), 1).sides.values()), SignGroup.trivial(3, 1))
    assert np.array_equal(ball.densities(0, ball.anchors[0]), np.ones(len(ball.anchors[0])))
