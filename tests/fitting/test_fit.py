"""fit(): the paths agree, streams equal arrays, diagnostics are true, bad input is named."""

import os
import subprocess
import sys
import tracemalloc
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import covering, some
from helpers import EPS, relative
from rannpde.errors import InputError
from rannpde.fitting.fit import add_dense, fit
from rannpde.fitting.normal import NormalEquations
from rannpde.fitting.nufft import normal_sums, prefers_nufft
from rannpde.network import FourierFeatures, Gaussian, RandomFeatures, Uniform

fit_module = import_module("rannpde.fitting.fit")  # the package has a function of that name


def target(points):
    return np.sin(3 * points.sum(axis=1)) * np.exp(-points[:, 0])


def problem(dim=2, rows=600, seed=0):
    points = np.random.default_rng(seed).uniform(-1, 2, (rows, dim))
    return points, target(points)


@pytest.mark.parametrize(("dim", "constant", "weighted"), covering([1, 2, 3], [True, False], [False, True]))
def test_nufft_sums_are_the_dense_sums(dim, constant, weighted):
    rng = np.random.default_rng(dim)
    domain = SimpleNamespace(bounds=np.array([[-1.0, 2.5]] * dim))
    features = FourierFeatures.sample(width=23, scale=6.0, rng=1, domain=domain, constant=constant)
    points, values = rng.uniform(-1, 2, (700, dim)), rng.standard_normal((700, 2))
    weights = rng.uniform(0, 2, 700) if weighted else None
    dense = NormalEquations(features.columns, 2, constant)
    add_dense(dense, features, points, values, weights)
    gram, moment = normal_sums(features, points, values, weights)
    np.testing.assert_allclose(np.tril(gram), np.tril(dense.gram), rtol=0, atol=1e-13 * 700)
    np.testing.assert_allclose(moment, dense.moment, rtol=0, atol=1e-13 * 700)


def test_nufft_in_several_batches_of_targets(monkeypatch):
    features = FourierFeatures.sample(width=31, dim=2, scale=4.0, rng=1)
    points, values = problem()
    whole = normal_sums(features, points, values[:, None])
    monkeypatch.setattr("rannpde.fitting.nufft._TARGETS", 200)
    parts = normal_sums(features, points, values[:, None])
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * len(points))


@pytest.mark.parametrize("penalty", [1e-3, 1e-6])
def test_all_paths_agree(penalty):
    points, values = problem()
    features = FourierFeatures.sample(width=40, dim=2, scale=3.0, rng=0)
    networks = {m: fit(features, points, values, penalty=penalty, method=m) for m in ("dense", "nufft", "orthogonal")}
    fresh, _ = problem(seed=1)
    for method, network in networks.items():
        assert network.about["solver"] == method
        # normal equations lose cond · eps; their condition is about 1/penalty
        assert relative(network(fresh), networks["dense"](fresh)) < 1e3 * EPS / penalty


def test_the_cheaper_path_is_taken():
    points = np.random.default_rng(0).uniform(0, 1, (200_000, 2))
    assert prefers_nufft(FourierFeatures.sample(width=250, dim=2, scale=3.5, rng=0), points, 2)
    assert not prefers_nufft(FourierFeatures.sample(width=250, dim=2, scale=3.5, rng=0), points[:100], 2)
    # a frequency grid that would not fit in memory, and too many dimensions
    assert not prefers_nufft(FourierFeatures.sample(width=250, dim=2, scale=1e6, rng=0), points, 2)
    five = np.zeros((200_000, 5))
    assert not prefers_nufft(FourierFeatures.sample(width=250, dim=5, scale=3.5, rng=0), five, 2)


