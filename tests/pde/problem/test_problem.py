"""Problems: what is refused before any work, what is warned about, and the parts other solvers build on."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from rannpde.domains import Ball, Box, Interval, SpaceTime
from rannpde.errors import InputError
from rannpde.pde.functions import PointFunction
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.conditions import Data, On, Periodic
from rannpde.pde.problem.problem import Problem

START, WALLS = On("t=0", "u = -sin(pi*x)"), On(("x=-1", "x=1"), "u = 0")


def burgers(**changes):
    settings = {
        "equations": "u_t + u*u_x = nu*u_xx",
        "domain": SpaceTime(t=(0, 1), x=(-1, 1)),
        "parameters": {"nu": 0.01},
        "conditions": {"start": START, "walls": WALLS},
    }
    return Problem(**(settings | changes))


def test_a_stated_problem_knows_its_parts():
    problem = burgers()
    assert problem.fields == ("u",)
    assert [term.kind for term in problem.terms] == ["interior", "initial", "boundary", "boundary"]
    assert not problem.linear
    assert (problem.order("u", 0), problem.order("u", 1)) == (1, 2)
    assert problem.divergence("equation").flux["x"].formula.has(sympy.Symbol("u_x", real=True))


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"conditions": {"walls": WALLS}}, "initial condition"),
        ({"conditions": {"start": START}}, "order 2 in x"),
        ({"conditions": {"start": START, "walls": On("x=-1", "u = 0")}}, "1 condition"),
        ({"conditions": {"start": START, "walls": WALLS, "w": On("t=0", "w = 0")}}, "'w' is unknown"),
        ({"conditions": {"start": START, "walls": On("x=2", "u = 0")}}, "outside the domain"),
        ({"conditions": {"start": START, "walls": On("y=0", "u = 0")}}, "does not exist"),
        ({"conditions": {"start": START, "walls": WALLS, "idle": On("x=1", "x = 1")}}, "names no field"),
        ({"conditions": {"start": START, "walls": WALLS, "again": On("t=0", "u = 1")}}, "both prescribe"),
        ({"conditions": {"start": START, "walls": WALLS, "circle": Periodic("x")}}, "drop one"),
        ({"conditions": {"start": START, "circle": Periodic("z")}}, "no coordinate"),
        ({"conditions": {"start": START, "circle": Periodic("x", ("w",))}}, "no field"),
        ({"conditions": {"start": On("t=0", "u = log(x)"), "walls": WALLS}}, "not finite"),
        ({"conditions": {"start": On("t=0", "dn(u) = 0"), "walls": WALLS}}, "normal"),
        ({"conditions": {"equation": START, "walls": WALLS}}, "rename"),
        ({"equations": ["u_t = v_x", "u_x = v_t", "u_t = u_xx"]}, "3 equations for 2 fields"),
        ({"equations": ["u_t = v_x"]}, "do not determine"),
        ({"equations": ["u_t = u_xx", "v_t = 0*u + nu"], "fields": ("u", "w", "v")}, "do not determine"),
        ({"equations": "sin(x) = 0"}, "no derivative of an unknown"),
        ({"equations": []}, "at least one"),
        ({"parameters": {"nu": np.nan}}, "finite number"),
        ({"parameters": {"nu": 0.01, "u": 1.0}}, "not a field"),
        ({"bounds": {"w": (0, None)}}, "no field"),
        ({"bounds": {"u": (1, 0)}}, "lower < upper"),
        ({"exact": {"w": "0"}}, "no field"),
        ({"exact": {"u": "sin(q)"}}, "'q' is unknown"),
        ({"domain": "box"}, "Interval"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(changes, hint):
    with pytest.raises(InputError, match=hint):
        burgers(**changes)


def test_a_corner_that_contradicts_itself_warns_with_its_size():
    with pytest.warns(ConditionWarning, match=r"differ by 0\.25 in the corner"):
        burgers(conditions={"start": START, "walls": On(("x=-1", "x=1"), "u = 1/4")})


def test_second_order_in_time_needs_two_initial_conditions():
    with pytest.raises(InputError, match="order 2 in time but has 1"):
        burgers(equations="u_tt = u_xx")
    burgers(equations="u_tt = u_xx", conditions={"start": START, "walls": WALLS, "rest": On("t=0", "u_t = 0")})
    burgers(equations="u_tt = u_xx", conditions={"walls": WALLS}, incomplete=True)


def test_data_must_lie_in_the_domain_and_be_finite():
    good = Data([[0.5, 0.5]], [1.0])
    assert burgers(conditions={"start": START, "sensor": good}).terms[-1].kind == "data"
    with pytest.raises(InputError, match="outside the domain"):
        burgers(conditions={"sensor": Data([[2.0, 0.0]], [1.0])})
    with pytest.raises(InputError, match="NaN"):
        burgers(conditions={"sensor": Data([[0.5, 0.0]], [np.nan])})
    with pytest.raises(InputError, match="shape"):
        burgers(conditions={"sensor": Data([[0.5, 0.0]], [1.0, 2.0])})


def test_slices_parameters_and_boundaries_as_places():
    problem = burgers(
        parameters={"nu": 0.01, "L": 1.0},
        conditions={"start": START, "walls": On(("x=-L", "x=L"), "u = 0"), "later": On("t = 1/2", "u_x = 0")},
    )
    assert [term.kind for term in problem.constraints] == ["initial", "boundary", "boundary", "slice"]
    disc = Problem("laplace(u) = 0", Ball((0, 0), 1), {"rim": On("boundary", "dn(u) = x1")})
    rim = disc.constraints[0]
    points = rim.region.sample(5, rng=0)
    normals = [
        value for symbol, value in rim.known(points, disc.vocabulary.coordinates).items() if "normal" in symbol.name
    ]
    assert np.allclose(np.stack(normals, axis=1), points)


def test_exact_solutions_from_text_and_callables_have_derivatives():
    problem = Problem("u_xx = -u", Interval(0, 1), {"ends": On("boundary", "u = sin(x)")}, exact={"u": "sin(x)"})
    points = np.linspace(0, 1, 5)[:, None]
    assert np.allclose(problem.exact_solution.derivative(points, (3,))[:, 0], -np.cos(points[:, 0]), atol=1e-15)
    assert np.abs(problem.residual(problem.exact_solution, points)["equation"]).max() < 1e-15


def test_functions_with_derivatives_may_be_differentiated():
    class Square:
        def __call__(self, points):
            return points[:, 0] ** 2

        def derivative(self, points, index):
            return {0: points[:, 0] ** 2, 1: 2 * points[:, 0], 2: np.full(len(points), 2.0)}[index[0]]

    problem = Problem(
        "u_xx = d(f(x), x, 2)",
        Interval(0, 1),
        {"ends": On("boundary", "u = f(x)")},
        functions={"f": PointFunction(Square())},
        exact={"u": "x**2"},
    )
    assert np.abs(problem.residual(problem.exact_solution, np.ones((3, 1)))["equation"]).max() < 1e-15


def test_box_without_time_has_no_initial_conditions():
    problem = Problem("laplace(u) = 0", Box(x=(0, 1), y=(0, 1)), {"sides": On("boundary", "u = x*y")})
    assert {term.kind for term in problem.constraints} == {"boundary"}
