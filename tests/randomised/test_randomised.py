"""Random problems as users state them: none is confidently wrong, none crashes, and most are solved.

A small part of what ``make randomised COUNT=1000`` runs, always the same seeds; twice as many in ``make test-all``.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
import pytest

import rannpde as rp
from draws import draws, some
from randomised.classify import OPEN, SOLVED, WRONG, Classified, classify, table
from randomised.mechanics import KINDS, mechanics_problem
from randomised.problems import SHAPES, Frame, user_problem
from randomised.singular import crossing_powers
from randomised.wider import wider_problem
from rannpde.domains.domain import Domain
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.cells.mesh.initial import first_tree
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual

SEEDS = range(draws(5, 24))
SECONDS = 120.0
"""Far more than any of them needs, so that a busy machine does not decide."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_user_problem_is_solved_or_honestly_not(seed):
    result = classify(user_problem(seed), SECONDS)
    assert not result.defect, result
    assert result.outcome == SOLVED, result


def test_a_form_that_is_not_positive_has_an_energy_to_compare_with():
    """Its flux condition is no traction: the energy of the solution was negative, and all that is left was above it."""
    assert classify(user_problem(50966), SECONDS).outcome == SOLVED


@pytest.mark.parametrize("seed", range(100, 100 + draws(2, 5)))
def test_a_problem_of_the_wider_generator_is_no_defect(seed):
    result = classify(wider_problem(seed), SECONDS)
    assert not result.defect, result


QUICK = (7, 20, 0, 8, 6)
"""Seeds of the generator of mechanics that are solved in half a second each: plates, a turn, contact, elasticity."""


@pytest.mark.parametrize("seed", [*QUICK[: draws(3, 5)], *range(1000, 1000 + draws(0, 26))])
def test_a_problem_of_mechanics_or_of_a_singular_point_is_no_defect(seed):
    result = classify(mechanics_problem(seed), SECONDS)
    assert not result.defect, result
    assert not result.underestimated, result


def test_singular_solutions_are_those_of_the_problems():
    """Harmonic off their singular points, by the mean over a circle, with normal derivatives as stated."""
    seeds = [
        seed for seed in range(3 * len(KINDS)) if KINDS[seed % len(KINDS)].__name__ in ("turn", "crack", "crossing")
    ]
    for seed in seeds:
        problem = mechanics_problem(seed)
        box, known = problem.domain, problem.exact["u"]
        size = float(np.ptp(np.asarray(box.bounds, dtype=float), axis=1).min())
        centre = np.asarray(box.bounds, dtype=float)[:, 1] - 0.05 * size
        angle = 2 * np.pi * np.arange(64) / 64
        around = centre + 0.04 * size * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        scale = np.abs(known(around)).max()
        if problem.kind != "crack, one of each" and known(around).std() > 0:
            assert abs(known(around).mean() - known(centre[None])[0]) < 1e-9 * scale, problem
        for name, flux in problem.functions.items():
            if name == "known":
                continue
            (side,) = [one for one in problem.conditions.values() if f"{name}(x, y)" in str(one.equation)]
            axis, value = "xy".index(side.where[0]), float(side.where[2:])
            points = np.stack([centre, centre - 0.02 * size])
            points[:, axis] = value
            outward = np.eye(2)[axis] * (1 if value == box.bounds[axis][1] else -1) * 1e-6 * size
            slope = (known(points + outward) - known(points - outward)) / (2e-6 * size)
            given = flux(points[:, 0], points[:, 1])
            assert np.abs(slope - given).max() < 1e-6 * max(np.abs(given).max(), scale / size), (problem, name)


@pytest.mark.parametrize("contrast", [3.0, 100.0, 1e4])
def test_exponents_of_crossings_are_kelloggs(contrast):
    """4/π arctan k^(-1/2) for a checkerboard, and the corner of an inclusion as it decouples."""
    assert crossing_powers(np.array([contrast, 1, contrast, 1]), 1)[0] == pytest.approx(
        4 / np.pi * np.arctan(contrast**-0.5), rel=1e-10
    )
    assert crossing_powers(np.array([1e9, 1, 1, 1]), 1)[0] == pytest.approx(2 / 3, abs=1e-4)


def test_the_solutions_are_those_of_the_problems():
    """A manufactured solution leaves nothing in any equation or condition, up to rounding."""
    for problem in (*map(user_problem, range(100, 100 + draws(3, 12))), *map(wider_problem, range(draws(2, 10)))):
        seed, problem = problem.seed, problem.problem()
        assert problem.exact_solution is not None
        for name, left in held_out_residual(problem, problem.exact_solution).items():
            assert left < 1e-9, (seed, name, left)


