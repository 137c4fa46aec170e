"""Vectors, tensors, complex fields and definitions: the components are those that one would write by hand."""

import numpy as np
import pytest
import sympy

import rannpde as rp
from rannpde.errors import InputError
from rannpde.grammar import StatementError
from rannpde.pde.statement.build import build
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.tensor_notation import TensorNotation
from rannpde.pde.statement.vocabulary import Vocabulary

SPACES = {1: ("x",), 2: ("x", "y"), 3: ("x", "y", "z")}


def notation(dim=2, definitions=None, complexes=False, fields=("u", "v"), time=False):
    """u and v are vectors of the dimension of space, p and q scalars."""
    vectors = {name: tuple(f"{name}{k}" for k in range(1, dim + 1)) for name in fields} if dim > 1 else {}
    scalars = [part for parts in vectors.values() for part in parts] + ["p", "q"]
    pairs = {name: (f"{name}_re", f"{name}_im") for name in scalars} if complexes else {}
    names = tuple(part for name in scalars for part in pairs.get(name, (name,)))
    coordinates = (("t",) if time else ()) + SPACES[dim]
    words = Vocabulary(coordinates, "t" if time else None, names, {"lam": 1.5, "mu": 0.7, "k": 3.0})
    return TensorNotation(words, vectors, pairs, definitions or {})


def same(one: str, other: str, words: Vocabulary) -> bool:
    """Whether two statements say the same, after their derivatives are taken."""
    rest = sympy.expand(read(one, words).formula - read(other, words).formula)
    return all(abs(coefficient) < 1e-12 for coefficient in rest.as_coefficients_dict().values())


@pytest.mark.parametrize(
    ("stated", "components"),
    [
        ("grad(p) = u", ["p_x = u1", "p_y = u2"]),
        ("div(u) = p", ["u1_x + u2_y = p"]),
        ("laplace(u) = 0", ["u1_xx + u1_yy = 0", "u2_xx + u2_yy = 0"]),
        ("div(grad(u)) = [1, x]", ["u1_xx + u1_yy = 1", "u2_xx + u2_yy = x"]),
        ("curl(u) = p", ["u2_x - u1_y = p"]),
        ("curl(p) = u", ["p_y = u1", "-p_x = u2"]),
        ("dot(u, v) = 1", ["u1*v1 + u2*v2 = 1"]),
        ("dot(u, grad(p)) = 1", ["u1*p_x + u2*p_y = 1"]),
        ("dot(grad(u), u) = 0", ["u1_x*u1 + u1_y*u2 = 0", "u2_x*u1 + u2_y*u2 = 0"]),
        ("inner(sym(grad(u)), sym(grad(u))) = p", ["u1_x**2 + u2_y**2 + (u1_y + u2_x)**2/2 = p"]),
        ("tr(grad(u)) = p", ["u1_x + u2_y = p"]),
        ("det(grad(u)) = 1", ["u1_x*u2_y - u1_y*u2_x = 1"]),
        ("inner(skew(grad(u)), skew(grad(u))) = 0", ["(u1_y - u2_x)**2/2 = 0"]),
        ("div(outer(u, u)) = 0", ["2*u1*u1_x + u1_y*u2 + u1*u2_y = 0", "u1_x*u2 + u1*u2_x + 2*u2*u2_y = 0"]),
        ("norm(u) = 1", ["sqrt(u1**2 + u2**2) = 1"]),
        ("u = 0", ["u1 = 0", "u2 = 0"]),
        ("u[2] = p", ["u2 = p"]),
        ("u_x = v_y", ["u1_x = v1_y", "u2_x = v2_y"]),
        ("-3*u/2 + 2*v = [p, q]", ["-3*u1/2 + 2*v1 = p", "-3*u2/2 + 2*v2 = q"]),
        ("p*I = transpose(grad(u))", ["p = u1_x", "u2_x = 0", "u1_y = 0", "p = u2_y"]),
        ("where(x < 1, u, v) = 0", ["where(x < 1, u1, v1) = 0", "where(x < 1, u2, v2) = 0"]),
        ("d(u, x, 2) = 0", ["u1_xx = 0", "u2_xx = 0"]),
        ("p - (q - p) = -(p - 2)**2*(-1)", ["2*p - q = (p - 2)**2"]),
    ],
)
def test_components_are_those_written_by_hand(stated, components):
    own = notation()
    found = own.statements(stated)
    if "I = " in stated:
        found = sorted(found, key=lambda text: ("u1_x" in text, text))
        components = sorted(components, key=lambda text: ("u1_x" in text, text))
        pairs = [
            any(same(a, b, own.words) or same(f"-({a.split('=')[0]}) + {a.split('=')[1]}", b, own.words) for a in found)
            for b in components
        ]
        assert all(pairs)
        return
    assert len(found) == len(components)
    for one, other in zip(found, components, strict=True):
        assert same(one, other, own.words), (one, other)


