"""Solutions are called as functions are in NumPy: by points, by coordinates in order or by name, field by field."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import InputError
from rannpde.pde.access import FieldFunction

NAMES = {1: ("x",), 2: ("t", "x"), 3: ("t", "x", "y")}


class Polynomials:
    """Fields (x_1 + 2 x_2 + …)^3 and x_1² x_2 …, with exact derivatives, in any number of coordinates."""

    def __init__(self, dim: int, fields: int) -> None:
        self.dim, self.fields = dim, fields

    def derivative(self, points, derivative):
        slopes, order = np.arange(1, self.dim + 1), sum(derivative)
        inner = points @ slopes
        falling = float(np.prod([3 - k for k in range(order)]))
        first = falling * inner ** max(3 - order, 0) * np.prod(slopes ** np.array(derivative))
        return np.stack([first * (k + 1) for k in range(self.fields)], axis=1)


def function(dim, fields=1):
    return FieldFunction.of(Polynomials(dim, fields), NAMES[dim], ("u", "v")[:fields])


def exact(*coordinates):
    return sum((k + 1) * np.asarray(one) for k, one in enumerate(coordinates)) ** 3


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_all_forms_of_a_call_agree(dim, seed):
    """Rows, one row, coordinates in order, by name, and mixed; scalars, vectors and grids that broadcast."""
    rng, f = np.random.default_rng(seed), function(dim)
    rows = rng.normal(size=(6, dim))
    expected = exact(*rows.T)
    np.testing.assert_allclose(f(rows), expected, rtol=1e-13)
    np.testing.assert_allclose(f(*rows.T), expected, rtol=1e-13)
    named = dict(zip(NAMES[dim], rows.T, strict=True))
    np.testing.assert_allclose(f(**named), expected, rtol=1e-13)
    np.testing.assert_allclose(f(**dict(reversed(named.items()))), expected, rtol=1e-13)
    one = f(*rows[0])
    assert np.ndim(one) == 0
    assert one == pytest.approx(expected[0], rel=1e-13)
    if dim > 1:
        assert f(rows[0]) == pytest.approx(expected[0], rel=1e-13)  # n numbers are one point
        others = NAMES[dim][1:]
        mixed = f(rows[:, 0], **{name: named[name] for name in others})
        np.testing.assert_allclose(mixed, expected, rtol=1e-13)
        grid = np.meshgrid(*(np.linspace(0, 1, 3 + k) for k in range(dim)), indexing="ij", sparse=True)
        found = f(*grid)
        assert found.shape == tuple(3 + k for k in range(dim))
        np.testing.assert_allclose(found, exact(*grid), rtol=1e-13)
    else:
        np.testing.assert_allclose(f(rows.reshape(2, 3)), expected.reshape(2, 3), rtol=1e-13)


def test_a_vector_of_two_numbers_in_two_dimensions_is_one_point():
    f = function(2)
    assert f([0.3, 0.4]) == pytest.approx(exact(0.3, 0.4))
    np.testing.assert_allclose(f([0.3, 0.4], 0.5), exact(np.array([0.3, 0.4]), 0.5))
    np.testing.assert_allclose(f([[0.3, 0.4], [0.5, 0.6]]), exact(np.array([0.3, 0.5]), np.array([0.4, 0.6])))


def test_several_fields_are_a_last_axis_and_one_of_them_is_none():
    f, x = function(2, 2), np.linspace(0, 1, 4)
    assert f(0.5, x).shape == (4, 2)
    assert f(0.5, 0.5).shape == (2,)
    np.testing.assert_allclose(f["v"](0.5, x), 2 * exact(0.5, x))
    assert f["v"].derivative("v_x", 0.5, x).shape == (4,)
    with pytest.raises(InputError, match="'w'"):
        f["w"]


def test_fixed_coordinates_leave_a_function_of_the_others():
    f = function(3).at(t=0.25)
    assert f.names == ("x", "y")
    assert f(0.1, 0.2) == pytest.approx(exact(0.25, 0.1, 0.2))
    assert f(y=0.2, x=0.1) == pytest.approx(exact(0.25, 0.1, 0.2))
    assert f.at(y=0.2)(0.1) == pytest.approx(exact(0.25, 0.1, 0.2))
    assert f.derivative("u_y", 0.1, 0.2) == pytest.approx(3 * 3 * (0.25 + 0.2 + 0.6) ** 2)
    np.testing.assert_allclose(f.derivative(np.array([[0.1, 0.2]]), (0, 1)), 9 * (0.25 + 0.2 + 0.6) ** 2)
    assert repr(f) == "<u of (x, y) at t = 0.25>"


@pytest.mark.parametrize(
    ("name", "index"), [("u", (0, 0)), ("u_t", (1, 0)), ("u_xx", (0, 2)), ("u_tx", (1, 1)), ("u_xt", (1, 1))]
)
def test_a_derivative_by_name_is_that_of_its_multi_index(name, index):
    f, rows = function(2), np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_array_equal(f.derivative(name, rows), f.derivative(rows, index))
    np.testing.assert_array_equal(f.derivative(name, *rows.T), f.derivative(rows, index))
    np.testing.assert_array_equal(f.derivative(rows, name), f.derivative(rows, derivative=index))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda f: f(), "0 of 2 coordinates; t, x missing"),
        (lambda f: f(t=0.5), "x missing"),
        (lambda f: f(0.1, 0.2, 0.3), "3 arguments"),
        (lambda f: f(t=0.1, y=0.2), "'y' is no coordinate here; they are t, x"),
        (lambda f: f(0.1, t=0.2), "given twice"),
        (lambda f: f([0.1, 0.2, 0.3], [0.1, 0.2]), "do not broadcast"),
        (lambda f: f(0.1, np.nan), "NaN"),
        (lambda f: f("a", 0.1), "numbers"),
        (lambda f: f([0.1, 0.2, 0.3]), "shape"),
        (lambda f: f.at(y=0.1), "they are t, x"),
        (lambda f: f.at(t=[0.1, 0.2]), "one finite number"),
        (lambda f: f.at(t=0.1, x=0.2), "fixes every coordinate"),
        (lambda f: f.derivative("w_x", 0.1, 0.2), "'w' is no field"),
        (lambda f: f.derivative("u_y", 0.1, 0.2), "'y' is not made of coordinates t, x"),
        (lambda f: f.derivative(np.zeros((2, 2)), (0, 1), 3), "name the derivative first"),
        (lambda f: f.derivative(np.zeros((2, 2)), (0, 1, 0)), "2 whole numbers"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, told):
    with pytest.raises(InputError, match=told):
        call(function(2))


@pytest.fixture(scope="module")
def heat():
    problem = rp.Problem(
        "u_t = u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}, name="Heat"
    )
    return rp.solve(problem, tol=1e-7)


def test_a_solution_is_called_in_all_these_ways(heat):
    x = np.linspace(0, 1, 7)
    expected = np.exp(-(np.pi**2) * 0.05) * np.sin(np.pi * x)
    for found in (heat(0.05, x), heat(t=0.05, x=x), heat["u"](0.05, x), heat.at(t=0.05)(x)):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(heat.derivative("u_t", 0.05, x), -(np.pi**2) * expected, atol=1e-5)
    rows = np.column_stack([np.full(7, 0.05), x])
    np.testing.assert_array_equal(heat(rows), heat(0.05, x))


def test_tables_of_other_libraries_hold_the_same_numbers(heat):
    arrays = heat.to_arrays({"t": [0.0, 0.05], "x": 5})
    assert arrays["u"].shape == (2, 5)
    np.testing.assert_allclose(arrays["u"][1], heat(0.05, arrays["x"]), atol=1e-14)
    assert heat.to_arrays((3, 4))["u"].shape == (3, 4)
    for grid, told in [
        ({"y": 3}, "a coordinate: t, x"), ((3, 4, 5), "2 numbers"), (1, "2 to"), ({"t": [np.nan]}, "NaN"),
        (10**5, "most"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=told):
            heat.to_arrays(grid)


def test_an_xarray_is_selected_by_coordinates(heat):
    pytest.importorskip("xarray")
    data = heat.to_xarray({"t": [0.0, 0.05], "x": 5})
    assert float(data["u"].sel(t=0.05, x=0.5)) == pytest.approx(heat(0.05, 0.5), abs=1e-14)
    assert data.attrs["method"] == "lines"


def test_a_dataframe_has_a_row_for_each_point_inside():
    pandas = pytest.importorskip("pandas")
    solution = rp.solve(rp.Problem("-laplace(u) = 1", rp.Ball((0, 0), 1), {"boundary": "u = 0"}), tol=1e-4)
    table = solution.to_dataframe(9)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == ["x", "y", "u"]
    np.testing.assert_allclose(table["u"], (1 - table["x"] ** 2 - table["y"] ** 2) / 4, atol=1e-3)


def test_a_pyvista_mesh_follows_the_boundary():
    pytest.importorskip("pyvista")
    solution = rp.solve(rp.Problem("-laplace(u) = 1", rp.Ball((0, 0), 1), {"boundary": "u = 0"}), tol=1e-4)
    mesh = solution.to_pyvista(16)
    x, y, _ = np.asarray(mesh.points).T
    np.testing.assert_allclose(mesh.point_data["u"], (1 - x**2 - y**2) / 4, atol=1e-3)
    assert mesh.area == pytest.approx(np.pi, rel=0.02)


def test_what_is_not_installed_is_named(heat, monkeypatch):
    import rannpde.pde.tables as tables

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(tables, "import_module", missing)
    for call, name in ((heat.to_xarray, "xarray"), (heat.to_dataframe, "pandas")):
        with pytest.raises(InputError, match=f"pip install {name}"):
            call()


def test_a_solution_from_a_file_is_called_by_name_too(heat, tmp_path):
    again = rp.load(heat.save(tmp_path / "heat.npz"))
    assert again(t=0.05, x=0.3) == heat(0.05, 0.3)
    assert repr(again) == repr(heat)
