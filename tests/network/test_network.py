"""The network as a function, and its file."""

import copy
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde
from helpers import EPS
from rannpde.errors import FileError, InputError
from rannpde.network import FourierFeatures, Gaussian, Network, RandomFeatures, as_activation, storage
from rannpde.network import network as module


def some_network(outputs: int | None = None, kind: str = "fourier") -> Network:
    if kind == "fourier":
        features = FourierFeatures.sample(width=6, dim=2, scale=2.0, rng=0)
    else:
        features = RandomFeatures.sample(width=6, dim=2, law=Gaussian(1.0), activation=kind, rng=0, constant=True)
    shape = (features.columns,) if outputs is None else (features.columns, outputs)
    return Network(features, np.random.default_rng(1).standard_normal(shape), {"solver": "dense", "condition": 12.5})


def test_values_and_derivatives_by_hand():
    """u = Σ_j (a_j cos z_j + c_j sin z_j)/√6 + β with z = w·x + b, neuron by neuron."""
    network, points = some_network(3), np.random.default_rng(0).uniform(0, 1, (11, 2))
    weights, coefficients = network.features.weights, network.coefficients
    value, mixed = np.tile(coefficients[-1], (11, 1)), np.zeros((11, 3))
    for j in range(6):
        phase = points[:, 0] * weights[0, j] + points[:, 1] * weights[1, j] + network.features.phases[j]
        wave = np.outer(np.cos(phase), coefficients[j]) + np.outer(np.sin(phase), coefficients[6 + j])
        value += wave / np.sqrt(6)
        mixed -= weights[0, j] * weights[1, j] * wave / np.sqrt(6)
    np.testing.assert_allclose(network(points), value, rtol=0, atol=20 * EPS)
    np.testing.assert_allclose(network.derivative(points, (1, 1)), mixed, rtol=0, atol=20 * EPS * np.abs(mixed).max())
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
        (lambda h: h.update(kind="poem"), "holds a poem, which this release does not know"),
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


# ---------------------------------------------------------------------------------------------------- forged files


def forged(tmp_path, header=None, **arrays):
    """A file with right hashes whose header and arrays were changed: only the sense of it can be wrong."""
    network = some_network()
    layer, own = module.pack_features(network.features)
    content = {"features": layer, "about": {}} | (header or {})
    merged = {**own, "coefficients": network.coefficients} | arrays
    return storage.write(
        tmp_path / "forged.npz", "network", content, {k: a for k, a in merged.items() if a is not None}
    )


FOURIER = {"kind": "fourier", "constant": True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": np.ones(12)}, r"coefficients with shape is \(12,\)"),
        ({"coefficients": np.ones((13, 0))}, "at least one output"),
        ({"coefficients": np.ones((13, 1, 1))}, "coefficients"),
        ({"coefficients": np.full(13, np.nan)}, "NaN"),
        ({"coefficients": np.ones(13, dtype=np.int64)}, "type int64, but must be float64"),
        ({"coefficients": np.ones(13, dtype=complex)}, "type complex128"),
        ({"coefficients": None}, "'coefficients'"),
        ({"weights": np.ones((3, 6))}, "centre with shape"),
        ({"weights": np.ones((2, 5))}, "phases with shape"),
        ({"weights": np.ones((0, 6))}, "weights with shape"),
        ({"weights": np.full((2, 6), np.inf)}, "infinite"),
        ({"weights": np.ones((2, 6), dtype=bool)}, "type bool"),
        ({"phases": np.ones((6, 1))}, "phases"),
        ({"halfwidth": np.zeros(2)}, "halfwidth is"),
        ({"centre": np.zeros(3)}, "centre with shape"),
        ({"header": {"features": FOURIER | {"constant": "no"}}}, "constant is 'no', but must be True or False"),
        ({"header": {"features": FOURIER | {"constant": False}}}, "coefficients with shape"),
        ({"header": {"features": {"kind": "fourier"}}}, "'constant'"),
        ({"header": {"features": FOURIER | {"kind": ["fourier"]}}}, "consistent network"),
        ({"header": {"features": {"kind": "random", "constant": True, "activation": "tahn"}}}, "activation is 'tahn'"),
        ({"header": {"features": {"kind": "random", "constant": True, "activation": "tanh"}}}, "'biases'"),
        ({"header": {"features": None}}, "consistent network"),
        ({"header": {"about": [1, 2]}}, "about is .*a table"),
    ],
)
def test_forged_networks_are_refused_when_they_are_loaded(tmp_path, change, message):
    with pytest.raises(FileError, match=message):
        rannpde.load(forged(tmp_path, **change))


