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


def test_bounds_are_terms_that_act_where_they_are_broken():
    problem = burgers(bounds={"u": (np.float64(-1.0), 2)})
    assert [(term.name, term.kind) for term in problem.limits] == [("bounds of u", "bounds")] * 2
    values = np.array([-1.5, 0.0, 3.0])
    broken = [term.expression.value({}, {term.expression.jets[0]: values}).tolist() for term in problem.limits]
    assert broken == [[0.5, 0.0, 0.0], [0.0, 0.0, 1.0]]


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
        ({"equations": 3}, "equations is 3"),
        ({"equations": {1: "u_t = u_xx"}}, "name of an equation"),
        ({"fields": 3}, "fields is 3"),
        ({"bounds": {"u": 3}}, r"bounds\['u'\] is 3"),
        ({"bounds": {"u": ("a", None)}}, r"bounds\['u'\]"),
        ({"parameters": [("nu", 1)]}, "parameters is"),
        ({"name": 3}, "name is 3"),
        ({"equations": "u_t + u*u_x = nu*u_xx + log(u - 2)"}, "at the initial values, is not finite"),
        ({"equations": "u_t = d(sign(x)*u, x)"}, "distribution"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(changes, hint):
    with pytest.raises(InputError, match=hint):
        burgers(**changes)


WALL, FLUX = On("x=1", "u = 0"), On("x=1", "u + 0.1*u_x = 1")
ZERO, FLAT = On("boundary", "u = 0"), On("boundary", "dn(u) = 0")
LINE, SQUARE, DISC = Interval(0, 1), Box(x=(0, 1), y=(0, 1)), Ball((0, 0), 1)
PLATE = ["u_xx = v", "v_xx = 1"]


@pytest.mark.parametrize(
    ("equations", "domain", "conditions", "hint"),
    [
        ("u_xx = 1", LINE, {"ends": ZERO, "flux": FLUX}, "'ends', 'flux'.*take 2 on both"),
        ("u_xx = 1", LINE, {"a": ZERO, "b": FLAT}, "4 conditions"),
        ("u_x = u", LINE, {"ends": ZERO}, "2 conditions.*take 1"),
        ("laplace(u) = 1", DISC, {"a": ZERO, "b": FLAT}, "take 1"),
        ("laplace(u) = 1", SQUARE, {"a": ZERO, "b": FLUX}, "on x=1 .'a', 'b'.*1 there"),
        ("u_xxxx = 1", LINE, {"a": ZERO, "b": FLAT, "c": On("x=0", "u_xx = 0")}, "take 4"),
        (PLATE, LINE, {"a": ZERO, "b": FLAT, "c": On("boundary", "v = 0")}, "6 conditions"),
    ],
)
def test_too_many_conditions_are_refused_by_name(equations, domain, conditions, hint):
    with pytest.raises(InputError, match=hint):
        Problem(equations, domain, conditions)
    assert Problem(equations, domain, conditions, incomplete=True).terms


def test_too_many_in_time_and_per_side():
    line = SpaceTime(t=(0, 1), x=(0, 1))
    start = On("t=0", "u = 0")
    with pytest.raises(InputError, match="2 conditions on t=0"):
        Problem("u_t = u_xx", line, {"start": start, "rate": On("t=0", "u_t = 0"), "ends": On("boundary", "u = 0")})
    with pytest.raises(InputError, match="2 conditions on x=1"):
        Problem("u_t = u_xx", line, {"start": start, "wall": WALL, "flux": FLUX})
    with pytest.raises(InputError, match="2 conditions on the sides of x"):
        Problem("u_t + u_x = 0", line, {"start": start, "ends": On("boundary", "u = 0")})


@pytest.mark.parametrize(
    ("equations", "domain", "conditions"),
    [
        ("u_xx = -u", LINE, {"a": On("x=0", "u = 0"), "b": On("x=0", "u_x = 1")}),  # an initial value problem
        ("u_xxxx = 1", LINE, {"a": ZERO, "b": FLAT}),
        (PLATE, LINE, {"a": ZERO, "b": FLAT}),  # clamped: v takes the conditions that u has too many
        (
            "u_t + u*u_x = 0",  # both ends let it flow in
            SpaceTime(t=(0, 1), x=(-1, 1)),
            {"start": On("t=0", "u = -x"), "ends": On("boundary", "u = -x/(1 - t + 1)")},
        ),
        (
            "u_t + u_xxx = 0",
            SpaceTime(t=(0, 1), x=(0, 1)),
            {"start": On("t=0", "u = 0"), "ends": On("boundary", "u = 0"), "slope": On("x=1", "u_x = 0")},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::rannpde.pde.problem.checks.ConditionWarning")
def test_as_many_conditions_as_the_order_are_accepted(equations, domain, conditions):
    assert Problem(equations, domain, conditions).constraints


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
    disc = Problem("laplace(u) = 0", Ball((0, 0), 1), {"rim": On("boundary", "dn(u) = x")})
    rim = disc.constraints[0]
    points = rim.region.sample(5, rng=0)
    normals = [value for symbol, value in rim.known(points, disc.vocabulary).items() if "normal" in symbol.name]
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


def test_a_choice_protects_its_branches():
    start = On("t=0", "u = where(x > 0, x*log(abs(x)), 0)")
    problem = burgers(
        equations="u_t = u_xx + where(u > 2, log(u - 2), 0) + where(x > 0, u*log(x), 0)",
        conditions={"start": start, "walls": WALLS},
    )
    assert problem.terms
    with pytest.raises(InputError, match="not finite"):
        burgers(equations="u_t = u_xx + u*log(x)")


def test_box_without_time_has_no_initial_conditions():
    problem = Problem("laplace(u) = 0", Box(x=(0, 1), y=(0, 1)), {"sides": On("boundary", "u = x*y")})
    assert {term.kind for term in problem.constraints} == {"boundary"}


def test_conditions_in_short_are_the_same_conditions():
    short = burgers(conditions={"t=0": "u = -sin(pi*x)", "boundary": "u = 0"})
    long = burgers(conditions={"t=0": START, "boundary": On("boundary", "u = 0")})
    assert short.conditions == long.conditions
    assert short.fingerprint == long.fingerprint
    ring = burgers(conditions={"t=0": sympy.Function("u")(*sympy.symbols("t x")) - 1, "x": "periodic"})
    assert ring.periodic == ("x",)


def test_several_equations_of_one_place_in_short():
    system = Problem(
        ("u_t = v_xx", "v_t = -u_xx"), SpaceTime(t=(0, 1), x=(0, 1)),
        {"t=0": ("u = sin(pi*x)", "v = 0"), "boundary": ["u = 0", "v = 0"]},
    )  # fmt: skip
    assert list(system.conditions) == ["t=0 1", "t=0 2", "boundary 1", "boundary 2"]
    assert [term.expression.fields for term in system.constraints] == [("u",), ("v",), ("u",), ("u",), ("v",), ("v",)]


def test_several_equations_of_one_condition_with_a_name():
    several = {"clamp": On("x=0", ["u = 0", "u_x = 0"], weight=2.0), "x=1": ["u = 1", "u_x = 4"]}
    beam = Problem("u_xxxx = 24", Box(x=(0, 1)), several)
    assert list(beam.conditions) == ["clamp 1", "clamp 2", "x=1 1", "x=1 2"]
    assert beam.conditions["clamp 2"] == On("x=0", "u_x = 0", weight=2.0)
    with pytest.raises(InputError, match="one or more"):
        Problem("u_xxxx = 24", Box(x=(0, 1)), {"clamp": On("x=0", [])})


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ({"start": "u = 0"}, "'start' does not exist"),
        ({"y": "periodic"}, "y"),
        ({"x": "periodc"}, "or 'periodic'"),
        ({"t=0": 3}, "must be an equation, On"),
        ({"t=0": ["u = 0", 3]}, "must be text"),
        ({"t=0": "u = lap(x)"}, "did you mean 'laplace'"),
    ],
)
def test_bad_conditions_in_short_are_refused(condition, hint):
    with pytest.raises(InputError, match=hint):
        burgers(conditions=condition)


@pytest.mark.parametrize(("called", "meant"), [("lap", "laplace"), ("laplacian", "laplace"), ("arcsin", "asin")])
def test_a_function_that_is_unknown_is_named_before_fields_are_missed(called, meant):
    with pytest.raises(InputError, match=f"the function '{called}' is unknown; did you mean '{meant}'"):
        Problem(f"-{called}(u) = 1", Box([(0, 1), (0, 1)]), {"boundary": "u = 0"})


def test_a_condition_at_the_end_of_time_is_answered_with_the_way_to_run_backwards() -> None:
    domain = SpaceTime(t=(0, 1), s=(0, 2))
    walls = {"s=0": "v = 0", "s=2": "v = 1"}
    with pytest.raises(InputError, match=r"given at the end of time.*-v_t for v_t.*On\('t=0', 'v = …'\)"):
        Problem("v_t + s**2*v_ss = v", domain, {"t=1": "v = max(s - 1, 0)"} | walls)
    with pytest.raises(InputError, match=r"add one such as On\('t=0', 'v = …'\)"):
        Problem("v_t = s**2*v_ss - v", domain, walls)


def test_sides_named_by_decimals_are_exactly_the_ends():
    """A number in a text may be read one unit of rounding off the bound that was given as a float."""
    rng = np.random.default_rng(83)
    for _ in range(200):
        low = float(rng.normal() * 10.0 ** rng.integers(-4, 4))
        high = low + float(10.0 ** rng.uniform(-3, 3))
        domain = SpaceTime(t=(low, high), x=(low, high))
        where = {f"t={low!r}": "u = 1", f"x={low!r}": "u = 1", f"x = {high!r}": "u = 1"}
        problem = Problem("u_t = u_xx", domain, where)
        assert {term.region.value for term in problem.constraints} == {low, high}
