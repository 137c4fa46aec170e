"""Evolutions on periodic boxes: elimination, exponential steps, what is kept of them, and whole solves."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import rannpde as rp
from rannpde.errors import FileError, InputError
from rannpde.pde.lines.fourier.discretisation import FourierDiscretisation
from rannpde.pde.lines.fourier.equations import Equations, SplitTerm
from rannpde.pde.lines.fourier.modes import FourierBasis, blocks
from rannpde.pde.lines.fourier.steps import DerivativeRequest, TruncatedStep
from rannpde.pde.lines.fourier.symbol import FourierSymbol, phi_functions
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.method import GrowthWarning
from rannpde.pde.problem.evolution import evolution_form
from rannpde.pde.time.dense_output import LegendreStep
from rannpde.pde.time.exponential import ExponentialRungeKutta

EPS = np.finfo(float).eps
TURN = 2 * np.pi


def around(*names: str) -> dict[str, rp.Periodic]:
    return {f"around {name}": rp.Periodic(name) for name in names}


def start(**formulas: str) -> dict[str, rp.On]:
    return {f"start of {name}": rp.On("t=0", f"{name} = {formula}") for name, formula in formulas.items()}


def square(duration: float = 1.0, side: float = TURN) -> rp.SpaceTime:
    return rp.SpaceTime(t=(0, duration), x=(0, side), y=(0, side))


def spectral(problem: rp.Problem, highest: tuple[int, ...]) -> FourierSystem:
    evolution = evolution_form(problem)
    bounds = tuple((float(a), float(b)) for a, b in evolution.domain.space.bounds)
    return FourierSystem(
        Equations.of(evolution), FourierBasis(bounds, highest), dict.fromkeys(evolution.components, 1.0)
    )


FLOW = {
    "momentum x": "u_t + u*u_x + v*u_y + p_x = nu*laplace(u)",
    "momentum y": "v_t + u*v_x + v*v_y + p_y = nu*laplace(v)",
    "mass": "u_x + v_y = 0",
}
VORTEX = {
    "u": "cos(x)*sin(y)*exp(-2*nu*t)",
    "v": "-sin(x)*cos(y)*exp(-2*nu*t)",
    "p": "-(cos(2*x) + cos(2*y))/4*exp(-4*nu*t)",
}


def taylor_green(*, level: bool = False, **changes: object) -> rp.Problem:
    """Decaying vortices; with ``level`` the pressure is 1 higher than its mean zero, as measured at a corner."""
    conditions = {**start(u="cos(x)*sin(y)", v="-sin(x)*cos(y)"), **around("x", "y")}
    exact = dict(VORTEX)
    if level:
        times = np.linspace(0, 1, 11)
        corner = np.column_stack([times, np.zeros((11, 2))])
        conditions["level"] = rp.Data(corner, 1.0 - 0.5 * np.exp(-0.08 * times), "p")
        exact["p"] += " + 1"
    given = {"equations": FLOW, "fields": ("u", "v", "p"), "exact": exact} | changes
    return rp.Problem(domain=square(), conditions=conditions, parameters={"nu": 0.02}, **given)


# ------------------------------------------------------------------------------------------------------------- modes


@given(st.integers(1, 3), st.integers(0, 2**31 - 1))
@settings(max_examples=20, deadline=None)
def test_tables_and_grids_hold_the_same_function(dim, seed):
    rng = np.random.default_rng(seed)
    highest = tuple(int(k) for k in rng.integers(1, 6, dim))
    modes = FourierBasis(tuple((-1.0, float(length)) for length in rng.uniform(0.0, 3.0, dim)), highest)
    tables = modes.real(rng.standard_normal((2, *modes.shape)) + 1j * rng.standard_normal((2, *modes.shape)))
    tables[(slice(None), *(0,) * dim)] = tables[(slice(None), *(0,) * dim)].real
    values = modes.to_grid(tables)
    assert_allclose(modes.to_tables(values), tables, atol=1e3 * EPS)
    still, slope = (0,) * dim, (1,) + (0,) * (dim - 1)
    there = modes.at(tables, modes.exponentials(modes.points), [still, slope])
    assert_allclose(there[:, 0], values.reshape(2, -1), atol=1e4 * EPS)
    derived = modes.to_grid(tables * modes.factor(slope))
    assert_allclose(there[:, 1], derived.reshape(2, -1), atol=1e5 * EPS)
    assert_allclose(modes.norms(tables), np.sqrt(np.mean(values.reshape(2, -1) ** 2, axis=1)), rtol=1e3 * EPS)


def test_blocks_cover_a_table_once():
    counted = np.zeros((7, 9, 4))
    for _, target in blocks((2, 3, 1), (3, 4, 3)):
        counted[target] += 1
    assert counted.sum() == 5 * 7 * 2
    assert counted.max() == 1


# ---------------------------------------------------------------------------------------- matrices of wave vectors


@pytest.mark.parametrize("z", [0.0, -1e-12, -1e-3, -0.4, -1.0, -7.0, -300.0, 2.0, 0.3j, 40j])
def test_phi_functions_of_numbers_to_rounding(z):
    found = phi_functions(FourierSymbol(1, 1, {(0, 0): np.array([z])}), (1,))
    with mpmath.workdps(40):
        wanted = [
            complex(mpmath.hyp1f1(1, order + 1, mpmath.mpmathify(z)) / mpmath.factorial(order)) for order in range(4)
        ]
    for one, value in zip(found, wanted, strict=True):
        assert abs(one.entries[0, 0][0] - value) <= 20 * EPS * max(1.0, abs(value))


def test_phi_functions_of_matrices_satisfy_their_recursion():
    """φ_l(z) = z φ_{l+1}(z) + 1/l!, also where z is defective, as of a wave at rest."""
    rng = np.random.default_rng(0)
    entries = {(0, 1): np.array([1.0, 1.0, 1.0]), (1, 0): np.array([0.0, -9.0, -1e4]), (1, 1): -rng.uniform(size=3)}
    entries[1, 1][0] = 0.0
    z = FourierSymbol(2, 2, entries)
    found = phi_functions(z, (3,))
    for order in range(3):
        left, right = found[order].dense(3), (z @ found[order + 1]).dense(3)
        right += np.eye(2) / [1, 1, 2][order]
        # doubling z seven times from |z| = 1/2 loses 2⁷ roundings of numbers of size |z|
        assert_allclose(left, right, atol=1e5 * EPS)
    shear = found[0].dense(3)[0]
    assert_allclose(shear, [[1.0, 1.0], [0.0, 1.0]], atol=4 * EPS)


def test_inverse_of_coupled_matrices():
    z = FourierSymbol(2, 2, {(0, 0): np.full(2, 2.0), (0, 1): np.array([1.0, 3.0]), (1, 1): np.array([1j, 2.0])})
    assert_allclose((z @ z.inverse()).dense(2), np.stack([np.eye(2)] * 2), atol=10 * EPS)


# ----------------------------------------------------------------------------------------------------- elimination


def test_what_is_linear_with_constant_coefficients_is_found():
    problem = rp.Problem(
        "u_t = (1 - u)*0.04 + 2*u_xx - (u**2 - 1)*u + sin(x)*u_x + 3",
        rp.SpaceTime(t=(0, 1), x=(0, 1)), {**start(u="sin(2*pi*x)"), **around("x")},
    )  # fmt: skip
    part = SplitTerm.of(evolution_form(problem, weak=False).rates["u"].source)
    assert {jet.index: value for jet, value in part.linear.items()} == pytest.approx({(0, 0): 0.96, (0, 2): 2.0})
    assert {jet.index for jet in part.symbols.values()} == {(0, 0), (0, 1)}
    assert float(part.rest.subs(dict.fromkeys(part.symbols, 0))) == pytest.approx(3.04)


def test_rates_of_a_flow_have_no_divergence_and_the_pressure_is_that_of_the_vortex():
    system = spectral(taylor_green(), (4, 4))
    state = system.initial_state()
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((2, *system.modes.grid_shape))
    rough = system.modes.to_tables(noise).ravel()
    kx, ky = (system.modes.factor(index) for index in ((1, 0), (0, 1)))
    u, v = system.rates(np.zeros(1), rough[:, None])[:, 0].reshape(2, *system.modes.shape)
    assert np.abs(kx * u + ky * v).max() < 1e4 * EPS * np.abs(kx * u).max()
    whole = system.completed(np.zeros(1), state[:, None])[:, 0]
    pressure = system.modes.to_grid(whole.reshape(3, *system.modes.shape)[2:])[0].ravel()
    x, y = system.modes.points.T
    assert_allclose(pressure, -(np.cos(2 * x) + np.cos(2 * y)) / 4, atol=100 * EPS)


def test_a_start_is_made_to_satisfy_what_constrains_it():
    """u = (sin x, 0) is a gradient: nothing of it is left; what has no divergence stays."""
    conditions = {**start(u="sin(x) + sin(y)", v="0"), **around("x", "y")}
    problem = rp.Problem(FLOW, square(0.1), conditions, {"nu": 0.02}, fields=("u", "v", "p"))
    system = spectral(problem, (3, 3))
    u, v = system.modes.to_grid(system.initial_state().reshape(2, *system.modes.shape))
    assert_allclose(u.ravel(), np.sin(system.modes.points[:, 1]), atol=50 * EPS)
    assert np.abs(v).max() < 50 * EPS
    with pytest.warns(rp.ConvergenceWarning):
        assert rp.solve(problem, tol=1e-2, method="lines").estimate > 0.1


@pytest.mark.parametrize(
    ("rate", "constraint", "reason"),
    [
        ("u_xx + p", "p_xx + p**2 - u = 0", "not linear in 'p'"),
        ("u_xx + p", "u**2 - 1 = 0", "not linear, and holds no field"),
        ("u_xx + u*p", "u_x = 0", "do not determine the field 'p'"),
    ],
)
def test_constraints_that_cannot_be_eliminated_are_reasons(rate, constraint, reason):
    domain = rp.SpaceTime(t=(0, 1), x=(0, TURN))
    conditions = {**start(u="cos(x)"), **around("x")}
    problem = rp.Problem([f"u_t = {rate}", constraint], domain, conditions, fields=("u", "p"))
    assert any(reason in one for one in rp.Lines().obstacles(problem))


def test_fields_without_a_rate_need_periodic_space_and_no_start():
    conditions = {**start(u="cos(x)", q="0"), **around("x")}
    problem = rp.Problem(
        ["u_t = u_xx + q", "q_xx - q + u = 0"], rp.SpaceTime(t=(0, 1), x=(0, TURN)), conditions, fields=("u", "q")
    )
    assert any("which the equations determine" in one for one in rp.Lines().obstacles(problem))


# ------------------------------------------------------------------------------------------------ exponential steps


def march(problem: rp.Problem, highest: tuple[int, ...], steps: int) -> tuple[FourierSystem, ExponentialRungeKutta]:
    """As many steps of one length."""
    system = spectral(problem, highest)
    start, end = problem.domain.time
    state = system.initial_state()
    solver = ExponentialRungeKutta(None, start, state, end, dynamics=system, tol=1e9, first_step=(end - start) / steps)
    while solver.status == "running":
        solver.h = (end - start) / steps
        solver.step()
    return system, solver


def test_exponential_steps_are_of_fourth_order():
    """Allen–Cahn, stiff: errors at the end over four halvings of the step."""
    conditions = {**start(u="0.5 + 0.4*cos(x)*cos(y)"), **around("x", "y")}
    problem = rp.Problem("u_t = laplace(u)/2 + 2*u - 2*u**3", square(), conditions)
    ends = {steps: march(problem, (8, 8), steps)[1].y for steps in (4, 8, 16, 256)}
    errors = [np.linalg.norm(ends[steps] - ends[256]) for steps in (4, 8, 16)]
    slopes = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert (slopes > 3.5).all()


def test_exponential_steps_are_exact_for_what_is_linear():
    conditions = {**start(u="cos(x) + sin(3*y)"), "rest": rp.On("t=0", "u_t = 0"), **around("x", "y")}
    problem = rp.Problem("u_tt = laplace(u)", square(), conditions)
    system, solver = march(problem, (4, 4), 1)
    x, y = system.modes.points.T
    u = system.modes.to_grid(solver.y.reshape(2, *system.modes.shape))[0].ravel()
    assert_allclose(u, np.cos(1) * np.cos(x) + np.cos(3) * np.sin(3 * y), atol=1e3 * EPS)


# ------------------------------------------------------------------------------------------------------ what is kept


def test_what_is_kept_of_a_step_is_the_step():
    modes = FourierBasis(((0.0, 1.0), (0.0, 2.0)), (6, 5))
    rng = np.random.default_rng(2)
    decay = np.exp(-np.abs(modes.numbers[0])[:, None] - np.abs(modes.numbers[1])[None, :])
    tables = rng.standard_normal((5, 2, *modes.shape)) * decay * (0.1 ** np.arange(5))[:, None, None, None]
    series = tables.reshape(5, -1).T.astype(complex)
    step = LegendreStep(0.0, 0.5, np.zeros(series.shape[0], dtype=complex), series)
    tol = 1e-3
    kept = TruncatedStep.of(step, modes, np.ones(2), tol)
    assert sum(table.size for table in kept.tables) < 0.6 * series.size
    times = np.linspace(0, 0.5, 7)
    gap = (kept.derivative(times, 0) - step.derivative(times, 0)).T.reshape(7, 2, *modes.shape)
    assert modes.norms(gap).max() <= len(kept.tables) * tol
    whole = TruncatedStep.of(step, modes, np.ones(2), 1e-16)
    assert_allclose(whole.derivative(times, 1), step.derivative(times, 1), atol=1e4 * EPS)
    points = np.column_stack([rng.uniform(0, 0.5, 40), rng.uniform(size=(40, 2))])
    wanted = [DerivativeRequest(0, 0, (0, 0)), DerivativeRequest(1, 1, (2, 1)), DerivativeRequest(1, 0, (0, 1))]
    each = whole.at(points, wanted)  # many moments: table by table
    one = np.concatenate(
        [whole.at(np.repeat(point[None], 5000, axis=0), wanted)[:, :1] for point in points[:3]], axis=1
    )
    assert_allclose(each[:, :3], one, atol=1e6 * EPS)


# ------------------------------------------------------------------------------------------------------ whole solves


@pytest.mark.parametrize("level", [False, True])
def test_taylor_green_with_its_pressure(level):
    solution = rp.solve(taylor_green(level=level), tol=1e-9)
    assert solution.converged
    assert solution.method.name == "lines"
    assert max(solution.errors().values()) < 1e-9
    assert max(solution.held_out.values()) < 1e-9


def test_vorticity_and_stream_function():
    equations = ["w_t + psi_y*w_x - psi_x*w_y = nu*laplace(w)", "laplace(psi) + w = 0"]
    exact = {"w": "2*cos(x)*cos(y)*exp(-2*nu*t)", "psi": "cos(x)*cos(y)*exp(-2*nu*t)"}
    conditions = {**start(w="2*cos(x)*cos(y)"), **around("x", "y")}
    problem = rp.Problem(equations, square(), conditions, {"nu": 0.02}, fields=("w", "psi"), exact=exact)
    solution = rp.solve(problem, tol=1e-6)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-6


def test_a_constraint_whose_data_move():
    """u_x + v_y = g(t, x): of the velocity that the constraint demands, and the pressure that makes it."""
    equations = ["u_t + p_x = 0", "v_t + p_y = 0", "u_x + v_y = -cos(t)*sin(x)"]
    exact = {"u": "cos(t)*cos(x)", "v": "sin(x)", "p": "sin(t)*sin(x)"}
    conditions = {**start(u="cos(x)", v="sin(x)"), **around("x", "y")}
    problem = rp.Problem(equations, square(2.0), conditions, fields=("u", "v", "p"), exact=exact)
    solution = rp.solve(problem, tol=1e-7)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-7


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_transport_in_a_box_of_unequal_sides(tol):
    domain = rp.SpaceTime(t=(0, 1), x=(0, TURN), y=(0, 1))
    exact = "exp(sin(x - 2*t))*cos(2*pi*(y - t))"
    problem = rp.Problem(
        "u_t + 2*u_x + u_y = 0", domain, {**start(u="exp(sin(x))*cos(2*pi*y)"), **around("x", "y")}, exact={"u": exact}
    )
    solution = rp.solve(problem, tol=tol)
    assert solution.converged
    assert solution.errors()["u"] < tol
    assert solution.errors()["u"] < 10 * solution.estimate


def test_schroedinger_of_two_fields():
    """A plane wave of amplitude a: e^{i(x + y - (1 + a²·0 + …)t)}, exact with its nonlinear frequency."""
    a = 0.7
    phase = f"x + y - (1 - {a**2!r})*t"
    equations = ["u_t = -laplace(v)/2 - (u**2 + v**2)*v", "v_t = laplace(u)/2 + (u**2 + v**2)*u"]
    exact = {"u": f"{a}*cos({phase})", "v": f"{a}*sin({phase})"}
    conditions = {**start(u=f"{a}*cos(x + y)", v=f"{a}*sin(x + y)"), **around("x", "y")}
    solution = rp.solve(rp.Problem(equations, square(), conditions, fields=("u", "v"), exact=exact), tol=1e-5)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-5


def test_a_cube_with_a_reaction():
    """u' = u - u³ for a start that does not vary, and waves that only diffuse, in one system."""
    exact = {"u": "exp(t)/sqrt(3 + exp(2*t))", "v": "sin(x)*cos(2*y)*sin(z)*exp(-0.6*t)"}
    conditions = {**start(u="0.5", v="sin(x)*cos(2*y)*sin(z)"), **around("x", "y", "z")}
    domain = rp.SpaceTime(t=(0, 1), x=(0, TURN), y=(0, TURN), z=(0, TURN))
    equations = ["u_t = 0.1*laplace(u) + u - u**3", "v_t = 0.1*laplace(v)"]
    solution = rp.solve(rp.Problem(equations, domain, conditions, fields=("u", "v"), exact=exact), tol=1e-5)
    assert solution.converged
    assert max(solution.errors().values()) < 1e-5


