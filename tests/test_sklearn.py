"""The scikit-learn estimators keep its contract and work inside its tools."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rannpde.sklearn import RandomFeatureMap, RaNNRegressor


@pytest.mark.filterwarnings("ignore:Skipping check:sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API")
@parametrize_with_checks(
    [
        RandomFeatureMap(),
        RandomFeatureMap(activation="fourier"),
        RaNNRegressor(),
        RaNNRegressor(activation="fourier", penalty=1e-3),
    ]
)
def test_contract(estimator, check):
    check(estimator)


def data():
    points = np.random.default_rng(0).uniform(0, 1, (300, 2))
    return points, np.sin(4 * points[:, 0]) * points[:, 1]


def test_pipeline_equals_the_regressor():
    points, values = data()
    pipe = make_pipeline(RandomFeatureMap(50, random_state=1), Ridge(alpha=1e-5 * 300))
    one = RaNNRegressor(50, penalty=1e-5, random_state=1).fit(points, values)
    # the map's constant column is redundant next to Ridge's intercept
    np.testing.assert_allclose(pipe.fit(points, values).predict(points), one.predict(points), rtol=1e-6, atol=1e-8)


def test_grid_search_finds_a_good_scale():
    points, values = data()
    search = GridSearchCV(RaNNRegressor(60, penalty=1e-8, random_state=0), {"scale": [0.01, 2.0, 200.0]}, cv=3)
    assert search.fit(points, values).best_params_["scale"] == 2.0
    assert search.best_score_ > 0.9999


def test_network_is_at_hand():
    points, values = data()
    model = RaNNRegressor(40, penalty="gcv", activation="fourier", random_state=0).fit(
        points, np.column_stack([values] * 2)
    )
    assert model.network_.derivative(points, (1, 0)).shape == (300, 2)
    assert model.network_.about["penalty"] > 0
