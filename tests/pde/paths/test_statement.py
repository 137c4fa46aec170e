"""Statements about a vector in R^d: words, derivatives, forms, and what is refused."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.paths.euler import EulerProcess
from rannpde.pde.paths.processes import GaussianProcess, LognormalProcess
from rannpde.pde.paths.recognition import process_of
from rannpde.pde.problem.toml import from_table, to_table
from rannpde.pde.statement.vector import evaluate_vector, value_and_gradients
from rannpde.pde.statement.vector_reading import VectorVocabulary, read_vector

WORDS = VectorVocabulary(
    4, parameters={"A": np.arange(16).reshape(4, 4) / 7, "c": [1, 2, 3, 4]},
    functions={"h": lambda x: np.sum(x**3, axis=1)},
)  # fmt: skip
FORMULAS = (
    "norm(x)**2 + x[2]*t", "sum(sin(x)**2)/(1 + dot(c, x)**2)", "max(x) - min(x)", "h(x)*2",
    "where(x[1] < 0.3, exp(x[2]), x[3]**3)", "dot(A*x, x)", "norm(diag(c)*x - 1)", "max(x[1], x[2], 0.1)",
    "erf(sum(x))*atan(x[1])", "dot([x[1], x[2], 1, 2], x)", "abs(x[3])**1.5", "sqrt(1 + norm(A*x))/t",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_gradients_are_those_of_central_differences(text, softness):
    node, points, step = read_vector(text, WORDS), np.random.default_rng(1).normal(size=(5, 4)), 1e-6
    clock = np.full((1, 1), 0.5)

    def value(x):
        return evaluate_vector(node, {"time": clock, "point": x}, softness)[:, 0]

    found = value_and_gradients(node, {"time": clock, "point": points}, ("point",), softness)[1]["point"]
    for k, unit in enumerate(np.eye(4)):
        difference = (value(points + step * unit) - value(points - step * unit)) / (2 * step)
        assert np.allclose(found[:, k], difference, atol=1e-7, rtol=1e-7)  # eps^(2/3) of a central difference


def test_a_soft_minimum_lies_above_the_minimum_and_tends_to_it():
    node, points = read_vector("min(x)", WORDS), np.random.default_rng(0).normal(size=(50, 4))
    hard = evaluate_vector(node, {"point": points})
    soft = [evaluate_vector(node, {"point": points}, softness) for softness in (0.5, 0.05, 0.005)]
    assert all((one >= hard).all() for one in soft)
    assert np.abs(soft[2] - hard).max() <= 0.005 * np.log(4) + 1e-12


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x*x", "dot"), ("x[0]", "count from 1"), ("x[5]", "count from 1 to 4"), ("u_x", "grad"), ("nrom(x)", "norm"),
        ("min(3)", "vector"), ("x + A", "matrix"), ("grad(x)", "field"), ("x", "scalar"), ("1/x", "division"),
        ("trace(A)", "hessian"), ("trace(A*A*hessian(u))", "diag"), ("dot(x)", "2 arguments"), ("y", "unknown"),
        ("x[1.5]", "component"), ("2**x", "exponent"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_told(text, says):
    with pytest.raises(rp.InputError, match=says):
        read_vector(text, WORDS)


def problem(equation, data="u = norm(x)**2", dim=3, **more):
    return rp.Problem(equation, rp.SpaceTime(t=(0, 1), x=rp.Euclidean(dim)), {"t=1": data}, **more)


@pytest.mark.parametrize(
    ("equation", "kind"),
    [
        ("u_t + laplace(u) = 0", GaussianProcess),
        ("2*u_t + laplace(u)/3 - 2*dot(x, grad(u)) = u", GaussianProcess),
        ("u_t + trace(A*hessian(u)) + dot(c, grad(u)) = 0", GaussianProcess),
        ("u_t + trace(diag(x**2)*hessian(u)) + 0.1*dot(x, grad(u)) = 0", LognormalProcess),
        ("u_t + trace(diag(x)*A*diag(x)*hessian(u)) = 0", LognormalProcess),
        ("u_t + trace(diag(1 + x**2)*hessian(u)) = 0", EulerProcess),
        ("u_t + laplace(u) + dot(sin(x), grad(u)) = 0", EulerProcess),
        ("u_t + (1 + t)*laplace(u) = 0", EulerProcess),
    ],
)
def test_the_process_is_recognised(equation, kind):
    matrix = np.array([[2.0, 0.5, 0], [0.5, 1.0, 0], [0, 0, 1.0]])
    stated = problem(equation, parameters={"A": matrix, "c": [1.0, 2.0, 3.0]})
    assert isinstance(process_of(stated.parabolic), kind)


def test_initial_and_terminal_data_are_the_same_problem():
    domain = rp.SpaceTime(t=(1, 3), x=rp.Euclidean(2))
    forward = rp.Problem("u_t = laplace(u) + t*u", domain, {"t=1": "u = sum(x)"}).parabolic
    backward = rp.Problem("u_t + laplace(u) + (4 - t)*u = 0", domain, {"t=3": "u = sum(x)"}).parabolic
    points = np.ones((1, 2))
    for s in (0.0, 0.7, 2.0):
        values = [
            evaluate_vector(form.source, form.known(s, points) | {"field": np.full((1, 1), 2.0)})[0, 0]
            for form in (forward, backward)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-14)


@pytest.mark.parametrize(
    ("equation", "conditions", "says"),
    [
        ("u_t + laplace(u)**2 = 0", {"t=1": "u = 1"}, "linearly"),
        ("u_t + u = 0", {"t=1": "u = sum(x)"}, "second derivative"),
        ("u_t + laplace(u) = 0", {}, "no data"),
        ("u_t + laplace(u) = 0", {"t=0.5": "u = 1"}, "end of the interval"),
        ("u_t + laplace(u) = 0", {"x=0": "u = 1"}, "scalar"),
        ("u_t + laplace(u) = 0", {"t=1": "2*u = 1"}, "itself"),
        ("u_t + laplace(u) = 0", {"t=1": "u = 1", "interior": "u <= 2"}, "payoff"),
        ("laplace(u) = 0", {"t=1": "u = 1"}, "time derivative"),
        ("u*u_t + laplace(u) = 0", {"t=1": "u = 1"}, "linearly"),
        ("u_t + laplace(u) = nosuch(x)", {"t=1": "u = 1"}, "unknown"),
    ],
)
def test_what_is_no_parabolic_problem_is_refused(equation, conditions, says):
    with pytest.raises(rp.InputError, match=says):
        rp.Problem(equation, rp.SpaceTime(t=(0, 1), x=rp.Euclidean(3)), conditions)


def test_backward_diffusion_is_refused():
    stated = rp.Problem("u_t = laplace(u)", rp.SpaceTime(t=(0, 1), x=rp.Euclidean(3)), {"t=1": "u = norm(x)"})
    with pytest.raises(rp.InputError, match="wrong sign"):
        rp.solve(stated, at=0.0)


def test_other_methods_and_other_arguments_are_refused():
    stated = problem("u_t + laplace(u) = 0")
    with pytest.raises(rp.InputError, match=r"R\^d"):
        rp.solve(stated, method=rp.Cells())
    with pytest.raises(rp.InputError, match=r"^at is"):
        rp.solve(stated)
    with pytest.raises(rp.InputError, match="at with shape"):
        rp.solve(stated, at=np.zeros(7))
    with pytest.raises(rp.InputError, match="time of at"):
        rp.solve(stated, at=[1.0, 0, 0, 0])
    with pytest.raises(rp.InputError, match=r"^at is"):
        rp.solve(rp.zoo("heat"), at=0.0)
    with pytest.raises(rp.InputError, match="steps"):
        rp.Paths(steps=3)
    with pytest.raises(rp.InputError, match="dimension"):
        rp.Euclidean(0)


def test_a_problem_goes_into_a_file_and_comes_back():
    stated = problem("u_t + trace(A*hessian(u)) = u**3", parameters={"A": np.eye(3), "k": 2.0})
    again = from_table(to_table(stated))
    assert again.fingerprint == stated.fingerprint
    assert np.array_equal(again.parabolic.words.parameters["A"], np.eye(3))
