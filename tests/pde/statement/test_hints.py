"""What people write who come from textbooks, NumPy and other tools, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import InputError

LINE, SQUARE, STRIP = rp.Interval(0, 1), rp.Box(x=(0, 1), y=(0, 1)), rp.SpaceTime(t=(0, 1), x=(0, 1))
ZERO = {"boundary": "u = 0"}
START = {"t=0": "u = 1", **ZERO}

MISTAKES = {
    "unknown coordinate": (("u_xx + u_y = 0", LINE, ZERO), "'y' in u_y is no coordinate; the coordinates are x"),
    "time without time": (("u_t = u_xx", LINE, ZERO), "'t' in u_t is no coordinate"),
    "quotient": (("du/dt = u_xx", STRIP, START), "derivatives are written u_t, u_x"),
    "second quotient": (("d2u/dx2 = 1", LINE, ZERO), "derivatives are written u_x, u_xx"),
    "normal derivative": (("laplace(u) = 1", SQUARE, {"boundary": "du/dn = 0"}), r"the normal dn\(u\)"),
    "no underscore": (("uxx = u_x", LINE, ZERO), "a derivative is written u_xx"),
    "product": (("u_xx = 2u", LINE, ZERO), r"a product is written with \*, as 2\*u"),
    "function without brackets": (("u_xx = sin x", LINE, ZERO), r"a function sin\(x\)"),
    "two equals signs": (("u_xx == 1", LINE, ZERO), "an equation has one '='"),
    "laplacian": (("laplacian(u) = 1", SQUARE, ZERO), "did you mean 'laplace'"),
    "delta": (("Δu + u_x = 1", SQUARE, ZERO), r"write laplace\(u\)"),
    "nabla": (("∇²u = 1", SQUARE, ZERO), r"write grad\(u\), div\(…\) or laplace\(u\)"),
    "NumPy": (("u_xx = np.sin(x)", LINE, ZERO), r"write sin\(x\), not np.sin"),
    "ln": (("u_xx = ln(x + 1)", LINE, ZERO), "did you mean 'log'"),
    "pi": (("u_xx = sin(π*x)", LINE, ZERO), "did you mean 'pi'"),
    "parameter": (("u_t = D*u_xx", STRIP, START), r"parameters=\{'D': …\}; known: pi, t, u, x, and functions"),
    "own function": (("u_xx = load(x)", LINE, ZERO), r"functions=\{'load': …\}"),
    "value for a condition": (("u_xx = 1", LINE, {"x=0": 0, "x=1": 0}), "a value is an equation: 'u = 0'"),
    "function for a condition": (("u_xx = 1", LINE, {"x=0": np.sin, "x=1": "u = 0"}), "'u = g\\(x\\)'"),
    "side by another name": (("u_xx = 1", LINE, {"left": "u = 0"}), "known: boundary, x=0, x=1"),
    "side elsewhere": (("u_xx = 1", LINE, {"x=2": "u = 0"}), "x goes from 0 to 1"),
    "no condition": (("u_xx = 1", LINE), "has 0 condition"),
    "no initial value": (("u_t = u_xx", STRIP, ZERO), "has 0 initial condition"),
    "list of conditions": (("u_xx = 1", LINE, ["u(0) = 0"]), 'e.g. {"boundary": "u = 0"}'),
    "a pair for an interval": (("u_xx = 1", (0, 1), ZERO), r"e.g. rp.Interval\(0, 1\)"),
    "text for a number": (("u_xx = k", LINE, ZERO, {"k": "3"}), "must be a finite number"),
    "two equations": ((["u_xx = 1", "u_xx = 2"], LINE, ZERO), "2 equations for 1 fields"),
    "open bracket": (("u_xx = (1 + x", LINE, ZERO), "expected '\\)'"),
    "complex number": (("1j*u_t = u_xx", STRIP, START), "the imaginary unit is i"),
    "wrong size": (("-laplace(u) = [1, 2, 3]", SQUARE, ZERO, {}, {"u": 2}), "both sides must have the same shape"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_typical_mistakes_are_answered_with_what_to_write(name):
    arguments, told = MISTAKES[name]
    more = {"fields": arguments[4]} if len(arguments) > 4 else {}
    with pytest.raises(InputError, match=told):
        rp.Problem(*arguments[:4], **more)


@pytest.mark.parametrize("name", ["unknown coordinate", "parameter", "quotient", "pi"])
def test_messages_are_short(name):
    """They list the names of the problem, not all words of the language."""
    with pytest.raises(InputError) as caught:
        rp.Problem(*MISTAKES[name][0])
    assert len(str(caught.value).splitlines()[0]) < 150
