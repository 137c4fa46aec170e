"""The weak form on cells: known numbers, exact solutions, orders, mixed conditions, shapes, bad data."""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np
import pytest

import rannpde as rp
from draws import some
from rannpde import On
from rannpde.errors import InputError
from rannpde.pde.budget import timed_by
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.grading import towards_points
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution

BODY = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = rho"]
ACROSS_X = ["(lam+2*mu)*u_x + lam*v_y = 0", "mu*(u_y + v_x) = 0"]
ACROSS_Y = ["mu*(u_y + v_x) = 0", "(lam+2*mu)*v_y + lam*u_x = 0"]
STEEL = {"lam": 1.25, "mu": 1.0, "rho": 0.016}
BEAM = rp.Box(x=(0, 1), y=(0, 0.2))
CLAMPED = {"clamp": On("x=0", ["u = 0", "v = 0"]), "tip": On("x=1", ACROSS_X), "long": On(("y=0", "y=0.2"), ACROSS_Y)}


def motz(scale=1.0, shift=0.0):
    """Motz' problem in other units: u = 0 turns into ∂_n u = 0 at x = shift on the side y = 0."""
    box = rp.Box(x=(shift - scale, shift + scale), y=(0, scale))
    conditions = {
        "cold": On(f"y=0 where x < {shift!r}", "u = 0"), "floor": On(f"y=0 where x > {shift!r}", "dn(u) = 0"),
        "hot": On(f"x={shift + scale!r}", "u = 500"), "rest": On((f"x={shift - scale!r}", f"y={scale!r}"), "dn(u) = 0"),
    }  # fmt: skip
    return rp.Problem("laplace(u) = 0", box, conditions)


def leading_coefficient(solution, scale=1.0, shift=0.0, radius=0.3):
    """a₀ of u = Σ a_k r^(k+½) cos((k+½)θ), by the mean over a half circle."""
    angle = (np.arange(400) + 0.5) * np.pi / 400
    values = solution(np.column_stack([shift + scale * radius * np.cos(angle), scale * radius * np.sin(angle)]))
    return 2 * np.mean(values * np.cos(angle / 2)) / np.sqrt(radius)


@pytest.mark.parametrize("tol", some([1e-2, 1e-4, 1e-6], 2))
def test_the_cantilever_of_the_tutorials(tol):
    beam = rp.Problem(BODY, BEAM, CLAMPED, parameters=STEEL)
    for method in ("weak", None):
        solution = rp.solve(beam, tol=tol, method=method)
        assert solution.converged
        tip = solution(np.array([[1.0, 0.1]]))[0, 1]
        assert tip == pytest.approx(-0.2246552825, rel=max(tol, 1e-7))
        assert method is None or "mixed derivatives are split" in solution.report()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (3.7e-3, 0.21), (250.0, -31.4)])
def test_motz_in_any_units(scale, shift):
    solution = rp.solve(motz(scale, shift), tol=1e-6, method="weak")
    assert solution.converged
    assert solution.method.name == "weak"
    assert leading_coefficient(solution, scale, shift) == pytest.approx(401.1624537452, rel=1e-6)


def test_convergence_is_exponential_at_a_singular_point():
    """log error falls at least linearly in the cube root of the unknowns (Babuška, Guo)."""
    problem = motz()
    found = []
    for degree, levels in ((3, 6), (5, 10), (7, 14), (9, 18)):
        form = weak_formulation(problem)
        discretisation = WeakDiscretisation(form, 1e-6, WeakSettings(), np.random.default_rng(3), lambda: None)
        tree = CellNode(np.array([(-1.0, 1.0), (0.0, 1.0)])).split_at(0, 0.0)
        state = discretisation.solve(WeakResolution(towards_points(tree, [((0.0, 0.0), levels)]), degree))
        error = abs(leading_coefficient(lambda p, s=state: s.network(p)[:, 0]) / 401.1624537452 - 1)
        found.append((state.unknowns ** (1 / 3), np.log(error)))
    roots, logs = np.array(found).T
    slope, _ = np.polyfit(roots, logs, 1)
    assert slope < -0.6
    assert logs[-1] < np.log(1e-7)


