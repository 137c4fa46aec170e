"""Expansion, linearisation, divergence form: against SymPy's own calculus and finite differences."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy

from rannpde.errors import InputError
from rannpde.grammar import StatementError
from rannpde.pde.statement.expansion import divergence_form
from rannpde.pde.statement.expression import Jet, evaluate
from rannpde.pde.statement.reading import infer_fields, read
from rannpde.pde.statement.special import SPECIAL_FUNCTIONS
from rannpde.pde.statement.vocabulary import FUNCTIONS, Vocabulary

WORDS = Vocabulary(("t", "x", "y"), "t", ("u", "v"), {"nu": 0.1, "m": 3})
STATEMENTS = [
    "u_t + u*u_x = nu*u_xx",
    "u_t = laplace(u**m)",
    "d(u*v, t) + div(u*grad(v)) = exp(-x)*u",
    "u_tt - sqrt(1 + u_x**2)*u_yy + tanh(u*v_xy)",
    "dot(grad(u), grad(v)) - log(2 + u**2) + abs(u)*v",
    "div([u*v, sin(u)]) + max(u, v)",
    "d(u/(1 + v**2), x, 2) + erf(u)",
]


def _random_values(expression, rng, rows=7):
    known = {symbol: rng.uniform(0.2, 1.0, rows) for symbol in WORDS.symbols}
    return known, {jet: rng.uniform(0.2, 1.0, rows) for jet in expression.jets}


@pytest.mark.parametrize("text", STATEMENTS)
def test_linearisation_is_the_derivative(text):
    expression = read(text, WORDS)
    rng = np.random.default_rng(0)
    known, jets = _random_values(expression, rng)
    _, partials = expression.linearised(known, jets)
    step = 1e-6
    for jet, partial in zip(expression.jets, partials, strict=True):
        up, down = (expression.value(known, jets | {jet: jets[jet] + sign * step}) for sign in (1, -1))
        # central differences: error step² f‴ + eps f/step, both below 1e-8 for values of order 1 to 10
        assert np.allclose(partial, (up - down) / (2 * step), rtol=0, atol=1e-7)


def test_expansion_agrees_with_sympy():
    expression = read("laplace(u**m)", WORDS)
    t, x, y = WORDS.symbols
    chosen = sympy.sin(x * y) + t
    wanted = sympy.diff(chosen**3, x, 2) + sympy.diff(chosen**3, y, 2)
    orders = {
        s: [(c, k) for c, k in zip((t, x, y), jet.index, strict=True) if k] for s, jet in expression.symbols.items()
    }
    table = {s: sympy.diff(chosen, *o) if o else chosen for s, o in orders.items()}
    assert sympy.simplify(expression.formula.xreplace(table) - wanted) == 0


def test_linearity_is_recognised():
    assert read("u_t = sin(x)*u_xx + exp(y)", WORDS).linear
    assert not read("u_t = u*u_x", WORDS).linear
    assert read("d(x**2*u, x)", WORDS).linear


def test_subscripts_may_use_long_coordinate_names():
    words = Vocabulary(("t", "x1", "x2"), "t", ("u",))
    assert set(read("u_x1x2 + u_x2x2", words).jets) == {Jet("u", (0, 1, 1)), Jet("u", (0, 0, 2))}


def test_sympy_expressions_mean_the_same_as_text():
    t, x, nu = sympy.symbols("t x nu")
    u = sympy.Function("u")(t, x)
    words = Vocabulary(("t", "x"), "t", ("u",), {"nu": 0.1})
    ours = read("u_t + d(u**2, x)/2 = nu*u_xx", words)
    theirs = read(sympy.Eq(u.diff(t) + u * u.diff(x), nu * u.diff(x, 2)), words)
    assert sympy.expand(ours.formula - theirs.formula) == 0
    with pytest.raises(StatementError, match="unknown"):
        read(u.diff(t) - sympy.Symbol("kappa") * u, words)
    with pytest.raises(InputError, match="must be text"):
        read(3, words)


def test_fields_are_found_from_derivatives():
    words = Vocabulary(("t", "x"), "t", parameters={"nu": 1.0})
    assert infer_fields(["u_t = nu*u_xx", "laplace(w) = u"], words) == ("u", "w")
    assert infer_fields(["d(rho*u, t) = 0"], words) == ("rho", "u")


def test_divergence_form_adds_up():
    expression = read("d(u*v, t) + d(u**2, x) - nu*laplace(v) + u*u_y", WORDS)
    form = divergence_form(expression, WORDS)
    assert set(form.flux) == {"x", "y"}
    total = form.source.source + sum(
        sympy.Derivative(part.source, sympy.Symbol(name, real=True)) for name, part in form.flux.items()
    )
    again = read_source(total)
    assert sympy.expand(again.formula - expression.formula) == 0


def read_source(source):
    from rannpde.pde.statement.expansion import compile_expression

    return compile_expression(source, WORDS)


def test_evaluation_agrees_with_sympy_for_every_function():
    x = sympy.Symbol("x", real=True)
    elsewhere = ("abs", "sign", "max", "min", *SPECIAL_FUNCTIONS)  # in test_kinks.py and test_tensor_notation.py
    functions = [name for name in FUNCTIONS if name not in elsewhere]
    values = np.array([0.11, 0.37, 0.83])
    for name in functions:
        formula = getattr(sympy, name)(x) ** 3 + 1 / (2 + x) ** 5
        wanted = [float(formula.subs(x, value)) for value in values]
        assert np.allclose(evaluate([formula], {x: values})[0], wanted, rtol=1e-14, atol=0)


def test_leaving_a_domain_is_nan_without_noise():
    x = sympy.Symbol("x", real=True)
    found = evaluate([sympy.log(x), sympy.sqrt(x), 1 / x], {x: np.array([-1.0, 0.0, 1.0])})
    assert np.isnan(found[0][0])
    assert np.isnan(found[1][0])
    assert np.isinf(found[2][1])


def test_unknown_nodes_are_refused():
    x = sympy.Symbol("x", real=True)
    with pytest.raises(InputError, match="cannot be evaluated"):
        evaluate([sympy.gamma(x)], {x: np.ones(1)})


def test_own_functions():
    words = Vocabulary(("x",), None, ("u",), functions={"f": lambda x: x**2})
    expression = read("u_x = f(2*x)", words)
    (x,) = words.symbols
    assert np.allclose(expression.value({x: np.array([3.0])}, {Jet("u", (1,)): np.array([40.0])}), 4.0)
    with pytest.raises(StatementError, match="not of fields"):
        read("u_x = f(u)", words)
    with pytest.raises(StatementError, match="derivative"):
        read("u_x = d(f(x), x)", words)
    with pytest.raises(InputError, match="rename"):
        Vocabulary(("x",), None, ("sin",))


def test_parameters_may_be_any_real_number():
    words = Vocabulary(("x",), None, ("u",), {"a": np.float32(0.5), "m": np.int64(3), "q": Fraction(1, 4)})
    assert words.parameters == {"a": 0.5, "m": 3, "q": 0.25}
    assert [type(value) for value in words.parameters.values()] == [float, int, float]
    for wrong in (True, 1j, "1", None, np.inf, 10**400, [1.0]):
        with pytest.raises(InputError, match=r"parameters\['a'\].*finite number"):
            Vocabulary(("x",), None, ("u",), {"a": wrong})


def test_names_that_read_as_derivatives_are_refused():
    for words in ({"fields": ("u", "u_x")}, {"fields": ("u",), "parameters": {"u_xx": 1.0}}):
        with pytest.raises(InputError, match="reads as a derivative of u"):
            Vocabulary(("x",), **words)


def test_formulas_are_understood_once_and_functions_are_those_of_the_call():
    x, y = sympy.symbols("x y")
    formula = 2 * sympy.pi * sympy.Function("f")(x) + sympy.sqrt(2) * y
    for factor in (1.0, 3.0):  # the same formula, other functions, arguments in another order
        given = {x: np.array([1.0, 2.0]), y: np.array(0.5)}
        for values in (given, dict(reversed(given.items()))):
            found = evaluate([formula, y], values, {"f": lambda z, factor=factor: factor * z})
            np.testing.assert_allclose(found[0], 2 * np.pi * factor * given[x] + np.sqrt(2) * 0.5, rtol=1e-15)
            assert found[1] == 0.5
    with pytest.raises(InputError, match="symbol y has no value"):
        evaluate([formula], {x: np.ones(2)}, {"f": np.sin})
    with pytest.raises(InputError, match="f cannot be evaluated"):
        evaluate([formula], {x: np.ones(2), y: np.ones(2)})
