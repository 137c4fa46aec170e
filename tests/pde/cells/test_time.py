"""Steps in time with cells in space: orders, exact solutions on squares and discs, pressure, waves, files, endings."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import FileError, InputError
from rannpde.pde.budget import timed_by
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.condensation.blocks import PivotBlock, SchurComplement
from rannpde.pde.cells.condensation.dissection import factorise
from rannpde.pde.cells.condensation.seminormal import SeminormalFactor
from rannpde.pde.cells.mesh.mesh import MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.cells.time.integration import CellIntegration, InitialValues, integration_obstacles, project
from rannpde.pde.cells.time.integrator import CellIntegrator
from rannpde.pde.cells.time.space import SpaceSystem
from rannpde.pde.cells.time.trajectory import CellTrajectory, unpack_trajectory
from rannpde.pde.cells.tuning import CellsTuning
from rannpde.pde.monitor import Monitor, Progress, Status
from rannpde.pde.solution import ConvergenceWarning
from rannpde.pde.time.tableau import radau_tableau

Array = np.ndarray
TUNING = CellsTuning()


def heat(end: float = 0.1) -> rp.Problem:
    """u_t = Δu + xy on the unit square with values on its sides that move."""
    exact = "exp(-2*pi^2*t)*sin(pi*x)*sin(pi*y) + t*x*y"
    domain = rp.SpaceTime(t=(0, end), x=(0, 1), y=(0, 1))
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "sides": rp.On("boundary", f"u = {exact}")}
    return rp.Problem("u_t = laplace(u) + x*y", domain, conditions, exact={"u": exact})


def disc() -> rp.Problem:
    """The heat equation in a disc with a Robin condition; the normal of the unit circle is (x, y)."""
    wave, exact = "exp(-t)*cos(2*x + y)", "exp(-t)*sin(2*x + y) + t*x*y"
    domain = rp.SpaceTime(t=(0, 1), x=rp.Ball((0, 0), 1, names=("x", "y")))
    rim = f"dn(u) + u = x*(2*{wave} + t*y) + y*({wave} + t*x) + {exact}"
    equation = "u_t = laplace(u) + 4*exp(-t)*sin(2*x + y) + x*y"
    conditions = {"start": rp.On("t=0", "u = sin(2*x + y)"), "rim": rp.On("boundary", rim)}
    return rp.Problem(equation, domain, conditions, exact={"u": exact})


def taylor_green(side: float = np.pi) -> rp.Problem:
    """Incompressible flow on a quarter of the periodic square, its normal velocity and stress given on the sides."""
    decay = "exp(-2*nu*t)"
    exact = {
        "u": f"cos(x)*sin(y)*{decay}",
        "v": f"-sin(x)*cos(y)*{decay}",
        "p": f"-(cos(2*x) + cos(2*y))/4*{decay}**2",
    }
    equations = {
        "momentum x": "u_t + u*u_x + v*u_y + p_x = nu*laplace(u)",
        "momentum y": "v_t + u*v_x + v*v_y + p_y = nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    times = np.linspace(0, 1, 9)
    corner = np.column_stack([times, np.zeros((9, 2))])
    conditions = {
        "start of u": rp.On("t=0", f"u = {exact['u']}"),
        "start of v": rp.On("t=0", f"v = {exact['v']}"),
        "u on sides": rp.On("boundary", f"u = {exact['u']}"),
        "v on sides": rp.On("boundary", f"v = {exact['v']}"),
        "level": rp.Data(corner, -0.5 * np.exp(-4 * 0.1 * times), "p"),
    }
    domain = rp.SpaceTime(t=(0, 1), x=(0, side / 2), y=(0, side / 2))
    return rp.Problem(equations, domain, conditions, {"nu": 0.1}, fields=("u", "v", "p"), exact=exact)


def wave() -> rp.Problem:
    exact = "sin(pi*x)*sin(pi*y)*cos(sqrt(3)*pi*t)"
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    conditions = {
        "start": rp.On("t=0", f"u = {exact}"),
        "at rest": rp.On("t=0", "u_t = 0"),
        "sides": rp.On("boundary", "u = 0"),
    }
    return rp.Problem("u_tt = u_xx + 2*u_yy", domain, conditions, exact={"u": exact})


def system(problem: rp.Problem, degree: int, cuts: tuple[int, ...] = (), sizes: Array | None = None) -> SpaceSystem:
    assert isinstance(problem.domain, rp.SpaceTime)
    space = problem.domain.space
    tree = CellNode(np.asarray(space.bounds, dtype=float)).refined_leaves(cuts)
    basis = BasisSample.sample(space.dim, degree, TUNING, np.random.default_rng(0))
    mesh = MeshBuilder(space, basis).build(tree, tuple(space.names.index(name) for name in problem.periodic))
    return SpaceSystem(problem, mesh, np.ones(len(problem.fields)) if sizes is None else sizes, {}, 1)


def vector(rows: SpaceSystem, time: float, order: int = 0) -> Array:
    """The exact solution at a time as weights."""
    found = np.zeros(rows.total)
    exact = rows.problem.exact_solution
    assert exact is not None
    for number, cell in rows.mesh.present:
        points = np.column_stack([np.full(len(cell.points), time), cell.points])
        values = exact.derivative(points, (order,) + (0,) * rows.space.dim)
        found[rows.spans[number]] = project(cell, values)[0].ravel()
    return found


def slope(errors: list[float]) -> float:
    """The order from errors of steps halved each time."""
    return float(np.polyfit(np.arange(len(errors)), -np.log2(errors), 1)[0])


# --------------------------------------------------------------------------------------------------------- stages


@pytest.mark.parametrize(("count", "levels", "order"), [(1, (4, 5, 6), 1), (3, (2, 3, 4), 5), (5, (0, 1, 2), 9)])
def test_the_end_of_a_step_is_of_order_twice_the_stages_less_one(
    count: int, levels: tuple[int, ...], order: int
) -> None:
    problem = heat(0.2)
    rows = system(problem, 14)
    errors = []
    for level in levels:
        march = CellIntegrator(rows, radau_tableau(count), 1e-13, TUNING)
        marched = march.run(vector(rows, 0.0), np.zeros(rows.total), level, fixed=True)
        assert len(marched.path.times) == 2**level + 1
        errors.append(float(rows.norms(marched.path.vectors[-1] - vector(rows, 0.2)).max()))
    assert slope(errors) > order - 0.4
    assert all(after < before for before, after in pairwise(errors))


def test_a_wave_keeps_the_order_through_its_second_derivative() -> None:
    rows = system(wave(), 12)
    errors = []
    for level in (2, 3, 4):
        march = CellIntegrator(rows, radau_tableau(3), 1e-13, TUNING)
        marched = march.run(vector(rows, 0.0), vector(rows, 0.0, 1), level, fixed=True)
        errors.append(float(rows.norms(marched.path.vectors[-1] - vector(rows, 1.0)).max()))
    assert slope(errors) > 4.5


# ---------------------------------------------------------------------------------------------------- elimination


@pytest.mark.parametrize("kind", [float, complex])
def test_seminormal_factors_solve_least_squares_problems(kind: type) -> None:
    """Two leaves of 4 unknowns with 3 traces between them against NumPy's least squares."""
    rng = np.random.default_rng(3)
    tree = CellNode(np.array([(0.0, 1.0)])).split(0)
    blocks = [rng.normal(size=(12, 8)).astype(kind) for _ in range(2)]
    if kind is complex:
        blocks = [block + 1j * rng.normal(size=block.shape) for block in blocks]
    leaves = []
    for block in blocks:
        triangle = np.linalg.qr(np.asfortranarray(np.pad(block[:, :7], ((0, 0), (0, 1)))))[1]
        leaves.append((PivotBlock(4, (0,), triangle[:4]), SchurComplement((0,), triangle[4:, 4:])))
    order, by_normal_equations = factorise(tree, {tree: [0]}, [3], leaves)
    assert by_normal_equations
    triangles = SeminormalFactor([leaf[0] for leaf in leaves], order, [3])
    whole = np.zeros((24, 11), dtype=kind)
    whole[:12, :4], whole[12:, 4:8] = blocks[0][:, :4], blocks[1][:, :4]
    whole[:12, 8:], whole[12:, 8:] = blocks[0][:, 4:7], blocks[1][:, 4:7]
    right = rng.normal(size=24)
    gradient = whole.conj().T @ right
    cells, traces = triangles.solve([gradient[:4], gradient[4:8]], gradient[8:])
    wanted = np.linalg.lstsq(whole, right.astype(kind), rcond=None)[0]
    assert np.allclose(np.concatenate([*cells, traces]), wanted, atol=1e-11)
    assert not triangles.rank_deficient