def test_convergence_is_exponential_in_the_degree_of_a_smooth_solution():
    exact = "exp(2*x)*sin(2*y)"
    problem = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", f"u = {exact}")})
    points = problem.domain.sample(500, rng=0)
    truth = np.exp(2 * points[:, 0]) * np.sin(2 * points[:, 1])
    tree = CellNode(np.array([(0.0, 1.0), (0.0, 1.0)])).refined_leaves((0, 1))
    errors = []
    for degree in (4, 6, 8, 10):
        rng = np.random.default_rng(0)
        discretisation = WeakDiscretisation(weak_formulation(problem), 0.1, WeakSettings(), rng, lambda: None)
        state = discretisation.solve(WeakResolution(tree, degree))
        errors.append(np.linalg.norm(state.network(points)[:, 0] - truth) / np.linalg.norm(truth))
    assert (np.array(errors[1:]) < 0.1 * np.array(errors[:-1])).all()
    assert errors[-1] < 1e-9


HARMONIC = "exp(x)*cos(y) + log(sqrt((x - 0.31)**2 + (y - 0.27)**2))"
HOLE_FLUX = "-1/0.12 - (x - 0.31)/0.12*exp(x)*cos(y) + (y - 0.27)/0.12*exp(x)*sin(y)"


@pytest.mark.parametrize("hole", some([f"dn(u) + 2*u = {HOLE_FLUX} + 2*({HARMONIC})", f"u = {HARMONIC}"], 1))
def test_a_plate_with_a_hole(hole):
    plate = rp.Box(x=(0, 0.7), y=(0, 0.6)) - rp.Ball((0.31, 0.27), 0.12, name="hole")
    conditions = {"rim": On("boundary except hole", f"u = {HARMONIC}"), "hole": On("hole", hole)}
    problem = rp.Problem("laplace(u) = 0", plate, conditions, exact={"u": HARMONIC})
    solution = rp.solve(problem, tol=1e-5, method=rp.WeakCells())
    assert solution.converged
    assert solution.errors()["u"] < 1e-5


def test_a_square_inclusion_and_a_file(tmp_path):
    inclusion = rp.Problem(
        "div(where(max(abs(x), abs(y)) < 0.5, 100, 1)*grad(u)) = -1", rp.Box(x=(-1, 1), y=(-1, 1)),
        {"rim": On("boundary", "u = 0")},
    )  # fmt: skip
    solution = rp.solve(inclusion, tol=1e-4)
    assert solution.converged
    assert solution.method.name == "weak"
    assert solution(np.array([[0.0, 0.0], [0.7, 0.3]])) == pytest.approx([0.21062492, 0.1494194], rel=2e-4)
    again = rp.load(solution.save(tmp_path / "inclusion.rann"))
    points = inclusion.domain.sample(50, rng=0)
    assert np.array_equal(again(points), solution(points))
    assert again.report() == solution.report()


def test_layers_of_any_contrast():
    for contrast in (1e-5, 37.0, 1e6):
        exact = lambda p, k=contrast: np.where(p[:, 0] < 0.3, p[:, 0], 0.3 + (p[:, 0] - 0.3) / k)  # noqa: E731
        problem = rp.Problem(
            f"div(where(x < 0.3, 1, {contrast!r})*grad(u)) = 0", rp.Box(x=(0, 1), y=(0, 0.7)),
            {"left": On("x=0", "u = 0"), "right": On("x=1", f"u = {0.3 + 0.7 / contrast!r}"),
             "rest": On(("y=0", "y=0.7"), "dn(u) = 0")}, exact={"u": exact},
        )  # fmt: skip
        solution = rp.solve(problem, tol=1e-6)
        assert solution.converged
        assert solution.errors()["u"] < 1e-6


