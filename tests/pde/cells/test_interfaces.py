"""Coefficients that jump: solutions made so that their flux is continuous, and what interfaces are made of.

With g = 0 on an interface and k on its sides, u = g h/k has the flux ∇(g h) on both, for any smooth h.
"""

import numpy as np
import pytest
import sympy
from scipy.optimize import brentq

import rannpde as rp
from draws import covering, some
from rannpde.pde.cells.basis.basis import BasisSample
from rannpde.pde.cells.constraints.fluxes import contrast_weights
from rannpde.pde.cells.interfaces.detection import interfaces_of
from rannpde.pde.cells.interfaces.level_set import Interface
from rannpde.pde.cells.mesh.mesh import MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode, packed_tree, unpacked_tree
from rannpde.pde.cells.tuning import CellsTuning

SQUARE = rp.Box(x=(-1, 1), y=(-1, 1))
CUBE = rp.Box(x=(-1, 1), y=(-1, 1), z=(-1, 1))
SYMBOLS = sympy.symbols("x y z", real=True)


def made(level, factor, inner, outer, domain, more="0*U"):
    """div(k grad u) + more(u) = f with u = level · factor/k, k = inner where level < 0."""
    product = sympy.sympify(level) * sympy.sympify(factor)
    force = sum(sympy.diff(product, sympy.Symbol(name), 2) for name in domain.names)
    jump = f"where({level} < 0, {inner}, {outer})"
    exact = f"({level})*({factor})/{jump}"
    right = f"{sympy.sstr(force)} + {more.replace('U', f'({exact})')}"
    equation = f"div({jump}*grad(u)) + {more.replace('U', 'u')} = {right}"
    return rp.Problem(equation, domain, {"sides": rp.On("boundary", f"u = {exact}")}, exact={"u": exact})


def solved(problem, tol, rng=0, times=10):
    """Converged, the error wanted, and an estimate that is true."""
    solution = rp.solve(problem, tol=tol, rng=rng, method="cells")
    assert solution.converged, solution.report()
    worst = max(solution.errors().values())
    assert worst < tol
    assert worst < times * solution.estimate + 1e-13
    return solution


@pytest.mark.parametrize(("contrast", "rng"), some(covering([1e-6, 1e-3, 1e3, 1e6], [0, 1]), 2))
def test_a_disc_of_any_contrast(contrast, rng):
    """u = r⁴/k + a constant outside: the flux 4 r³ everywhere."""
    gap = 0.25**2 * (1 / contrast - 1)
    exact = f"where(x**2 + y**2 < 0.25, (x**2 + y**2)**2/{contrast!r}, (x**2 + y**2)**2 + {gap!r})"
    equation = f"div(where(x**2 + y**2 < 0.25, {contrast!r}, 1)*grad(u)) = 16*(x**2 + y**2)"
    problem = rp.Problem(equation, SQUARE, {"sides": rp.On("boundary", f"u = {exact}")}, exact={"u": exact})
    solved(problem, 1e-8, rng)


ELLIPSE, CIRCLE = "x**2/0.49 + y**2/0.16 - 1", "x**2 + y**2 - 0.3"
HOLED = SQUARE - rp.Ball((0.5, 0.5), 0.2, names=("x", "y"))
PROBLEMS = {
    "ellipse": (ELLIPSE, "exp(x)*cos(2*y)", 1000, 1, SQUARE),
    "oblique line": ("x + 0.7*y - 0.2", "exp(x)*cos(2*y)", 1, 500, SQUARE),
    "through the boundary": ("(x - 1)**2 + (y - 0.8)**2 - 0.5", "sin(2*x + y) + 2", 1, 100, SQUARE),
    "along a coordinate": ("x - 0.3", "sin(2*x + y) + 2", 1, 100, SQUARE),
    "wave": ("y - 0.3*sin(4*x)", "cos(x - 2*y)", 1, 30, SQUARE),
    "through a hole": ("x**2 + y**2 - 0.5", "cos(x - 2*y)", 1, 30, HOLED),
    "in a disc": ("x + 0.4*y - 0.1", "cos(x - 2*y)", 1, 30, rp.Ball((0, 0), 1, names=("x", "y"))),
    "small disc": ("(x - 0.31)**2 + (y - 0.17)**2 - 0.0009", "1 + x", 1000, 1, SQUARE),
    "nonlinear": (CIRCLE, "cos(x - y)", 1, 50, SQUARE, "U**3"),
    "reaction that jumps too": (CIRCLE, "cos(x - y)", 1, 50, SQUARE, "where(x + y < 0.1, 1, 30)*U"),
}