@given(cuts=st.lists(st.integers(1, 599), max_size=5).map(lambda c: sorted(set(c))), outputs=st.sampled_from([None, 2]))
@settings(max_examples=20)
def test_a_stream_is_the_array(cuts, outputs):
    points, values = problem()
    values = values if outputs is None else np.column_stack([values, values**2])
    features = FourierFeatures.sample(width=20, dim=2, scale=3.0, rng=0)
    blocks = zip(np.split(points, cuts), np.split(values, cuts), strict=True)
    streamed, whole = fit(features, blocks, method="dense"), fit(features, points, values, method="dense")
    # blocks are regrouped to one canonical size, so not even the rounding differs
    assert np.array_equal(streamed.coefficients, whole.coefficients)
    assert streamed.coefficients.ndim == (1 if outputs is None else 2)
    assert streamed.about["points"] == 600


@pytest.mark.parametrize("method", ["dense", "nufft", "orthogonal"])
def test_several_chunks_sum_up(monkeypatch, method):
    points, values = problem()
    weights = np.random.default_rng(2).uniform(0, 1, len(points))
    features = FourierFeatures.sample(width=20, dim=2, scale=3.0, rng=0)
    whole = fit(features, points, values, weights=weights, method=method)
    monkeypatch.setattr(fit_module, "CHUNK_ROWS", 97)
    parts = fit(features, points, values, weights=weights, method=method)
    assert relative(parts(points), whole(points)) < 1e-9
    assert parts.about["points"] == whole.about["points"] == 600


def test_a_long_stream_needs_little_memory(monkeypatch):
    """Four million numbers pass through in chunks; the peak is a few chunks, far below the whole."""
    monkeypatch.setattr(fit_module, "CHUNK_ROWS", 20_000)
    features = FourierFeatures.sample(width=10, dim=2, scale=3.0, rng=0)

    def stream():
        rng = np.random.default_rng(0)
        for _ in range(200):
            points = rng.uniform(0, 1, (7_000, 2))
            yield points, target(points)

    tracemalloc.start()
    network = fit(features, stream(), method="dense")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert network.about["points"] == 1_400_000
    assert peak < 0.5 * 1_400_000 * 3 * 8


def test_diagnostics_are_true():
    points, values = problem()
    domain = SimpleNamespace(bounds=np.array([[-1.0, 2.0], [-1.0, 0.5]]))
    features = RandomFeatures.sample(width=30, law=Uniform(3.0), rng=0, domain=domain)
    network = fit(features, points, values, penalty=1e-8)
    about = network.about
    # a difference of sums in which coefficients of some 1e3 cancel
    error = relative(network(points), values)
    assert about["training_error"] == pytest.approx(error, rel=1e4 * EPS, abs=0)
    assert about["outside"] == pytest.approx(np.mean(points[:, 1] > 0.5), rel=4 * EPS, abs=0)
    assert about["columns"] == 30
    assert about["condition"] > 1
    assert about["seconds"] > 0
    design = features(points)
    # the reported condition is that of the regularised normal equations, as LAPACK estimates it in the 1-norm
    true = np.linalg.cond(design.T @ design + 1e-8 * len(points) * np.eye(30), 1)
    assert true / 4 < about["condition"] <= 1.01 * true


def test_gcv_beats_a_bad_penalty():
    points, values = problem()
    fresh, exact = problem(seed=1)
    features = FourierFeatures.sample(width=60, dim=2, scale=3.0, rng=0)
    chosen = fit(features, points, values, penalty="gcv")
    assert relative(chosen(fresh), exact) < 0.2 * relative(fit(features, points, values, penalty=1e-3)(fresh), exact)
    assert 0 < chosen.about["penalty"] < 1e-3


def test_tiny_penalties_fall_back_to_orthogonal_factorisation():
    x = np.linspace(-1, 1, 300)
    features = RandomFeatures.sample(width=100, dim=1, law=Uniform(4.0), rng=0)
    network = fit(features, x, np.exp(x), penalty=1e-30)
    assert network.about["solver"] == "orthogonal"
    assert relative(network(x), np.exp(x)) < 1e-9
    with pytest.raises(InputError, match="larger penalty"):
        fit(features, x, np.exp(x), penalty=1e-30, method="dense")
    with pytest.raises(InputError, match="larger penalty"):  # a stream cannot be read twice
        fit(features, iter([(x, np.exp(x))]), penalty=1e-30)


