"""Hidden layers of a subdomain (ridges, polynomials or products), their derivatives at points, and their storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import choose, require
from rannpde.network.activations import ACTIVATIONS
from rannpde.network.features import Features
from rannpde.network.network import pack_features, unpack_features
from rannpde.network.polynomial import PolynomialFeatures, PolynomialJets
from rannpde.network.product import ProductFeatures, ProductJets
from rannpde.network.storage import floats

NonRidgeLayer = PolynomialFeatures | ProductFeatures
"""Layers that are not ridges: a derivative is more than a profile times a factor."""

SubdomainLayer = Features | NonRidgeLayer

ONE = np.ones(())
"""The factor 1, for a derivative that is not multiplied."""


@dataclass(frozen=True, eq=False)
class FeatureJets:
    """All derivatives of the features at fixed points (M, n), from one evaluation of the profile per order."""

    features: SubdomainLayer
    points: Array
    _ridges: dict[int, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def _non_ridge_jets(self) -> PolynomialJets | ProductJets | None:
        return self.features.at(self.points) if isinstance(self.features, NonRidgeLayer) else None

    @property
    def values(self) -> Array:
        """The columns themselves, (M, columns)."""
        return self.combine([(0,) * self.features.dim], [ONE])

    def value(self, index: MultiIndex, coefficients: Array) -> Array:
        """Return ∂^index of Σ_j c_j column_j at the points, (M,)."""
        if isinstance(self.features, NonRidgeLayer):
            return self.combine([index], [ONE]) @ coefficients
        return self._ridge(self.features, sum(index)) @ (self.features.factor(index) * coefficients)

    def combine(self, indices: Sequence[MultiIndex], partials: Sequence[Array]) -> Array:
        """Return Σ_α partial_α(z) ∂^α column_j(z), (M, columns); a partial is (M,) or a scalar."""
        if self._non_ridge_jets is not None:
            return self._non_ridge_jets.combine(indices, partials)
        features = self.features
        assert not isinstance(features, NonRidgeLayer)
        total: Array | None = None
        for order in sorted({sum(index) for index in indices}):
            chosen = [(p, features.factor(i)) for p, i in zip(partials, indices, strict=True) if sum(i) == order]
            fixed = sum((p * f for p, f in chosen if p.ndim == 0), np.zeros(features.columns))
            varying = [(p, f) for p, f in chosen if p.ndim]
            factor: Array = fixed
            if varying:
                factor = np.stack([p for p, _ in varying], axis=1) @ np.stack([f for _, f in varying])
                factor += fixed
            part = self._ridge(features, order) * factor
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            return np.zeros((len(self.points), features.columns))
        return total

    def _ridge(self, features: Features, order: int) -> Array:
        """Return the ridges (M, columns) of one order, cached."""
        if order not in self._ridges:
            self._ridges[order] = features.ridge(self.points, order)
        return self._ridges[order]


def pack_layer(layer: SubdomainLayer) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a layer as a JSON header and named arrays."""
    if not isinstance(layer, NonRidgeLayer):
        return pack_features(layer)  # type: ignore[arg-type]
    arrays = {"centre": layer.centre, "halfwidth": layer.halfwidth}
    if isinstance(layer, ProductFeatures):
        return {"kind": "product", "constant": layer.constant}, arrays | {"factors": layer.factors}
    header = {"kind": "polynomial", "constant": layer.constant, "activation": layer.activation.name}
    parts = {"exponents": layer.exponents.astype(float), "weights": layer.weights, "biases": layer.biases}
    return header, arrays | parts


def unpack_layer(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> SubdomainLayer:
    """Return the layer that ``pack_layer`` stored."""
    if header["kind"] not in ("product", "polynomial"):
        return unpack_features(header, arrays)
    centre, halfwidth = (floats(arrays, name) for name in ("centre", "halfwidth"))
    require(isinstance(header["constant"], bool), "constant", header["constant"], "true or false")
    if header["kind"] == "product":
        return ProductFeatures(floats(arrays, "factors"), centre, halfwidth, header["constant"])
    exponents, weights, biases = (floats(arrays, name) for name in ("exponents", "weights", "biases"))
    activation = choose("activation", header["activation"], ACTIVATIONS)
    return PolynomialFeatures(exponents, weights, biases, activation, centre, halfwidth, header["constant"])
