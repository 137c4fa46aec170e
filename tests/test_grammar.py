"""The grammar: what it accepts, where it points when it refuses, and how fast it refuses hostile text."""

from __future__ import annotations

import string
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import draws
from rannpde.errors import InputError
from rannpde.grammar import (
    LENGTH_LIMIT,
    NESTING_LIMIT,
    Binary,
    Name,
    Negative,
    StatementError,
    names,
    parse,
)
from rannpde.pde.statement.build import build
from rannpde.pde.statement.expansion import divergence_form
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

WORDS = Vocabulary(("t", "x", "y"), "t", ("u", "v"), {"nu": 0.1, "m": 2})


def test_precedence_is_that_of_mathematics():
    left, right = parse("-a**2*b + c")
    assert right is None
    assert isinstance(left, Binary)
    assert left.operator == "+"
    product = left.left
    assert isinstance(product, Binary)
    assert isinstance(product.left, Negative)
    assert str(build("-x**2", WORDS)) == "-x**2"
    assert str(build("2**3**2", WORDS)) == "512"
    assert str(build("x^2 - y - t", WORDS)) == "-t + x**2 - y"


@pytest.mark.parametrize("value", [np.float64(1.5), np.float64(-2e-7), np.int64(3), np.float32(0.25)])
def test_numbers_as_numpy_shows_them_are_numbers(value):
    """``f"u = {value!r}"`` holds ``np.float64(1.5)``: the text that a program makes of a number is that number."""
    assert build(f"x*{value!r}", WORDS) == build(f"x*({value.item()!r})", WORDS)
    with pytest.raises(StatementError, match="not np"):
        parse("np.sin(x)")


def test_names_come_in_order_with_columns():
    left, _ = parse("u_t + nu*u_xx")
    assert names(left) == [Name(0, "u_t"), Name(6, "nu"), Name(9, "u_xx")]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("u_t + * 3", 7),
        ("u.x", 2),
        ("u_t = sinn(x)", 7),
        ("u_t = nu * (u_xx", 17),
        ("u_t == 3", 6),
        ("u $ 2", 3),
        ("", 1),
    ],
)
def test_syntax_errors_point_at_the_column(text, column):
    with pytest.raises(StatementError, match=rf"column {column}\)"):
        read(text, WORDS)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("u_t = sinn(x)", "did you mean 'sin'"),
        ("u_t = lapace(u)", "did you mean 'laplace'"),
        ("u_t = tanhh(x)", "did you mean 'tanh'"),
        ("u_t = grad(u)", "vector"),
        ("u_t = sin", "is a function"),
        ("u_t = u(x)", "is a function of t, x, y; write u alone"),
        ("u_t = d(u, z)", "coordinate"),
        ("u_t = sqrt(-1)*u", "complex"),
        ("u_t = 1/0", "division by zero"),
        ("u_t = log(0)", "undefined"),
        ("div([u, v, u])", "components"),
        ("dot(u, v)", "vector"),
        ("u + grad(u)", "vectors are added"),
        ("max(u)", "two or more"),
        ("sin(u, v)", "one argument"),
        ("where(u, 1, 2)", "begins with a comparison"),
        ("where(u < 1, 2)", "two values"),
        ("u_t = u < 1", "first argument of where"),
    ],
)
def test_meaningless_statements_say_why(text, hint):
    with pytest.raises(StatementError, match=hint):
        read(text, WORDS)


