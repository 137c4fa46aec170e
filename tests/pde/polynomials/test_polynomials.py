"""Integral equations, integro-differential equations and delays, against closed forms, with random variations."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from scipy.special import beta, erfcx

import rannpde as rp
from draws import draws
from rannpde.errors import InputError
from rannpde.pde.functional_values import FunctionalRule
from rannpde.pde.polynomials.method_of_steps import is_causal
from rannpde.pde.polynomials.space import PiecewiseTensor, PolynomialSpace
from rannpde.pde.polynomials.system import PolynomialSystem
from rannpde.pde.statement.reading import infer_fields, read
from rannpde.pde.statement.vocabulary import Vocabulary

UNIT = rp.Interval(0, 1)


def error(solution):
    return max(solution.errors().values())


def check(problem, tol=1e-9, **settings):
    """Solved to the tolerance, and the truth within it."""
    solution = rp.solve(problem, tol=tol, **settings)
    assert solution.converged
    assert solution.method.name == "polynomials"
    assert error(solution) <= tol
    return solution


# ------------------------------------------------------------------------------------------------- known solutions


def test_fredholm_of_the_second_kind():
    check(rp.Problem("u = x + integral(x*s*u(s), s, 0, 1)", UNIT, exact={"u": "3*x/2"}), 1e-12)


def test_a_kernel_with_a_kink_is_integrated_on_both_sides():
    """u = f + ½ ∫ exp(-|x - s|) u ds with u = exp(x): the integral is exp(x)/2 - exp(-x)/2 + (1 - x) exp(x)."""
    text = "u = exp(x) - (exp(x)/2 - exp(-x)/2 + exp(x)*(1 - x))/2 + integral(exp(-abs(x - s))*u(s), s, 0, 1)/2"
    check(rp.Problem(text, UNIT, exact={"u": "exp(x)"}), 1e-12)


def test_greens_function_as_a_kernel():
    kernel = "where(s < x, s*(1 - x), x*(1 - s))"
    text = f"u = sin(pi*x)/2 + pi**2/2*integral({kernel}*u(s), s, 0, 1)"
    check(rp.Problem(text, UNIT, exact={"u": "sin(pi*x)"}), 1e-11)


def test_volterra_with_an_exponential_kernel():
    problem = rp.Problem("u = 1 + integral(exp(-2*(x-s))*u(s), s, 0, x)", rp.Interval(0, 3), exact={"u": "2 - exp(-x)"})
    assert is_causal(problem)
    check(problem, 1e-11)


def test_abels_equation_has_a_singular_kernel_and_a_singular_solution():
    """u = 2√x - ∫ u(s)/√(x - s) ds has the solution 1 - exp(πx) erfc(√(πx)), a smooth function of √x."""
    exact = {"u": lambda points: 1 - erfcx(np.sqrt(np.pi * points[:, 0]))}
    solution = check(rp.Problem("u = 2*sqrt(x) - integral(u(s)/sqrt(x - s), s, 0, x)", UNIT, exact=exact), 1e-11)
    assert solution.history.iterations[-1].cells == (1,)


@pytest.mark.parametrize("seed", range(draws(2, 6)))
def test_random_weakly_singular_kernels(seed):
    """With k ∫ u(s) (x - s)^-α ds from a and u = (x - a)^β the data are known; position, length, k, α and β vary."""
    rng = np.random.default_rng(seed)
    share, power = [(1 / 2, 1 / 2), (1 / 3, 2 / 3), (1 / 4, 3 / 2), (2 / 3, 1 / 3), (1 / 2, 1.0), (3 / 4, 5 / 4)][seed]
    start, length = rng.uniform(-3, 3), 10 ** rng.uniform(-1, 1)
    factor = rng.uniform(-2, 0.3) / length ** (1 - share)  # larger ones let perturbations grow by many decades
    factor, y = float(factor), f"(x - ({start!r}))"
    tail = f"{float(factor * beta(1 - share, power + 1))!r}*{y}**({power + 1 - share!r})"
    text = f"u = {y}**({power!r}) - {tail} + ({factor!r})*integral(u(s)*(x - s)**(-{share!r}), s, {start!r}, x)"
    domain = rp.Interval(start, start + length)
    check(rp.Problem(text, domain, exact={"u": f"{y}**({power!r})"}), 10.0 ** -rng.integers(3, 8))


def test_abels_equation_of_the_first_kind_and_with_squares():
    check(rp.Problem("integral(u(s)/sqrt(x - s), s, 0, x) = pi*x/2", UNIT, exact={"u": "sqrt(x)"}), 1e-10)
    text = "u = sqrt(x) + 4/3*x**1.5 - integral(u(s)**2/sqrt(x - s), s, 0, x)"
    check(rp.Problem(text, UNIT, exact={"u": "sqrt(x)"}), 1e-10)


def test_a_singularity_inside_a_fredholm_kernel():
    """∫ |x - s|^(-1/2) ds = 2√x + 2√(1 - x): the panels beside x are graded also beyond the next edge of a cell."""
    text = "u = 1 - 0.2*(sqrt(x) + sqrt(1 - x)) + 0.1*integral(u(s)/sqrt(abs(x - s)), s, 0, 1)"
    check(rp.Problem(text, UNIT, exact={"u": "1"}), 1e-7)
    logarithm = "u = 1 - (x*log(x) + (1 - x)*log(1 - x) - 1)/5 + integral(log(abs(x - s))*u(s), s, 0, 1)/5"
    check(rp.Problem(logarithm, UNIT, exact={"u": "1"}), 1e-5)


def test_an_unbounded_solution_is_not_called_converged():
    """∫ u(s)/√(x - s) ds = 1 has the solution 1/(π√x), which is not square integrable."""
    problem = rp.Problem("integral(u(s)/sqrt(x - s), s, 0, x) = 1", UNIT)
    with pytest.warns(rp.ConvergenceWarning):
        assert not rp.solve(problem, tol=1e-2, seconds=2).converged


@pytest.mark.parametrize("power", [1, 2, 3, -2, -5])
def test_derivatives_on_graded_cells(power):
    """x^(3/2) and the like are polynomials in the root, with exact derivatives of every order."""
    edges, root = np.array([0.0, 0.4, 1.0]), 0.0 if power > 0 else 1.0
    roots = (((root, abs(power)),),) if abs(power) > 1 else ((),)
    space = PolynomialSpace((edges,), (9,), roots)
    exponent = 1 + 1 / abs(power)
    function = PiecewiseTensor(space, space.interpolate(lambda points: np.abs(points - root) ** exponent))
    places = np.linspace(0.05, 0.95, 7)[:, None]
    distance, sign = np.abs(places - root), 1.0 if power > 0 else -1.0
    inside = places < 0.4 if power > 0 else places > 0.4
    for order in range(3):
        wanted = sign**order * np.prod([exponent - j for j in range(order)]) * distance ** (exponent - order)
        found = function.derivative(places, (order,))
        np.testing.assert_allclose(found[inside], wanted[inside], rtol=1e-9, atol=1e-9)
    total = space.weights(more=9) @ function(space.nodes(more=9))[:, 0]
    assert total == pytest.approx(1 / (exponent + 1), rel=1e-6)


def test_graded_cells_are_kept_in_files(tmp_path):
    problem = rp.Problem("u = 2*sqrt(x) - integral(u(s)/sqrt(x - s), s, 0, x)", UNIT)
    solution = rp.solve(problem, tol=1e-6)
    places = np.linspace(0, 1, 9)[:, None]
    solution.save(tmp_path / "abel.npz")
    np.testing.assert_allclose(rp.load(tmp_path / "abel.npz")(places), solution(places), atol=1e-6)


def test_delay_by_the_method_of_steps():
    """u' = -u(t - 1), u = 1 before: polynomials between whole numbers."""
    third = "1 - t + (t - 1)**2/2 - where(t < 2, 0, (t - 2)**3/6)"
    exact = {"u": f"where(t < 1, 1 - t, {third})"}
    solution = check(rp.Problem("u_t = -u(t - 1)", rp.Box(t=(0, 3)), {"t <= 0": "u = 1"}, exact=exact), 1e-12)
    assert solution.history.iterations[0].cells == (3,)


