"""Networks and solutions in other libraries: the same values, the same derivatives, and no rannpde there."""

import subprocess
import sys

import numpy as np
import pytest

import rannpde as rp
from rannpde.errors import InputError
from rannpde.network.activations import ACTIVATIONS

SMOOTH = [name for name, one in ACTIVATIONS.items() if one.smoothness > 1]


def network(kind: str, outputs: int = 0, dim: int = 2, seed: int = 0) -> rp.Network:
    rng = np.random.default_rng(seed)
    if kind == "fourier":
        features = rp.FourierFeatures.sample(width=7, dim=dim, scale=2.0, rng=seed, constant=bool(seed % 2))
    else:
        box = rp.Box(**{f"x{k}": (-0.5, 3.0 + k) for k in range(dim)})
        settings = {"width": 9, "law": rp.Gaussian(1.0), "activation": kind, "domain": box}
        features = rp.RandomFeatures.sample(**settings, rng=seed, constant=bool(seed % 2))
    return rp.Network(features, rng.normal(size=(features.columns, outputs) if outputs else features.columns))


def solutions() -> dict[str, rp.Solution]:
    square, walls = rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"}
    heat = {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}
    moving = {"t=0": "u = x", "x=0": "u = 0", "x=1": "u = cos(t)"}
    line = rp.SpaceTime(t=(0, 0.2), x=(0, 1))
    pair = rp.Problem(
        ["u_t = v_xx", "v_t = -u_xx"], line, {"t=0": ["u = sin(pi*x)", "v = 0"], "boundary": ["u = 0", "v = 0"]}
    )
    wave = rp.Problem("u_tt = u_xx", line, {"t=0": ["u = sin(pi*x)", "u_t = 0"], "boundary": "u = 0"})
    return {
        "cells": rp.solve(rp.Problem("-laplace(u) + u**3 = 1 + x", square, walls), tol=1e-4, method="cells"),
        "disc": rp.solve(rp.Problem("-laplace(u) = x", rp.Ball((0.3, 0), 1), walls), tol=1e-3, method="cells"),
        "weak": rp.solve(rp.Problem("-laplace(u) = 1 + x", square, walls), tol=1e-3, method="weak"),
        "pieces": rp.solve(rp.Problem("-u_xx = 1", rp.Interval(0, 1), walls), tol=1e-3, method="collocation"),
        "lines": rp.solve(rp.Problem("u_t = u_xx - u**3", line, heat), tol=1e-4),
        "moving": rp.solve(rp.Problem("u_t = u_xx", line, moving), tol=1e-4),
        "system": rp.solve(pair, tol=1e-3),
        "wave": rp.solve(wave, tol=1e-3),
        "trajectory": rp.solve(rp.Problem("u_t = u_xx", line, heat), tol=1e-3, method=rp.Cells(time_stepping=True)),
    }  # fmt: skip


@pytest.fixture(scope="module")
def solved():
    return solutions()


NAMES = ("cells", "disc", "weak", "pieces", "lines", "moving", "system", "wave", "trajectory")


def places(function):
    """Points of a solution's domain, or about the origin for a network."""
    solved = isinstance(function, rp.Solution)
    return function.stated.domain.sample(10, rng=0) if solved else np.random.default_rng(0).normal(size=(9, 2))


def spread_of(function, points, index):
    """Size of the terms that cancel in a sum of features: rounding is relative to it, whoever adds them up."""
    plain = function.to_numpy()
    size = np.abs(plain.arrays["coefficients"]).sum(axis=(1, 2)).max()
    weights = np.abs(plain.arrays["weights"]).max() / plain.arrays["halfwidth"].min()
    return 1.0 + size * max(weights, 1.0) ** sum(index)