@pytest.mark.parametrize("name", some(PROBLEMS, 4))
def test_interfaces_of_all_kinds(name):
    solved(made(*PROBLEMS[name]), 1e-7)


@pytest.mark.parametrize("level", some(["x + z/2 - 0.1", "z - 0.1"], 1))
def test_an_interface_in_space(level):
    solved(made(level, "cos(x - y + z)", 20, 1, CUBE), 1e-4)


def test_three_layers_exactly():
    """(k u')' = -1 between zeros: u' = (c - x)/k."""
    layers, ends = (1.0, 50.0, 0.02), (0.0, 0.3, 0.55, 1.0)
    pieces = list(zip(layers, ends, ends[1:], strict=False))
    middle = sum((b**2 - a**2) / 2 / k for k, a, b in pieces) / sum((b - a) / k for k, a, b in pieces)

    def exact(points):
        parts = [(np.clip(points[:, 0], a, b), a, k) for k, a, b in pieces]
        return sum((middle * (x - a) - (x**2 - a**2) / 2) / k for x, a, k in parts)

    equation = "d(where(x < 0.3, 1, where(x < 0.55, 50, 0.02))*u_x, x) = -1"
    ends = {"ends": rp.On("boundary", "u = 0")}
    solution = solved(rp.Problem(equation, rp.Interval(0, 1), ends, exact={"u": exact}), 1e-10)
    edges = np.unique(solution.function.boxes.ravel())
    assert {0.3, 0.55} <= set(edges.tolist())  # cells end there, however cuts are shaken


def test_sums_and_products_of_several_jumps():
    """k is 5, 1 and 10 in three layers, with the flux (1, 0) through them."""
    jump = "(1 + 4*where(x < -0.4, 1, 0))*(1 + 9*where(x > 0.2, 1, 0))"
    exact = "where(x < -0.4, (x + 0.4)/5, where(x > 0.2, 0.6 + (x - 0.2)/10, x + 0.4))"
    problem = rp.Problem(
        f"div({jump}*grad(u)) = 0", SQUARE, {"sides": rp.On("boundary", f"u = {exact}")}, exact={"u": exact}
    )
    solved(problem, 1e-9)


