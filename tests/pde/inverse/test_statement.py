"""What can be stated with unknowns, and what is refused before any work."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde as rp
from rannpde.errors import InputError
from rannpde.pde.inverse.tangent import tangent, with_sensitivities
from rannpde.pde.problem.toml import from_table, to_table

LINE = rp.Interval(0, 1)
PLACES, VALUES = np.array([[0.2], [0.5], [0.7]]), np.array([0.1, 0.2, 0.3])
ENDS = rp.On(("x=0", "x=1"), "u = 0")


def stated(unknown=None, data=None, **others):
    conditions = {"ends": ENDS, "sensors": data or rp.Data(PLACES, VALUES, "u", noise=0.1)}
    unknown = {"k": rp.Unknown(1.0)} if unknown is None else unknown
    return rp.Problem("k*u_xx = -1", LINE, conditions, unknown=unknown, **others)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rp.Unknown(-1.0, bounds=(0, None)), "within its bounds"),
        (lambda: rp.Unknown(np.nan), "a finite number"),
        (lambda: rp.Unknown(1.0, bounds=(2, 1)), "lower < upper"),
        (lambda: rp.UnknownFunction(of=()), "one to three names"),
        (lambda: rp.UnknownFunction(of=("x",), smoothness=9), "from 1 to 4"),
        (lambda: stated({"k": 1.0}), r"rp.Unknown\(guess"),
        (lambda: stated({"k": rp.UnknownFunction(of=("z",))}), "no coordinate"),
        (lambda: stated({"k": rp.Unknown(1.0), "m": rp.Unknown(1.0)}), "stands in no equation"),
        (lambda: stated(parameters={"k": 1.0}), "stands for"),
        (lambda: stated(data=rp.Data(PLACES, np.array([0.1, np.nan, 0.2]), "u")).measurements, "finite"),
        (lambda: stated(data=rp.Data(PLACES, VALUES, "u", noise=-1.0)).measurements, "≥ 0"),
        (lambda: stated(data=rp.Data(PLACES, VALUES, "u", noise=[0.1, 0.2])).measurements, "one for each of the 3"),
        (lambda: stated(data=rp.Data(PLACES, VALUES, "u", loss="cauchy")), "loss"),
        (lambda: stated(data=rp.Data(PLACES + 2, VALUES, "u")).measurements, "outside the domain"),
        (lambda: stated(data=rp.Data(PLACES, VALUES, "x")).measurements, "names no field"),
        (lambda: stated(data=rp.Data(PLACES[[0, 0, 1]], VALUES, "u", noise=0)).measurements, "two different values"),
        (lambda: stated(data=rp.Data(None, VALUES, "mean(u)", over=rp.Interval(0, 1))).measurements, "a list of 3"),
        (lambda: stated(data=rp.Data(None, VALUES[:1], "u", over=rp.Interval(0, 2))).measurements, "outside"),
        (
            lambda: rp.Problem("u_xx = 1", LINE, {"e": ENDS, "s": rp.Data(PLACES, VALUES, "u", noise=1.0)}),
            "no unknowns",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(make, told):
    with pytest.raises(InputError, match=told):
        make()


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (lambda: rp.Problem("k*u_xx = -1", LINE, {"e": ENDS}, unknown={"k": rp.Unknown(1.0)}), "given with Data"),
        (
            lambda: rp.Problem(
                "a*u_xx + b*u_x + c*u + e = -1",
                LINE,
                {"e": ENDS, "s": rp.Data(PLACES, VALUES, "u")},
                unknown={name: rp.Unknown(1.0) for name in "abce"},
            ),
            "4 unknown numbers but only 3",
        ),
        (lambda: stated(incomplete=True), "state what is missing as unknown"),
        (lambda: [stated(), stated({"k": rp.Unknown(2.0)})], "other unknowns"),
    ],
)
def test_a_solve_says_what_is_missing(problem, told):
    with pytest.raises(InputError, match=told):
        rp.solve(problem())


def test_unknown_numbers_and_functions_have_jets_of_their_own():
    box = rp.SpaceTime(t=(0, 1), x=(0, 1))
    conditions = {"start": rp.On("t=0", "u = A*x"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    conditions["rim"] = rp.On("x=0", "a = 2")
    conditions["sensors"] = rp.Data(np.array([[0.5, 0.5]]), [1.0], "a*u_x")
    unknown = {"A": rp.Unknown(1.0), "a": rp.UnknownFunction(of=("x",))}
    problem = rp.Problem("u_t = div(a*grad(u))", box, conditions, fields=("u", "a"), unknown=unknown)
    assert problem.fields == ("u",)
    (expression,) = problem.expressions.values()
    assert {jet.field for jet in expression.jets} == {"u", "a"}
    assert all(jet.index[0] == 0 for jet in expression.jets if jet.field == "a")  # it does not depend on time
    assert [pin.name for pin in problem.pins] == ["rim"]
    assert {term.name for term in problem.constraints} == {"start", "ends"}
    forward = problem.at({"A": 3.0})
    assert forward.parameters["A"] == 3.0
    assert not forward.unknown
    assert "sensors" not in forward.conditions


@settings(max_examples=25, deadline=None)
@given(k=st.floats(0.2, 3.0), m=st.floats(0.2, 3.0), x=st.floats(0.1, 0.9))
def test_the_tangent_is_the_derivative(k, m, x):
    """Along (u → s, k → 1) against a difference quotient with u = e^x + ε cos x, k + ε."""
    symbol, number = sympy.Symbol("x", real=True), sympy.Symbol("k", real=True)
    u, s = (sympy.Function(name, real=True)(symbol) for name in "us")
    source = number * sympy.Derivative(u**2 * sympy.sin(u), symbol) + sympy.exp(number * u) / m
    along = tangent(source, {u: s, number: sympy.Integer(1)})

    def value(expression, shift):
        known = {u: sympy.exp(symbol) + shift * sympy.cos(symbol), s: sympy.cos(symbol), number: k + shift}
        return float(expression.subs(known).doit().subs(symbol, x))

    step = 1e-5
    quotient = (value(source, step) - value(source, -step)) / (2 * step)
    assert value(along, 0.0) == pytest.approx(quotient, rel=1e-6, abs=1e-6)


def test_sensitivities_are_fields_of_a_problem_that_has_them_as_solution():
    """u = exp(-k t) of u' = -k u: ∂u/∂k = -t exp(-k t)."""
    conditions = {"start": rp.On("t=0", "u = 1"), "s": rp.Data(np.array([[1.0]]), [0.5], "u")}
    problem = rp.Problem("u_t = -k*u", rp.Interval(0, 2, name="t"), conditions, unknown={"k": rp.Unknown(0.7)})
    both = with_sensitivities(problem, {"k": 0.7})
    points = both.domain.sample(50, rng=0)
    values = rp.solve(both, tol=1e-10)(points)
    np.testing.assert_allclose(values[:, 0], np.exp(-0.7 * points[:, 0]), rtol=1e-9)
    np.testing.assert_allclose(values[:, 1], -points[:, 0] * np.exp(-0.7 * points[:, 0]), atol=1e-9)