def test_constant_targets_and_duplicate_points():
    features = FourierFeatures.sample(width=10, dim=2, scale=3.0, rng=0)
    points = np.tile(np.random.default_rng(0).uniform(0, 1, (5, 2)), (40, 1))
    for method in ("dense", "nufft", "orthogonal"):
        network = fit(features, points, np.full(200, 4.0), method=method)
        np.testing.assert_allclose(network(points), 4.0, rtol=EPS / 1e-5)  # their condition is about 1/penalty
        zero = fit(features, points, np.zeros(200), method=method)
        assert np.abs(zero(points)).max() < 1e-12
        assert zero.about["training_error"] < 1e-12


def test_derivatives_of_a_fit_follow_the_function():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (1500, 2))
    features = RandomFeatures.sample(width=300, dim=2, law=Uniform(1.0), rng=0)
    network = fit(features, points, np.sin(points[:, 0]) * np.cos(2 * points[:, 1]), penalty=0)
    inner = rng.uniform(-0.9, 0.9, (200, 2))
    exact = -4 * np.cos(inner[:, 0]) * np.cos(2 * inner[:, 1])
    assert relative(network.derivative(inner, (1, 2)), exact) < 1e-7


@pytest.mark.parametrize("size", [1e-170, 1e160, 1e-310])
@pytest.mark.parametrize("method", ["dense", "nufft", "orthogonal"])
@pytest.mark.parametrize("penalty", [1e-6, "gcv"])
def test_training_error_does_not_depend_on_the_unit_of_the_values(size, method, penalty):
    """Squares of such values are 0 or infinite; the values are scaled by a power of two before."""
    points, values = problem()
    features = FourierFeatures.sample(width=20, dim=2, scale=3.0, rng=0)
    plain, scaled = (fit(features, points, unit * values, method=method, penalty=penalty) for unit in (1.0, size))
    # values of 1e-310 have 13 digits only; cross-validation knows its minimiser λ to half the digits
    assert scaled.about["training_error"] == pytest.approx(plain.about["training_error"], rel=1e-10, abs=0)
    assert relative(scaled(points) / size, plain(points)) < (1e-9 if penalty == "gcv" else 1e-11)


def test_a_stream_that_begins_with_zeros_is_scaled_too(monkeypatch):
    monkeypatch.setattr(fit_module, "CHUNK_ROWS", 100)
    points, values = problem()
    values[:250] = 0.0
    features = FourierFeatures.sample(width=20, dim=2, scale=3.0, rng=0)
    plain, tiny = (fit(features, iter([(points, unit * values)]), penalty=1e-6) for unit in (1.0, 1e-170))
    assert tiny.about["training_error"] == pytest.approx(plain.about["training_error"], rel=1e-12, abs=0)