def test_neutral_delay_takes_the_derivative_of_the_history():
    """u' = u'(t - 1) with u = t² before: u = u(t - 1) + 2t - 1 + u(0) - u(-1) - … : u = t² again."""
    check(rp.Problem("u_t = u_t(t - 1) + 2", rp.Box(t=(0, 2)), {"t <= 0": "u = t**2"}, exact={"u": "t**2"}), 1e-10)


def test_proportional_delay_needs_no_history():
    """The pantograph equation u' = -u(t/2)² … with u = exp(-t): u(t/2)² = exp(-t)."""
    check(rp.Problem("u_t = -u(t/2)**2", rp.Box(t=(0, 2)), {"t=0": "u = 1"}, exact={"u": "exp(-t)"}), 1e-10)


def test_a_history_that_jumps_at_the_start():
    conditions = {"t < 0": "u = 0", "t=0": "u = 1"}
    exact = {"u": "where(t < 1, 1, 2 - t)"}
    check(rp.Problem("u_t = -u(t - 1)", rp.Box(t=(0, 2)), conditions, exact=exact), 1e-10)


def test_delayed_system_with_both_fields_inferred():
    problem = rp.Problem(
        ["u_t = v(t - pi/2)", "v_t = -v"], rp.Box(t=(0, 1)), {"t <= 0": ["u = 0", "v = exp(-t)"]},
        exact={"u": "exp(pi/2)*(1 - exp(-t))", "v": "exp(-t)"},
    )  # fmt: skip
    assert problem.fields == ("u", "v")
    check(problem, 1e-9)


