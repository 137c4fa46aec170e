"""Cells of Trefftz networks: materials that meet at lines and circles, elimination in blocks, files."""

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.trefftz.cells.arrangement import Arrangement, arranged, dividing_curve, line
from rannpde.pde.trefftz.cells.elimination import BlockRows, RowBlock
from rannpde.pde.trefftz.cells.setting import divided_cells
from rannpde.pde.trefftz.least_squares import largest_singular_value
from rannpde.pde.trefftz.method import Trefftz
from rannpde.pde.trefftz.rows import TrefftzRows
from rannpde.pde.trefftz.setting import TrefftzSetting, trefftz_setting
from rannpde.pde.trefftz.tuning import TrefftzTuning

SQUARE = rp.Box(x=(-1, 1), y=(-1, 1))


def exactly(problem, tol, **settings):
    """Solved by cells of networks, and within its own estimate, up to a factor of two for the sampling of both."""
    solution = rp.solve(problem, tol=tol, **settings)
    assert solution.method.name == "trefftz"
    assert solution.converged
    assert "cells" in solution.method.label
    assert solution.errors()["u"] <= max(2 * solution.estimate, 1e-13)
    return solution


def wire(contrast, centre, radius, unit=1.0, angle=0.0):
    """A round wire in a uniform field: inside the field is uniform too."""
    share = (contrast - 1) / (contrast + 1)
    x, y = (c * unit for c in centre)
    a = radius * unit
    way = np.array([np.cos(angle), np.sin(angle)])

    def exact(points):
        away = points - [x, y]
        along, square = away @ way / unit, np.maximum((away**2).sum(axis=1), 1e-3 * a**2)
        return np.where(square < a**2, 2 / (1 + contrast) * along, along * (1 - share * a**2 / square))

    equation = f"div(where((x - {x!r})**2 + (y - {y!r})**2 < {a!r}**2, {contrast!r}, 1)*grad(u)) = 0"
    box = rp.Box(x=(-unit, unit), y=(-unit, 1.3 * unit))
    given = {"g": lambda x, y: exact(np.stack([x, y], axis=1))}
    return rp.Problem(equation, box, {"boundary": "u = g(x, y)"}, functions=given, exact={"u": exact})


@pytest.mark.parametrize("seed", range(draws(2, 4)))
def test_a_wire_of_any_contrast_in_any_units(seed):
    rng = np.random.default_rng(seed)
    contrast, unit = float(10 ** rng.uniform(-4, 4)), float(10 ** rng.uniform(-3, 3))
    problem = wire(contrast, rng.uniform(-0.3, 0.3, 2).tolist(), float(rng.uniform(0.1, 0.6)), unit, seed)
    exactly(problem, (1e-2, 1e-6, 1e-9)[seed % 3])


@pytest.mark.parametrize(("first", "second"), [(40.0, 23.0), (12.0, 3.0)])
def test_a_plane_wave_is_refracted_at_an_oblique_interface(first, second):
    """Continuous values and slopes; for the last pair it is reflected totally, and decays beyond the interface."""
    turn, angle, shift = 0.3, 0.7, 0.1
    normal, along = np.array([-np.sin(turn), np.cos(turn)]), np.array([np.cos(turn), np.sin(turn)])
    tangential, across = first * np.sin(angle), first * np.cos(angle)
    beyond = np.sqrt(second**2 - tangential**2 + 0j)
    reflected = (across - beyond) / (across + beyond)

    def exact(points):
        s, m = points @ along, points @ normal - shift
        before = np.exp(1j * across * m) + reflected * np.exp(-1j * across * m)
        after = (1 + reflected) * np.exp(1j * beyond * np.maximum(m, 0))
        return (np.exp(1j * tangential * s) * np.where(m < 0, before, after)).real

    level = f"{float(normal[0])!r}*x + {float(normal[1])!r}*y < {shift}"
    problem = rp.Problem(
        f"laplace(u) + where({level}, {first}, {second})**2*u = 0", SQUARE, {"boundary": "u = g(x, y)"},
        functions={"g": lambda x, y: exact(np.stack([x, y], axis=1))}, exact={"u": exact},
    )  # fmt: skip
    exactly(problem, 1e-8)


