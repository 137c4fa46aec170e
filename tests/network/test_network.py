"""The network as a function, and its file."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde
from helpers import EPS
from rannpde.errors import FileError, InputError
from rannpde.network import FourierFeatures, Gaussian, Network, RandomFeatures
from rannpde.network import network as module


def some_network(outputs: int | None = None, kind: str = "fourier") -> Network:
    if kind == "fourier":
        features = FourierFeatures.sample(width=6, dim=2, scale=2.0, rng=0)
    else:
        features = RandomFeatures.sample(width=6, dim=2, law=Gaussian(1.0), activation=kind, rng=0, constant=True)
    shape = (features.columns,) if outputs is None else (features.columns, outputs)
    return Network(features, np.random.default_rng(1).standard_normal(shape), {"path": "dense", "condition": 12.5})


def test_values_are_columns_times_coefficients():
    network, points = some_network(3), np.random.default_rng(0).uniform(0, 1, (11, 2))
    np.testing.assert_allclose(network(points), network.features(points) @ network.coefficients, atol=100 * EPS)
    second = network.features(points, (1, 1)) @ network.coefficients
    np.testing.assert_allclose(network.derivative(points, (1, 1)), second, atol=1000 * EPS)
    assert network.outputs == 3
    assert some_network().outputs == 1
    assert some_network()(points).shape == (11,)
    assert network(np.zeros((0, 2))).shape == (0, 3)


def test_block_size_does_not_matter(monkeypatch):
    network, points = some_network(), np.random.default_rng(0).uniform(0, 1, (1000, 2))
    whole = network(points)
    monkeypatch.setattr(module, "block_rows", lambda columns: 7)
    np.testing.assert_allclose(network(points), whole, rtol=0, atol=100 * EPS)


@pytest.mark.parametrize("kind", ["fourier", "tanh", "swish"])
@pytest.mark.parametrize("outputs", [None, 2])
def test_file_round_trip_is_bit_for_bit(tmp_path, kind, outputs):
    network = some_network(outputs, kind)
    path = network.save(tmp_path / "network.npz")
    loaded = rannpde.load(path)
    assert np.array_equal(loaded.coefficients, network.coefficients)
    assert np.array_equal(loaded.features.weights, network.features.weights)
    points = np.random.default_rng(0).uniform(0, 1, (50, 2))
    assert np.array_equal(loaded(points), network(points))
    assert loaded.about == network.about
    assert [p.name for p in tmp_path.iterdir()] == ["network.npz"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = some_network().save(tmp_path / "network.npz")
    before = path.read_bytes()
    bad = Network(some_network().features, some_network().coefficients, {"x": object()})  # not JSON
    with pytest.raises(TypeError):
        bad.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def saved(tmp_path) -> bytes:
    return some_network().save(tmp_path / "good.npz").read_bytes()


@given(cut=st.floats(0, 0.999))
@settings(max_examples=30)
def test_truncated_files_are_refused(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("cut")
    data = saved(folder)
    (folder / "cut.npz").write_bytes(data[: int(cut * len(data))])
    with pytest.raises(FileError, match=r"cut\.npz"):
        rannpde.load(folder / "cut.npz")


@given(position=st.floats(0, 1), bit=st.integers(0, 7))
@settings(max_examples=60)
def test_flipped_bits_never_pass_unnoticed(tmp_path_factory, position, bit):
    folder = tmp_path_factory.mktemp("flip")
    data = bytearray(saved(folder))
    data[min(int(position * len(data)), len(data) - 1)] ^= 1 << bit
    (folder / "flip.npz").write_bytes(bytes(data))
    try:
        loaded = rannpde.load(folder / "flip.npz")
    except FileError:
        return
    # a flip in the zip's own padding, dates or attributes may be harmless: then nothing has changed
    assert np.array_equal(loaded.coefficients, some_network().coefficients)
    assert np.array_equal(loaded.features.weights, some_network().features.weights)


def test_foreign_and_hostile_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(FileError, match="does not exist"):
        rannpde.load(path)
    path.write_text("hello")
    with pytest.raises(FileError, match="not a whole rannpde file"):
        rannpde.load(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(FileError, match=r"without header\.json"):
        rannpde.load(path)
    with pytest.raises(FileError, match="cannot be read"):
        rannpde.load(tmp_path)


def rewrite(tmp_path, change) -> None:
    """A good file whose header was changed by the function."""
    good = some_network().save(tmp_path / "good.npz")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.npz", "w") as new:
        header = json.loads(old.read("header.json"))
        change(header)
        new.writestr("header.json", json.dumps(header))
        for name in old.namelist():
            if name != "header.json":
                new.writestr(name, old.read(name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(version=99), "version 99.*upgrade"),
        (lambda h: h.update(format="other"), "not a rannpde file"),
        (lambda h: h.update(kind="solution"), "consistent solution"),
        (lambda h: h.update(kind="poem"), "holds a poem, but a network"),
        (lambda h: h.update(object=3), "damaged header"),
        (lambda h: h["object"].pop("features"), "consistent network"),
        (lambda h: h["object"]["features"].update(kind="evil"), "kind of features is 'evil'"),
        (lambda h: h["object"]["features"].update(kind="random", activation="os.system"), "consistent network"),
        (lambda h: h["arrays"]["weights"].update(shape=[10**9, 10**9]), "needs"),
        (lambda h: h["arrays"]["weights"].update(shape=[-1]), "refused"),
        (lambda h: h["arrays"]["weights"].update(dtype="|O"), "refused"),
        (lambda h: h["arrays"]["weights"].update(sha256="0"), "differs from what its header says"),
        (lambda h: h["arrays"].update(other=h["arrays"]["weights"]), "cannot be read"),
        (lambda h: h["arrays"].pop("weights"), "consistent network"),
        (lambda h: h.update(arrays=[]), "cannot be read"),
    ],
)
def test_hostile_headers_are_refused(tmp_path, change, message):
    rewrite(tmp_path, change)
    with pytest.raises(FileError, match=message):
        rannpde.load(tmp_path / "bad.npz")


def test_pickled_members_are_never_executed(tmp_path):
    good = some_network().save(tmp_path / "good.npz")
    evil = tmp_path / "evil.npy"
    np.save(evil, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, evil.read_bytes() if name == "weights.npy" else old.read(name))
    with pytest.raises(FileError):
        rannpde.load(tmp_path / "bad.npz")


def test_bad_coefficients_are_refused():
    with pytest.raises(InputError, match="coefficients with shape"):
        Network(some_network().features, np.ones(3))
    with pytest.raises(InputError, match="first in row 2"):
        Network(some_network().features, np.array([1, 1, np.nan] + [1] * 10))
