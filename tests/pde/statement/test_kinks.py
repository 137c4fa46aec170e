"""abs, sign, max, min, where: values and slopes against NumPy and differences; distributions are refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from rannpde.grammar import StatementError
from rannpde.pde.statement.expansion import compile_expression, divergence_form
from rannpde.pde.statement.expression import Jet
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

WORDS = Vocabulary(("t", "x"), "t", ("u", "v"))
T, X = WORDS.symbols
U, V = Jet("u", (0, 0)), Jet("v", (0, 0))


def values(text, x, jets=None):
    expression = read(text, WORDS)
    x = np.asarray(x, dtype=float)
    return np.broadcast_to(expression.value({T: np.zeros_like(x), X: x}, jets or {}), x.shape)


def test_values_are_those_of_numpy():
    x = np.linspace(-1, 1, 9)
    assert np.array_equal(values("abs(x) + 2*sign(x)", x), np.abs(x) + 2 * np.sign(x))
    assert np.array_equal(values("max(x, x**2, 1/2, -x)", x), np.max([x, x**2, np.full(9, 0.5), -x], axis=0))
    assert np.array_equal(values("min(x, 0)", x), np.minimum(x, 0))


@pytest.mark.parametrize(
    ("operator", "compare"), [("<", np.less), (">", np.greater), ("<=", np.less_equal), (">=", np.greater_equal)]
)
def test_where_means_its_comparison_also_at_equality(operator, compare):
    x = np.linspace(-1, 1, 9)
    assert np.array_equal(values(f"where(x {operator} 0, x, 5)", x), np.where(compare(x, 0), x, 5.0))


@pytest.mark.parametrize(
    "text",
    [
        "abs(u)*v",
        "max(u, v, u*v)",
        "min(u, v)*max(u, 0)",
        "where(u < v, u**2, v*u)",
        "max(" * 20 + "u" + "".join(f", {k}/19*v)" for k in range(20)),
        "sqrt(abs(u))",
        "sqrt((u - v)**2)",
        "d(max(u, 0)*u_x, x)",
        "laplace(max(u, 0)**3)",
        "laplace(abs(u)*u)",
    ],
)
def test_linearisation_is_the_derivative_away_from_kinks(text):
    expression = read(text, WORDS)
    rng = np.random.default_rng(0)
    known = {symbol: rng.uniform(-1, 1, 7) for symbol in WORDS.symbols}
    jets = {jet: rng.uniform(-1, 1, 7) for jet in expression.jets}
    _, partials = expression.linearised(known, jets)
    step = 1e-6
    for jet, partial in zip(expression.jets, partials, strict=True):
        up, down = (expression.value(known, jets | {jet: jets[jet] + sign * step}) for sign in (1, -1))
        # central differences: error step² f‴ + eps f/step, both below 1e-8 for values of order 1 to 10
        assert np.allclose(partial, (up - down) / (2 * step), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("d((2 + sign(x))*u, x) = 0", "x"),
        ("d((2 + sign(x))*u_xx, x) = 0", "x"),
        ("u_x*d((2 + sign(x))*u_x, x) = 0", "x"),
        ("sign(x)*d(sign(x)*u_x, x) = 0", "x"),
        ("d(sign(u)*u_x, x) = 0", "u"),
        ("u_xx = d(sign(x - 0.5), x)", "x - 0.5"),
        ("u_xx = d(abs(u), x, 2)", "u"),
        ("laplace(max(u, 0)) = u", "u"),
        ("laplace(max(u, v)**2) = 0", "u - v"),
        ("u_x = d(where(x < 0.3, 1, u), x)", "x - 0.3"),
        ("d(sign(u)**3, x) = 0", "u"),
        ("d(where(u > 0, 1, 0)**2, x) = 0", "u"),
        ("d(x*sign(x), x, 3) = u", "x"),
    ],
)
def test_distributions_are_refused_with_their_place_and_a_remedy(text, place):
    with pytest.raises(StatementError, match="distribution") as caught:
        read(text, WORDS)
    assert f"where {place} = 0" in str(caught.value)
    assert "tanh" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("d(max(x, 0)**2, x, 2)", lambda x: 2.0 * (x > 0)),
        ("d(x*abs(x), x, 2)", lambda x: 2 * np.sign(x)),
        ("d((2*x - 1)*sign(x - 1/2), x)", lambda x: 2 * np.sign(x - 0.5)),
        ("d(where(x < 1/2, x**2, x/2), x)", lambda x: np.where(x < 0.5, 2 * x, 0.5)),
        ("d(max(1 - x**2, 0)**2, x, 2)", lambda x: (12 * x**2 - 4) * (np.abs(x) < 1)),
    ],
)
def test_what_vanishes_at_the_kink_has_its_derivative(text, wanted):
    x = np.linspace(-1.7, 1.7, 12)
    assert np.allclose(values(text, x), wanted(x), rtol=1e-14, atol=1e-14)


def test_the_branch_not_taken_may_be_undefined():
    expression = read("where(u > 0, sqrt(u), u)", WORDS)
    known = {symbol: np.zeros(2) for symbol in WORDS.symbols}
    value, (slope,) = expression.linearised(known, {U: np.array([-1.0, 4.0])})
    assert value.tolist() == [-1.0, 2.0]
    assert slope.tolist() == [1.0, 0.25]


def test_a_jump_of_the_field_itself_is_no_constant():
    expression = read("u_xx = sign(u)", WORDS)
    assert not expression.linear
    assert not any(partial.has(sympy.DiracDelta) for partial in expression.partials)


def test_sympys_own_kinks_become_ours():
    x, u = sympy.Symbol("x"), sympy.Function("u")(sympy.Symbol("t"), sympy.Symbol("x"))
    theirs = sympy.Max(u, 0, x) + sympy.Abs(u - x) + sympy.Piecewise((u, x < 1), (x, True)) - sympy.sign(x)
    ours = read("max(u, 0, x) + abs(u - x) + where(x < 1, u, x) - sign(x)", WORDS)
    rng = np.random.default_rng(0)
    known, jets = {T: np.zeros(5), X: rng.normal(size=5)}, {U: rng.normal(size=5)}
    assert np.array_equal(read(theirs, WORDS).value(known, jets), ours.value(known, jets))
    with pytest.raises(StatementError, match="one comparison"):
        read(sympy.Piecewise((u, (x < 1) & (x > 0)), (x, True)), WORDS)


def test_clipping_after_compilation_keeps_first_slopes():
    expression = read("d(u*u_x, x)", WORDS)
    u = next(symbol for symbol, jet in expression.symbols.items() if jet == U)
    clipped = compile_expression(expression.source, WORDS).formula.xreplace({u: sympy.Max(u, 0)})
    assert clipped.diff(u).has(sympy.Heaviside)


def test_constants_multiply_into_the_divergence_form():
    form = divergence_form(read("u_t = pi*(u_xx + d(u**2, x))/3", WORDS), WORDS)
    assert set(form.flux) == {"x"}
    assert not any(jet.index[1] for jet in form.source.jets)