def test_delay_logistic_agrees_with_small_runge_kutta_steps():
    """Hutchinson's equation, against the classical Runge–Kutta method of steps with Hermite values in between."""
    problem = rp.Problem("u_t = r*u*(1 - u(t - 1))", rp.Box(t=(0, 6)), {"t <= 0": "u = 1/2"}, parameters={"r": 1.4})
    solution = rp.solve(problem, tol=1e-9)
    assert solution.converged
    steps, r = 200, 1.4
    h, values = 1 / steps, [0.5]
    slopes = [r * 0.5 * 0.5]

    def past(k):  # at t_k - 1 and half a step later
        if k < steps:
            return 0.5, 0.5, 0.5
        a, b, fa, fb = values[k - steps], values[k - steps + 1], slopes[k - steps], slopes[k - steps + 1]
        return a, (a + b) / 2 + h * (fa - fb) / 8, b

    for k in range(6 * steps):
        u, (w0, w1, w2) = values[-1], past(k)
        k1 = r * u * (1 - w0)
        k2 = r * (u + h / 2 * k1) * (1 - w1)
        k3 = r * (u + h / 2 * k2) * (1 - w1)
        k4 = r * (u + h * k3) * (1 - w2)
        values.append(u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        slopes.append(r * values[-1] * (1 - w2))
    times = np.arange(6 * steps + 1) * h
    assert np.abs(solution(times[:, None]) - values).max() < 10 * h**4  # the order of the comparison


def test_hammerstein_has_two_solutions_and_a_guess_chooses():
    """u = exp(x) + c x with c = 2c + c²/3: c = 0 and c = -3."""
    text = "u = exp(x) - x*(exp(2) - 1)/2 + integral(x*u(s)**2, s, 0, 1)"
    for constant in (0, -3):
        exact = f"exp(x) + {constant}*x"
        method = rp.Polynomials(guess={"u": f"1.1*({exact})"})
        check(rp.Problem(text.replace("exp(2) - 1", f"({float(np.e**2 - 1)!r})"), UNIT, exact={"u": exact}), 1e-10,
              method=method)  # fmt: skip


def test_a_mean_as_the_gauge_of_a_neumann_problem():
    conditions = {"x=0": "u_x = 1/2", "x=1": "u_x = -1/2", "mean": "integral(u, x, 0, 1) = 1"}
    check(rp.Problem("u_xx = -1", UNIT, conditions, exact={"u": "x*(1 - x)/2 + 11/12"}), 1e-11)


def test_a_gauge_in_the_plane_and_a_value_at_a_point():
    square = rp.Box(x=(0, 1), y=(0, 1))
    exact = {"u": "cos(pi*x)*cos(pi*y)/(2*pi**2)"}
    for gauge in ("integral(u) = 0", "u(1/4, 1/4) = 1/(4*pi**2)"):
        conditions = {"boundary": "dn(u) = 0", "gauge": gauge}
        check(rp.Problem("-laplace(u) = cos(pi*x)*cos(pi*y)", square, conditions, exact=exact), 1e-6)


def test_integral_over_space_in_an_evolution_equation():
    domain = rp.SpaceTime(t=(0, 0.3), x=(0, 1))
    text = "u_t = u_xx + integral(u(t, s), s, 0, 1) - 2/pi*exp(-pi**2*t)"
    conditions = {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}
    check(rp.Problem(text, domain, conditions, exact={"u": "exp(-pi**2*t)*sin(pi*x)"}), 1e-5)


def test_memory_in_time_is_the_system_with_one_more_field():
    """w = ∫ exp(-(t - s)) u ds obeys w' = u - w: the same problem without an integral."""
    times, conditions = rp.Box(t=(0, 3)), {"t=0": "u = 1"}
    memory = rp.solve(rp.Problem("u_t = -integral(exp(-(t - s))*u(s), s, 0, t)", times, conditions), tol=1e-9)
    system = rp.Problem(["u_t = -w", "w_t = u - w"], times, {"t=0": ["u = 1", "w = 0"]})
    other = rp.solve(system, tol=1e-9)
    points = np.linspace(0, 3, 50)[:, None]
    assert np.abs(memory(points) - other(points)[:, 0]).max() < 1e-7


def test_periodic_convolution():
    """∫ cos(s) cos(x - s) ds over a period is π cos(x)."""
    circle = rp.Interval(0, 2 * np.pi)
    text = "u = cos(x) - integral(cos(s)*u(x - s), s, 0, 2*pi)/pi"
    check(rp.Problem(text, circle, {"x": "periodic"}, exact={"u": "cos(x)/2"}), 1e-9)


# ------------------------------------------------------------------------------------------------ random variations


@pytest.mark.parametrize("seed", range(draws(2, 9)))
def test_manufactured_integral_equations(seed):
    """Random smooth solutions, kernels, limits and units: what the solution leaves of the integral is the source."""
    rng = np.random.default_rng(seed)
    start, length = rng.uniform(-3, 3), 10.0 ** rng.uniform(-1, 1)
    a, w, b = rng.uniform(0.5, 2), rng.uniform(0.5, 3) / length, rng.uniform(-1, 1)
    scale = 10.0 ** rng.uniform(-3, 3)
    x, s = sympy.symbols("x s", real=True)
    exact = scale * (a + sympy.sin(w * (x - start)) + b * (x - start) / length)
    lower = sympy.Float(start)
    upper = [sympy.Float(start + length), x][seed % 2]
    kernel = [sympy.exp((s - x) / length), (x + s - 2 * start) / length**2, sympy.cos(w * (x - s))][seed % 3] / length
    power = 1 if seed % 4 else 2
    whole = sympy.integrate(sympy.expand(kernel * (exact.subs(x, s) / scale) ** power), (s, lower, upper))
    u = sympy.Function("u")
    strength = rng.uniform(0.05, 0.2) * scale / scale**power
    source = exact - strength * scale**power * whole
    statement = sympy.Eq(u(x), source + strength * sympy.Integral(kernel * u(s) ** power, (s, lower, upper)))
    problem = rp.Problem(statement, rp.Interval(start, start + length), exact={"u": exact})
    guess = {"u": str(sympy.N(exact))} if power == 2 else {}
    check(problem, [1e-2, 1e-6, 1e-9][seed % 3], method=rp.Polynomials(guess=guess))


@pytest.mark.parametrize("seed", range(draws(2, 8)))
def test_delays_of_any_length(seed):
    """u' = -k u(t - τ) + what makes u = cos(ω t) a solution, for random delays, units and starts."""
    rng = np.random.default_rng(seed)
    start, length = rng.uniform(-5, 5), 10.0 ** rng.uniform(-1, 1)
    parameters = {
        "k": rng.uniform(-2, 2) / length, "w": rng.uniform(1, 4) / length, "tau": length * rng.uniform(0.15, 1.5)
    }  # fmt: skip
    text = "u_t = -k*u(t - tau) - w*sin(w*t) + k*cos(w*(t - tau))"
    conditions = {f"t <= {start!r}": "u = cos(w*t)"}
    domain = rp.Box(t=(start, start + length))
    problem = rp.Problem(text, domain, conditions, parameters=parameters, exact={"u": "cos(w*t)"})
    check(problem, [1e-2, 1e-6, 1e-9][seed % 3])


# --------------------------------------------------------------------------------- what cannot be solved is not called


def test_a_resonance_is_not_determined():
    """λ = π² is an eigenvalue of Green's function; 1 is not orthogonal to sin(πx)."""
    problem = rp.Problem("u = 1 + pi**2*integral(where(s < x, s*(1 - x), x*(1 - s))*u(s), s, 0, 1)", UNIT)
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-6)
    assert solution.status is rp.Status.UNDETERMINED


