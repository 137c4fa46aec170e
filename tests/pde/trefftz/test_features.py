"""Features satisfy their equation exactly, and their derivatives are derivatives."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.trefftz.families import AngleFamily, ExponentialFamily, MultipoleFamily, SourceFamily
from rannpde.pde.trefftz.operator import canonical_form, linear_equations, symbol_at
from rannpde.pde.trefftz.particular import FourierPart, PolynomialPart, particular
from rannpde.pde.trefftz.potentials import PotentialFamily, PotentialModel, potential_model

PLANE = {
    "laplace": {(2, 0): 1.0, (0, 2): 1.0},
    "helmholtz": {(2, 0): -1.0, (0, 2): -1.0, (0, 0): -25.0},
    "screened": {(2, 0): 2.0, (0, 2): 2.0, (0, 0): -18.0},
    "advection": {(2, 0): 1.0, (0, 2): 2.0, (1, 1): 0.5, (1, 0): 3.0, (0, 1): 1.0},
    "moving waves": {(2, 0): 1.0, (0, 2): 2.0, (1, 1): 0.5, (1, 0): 3.0, (0, 1): 1.0, (0, 0): 30.0},
}
SPACE = {name: {(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): 1.0, (0, 0, 0): c}
         for name, c in (("laplace", 0.0), ("helmholtz", 16.0), ("screened", -9.0))}  # fmt: skip


def families(symbol, dim):
    form = canonical_form(symbol, np.full(dim, 0.1))
    places = form.to(np.array([[1.0, 0.7, 0.4], [-1.0, 0.5, -0.8]])[:, :dim])
    moments = np.concatenate([np.zeros((1, dim)), np.eye(dim)])
    found = [SourceFamily(form, places, np.array([0.5, 0.3]), moments)]
    if dim == 2:
        found.append(MultipoleFamily(form, form.to(np.array([[0.05, 0.02]]))[0], 0.8, 5, True, 0.0))
        found.append(MultipoleFamily(form, form.to(np.array([[0.9, 0.8]]))[0], 0.2, 4, False, 0.0))
        found.append(AngleFamily(form, places[:1], np.array([[0.8, 0.6]]), np.zeros(1)))
    return found


CASES = [(name, symbol, 2) for name, symbol in PLANE.items()] + [(name, symbol, 3) for name, symbol in SPACE.items()]


@pytest.mark.parametrize(("name", "symbol", "dim"), CASES)
def test_features_satisfy_the_equation(name, symbol, dim):
    points = np.random.default_rng(0).uniform(-0.3, 0.3, (7, dim))
    for family in families(symbol, dim):
        terms = [value * family.values(points, index) for index, value in symbol.items()]
        size = np.abs(terms).sum(axis=0)
        assert (np.abs(sum(terms)) <= 1e-13 * size + 1e-250).all(), type(family).__name__


@pytest.mark.parametrize(("name", "symbol", "dim"), CASES)
def test_derivatives_are_those_of_the_values(name, symbol, dim):
    points = np.random.default_rng(1).uniform(-0.3, 0.3, (7, dim))
    step = 1e-5  # a central difference errs by step² and by rounding over step: 1e-10 each, times third derivatives
    for family in families(symbol, dim):
        for axis in range(dim):
            shift = step * np.eye(dim)[axis]
            for index in ((0,) * dim, (1,) + (0,) * (dim - 1)):
                raised = tuple(i + (k == axis) for k, i in enumerate(index))
                slope = (family.values(points + shift, index) - family.values(points - shift, index)) / (2 * step)
                exact = family.values(points, raised)
                assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max() + 1e-7, type(family).__name__


def test_exponentials_lie_on_the_characteristic_variety():
    symbol = PLANE["helmholtz"]
    turn = np.linspace(0, 3, 8)
    frequencies = 5j * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    assert np.abs(symbol_at(symbol, frequencies)).max() < 1e-13 * 50
    family = ExponentialFamily(frequencies, np.zeros(8), np.zeros(2))
    points = np.random.default_rng(2).uniform(-1, 1, (5, 2))
    left = sum(value * family.values(points, index) for index, value in symbol.items())
    assert np.abs(left).max() < 1e-13 * 50


SYSTEMS = {
    "plate": ["laplace(laplace(u)) = 0"],
    "stokes": ["0.3*laplace(u) - p_x = 0", "0.3*laplace(v) - p_y = 0", "u_x + v_y = 0"],
    "elastic": ["3*u_xx + 0.7*u_yy + 2.3*v_xy = 0", "3*v_yy + 0.7*v_xx + 2.3*u_xy = 0"],
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_potentials_satisfy_their_system(name):
    equations = SYSTEMS[name]
    problem = rp.Problem(equations, rp.Box(x=(0, 1), y=(0, 1)), {}, incomplete=True)
    read = linear_equations(problem)
    model = potential_model(read, problem.fields)
    assert isinstance(model, PotentialModel)
    assert model.system == name
    points = np.random.default_rng(0).uniform(-0.3, 0.3, (6, 2))
    for base in families(PLANE["laplace"], 2):
        family = PotentialFamily(base, model)
        for equation in read:
            terms = [
                value * family.values(points, index)[:, problem.fields.index(field)]
                for field, symbol in equation.symbols.items()
                for index, value in symbol.items()
            ]
            assert (np.abs(sum(terms)) <= 1e-12 * np.abs(terms).sum(axis=0).max()).all()


@pytest.mark.parametrize(
    ("source", "kind"),
    [("3*x**2*y - 2*y + 1", PolynomialPart), ("exp(x)*sin(3*y)", FourierPart), ("1/(2 + x*y)", FourierPart)],
)
@pytest.mark.parametrize("left", ["laplace(u)", "laplace(u) + 37.3*u", "0.01*laplace(u) - u_x", "2*u_xx + u_xy + u_yy"])
def test_particular_solutions(source, kind, left):
    problem = rp.Problem(f"{left} = {source}", rp.Box(x=(0.3, 1.7), y=(-1, 0.4)), {"boundary": "u = 0"})
    (equation,) = linear_equations(problem)
    found = particular(problem, equation, equation.symbols["u"], 1e-10)
    assert isinstance(found.part, kind)
    points = problem.domain.sample(200, rng=9)
    value = sum(v * found.part.derivative(points, index) for index, v in equation.symbols["u"].items())
    wanted = equation.source(problem.vocabulary.symbols, points)
    assert np.abs(value - wanted).max() < 1e-9 * np.abs(wanted).max()