def test_what_is_not_determined_is_said() -> None:
    singular = PivotBlock(2, (), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert SeminormalFactor([singular], [], []).rank_deficient


# ------------------------------------------------------------------------------------------------------- problems


@pytest.mark.slow
def test_heat_on_a_square_with_several_cells() -> None:
    solution = rp.solve(heat(), tol=1e-7, method=rp.Cells(degree=9))
    assert solution.converged
    assert solution.errors()["u"] < 1e-7
    assert isinstance(solution.function, CellTrajectory)
    assert len(solution.function.boxes) > 1
    assert "steps in time" in solution.method.label


def test_heat_in_a_disc() -> None:
    solution = rp.solve(disc(), tol=1e-6, method=rp.Cells())
    assert solution.converged
    assert solution.errors()["u"] < 1e-6
    points = solution.stated.domain.sample(200, rng=1)
    exact = solution.stated.exact_solution
    assert exact is not None
    for index in ((1, 0, 0), (0, 1, 0), (0, 1, 1)):
        assert np.allclose(solution.derivative(points, index), exact.derivative(points, index)[:, 0], atol=1e-3)


def test_a_flow_with_pressure() -> None:
    """Index 2: no equation holds ∂_t p, and the level of the pressure is measured in one corner."""
    solution = rp.solve(taylor_green(), tol=1e-5, method=rp.Cells(degree=9))
    assert solution.converged
    assert max(solution.errors().values()) < 1e-5


def test_a_wave() -> None:
    """Of second order in time: the polynomial of a step uses its first slope, so that second derivatives are right."""
    solution = rp.solve(wave(), tol=1e-5, method=rp.Cells())
    assert solution.converged
    assert solution.errors()["u"] < 1e-5
    assert solution.estimate > solution.errors()["u"] / 5
    points = solution.stated.domain.sample(200, rng=5)
    exact = solution.stated.exact_solution
    assert exact is not None
    assert np.allclose(solution.derivative(points, (2, 0, 0)), exact.derivative(points, (2, 0, 0))[:, 0], atol=5e-2)


@pytest.mark.slow
def test_a_condition_that_is_not_linear() -> None:
    """Radiation through the sides: dn(u) = u⁴ + what the exact solution leaves."""
    exact = "1 + exp(-t)*(x + y^2)/4"
    sides = {"x=0": "-exp(-t)/4", "x=1": "exp(-t)/4", "y=0": "0", "y=1": "exp(-t)/2"}
    conditions: dict[str, rp.On] = {"start": rp.On("t=0", f"u = {exact}")}
    for side, flux in sides.items():
        conditions[side] = rp.On(side, f"dn(u) + u^4 = {flux} + ({exact})^4")
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    equation = "u_t = laplace(u) - exp(-t)*(x + y^2)/4 - exp(-t)/2"
    problem = rp.Problem(equation, domain, conditions, exact={"u": exact})
    solution = rp.solve(problem, tol=1e-6, method=rp.Cells(degree=7))
    assert solution.converged
    assert solution.errors()["u"] < 1e-6


def test_a_start_that_does_not_meet_the_condition() -> None:
    """u = 0 at the start, dn(u) = 1 - u: a layer like √t, against a Fourier series in one dimension."""
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 0.5))
    conditions = {
        "start": rp.On("t=0", "u = 0"),
        "open": rp.On(("x=0", "x=1"), "dn(u) = 1 - u"),
        "closed": rp.On(("y=0", "y=0.5"), "dn(u) = 0"),
    }
    solution = rp.solve(rp.Problem("u_t = laplace(u)", domain, conditions), tol=1e-3, method=rp.Cells())
    assert solution.converged
    points = domain.sample(500, rng=2)
    assert np.abs(solution(points) - _slab(points[:, 0], points[:, 1])).max() < 5e-3
    wide = np.sqrt(np.mean((solution(points) - _slab(points[:, 0], points[:, 1])) ** 2))
    assert wide < 1e-3


