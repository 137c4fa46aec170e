"""Forward sensitivities of time integrations, against differences of the same integrations, for every basis."""

import numpy as np
import pytest

import rannpde as rp
from draws import some
from rannpde.pde.forward_model import ModelRequest
from rannpde.pde.identification import Identify
from rannpde.pde.inverse.unknowns import Unknowns
from rannpde.pde.lines.sensitivities.dependence import ParametricDependence, functions_identifiable, weak_form
from rannpde.pde.monitor import Monitor

HERE = rp.Data(np.array([[0.1, 0.5]]), [1.0], "u")
SQUARE = rp.Data(np.array([[0.01, 0.5, 0.5]]), [1.0], "u")


def moving_wall():
    """Numbers in the equation, the initial values and a boundary value that changes in time."""
    conditions = {
        "start": rp.On("t=0", "u = A*sin(pi*x) + w*x"), "left": rp.On("x=0", "u = 0"),
        "right": rp.On("x=1", "u = w*(1 + sin(t))"), "data": HERE,
    }  # fmt: skip
    unknown = {"k": rp.Unknown(0.1), "A": rp.Unknown(1.3), "w": rp.Unknown(0.4)}
    return rp.Problem("u_t = k*u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, unknown=unknown)


def burgers():
    """Not linear, stated in divergence form: the slope of an unknown number in space is 0."""
    conditions = {"start": rp.On("t=0", "u = -sin(pi*x)"), "walls": rp.On(("x=-1", "x=1"), "u = 0"), "data": HERE}
    unknown = {"a": rp.Unknown(0.8), "nu": rp.Unknown(0.1)}
    equation = "u_t + d(a*u**2/2, x) = nu*u_xx"
    return rp.Problem(equation, rp.SpaceTime(t=(0, 0.5), x=(-1, 1)), conditions, unknown=unknown)


def wave():
    """Of second order in time."""
    conditions = {
        "start": rp.On("t=0", "u = sin(pi*x)"), "speed": rp.On("t=0", "u_t = b*sin(2*pi*x)"),
        "walls": rp.On(("x=0", "x=1"), "u = 0"), "data": HERE,
    }  # fmt: skip
    unknown = {"c": rp.Unknown(0.7), "b": rp.Unknown(0.3)}
    return rp.Problem("u_tt = c*u_xx", rp.SpaceTime(t=(0, 0.7), x=(0, 1)), conditions, unknown=unknown)


def dispersion():
    """Fourier modes."""
    conditions = {"start": rp.On("t=0", "u = cos(pi*x)"), "circle": rp.Periodic("x"), "data": HERE}
    unknown = {"a": rp.Unknown(0.7), "b": rp.Unknown(0.01)}
    domain = rp.SpaceTime(t=(0, 0.2), x=(-1, 1))
    return rp.Problem("u_t + a*u*u_x + b*u_xxx = 0", domain, conditions, unknown=unknown)


def conductivity():
    """An unknown function on a square: products."""
    conditions = {"start": rp.On("t=0", "u = sin(pi*x)*sin(pi*y)"), "walls": rp.On("boundary", "u = 0"), "data": SQUARE}
    unknown = {"a": rp.UnknownFunction(of=("x", "y"), guess="1 + x*y/2", degree=2), "r": rp.Unknown(0.5)}
    domain = rp.SpaceTime(t=(0, 0.02), x=(0, 1), y=(0, 1))
    return rp.Problem("u_t = div(a*grad(u)) - r*u", domain, conditions, unknown=unknown)


def profile():
    """An unknown initial profile and an unknown source, on an interval."""
    conditions = {"start": rp.On("t=0", "u = g*x*(1 - x)"), "walls": rp.On(("x=0", "x=1"), "u = 0"), "data": HERE}
    unknown = {
        "f": rp.UnknownFunction(of=("x",), guess=1.0, degree=2), "g": rp.UnknownFunction(of=("x",), guess=2.0, degree=2)
    }  # fmt: skip
    domain = rp.SpaceTime(t=(0, 0.5), x=(0, 1))
    return rp.Problem("u_t = 0.1*u_xx + f", domain, conditions, unknown=unknown)


@pytest.mark.parametrize("state", some([moving_wall, conductivity, burgers, wave, dispersion, profile], 4))
def test_sensitivities_are_the_derivatives_of_the_solution(state):
    problem, tol = state(), 1e-7 if state is not conductivity else 1e-5
    unknowns = Unknowns(problem, np.random.default_rng(0))
    vector = unknowns.guess + np.where(np.abs(unknowns.guess) > 0, 0.0, 0.03)
    values = unknowns.values(vector)
    solution = Identify(rp.Lines()).solver([problem], Monitor())(problem.at(values), tol, np.random.default_rng(1))
    dependence = ParametricDependence.of(problem, weak=weak_form(solution.function))
    assert dependence.fits(solution.function)
    model = rp.Lines().model(
        ModelRequest(problem, solution, unknowns, vector, tol, np.random.default_rng(2), Monitor())
    )
    assert model is not None
    points = problem.domain.sample(60, rng=2)
    still = (0,) * problem.domain.dim
    found, changes = model.respond(vector).jets(points, still)
    np.testing.assert_allclose(found, solution.function(points), atol=10 * tol * np.abs(found).max())
    for k in range(0, unknowns.count, max(1, unknowns.count // 3)):
        step = 3e-3 * abs(vector[k]) * np.eye(unknowns.count)[k]
        ahead, behind = (model.respond(vector + sign * step).jets(points, still)[0] for sign in (1, -1))
        slope = (ahead - behind) / (2 * step[k])
        # differences: the square of the step, 1e-5 and with dispersion more, and the tolerance in time over the step
        np.testing.assert_allclose(changes[:, k], slope, atol=2e-4 * np.abs(slope).max())


def test_time_derivatives_of_sensitivities_are_those_of_the_sensitivities():
    problem = moving_wall()
    unknowns = Unknowns(problem, np.random.default_rng(0))
    solution = Identify().solver([problem], Monitor())(problem.at({}), 1e-7, np.random.default_rng(1))
    request = ModelRequest(problem, solution, unknowns, unknowns.guess, 1e-7, np.random.default_rng(2), Monitor())
    model = rp.Lines().model(request)
    assert model is not None
    response = model.respond(unknowns.guess)
    points = problem.domain.sample(40, rng=2) * [0.9, 1.0] + [0.05, 0.0]
    step = np.array([1e-4, 0.0])
    ahead, behind = (response.jets(points + sign * step, (0, 0))[1] for sign in (1, -1))
    slope = (ahead - behind) / 2e-4
    np.testing.assert_allclose(response.jets(points, (1, 0))[1], slope, atol=1e-5 * np.abs(slope).max())


def test_what_the_boundary_holds_is_left_to_other_ways():
    """A coefficient of a boundary condition changes the functions of space themselves; one of time, every node."""
    conditions = {
        "start": rp.On("t=0", "u = cos(x)"), "left": rp.On("x=0", "u_x = 0"),
        "right": rp.On("x=1", "u_x = -h*u"), "data": HERE,
    }  # fmt: skip
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    robin = rp.Problem("u_t = u_xx", domain, conditions, unknown={"h": rp.Unknown(0.5)})
    assert ParametricDependence.of(robin, weak=True).changes_boundary_operator
    conditions["right"] = rp.On("x=1", "u = g")
    wall = rp.Problem("u_t = u_xx", domain, conditions, unknown={"g": rp.UnknownFunction(of=("t",))})
    assert not functions_identifiable(wall)
    assert functions_identifiable(conductivity())
    assert functions_identifiable(profile())