def test_tables_hold_unknowns_and_measurements():
    unknown = {"k": rp.Unknown(1.0, bounds=(0, None)), "f": rp.UnknownFunction(of=("x",), guess="1 + x", degree=8)}
    data = {"ends": ENDS, "a": rp.Data(PLACES, VALUES, "u", noise=[0.1, 0.2, 0.3], loss="huber")}
    data["b"] = rp.Data(None, [0.2], "mean(u)", over="x=0")
    problem = rp.Problem("k*u_xx = -f", LINE, data, unknown=unknown)
    again = from_table(to_table(problem))
    assert again.unknown == problem.unknown
    for one, other in zip(problem.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(one.points, other.points)
        assert one.loss == other.loss
        assert (one.noise is None) == (other.noise is None)


def test_means_are_integrals():
    """The mean of x² over [0, 1] is 1/3, over the line from 0.5 to 1 it is 7/12."""
    regions = [rp.Interval(0, 1), ((0.5,), (1.0,))]
    problem = stated(data=rp.Data(None, [1 / 3, 7 / 12], "mean(u)", over=regions))
    (one,) = problem.measurements
    np.testing.assert_allclose(one.gathered(one.points[:, 0] ** 2), [1 / 3, 7 / 12], rtol=1e-14)


def test_two_lines_are_not_the_ends_of_one():
    """The means of x² from 0 to ½ and from ½ to 1 are 1/12 and 7/12."""
    lines = [[(0.0,), (0.5,)], [(0.5,), (1.0,)]]
    (one,) = stated(data=rp.Data(None, [1 / 12, 7 / 12], "mean(u)", over=lines)).measurements
    np.testing.assert_allclose(one.gathered(one.points[:, 0] ** 2), [1 / 12, 7 / 12], rtol=1e-14)


def test_conditions_with_normals_have_sensitivities():
    """∂_n u = -h u: the condition of s = ∂u/∂h is ∂_n s = -h s - u."""
    ring = rp.Box(x=(0, 1), y=(0, 1)) - rp.Ball((0.5, 0.5), 0.2, names=("x", "y"), name="hole")
    conditions = {"outside": rp.On("boundary except hole", "u = 1"), "hole": rp.On("hole", "dn(u) = -h*u")}
    conditions["sensor"] = rp.Data([[0.1, 0.1]], [1.0], "u", noise=0.1)
    problem = rp.Problem("laplace(u) = 0", ring, conditions, unknown={"h": rp.Unknown(0.5)})
    both = with_sensitivities(problem, {"h": 0.5})
    (moved,) = (term for term in both.constraints if term.name == "hole by h")
    points = moved.region.sample(5, rng=0)
    jets = {jet: np.full(5, 2.0 if jet.field == "u" else 3.0) * (jet.order == 0) for jet in moved.expression.jets}
    value = moved.expression.value(moved.known(points, both.vocabulary), jets)
    np.testing.assert_allclose(value, 0.5 * 3.0 + 2.0, rtol=1e-14)