def test_an_equation_of_the_first_kind_is_not_determined():
    problem = rp.Problem("integral(exp(x*s)*u(s), s, 0, 1) = (exp(x + 1) - 1)/(x + 1)", UNIT, fields="u")
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-6)
    assert solution.status is rp.Status.UNDETERMINED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("u_t = -u(t - 1)", rp.Box(t=(0, 3)), {"t=0": "u = 1"}), r"u\(t - 1\) asks for u at t = -.*'t <= 0'"),
        (("u_t = -u(t - 1)", rp.Box(t=(0, 3)), {"t <= 1": "u = 1"}), "'t <= 0' for values outside"),
        (("u_t = -u(t - u)", rp.Box(t=(0, 3)), {"t <= 0": "u = 1"}), "argument .* depends on u"),
        (("u_t = -u", rp.Box(t=(0, 3)), {"t <= 0": "u = 1"}), "no equation has an integral or a value there"),
        (("u_t = u(t-1)", rp.Box(t=(0, 3)), {"t <= 0": "u_t = 1"}), "must give a field outside the domain"),
        (("u = 1 + integral(u(s), u, 0, x)", UNIT), "a name that is free"),
        (("u = 1 + integral(u(s), s)", UNIT), r"write integral\(expression, variable, from, to\)"),
        (("u = 1 + integral(u(s), s, 0, u)", UNIT), "limit u .* depends on u"),
        (("u = 1 + integral(k(x, s)*u(s), s, 0, 1)", UNIT), "the function 'k' is unknown"),
        (("u = 1 + u(x, 1)", UNIT), "u is a function of x"),
        (("d(integral(u(s), s, 0, x), x) = u_x", UNIT, {"x=0": "u = 1"}), "derivative of .* cannot be computed"),
        (("u = log(u - 5) + integral(u(s), s, 0, 1)", UNIT), "not finite at the first guess"),
        (
            ("laplace(u) = integral(u(s, y), s, 0, 1)", rp.Ball((0, 0), 1), {"boundary": "u = 0"}),
            "intervals and boxes only",
        ),
        (
            ("laplace(u) = mean(u)", rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)), {"boundary": "u = 0"}),
            "one or two coordinates",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_stated_or_solved_is_refused_by_name(arguments, message):
    with pytest.raises(InputError, match=message):
        rp.solve(rp.Problem(*arguments), tol=1e-4)


