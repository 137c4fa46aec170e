"""The random network as a function: features times output weights, with exact derivatives, kept in one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows, is_lazy, row_blocks
from rannpde.cluster import map_rows
from rannpde.display import html_table, short_number
from rannpde.errors import choose, finite_array, finite_points, require
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.activations import ACTIVATIONS
from rannpde.network.export import as_jax, as_torch, in_numpy, plain_network, written_as_onnx
from rannpde.network.features import FourierFeatures, RandomFeatures, multi_index
from rannpde.network.plain import PlainFunction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """u(z) = Σ_j coefficients_j column_j(z). Call it, differentiate it, save it.

    coefficients : (columns,) for a scalar function, (columns, outputs) for several fields
    about : facts about how it came to be (for fits: solver, condition, errors, seconds), kept in the file

    >>> features = FourierFeatures.sample(width=3, dim=2, scale=1.0, rng=0)
    >>> network = Network(features, np.ones(features.columns))
    >>> network(np.zeros((4, 2))).shape, network.derivative(np.zeros((4, 2)), (1, 0)).shape
    ((4,), (4,))
    """

    features: RandomFeatures | FourierFeatures
    coefficients: Array
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        coefficients = finite_array("coefficients", self.coefficients, (1, 2))
        fitting = len(coefficients) == self.features.columns and 0 not in coefficients.shape
        expected = f"of {self.features.columns} rows, one per column of the features, and at least one output"
        require(fitting, "coefficients with shape", coefficients.shape, expected)
        object.__setattr__(self, "coefficients", coefficients)

    def __repr__(self) -> str:
        """One line: features, outputs, and the error of the fit where it is one."""
        error = self.about.get("training_error")
        fitted = f", training error {error:.1e}" if isinstance(error, float) else ""
        return f"<Network: {self.features!r} → {self.outputs} output{'s' * (self.outputs > 1)}{fitted}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the facts about how it came to be."""
        facts = [("features", repr(self.features)), ("outputs", str(self.outputs))]
        return html_table([*facts, *((key.replace("_", " "), short_number(one)) for key, one in self.about.items())])

    @property
    def dim(self) -> int:
        """Number of input coordinates n."""
        return self.features.dim

    @property
    def outputs(self) -> int:
        """Number of fields."""
        return 1 if self.coefficients.ndim == 1 else self.coefficients.shape[1]

    def __call__(self, points: Array) -> Array:
        """Values at the points (M, dim): shape (M,), or (M, outputs). Memory is bounded whatever M is.

        A Dask array of points gives a Dask array of values, which is computed when it is asked for.
        """
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """The partial derivative of that multi-index at the points, shaped like the values."""
        index: MultiIndex = multi_index(derivative, self.dim)
        if is_lazy(points):
            return map_rows(Network.derivative, self, points, index, dim=self.dim, shape=self.coefficients.shape[1:])
        points = finite_points("points", points, self.dim)
        coefficients = self.coefficients
        if any(index):
            factor = self.features.factor(index)
            coefficients = (coefficients.T * factor).T
        values = np.empty((len(points), *coefficients.shape[1:]))
        rows = min(block_rows(self.features.columns), max(len(points), 1))
        buffer = np.empty((rows, self.features.columns))
        for block in row_blocks(len(points), rows):
            design = self.features.ridge(points[block], sum(index), buffer[: block.stop - block.start])
            np.matmul(design, coefficients, out=values[block])
        return values

    def to_numpy(self, path: PathLike | None = None) -> PlainFunction:
        """The same function in plain NumPy, with ``derivative(points, index)``.

        path : a ``.py`` file to write, which needs NumPy alone: ``from file import function``

        >>> features = FourierFeatures.sample(width=3, dim=2, scale=1.0, rng=0)
        >>> network = Network(features, np.ones(features.columns))
        >>> bool(np.allclose(network.to_numpy()(np.eye(2)), network(np.eye(2)), rtol=1e-14))
        True
        """
        return in_numpy(plain_network(self.features, self.coefficients), path)

    def to_torch(self) -> torch.nn.Module:
        """A torch.nn.Module in double precision, differentiable by autograd; needs torch."""
        return as_torch(plain_network(self.features, self.coefficients))

    def to_jax(self) -> Callable[[Any], Any]:
        """A function of JAX for jit, grad and vmap; needs jax with 64 bits enabled."""
        return as_jax(plain_network(self.features, self.coefficients))

    def to_onnx(self, path: PathLike) -> Path:
        """Write an ``.onnx`` file with the input ``points`` (M, n) and the output ``values``; needs onnx."""
        return written_as_onnx(plain_network(self.features, self.coefficients), path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the network to one file that ``rannpde.load`` reads back bit for bit."""
        header, arrays = pack_features(self.features)
        return storage.write(
            path,
            "network",
            {"features": header, "about": dict(self.about)},
            {**arrays, "coefficients": self.coefficients},
        )


def load(path: str | os.PathLike[str]) -> Network:
    """The network in that file; FileError for anything that is not one, with the reason."""
    _, header, arrays = storage.read(path, "network")
    with storage.consistent(path, "network"):
        about = header["about"]
        require(isinstance(about, dict), "about", about, "a table")
        return Network(unpack_features(header["features"], arrays), storage.floats(arrays, "coefficients"), about)


def pack_features(features: RandomFeatures | FourierFeatures) -> tuple[dict[str, Any], dict[str, Array]]:
    """Features as a JSON header and named arrays."""
    arrays = {"weights": features.weights, "centre": features.centre, "halfwidth": features.halfwidth}
    if isinstance(features, FourierFeatures):
        return {"kind": "fourier", "constant": features.constant}, arrays | {"phases": features.phases}
    name, known = features.activation.name, ACTIVATIONS.get(features.activation.name)
    require(known is features.activation, "activation", name, "one of this library", "a file cannot hold a function")
    header = {"kind": "random", "constant": features.constant, "activation": features.activation.name}
    return header, arrays | {"biases": features.biases}


def unpack_features(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> RandomFeatures | FourierFeatures:
    """The inverse of ``pack_features``."""
    kind = choose("kind of features", header["kind"], {"fourier": FourierFeatures, "random": RandomFeatures})
    weights, centre, halfwidth = (storage.floats(arrays, name) for name in ("weights", "centre", "halfwidth"))
    if kind is FourierFeatures:
        return FourierFeatures(weights, storage.floats(arrays, "phases"), centre, halfwidth, header["constant"])
    activation = choose("activation", header["activation"], ACTIVATIONS)
    return RandomFeatures(weights, storage.floats(arrays, "biases"), activation, centre, halfwidth, header["constant"])