def quadrants(factors, bracket):
    """div(k grad u) = 0, k by quadrant, counterclockwise from the first: u = r^λ φ(θ), with u and k u_θ continuous."""

    def turn(power, factor):
        cosine, sine = np.cos(power * np.pi / 2), np.sin(power * np.pi / 2)
        return np.array([[cosine, sine / factor], [-factor * sine, cosine]])

    def around(power):
        return np.linalg.multi_dot([turn(power, factor) for factor in reversed(factors)])

    power = brentq(lambda power: np.trace(around(power)) - 2, *bracket, xtol=1e-14)
    states = [np.linalg.svd(around(power) - np.eye(2))[2][-1]]
    for factor in factors[:-1]:
        states.append(turn(power, factor) @ states[-1])

    def exact(points):
        angle = np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi)
        number = np.minimum(angle // (np.pi / 2), 3).astype(int)
        own, beyond = np.array(states)[number], power * (angle - number * np.pi / 2)
        shape = own[:, 0] * np.cos(beyond) + own[:, 1] / np.array(factors)[number] * np.sin(beyond)
        return np.hypot(*points.T) ** power * shape

    first, second, third, fourth = factors
    jump = f"where(y > 0, where(x > 0, {first}, {second}), where(x > 0, {fourth}, {third}))"
    known = lambda x, y: exact(np.stack(np.broadcast_arrays(x, y), axis=1))  # noqa: E731
    sides = {"sides": rp.On("boundary", "u = g(x, y)")}
    domain = rp.Box(x=(-1, 1.2), y=(-0.9, 1))
    return rp.Problem(f"div({jump}*grad(u)) = 0", domain, sides, functions={"g": known}, exact={"u": exact})


@pytest.mark.slow
def test_the_corner_of_an_inclusion():
    """u is like r^0.67; without cells that shrink to the corner iterations agreed on what was off by 8e-2."""
    solved(quadrants((100, 1, 1, 1), (0.6, 0.7)), 1e-3)


def test_corners_are_where_a_flux_jumps_across_both_interfaces():
    def corners(equation):
        return sorted(interfaces_of(rp.Problem(equation, SQUARE, {"sides": rp.On("boundary", "u = 0")})).corners)

    block = "where(x > 0, where(y > 0.2, 7, 1), 1)"
    assert corners(f"div({block}*grad(u)) = 1") == [(0.0, 0.2)]
    assert corners("div(where(x > 0, 7, 1)*grad(u)) = where(y > 0.2, 1, 2)") == []
    assert corners(f"{block}*laplace(u) = 1") == []


def test_a_flux_that_is_not_linear():
    """k (1 + (k u)²) ∇u is (1 + U²) ∇U for u = U/k."""
    jump, product = "where(x**2 + y**2 < 0.3, 1, 20)", sympy.sympify(f"({CIRCLE})*cos(x - y)")
    force = sum(sympy.diff((1 + product**2) * sympy.diff(product, name), name) for name in ("x", "y"))
    exact = f"({sympy.sstr(product)})/{jump}"
    equation = f"div({jump}*(1 + ({jump}*u)**2)*grad(u)) = {sympy.sstr(force)}"
    solved(rp.Problem(equation, SQUARE, {"sides": rp.On("boundary", f"u = {exact}")}, exact={"u": exact}), 1e-7)


def test_an_elastic_inclusion():
    """Two equations with fluxes of both fields, λ = μ = m: (u, v) = g (h, k)/m."""
    x, y = sympy.symbols("x y")
    u, v = (sympy.sympify(f"({CIRCLE})*{factor}") for factor in ("cos(x - y)", "sin(x + 2*y)"))
    shear, along, across = u.diff(y) + v.diff(x), 3 * u.diff(x) + v.diff(y), u.diff(x) + 3 * v.diff(y)
    forces = along.diff(x) + shear.diff(y), shear.diff(x) + across.diff(y)
    jump = "where(x**2 + y**2 < 0.3, 100, 1)"
    exact = {"u": f"({sympy.sstr(u)})/{jump}", "v": f"({sympy.sstr(v)})/{jump}"}
    equations = {
        "x": f"d({jump}*(3*u_x + v_y), x) + d({jump}*(u_y + v_x), y) = {sympy.sstr(forces[0])}",
        "y": f"d({jump}*(u_y + v_x), x) + d({jump}*(3*v_y + u_x), y) = {sympy.sstr(forces[1])}",
    }
    sides = {name: rp.On("boundary", f"{name} = {formula}") for name, formula in exact.items()}
    solved(rp.Problem(equations, SQUARE, {f"{n} given": side for n, side in sides.items()}, exact=exact), 1e-7)


def test_a_drop_whose_pressure_is_not_forced_to_be_continuous():
    """Stokes with a viscosity that jumps: (u, v) = rot(ψ)/μ with ψ ~ g², p smooth."""
    x, y = sympy.symbols("x y")
    face_flux, pressure = sympy.sympify(f"({CIRCLE})**2*exp(x)/3"), sympy.sin(x * y)
    fields = face_flux.diff(y), -face_flux.diff(x)
    forces = [f.diff(x, 2) + f.diff(y, 2) - pressure.diff(c) for f, c in zip(fields, (x, y), strict=True)]
    jump = "where(x**2 + y**2 < 0.3, 20, 1)"
    exact = {n: f"({sympy.sstr(f)})/{jump}" for n, f in zip("uv", fields, strict=True)} | {"p": "sin(x*y)"}
    equations = {f"force {c}": f"div({jump}*grad({n})) = p_{c} + {sympy.sstr(f)}"
                 for n, c, f in zip("uv", "xy", forces, strict=True)}  # fmt: skip
    sides = {f"{name} given": rp.On("boundary", f"{name} = {exact[name]}") for name in "uv"}
    sides["p given"] = rp.On("x=1", "p = sin(y)")
    problem = rp.Problem(equations | {"mass": "u_x + v_y = 0"}, SQUARE, sides, exact=exact, incomplete=True)
    solved(problem, 1e-5)


@pytest.mark.parametrize("place", ["x - 0.3", "x - 0.3 - 0.2*t"])
def test_layers_in_time(place):
    """Time as a coordinate, with an interface that stays or moves."""
    product = sympy.sympify(f"({place})*cos(2*x)*exp(-t)")
    jump, exact = f"where({place} < 0, 1, 20)", f"({place})*cos(2*x)*exp(-t)/where({place} < 0, 1, 20)"
    force = f"({sympy.sstr(product.diff('t'))})/{jump} - ({sympy.sstr(product.diff('x', 2))})"
    conditions = {"start": rp.On("t=0", f"u = {exact}"), "walls": rp.On(("x=0", "x=1"), f"u = {exact}")}
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    solved(rp.Problem(f"u_t = d({jump}*u_x, x) + {force}", domain, conditions, exact={"u": exact}), 1e-7)


def test_coefficients_differ_at_the_ends_of_a_period():
    """The flux, not the slope, is continuous across the seam: k u' has no jump anywhere."""
    equation = "d(where(x < 0.5, 1, 10)*u_x, x) - u = sin(2*pi*x)"
    solution = rp.solve(rp.Problem(equation, rp.Interval(0, 1), {"round": rp.Periodic("x")}), tol=1e-9)
    assert solution.converged
    left, right = (solution.function.derivative(np.array([[place]]), (1,)) for place in (0.0, 1.0))
    assert np.allclose(left, 10 * right, rtol=1e-6)
    assert abs(left.item()) > 1e-3


@pytest.mark.parametrize(
    ("equation", "exact"),
    [
        ("laplace(u) = 6*abs(x - 0.2*y)", "abs(x - 0.2*y)**3/1.04"),
        ("laplace(u) = 2*where(x + y > 0.3, 1, 0)", "max(x + y - 0.3, 0)**2/2"),
        ("(2 + sign(x - 0.3))*laplace(u) = 2*(2 + sign(x - 0.3)) + 2*sign(x - 0.3)*0", "x**2"),
    ],
)
def test_what_jumps_outside_of_a_flux_keeps_the_slope_continuous(equation, exact):
    solved(rp.Problem(equation, SQUARE, {"sides": rp.On("boundary", f"u = {exact}")}, exact={"u": exact}), 1e-8)


def test_a_solution_with_interfaces_is_saved_and_read(tmp_path):
    solution = rp.solve(made(*PROBLEMS["oblique line"]), tol=1e-3)
    solution.save(tmp_path / "solution.npz")
    points = SQUARE.sample(200, rng=0)
    assert np.array_equal(rp.load(tmp_path / "solution.npz")(points), solution(points))


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("method", ["lines", "collocation"])
def test_methods_of_smooth_functions_refuse_a_flux_that_jumps(method):
    problem = rp.Problem(
        "u_t = d(where(x < 0.5, 1, 2)*u_x, x)",
        rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", "u = 0"), "walls": rp.On(("x=0", "x=1"), "u = t")},
    )
    with pytest.raises(rp.InputError, match=r"flux of equation 'equation' jumps; use method=rp.Cells"):
        rp.solve(problem, method=method)


def test_what_no_method_can_solve_is_refused_with_all_reasons():
    box = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1), w=(0, 1))
    problem = rp.Problem("div(where(x < 0.5, 1, 2)*grad(u)) = 1", box, {"sides": rp.On("boundary", "u = 0")})
    with pytest.raises(rp.InputError, match=r"no method can.*more than three.*jumps"):
        rp.solve(problem)
    with pytest.raises(rp.InputError, match="no other method"):
        rp.solve(problem, method="cells")