def test_other_methods_refuse_and_this_one_refuses_others():
    with pytest.raises(InputError, match=r"not by cells: it contains integral.*rp\.Polynomials"):
        rp.solve(rp.Problem("u = x + integral(u(s), s, 0, 1)/2", UNIT), method="cells")
    with pytest.raises(InputError, match="neither integrals of fields nor"):
        rp.solve(rp.Problem("u_xx = u", UNIT, {"boundary": "u = 1"}), method="polynomials")
    with pytest.raises(InputError, match="guess"):
        rp.solve(rp.Problem("u = x + integral(u(s), s, 0, 1)/2", UNIT), method=rp.Polynomials(guess={"v": "1"}))


# ---------------------------------------------------------------------------------------------------------- the parts


def test_fields_are_found_where_they_are_called():
    words = Vocabulary(("x",))
    assert infer_fields(["u = exp(x) + integral(x*s*u(s), s, 0, 1)"], words) == ("u",)
    assert infer_fields(["u = u(x/2) + 1"], words) == ("u",)


def test_integrals_in_a_coordinate_bind_it():
    words = Vocabulary(("x",), None, ("u",))
    assert read("u = x*integral(x*u, x, 0, 1)", words).functionals.keys() == {"functional_1"}
    one = read("u = x*integral(x*u, x, 0, 1)", words)
    assert one.functionals["functional_1"].depends == frozenset()
    assert one.linear
    assert not read("u = integral(u*u(s), s, 0, 1)", words).linear