@pytest.mark.parametrize("penalty", [1e-5, 0.0])
def test_a_fit_is_read_in_nine_files(penalty):
    """How far a reader must walk to follow a call; one of the files only asks whether it may go on (checkpoints)."""
    points, values = problem()
    features = RandomFeatures.sample(width=30, dim=2, law=Uniform(3.0), rng=0)
    seen = set()

    def note(frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and "rannpde" in name and "tests" not in name:
            seen.add(name)

    sys.setprofile(note)
    try:
        fit(features, points, values, penalty=penalty)
    finally:
        sys.setprofile(None)
    assert 0 < len(seen) <= 9, sorted(seen)


FORK = """
import os, sys
import numpy as np
from rannpde.fitting.fit import fit
from rannpde.network import FourierFeatures

features = FourierFeatures.sample(width=40, dim=2, scale=3.0, rng=0)
points = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
here = fit(features, points, points[:, 0] ** 2, method={method!r})
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    there = fit(features, points, points[:, 0] ** 2, method={method!r})
    os.write(writer, there(points[:50]).tobytes())
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
answer = np.frombuffer(os.read(reader, 400))
assert np.abs(answer - here(points[:50])).max() < 1e-8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("method", some(["nufft", "dense", "orthogonal"], 1))
def test_a_forked_process_can_fit(method):
    """The threads of OpenMP stay in the parent; a child that waits for them hangs until the limit."""
    program = [sys.executable, "-c", FORK.format(method=method)]
    run = subprocess.run(program, timeout=120, capture_output=True, text=True, start_new_session=True, check=False)
    assert run.returncode == 0, run.stderr


GOOD = FourierFeatures.sample(width=10, dim=2, scale=3.0, rng=0)
POINTS, VALUES = problem(rows=50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(GOOD, np.where(POINTS[3] == POINTS, np.nan, POINTS), VALUES), "points has a NaN.*row 3"),
        (lambda: fit(GOOD, POINTS, np.where(VALUES[4] == VALUES, np.inf, VALUES)), "values has .*row 4"),
        (lambda: fit(GOOD, POINTS, VALUES[:-1]), "values with shape is .*50 rows"),
        (lambda: fit(GOOD, POINTS[:, :1], VALUES), r"points with shape is \(50, 1\)"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=-1), "penalty is -1"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty="cv"), "penalty is 'cv'.*'gcv'"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=[1, 2]), r"penalty is \[1, 2\]"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=np.array([1.0, 2.0])), "penalty is .*finite number"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=1j), "penalty is 1j"),
        (lambda: fit(GOOD, POINTS, VALUES * 1j), "values is 'complex'"),
        (lambda: fit(GOOD, POINTS, np.ma.masked_array(VALUES, VALUES > 0)), "values is 'a masked array'"),
        (lambda: fit(GOOD, POINTS.astype(str), VALUES), "points is .*array of numbers"),
        (lambda: fit(GOOD, POINTS, VALUES, width=20), "width is 20.*left out unless features is 'adaptive'"),
        (lambda: fit(GOOD, POINTS, VALUES, rng=0), "rng is 0.*left out unless features is 'adaptive'"),
        (lambda: fit(3, POINTS, VALUES), "features is 'int'.*'adaptive'"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=0, cutoff=1e-9, method="dense"), "cutoff is .*method 'dense'"),
        (lambda: fit(GOOD, POINTS, VALUES, penalty=0, cutoff="small"), "cutoff is 'small'"),
        (lambda: fit(GOOD, POINTS, VALUES, method="fast"), "method is 'fast'.*known: auto, dense"),
        (lambda: fit(GOOD, POINTS, VALUES, cutoff=0.1), "pass penalty=0"),
        (lambda: fit(GOOD, POINTS, VALUES, cutoff=3, penalty=0), "cutoff is 3"),
        (lambda: fit(GOOD, POINTS[:8], VALUES[:8], penalty=0), "8 independent rows cannot determine 21 columns"),
        (lambda: fit(GOOD, POINTS[:8], VALUES[:8], penalty=0, method="dense"), "points has 8 rows for 21 columns"),
        (lambda: fit(GOOD, np.zeros((0, 2)), np.zeros(0)), "points is empty"),
        (lambda: fit(GOOD, iter([])), "points is empty"),
        (lambda: fit(GOOD, POINTS), "values is None.*iterable of"),
        (lambda: fit(GOOD, [POINTS]), "block 0 is 'ndarray'.*a pair"),
        (lambda: fit(GOOD, [(POINTS, VALUES), (POINTS, VALUES[:3])]), "block 1: values with shape"),
        (lambda: fit(GOOD, [(POINTS, VALUES), (POINTS, POINTS)]), "values of block 1"),
        (lambda: fit(GOOD, [(POINTS, VALUES)], weights=VALUES), "weights is .*left out with a stream"),
        (lambda: fit(GOOD, POINTS, VALUES, weights=VALUES - 10), "weights is .*≥ 0"),
        (lambda: fit(GOOD, POINTS, VALUES, weights=VALUES[:3] + 9), "weights with shape"),
        (
            lambda: fit(
                RandomFeatures.sample(width=3, dim=2, law=Gaussian(1.0), rng=0), POINTS, VALUES, method="nufft"
            ),
            "method is 'nufft'.*Fourier",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