@pytest.mark.parametrize("kind", [*SMOOTH, "fourier"])
@pytest.mark.parametrize(("outputs", "dim"), [(0, 1), (0, 2), (3, 2)])
def test_plain_numpy_agrees_with_every_activation(kind, outputs, dim):
    for seed in range(2):
        own, points = network(kind, outputs, dim, seed), np.random.default_rng(seed).normal(size=(20, dim))
        plain = own.to_numpy()
        np.testing.assert_allclose(plain(points), own(points), rtol=1e-13, atol=1e-13)
        for index in ((1,) + (0,) * (dim - 1), (0,) * (dim - 1) + (2,), (3,) * dim):
            expected = own.derivative(points, index)
            np.testing.assert_allclose(plain.derivative(points, index), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_plain_numpy_agrees_with_every_kind_of_solution(name, solved):
    solution = solved[name]
    plain, points = solution.to_numpy(), solution.problem.domain.sample(60, rng=0)
    dim = points.shape[1]
    for index in ((0,) * dim, (0,) * (dim - 1) + (1,), (0,) * (dim - 1) + (2,)):
        expected = solution.derivative(points, index)
        allowed = 1e-12 * (1 + np.abs(expected).max()) + 50 * np.finfo(float).eps * spread_of(solution, points, index)
        assert np.abs(plain.derivative(points, index) - expected).max() < allowed, (index, allowed)


def test_a_derivative_in_time_is_that_of_the_polynomials(solved):
    solution, points = solved["lines"], np.random.default_rng(1).uniform([0, 0], [0.2, 1], size=(30, 2))
    found = solution.to_numpy().derivative(points, (1, 0))
    np.testing.assert_allclose(found, solution.derivative(points, (1, 0)), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["lines", "cells"])
def test_a_file_needs_numpy_alone(name, solved, tmp_path):
    solution = solved[name]
    points = solution.problem.domain.sample(5, rng=0)
    plain = solution.to_numpy(tmp_path / "exported.py")
    np.save(tmp_path / "points.npy", points)
    code = (
        "import sys; sys.modules['rannpde'] = None\nimport numpy as np\nfrom exported import function\n"
        "print(repr(function(np.load('points.npy')).tolist()), sep='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    found = [float(part) for part in done.stdout.strip("[]\n ").split(",")]
    np.testing.assert_array_equal(found, plain(points))


def test_what_cannot_be_exported_says_why(tmp_path):
    square = rp.Box(x=(0, 1), y=(0, 1))
    trefftz = rp.solve(rp.Problem("-laplace(u) = 1", square, {"boundary": "u = 0"}), tol=1e-4, method="trefftz")
    with pytest.raises(InputError, match="method='cells'"):
        trefftz.to_numpy()
    with pytest.raises(InputError, match=r"must end in \.py"):
        network("tanh").to_numpy(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"ends in \.onnx"):
        network("tanh").to_onnx(tmp_path / "a.txt")


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    import rannpde.network.export as export

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(export, "import_module", missing)
    calls = (network("tanh").to_torch, network("tanh").to_jax, lambda: network("tanh").to_onnx(tmp_path / "a.onnx"))
    for call, name in zip(calls, ("torch", "jax", "onnx"), strict=True):
        with pytest.raises(InputError, match=f"pip install {name}"):
            call()


# ------------------------------------------------------------------------------- in the libraries, where they are


@pytest.mark.parametrize("kind", [*SMOOTH, "fourier"])
def test_torch_agrees_with_derivatives(kind):
    torch = pytest.importorskip("torch")
    own = network(kind, seed=1)
    points = np.random.default_rng(0).normal(size=(12, 2))
    given = torch.tensor(points, requires_grad=True)
    values = own.to_torch()(given)
    np.testing.assert_allclose(values.detach().numpy(), own(points), rtol=1e-12, atol=1e-12)
    (slopes,) = torch.autograd.grad(values.sum(), given, create_graph=True)
    np.testing.assert_allclose(slopes[:, 1].detach().numpy(), own.derivative(points, (0, 1)), rtol=1e-12, atol=1e-12)
    (bends,) = torch.autograd.grad(slopes[:, 1].sum(), given)
    np.testing.assert_allclose(bends[:, 1].numpy(), own.derivative(points, (0, 2)), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_torch_agrees_with_solutions(name, solved):
    torch = pytest.importorskip("torch")
    solution = solved[name]
    points = solution.problem.domain.sample(40, rng=0)
    given = torch.tensor(points, requires_grad=True)
    values = solution.to_torch()(given)
    plain = solution.to_numpy()
    allowed = 1e-12 + 50 * np.finfo(float).eps * spread_of(solution, points, (0,))
    assert np.abs(values.detach().numpy() - plain(points)).max() < allowed
    first = values if values.ndim == 1 else values[:, 0]
    (slopes,) = torch.autograd.grad(first.sum(), given)
    last = (0,) * (points.shape[1] - 1) + (1,)
    expected = plain.derivative(points, last)
    expected = expected if expected.ndim == 1 else expected[:, 0]
    allowed = 1e-12 * np.abs(expected).max() + 50 * np.finfo(float).eps * spread_of(solution, points, last)
    assert np.abs(slopes[:, -1].numpy() - expected).max() < allowed


@pytest.mark.parametrize("name", ["tanh", "fourier", "softplus", "cells", "lines", "pieces", "trajectory", "system"])
def test_jax_agrees_with_derivatives(name, solved):
    jax = pytest.importorskip("jax")
    function = solved[name] if name in NAMES else network(name, seed=1)
    points = (
        function.problem.domain.sample(10, rng=0) if name in NAMES else np.random.default_rng(0).normal(size=(9, 2))
    )
    if not jax.config.jax_enable_x64:
        with pytest.raises(InputError, match="jax_enable_x64"):
            function.to_jax()
    jax.config.update("jax_enable_x64", True)
    own, plain = jax.jit(function.to_jax()), function.to_numpy()
    allowed = 1e-12 + 50 * np.finfo(float).eps * spread_of(function, points, (0,))
    assert np.abs(np.asarray(own(points)) - plain(points)).max() < allowed
    last = (0,) * (points.shape[1] - 1) + (1,)
    slopes = np.array([np.asarray(jax.jacobian(lambda p: own(p[None])[0])(p))[..., -1] for p in points])
    expected = plain.derivative(points, last)
    allowed = 1e-12 * np.abs(expected).max() + 50 * np.finfo(float).eps * spread_of(function, points, last)
    assert np.abs(slopes - expected).max() < allowed


@pytest.mark.parametrize("name", [*ACTIVATIONS, "fourier", "cells", "lines", "pieces", "trajectory", "system"])
def test_onnx_agrees(name, solved, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    function = solved[name] if name in NAMES else network(name, seed=1)
    points = (
        function.problem.domain.sample(10, rng=0) if name in NAMES else np.random.default_rng(0).normal(size=(9, 2))
    )
    session = runtime.InferenceSession(str(function.to_onnx(tmp_path / "u.onnx")), providers=["CPUExecutionProvider"])
    (values,) = session.run(["values"], {"points": points})
    allowed = 1e-12 + 50 * np.finfo(float).eps * spread_of(function, points, (0,))
    assert np.abs(values - function.to_numpy()(points)).max() < allowed