def _slab(times: Array, places: Array) -> Array:
    """1 - Σ c_k exp(-m_k² t) cos(m_k (x - 1/2)) with m tan(m/2) = 1, symmetric about the middle."""
    values = np.ones(len(times))
    for k in range(60):
        lower, upper = 2 * np.pi * k + 1e-12, 2 * np.pi * k + np.pi - 1e-12
        for _ in range(80):
            middle = 0.5 * (lower + upper)
            lower, upper = (middle, upper) if middle * np.tan(middle / 2) < 1 else (lower, middle)
        m = 0.5 * (lower + upper)
        share = (2 * np.sin(m / 2) / m) / (0.5 + np.sin(m) / (2 * m))
        values -= share * np.exp(-(m**2) * times) * np.cos(m * (places - 0.5))
    return values


# ---------------------------------------------------------------------------------------------- endings and files


def test_what_was_reached_in_the_time_allowed_comes_back() -> None:
    progress: list[Progress] = []
    after_the_first_step = timed_by(lambda: float(bool(progress)))  # the clock moves then
    with after_the_first_step, pytest.warns(ConvergenceWarning, match="time allowed"):
        solution = rp.solve(heat(), tol=1e-7, method=rp.Cells(), seconds=0.9, progress=progress.append)
    assert solution.status is Status.BUDGET
    assert progress[0].time is not None
    assert 0 < progress[0].time < 0.1
    values = solution(solution.stated.domain.sample(300, rng=0))
    assert 0 < np.isfinite(values).sum() < 300
    assert solution.errors()["u"] < 0.1


