"""Networks for other libraries: plain NumPy, torch, JAX, ONNX. The numbers are those of a ``PlainFunction``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject, require
from rannpde.io import PathLike, write_whole
from rannpde.network.activations import ACTIVATIONS
from rannpde.network.features import FourierFeatures, RandomFeatures
from rannpde.network.plain import PlainFunction

if TYPE_CHECKING:
    import torch

LINE_LENGTH = 110
"""Letters of a line of numbers in an exported file."""
OPSET, IR_VERSION = 17, 8
"""Versions of ONNX that its runtimes of the last years read."""


def one_layer(features: Any) -> tuple[str, Array, Array]:
    """Activation, weights (n, N) and biases (N,) of features that are ridges; an InputError for others."""
    if isinstance(features, FourierFeatures):
        return "fourier", features.weights, features.phases
    if isinstance(features, RandomFeatures) and features.activation.name in ACTIVATIONS:
        return features.activation.name, features.weights, features.biases
    return reject("features", features, "random or Fourier features", "others cannot be exported")


def full_coefficients(features: Any, coefficients: Array) -> Array:
    """Coefficients (columns, k) with the factor N^(-1/2) of Fourier features inside and a row of the constant."""
    table = np.reshape(coefficients, (len(coefficients), -1))
    hidden = table[:-1] if features.constant else table
    last = table[-1:] if features.constant else np.zeros((1, table.shape[1]))
    scale = np.sqrt(features.width) if isinstance(features, FourierFeatures) else 1.0
    return np.concatenate([hidden / scale, last])


def plain_network(features: Any, coefficients: Array) -> PlainFunction:
    """A single network (columns,) or (columns, outputs) as a PlainFunction."""
    activation, weights, biases = one_layer(features)
    everywhere = np.repeat([[[-np.inf, np.inf]]], features.dim, axis=1)
    return PlainFunction(
        activation, coefficients.ndim == 1, boxes=everywhere, centre=features.centre[None],
        halfwidth=features.halfwidth[None], layer=[0], weights=weights[None], biases=biases[None],
        coefficients=full_coefficients(features, coefficients)[None, None],
    )  # fmt: skip


def written_in_numpy(function: PlainFunction, path: PathLike) -> Path:
    """A Python file that needs NumPy alone: ``from file import function``, then ``function(points)``."""
    if Path(path).suffix != ".py":
        raise InputError(f"path is {str(path)!r}, but must end in .py")
    home = files("rannpde.network")
    sources = [home.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in ("profiles", "plain")]
    own = sources[1].split("from rannpde.network.profiles import ACTIVATION_PROFILES\n")
    head, body = own[0].split("from __future__ import annotations\n")
    inner = sources[0].split("import numpy as np\n", 1)[1]
    imports = "from __future__ import annotations\n" + body.replace(
        "import io\n", "import io\nfrom functools import cache\n", 1
    )
    data = function.to_text()
    lines = [f'    "{data[k : k + LINE_LENGTH]}"' for k in range(0, len(data), LINE_LENGTH)]
    text = head + imports + inner + own[1] + "\n\nfunction = PlainFunction.from_text(\n" + "\n".join(lines) + "\n)\n"
    return write_whole(path, text)


def in_numpy(function: PlainFunction, path: PathLike | None) -> PlainFunction:
    """The function itself, also written to a file where one is named."""
    if path is not None:
        written_in_numpy(function, path)
    return function


def needed(name: str) -> Any:
    """A library that is an extra of this package."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"this export needs the package {name}; pip install {name}, or use to_numpy()") from None


def as_torch(function: PlainFunction) -> torch.nn.Module:
    """A torch.nn.Module in double precision: points (M, n) → (M,) or (M, outputs), differentiable by autograd."""
    needed("torch")
    from rannpde.network.torch_module import FeatureModule  # torch loads when it is asked for

    return FeatureModule(function)


def as_jax(function: PlainFunction) -> Callable[[Any], Any]:
    """A function of JAX: points (M, n) → (M,) or (M, outputs), to be used with jit, grad and vmap."""
    jax, jnp = needed("jax"), needed("jax.numpy")
    if not jax.config.jax_enable_x64:
        raise InputError(
            'JAX computes in single precision here, which loses the digits of the network; call jax.config.update("'
            'jax_enable_x64", True) first'
        )
    parts = {key: jnp.asarray(array) for key, array in function.arrays.items()}
    profiles: dict[str, Callable[[Any], list[Any]]] = {
        "fourier": lambda z: [jnp.cos(z), jnp.sin(z)], "tanh": lambda z: [jnp.tanh(z)],
        "sigmoid": lambda z: [jax.nn.sigmoid(z)], "cos": lambda z: [jnp.cos(z)], "sin": lambda z: [jnp.sin(z)],
        "gaussian": lambda z: [jnp.exp(-0.5 * z * z)], "softplus": lambda z: [jnp.logaddexp(z, 0.0)],
        "swish": lambda z: [z * jax.nn.sigmoid(z)], "relu": lambda z: [jnp.maximum(z, 0.0)],
        "hard_tanh": lambda z: [jnp.clip(z, -1.0, 1.0)],
    }  # fmt: skip
    profile, degree, single = profiles[function.activation], parts["coefficients"].shape[1] - 1, function.single

    def evaluate(points: Any) -> Any:
        points = jnp.asarray(points)
        lower, upper = parts["boxes"][..., 0], parts["boxes"][..., 1]
        if len(lower) == 1:
            home = jnp.zeros(len(points), dtype=int)
        else:
            fixed = jax.lax.stop_gradient(points)[:, None]
            home = jnp.square(jnp.maximum(jnp.maximum(lower - fixed, fixed - upper), 0.0)).sum(axis=2).argmin(axis=1)
        scaled = (points - parts["centre"][home]) / parts["halfwidth"][home]
        if len(parts["weights"]) == 1:
            phase = scaled @ parts["weights"][0] + parts["biases"][0]
        else:
            own = parts["layer"][home]
            phase = jnp.einsum("mn,mnj->mj", scaled, parts["weights"][own]) + parts["biases"][own]
        table = jnp.concatenate([*profile(phase), jnp.ones((len(points), 1))], axis=1)
        if len(lower) == 1:
            values = jnp.einsum("mj,djk->mdk", table, parts["coefficients"][0])
        else:
            values = jnp.einsum("mj,mdjk->mdk", table, parts["coefficients"][home])
        basis = [jnp.ones(len(points)), scaled[:, 0]]
        for n in range(1, degree):
            basis.append(((2 * n + 1) * scaled[:, 0] * basis[n] - n * basis[n - 1]) / (n + 1))
        total = jnp.einsum("md,mdk->mk", jnp.stack(basis[: degree + 1], axis=1), values)
        return total[:, 0] if single else total

    return evaluate


def written_as_onnx(function: PlainFunction, path: PathLike) -> Path:
    """An ONNX file with one input ``points`` (M, n) and one output ``values``, in double precision."""
    require(Path(path).suffix == ".onnx", "path", str(path), "a name that ends in .onnx")
    onnx = needed("onnx")
    from rannpde.network.onnx_graph import feature_graph  # loads when it is asked for

    return write_whole(path, feature_graph(onnx, function, OPSET, IR_VERSION).SerializeToString())
