"""Cross-validation from sums: quadratic forms are misfits, parts merge exactly, the best held-out penalty is taken."""

import numpy as np
import pytest

from helpers import EPS, relative
from rannpde.errors import InputError
from rannpde.fitting import NormalEquations, OrthogonalEquations
from rannpde.fitting.fit import Samples, fit
from rannpde.fitting.folds import tree
from rannpde.fitting.parts import Part
from rannpde.network import FourierFeatures, RandomFeatures, Uniform


def noisy(rows=400, noise=0.3):
    rng = np.random.default_rng(3)
    points = rng.uniform(-1, 1, (rows, 2))
    return points, np.sin(3 * points.sum(axis=1)) + rng.normal(0, noise, rows)


def features(constant=True):
    return RandomFeatures.sample(width=60, dim=2, law=Uniform(3.0), rng=0, constant=constant)


@pytest.mark.parametrize("kind", [NormalEquations, OrthogonalEquations])
@pytest.mark.parametrize("constant", [True, False])
def test_the_misfit_of_sums_is_that_of_the_rows(kind, constant):
    rng = np.random.default_rng(0)
    design, values, weights = rng.normal(size=(50, 6)), rng.normal(size=(50, 2)), rng.uniform(0, 2, 50)
    design[:, -1] = 1.0
    equations = kind(6, 2, constant)
    equations.add(design.copy(), values, weights)
    for coefficients in rng.normal(size=(3, 6, 2)):
        expected = (weights[:, None] * np.square(design @ coefficients - values)).sum()
        assert equations.misfit(coefficients) == pytest.approx(expected, rel=1e3 * EPS)
    assert equations.square_sum == pytest.approx((weights[:, None] * values**2).sum(), rel=100 * EPS)
    kept = design[:, :5] if constant else design
    assert equations.size == pytest.approx((weights[:, None] * kept**2).sum() / weights.sum(), rel=100 * EPS)


@pytest.mark.parametrize("kind", [NormalEquations, OrthogonalEquations])
def test_rescaled_equations_are_those_of_rescaled_values(kind):
    rng = np.random.default_rng(0)
    design, values = rng.normal(size=(50, 6)), rng.normal(size=(50, 2))
    plain = kind(6, 2)
    plain.add(design.copy(), values)
    scaled = plain.rescaled(4.0)
    assert np.array_equal(scaled.solve(0.1).coefficients, 4 * plain.solve(0.1).coefficients)
    assert scaled.square_sum == 16 * plain.square_sum


@pytest.mark.parametrize("method", ["dense", "orthogonal"])
def test_the_penalty_has_the_least_error_on_held_out_rows(method):
    """Against fits that are made and judged one by one, as anybody would."""
    points, values = noisy()
    layer = features()
    network = fit(layer, points, values, penalty="folds", folds=4, method=method)

    def held_out(penalty):
        total = 0.0
        for k in range(4):
            held = np.arange(len(points)) % 4 == k
            trained = fit(layer, points[~held], values[~held], penalty=penalty, method=method)
            total += np.square(trained(points[held]) - values[held]).sum()
        return np.sqrt(total / np.square(values).sum())

    best = network.about["penalty"]
    assert network.about["validation_error"] == pytest.approx(held_out(best), rel=1e-6)
    assert all(held_out(best) <= held_out(factor * best) for factor in (0.01, 0.5, 2.0, 100.0))
    assert relative(network(points), fit(layer, points, values, penalty=best, method=method)(points)) < 1e-9


@pytest.mark.parametrize("method", ["dense", "nufft", "orthogonal"])
def test_merged_parts_are_the_whole(method):
    points, values = noisy()
    layer = FourierFeatures.sample(width=15, dim=2, scale=2.0, rng=0)
    cuts = [(points[rows], values[rows]) for rows in (slice(0, 7), slice(7, 150), slice(150, 400))]
    parts = [Part.of(layer, Samples(layer, *cut, None), method) for cut in cuts]
    whole = fit(layer, points, values, method=method, penalty=1e-3)
    merged = tree(parts, Part.merge).fit(1e-3)
    assert relative(merged.coefficients, whole.coefficients) < 10 * EPS * whole.about["condition"]
    assert (merged.rows, merged.scalar, merged.solver) == (400, True, method)


def test_a_scheduler_learns_how_heavy_a_part_is():
    layer = features()
    part = Part.of(layer, Samples(layer, *noisy(), None), "dense")
    assert part.__sizeof__() > 8 * layer.columns**2


def test_values_far_from_one_choose_the_same_penalty():
    points, values = noisy()
    plain, small = (fit(features(), points, unit * values, penalty="folds") for unit in (1.0, 2.0**-600))
    assert small.about["penalty"] == plain.about["penalty"]
    assert small.about["validation_error"] == plain.about["validation_error"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folds": 1}, "folds is 1, but must be a whole number ≥ 2"),
        ({"folds": 2.5}, "folds is 2.5"),
        ({"folds": 401}, "must be at least 401"),
        ({"folds": 3, "penalty": "gcv"}, "folds is 3, but must be left out"),
        ({"penalty": "fold"}, "penalty is 'fold'"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        fit(features(), *noisy(), **{"penalty": "folds", **settings})


def test_a_stream_has_no_folds():
    with pytest.raises(InputError, match="penalty is 'folds', but must be a number or 'gcv' with a stream"):
        fit(features(), iter([noisy()]), penalty="folds")