def test_elasticity_in_space_is_the_equation_of_lame():
    own = notation(3, {"eps": "sym(grad(u))", "sigma": "lam*tr(eps)*I + 2*mu*eps"})
    found = own.statements("div(sigma) = 0")
    for k, name in enumerate(SPACES[3]):
        others = " + ".join(f"u{j + 1}_{name}{other}" for j, other in enumerate(SPACES[3]))
        assert same(found[k], f"mu*laplace(u{k + 1}) + (lam + mu)*({others}) = 0", own.words)
    curl = own.statements("curl(curl(u)) = 0")
    for k, name in enumerate(SPACES[3]):
        others = " + ".join(f"u{j + 1}_{name}{other}" for j, other in enumerate(SPACES[3]))
        assert same(curl[k], f"{others} - laplace(u{k + 1}) = 0", own.words)
    with pytest.raises(StatementError, match="says nothing"):
        own.statements("dot(cross(u, v), u) = 0")


def test_divergence_forms_are_kept():
    """A flux stays under its derivative, so that the weak form finds it."""
    own = notation(2, {"sigma": "mu*grad(p)*(1 + p**2)"})
    assert build(own.statements("div(sigma) = 1")[0], own.words).has(sympy.Derivative)
    problem = rp.Problem(
        "div(q) = 1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"}, definitions={"q": "(1 + x)*grad(u)"}
    )
    assert problem.fields == ("u",)
    assert problem.elliptic.__class__.__name__ == "DivergenceSystem"


@pytest.mark.parametrize(
    ("stated", "parts"),
    [
        ("i*p_t = -p_xx", ["-p_im_t = -p_re_xx", "p_re_t = -p_im_xx"]),
        ("p_x = i*k*p", ["p_re_x = -k*p_im", "p_im_x = k*p_re"]),
        ("p = exp(i*k*x)", ["p_re = cos(k*x)", "p_im = sin(k*x)"]),
        ("p = exp((1 + 2*i)*x)", ["p_re = exp(x)*cos(2*x)", "p_im = exp(x)*sin(2*x)"]),
        ("abs(p)**2*p = 0", ["(p_re**2 + p_im**2)*p_re = 0", "(p_re**2 + p_im**2)*p_im = 0"]),
        ("conj(p)*p = 1", ["p_re**2 + p_im**2 = 1"]),
        ("p**2 = 0", ["p_re**2 - p_im**2 = 0", "2*p_re*p_im = 0"]),
        ("1/p = q", ["p_re/(p_re**2 + p_im**2) = q_re", "-p_im/(p_re**2 + p_im**2) = q_im"]),
        ("re(p) = im(q)", ["p_re = q_im"]),
    ],
)
def test_complex_fields_are_two_real_ones(stated, parts):
    own = notation(1, complexes=True, time=True)
    found = own.statements(stated)
    assert len(found) == len(parts)
    for one, other in zip(found, parts, strict=True):
        assert same(one, other, own.words), (one, other)


