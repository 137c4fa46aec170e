"""scikit-learn estimators over the same features and fits, for pipelines, grid searches and cross-validation.

Dask arrays are taken as they are: fits sum their blocks on the workers, predictions are Dask arrays again.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rannpde.arrays import Array, is_lazy
from rannpde.cluster import map_rows
from rannpde.errors import require
from rannpde.fitting.distributed import data_bounds
from rannpde.fitting.fit import fit
from rannpde.network import ACTIVATIONS, FourierFeatures, Network, RandomFeatures, Uniform

_FEATURE_CONSTRAINTS: dict[str, list[Any]] = {
    "width": [Interval(Integral, 1, None, closed="left")],
    "activation": [StrOptions({"fourier", *ACTIVATIONS})],
    "scale": [Interval(Real, 0, None, closed="neither")],
    "random_state": ["random_state"],
}


@dataclass(frozen=True)
class _DataBox:
    """The box that the training data fills; a coordinate that does not vary gets the width 2."""

    bounds: Array

    @classmethod
    def of(cls, points: Any, weights: Any) -> _DataBox:
        """Rows of weight zero must not matter, so they do not shape the box either."""
        if is_lazy(points):
            low, high = data_bounds(points, weights).T
        else:
            seen = points if weights is None else points[weights > 0]
            low, high = seen.min(axis=0), seen.max(axis=0)
        flat = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
        return cls(np.column_stack([np.where(flat, low - 1, low), np.where(flat, high + 1, high)]))


def _draw(
    points: Any, weights: Any, width: int, activation: str, scale: float, random_state: Any
) -> RandomFeatures | FourierFeatures:
    """Features whose inputs are scaled to the box of the data, drawn from scikit-learn's random_state."""
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    box = _DataBox.of(points, weights)
    if activation == "fourier":
        return FourierFeatures.sample(width=width, scale=scale, rng=rng, domain=box)
    law = Uniform(scale)
    return RandomFeatures.sample(width=width, law=law, activation=activation, rng=rng, domain=box, constant=True)


def _points(estimator: BaseEstimator, X: Any, reset: bool = False) -> Any:
    """X as scikit-learn checks it; Dask's arrays stay where they are, and their blocks are checked on the workers."""
    if not is_lazy(X):
        return validate_data(estimator, X, dtype=float, reset=reset)
    require(getattr(X, "ndim", 0) == 2, "X", type(X).__name__, "an array with 2 axes", "one row per sample")
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


class RandomFeatureMap(TransformerMixin, BaseEstimator):
    """Transformer: points (M, n) → frozen random features (M, columns).

    width : hidden neurons; activation : "fourier" (cos and sin pairs) or the name of an activation;
    scale : size of the hidden weights on inputs scaled to [-1, 1]; random_state : as everywhere in scikit-learn

    >>> RandomFeatureMap(width=3, random_state=0).fit_transform(np.eye(4)).shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _FEATURE_CONSTRAINTS

    def __init__(
        self, width: int = 100, *, activation: str = "tanh", scale: float = 2.0, random_state: Any = None
    ) -> None:
        self.width = width
        self.activation = activation
        self.scale = scale
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> RandomFeatureMap:
        """Draw the hidden layer for inputs of the range of X."""
        X = _points(self, X, reset=True)
        self.features_ = _draw(X, None, self.width, self.activation, self.scale, self.random_state)
        return self

    def transform(self, X: Any) -> Array:
        """The design matrix of X, a Dask array where X is one."""
        check_is_fitted(self)
        X = _points(self, X)
        if is_lazy(X):
            features, kind = self.features_, type(self.features_)
            return map_rows(kind.__call__, features, X, dim=features.dim, shape=(features.columns,))
        return self.features_(X)

    @property
    def _n_features_out(self) -> int:
        return self.features_.columns

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """randomfeaturemap0, randomfeaturemap1, …"""
        check_is_fitted(self)
        return np.array([f"randomfeaturemap{j}" for j in range(self.features_.columns)], dtype=object)


class RaNNRegressor(RegressorMixin, BaseEstimator):
    """Random neural network regression: frozen hidden layer, output weights in closed form, several outputs.

    penalty : ridge λ, "gcv" or "folds", as in ``rannpde.fit``; the other parameters are those of RandomFeatureMap.
    After ``fit``, ``network_`` is the rannpde Network with exact derivatives, and ``network_.about`` describes the fit.

    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> model = RaNNRegressor(width=30, penalty=1e-10, random_state=0).fit(x, np.exp(x[:, 0]))
    >>> bool(model.score(x, np.exp(x[:, 0])) > 0.9999)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_FEATURE_CONSTRAINTS,
        "penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"gcv", "folds"})],
    }

    def __init__(
        self,
        width: int = 100,
        *,
        activation: str = "tanh",
        scale: float = 2.0,
        penalty: Any = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.scale = scale
        self.penalty = penalty
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RaNNRegressor:
        """Draw the hidden layer and solve for the output weights."""
        weights = sample_weight
        if is_lazy(X):
            X = _points(self, X, reset=True)
        else:
            X, y = validate_data(self, X, y, dtype=float, multi_output=True, y_numeric=True)
            weights = None if weights is None else _check_sample_weight(weights, X)
        features = _draw(X, weights, self.width, self.activation, self.scale, self.random_state)
        self.network_: Network = fit(features, X, y, penalty=self.penalty, weights=weights)
        return self

    def predict(self, X: Any) -> Array:
        """Values of the network, (M,) or (M, outputs), a Dask array where X is one."""
        check_is_fitted(self)
        return self.network_(_points(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