def test_the_flux_is_part_of_what_a_problem_says():
    sides = {"sides": rp.On("boundary", "u = 0")}
    one, other = (
        rp.Problem(equation, SQUARE, sides)
        for equation in ("where(x < 0, 1, 2)*laplace(u) = 1", "div(where(x < 0, 1, 2)*grad(u)) = 1")
    )
    assert one.fingerprint != other.fingerprint


# ---------------------------------------------------------------------------------------------------------- parts


def test_points_of_an_interface_lie_on_it_and_integrate_over_it():
    circle, sphere = (Interface(sum(s**2 for s in own) - 1, own, True) for own in (SYMBOLS[:2], SYMBOLS))
    for interface, tolerance in ((circle, 2e-2), (sphere, 5e-2)):
        bounds = np.array([(0.0, 1.1)] * len(interface.symbols))
        points, weights = interface.within(bounds, 60)
        assert np.abs(interface.value(points)).max() < 1e-14
        assert np.allclose(interface.normals(points), points, atol=1e-14)
        assert abs(weights.sum() - 1) < 1e-14
        # ∫ x is 1 over the arc, π/4 over the eighth of the sphere; where the steepest axis changes a line may count
        mean = 2 / np.pi if len(bounds) == 2 else 0.5
        assert abs(weights @ points[:, 0] - mean) < tolerance  # a line of 60 in one or two dimensions