def test_data_that_repeat_themselves_are_solved_on_one_of_their_cells():
    conditions = {**start(u="sin(8*x)*cos(4*y)"), **around("x", "y")}
    exact = {"u": "sin(8*x)*cos(4*y)*exp(-0.8*t)"}
    problem = rp.Problem("u_t = 0.01*laplace(u)", square(), conditions, exact=exact)
    solution = rp.solve(problem, tol=1e-8)
    system = solution.function.segments[0].system
    assert isinstance(system, FourierSystem)
    assert_allclose([b - a for a, b in system.modes.bounds], [TURN / 8, TURN / 4])
    assert solution.converged
    assert solution.errors()["u"] < 1e-8


def test_a_kink_that_is_carried_around_is_not_claimed():
    """arcsin(sin x) has kinks: no number of modes resolves it, and the estimate says how far it is off."""
    conditions = {**start(u="asin(sin(x))*cos(y)"), **around("x", "y")}
    problem = rp.Problem("u_t + u_x + u_y = 0", square(), conditions, exact={"u": "asin(sin(x - t))*cos(y - t)"})
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(problem, tol=1e-6)
    assert not solution.converged
    assert solution.errors()["u"] < 10 * solution.estimate < 100 * solution.errors()["u"]


def test_diffusion_backwards_in_time_ends():
    problem = rp.Problem("u_t = -laplace(u)", square(), {**start(u="exp(cos(x) + sin(y))"), **around("x", "y")})
    with pytest.warns((rp.ConvergenceWarning, GrowthWarning)):  # products, where modes give up, say why
        assert not rp.solve(problem, tol=1e-2, seconds=3).converged