@pytest.mark.parametrize("seed", range(12))
def test_random_complex_arithmetic_agrees_with_python(seed):
    """A generator of expressions in two complex numbers, evaluated by Python and by the components."""
    rng = np.random.default_rng(seed)
    numbers = {"p": complex(*rng.normal(size=2)), "q": complex(*rng.normal(size=2)), "i": 1j}

    def expression(depth: int) -> tuple[str, complex]:
        if depth == 0:
            name = rng.choice([*numbers, "2", "0.5"])
            return str(name), numbers.get(str(name), complex(float(name)) if name in ("2", "0.5") else 0)
        (a, x), (b, y) = expression(depth - 1), expression(depth - 1)
        operator = rng.choice(["+", "-", "*", "/", "conj", "neg", "square"])
        if operator == "conj":
            return f"conj({a})", np.conj(x)
        if operator == "neg":
            return f"(-({a}))", -x
        if operator == "square":
            return f"({a})**2", x**2
        if operator == "/" and abs(y) < 1e-3:
            operator = "+"
        value = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else 0}[operator]
        return f"({a}) {operator} ({b})", value

    own = notation(1, complexes=True)
    text, value = expression(3)
    real, imaginary = own.formulas(text)
    known = {
        f"{name}_{part}": getattr(numbers[name], attribute)
        for name in "pq"
        for part, attribute in (("re", "real"), ("im", "imag"))
    }
    words = Vocabulary(("x",), None, (), known)
    found = complex(*(float(build(part, words)) for part in (real, imaginary)))
    assert found == pytest.approx(complex(value), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("u + p = 0", "only values of one shape are added"),
        ("u*v = 0", "use dot, inner, outer or cross"),
        ("p/u = 0", "a vector of 2 after /"),
        ("u = p", "both sides must have the same shape"),
        ("div([p, p, p]) = 0", "div of a vector of 3 in 2 space dimensions"),
        ("tr(u) = 0", "a square matrix is needed"),
        ("sin(u) = 0", "a vector of 2 where a number is needed"),
        ("u[3] = 0", r"\[3\] is no component of a vector of 2"),
        ("dot(u, p) = 0", "dot of a vector of 2 and a number"),
        ("cross(u, v) = 0", "a vector of 3 is needed"),
        ("grad(grad(u)) = 0", "the gradient of a matrix"),
        ("w = 0", "the name 'w' is unknown"),
        ("simm(grad(u)) = 0", "the function 'simm' is unknown; did you mean 'sym'|is unknown"),
        ("dot(u) = 0", "dot takes two arguments"),
        ("u**2 = 0", "of a vector write dot"),
    ],
)
def test_wrong_notation_is_answered(stated, told):
    with pytest.raises(StatementError, match=told):
        notation().statements(stated)


def test_definitions_are_checked():
    square = rp.Box(x=(0, 1), y=(0, 1))
    for settings, told in [
        ({"definitions": {"e": "f", "f": "e"}}, "'f' is unknown"),
        ({"fields": {"u": 1}, "definitions": {"u": "grad(u)"}}, "rename it"),
        ({"definitions": {"s": "p = 3"}}, "not an equation"),
        ({"definitions": {"s": 3}}, "must be text"),
        ({"fields": {"u": 0}}, "whole number"),
        ({"fields": {"u": 20}}, "at most 9"),
        ({"complex": 1}, "True or False"),
        ({"fields": {"u": 2}, "exact": {"v": "1"}}, "no field"),
        ({"fields": {"u": 2}, "exact": {"u": ["x"]}}, "2 components"),
    ]:
        stated = "laplace(u) + s*0 = 0" if "s" in settings.get("definitions", {}) else "laplace(u) + e*0 = 0"
        stated = stated if "definitions" in settings else "laplace(u) = 0"
        with pytest.raises(InputError, match=told):
            rp.Problem(stated, square, {"boundary": "u = 0"}, **settings)


# ------------------------------------------------------------------------------------------------- solved


def stresses(**parameters):
    return {"definitions": {"eps": "sym(grad(u))", "sigma": "lam*tr(eps)*I + 2*mu*eps"}, "parameters": parameters}


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_the_patch_test_of_elasticity(scale):
    """A linear displacement is exact for any material: tension in x with free sides."""
    lam, mu = 1.3, 0.6
    young, poisson = mu * (3 * lam + 2 * mu) / (lam + mu), lam / (2 * (lam + mu))
    slope = (1 - poisson**2) / young, -poisson * (1 + poisson) / young  # plane strain
    problem = rp.Problem(
        "div(sigma) = 0", rp.Box(x=(0, 2 * scale), y=(0, scale)),
        {"x=0": "u[1] = 0", "y=0": "u[2] = 0", f"x={2 * scale}": "dot(sigma, n) = [1, 0]",
         "slides": rp.On("x=0", "dot(sigma, n)[2] = 0"), "rolls": rp.On("y=0", "dot(sigma, n)[1] = 0"),
         f"y={scale}": "dot(sigma, n) = 0"},
        fields={"u": 2}, exact={"u": [f"{slope[0]}*x", f"{slope[1]}*y"]}, **stresses(lam=lam, mu=mu),
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-6)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-6
    assert solution["u"](0.1, 0.1).shape == (2,)
    assert solution["u"].derivative("u_x", 0.1, 0.1)[0] == pytest.approx(slope[0], rel=1e-5)
    assert solution.vector == ("u1", "u2")


