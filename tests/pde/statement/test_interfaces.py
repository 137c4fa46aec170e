"""Fluxes that jump, and the places where formulas are not smooth: read, told apart, taken on one side."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from rannpde.pde.statement.expression import evaluate
from rannpde.pde.statement.interfaces import MOST_BRANCHES, branches, interface_levels, on_side
from rannpde.pde.statement.kinks import Absolute, Larger, Sign, Smaller, Step, Where, largest
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

WORDS = Vocabulary(("x", "y"), None, ("u", "p"), {}, {"f": np.hypot})
X, Y = WORDS.symbols


NAMES = ("u_x", "u_y", "u_xx", "u_yy", "u_xy", "p", "p_x", "x", "y", "normal x", "normal y")
K = Where(1 - X, 2, 3)
UX, UY, UXX, UYY, UXY, P, PX, _, _, NX, NY = (sympy.Symbol(name, real=True) for name in NAMES)


@pytest.mark.parametrize(
    ("text", "formula", "flux"),
    [
        ("d(where(x < 1, 2, 3)*u_x, x)", K * UXX, NX * K * UX),
        ("5*(d(where(x < 1, 2, 3)*u_x, x) + u_yy)", 5 * K * UXX + 5 * UYY, 5 * NX * K * UX + 5 * NY * UY),
        ("d(x*where(x < 1, 2, 3)*u_x, x)/x", K * UX / X + K * UXX, NX * K * UX),
        ("d(where(x < 1, 2, 3)*u_x + p, x)", K * UXX + PX, NX * (K * UX + P)),
        ("d((2 + sign(x - 1))*u_y, x)", (2 + Sign(X - 1)) * UXY, NX * (2 + Sign(X - 1)) * UY),
    ],
)
def test_an_equation_with_a_flux_that_jumps_holds_beside_the_jump(text, formula, flux):
    expression = read(text, WORDS)
    assert expression.jumps == (X - 1,)
    rng = np.random.default_rng(0)
    table = {sympy.Symbol(name, real=True): rng.uniform(0.5, 2, 8) for name in NAMES}
    found = evaluate([expression.formula, expression.flux.formula], table)
    assert np.allclose(found, evaluate([formula, flux], table), rtol=1e-14)


@pytest.mark.parametrize("text", ["where(x < 1, 2, 3)*laplace(u)", "d(max(x, 1)*u_x, x)", "d(where(x < 1, u, 3), y)"])
def test_what_is_no_jump_of_a_flux_is_none(text):
    assert read(text, WORDS).jumps == ()


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        (Where(X**2 + Y**2 - 1, 1, 2), ["x**2 + y**2 - 1"]),
        (Where(1 - largest(Absolute(X), Absolute(Y)), 1, 2), ["x + 1", "x - 1", "y + 1", "y - 1"]),
        (Where(X, Where(Y, 1, 2), Absolute(X - Y)), ["x", "x - y", "y"]),
        (Sign(Absolute(X) - 1) * Step(1 - X), ["x + 1", "x - 1"]),
        (Where(Where(X, Y, Y - 1), 1, 2), ["x", "y", "y - 1"]),
        (Larger(X, sympy.Symbol("u", real=True)), []),
        (Where(sympy.Function("f")(X, Y), 1, 2), []),
        (sympy.sin(X), []),
    ],
)
def test_places_are_smooth_and_of_the_coordinates_alone(formula, wanted):
    assert [str(place) for place in interface_levels([formula], [X, Y])] == wanted


def test_a_condition_of_too_many_branches_is_taken_as_it_stands():
    place = sympy.Add(*[Absolute(X - k) for k in range(10)]) - Y
    assert MOST_BRANCHES < 2**10
    assert branches(place) == [place]


KINKS = st.recursive(
    st.sampled_from([X, Y, X - Y, X + 2 * Y - 1, X * Y, sympy.Integer(2)]),
    lambda inner: st.one_of(
        st.builds(Absolute, inner),
        st.builds(Larger, inner, inner),
        st.builds(Smaller, inner, inner),
        st.builds(Where, inner, inner, inner),
        st.builds(lambda a, b: a + b, inner, inner),
    ),
    max_leaves=6,
)


@given(KINKS, st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_beside_its_places_a_formula_is_one_without_kinks(formula, point):
    values = dict(zip((X, Y), np.array(point)[:, None], strict=True))
    smooth = on_side(formula, lambda place: bool(evaluate([place], values)[0] > 0))
    assert interface_levels([smooth], [X, Y]) == []
    assert np.allclose(evaluate([smooth], values)[0], evaluate([formula], values)[0])


@given(KINKS, st.tuples(*[st.floats(-2, 2)] * 4))
def test_a_formula_is_smooth_on_segments_that_meet_no_place(formula, ends):
    """Along a segment on which no place changes its sign, one choice of branches holds from end to end."""
    points = np.linspace(ends[:2], ends[2:], 50)
    values = dict(zip((X, Y), points.T, strict=True))
    places = interface_levels([formula], [X, Y])
    signs = [np.broadcast_to(value, 50) for value in evaluate(places, values)]
    if any(abs(sign).min() < 1e-9 or sign.min() * sign.max() <= 0 for sign in signs):
        return
    first = {symbol: value[:1] for symbol, value in values.items()}
    smooth = on_side(formula, lambda place: bool(evaluate([place], first)[0] > 0))
    assert np.allclose(evaluate([smooth], values)[0], evaluate([formula], values)[0])