def test_nearly_incompressible_bodies_do_not_lock():
    """ν = 0.4999: tip of a cantilever under its weight; the value is that of degree 10 on a finer mesh."""
    ratio, modulus = 0.4999, 1.0
    lam, mu = modulus * ratio / ((1 + ratio) * (1 - 2 * ratio)), modulus / (2 * (1 + ratio))
    words = {"lam": lam, "mu": mu, "rho": 0.01}
    coarse, fine = (
        rp.solve(rp.Problem(BODY, BEAM, CLAMPED, parameters=words), tol=tol)(np.array([[1.0, 0.1]]))[0, 1]
        for tol in (1e-2, 1e-4)
    )
    assert coarse == pytest.approx(fine, rel=1e-2)
    beam = -0.01 * 0.2 / (8 * modulus / (1 - ratio**2) * 0.2**3 / 12)  # Euler and Bernoulli's, plane strain
    assert fine == pytest.approx(beam, rel=0.06)


def test_bodies_without_support_are_told_why():
    free = {"ends": On(("x=0", "x=1"), ACROSS_X), "long": On(("y=0", "y=0.2"), ACROSS_Y)}
    with pytest.raises(InputError, match=r"3 rigid motions.*do not balance"):
        rp.solve(rp.Problem(BODY, BEAM, free, parameters=STEEL), tol=1e-3)
    with pytest.raises(InputError, match=r"a constant in u.*do not balance"):
        rp.solve(rp.Problem("laplace(u) = 1", BEAM, {"rim": On("boundary", "dn(u) = 0")}), method="weak")


def test_balanced_neumann_data_give_the_solution_of_mean_zero():
    problem = rp.Problem("laplace(u) = cos(pi*x)", BEAM, {"rim": On("boundary", "dn(u) = 0")})
    with pytest.warns(rp.ConvergenceWarning, match="leave a constant in u free"):
        solution = rp.solve(problem, tol=1e-7, method="weak")
    points = problem.domain.sample(100, rng=0)
    assert np.allclose(solution(points), -np.cos(np.pi * points[:, 0]) / np.pi**2, atol=1e-8)


def test_a_cantilever_in_space():
    """Plane strain in disguise: with v = 0 on both z-sides the solution does not depend on z."""
    lam, mu, rho = 1.25, 1.0, 0.016
    names, fields = "xyz", "uvw"
    equations = []
    for i, f in enumerate(fields):
        terms = [f"{mu}*laplace({f})"] + [
            f"{lam + mu}*{g}_{''.join(sorted(names[i] + names[k]))}" for k, g in enumerate(fields)
        ]
        equations.append(" + ".join(terms) + f" = {rho if f == 'v' else 0}")
    divergence = "(u_x + v_y + w_z)"

    def traction(axis):
        shear = [f"{mu}*({fields[axis]}_{names[k]} + {fields[k]}_{names[axis]}) = 0" for k in range(3) if k != axis]
        return [f"{lam}*{divergence} + {2 * mu}*{fields[axis]}_{names[axis]} = 0", *shear]

    conditions = {
        "clamp": On("x=0", ["u = 0", "v = 0", "w = 0"]), "tip": On("x=1", traction(0)),
        "long": On(("y=0", "y=0.2"), traction(1)), "slides": On(("z=0", "z=0.1"), ["w = 0", *traction(2)[1:]]),
    }  # fmt: skip
    body = rp.Problem(equations, rp.Box(x=(0, 1), y=(0, 0.2), z=(0, 0.1)), conditions)
    form = weak_formulation(body)
    assert form.symmetric
    discretisation = WeakDiscretisation(form, 1e-2, WeakSettings(), np.random.default_rng(0), lambda: None)
    tree = discretisation.first().tree
    coarse, fine = (
        discretisation.solve(WeakResolution(tree, degree)).network(np.array([[1.0, 0.1, 0.05]]))[0, 1]
        for degree in (3, 5)
    )
    assert fine == pytest.approx(-0.224655, rel=4e-3)  # without grading at the clamp
    assert abs(fine + 0.224655) < 0.5 * abs(coarse + 0.224655)


