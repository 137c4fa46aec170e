"""Any statement is read or refused with our error, within a budget of work, and what was read can be evaluated."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.watch import fuzzing, report, watchdog
from rannpde.errors import InputError
from rannpde.pde.problem.conditions import On
from rannpde.pde.statement.expansion import divergence_form
from rannpde.pde.statement.reading import infer_fields, read
from rannpde.pde.statement.vocabulary import FUNCTIONS, Vocabulary
from rannpde.pde.zoo import ZOO, zoo

WORDS = Vocabulary(
    ("t", "x", "y"), "t", ("u", "v"), {"nu": 0.1, "m": 3, "zero": 0, "huge": 1e150}, {"f": lambda x: np.cos(x)}
)
TALLY: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def tally():
    corpus()  # not while an example is drawn, which must be quick
    yield
    report(TALLY)


def judge(text: str) -> None:
    TALLY["tried"] += 1
    with watchdog(text):
        try:
            infer_fields([text], WORDS)
            expression = read(text, WORDS)
            form = divergence_form(expression, WORDS)
            parts = [expression, form.source, *form.flux.values()]
            known = {symbol: np.linspace(0.1, 0.9, 5) for symbol in WORDS.symbols}
            for part in parts:
                known |= {s: np.ones(5) for s in part.formula.free_symbols if s.name.startswith("normal ")}
                value, slopes = part.linearised(known, {jet: np.linspace(-1, 1, 5) for jet in part.jets})
                assert all(array.dtype == float and array.shape in ((), (5,)) for array in (value, *slopes))
                assert isinstance(part.linear, bool)
        except InputError:
            TALLY["refused"] += 1
            return
    TALLY["evaluated"] += 1


# ------------------------------------------------------------------------------------------ grown by the grammar

NUMBERS = ["0", "1", "2", "3", "1/2", "0.1", "7.5e3", "1e-300", "1e300", "1e150", "99999999", "64", "997", "-1", "pi"]
LEAVES = ["u", "v", "u_x", "u_t", "v_xy", "u_xxyy", "x", "y", "t", "nu", "m", "zero", "huge", *NUMBERS]
SCALAR = [*sorted(set(FUNCTIONS) - {"max", "min"}), "laplace", "dn", "f"]
CALLS = [*SCALAR, "max", "min", "grad", "div", "d", "dot"]
FORMS = [
    *["({0}) + {1}", "({0}) - ({1})", "({0})*({1})", "({0})/({1})", "({0})**({1})", "({0})^2", "-({0})"],
    *["max({0}, {1})", "min({0}, {1}, {2})", "where({0} < {1}, {2}, {3})", "where({0} >= {1}, {2}, {3})"],
    *["d({0}, x)", "d({0}, x, 2)", "d({0}, x, y)", "d({0}, t)", "div([{0}, {1}])", "div(({0})*grad({1}))"],
    *["dot(grad({0}), grad({1}))", "dot([{0}, {1}], [{2}, {3}])", "[{0}, {1}]", "({0})*({1})*({2})*({3})"],
    *[f"{name}({{0}})" for name in SCALAR],
]


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(FORMS), inner, inner, inner, inner)


GROWN = st.recursive(st.sampled_from(LEAVES), _grow, max_leaves=25)


@fuzzing(0.4)
@given(GROWN, st.none() | GROWN)
@example("max(sin(1)**2 + cos(1)**2 - 1, 0)", None)
@example("cosh(cosh(cosh(30)))", None)
@example("x/laplace(1)", "u")
@example("(10**60)**(1/997)", "u")
def test_grown_statements(left, right):
    judge(left if right is None else f"{left} = {right}")


# ------------------------------------------------------------------------------------------------- mutated from real


@cache
def corpus() -> list[str]:
    """Statements of the zoo, not made when tests are collected."""
    found = []
    for name in ZOO:
        problem = zoo(name)
        found += [*problem.equations.values(), *problem.exact.values()]
        found += [c.equation for c in problem.conditions.values() if isinstance(c, On)]
    return sorted({text for text in found if isinstance(text, str)} | set(LEAVES))


TOKENS = [
    *LEAVES,
    *(f"{name}(" for name in CALLS),
    "where(",
    *"()[],=<>+-*/^.",
    "**",
    "1e99999999",
    "__class__",
    "'",
    "\0",
    "∂",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(corpus()))
    for _ in range(draw(st.integers(1, 3))):
        places = st.integers(0, len(text))
        start, end = sorted((draw(places), draw(places)))
        kind = draw(st.sampled_from(["insert", "replace", "delete", "repeat", "wrap", "splice"]))
        if kind == "insert":
            text = text[:start] + draw(st.sampled_from(TOKENS)) + text[start:]
        elif kind == "replace":
            text = text[:start] + draw(st.sampled_from(TOKENS)) + text[min(end, start + 3) :]
        elif kind == "delete":
            text = text[:start] + text[min(end, start + 5) :]
        elif kind == "repeat":
            text = text[:start] + (text[start:end] * draw(st.integers(2, 40)))[:6000] + text[end:]
        elif kind == "wrap":
            call = draw(st.sampled_from(CALLS))
            text = text[:start] + f"{call}({text[start:end]})" + text[end:]
        else:
            text = text[:start] + draw(st.sampled_from(corpus())) + text[end:]
    return text


@fuzzing(0.4)
@given(mutated())
def test_mutated_statements(text):
    judge(text)


@fuzzing(0.2)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join) | st.text(max_size=40))
def test_heaps_of_tokens(text):
    judge(text)