def test_layers_of_material_and_a_source_in_one_of_them():
    """Across the layers the flux is constant, or grows with the source; conditions of both kinds."""
    low, high, k = -0.4, 0.35, 5.0

    def exact(points):  # k u' = c - x where the source is, u = 0 at -1 and u' = 0 at 1
        x = points[:, 0]
        flux = high - low
        inner = (flux * (x - low) - 0.5 * (x - low) ** 2) / k
        end = 0.5 * flux**2 / k
        left = flux * (low + 1)
        return np.where(x < low, flux * (x + 1), np.where(x < high, left + inner, left + end))

    equation = f"-div(where((x - {low})*(x - {high}) < 0, {k}, 1)*grad(u)) = where((x - {low})*(x - {high}) < 0, 1, 0)"
    sides = {"x=-1": "u = 0", "x=1": "dn(u) = 0", "y=-1": "dn(u) = 0", "y=1": "dn(u) = 0"}
    exactly(rp.Problem(equation, SQUARE, sides, exact={"u": exact}), 1e-8)


def test_interfaces_end_at_the_boundary():
    """Linear in each material, with the same slope along the interface and the same flux across it."""
    normal, slope, k = np.array([1.0, 0.3]) / np.hypot(1.0, 0.3), 0.4, 7.0

    def exact(points):
        across = points @ normal - 0.1 / np.hypot(1.0, 0.3)
        return slope * (points @ [-normal[1], normal[0]]) + np.where(across < 0, across / k, across)

    problem = rp.Problem(
        f"div(where(x + 0.3*y < 0.1, {k}, 1)*grad(u)) = 0", SQUARE, {"boundary": "u = g(x, y)"},
        functions={"g": lambda x, y: exact(np.stack([x, y], axis=1))}, exact={"u": exact},
    )  # fmt: skip
    exactly(problem, 1e-8)


def test_what_is_singular_at_the_ends_of_interfaces():
    """Poles in both cells; another realisation of the features agrees within both estimates."""
    problem = rp.Problem("div(where(x + 0.3*y < 0.1, 7, 1)*grad(u)) = -1", SQUARE, {"boundary": "u = 0"})
    points = SQUARE.sample(300, rng=1)
    both = [rp.solve(problem, tol=tol, rng=seed) for tol, seed in ((1e-4, 0), (1e-7, 1))]
    assert all(one.converged and one.method.name == "trefftz" for one in both)
    gap = np.linalg.norm(both[0](points) - both[1](points)) / np.linalg.norm(both[1](points))
    assert gap <= 2 * both[0].estimate


def test_stairs_are_divided_between_their_corners():
    """A long domain with many corners: cells where one network would have too many features."""
    steps = 5
    top = [(k + right, 1 + 0.3 * (k % 2)) for k in reversed(range(steps)) for right in (1.0, 0.0)]
    stairs = rp.Polygon([(0, 0), (float(steps), 0), *top])
    problem = rp.Problem("laplace(u) = 0", stairs, {"boundary": "u = x**2"})
    few = Trefftz(tuning=TrefftzTuning(columns=200))
    cells = rp.solve(problem, tol=1e-4, method=few)
    assert "in 6 cells" in cells.method.label
    whole = rp.solve(problem, tol=1e-6, method="trefftz")
    assert "cells" not in whole.method.label
    points = stairs.sample(300, rng=1)
    gap = np.linalg.norm(cells(points) - whole(points)) / np.linalg.norm(whole(points))
    assert cells.converged
    assert gap <= 2 * cells.estimate


def test_files_hold_cells(tmp_path):
    solution = rp.solve(wire(3.0, (0.1, 0.2), 0.4), tol=1e-6)
    again = rp.load(solution.save(tmp_path / "wire.npz"))
    points = SQUARE.sample(60, rng=1)
    assert np.array_equal(again(points), solution(points))
    assert again.history == solution.history


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("div(where(x*y < 0.1, 2, 1)*grad(u)) = 1", "neither a line nor a circle"),
        ("div(where(x < 0.1, 2 + y, 1)*grad(u)) = 1", "varies"),
        ("where(x < 0.1, 2, -1)*u_xx + u_yy = 1", "not elliptic"),
    ],
)
def test_what_is_no_constant_material_is_told(equation, reason):
    problem = rp.Problem(equation, SQUARE, {"boundary": "u = 0"})
    assert any(reason in one for one in Trefftz().obstacles(problem))


def test_crossings_are_left_to_the_weak_form():
    problem = rp.Problem("div(where(x*y > 0, 9, 1)*grad(u)) = 1", SQUARE, {"boundary": "u = 0"})
    assert not Trefftz().obstacles(problem)
    assert any("meet inside" in one for one in Trefftz().drawbacks(problem))