def test_flat_interfaces_are_detected_once_at_their_positions():
    equation = "div(where(abs(x) < 0.3, 1, 9)*grad(u)) = where(2*x < 0.6, 1, 2) + where(y**2 < 0.25, 1, 0)"
    found = interfaces_of(rp.Problem(equation, SQUARE, {"sides": rp.On("boundary", "u = 0")}))
    assert sorted(found.flat) == [(0, -0.3, True), (0, 0.3, True), (1, -0.5, False), (1, 0.5, False)]
    assert found.curved == ()


def test_crowded_interfaces_are_followed_only_where_a_flux_jumps():
    sides = {"sides": rp.On("boundary", "u = 0")}
    crowded, circle = "where(sin(60*x*y) < 0, 1, 2)", "where(x**2 + y**2 < 0.9, 1, 2)"
    for equation, count in (
        (f"laplace(u) = {crowded} + {circle}", 1),
        (f"div({crowded}*grad(u)) = {circle}", 2),
    ):
        assert len(interfaces_of(rp.Problem(equation, SQUARE, sides)).curved) == count


def divided():
    """Nine boxes of a square and the mesh of them that a circle divides."""
    problem = rp.Problem(
        "div(where(x**2 + y**2 < 0.25, 1, 9)*grad(u)) = 1", SQUARE, {"sides": rp.On("boundary", "u = 0")}
    )
    tree = CellNode(np.array([(-1.0, 1.0)] * 2))
    for axis in (0, 1):
        tree = tree.split_at(axis, -0.3).split_at(axis, 0.35)
    basis = BasisSample.sample(2, 5, CellsTuning(), np.random.default_rng(0))
    return tree, MeshBuilder(SQUARE, basis, interfaces_of(problem)).build(tree)


def test_boxes_are_divided_where_the_interface_runs_through_them():
    tree, mesh = divided()
    assert len(tree.leaves) == 9
    counts = np.bincount(mesh.homes)
    nearest = [np.hypot(*np.clip(0, *leaf.bounds.T)) for leaf in tree.leaves]
    farthest = [np.hypot(*np.meshgrid(*leaf.bounds)).max() for leaf in tree.leaves]
    crossed = [near < 0.5 < far for near, far in zip(nearest, farthest, strict=True)]
    assert counts.tolist() == [1 + bool(one) for one in crossed]
    for number, cell in mesh.present:
        inside = (cell.points**2).sum(axis=1) < 0.25
        assert inside.all() or not inside.any()
        assert (mesh.tree.locate(cell.points) == number).all()
    curves = [face for face in mesh.faces if face.normals is not None]
    assert len(curves) == int((counts == 2).sum())
    assert all(face.flux for face in curves)
    for face in mesh.faces:
        levels = [(mesh.cells[k].points ** 2).sum(axis=1).mean() < 0.25 for k in face.cells]
        assert (levels[0] != levels[1]) == (face.normals is not None)  # faces join what lies on one side


def test_a_divided_tree_is_packed_and_unpacked():
    _, mesh = divided()
    again = unpacked_tree(mesh.tree.bounds, *packed_tree(mesh.tree, mesh.interfaces), mesh.interfaces)
    points = SQUARE.sample(500, rng=1)
    assert (again.locate(points) == mesh.tree.locate(points)).all()


def test_strength_is_diffusion_times_the_resistance_on_the_way_to_given_values():
    # a frame where values are given, a weak layer, a strong core in it, and an island beyond another weak layer
    diffusion = {0: 1000.0, 1: 1.0, 2: 1.0, 3: 1000.0, 4: 0.01, 5: 3.0}
    found = contrast_weights(diffusion, [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5)], {0})
    assert found == {0: 1.0, 1: 1.0, 2: 1.0, 3: 1000.0, 4: 1.0, 5: 300.0}
    assert contrast_weights({0: 1.0, 1: 50.0}, [(0, 1)], set()) == {0: 1.0, 1: 50.0}  # values are given nowhere


@pytest.mark.slow
def test_cells_shrink_to_crossings_beside_a_laplacian_until_equations_are_satisfied_there():
    """Values are right long before: the residual at r² log r would fail the check."""
    equation = "where(x < 0.5, 1, 10)*where(y < 0.4, 1, 5)*laplace(u) = 1"
    problem = rp.Problem(equation, rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    fine, coarse = (rp.solve(problem, tol=tol) for tol in (1e-5, 1e-3))
    assert fine.converged
    assert coarse.converged
    assert max(coarse.held_out.values()) < 1e-2
    points = problem.domain.sample(1000, rng=3)
    assert np.linalg.norm(coarse(points) - fine(points)) < 3e-5 * np.linalg.norm(fine(points))
