"""Families in which parameters change the domain: outputs against closed forms, files, refusals."""

from math import log, pi

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.family.shape_family import ShapeFamily
from rannpde.pde.problem.toml import from_table, to_table


def rod(upper=2.0, **settings):
    """-u'' = a on (0, L), u = 0 at the ends: ∫ u = a L³/12 and u'(0) = a L/2."""
    outputs = {"volume": "u", "slope": rp.Output("-dn(u)", on="x=0")}
    parameters = {"a": 3.0, "L": rp.Range(0.5, upper)} | settings
    return rp.Problem(
        "-u_xx = a", lambda L: rp.Interval(0, L), {"boundary": "u = 0"}, parameters, outputs=outputs
    )  # fmt: skip


@pytest.fixture(scope="module")
def family():
    return rp.solve(rod(), tol=1e-7)


def test_outputs_for_every_length(family):
    assert isinstance(family, ShapeFamily)
    assert family.converged
    for length in np.random.default_rng(0).uniform(0.5, 2, 5):
        assert abs(family.outputs["volume"](L=length) - 3 * length**3 / 12) <= family.outputs["volume"].error
        assert family.outputs["volume"](L=length) == pytest.approx(3 * length**3 / 12, rel=1e-7)
        assert family.outputs["slope"](L=length) == pytest.approx(3 * length / 2, rel=1e-7)
    assert family.outputs["volume"].derivative("L", L=1.2) == pytest.approx(3 * 1.2**2 / 4, rel=1e-5)


def test_fields_are_solved_for(family):
    points = np.array([[0.1], [0.6]])
    exact = 1.5 * points[:, 0] * (0.7 - points[:, 0])
    assert family(points, L=0.7) == pytest.approx(exact, rel=1e-6)
    assert family.at(L=0.7) is family.at(L=0.7)
    assert family.at(L=0.7).problem.domain.bounds[0, 1] == 0.7


def test_quantities(family):
    assert family.minimise("slope").values == pytest.approx({"L": 0.5})
    with pytest.raises(rp.InputError, match="output"):
        family.propagate({"L": 1.0}, points=np.array([[0.2]]))
    with pytest.raises(rp.InputError, match="range"):
        family.outputs["slope"](L=3.0)


def test_files_and_pictures(family, tmp_path):
    with pytest.raises(rp.FileError, match="problem"):
        rp.load(family.save(tmp_path / "rod.npz"))
    again = rp.load(tmp_path / "rod.npz", rod())
    assert again.outputs["volume"](L=1.3) == pytest.approx(family.outputs["volume"](L=1.3), rel=1e-12)
    with pytest.raises(rp.InputError, match="with_parameters"):
        again.at(L=1.23456)
    figure = family.plot(tmp_path / "rod.png")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["volume / 2", "slope / 3"]
    assert "slope" in family.to_html(tmp_path / "rod.html").read_text("utf-8")
    assert "outputs for all values" in family.report()


def test_sizes_in_files():
    table = {
        "equations": "-k*laplace(u) = 0",
        "domain": {"ball": {"centre": [0, 0], "radius": 1, "name": "rim"},
                   "without": [{"ball": {"centre": [0, 0], "radius": "r", "name": "hole"}}]},
        "conditions": {"rim": "u = 0", "hole": "u = 1"},
        "parameters": {"k": 2.0, "r": {"range": [0.2, 0.5]}},
        "outputs": {"flux": {"expression": "-k*dn(u)", "on": "rim"}},
    }  # fmt: skip
    problem = from_table(table)
    assert problem.changing_domain == ("r",)
    assert (
        from_table(to_table(problem)).with_parameters({"r": 0.3}).domain == problem.with_parameters({"r": 0.3}).domain
    )
    found = rp.solve(problem, tol=1e-5)
    assert found.converged
    for radius in (0.21, 0.333, 0.48):
        exact = 2 * pi * 2 / log(1 / radius)
        assert abs(found.outputs["flux"](r=radius) - exact) <= min(found.outputs["flux"].error, 1e-5 * exact)


@pytest.mark.parametrize("seed", range(draws(1, 2)))
def test_random_boxes(seed):
    """∫ u of -Δu = f, u = x (a - x) y (b - y) on a box with a side that is a parameter, in random units."""
    rng = np.random.default_rng(seed)
    unit = 10.0 ** rng.integers(-3, 4)
    low = unit * rng.uniform(0.5, 1, 2)
    high = low * rng.uniform(1.2, 2, 2)
    problem = rp.Problem(
        "-laplace(u) = 2*x*(a - x) + 2*y*(b - y)",
        lambda a, b: rp.Box(x=(0, a), y=(0, b)),
        {"boundary": "u = 0"},
        {"a": rp.Range(low[0], high[0]), "b": high[1]},
        outputs={"volume": "u"},
    )
    family = rp.solve(problem, tol=1e-4)
    assert family.converged
    a, b = rng.uniform(low[0], high[0]), high[1]
    exact = a**3 * b**3 / 36
    assert abs(family.outputs["volume"](a=a) - exact) <= min(family.outputs["volume"].error, 1e-4 * exact)


def test_wrong_input():
    with pytest.raises(rp.InputError, match="'radius', which is no parameter"):
        rp.Problem("u_xx = 1", lambda radius: rp.Interval(0, radius), {"boundary": "u = 0"}, {"L": 1.0})
    with pytest.raises(rp.InputError, match="the domain at L = 1"):
        rp.Problem("u_xx = 1", lambda L: L, {"boundary": "u = 0"}, {"L": 1.0})
    with pytest.raises(rp.InputError, match="the domain at L = -1"):
        rp.Problem("u_xx = 1", lambda L: rp.Interval(0, L), {"boundary": "u = 0"}, {"L": -1.0})
    with pytest.raises(rp.InputError, match="outputs"):
        rp.solve(rp.Problem("u_xx = 1", lambda L: rp.Interval(0, L), {"boundary": "u = 0"}, {"L": rp.Range(1, 2)}))
    fixed = rod(L=1.5)
    assert not fixed.ranges
    assert rp.solve(fixed, tol=1e-6).outputs["volume"].value == pytest.approx(3 * 1.5**3 / 12, rel=1e-6)