def test_functions_are_those_of_the_network():
    """Legendre coefficients and output weights describe the same functions, up to rounding over the cutoff."""
    layer = HiddenLayer.sample(2, 7, WeakSettings(), np.random.default_rng(5))
    points = np.random.default_rng(1).uniform(-1, 1, (200, 2))
    network = layer.features(points) @ layer.outputs
    scale = np.linalg.norm(layer.outputs, axis=0)
    assert (np.abs(network - layer.tables(points)[:, 0]) <= 1e-11 * (1 + scale)).all()
    values, slopes = layer.reference
    gram = (values.T * layer.grid[1]) @ values + sum((one.T * layer.grid[1]) @ one for one in slopes)
    assert np.allclose(np.diag(gram)[:30], 1.0, atol=1e-8)


def test_time_is_kept_and_what_was_found_comes_back():
    with warnings.catch_warnings(), timed_by(process_time):
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        solution = rp.solve(motz(), tol=1e-12, seconds=3.0, method="weak")  # the first iteration takes 0.4
    assert not solution.converged
    assert solution.status.by_caller or solution.status is rp.Status.STALLED
    assert leading_coefficient(solution) == pytest.approx(401.16, rel=1e-2)


def test_smooth_problems_stay_with_the_strong_form():
    smooth = rp.Problem("laplace(u) = -1", rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", "u = sin(x)")})
    assert rp.WeakCells().drawbacks(smooth)
    assert not rp.WeakCells().drawbacks(motz())


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("laplace(u)**2 = 1 + u", "second derivatives|divergence"),
        ("u_x + u_y = 1", "second derivatives"),
        ("u_xx - u_yy = 0", "elliptic|sign"),
    ],
)
def test_what_it_cannot_solve_is_refused_with_the_reason(equation, reason):
    problem = rp.Problem(equation, rp.Box(x=(0, 1), y=(0, 1)), {"rim": On("boundary", "u = 0")}, incomplete=True)
    with pytest.raises(InputError, match=reason):
        rp.solve(problem, method="weak")


def test_parts_of_sides_in_files_and_checks():
    with pytest.raises(InputError, match=r"no condition holds at .* on the side 'y=0'"):
        rp.Problem(
            "laplace(u) = 0", BEAM, {"a": On("y=0 where x < 0.5", "u = 0"), "b": On("boundary except y=0", "u = 0")}
        )
    with pytest.raises(InputError, match="holds nowhere"):
        rp.Problem("laplace(u) = 0", BEAM, {"a": On("y=0 where x > 3", "u = 0"), "b": On("boundary", "u = 0")})
    with pytest.raises(InputError, match="where"):
        rp.Problem("laplace(u) = 0", BEAM, {"a": On("y=0 where x <", "u = 0"), "b": On("boundary", "u = 0")})


def test_limits_of_memory_and_time_hold():
    """A limit that nothing fits into is an error that names it; one in seconds ends a solve that would take minutes."""
    sides = {"left": rp.On("x=0", "u = 0"), "rest": rp.On("boundary except x=0", "dn(u) = 0")}
    plate = rp.Problem("div((2 + x*y)*grad(u)) = -1", rp.Box(x=(0, 1), y=(0, 1)), sides)
    with pytest.raises(InputError, match="memory is too small"):
        rp.solve(plate, tol=1e-6, memory=1e4, method="weak")
    cube = rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1)) - rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    fichera = rp.Problem("laplace(u) = -1", cube, {"wall": rp.On("boundary", "u = 0")})
    begin = process_time()
    with pytest.warns(rp.ConvergenceWarning):
        solution = rp.solve(fichera, tol=1e-6, seconds=3.0, method="weak")
    assert not solution.converged
    assert process_time() - begin < 1.2 * 3 + 1
