"""Networks on subdomains: boxes of a domain with features of their own; sampling of features and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, row_blocks
from rannpde.domains.domain import Box, Domain, SpaceTime
from rannpde.domains.region import Region
from rannpde.errors import FileError, InputError, positive_integer, reject, require, suggestion
from rannpde.network.export import full_coefficients, one_layer
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import BoxUniform, FewCoordinates, IntegerFrequencies, WeightLaw
from rannpde.network.plain import PlainFunction
from rannpde.network.storage import floats
from rannpde.pde.collocation.layers import NonRidgeLayer, SubdomainLayer, pack_layer, unpack_layer
from rannpde.pde.collocation.tuning import CollocationTuning
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term

Density = Callable[[Array], Array]

Scales = tuple[float, ...]
"""One scale per coordinate."""


@dataclass(frozen=True, eq=False)
class Subdomain:
    """A box (n, 2) and the features on it."""

    bounds: Array
    features: SubdomainLayer


def locate(subdomains: tuple[Subdomain, ...], points: Array) -> Array:
    """Return the number of the subdomain of each point (M,): the first one on a face, the nearest one outside."""
    if len(subdomains) == 1:
        return np.zeros(len(points), dtype=int)
    gaps = []
    for subdomain in subdomains:
        lower, upper = subdomain.bounds.T
        gaps.append(np.maximum(np.maximum(lower - points, points - upper), 0.0).max(axis=1))
    return np.argmin(gaps, axis=0)


@dataclass(frozen=True, eq=False)
class SubdomainNetwork:
    """Fields on subdomains; coefficients[k] is (columns, fields) for subdomain k."""

    subdomains: tuple[Subdomain, ...]
    coefficients: tuple[Array, ...]

    @property
    def dim(self) -> int:
        return self.subdomains[0].features.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of the features of each subdomain."""
        return tuple(subdomain.features.columns for subdomain in self.subdomains)

    @property
    def outputs(self) -> int:
        return self.coefficients[0].shape[1]

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, (0,) * points.shape[1])

    def derivative(self, points: Array, derivative: MultiIndex) -> Array:
        """Return a derivative (M, fields), computed in blocks of bounded memory."""
        return self.derivatives(points, [tuple(derivative)])[tuple(derivative)]

    def derivatives(self, points: Array, indices: Sequence[MultiIndex]) -> dict[MultiIndex, Array]:
        """Return several derivatives, each (M, fields), from one evaluation of the profile per order."""
        values = {index: np.empty((len(points), self.outputs)) for index in indices}
        home = locate(self.subdomains, points)
        for number, (subdomain, coefficients) in enumerate(zip(self.subdomains, self.coefficients, strict=True)):
            rows = np.flatnonzero(home == number)
            if isinstance(subdomain.features, NonRidgeLayer):
                for block in row_blocks(len(rows), block_rows(subdomain.features.columns)):
                    values_here = subdomain.features.at(points[rows[block]]).columns(indices)
                    for index, columns in values_here:
                        values[index][rows[block]] = columns @ coefficients
                continue
            for order in {sum(index) for index in indices}:
                chosen = [index for index in indices if sum(index) == order]
                weighted = np.concatenate(
                    [coefficients * subdomain.features.factor(i)[:, None] for i in chosen], axis=1
                )
                for block in row_blocks(len(rows), block_rows(subdomain.features.columns)):
                    values_here = subdomain.features.ridge(points[rows[block]], order) @ weighted
                    for position, index in enumerate(chosen):
                        values[index][rows[block]] = values_here[
                            :, position * self.outputs : (position + 1) * self.outputs
                        ]
        return values

    def plain(self, single: bool) -> PlainFunction:
        """Return the same function in plain NumPy; an InputError for layers that are not ridges."""
        layers = [one_layer(subdomain.features) for subdomain in self.subdomains]
        kinds = {activation for activation, _, _ in layers}
        require(len(kinds) == 1, "activations", sorted(kinds), "the same on all subdomains")
        activation, width = layers[0][0], max(weights.shape[1] for _, weights, _ in layers)
        copies = 2 if activation == "fourier" else 1
        tables = []
        for subdomain, own in zip(self.subdomains, self.coefficients, strict=True):
            full = full_coefficients(subdomain.features, own)
            parts = np.split(full[:-1], copies)
            filled = [np.pad(part, ((0, width - len(part)), (0, 0))) for part in parts]
            tables.append(np.concatenate([*filled, full[-1:]]))
        missing = [width - weights.shape[1] for _, weights, _ in layers]
        return PlainFunction(
            activation, single, boxes=[subdomain.bounds for subdomain in self.subdomains],
            centre=[subdomain.features.centre for subdomain in self.subdomains],  # type: ignore[union-attr]
            halfwidth=[subdomain.features.halfwidth for subdomain in self.subdomains],  # type: ignore[union-attr]
            layer=np.arange(len(layers)), coefficients=np.array(tables)[:, None],
            weights=[np.pad(w, ((0, 0), (0, n))) for (_, w, _), n in zip(layers, missing, strict=True)],
            biases=[np.pad(b, (0, n)) for (_, _, b), n in zip(layers, missing, strict=True)],
        )  # fmt: skip

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return header and arrays for a file."""
        layers: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for number, (subdomain, coefficients) in enumerate(zip(self.subdomains, self.coefficients, strict=True)):
            layer, parts = pack_layer(subdomain.features)
            layers.append(layer)
            parts |= {"bounds": subdomain.bounds, "coefficients": coefficients}
            arrays |= {f"{number}.{name}": array for name, array in parts.items()}
        return {"function": "subdomains", "subdomains": layers}, arrays


def unpack_subdomains(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> SubdomainNetwork:
    """Return the network that ``SubdomainNetwork.pack`` stored."""
    subdomains, coefficients = [], []
    for number, layer in enumerate(header["subdomains"]):
        own = {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith(f"{number}.")}
        features = unpack_layer(layer, own)
        subdomains.append(Subdomain(floats(own, "bounds", (features.dim, 2)), features))
        coefficients.append(floats(own, "coefficients", (features.columns, None)))
    if len({(subdomain.features.dim, c.shape[1]) for subdomain, c in zip(subdomains, coefficients, strict=True)}) != 1:
        raise FileError("the subdomains of the function do not fit each other")
    return SubdomainNetwork(tuple(subdomains), tuple(coefficients))


def split_box(domain: Domain, parts: Mapping[str, int]) -> list[Array]:
    """Return the boxes (n, 2) of a grid: parts[name] equal intervals along each named coordinate."""
    flat = isinstance(domain, Box) or (isinstance(domain, SpaceTime) and isinstance(domain.space, Box))
    if parts and not flat:
        raise InputError("subdomains are cut from boxes only; leave subdomains out for a ball")
    for name in parts:
        if name not in domain.names:
            raise InputError(f"subdomains names {name!r}, which is no coordinate; {suggestion(name, domain.names)}")
    intervals = []
    for name, (lower, upper) in zip(domain.names, domain.bounds, strict=True):
        count = positive_integer(f"subdomains[{name!r}]", parts.get(name, 1))
        intervals.append(list(pairwise(np.linspace(lower, upper, count + 1))))
    return [np.array(box) for box in product(*intervals)]


# ------------------------------------------------------------------------------------------- features and points


def scales_of(scale: float | Sequence[float], dim: int) -> Scales:
    """Return one scale per coordinate, from one scale for all or one for each."""
    if isinstance(scale, str):
        reject("scale", scale, "a number, or one per coordinate", "leave it out to search for it")
    values = (float(scale),) * dim if isinstance(scale, (int, float, np.floating)) else tuple(float(s) for s in scale)
    fits = len(values) == dim and all(0 < v < np.inf for v in values)
    require(fits, "scale", scale, f"one number > 0, or {dim} of them")
    return values


@dataclass(frozen=True)
class BoxFeatures:
    """Samples features for each subdomain: ridges that cross it, or integer frequencies."""

    problem: Problem
    tuning: CollocationTuning
    parts: Mapping[str, int] = field(default_factory=dict)
    activation: str = "tanh"
    law: WeightLaw | None = None

    @property
    def periodic(self) -> tuple[int, ...]:
        return tuple(self.problem.domain.names.index(name) for name in self.problem.periodic)

    def sample(self, width: int, scales: Scales, rng: np.random.Generator) -> tuple[Subdomain, ...]:
        boxes = split_box(self.problem.domain, self.parts)
        return tuple(Subdomain(box, self._layer(box, width, scales, rng)) for box in boxes)

    def _layer(self, box: Array, width: int, scales: Scales, rng: np.random.Generator) -> RandomFeatures:
        law, activation = self.law, self.activation
        if self.periodic:
            law, activation = IntegerFrequencies(scales, self.periodic), "cos"
        elif law is None:
            dense = len(scales) < self.tuning.few_coordinates_from
            law = BoxUniform(scales) if dense else FewCoordinates(scales)
        features = RandomFeatures.sample(
            width=width, law=law, activation=activation, rng=rng, domain=_Bounds(box), constant=True
        )
        return self._focused(features, rng)

    def _focused(self, features: RandomFeatures, rng: np.random.Generator) -> RandomFeatures:
        """Move a fraction of the neurons to where the data vary, if that is concentrated and no other law was given."""
        variation = self.problem.variation
        if variation is None or variation.probabilities is None or self.parts or self.law is not None or self.periodic:
            return features
        count = round(self.tuning.focus_fraction * features.width)
        weights, biases = variation.neurons(count, rng)
        rest = features.width - count
        return replace(
            features,
            weights=np.concatenate([features.weights[:, :rest], weights], axis=1),
            biases=np.concatenate([features.biases[:rest], biases]),
        )


@dataclass(frozen=True, eq=False)
class _Bounds:
    bounds: Array


@dataclass(frozen=True)
class PointSampler:
    """Number and positions of points: Sobol points, or samples of half a uniform density and half a given one."""

    columns: int
    rng: np.random.Generator
    tuning: CollocationTuning
    density: Density | None = None
    points_per_column: float = 3

    def interior(self, problem: Problem) -> Array:
        """Return points inside, a fraction of them where the data vary, if that is concentrated."""
        count = max(50, round(self.points_per_column * self.columns))
        focus = np.empty((0, problem.domain.dim))
        if problem.variation is not None:
            focus = problem.variation.sample(round(self.tuning.focus_fraction * count), self.rng)
        return np.concatenate([self.sample(problem.domain, count), focus])

    def condition(self, problem: Problem, term: Term) -> Array:
        """Return points on the side of a term; all conditions together get about as many as there are columns."""
        if term.points is not None:
            return term.points
        region: Any = term.region
        if region.is_point:  # the end of an interval
            return region.sample(1, rng=self.rng)
        sides = sum(other.points is None and not other.region.is_point for other in problem.constraints)  # type: ignore[union-attr]
        return self.sample(region, max(20, round(self.columns / sides)))

    def sample(self, region: Region, count: int) -> Array:
        if self.density is None:
            return region.sample(count, rng=self.rng, method="sobol")
        candidates = region.sample(self.tuning.candidates_per_point * count, rng=self.rng)
        weight = self.density(candidates)
        chance = 0.5 * weight / weight.sum() + 0.5 / len(candidates)
        return candidates[self.rng.choice(len(candidates), count, replace=False, p=chance)]