def test_an_interrupt_leaves_what_was_reached() -> None:
    def stop(progress: Progress) -> None:
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = rp.solve(heat(), tol=1e-7, method=rp.Cells(), progress=stop)
    assert solution.status is Status.INTERRUPTED
    assert solution.errors()["u"] < 0.1


@pytest.mark.parametrize("problem", [wave(), heat()])
def test_solutions_go_to_files_and_come_back(problem: rp.Problem, tmp_path) -> None:  # type: ignore[no-untyped-def]
    solution = rp.solve(problem, tol=1e-3, method=rp.Cells())
    loaded = rp.load(solution.save(tmp_path / "march.rann"))
    assert isinstance(loaded, rp.Solution)
    points = problem.domain.sample(50, rng=0)
    for index in ((0, 0, 0), (1, 0, 0), (0, 2, 0)):
        assert np.array_equal(loaded.derivative(points, index), solution.derivative(points, index))
    assert loaded.report().splitlines()[1:] == solution.report().splitlines()[1:]


@pytest.mark.parametrize(
    "damage",
    [{"stages": 2}, {"stages": 3.5}, {"orders": [1, 1]}, {"orders": [7]}, {"orders": []}, {"end": -1.0}],
)
def test_damaged_files_are_refused(damage: dict[str, object]) -> None:
    solution = rp.solve(heat(), tol=1e-3, method=rp.Cells())
    header, arrays = solution.function.pack()
    assert unpack_trajectory(header, arrays).steps > 0
    with pytest.raises(FileError):
        unpack_trajectory(header | damage, arrays)
    with pytest.raises(FileError):
        unpack_trajectory(header, arrays | {"times": arrays["times"][::-1]})


# ------------------------------------------------------------------------------------------------------ obstacles