def test_modes_are_added_as_a_front_steepens():
    equation = "u_t + u*u_x + u*u_y = 0.1*laplace(u)"
    problem = rp.Problem(equation, square(1.5), {**start(u="sin(x + y)"), **around("x", "y")})
    line = rp.Problem(
        "u_t + 2*u*u_x = 0.2*u_xx", rp.SpaceTime(t=(0, 1.5), x=(0, TURN)), {**start(u="sin(x)"), **around("x")}
    )
    solution, truth = rp.solve(problem, tol=1e-4), rp.solve(line, tol=1e-8)
    assert solution.converged
    assert len(solution.history.iterations) >= 2
    points = problem.domain.sample(300, rng=3)
    folded = np.column_stack([points[:, 0], (points[:, 1] + points[:, 2]) % TURN])
    gap = np.linalg.norm(solution(points) - truth(folded)) / np.linalg.norm(truth(folded))
    assert gap < 1e-4
    assert gap < 10 * solution.estimate


def test_exponential_steps_are_refused_where_there_are_no_modes():
    problem = rp.Problem(
        "u_t = u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), {**start(u="sin(pi*x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    )
    with pytest.raises(InputError, match="ETDRK4"):
        rp.solve(problem, method=rp.Lines(integrator="ETDRK4"))


def test_events_see_fields_without_a_rate():
    """The pressure at the corner, -½ exp(-0.08 t), iterations -0.49."""
    corner = np.zeros((1, 2))
    event = lambda t, fields: float(fields(corner)[0, 2] + 0.49)  # noqa: E731
    solution = rp.solve(taylor_green(), tol=1e-6, method=rp.Lines(events={"level": event}))
    assert solution.events["level"] == pytest.approx([np.log(0.5 / 0.49) / 0.08], abs=1e-5)


# -------------------------------------------------------------------------------------------------------------- files


def test_saved_and_loaded(tmp_path):
    solution = rp.solve(taylor_green(), tol=1e-5)
    path = tmp_path / "flow.npz"
    solution.save(path)
    again = rp.load(path)
    points = solution.problem.domain.sample(50, rng=0)
    assert_allclose(again(points), solution(points), rtol=0, atol=0)
    assert_allclose(
        again.function.derivative(points, (1, 1, 0)), solution.function.derivative(points, (1, 1, 0)), rtol=0, atol=0
    )


def test_damaged_tables_are_refused(tmp_path):
    from rannpde.pde.lines.files import unpack_solution

    problem = taylor_green()
    header, arrays = rp.solve(problem, tol=1e-2).function.pack()
    for key, value in (
        ("0.tables", arrays["0.tables"][:-1]),
        ("0.highest", arrays["0.highest"] + 100),
        ("0.tables", np.full_like(arrays["0.tables"], np.nan)),
    ):
        with pytest.raises(FileError):
            unpack_solution(header, arrays | {key: value}, problem)
    for key, value in (("highest", [10**6, 4]), ("repeats", [0, 1])):
        damaged = {**header, "segments": [{**header["segments"][0], key: value}, *header["segments"][1:]]}
        with pytest.raises(FileError):
            unpack_solution(damaged, arrays, problem)


def test_a_discretisation_has_a_looser_pass_first_in_several_dimensions():
    from rannpde.pde.lines.settings import IterationSettings
    from rannpde.pde.lines.tuning import LinesTuning
    from rannpde.pde.monitor import Monitor

    settings = IterationSettings(1e-4, LinesTuning(), Monitor(), None)
    tolerances = FourierDiscretisation(evolution_form(taylor_green()), settings).tolerances
    assert tolerances[0] > 1e-4 == tolerances[1] > tolerances[2]
