"""The three kinds of functions: transforms, norms and derivatives against sums over fine grids and each other."""

from math import inf

import numpy as np
import pytest

from rannpde.domains import Box
from rannpde.errors import InputError
from rannpde.network.laws import HeavyTailed
from rannpde.theory import FourierTarget, GaussianMixture, admissible, box_target, ridgelet_transform

MIXTURE = GaussianMixture(
    np.array([1.0, -0.5]),
    np.array([[0.1, 0.2], [-0.3, 0.4]]),
    np.array([[1.0, 0.8], [0.6, 1.2]]),
    np.array([[0, 0], [1, 2]]),
)
AXIS = np.linspace(-12, 12, 401)
STEP = AXIS[1] - AXIS[0]
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1).reshape(-1, 2)


def grid_integral(values):
    """The trapezoidal rule, exact to rounding for functions that vanish within the grid."""
    return values.sum() * STEP**2


def draws(count=200):
    weights, biases = HeavyTailed(1.0, 1.0).sample(count, 2, rng=3)
    return np.clip(weights, -8, 8), np.clip(biases, -30, 30)


@pytest.mark.parametrize(("name", "order"), [("tanh", 5), ("cos", 4), ("gaussian", 8)])
def test_closed_form_transform_is_the_integral(name, order):
    psi, values = admissible(name, 2, order), MIXTURE(GRID)
    weights, biases = draws(20)
    direct = [grid_integral(values * psi(GRID @ w - b)) for w, b in zip(weights.T, biases, strict=True)]
    closed = ridgelet_transform(MIXTURE, psi, weights, biases)
    assert np.abs(closed - direct).max() < 1e-10 * np.abs(closed).max()