ENDLESS = 10.0  # seconds of work: these take at most half of one on an idle machine; unguarded they never end
HOSTILE = {
    "ten megabytes": "u+" * 5_000_000 + "u",
    "tower of powers": "9**9**9**9",
    "power of a power": "((2**60)**60)**60",
    "huge exponent": "u**99999999",
    "deep brackets": "(" * 1000 + "u" + ")" * 1000,
    "deep signs": "-" * 1000 + "u",
    "deep calls": "sin(" * 1000 + "u" + ")" * 1000,
    "deep exponents": "u" + "**u" * 1000,
    "long number": "1" * 1000,
    "attribute": "u.__class__.__mro__",
    "dunder call": "__import__('os')",
    "index": "u[0]",
    "lambda": "(lambda: 0)()",
    "string": "'a'*u",
    "statement": "u; import os",
    "high derivative": "u_" + "x" * 60,
    "exploding derivative": "d(sin(u)*cos(u)*exp(u)*u*v*tanh(u), x, 8)",
    "exploding product": "d(" + "*".join(f"sin({k}*u)" for k in range(1, 300)) + ", x, 3)",
    "huge exponential": "exp(10**6)*u",
    "nested laplace": "laplace(" * 5 + "u**3" + ")" * 5,
    "big float": "1e308*1e308*u",
    "absurd exponent": "1e99999999*u",
    "tower of hyperbolic cosines": "cosh(cosh(cosh(30)))*u",
    "long product of sums": "*".join(f"({k}+u)" for k in range(1, 600)),
    "division by a derivative that vanishes": "x/laplace(1)",
    "nothing over nothing": "u/d(1, x)",
    "many large derivatives": " + ".join(f"laplace(sin(u)*cos(v)*exp({k}*u*v)*tanh(x*u))" for k in range(100)),
    "comparison outside where": "max(u < v, 1)",
    "number that is a surd of a surd": "log(-sqrt(2))*u",
}
QUICK = {
    "nested max": "max(" * 20 + "u" + "".join(f", {k}*x)" for k in range(20)),
    "long max": "max(" + ", ".join(f"sin({k}*x)" for k in range(300)) + ")",
    "numbers that cancel": "max(sin(1)**2 + cos(1)**2 - 1, 0) + u",
    "root of a huge number": "(10**60 + 1)**(1/997)*u",
    "product of many sums": "*".join(f"(x + {k})" for k in range(1, 500)) + "*u",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_refused_quickly(text):
    begin = time.process_time()
    with pytest.raises(InputError):
        read(text, WORDS)
    assert time.process_time() - begin < ENDLESS


@pytest.mark.parametrize("text", QUICK.values(), ids=QUICK.keys())
def test_odd_text_that_means_something_is_read_quickly(text):
    begin = time.process_time()
    expression = read(text, WORDS)
    assert len(expression.partials) == len(expression.jets)
    divergence_form(expression, WORDS)
    assert time.process_time() - begin < ENDLESS


def test_limits_leave_room_for_real_equations():
    long_sum = "u_t = " + " + ".join(f"sin({k}*x)" for k in range(300))
    assert len(long_sum) < LENGTH_LIMIT
    assert len(read(long_sum, WORDS).formula.args) == 300
    depth = NESTING_LIMIT - 2
    assert str(build("(" * depth + "x" + ")" * depth, WORDS)) == "x"


@settings(max_examples=draws(120, 300), deadline=None)
@given(st.text(alphabet=string.printable + "αβ∂²\x00", max_size=40))
def test_any_text_is_read_or_refused_with_our_error(text):
    with suppress(InputError):
        read(text, WORDS)


@settings(max_examples=draws(80, 200), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["u", "u_x", "v_t", "x", "2", "(", ")", "+", "*", "**", "-", "/", "sin(", "d(", ",", "[", "]", "="]
        ),
        max_size=14,
    )
)
def test_any_tokens_are_read_or_refused_with_our_error(tokens):
    with suppress(InputError):
        read(" ".join(tokens), WORDS)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("2u_x = 1", r"2\*u_x"),
        ("u_t = nu u_xx", r"nu\*u_xx"),
        ("(1 + x)u = 0", r"\)\*u"),
        ("u_t = 2(u + 1)", r"2\*\("),
        ("1j*u_t = u_xx", r"1\*i, with complex=True"),
    ],
)
def test_a_product_without_its_sign_is_told_how_to_write_it(text, remedy):
    with pytest.raises(StatementError, match=remedy):
        parse(text)


def test_what_is_no_product_gets_no_such_advice():
    with pytest.raises(StatementError) as caught:
        parse("u_t = 1 = 2")
    assert "product" not in str(caught.value)