def test_every_kind_of_shape_and_condition_is_drawn():
    problems = [user_problem(seed) for seed in range(draws(150, 400))]
    assert {one.kind.split(", ")[1] for one in problems} == set(SHAPES)
    assert {one.kind.split(", ")[0] for one in problems} == {"stationary", "evolution", "elasticity"}
    assert {name.split()[0] for one in problems for name in one.conditions} == {"start", "value", "flux", "Robin"}
    assert max(one.tol for one in problems) > 5e-3
    assert min(one.tol for one in problems) < 1e-9


def test_classes_tell_a_wrong_answer_from_an_honest_one():
    """The same result is a defect when it claims to have converged, and none when it does not."""
    one = user_problem(0)
    rows = [Classified(one, name, 1.0, 1e-6, 1.0) for name in (SOLVED, OPEN, WRONG)]
    assert [row.defect for row in rows] == [False, False, True]
    assert "confidently w" in table(rows)


# ------------------------------------------------------------------------------- units, position, orientation, decimals

PLAIN: dict[str, Domain] = {
    "rectangle with a hole": rp.Box(x=(0, 2), y=(0, 1)) - rp.Ball((1, 0.5), 0.25),
    "L-shape": rp.Box(x=(0, 1), y=(0, 1)) - rp.Box(x=(0.5, 2), y=(0.5, 2)),
    "disc": rp.Ball((0, 0), 1),
    "polygon": rp.Polygon([(0, 0), (2, 0), (2, 1), (1, 2), (0, 1)]),
    "half disc": rp.Ball((0, 0), 1) & rp.HalfSpace((1, 1), 0),
    "ellipse": rp.Ellipse((1, 0), (2, 1), 0.3),
}


def harmonic(domain: Domain, factor: float, angle: float, shift: tuple[float, float]) -> Problem:
    """Laplace's equation with the image of Re exp(z/2) under the similarity that moves the shape."""
    c, s = cos(angle), sin(angle)
    x, y = f"(x - ({shift[0]!r}))", f"(y - ({shift[1]!r}))"
    first, second = f"(({c!r})*{x} + ({s!r})*{y})/{factor!r}", f"(({c!r})*{y} - ({s!r})*{x})/{factor!r}"
    exact = f"exp({first}/2)*cos({second}/2)"
    moved = (
        domain.scaled(factor).rotated(angle).translated(*shift) if angle else domain.scaled(factor).translated(*shift)
    )
    return Problem("laplace(u) = 0", moved, {"rim": rp.On("boundary", f"u = {exact}")}, exact={"u": exact})


@pytest.mark.parametrize("shape", some(PLAIN, 4))
@pytest.mark.parametrize("draw", range(draws(1, 2)))
def test_nothing_depends_on_units_position_or_decimals(shape, draw):
    """A shape in other units and elsewhere: the same iterations up to one, the same accuracy up to a factor."""
    rng = np.random.default_rng([draw, *map(ord, shape)])
    frame = Frame.sample(rng, 2)
    factor = float(f"{rng.uniform(0.2, 5):.2g}") * frame.unit
    plain = rp.solve(harmonic(PLAIN[shape], 1.0, 0.0, (0.0, 0.0)), tol=1e-7)
    moved = rp.solve(harmonic(PLAIN[shape], factor, 0.0, frame.origin), tol=1e-7)
    assert moved.converged
    assert moved.errors()["u"] <= 1e-7
    assert abs(len(moved.history.iterations) - len(plain.history.iterations)) <= 1
    assert len(moved.widths) <= 2 * len(plain.widths)


@pytest.mark.parametrize("shape", some(PLAIN, 3))
def test_rotated_shapes_are_solved_too(shape):
    """Rotation changes how cells meet the shape, so only the accuracy is compared."""
    rng = np.random.default_rng([7, *map(ord, shape)])
    turned = rp.solve(harmonic(PLAIN[shape], 0.37, round(rng.uniform(0.1, 1.4), 2), (0.3, -1.7)), tol=1e-6)
    assert turned.converged
    assert turned.errors()["u"] <= 1e-6


@pytest.mark.parametrize("seed", range(draws(16, 40)))
def test_boxes_with_decimals_get_few_first_cells(seed):
    """One rounding between a side and the bounds once made a layer of cells 1e-16 thin, and a million others."""
    rng = np.random.default_rng(seed)
    digits = 1 + seed % 2
    width, height = (round(rng.uniform(0.2, 4), digits) for _ in range(2))
    domain = rp.Box(x=(0, width), y=(0, height)) - rp.Ball((width / 2, height / 2), min(width, height) / 6)
    problem = Problem("laplace(u) = 0", domain, {"rim": rp.On("boundary", "u = x")})
    tree = first_tree(problem, 12, 1e-6, CellsTuning(), Interfaces())
    assert len(tree.leaves) <= 8 * max(width / height, height / width) + 8
    assert min(leaf.lengths.min() for leaf in tree.leaves) > 0.05 * min(width, height)