def test_transform_of_the_unit_gaussian_is_a_hermite_function():
    psi = admissible("tanh", 3, 5)
    weights, b = np.array([[0.3], [-0.8], [0.5]]), np.array([0.7])
    s = np.sqrt(1 + np.square(weights).sum())
    x = b / s
    expected = psi.amplitude * 2 * np.pi * s**-6.0 * (x**5 - 10 * x**3 + 15 * x) * np.exp(-0.5 * x**2)
    assert GaussianMixture.gaussian(3).ridgelet(psi, weights, b) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("index", [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_derivatives_match_spectral_ones(index):
    frequencies = 2 * np.pi * np.fft.fftfreq(len(AXIS), STEP)
    values = MIXTURE(GRID).reshape(len(AXIS), -1)
    powers = np.multiply.outer((1j * frequencies) ** index[0], (1j * frequencies) ** index[1])
    spectral = np.fft.ifft2(np.fft.fft2(values) * powers).real.ravel()
    assert np.abs(MIXTURE.derivative(GRID, index) - spectral).max() < 1e-9


def test_fourier_transform_is_the_integral():
    for xi in np.array([[0.3, 0.9], [1.0, -2.0]]):
        direct = grid_integral(MIXTURE(GRID) * np.exp(-1j * GRID @ xi))
        assert abs(MIXTURE.fourier(xi[None])[0] - direct) < 1e-10


def test_norms_of_whole_order_are_sums_of_derivatives():
    square = {index: grid_integral(MIXTURE.derivative(GRID, index) ** 2) for index in np.ndindex(2, 3)}
    # (1 + s²)(1 + ξ²)² = (1 + s²)(1 + 2ξ² + ξ⁴)
    expected = sum((1, 2, 1)[index[1]] * value for index, value in square.items())
    assert MIXTURE.squared_norm(1, 2) == pytest.approx(expected, rel=1e-10)
    assert MIXTURE.squared_norm(0, 0) == pytest.approx(square[0, 0], rel=1e-10)


def test_norms_between_are_bounds_from_above():
    exact = FourierTarget(2, MIXTURE.fourier, bandwidth=16.0, radius=9.0).squared_norm(0.5, 1.5)
    assert exact < MIXTURE.squared_norm(0.5, 1.5) < 1.2 * exact


@pytest.mark.parametrize("axis", [0, 1])
def test_coordinate_times_function(axis):
    assert np.abs(MIXTURE.times_coordinate(axis)(GRID) - GRID[:, axis] * MIXTURE(GRID)).max() < 1e-14


@pytest.fixture(scope="module")
def by_fourier():
    return FourierTarget(2, MIXTURE.fourier, bandwidth=14.0, radius=9.0)


@pytest.mark.parametrize(("name", "order"), [("tanh", 5), ("cos", 4)])
def test_ray_integrals_agree_with_closed_forms(by_fourier, name, order):
    psi = admissible(name, 2, order)
    weights, biases = HeavyTailed(1.0, 1.0).sample(2000, 2, rng=1)  # unbounded: far biases and long weights too
    exact = MIXTURE.ridgelet(psi, weights, biases)
    assert np.abs(by_fourier.ridgelet(psi, weights, biases) - exact).max() < 1e-10 * np.abs(exact).max()


def test_ray_integrals_do_not_need_a_finite_bandwidth():
    free = FourierTarget(2, MIXTURE.fourier, bandwidth=inf, radius=9.0)
    psi, (weights, biases) = admissible("tanh", 2, 5), draws()
    exact = MIXTURE.ridgelet(psi, weights, biases)
    assert np.abs(free.ridgelet(psi, weights, biases) - exact).max() < 1e-10 * np.abs(exact).max()


def test_values_and_norms_from_the_transform(by_fourier):
    points = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    assert np.abs(by_fourier(points) - MIXTURE(points)).max() < 1e-10
    assert np.abs(by_fourier.derivative(points, (1, 2)) - MIXTURE.derivative(points, (1, 2))).max() < 1e-10
    assert by_fourier.squared_norm(1, 2) == pytest.approx(MIXTURE.squared_norm(1, 2), rel=1e-10)
    moved = MIXTURE.times_coordinate(1).squared_norm(1, 1)
    assert by_fourier.times_coordinate(1).squared_norm(1, 1) == pytest.approx(moved, rel=1e-8)


def test_box_target_agrees_with_the_function_on_the_box():
    box = Box([(-1, 1)] * 2)
    target = box_target(MIXTURE, box, margin=2.0)
    points = box.sample(50, rng=0)
    assert np.abs(target(points) - MIXTURE(points)).max() < 1e-5
    assert np.abs(target(np.array([[3.2, 0.0], [0.0, -3.5]]))).max() < 1e-5  # beyond the margin


def test_box_target_transform_is_that_of_the_cut_off_function():
    wide = box_target(MIXTURE, Box([(-7, 7)] * 2), margin=2.0, count=128)
    psi, (weights, biases) = admissible("tanh", 2, 5), draws()
    exact = MIXTURE.ridgelet(psi, weights, biases)
    # the mixture is below 1e-6 where the cut-off acts
    assert np.abs(wide.ridgelet(psi, weights, biases) - exact).max() < 1e-6 * np.abs(exact).max()


def test_box_target_takes_an_array_of_values():
    box, count = Box([(-1, 1)] * 2), 64
    axis = -3 + 6 * (np.arange(count) + 0.5) / count
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    given = box_target(MIXTURE(centres).reshape(count, count), box, margin=2.0, count=count)
    called = box_target(MIXTURE, box, margin=2.0, count=count)
    points = box.sample(20, rng=0)
    assert np.abs(given(points) - called(points)).max() < 1e-12
    with pytest.raises(InputError, match="values with shape"):
        box_target(np.ones((8, 9)), box, margin=2.0, count=8)


@pytest.mark.parametrize(
    "step",
    [
        lambda x: np.clip(1 - x, 0, 1),
        lambda x: 1 - np.clip(x, 0, 1) ** 2 * (3 - 2 * np.clip(x, 0, 1)),
        lambda x: (np.asarray(x) < 0.5).astype(float),
    ],
    ids=["hat", "cubic", "jump"],
)
def test_rough_cutoffs_are_refused(step):
    with pytest.raises(InputError, match="not smooth"):
        box_target(MIXTURE, Box([(-1, 1)] * 2), margin=1.0, cutoff=step)


def test_cutoffs_of_wrong_ends_and_no_margin_are_refused():
    with pytest.raises(InputError, match="1, 1, 0, 0"):
        box_target(MIXTURE, Box([(-1, 1)] * 2), margin=1.0, cutoff=lambda x: np.exp(-np.asarray(x)))
    with pytest.raises(InputError, match=r"margin is 0.*not smooth"):
        box_target(MIXTURE, Box([(-1, 1)] * 2), margin=0.0)


def test_unresolved_samples_are_refused():
    with pytest.raises(InputError, match="count is 8"):
        box_target(MIXTURE, Box([(-1, 1)] * 2), margin=1.0, count=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widths": -np.ones((2, 2))}, "widths"),
        ({"powers": np.full((2, 2), 0.5)}, "powers"),
        ({"centres": np.ones((1, 2))}, "centres"),
    ],
)
def test_bad_mixtures_are_refused(change, message):
    parts = {name: getattr(MIXTURE, name) for name in ("coefficients", "centres", "widths", "powers")}
    with pytest.raises(InputError, match=message):
        GaussianMixture(**(parts | change))


def test_bad_shapes_and_dimensions_are_refused():
    with pytest.raises(InputError, match="one column a neuron"):
        ridgelet_transform(MIXTURE, admissible("tanh", 2), np.ones((3, 4)), np.ones(4))
    four = FourierTarget(4, lambda xi: np.exp(-(xi**2).sum(axis=1)) + 0j, bandwidth=5.0, radius=5.0)
    with pytest.raises(InputError, match="at most 3 dimensions"):
        four(np.zeros((1, 4)))
    with pytest.raises(InputError, match="radius"):
        FourierTarget(2, MIXTURE.fourier, bandwidth=5.0, radius=inf)
