"""scikit-learn estimators over the same features and fits, for pipelines, grid searches and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rannpde.arrays import Array
from rannpde.fitting import fit
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
    def of(cls, points: Array) -> _DataBox:
        low, high = points.min(axis=0), points.max(axis=0)
        flat = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
        return cls(np.column_stack([np.where(flat, low - 1, low), np.where(flat, high + 1, high)]))


def _draw(
    points: Array, width: int, activation: str, scale: float, random_state: Any
) -> RandomFeatures | FourierFeatures:
    """Features whose inputs are scaled to the box of the data, drawn from scikit-learn's random_state."""
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    box = _DataBox.of(points)
    if activation == "fourier":
        return FourierFeatures.sample(width=width, scale=scale, rng=rng, domain=box)
    law = Uniform(scale)
    return RandomFeatures.sample(width=width, law=law, activation=activation, rng=rng, domain=box, constant=True)


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
        X = validate_data(self, X, dtype=float)
        self.features_ = _draw(X, self.width, self.activation, self.scale, self.random_state)
        return self

    def transform(self, X: Any) -> Array:
        """The design matrix of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
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

    penalty : ridge λ, or "gcv"; the other parameters are those of RandomFeatureMap. After ``fit``, ``network_`` is the
    rannpde Network with exact derivatives, and ``network_.about`` the diagnostics of the fit.

    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> model = RaNNRegressor(width=30, penalty=1e-10, random_state=0).fit(x, np.exp(x[:, 0]))
    >>> bool(model.score(x, np.exp(x[:, 0])) > 0.9999)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_FEATURE_CONSTRAINTS,
        "penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"gcv"})],
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
        X, y = validate_data(self, X, y, dtype=float, multi_output=True, y_numeric=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        # rows of weight zero must not matter, so they do not shape the box either
        seen = X if weights is None else X[weights > 0]
        features = _draw(seen, self.width, self.activation, self.scale, self.random_state)
        self.network_: Network = fit(features, X, y, penalty=self.penalty, weights=weights)
        return self

    def predict(self, X: Any) -> Array:
        """Values of the network, (M,) or (M, outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        return self.network_(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
