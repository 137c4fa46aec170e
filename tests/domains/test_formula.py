"""Formulas of shapes: values, gradients, and what is refused."""

import numpy as np
import pytest
import sympy

from rannpde.domains.shapes.formula import SHAPE_FUNCTIONS, ShapeFormula
from rannpde.errors import InputError
from rannpde.grammar import StatementError
from rannpde.pde.statement.vocabulary import FUNCTIONS as WORDS

POINTS = np.random.default_rng(0).uniform(0.1, 0.9, (50, 2))
EPS = np.finfo(float).eps


def test_shapes_speak_the_language_of_equations():
    without_slope = {"sign", "max", "min", "heaviside"}  # there is nothing to follow a boundary by
    special = {"sinc", "besselj", "bessely", "besseli", "besselk"}  # no shape has asked for them
    assert set(WORDS) - set(SHAPE_FUNCTIONS) == without_slope | special


@pytest.mark.parametrize(
    "text", [*(f"{word}(x*y/2)" for word in SHAPE_FUNCTIONS), "x**y", "x/(1 + y)", "-2^x + pi", "+y - -x"]
)
def test_values_and_gradients_are_those_of_sympy(text):
    value, gradient = ShapeFormula.read(text, ("x", "y")).both(POINTS)
    x, y = sympy.symbols("x y", positive=True)
    known = sympy.sympify(text.replace("^", "**").replace("abs", "Abs"), locals={"x": x, "y": y})
    for found, wanted in zip([value, *gradient.T], [known, known.diff(x), known.diff(y)], strict=True):
        numbers = np.array([float(wanted.subs({x: a, y: b})) for a, b in POINTS])
        assert np.abs(found - numbers).max() <= 100 * EPS * max(1, np.abs(numbers).max())


def test_an_inequality_is_negative_where_it_holds():
    for text in ("x < y", "y > x", "x <= y", "y >= x"):
        value = ShapeFormula.negative_where(text, ("x", "y")).value(POINTS)
        assert ((value < 0) == (POINTS[:, 0] < POINTS[:, 1])).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + w", "the name 'w' is unknown"),
        ("sinn(x)", "did you mean 'sin'"),
        ("sin(x, y)", "takes one argument"),
        ("[x, y]", "numbers, coordinates and functions only"),
        ("where(x < 1, 1, 2)", "unknown in a shape"),
        ("x = y", "no second side"),
        ("x < y", "a comparison stands"),
        ("+".join(["x"] * 2000), "more than 300 terms"),
        ("x" * 6000, "6000 characters"),
        ("__import__(x)", "unknown in a shape"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(text, message):
    with pytest.raises(StatementError, match=message):
        ShapeFormula.read(text, ("x", "y"))


def test_what_is_no_inequality_is_refused():
    for bad in ("x + y", "x < y < 1"):
        with pytest.raises(StatementError):
            ShapeFormula.negative_where(bad, ("x", "y"))
    with pytest.raises(InputError, match="must be text"):
        ShapeFormula.negative_where(3, ("x", "y"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no word of the formulas"):
        ShapeFormula.read("exp", ("exp",))