def test_schroedinger_and_impedance_in_one_line(tmp_path):
    problem = rp.Problem(
        "i*u_t = -u_xx/2", rp.SpaceTime(t=(0, 0.3), x=(0, 1)), {"t=0": "u = sin(pi*x)", "boundary": "u = 0"},
        complex=True, exact={"u": "sin(pi*x)*exp(-i*pi**2*t/2)"},
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-6)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-6
    expected = np.sin(0.3 * np.pi) * np.exp(-0.5j * np.pi**2 * 0.2)
    assert solution["u"](0.2, 0.3) == pytest.approx(expected, abs=1e-6)
    again = rp.load(solution.save(tmp_path / "wave.npz"))
    assert again["u"](0.2, 0.3) == solution["u"](0.2, 0.3)
    assert again.problem.complex
    for wavenumber in (5.0, 23.7):
        problem = rp.Problem(
            "u_xx + k**2*u = 0", rp.Interval(0, 1), {"x=0": "u = 1", "x=1": "dn(u) = i*k*u"}, {"k": wavenumber},
            complex=True, exact={"u": "exp(i*k*x)"},
        )  # fmt: skip
        solution = rp.solve(problem, tol=1e-6)
        assert solution.converged
        assert max(solution.errors().values()) < 1e-6


def test_files_state_vectors_too(tmp_path):
    from rannpde.pde.problem.toml import from_table

    table = {
        "equations": "div(sigma) = [0, 1]", "domain": {"x": [0, 1], "y": [0, 1]}, "fields": {"u": 2},
        "definitions": {"eps": "sym(grad(u))", "sigma": "tr(eps)*I + 2*eps"}, "conditions": {"boundary": "u = 0"},
    }  # fmt: skip
    assert from_table(table).fields == ("u1", "u2")
    assert from_table(table).groups == {"u": ("u1", "u2")}


# ------------------------------------------------------------------------------------------- words and names


@pytest.mark.parametrize(
    "word",
    [
        "besselj(0, 3*x)",
        "besselj(2, x)",
        "bessely(1, x + 1)",
        "besseli(0, x)",
        "besselk(1, x + 1)",
        "sinc(4*x)",
        "sinc(-x)",
    ],
)
def test_special_functions_and_their_derivatives(word):
    mpmath = pytest.importorskip("mpmath")
    words = Vocabulary(("x",))
    from rannpde.pde.functions import Formula

    formula = Formula(read(word, words), words.symbols)
    name, inner = word.split("(", 1)
    order, _, inner = inner[:-1].rpartition(",")
    at = lambda x: {"3*x": 3 * x, "x": x, "x + 1": x + 1, "4*x": 4 * x, "-x": -x}[inner.strip()]  # noqa: E731
    exact = {"sinc": lambda x: mpmath.sinc(at(x))}.get(name) or (lambda x: getattr(mpmath, name)(int(order), at(x)))
    for place in (0.3, 1.7, 6.1):
        point = np.array([[place]])
        for derivative in range(4):
            expected = float(mpmath.diff(exact, place, derivative))
            assert formula.derivative(point, (derivative,))[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if name == "sinc":
        assert formula(np.array([[0.0]]))[0] == 1.0


def test_bessel_functions_solve_their_equation():
    solution = rp.solve(
        rp.Problem("x*u_xx + u_x + x*u = 0", rp.Interval(1, 9), {"boundary": "u = besselj(0, x)"}), tol=1e-8
    )
    from scipy.special import j0

    x = np.linspace(1, 9, 20)
    np.testing.assert_allclose(solution(x), j0(x), atol=1e-7)


def test_a_step_is_a_source():
    problem = rp.Problem("-u_xx = heaviside(x - 1/2)", rp.Interval(0, 1), {"boundary": "u = 0"})
    solution = rp.solve(problem, tol=1e-6)
    x = np.linspace(0, 1, 21)
    expected = x / 8 - np.where(x > 0.5, (x - 0.5) ** 2 / 2, 0)
    np.testing.assert_allclose(solution(x), expected, atol=1e-6)


def test_an_unknown_coordinate_is_called_that():
    with pytest.raises(StatementError, match="'y' in u_y is no coordinate; the coordinates are x"):
        rp.Problem("u_xx + u_y = 0", rp.Interval(0, 1), {"boundary": "u = 0"})
    for word, told in [("besselj(x)", "its order and its argument"), ("besselj(x, 1)", "must be a number")]:
        with pytest.raises(StatementError, match=told):
            rp.Problem(f"u_xx = {word}", rp.Interval(0, 1), {"boundary": "u = 0"})
