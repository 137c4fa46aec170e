"""Parts of the method of lines: the evolution form, boundary rows, bases, projections, Fourier modes."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.domains import Interval, SpaceTime
from rannpde.network.features import RandomFeatures
from rannpde.pde.lines.comparison import Strata
from rannpde.pde.lines.features.basis import build_basis
from rannpde.pde.lines.features.galerkin import Galerkin
from rannpde.pde.lines.features.resolution import from_data
from rannpde.pde.lines.fourier.equations import Equations
from rannpde.pde.lines.fourier.modes import FourierBasis
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.problem.conditions import On, Periodic
from rannpde.pde.problem.evolution import Component, NotAnEvolution, constraints_of, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import held_out_residual, held_out_residuals, mean_squares
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

EPS = np.finfo(float).eps
LINE = SpaceTime(t=(0, 1), x=(-1, 1))
ENDS = On(("x=-1", "x=1"), "u = 0")


def start(formula: str = "u = sin(pi*x)") -> On:
    return On("t=0", formula)


def discretised(problem: Problem, *, weak: bool = True, width: int = 80, cutoff: float = 1e-9) -> Galerkin:
    """A Galerkin system with features fit for a smooth solution."""
    evolution = evolution_form(problem, weak=weak)
    space = evolution.domain.space
    resolution = from_data(evolution, LinesTuning())
    rule = resolution.rule(boundary=weak)
    features = RandomFeatures.sample(width=width, dim=space.dim, law=resolution.law(), rng=0, constant=True)
    options = {"cutoff": cutoff, "boundary_cutoff": 1e-12, "boundary_points": 10}
    bases = {n: build_basis(features, rule, evolution, n, **options) for n in evolution.orders}
    return Galerkin(evolution, bases, dict.fromkeys(evolution.components, 1.0))


# ------------------------------------------------------------------------------------------------ evolution form


def test_divergence_form_is_kept_and_the_strong_form_is_the_same_equation():
    problem = Problem("u_t = laplace(u**2) + u", LINE, {"start": start(), "ends": ENDS})
    weak, strong = evolution_form(problem).rates["u"], evolution_form(problem, weak=False).rates["u"]
    assert str(weak.source.formula) == "u"
    assert str(weak.flux[0].formula) == "-2*u*u_x"
    assert not strong.flux
    assert str(strong.source.formula.expand()) == "2*u*u_xx + u + 2*u_x**2"


def test_second_order_in_time_has_two_components():
    problem = Problem("2*u_tt + u_t = u_xx", LINE, {"a": start(), "b": On("t=0", "u_t = 0"), "ends": ENDS})
    evolution = evolution_form(problem)
    assert evolution.components == (Component("u", 0), Component("u", 1))
    assert str(evolution.rates["u"].source.formula) == "-u_t/2"


def test_coupled_time_derivatives_are_solved_for():
    """ρ_t + (ρu)_x = 0, (ρu)_t + … = 0: the second equation holds both derivatives."""
    evolution = evolution_form(zoo("navier_stokes_eulerian"))
    assert set(evolution.rates) == {"rho", "u"}
    assert all(jet.index[0] == 0 for jet in evolution.jets)
    points = evolution.problem.domain.sample(30, rng=0)
    exact = evolution.problem.exact_solution
    for number, (name, rate) in enumerate(evolution.rates.items()):
        from rannpde.pde.residual import jets_of
        from rannpde.pde.statement.vocabulary import coordinate_symbol

        jets = jets_of(exact, evolution.problem.fields, points, rate.source.jets)
        known = {coordinate_symbol("t"): points[:, 0], coordinate_symbol("x"): points[:, 1]}
        wanted = exact.derivative(points, (1, 0))[:, number]
        assert rate.source.value(known, jets) == pytest.approx(wanted, abs=1e-11), name


def test_bounds_enter_the_rates():
    problem = Problem("u_t = laplace(u**2)", LINE, {"a": start("u = 1 - x**2"), "ends": ENDS}, bounds={"u": (0, 3)})
    flux = evolution_form(problem).rates["u"].flux[0]
    assert str(flux.formula) == "-2*u_x*min(max(u, 0), 3)"


@pytest.mark.parametrize(
    ("equations", "conditions", "message"),
    [
        (["u_t = v_x", "v_xx = u"], {"a": start(), "v": On(("x=-1", "x=1"), "v = 0")}, "'v'"),
        ("u_ttt = u_xx", {"ends": ENDS}, "order 3"),
        ("u_t**2 = u_xx", {"a": start(), "ends": ENDS}, "not linear"),
        ("u_txx = u_t + u", {"a": start(), "ends": ENDS}, "u_txx"),
        ("u_t = u_xx", {"a": start(), "ends": ENDS, "in": On("t=0.5", "u = 0")}, "'in'"),
        ("u_t = u_xx", {"a": On("t=0", "u + u_x = 0"), "ends": ENDS}, "'a'"),
        (["u_t + v_t = u_x", "u_t + v_t = v_x"], {"a": start(), "b": On("t=0", "v = 0")}, "determine"),
    ],
)
def test_what_does_not_evolve_is_refused_by_name(equations, conditions, message):
    problem = Problem(
        equations, LINE, conditions, fields=("u", "v") if len(equations) == 2 else ("u",), incomplete=True
    )
    with pytest.raises(NotAnEvolution, match=message):
        evolution_form(problem)


def test_no_time_is_refused():
    with pytest.raises(NotAnEvolution, match="no time"):
        evolution_form(Problem("u_xx = u", Interval(0, 1), {"ends": On(("x=0", "x=1"), "u = 0")}))


@pytest.mark.parametrize(
    ("condition", "message"),
    [("u**2 = 1", "linear"), ("u + u_t = 0", "time derivative"), ("(1 + t)*u = 0", "changes in time")],
)
def test_boundary_conditions_that_do_not_fit_are_refused(condition, message):
    problem = Problem("u_t = u_xx", LINE, {"a": start(), "left": On(("x=-1", "x=1"), condition)})
    with pytest.raises(NotAnEvolution, match=message):
        evolution_form(problem)


def test_every_reason_is_told_at_once():
    conditions = {"a": start(), "ends": On("boundary", "u**2 = 1"), "in": On("t=0.5", "u = 0")}
    problem = Problem("u_tt = u_xx", LINE, conditions, incomplete=True)
    reasons = problem.obstacles
    assert len(reasons) == 3
    for part in ("'ends'", "'in'", "the time derivative of 'u'"):
        assert any(part in reason for reason in reasons)
    assert zoo("burgers").obstacles == ()


def test_the_forms_of_a_problem_are_found_once():
    problem = zoo("burgers")
    assert evolution_form(problem) is problem.forms[True]
    assert evolution_form(problem, weak=False) is problem.forms[False]
    assert (problem.forms[True].weak, problem.forms[False].weak) == (True, False)


def test_components_lie_one_after_the_other_in_a_state():
    evolution = evolution_form(zoo("wave"))
    value, speed = evolution.components
    assert evolution.slices({"u": 3}) == {value: slice(0, 3), speed: slice(3, 6)}
    assert (evolution.above(value), evolution.above(speed)) == (speed, None)
    change, volume = np.array([3.0, 0.0, 4.0, 0.0, 6.0, 8.0]), evolution.domain.space.volume
    found = evolution.size(change, evolution.slices({"u": 3}), {value: 1.0, speed: 4.0})
    assert found == pytest.approx(5.0 / volume**0.5, rel=1e-15)
    several = np.stack([0.1 * change, change, 0.0 * change], axis=1)
    assert evolution.size(several, evolution.slices({"u": 3}), {value: 1.0, speed: 4.0}) == found


# ------------------------------------------------------------------------------------------------ bases


def test_basis_is_orthonormal_and_satisfies_the_boundary_conditions():
    conditions = {"a": start(), "left": On("x=-1", "u + 2*u_x = t"), "right": On("x=1", "u_x = sin(t)")}
    basis = discretised(Problem("u_t = u_xx", LINE, conditions), cutoff=1e-8).bases["u"]
    gram = basis.project(basis.values((0,))[0][: len(basis.rule.points)])
    assert np.abs(gram - np.eye(basis.rank)).max() < 100 * EPS
    (left, left_lift), (right, right_lift) = (basis.at(np.array([[x]]), (0,)) for x in (-1.0, 1.0))
    (slope_left, lift_left), (slope_right, lift_right) = (basis.at(np.array([[x]]), (1,)) for x in (-1.0, 1.0))
    # the null space is exact to eps; the basis magnifies that by 1/cutoff
    assert np.abs(left + 2 * slope_left).max() < 1e-5
    assert np.abs(slope_right).max() < 1e-5
    assert (left_lift + 2 * lift_left)[0] == pytest.approx([1.0, 0.0], abs=1e-12)
    assert lift_right[0] == pytest.approx([0.0, 1.0], abs=1e-12)
    assert basis.data(np.array([0.5, 1.0])) == pytest.approx(np.array([[0.5, 1.0], np.sin([0.5, 1.0])]))
    assert basis.data(np.array([0.5]), 1)[:, 0] == pytest.approx([1.0, np.cos(0.5)])
    assert np.abs(right).max() > 0.1  # only the slope is prescribed there, so values are free
    assert right_lift.shape == (1, 2)


@pytest.mark.parametrize("ends", ["u = 0", "u_x = 0", "u + 0.3*dn(u) = 0"])
def test_a_basis_on_fewer_nodes_has_the_same_functions_and_is_orthonormal_there(ends):
    problem = Problem("u_t = 0.1*u_xx", LINE, {"start": start("u = sin(pi*x)**2"), "ends": On("boundary", ends)})
    basis = discretised(problem, weak=False).bases["u"]
    fewer = from_data(evolution_form(problem, weak=False), LinesTuning()).rule(boundary=False, density=0.6)
    other = basis.on(fewer)
    assert len(fewer.points) < len(basis.rule.points)
    assert other.finer is basis.rule
    assert np.abs(other.project(other.left) - np.eye(basis.rank)).max() < 1e-12
    points = np.linspace(-0.99, 0.99, 83)[:, None]
    before, after = (one.at(points, (0,))[0] for one in (basis, other))
    gap = before - after @ np.linalg.lstsq(after, before, rcond=None)[0]
    assert np.abs(gap).max() < 1e-6 * np.abs(before).max()  # eps over the cutoff, 2e-7


def test_a_basis_on_fewer_nodes_is_built_again_where_a_condition_changes():
    stated = [
        Problem("u_t = 0.1*u_xx", LINE, {"start": start("u = 1"), "ends": On("boundary", f"dn(u) + {rate}*u = 0")})
        for rate in (0.3, 2.0)
    ]
    system = discretised(stated[0], weak=False)
    fewer = from_data(system.evolution, LinesTuning()).rule(boundary=False, density=0.6)
    system = Galerkin(system.evolution, {"u": system.bases["u"].on(fewer)}, system.scales)
    moved = system.with_evolution(evolution_form(stated[1], weak=False)).bases["u"]
    assert moved.rule is fewer
    ends = np.array([[-1.0], [1.0]])
    left = np.array([-1.0, 1.0])[:, None] * moved.at(ends, (1,))[0] + 2.0 * moved.at(ends, (0,))[0]
    assert np.abs(left).max() < 1e-5 * np.abs(moved.at(ends, (1,))[0]).max()


def test_boundary_values_that_do_not_depend_on_time_are_evaluated_once():
    times = np.array([0.1, 0.7])
    for text, values, rate in (("u = 0.5 + x", (-0.5, -0.5), 0.0), ("u = 0.5 + x + t", (-0.4, 0.2), 1.0)):
        problem = Problem("u_t = 0.1*u_xx", LINE, {"start": start("u = 0.5 + x"), "ends": On("boundary", text)})
        one = next(c for c in constraints_of(evolution_form(problem), "u", 1) if c.points[0, 0] < 0)
        assert np.allclose(one.values(times), [values])
        assert np.allclose(one.values(times, 1), [[rate, rate]])
        assert one.values(times, 1).shape == (1, 2)


def test_time_derivative_of_boundary_values_that_are_functions():
    problem = Problem(
        "u_t = u_xx", LINE, {"a": start("u = 0*x"), "ends": On(("x=-1", "x=1"), "u = g(t)")}, functions={"g": np.sin}
    )
    (left, _) = constraints_of(evolution_form(problem), "u", 1)
    times = np.array([0.2, 0.7])
    # sixth-order differences with step 2e-3: truncation (2e-3)^6/140, rounding eps/2e-3
    assert left.values(times, 1)[0] == pytest.approx(np.cos(times), abs=1e-12)


def test_resolution_follows_a_layer():
    evolution = evolution_form(Problem("u_t = u_xx", LINE, {"a": start("u = tanh(50*x)")}, incomplete=True))
    resolution = from_data(evolution, LinesTuning())
    middle, edge = resolution.inverse[resolution.grid // 2], resolution.inverse[resolution.grid // 10]
    assert 40 < middle < 100  # 1/ℓ is about 1/δ
    assert edge < 5
    points, weights = resolution.rule(boundary=False).points, resolution.rule(boundary=False).weights
    assert weights.sum() == pytest.approx(2.0)
    assert weights @ np.cosh(50 * points[:, 0]) ** -2 == pytest.approx(2 * np.tanh(50) / 50, rel=1e-13)


# ------------------------------------------------------------------------------------------------ projections


def difference_quotient(system, state, step=1e-6):
    columns = []
    for k in range(len(state)):
        move = np.zeros_like(state)
        move[k] = step
        ahead, back = (system.rates(np.zeros(1), (state + s * move)[:, None])[:, 0] for s in (1, -1))
        columns.append((ahead - back) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("weak", [True, False])
def test_jacobian_is_the_derivative_of_the_rates(weak):
    conditions = {
        "a": start(),
        "b": On("t=0", "v = cos(x)"),
        "c": On("t=0", "v_t = x"),
        "u": On(("x=-1", "x=1"), "u = t"),
        "v": On("boundary", "v_x = 0"),
    }
    equations = ["u_t + u*v_x = d(exp(u)*u_x, x) + v_t*u", "v_tt = v_xx - u**2*v + v_t"]
    system = discretised(Problem(equations, LINE, conditions), weak=weak, width=30, cutoff=1e-4)
    state = system.initial_state()
    exact = system.matrix(0.0, state)
    found = difference_quotient(system, state)
    assert np.abs(exact - found).max() < 1e-6 * np.abs(exact).max()


def test_diffusion_is_symmetric_negative_and_a_flux_conserves_mass():
    system = discretised(Problem("u_t = u_xx", LINE, {"a": start(), "ends": ENDS}))
    matrix = system.matrix(0.0, system.initial_state())
    assert np.abs(matrix - matrix.T).max() < 1e-5 * np.abs(matrix).max()
    assert system.fastest_growth(0.0, system.initial_state()) == pytest.approx(-(np.pi**2) / 4, rel=1e-6)

    closed = Problem(
        "u_t = laplace(u**2)", LINE, {"a": start("u = 2 + cos(pi*x)"), "ends": On("boundary", "dn(u) = 0")}
    )
    system = discretised(closed)
    basis, state = system.bases["u"], system.initial_state()
    rate = system.rates(np.zeros(1), state[:, None])[:, 0]
    mass_rate = basis.rule.weights @ (basis.values((0,))[0][: len(basis.rule.points)] @ rate)
    assert abs(mass_rate) < 1e-6 * np.linalg.norm(rate)


@pytest.mark.parametrize("equation", ["u_t + u_x = 0", "u_t + u_xxx = 0"])
def test_galerkin_inherits_the_sign_of_transport_and_dispersion(equation):
    """With scattered points the second has an eigenvalue of real part +73; in the L² product none grows."""
    sides = {"left": On("x=-1", "u = 0")}
    if "xxx" in equation:
        sides = {"ends": ENDS, "slope": On("x=1", "u_x = 0")}
    problem = Problem(equation, LINE, {"a": start(), **sides})
    system = discretised(problem, weak=False, cutoff=1e-7)
    fastest = np.abs(np.linalg.eigvals(system.matrix(0.0, system.initial_state()))).max()
    assert system.fastest_growth(0.0, system.initial_state()) < 1e-6 * fastest


# ------------------------------------------------------------------------------------------------ Fourier modes


@pytest.mark.parametrize("dim", [1, 2])
def test_modes_represent_derive_and_embed_exactly(dim):
    bounds = ((-1.0, 1.0), (0.0, 3.0))[:dim]
    modes = FourierBasis(bounds, (6,) * dim)
    rng = np.random.default_rng(0)
    values = np.cos(np.pi * modes.points[:, 0])
    if dim == 2:
        values = values * np.sin(4 * np.pi * modes.points[:, 1] / 3)
    tables = modes.to_tables(values.reshape(1, *modes.grid_shape))
    assert modes.to_grid(tables)[0].ravel() == pytest.approx(values, abs=50 * EPS)
    points = np.column_stack([rng.uniform(*pair, 20) for pair in bounds])
    still = (0,) * dim
    value, slope = modes.at(tables, modes.exponentials(points), [still, (1,) + (0,) * (dim - 1)])[0]
    wanted = -np.pi * np.sin(np.pi * points[:, 0]) * (np.sin(4 * np.pi * points[:, 1] / 3) if dim == 2 else 1.0)
    assert slope == pytest.approx(wanted, abs=1e3 * EPS)
    larger = FourierBasis(bounds, (9,) * dim)
    more = larger.resized(tables, modes.highest)
    assert larger.at(more, larger.exponentials(points), [still])[0, 0] == pytest.approx(value, abs=50 * EPS)
    assert modes.resized(more, larger.highest) == pytest.approx(tables, abs=0)


def test_projection_of_a_quadratic_term_has_no_aliases():
    problem = Problem("u_t + u*u_x = 0", LINE, {"a": start("u = sin(4*pi*x)"), "p": Periodic("x")})
    evolution = evolution_form(problem)
    system = FourierSystem(
        Equations.of(evolution), FourierBasis(((-1.0, 1.0),), (8,)), dict.fromkeys(evolution.components, 1.0)
    )
    rates = system.rates(np.zeros(1), system.initial_state()[:, None])[:, 0]
    # u u_x = 2π sin(8πx): mode 8 alone; at half the modes nothing is left of it, rather than an alias
    assert np.abs(rates[8]) == pytest.approx(np.pi, rel=1e-12)
    small = FourierSystem(
        Equations.of(evolution), FourierBasis(((-1.0, 1.0),), (5,)), dict.fromkeys(evolution.components, 1.0)
    )
    assert np.abs(small.rates(np.zeros(1), small.initial_state()[:, None])).max() < 1e-13


def test_mode_blocks_are_the_jacobian_of_constant_coefficients():
    problem = Problem(
        ["u_t = u_xx - 3*v_x + v", "v_tt = 2*v_xx - u - v_t"],
        LINE,
        {"a": start(), "b": On("t=0", "v = 0"), "c": On("t=0", "v_t = cos(pi*x)"), "p": Periodic("x")},
    )
    evolution = evolution_form(problem)
    system = FourierSystem(
        Equations.of(evolution), FourierBasis(((-1.0, 1.0),), (4,)), dict.fromkeys(evolution.components, 1.0)
    )
    state = system.initial_state()
    rng = np.random.default_rng(0)
    other = rng.standard_normal(len(state)) + 1j * rng.standard_normal(len(state))
    other.reshape(3, -1)[:, 0].imag = 0  # the mean of a real function is real
    change = system.rates(np.zeros(1), (state + other)[:, None])[:, 0] - system.rates(np.zeros(1), state[:, None])[:, 0]
    solve = system.jacobian(0.0, state).shifted(10.0)
    assert solve(10.0 * other - change) == pytest.approx(other, abs=1e-11)


def test_strata_hold_one_node_each_and_weigh_fields_as_integrals_do():
    solution = solve(zoo("burgers"), tol=1e-3, rng=0).function
    strata = Strata.of(solution)
    nodes = np.sort(solution.segments[0].system.nodes[:, 0])
    assert strata.points.shape == (len(nodes), 1)
    assert strata.weights.mean() == pytest.approx(1.0)
    ends = -1.0 + np.cumsum(strata.weights) * 2.0 / len(nodes)
    assert (np.searchsorted(ends, nodes) == np.arange(len(nodes))).all()  # Gauss weights separate the nodes
    assert (np.searchsorted(ends, strata.points[:, 0]) == np.arange(len(nodes))).all()
    assert np.mean(strata.weights * strata.points[:, 0] ** 2) == pytest.approx(1 / 3, rel=0.01)
    assert not np.isin(strata.points, nodes).any()


def test_losses_are_the_mean_squares_of_held_out_residuals():
    problem = zoo("burgers")
    function = solve(problem, tol=1e-3, rng=0).function
    losses, ratios = held_out_residuals(problem, function, rng=7, count=50)
    points = problem.domain.sample(50, rng=np.random.default_rng(7))
    assert losses == pytest.approx(mean_squares(problem, function, points))
    assert ratios == held_out_residual(problem, function, rng=7, count=50)


@pytest.mark.parametrize(
    ("space", "names"), [({"x": (-1, 2)}, "x"), ({"x": (-1, 2), "y": (0, 0.7)}, "xy")], ids=["features", "tensor"]
)
def test_points_of_one_time_are_evaluated_like_those_of_many(space, names):
    """One state for all points takes another order of products; boundary values that move are part of it."""
    exact = "exp(-t)*(" + " + ".join(f"sin({k + 1}*{name})" for k, name in enumerate(names)) + ")"
    source = "exp(-t)*(" + " + ".join(f"{(k + 1) ** 2 - 1}*sin({k + 1}*{name})" for k, name in enumerate(names)) + ")"
    problem = Problem(
        f"u_t = laplace(u) + {source}",
        SpaceTime(t=(0, 0.4), **space),
        {"t=0": f"u = {exact.replace('exp(-t)', '1')}", "boundary": f"u = {exact}"},
        exact={"u": exact},
    )
    solution = solve(problem, tol=1e-4, method="lines").function
    points = problem.domain.sample(200, rng=3)
    points[:, 0] = 0.3
    mixed = np.concatenate([points, problem.domain.sample(50, rng=4)])
    for index in [(0, *(0,) * len(names)), (1, *(0,) * len(names)), (0, *(2,) * len(names))]:
        one, many = solution.derivative(points, index), solution.derivative(mixed, index)[: len(points)]
        # the sums are those of features divided by singular values down to 1e-9, in another order
        np.testing.assert_allclose(one, many, rtol=0, atol=1e-9 * np.abs(many).max())
    assert np.abs(solution(points) - problem.exact_solution(points)).max() < 1e-3
