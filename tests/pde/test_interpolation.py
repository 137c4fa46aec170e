"""Arrays as sources and condition values: on grids and scattered, of a stated order."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import InputError


@pytest.mark.parametrize("order", [1, 3, 5])
def test_the_error_falls_with_the_order(order):
    errors = []
    for count in (20, 40, 80):
        x, y = np.linspace(0, 2, count), np.linspace(-1, 1, count)
        data = rp.GridData(np.sin(2 * x)[:, None] * np.exp(y), {"x": x, "y": y}, order=order)
        points = np.random.default_rng(0).uniform([0.3, -0.7], [1.7, 0.7], size=(500, 2)).T
        errors.append(np.abs(data(*points) - np.sin(2 * points[0]) * np.exp(points[1])).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (slopes > order + 1 - 0.6).all()


def test_a_grid_is_a_source_and_a_condition():
    x = np.linspace(0, 1, 60)
    functions = {"f": rp.GridData(np.pi**2 * np.sin(np.pi * x), {"x": x}, order=5)}
    problem = rp.Problem("-u_xx = f", rp.Interval(0, 1), {"boundary": "u = 0"}, functions=functions)
    solution = rp.solve(problem, tol=1e-6)
    assert solution(0.5) == pytest.approx(1.0, abs=1e-5)
    start = {"g": rp.GridData(np.sin(np.pi * x), {"x": x}, order=5)}
    conditions = {"t=0": "u = g", "boundary": "u = 0"}
    heat = rp.Problem("u_t = u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), conditions, functions=start)
    assert rp.solve(heat, tol=1e-5)(0.1, 0.5) == pytest.approx(np.exp(-(np.pi**2) * 0.1), abs=1e-4)


def test_scattered_values_are_a_source(tmp_path):
    points = np.random.default_rng(0).uniform(0, 1, size=(3000, 2))
    points = np.concatenate([points, [[0, 0], [0, 1], [1, 0], [1, 1]]])
    values = 2 * np.pi**2 * np.sin(np.pi * points[:, 0]) * np.sin(np.pi * points[:, 1])
    file = tmp_path / "source.csv"
    np.savetxt(file, np.column_stack([points, values]), delimiter=",")
    data = rp.ScatteredData.from_csv(file, ("x", "y"), order=3)
    square = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("-laplace(u) = f", square, {"boundary": "u = 0"}, functions={"f": data})
    assert rp.solve(problem, tol=1e-2, method="cells")(0.5, 0.5) == pytest.approx(1.0, abs=0.02)
    line = rp.ScatteredData([[0.0], [2.0], [1.0], [3.0]], [0.0, 4.0, 1.0, 9.0], "x", order=3)
    np.testing.assert_allclose(line(np.array([0.5, 2.5, -1.0, 7.0])), [0.25, 6.25, 0.0, 9.0], atol=1e-12)


def test_xarray_is_read_by_its_names():
    xarray = pytest.importorskip("xarray")
    x = np.linspace(0, 1, 9)
    data = rp.GridData.from_xarray(xarray.DataArray(x**2, dims=("x",), coords={"x": x}))
    assert data.of == ("x",)
    assert data(np.array([0.3]))[0] == pytest.approx(0.09, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: rp.GridData([1.0, 2.0], {"x": [0, 1]}), "4 or more"),
        (lambda: rp.GridData([1.0, 2.0], {"x": [0, 1]}, order=2), "one of 1, 3, 5"),
        (lambda: rp.GridData([1.0, 2.0], {"x": [1, 0]}, order=1), "increasing"),
        (lambda: rp.GridData([1.0, 2.0, 3.0], {"x": [0, 1]}, order=1), "shape"),
        (lambda: rp.GridData([1.0, np.nan], {"x": [0, 1]}, order=1), "NaN"),
        (lambda: rp.GridData(1.0, {}), "mapping"),
        (lambda: rp.GridData.from_xarray([1.0]), "xarray.DataArray"),
        (lambda: rp.ScatteredData(np.zeros((9, 3)), np.zeros(9), ("x", "y", "z"), order=3), "one of 1"),
        (lambda: rp.ScatteredData(np.zeros((9, 1)), np.zeros(9), "x"), "different"),
        (lambda: rp.ScatteredData(np.zeros((2, 1)), np.zeros(2), "x"), "3 or more"),
        (lambda: rp.ScatteredData(np.zeros((9, 1)), np.zeros(8), "x"), "shape"),
    ],
)
def test_bad_data_are_refused(call, told):
    with pytest.raises(InputError, match=told):
        call()


def test_netcdf_through_xarray(tmp_path):
    """A file of the classic format, whose axes have names: a source by its name."""
    xarray = pytest.importorskip("xarray")
    x = np.linspace(0, 1, 40)
    xarray.Dataset({"f": ("x", np.pi**2 * np.sin(np.pi * x))}, {"x": x}).to_netcdf(
        tmp_path / "load.nc", engine="scipy", format="NETCDF3_64BIT"
    )
    with xarray.open_dataset(tmp_path / "load.nc", engine="scipy") as found:
        load = rp.GridData.from_xarray(found["f"].load(), order=5)
    problem = rp.Problem("-u_xx = f", rp.Interval(0, 1), {"boundary": "u = 0"}, functions={"f": load})
    assert abs(rp.solve(problem, tol=1e-5)(0.5) - 1) < 1e-4
