"""Features satisfy their equation exactly, and their derivatives are derivatives."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.trefftz.analytic import LaurentFamily, LogarithmFamily, PoleFamily, PolynomialFamily
from rannpde.pde.trefftz.families import ExponentialFamily
from rannpde.pde.trefftz.multipoles import AngleFamily, MultipoleFamily
from rannpde.pde.trefftz.operator import canonical_form, linear_equations, symbol_at
from rannpde.pde.trefftz.particular import particular
from rannpde.pde.trefftz.parts import FourierPart, PolynomialPart
from rannpde.pde.trefftz.potentials import GoursatFamily, PotentialFamily, PotentialModel, potential_model
from rannpde.pde.trefftz.sources import SourceFamily
from rannpde.pde.trefftz.spherical import SphericalFamily

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
        found.append(AngleFamily(form, places[:1], np.array([[0.8, 0.6]]), np.zeros(1), np.full(1, np.inf)))
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
    for family in systems(model):
        for equation in read:
            terms = [
                value * family.values(points, index)[:, problem.fields.index(field)]
                for field, symbol in equation.symbols.items()
                for index, value in symbol.items()
            ]
            assert (np.abs(sum(terms)) <= 1e-12 * np.abs(terms).sum(axis=0).max()).all(), type(family).__name__


def analytic():
    form = canonical_form(PLANE["laplace"], np.full(2, 0.1))
    outline = np.random.default_rng(5).uniform(-1, 1, (60, 2)) * [1.0, 0.3]
    return [
        PolynomialFamily.orthonormal(form, np.array([0.05, -0.1]), 0.8, 9, outline),
        LaurentFamily(form, np.array([0.9, 0.8]), 0.2, 4),
        PoleFamily(form, np.array([[1.0, 0.7], [-1.0, 0.5]]), np.array([0.5, 0.3])),
        LogarithmFamily(form, np.array([[0.9, 0.8], [-1.2, 0.3]]), np.array([0.5, 0.3])),
    ]


def systems(model):
    angles = [one for one in families(PLANE["laplace"], 2) if isinstance(one, AngleFamily)]
    plain = [PotentialFamily(one, model) for one in [*angles, analytic()[-1]]]
    return [*plain, *(GoursatFamily(one, model) for one in analytic()[:-1])]


def test_parts_of_analytic_functions_are_harmonic_and_their_derivatives_are_derivatives():
    points, step = np.random.default_rng(1).uniform(-0.3, 0.3, (7, 2)), 1e-5
    for family in analytic():
        second = family.values(points, (2, 0)), family.values(points, (0, 2))
        assert np.abs(second[0] + second[1]).max() < 1e-13 * np.abs(second).max(), type(family).__name__
        for index, shift, raised in (((0, 0), (step, 0), (1, 0)), ((1, 0), (0, step), (1, 1))):
            slope = (family.values(points + shift, index) - family.values(points - np.array(shift), index)) / (2 * step)
            exact = family.values(points, raised)
            assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max(), type(family).__name__


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_of_goursats_features(name):
    problem = rp.Problem(SYSTEMS[name], rp.Box(x=(0, 1), y=(0, 1)), {}, incomplete=True)
    model = potential_model(linear_equations(problem), problem.fields)
    points, step = np.random.default_rng(3).uniform(-0.3, 0.3, (5, 2)), 1e-5
    for base in analytic()[:-1]:
        family = GoursatFamily(base, model)
        for axis, (index, raised) in ((0, ((0, 1), (1, 1))), (1, ((1, 1), (1, 2)))):
            shift = step * np.eye(2)[axis]
            slope = (family.values(points + shift, index) - family.values(points - shift, index)) / (2 * step)
            exact = family.values(points, raised)
            assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max()


def test_orthonormal_polynomials_keep_their_digits_on_long_domains():
    """1/(z - 3.2 - 0.1i) on a box of 6 × 0.5: powers of z end at 1e-6, where the basis of Arnoldi goes on."""
    form = canonical_form(PLANE["laplace"], np.zeros(2))
    turn = np.linspace(0, 2 * np.pi, 600, endpoint=False)
    points = np.stack([3 * np.cos(turn), 0.25 * np.sin(turn)], axis=1)
    z = points @ np.array([1, 1j])
    wanted = (1 / (z - 3.6 - 0.1j)).real
    family = PolynomialFamily.orthonormal(form, np.zeros(2), 3.0, 60, points)
    columns = family.values(points, (0, 0))[:, 0]
    left = columns @ np.linalg.lstsq(columns, wanted)[0] - wanted
    assert np.abs(left).max() < 1e-11


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


@pytest.mark.parametrize("regular", [True, False])
def test_solid_harmonics_are_harmonic_and_their_derivatives_are_derivatives(regular):
    form = canonical_form(SPACE["laplace"], np.zeros(3))
    family = SphericalFamily(form, np.array([0.1, -0.2, 0.9]), 0.7, 6, regular)
    points, step = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 3)), 1e-5
    second = [family.values(points, index) for index in ((2, 0, 0), (0, 2, 0), (0, 0, 2))]
    assert np.abs(sum(second)).max() < 1e-14 * np.abs(second).max()
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        for index in ((0, 0, 0), (1, 0, 1), (0, 1, 0)):
            raised = tuple(i + (k == axis) for k, i in enumerate(index))
            slope = (family.values(points + shift, index) - family.values(points - shift, index)) / (2 * step)
            exact = family.values(points, raised)
            assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max()
    # of size one at the radius: the mean square over a sphere is 1/(2l + 1) over a factor for m > 0
    turn = np.random.default_rng(1).normal(size=(4000, 3))
    sphere = family.centre + family.radius * turn / np.linalg.norm(turn, axis=1, keepdims=True)
    means = np.square(family.values(sphere, (0, 0, 0))[:, 0]).mean(axis=0) * (2 * family.orders + 1)
    assert 0.4 < means.min() < means.max() < 1.2


@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize("name", ["helmholtz", "screened", "moving"])
def test_spherical_waves_satisfy_the_equation_and_their_derivatives_are_derivatives(name, regular):
    moving = SPACE["helmholtz"] | {(1, 0, 0): 1.5, (0, 0, 1): -0.7}
    symbol = moving if name == "moving" else SPACE[name]
    form = canonical_form(symbol, np.zeros(3))
    family = SphericalFamily(form, np.array([0.1, -0.2, 0.9]), 0.7, 5, regular)
    points, step = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 3)), 1e-5
    terms = [value * family.values(points, index) for index, value in symbol.items()]
    assert np.abs(sum(terms)).max() < 1e-12 * np.abs(terms).max()
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        for index in ((0, 0, 0), (1, 0, 1), (0, 1, 0)):
            raised = tuple(i + (k == axis) for k, i in enumerate(index))
            slope = (family.values(points + shift, index) - family.values(points - shift, index)) / (2 * step)
            exact = family.values(points, raised)
            assert np.abs(slope - exact).max() < 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("name", [*SYSTEMS, "laplace"])
def test_sums_of_features_are_those_of_their_values(name):
    """Analytic functions are summed as complex numbers, which must be the same as the sum of the real columns."""
    rng = np.random.default_rng(4)
    points = rng.uniform(-0.3, 0.3, (5, 2))
    found = analytic()
    if name != "laplace":
        problem = rp.Problem(SYSTEMS[name], rp.Box(x=(0, 1), y=(0, 1)), {}, incomplete=True)
        found = systems(potential_model(linear_equations(problem), problem.fields))
    for family in found:
        weights = rng.normal(size=family.columns)
        for index in ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (2, 1)):
            expected = family.values(points, index) @ weights
            size = np.abs(family.values(points, index)).max() * family.columns
            assert np.abs(family.several(points, [(1, 0), index], weights)[1] - expected).max() < 1e-13 * size


@pytest.mark.parametrize(("name", "symbol", "dim"), CASES)
def test_sums_of_sources_and_exponentials_are_those_of_their_values(name, symbol, dim):
    """Functions of the radius and exponentials are evaluated once for all derivatives."""
    rng = np.random.default_rng(5)
    points, still = rng.uniform(-0.3, 0.3, (5, dim)), (0,) * dim
    waves = [rng.normal(size=(4, dim)) + 0j, rng.normal(size=(4, dim)) * (1 + 2j)]
    exponentials = [ExponentialFamily(one, np.zeros(4), np.full(dim, 0.1)) for one in waves]
    for family in [*families(symbol, dim)[:1], *exponentials]:
        weights = rng.normal(size=family.columns)
        indices = [still, (2, *still[1:]), (*still[1:], 1), (1, 1, *still[2:])]
        for index, found in zip(indices, family.several(points, indices, weights), strict=True):
            table = family.values(points, index)
            assert np.abs(found - table @ weights).max() < 1e-12 * np.abs(table).max() * family.columns