def test_the_forger_can_write_a_good_file_too(tmp_path):
    assert np.array_equal(rannpde.load(forged(tmp_path)).coefficients, some_network().coefficients)


def test_members_of_one_name_are_refused(tmp_path):
    good = some_network().save(tmp_path / "good.npz")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        with pytest.warns(UserWarning, match="Duplicate name"):
            new.writestr("weights.npy", old.read("weights.npy"))
    with pytest.raises(FileError, match="two members of one name"):
        rannpde.load(tmp_path / "bad.npz")


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """A zip whose directory names one stored member many times: small on disk, large in memory."""
    path = some_network().save(tmp_path / "bomb.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("big.npy", bytes(200_000))
        big = archive.getinfo("big.npy")
        for number in range(50):
            twin = copy.copy(big)
            twin.filename = twin.orig_filename = f"twin{number}.npy"
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
    assert path.stat().st_size < 300_000
    with pytest.raises(FileError, match=r"its members claim 10\d{6}"):
        rannpde.load(path)


def test_compressed_members_are_refused(tmp_path):
    good = some_network().save(tmp_path / "good.npz")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(FileError, match="compressed members"):
        rannpde.load(tmp_path / "bad.npz")


def test_the_shape_inside_a_member_is_not_believed(tmp_path):
    """NumPy would allocate what the member's own header claims before it reads."""
    good = some_network().save(tmp_path / "good.npz")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.npz", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "coefficients.npy":
                data = data.replace(b"(13,), }          ", b"(9999999999999,), }")
                assert b"9999999999999" in data
            new.writestr(name, data)
    with pytest.raises(FileError, match="differs from what its header says"):
        rannpde.load(tmp_path / "bad.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(FileError, match="not an ordinary file"):
        rannpde.load(tmp_path / "pipe.npz")


# -------------------------------------------------------------------------------------------------------- headers


def test_numbers_of_numpy_are_written_as_plain_json(tmp_path):
    about = {
        "yes": np.True_,
        "count": np.int64(3),
        "size": np.float32(0.5),
        "exact": np.float64(0.1),
        "deep": [np.int8(1)],
    }
    features = some_network().features
    loaded = rannpde.load(Network(features, np.ones(13), about).save(tmp_path / "n.npz"))
    assert loaded.about == {"yes": True, "count": 3, "size": 0.5, "exact": 0.1, "deep": [1]}
    assert [type(value) for value in loaded.about.values()] == [bool, int, float, float, list]


def test_empty_arrays_travel(tmp_path):
    storage.write(tmp_path / "x.npz", "thing", {}, {"none": np.zeros((0, 3)), "flags": np.array([True, False])})
    _, _, arrays = storage.read(tmp_path / "x.npz", "thing")
    assert arrays["none"].shape == (0, 3)
    assert arrays["flags"].tolist() == [True, False]
    assert arrays["none"].flags.writeable


def test_types_that_could_not_be_read_back_are_not_written(tmp_path):
    with pytest.raises(InputError, match="type of array 'a' is '<f4'"):
        storage.write(tmp_path / "x.npz", "thing", {}, {"a": np.zeros(3, dtype=np.float32)})
    assert not list(tmp_path.iterdir())


def test_an_activation_of_ones_own_cannot_be_saved(tmp_path):
    own = replace(as_activation("tanh"), name="mine")
    features = RandomFeatures(np.ones((1, 1)), np.zeros(1), own, np.zeros(1), np.ones(1))
    with pytest.raises(InputError, match="activation is 'mine'"):
        Network(features, np.ones(1)).save(tmp_path / "x.npz")


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_files_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        path = some_network().save(tmp_path / "x.npz")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640


def test_fields_become_float64_arrays():
    features = RandomFeatures([[1, 2]], [0, 1], "tanh", [0], [1], np.True_)
    network = Network(features, [1, 2, 3])
    assert network.coefficients.dtype == features.weights.dtype == np.float64
    assert features.constant is True
    np.testing.assert_allclose(network(np.array([0.5])), [np.tanh(0.5) + 2 * np.tanh(2.0) + 3], rtol=4 * EPS)
