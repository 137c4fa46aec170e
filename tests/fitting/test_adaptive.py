"""fit("adaptive", …): features that find a layer by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import relative
from rannpde.errors import InputError
from rannpde.fitting.fit import fit
from rannpde.network import RandomFeatures, Uniform


def layer(points: np.ndarray) -> np.ndarray:
    """A smooth function with a layer of thickness 0.01."""
    return np.tanh((points[:, 0] - 0.3) / 0.01) + np.sin(3 * points[:, 0])


def test_a_layer_on_the_line_is_found():
    rng = np.random.default_rng(0)
    points, fresh = rng.uniform(-1, 1, (6000, 1)), rng.uniform(-1, 1, (2000, 1))
    adaptive = fit("adaptive", points, layer(points), penalty=0, width=200, rng=1)
    blind = RandomFeatures.sample(width=200, dim=1, law=Uniform(10.0), rng=1, constant=True)
    error = relative(adaptive(fresh), layer(fresh))
    assert error < 1e-6
    assert error < 1e-3 * relative(fit(blind, points, layer(points), penalty=0)(fresh), layer(fresh))


@pytest.mark.slow
def test_a_front_in_the_plane_gains_digits():
    rng = np.random.default_rng(0)
    points, fresh = rng.uniform(0, 1, (6000, 2)), rng.uniform(0, 1, (2000, 2))
    target = lambda z: np.tanh(20 * (z[:, 0] + z[:, 1] - 1.0))  # noqa: E731
    adaptive = fit("adaptive", points, target(points), penalty=0, width=400, rng=1)
    blind = RandomFeatures.sample(width=400, dim=2, law=Uniform(3.0), rng=1, constant=True)
    error = relative(adaptive(fresh), target(fresh))
    assert error < 0.3 * relative(fit(blind, points, target(points), penalty=0)(fresh), target(fresh))


def test_draws_are_reproducible_and_outputs_may_be_several():
    points = np.linspace(-1, 1, 400)[:, None]
    values = np.column_stack([layer(points), points[:, 0] ** 2])
    first, again = (fit("adaptive", points, values, penalty=0, width=60, rng=2) for _ in range(2))
    assert np.array_equal(first(points), again(points))
    assert first(points).shape == (400, 2)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="features"):
        fit("adaptiv", np.zeros((50, 1)), np.zeros(50))
    with pytest.raises(InputError, match="values"):
        fit("adaptive", np.zeros((50, 1)))
    for rows in (0, 5):
        with pytest.raises(InputError, match=f"points with rows is {rows}, but must be 20 or more"):
            fit("adaptive", np.zeros((rows, 1)), np.zeros(rows))
    x = np.linspace(0, 1, 50)
    with pytest.raises(InputError, match="penalty is"):
        fit("adaptive", x, x, penalty=[1, 2])
    with pytest.raises(InputError, match="width is 0"):
        fit("adaptive", x, x, width=0)
    with pytest.raises(InputError, match="method is 'nufft'"):
        fit("adaptive", x, x, method="nufft")
    with pytest.raises(InputError, match="weights with shape"):
        fit("adaptive", x, x, weights=np.ones(3))
    with pytest.raises(InputError, match="values with shape"):
        fit("adaptive", x, x[:-1])


def test_points_of_weight_zero_do_not_matter():
    """Nonsense of weight 0, also far outside, changes neither the draw nor the fit."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (500, 1))
    nonsense = rng.uniform(5, 9, (100, 1))
    weights = np.append(np.ones(500), np.zeros(100))
    clean = fit("adaptive", points, layer(points), penalty=0, width=60, rng=2)
    both, values = np.concatenate([points, nonsense]), np.append(layer(points), 1e3 * nonsense)
    weighted = fit("adaptive", both, values, penalty=0, width=60, rng=2, weights=weights)
    assert np.array_equal(weighted.features.weights, clean.features.weights)
    np.testing.assert_allclose(weighted(points), clean(points), rtol=0, atol=1e-11)


def test_weights_reach_the_passes():
    """Two layers, one of weight 1e-8: the features gather at the other one."""
    points = np.linspace(-1, 1, 4000)[:, None]
    x = points[:, 0]
    values = np.tanh((x + 0.5) / 0.01) + np.tanh((x - 0.5) / 0.01)
    left = fit("adaptive", points, values, penalty=0, width=100, rng=0, weights=np.where(x < 0, 1.0, 1e-8))
    wrong = np.abs(left(points) - values)
    assert wrong[x < -0.02].max() < wrong[x > 0.02].max()


def test_the_unit_of_the_values_does_not_matter():
    points = np.linspace(-1, 1, 400)[:, None]
    plain, tiny = (fit("adaptive", points, unit * layer(points), penalty=0, width=60, rng=2) for unit in (1.0, 1e-170))
    assert relative(tiny(points) / 1e-170, plain(points)) < 1e-6