@pytest.mark.parametrize(
    ("text", "curve"),
    [
        ("x + y - 1", [-np.sqrt(0.5), np.sqrt(0.5), np.sqrt(0.5), 0]),
        ("x**2 + y**2 - 4", [-1, 0, 0, 0.25]),
        ("sqrt(x**2 + y**2) - 2", [-1, 0, 0, 0.25]),
        ("x**2 + 2*y**2 - 4", None),
        ("x**2 + y**2 + 4", None),
        ("sin(x)", None),
    ],
)
def test_dividing_curves(text, curve):
    import sympy

    x, y = sympy.symbols("x y", real=True)
    found = dividing_curve(sympy.sympify(text, locals={"x": x, "y": y}), (x, y))
    assert found is None if curve is None else np.allclose(found, curve)


def test_an_arrangement_locates_points():
    points = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    found, dividing = arranged([line(np.zeros(2), np.array([1.0, 1.0])), np.array([-0.25, 0, 0, 1.0]),
                                line(np.array([5.0, 0.0]), np.array([1.0, 0.0]))], points)  # fmt: skip
    assert dividing.tolist() == [True, True, False]
    assert isinstance(found, Arrangement)
    homes = found.locate(points)
    for number, signs in enumerate(found.signs):
        own = points[homes == number]
        assert ((own.sum(axis=1) > 0) == (signs[0] > 0)).all()
        assert (((own**2).sum(axis=1) > 0.25) == (signs[1] > 0)).all()
        for curve in range(2):
            other = found.neighbour(number, curve)
            assert other is not None
            assert found.neighbour(other, curve) == number


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_elimination_in_blocks_is_least_squares(seed):
    """A chain and a ring of cells: the same minimiser and the same stability constant as one dense factorisation."""
    rng = np.random.default_rng(seed)
    columns = tuple(rng.integers(3, 9, 5).tolist())
    starts = np.concatenate([[0], np.cumsum(columns)])
    pairs = [(0,), (1,), (3,), (0, 1), (1, 2), (2, 3), (3, 4), *([(4, 0)] if seed else [])]
    blocks, dense, rhs, weights = [], [], [], []
    for cells in pairs:
        rows = 14
        matrices = tuple(rng.normal(size=(rows, columns[c])) for c in cells)
        blocks.append(RowBlock(cells, matrices, rng.normal(size=rows), rng.uniform(0.5, 2, rows)))
        whole = np.zeros((rows, starts[-1]))
        for cell, matrix in zip(cells, matrices, strict=True):
            whole[:, starts[cell] : starts[cell + 1]] = matrix
        dense.append(whole)
        rhs.append(blocks[-1].rhs)
        weights.append(blocks[-1].weights)
    system = BlockRows(tuple(blocks), columns)
    found = system.solved()
    reference = TrefftzRows(np.concatenate(dense), np.concatenate(rhs), np.concatenate(weights)).solved()
    assert np.allclose(found.coefficients, reference.coefficients, rtol=1e-10, atol=1e-12)
    interior = rng.normal(size=(7, starts[-1]))
    largest = [largest_singular_value(one.responses(interior)) for one in (found, reference)]
    assert np.isclose(*largest, rtol=1e-6)


def test_cells_of_one_material():
    """A domain that is divided without need has the same solution, smooth across the faces."""
    exact = "exp(2*x)*cos(2*y) + x*y"
    domain = rp.Box(x=(0, 3), y=(0, 1)) - rp.Ball((1.5, 0.4), 0.15)
    problem = rp.Problem("laplace(u) = 0", domain, {"boundary": f"u = {exact}"}, exact={"u": exact})
    setting = trefftz_setting(problem)
    assert isinstance(setting, TrefftzSetting)
    cuts = [line(np.array([place, 0.0]), np.array([1.0, 0.0])) for place in (0.9, 2.1)]
    cells = divided_cells(problem, setting.equations, setting.model, cuts)
    assert not isinstance(cells, str)
    assert [len(one.boundary.holes) for one in cells.boundaries] == [0, 1, 0]
    assert not any(corner.singular for one in cells.boundaries[1:2] for corner in one.boundary.corners)
    method = Trefftz()
    discretisation = cells.discretisation(problem, 1e-8, method.tuning, cells.particulars(problem, 1e-8))
    resolution = discretisation.first()
    families = discretisation.families(resolution, np.random.default_rng(0))
    found = discretisation.rows(families, resolution, 0.5).solved()
    network = discretisation.network(families, found.coefficients)
    points = domain.sample(300, rng=2)
    assert np.abs(network(points)[:, 0] - problem.exact_solution(points)[:, 0]).max() < 1e-6 * np.exp(6)