def test_time_stepping_is_the_default_in_the_plane_and_can_be_requested() -> None:
    line = rp.Problem(
        "u_t = u_xx",
        rp.SpaceTime(t=(0, 0.1), x=(0, 1)),
        {"start": rp.On("t=0", "u = sin(pi*x)"), "ends": rp.On("boundary", "u = 0")},
        exact={"u": "exp(-pi^2*t)*sin(pi*x)"},
    )
    marched = rp.solve(line, tol=1e-6, method=rp.Cells(time_stepping=True))
    assert isinstance(marched.function, CellTrajectory)
    assert marched.errors()["u"] < 1e-6
    assert not isinstance(rp.solve(line, tol=1e-3, method=rp.Cells()).function, CellTrajectory)


def test_obstacles_to_time_stepping_are_named() -> None:
    still = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"ends": rp.On(("x=0", "x=1"), "u = 1")})
    assert integration_obstacles(still) == ("the domain has no time",)
    with pytest.raises(InputError, match="no time"):
        rp.solve(still, method=rp.Cells(time_stepping=True))
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    late = {"start": rp.On("t=0", "u = 0"), "late": rp.On("t=1", "u = 1"), "sides": rp.On("boundary", "u = 0")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        over = rp.Problem("u_t = laplace(u)", domain, late)
    assert any("later time" in one for one in integration_obstacles(over))
    somewhere = rp.Data(np.array([[0.1, 0.5, 0.5], [0.9, 0.5, 0.5]]), np.zeros(2), "u")
    measured = rp.Problem("u_t = laplace(u)", domain, {k: late[k] for k in ("start", "sides")} | {"data": somewhere})
    assert any("whole time" in one for one in integration_obstacles(measured))
    free = rp.Problem("u_t = laplace(u)", domain, {"sides": rp.On("boundary", "u = 0")}, incomplete=True)
    assert any("do not give the value of u" in one for one in integration_obstacles(free))
    with pytest.raises(InputError, match="takes no guess"):
        rp.solve(heat(), method=rp.Cells(guess={"u": "x"}))
    with pytest.raises(InputError, match="time_stepping"):
        rp.Cells(time_stepping="yes")  # type: ignore[arg-type]


def test_initial_values_are_resolved_by_the_initial_mesh() -> None:
    exact = "exp(-200*((x - 0.3)^2 + (y - 0.6)^2))"
    domain = rp.SpaceTime(t=(0, 1e-3), x=(0, 1), y=(0, 1))
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "sides": rp.On("boundary", "dn(u) = 0")}
    problem = rp.Problem("u_t = 0.01*laplace(u)", domain, conditions)
    integration = CellIntegration(problem, 1e-6, Monitor(), TUNING, {})
    basis = BasisSample.sample(2, 10, TUNING, np.random.default_rng(0))
    tree = integration.first_tree(basis)
    mesh = MeshBuilder(domain.space, basis).build(tree)
    for _, cell in mesh.present:
        assert project(cell, InitialValues.of(problem).values(cell.points, 0))[1].max() < 1e-6


@pytest.mark.parametrize(("side", "slope", "duration"), [(4.0, 0.1, 0.5), (1.0, 0.5, 0.2)])
def test_a_plate_whose_conductivity_depends_on_its_temperature_is_heated_at_one_side(side, slope, duration):
    """Values jump at two corners and at the start, where extrapolated stages are noise; steps stayed at 1e-4 of the
    time. In the end the Kirchhoff transform u + slope u²/2 is harmonic, with the quarter of its value in the centre."""
    conditions = {"t=0": "u = 0", "x=0": f"u = {side}", "boundary except x=0": "u = 0"}
    with pytest.warns(UserWarning, match="differ by"):
        problem = rp.Problem(
            f"u_t = div((1 + {slope}*u)*grad(u))", rp.SpaceTime(t=(0, duration), x=(0, 1), y=(0, 1)), conditions
        )
    solution = rp.solve(problem, tol=1e-2, seconds=120)
    centre = float(solution(np.array([[duration, 0.5, 0.5]]))[0])
    assert solution.converged
    assert solution.history.iterations[-1].steps < 60
    assert centre + slope * centre**2 / 2 == pytest.approx((side + slope * side**2 / 2) / 4, rel=2e-2)
