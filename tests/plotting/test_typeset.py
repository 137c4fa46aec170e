"""Statements as mathematics: what is written, and that matplotlib sets all of it."""

import re

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde as rp
from rannpde.errors import InputError
from rannpde.grammar import parse
from rannpde.pde.problem.toml import example, examples, from_table
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.zoo import ZOO, zoo
from rannpde.plotting.typeset import as_svg, length, symbol, tex, typeset_equations

WORDS = Vocabulary(("t", "x1", "x2"), "t", ("u", "rho"), {"nu": 0.1, "eps": 1e-3})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rho_t + u*rho_x1 = 0", r"\rho_{t} + u\, \rho_{x_{1}} = 0"),
        ("-eps*u_x1x1 + 2*3*u", r"-\varepsilon\, u_{x_{1}x_{1}} + 2\cdot 3\, u"),
        ("(u + 1)*(u - 1)/2 - (nu - 1)", r"\frac{\left(u + 1\right)\, \left(u - 1\right)}{2} - \left(\nu - 1\right)"),
        ("u**(-1/3) + u_t**2", r"u^{-1/3} + u_{t}^{2}"),
        ("laplace(u**2) = div(grad(u))", r"\Delta \left(u^{2}\right) = \nabla \cdot \left(\nabla u\right)"),
        ("d(u*rho, x1, 2) = dn(u)", r"\partial_{x_{1}x_{1}} \left(u\, \rho\right) = \partial_{n} u"),
        ("1e-4*u - 2.5e3", r"10^{-4}\, u - 2.5 \cdot 10^{3}"),
        ("sqrt(abs(u)) + asin(x1)", r"\sqrt{\left|u\right|} + \arcsin(x_{1})"),
        ("where(t <= 1, u, -u)", r"\left[u\ \mathrm{if}\ t \leq 1,\ \mathrm{else}\ -u\right]"),
        ("dot([u, 1], grad(u))", r"(u,\, 1) \cdot \left(\nabla u\right)"),
        ("max(u, 0, nu)", r"\max(u,\, 0,\, \nu)"),
    ],
)
def test_statements_are_written_as_they_were_stated(text, wanted):
    assert tex(text, WORDS) == wanted
    assert length(wanted) is not None


@pytest.mark.parametrize("name", ["gamma_0", "Re", "k2", "u_max", "lambda", "_hidden", "x_y_z"])
def test_every_name_can_be_set(name):
    assert length(symbol(name)) is not None


@pytest.mark.parametrize("name", [*examples(), *ZOO])
def test_every_shipped_problem_can_be_set(name):
    import tomllib

    if name in examples():
        table = tomllib.loads(example(name))
        table.pop("solve")
        problem = from_table(table)
    else:
        problem = zoo(name)
    for written in typeset_equations(problem).values():
        assert written.count("=") >= 1
        assert length(written) is not None, written


SYMBOLS = st.sampled_from(["u", "u_t", "u_x1", "nu", "x1", "2", "0.5", "1e-3", "pi", "rho_x2x2"])
TERMS = st.recursive(
    SYMBOLS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(st.sampled_from(["sin", "exp", "sqrt", "abs", "laplace"]), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, st.sampled_from(["2", "(1/2)", "(-nu)"])).map(lambda p: f"({p[0]})**{p[1]}"),
        inner.map(lambda p: f"-{p}"),
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@hypothesis.example("(1e-3)**2")
@given(TERMS)
def test_whatever_the_grammar_reads_is_set_with_balanced_brackets(text):
    try:
        parse(text)
    except InputError:
        return
    written = tex(text, WORDS)
    assert written.count(r"\left(") == written.count(r"\right)")
    assert written.count("{") == written.count("}")
    assert length(written) is not None


def test_an_svg_has_ids_of_its_own_and_words():
    first, second = as_svg(r"u_{t}", "u_t < 1"), as_svg(r"\nu", "nu")
    assert 'aria-label="u_t &lt; 1"' in first
    ids = [set(re.findall(r'\bid="([^"]+)"', one)) for one in (first, second)]
    assert not ids[0] & ids[1]
    for one, own in zip((first, second), ids, strict=True):
        assert set(re.findall(r'href="#([^"]+)"', one)) <= own
    assert as_svg(r"\frac{", "broken <") == "<code>broken &lt;</code>"
    assert as_svg(r"\nu", "nu") == second  # the same bytes for the same formula


def test_headings_of_figures_are_typeset():
    problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = sin(x)")})
    figure = rp.solve(problem, tol=1e-6).plot()
    assert figure.get_suptitle() == "$u_{xx} = -u$"
    assert figure.axes[0].get_ylabel() == "$u$"