def test_the_jacobian_is_that_of_the_residual():
    problem = rp.Problem(
        ["u_t = -u(t - 1)*v + integral(exp(t - s)*u(s)**2*v(s), s, 0, t)", "v_t = mean(u**2)*v - u(t/3)"],
        rp.Box(t=(0, 2)), {"t <= 0": ["u = cos(t)", "v = 1"], "whole": "integral(u*v, t, 0, 2) = 1"},
        incomplete=True,
    )  # fmt: skip
    edges = np.array([0.0, 1.0, 2.0])
    space = PolynomialSpace((edges,), (5,))
    rule = FunctionalRule(problem.surroundings, (tuple(edges),), 12, {})
    system = PolynomialSystem(problem, space, rule)
    rng = np.random.default_rng(0)
    at, along = rng.normal(size=(2, 2, space.size))
    step = 1e-5
    residual, jacobian = system.linearise(at)
    assert np.allclose(residual, system.residual(at), atol=1e-12)
    slope = (system.residual(at + step * along) - system.residual(at - step * along)) / (2 * step)
    assert np.allclose(jacobian @ along.ravel(), slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())


def test_space_interpolates_and_differentiates_its_own_functions():
    space = PolynomialSpace((np.array([0.0, 0.3, 1.0]), np.array([-1.0, 2.0])), (6, 5))
    rng = np.random.default_rng(1)
    function = PiecewiseTensor(space, rng.normal(size=(2, space.size)))
    assert np.allclose(space.interpolate(function), function.coefficients, atol=1e-12)
    points, step = np.array([[0.2, 0.5], [0.7, 1.1]]), 1e-6
    shift = np.array([step, 0.0])
    slope = (function(points + shift) - function(points - shift)) / (2 * step)
    assert np.allclose(function.derivative(points, (1, 0)), slope, rtol=1e-6)


def test_the_solution_is_saved_and_its_residual_is_that_of_the_equation(tmp_path):
    problem = rp.Problem("u = x + integral(x*s*u(s), s, 0, 1)", UNIT, exact={"u": "3*x/2"})
    solution = rp.solve(problem, tol=1e-10)
    solution.save(tmp_path / "integral.npz")
    again = rp.load(tmp_path / "integral.npz")
    points = UNIT.sample(20, rng=0)
    assert np.array_equal(again(points), solution(points))
    assert "polynomials" in again.report()
    assert np.abs(solution.residual(points)["equation"]).max() < 1e-12
    assert np.abs(problem.residual(problem.exact_solution, points)["equation"]).max() < 1e-12
    assert r"\int_{0}^{1}" in problem._repr_latex_()


def test_time_limit_gives_back_what_there_is():
    text = "u_t = 2*u(t - 2)/(1 + u(t - 2)**9) - u"
    problem = rp.Problem(text, rp.Box(t=(0, 400)), {"t <= 0": "u = 1/2"})
    with pytest.warns(rp.ConvergenceWarning):
        assert not rp.solve(problem, tol=1e-10, seconds=0.5).converged


@pytest.mark.slow
def test_a_rate_of_a_delay_equation_is_identified():
    times = np.linspace(0.2, 2.5, 12)[:, None]
    truth = rp.solve(rp.Problem("u_t = -0.8*u(t - 1)", rp.Box(t=(0, 3)), {"t <= 0": "u = 1"}), tol=1e-8)
    data = rp.Data(times, truth(times) + 1e-3 * np.random.default_rng(0).normal(size=12), "u")
    found = rp.solve(
        rp.Problem("u_t = -k*u(t - 1)", rp.Box(t=(0, 3)), {"t <= 0": "u = 1", "data": data},
                   unknown={"k": rp.Unknown(guess=0.5)}), tol=1e-5,
    )  # fmt: skip
    assert abs(found.parameters["k"].value - 0.8) < 5 * found.parameters["k"].std
