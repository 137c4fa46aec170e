"""Fits over Dask: the local result to rounding, the same bits whatever the workers, errors that name the block."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde as rp
from helpers import EPS, relative
from rannpde.cluster import Blocks
from rannpde.errors import InputError
from rannpde.fitting import collect_equations
from rannpde.fitting.fit import Samples
from rannpde.fitting.folds import cross_validated, tree
from rannpde.fitting.parts import Part

ROWS = (1500, 700, 1, 2299, 1500)
"""Chunks of the rows: unlike, and one with a single row."""


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    """Every chunk makes a part of its own, so that few rows grow a tree."""
    monkeypatch.setattr("rannpde.fitting.distributed.LEAF_ROWS", 1)
    monkeypatch.setattr("rannpde.fitting.distributed.LEAF_COLUMNS", 0)


def lazy(data, rows=ROWS):
    points, values = data
    return da.from_array(points, chunks=(rows, (1, 1))), da.from_array(values, chunks=(rows, *values.shape[1:]))


def slowly(block, seconds):
    time.sleep(seconds)
    return block


def closeness(network):
    """Normal equations are solved to the rounding of their sums times their condition."""
    return 10 * EPS * network.about["condition"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": 1e-4, "method": "dense"},
        {"penalty": 1e-4, "method": "nufft"},
        {"penalty": 1e-4, "method": "orthogonal"},
        {"penalty": 0, "cutoff": 1e-6},
    ],
    ids=str,
)
def test_the_fit_is_the_local_one_to_rounding_and_the_same_bits_again(client, data, features, settings, weighted):
    points, values = data
    weights = np.random.default_rng(1).uniform(0, 1, len(points)) if weighted else None
    here = rp.fit(features, points, values, weights=weights, **settings)
    chunks = None if weights is None else da.from_array(weights, chunks=1000)
    there, again = (rp.fit(features, *lazy(data), weights=chunks, **settings) for _ in range(2))
    assert relative(there(points), here(points)) < closeness(here)
    assert np.array_equal(there.coefficients, again.coefficients)
    told = ("solver", "points", "columns", "rank", "penalty", "outside")
    assert [there.about[name] for name in told] == [here.about[name] for name in told]
    assert there.about["training_error"] == pytest.approx(here.about["training_error"], rel=1e-8)


def test_gcv_finds_the_same_penalty(client, data, features):
    points, values = data
    noisy = values + np.random.default_rng(2).normal(0, 0.1, values.shape)
    here = rp.fit(features, points, noisy, penalty="gcv")
    there = rp.fit(features, *lazy((points, noisy)), penalty="gcv")
    assert there.about["penalty"] == pytest.approx(here.about["penalty"], rel=1e-4)  # the score is flat: √rounding
    assert relative(there(points), here(points)) < 1e-6


def test_folds_of_blocks_are_those_of_parts_on_one_machine(client, data, features):
    points, values = data
    noisy = values + np.random.default_rng(2).normal(0, 0.1, values.shape)
    there = rp.fit(features, *lazy((points, noisy)), penalty="folds", folds=3, method="dense")
    cuts = np.cumsum(ROWS)[:-1]
    blocks = list(zip(np.split(points, cuts), np.split(noisy, cuts), strict=True))
    parts = [Part.of(features, Samples(features, *block, None), "dense") for block in blocks]
    here = cross_validated([tree(parts[k::3], Part.merge) for k in range(3)])
    assert there.about["penalty"] == pytest.approx(here.result.penalty, rel=1e-12)
    assert there.about["validation_error"] == pytest.approx(here.validation_error, rel=1e-9)
    assert 0.05 < there.about["validation_error"] < 0.3  # the noise, relative to the values


def test_a_path_of_penalties_from_collected_equations(client, data, features):
    points, values = data
    equations = collect_equations(features, *lazy(data), method="dense")
    for fit in equations.path().solve_all([1e-2, 1e-5]):
        network = rp.fit(features, points, values, penalty=fit.penalty, method="dense")
        assert relative(features(points) @ fit.coefficients, network(points)) < closeness(network)
    orthogonal = collect_equations(features, *lazy(data), method="orthogonal")
    assert relative(orthogonal.solve(1e-3).coefficients, equations.solve(1e-3).coefficients) < 1e-8


def test_unknown_sizes_empty_chunks_and_shared_tasks(client, data, features):
    table = da.from_array(np.hstack(data), chunks=(1000, 4))
    kept = table[(table[:, 0] > 0.9) | (da.arange(6000, chunks=1000) < 3000)]  # sizes that nobody knows
    far = table[table[:, 0] > 7]  # all chunks empty
    whole = np.hstack(data)
    chosen = whole[(whole[:, 0] > 0.9) | (np.arange(6000) < 3000)]
    both = da.concatenate([far, kept])
    network = rp.fit(features, both[:, :2], both[:, 2])
    local = rp.fit(features, chosen[:, :2], chosen[:, 2])
    assert network.about["points"] == len(chosen)
    assert relative(network(data[0]), local(data[0])) < closeness(local)
    with pytest.raises(InputError, match="points is empty"):
        rp.fit(features, far[:, :2], far[:, 2])


def test_lists_of_delayed_blocks(client, data, features):
    points, values = data
    weights = np.linspace(0, 1, 6000)
    pieces = [slice(0, 2500), slice(2500, 6000)]
    local = rp.fit(features, points, values, weights=weights)
    pairs = [delayed((points[rows], values[rows], weights[rows])) for rows in pieces]
    lists = [[delayed(array[rows]) for rows in pieces] for array in (points, values, weights)]
    futures = [client.scatter(array) for array in ((points, values),)]
    for network in (rp.fit(features, pairs), rp.fit(features, lists[0], lists[1], weights=lists[2])):
        assert relative(network(points), local(points)) < closeness(local)
    plain = rp.fit(features, points, values)
    assert relative(rp.fit(features, futures)(points), plain(points)) < closeness(plain)


def test_mixed_arrays_are_cut_alike(client, data, features):
    points, values = data
    here = rp.fit(features, points, values)
    for there in (rp.fit(features, lazy(data)[0], values), rp.fit(features, points, lazy(data, (3000, 3000))[1])):
        assert relative(there(points), here(points)) < closeness(here)


def test_neighbours_join_until_they_are_worth_a_part(client, data, features, monkeypatch):
    several = rp.fit(features, *lazy(data))
    monkeypatch.setattr("rannpde.fitting.distributed.LEAF_ROWS", 2**16)
    one = rp.fit(features, *lazy(data))
    local = rp.fit(features, *data, method="dense")
    assert relative(one.coefficients, several.coefficients) < closeness(local)
    assert one.about["points"] == several.about["points"] == 6000


def test_one_output_comes_back_as_one_axis(client, data, features):
    points, values = lazy(data)
    assert rp.fit(features, points, values[:, 0]).coefficients.shape == (features.columns,)
    assert rp.fit(features, points, values[:, :1]).coefficients.shape == (features.columns, 1)


def test_normal_equations_that_fail_are_followed_by_orthogonal_ones(client, data):
    wide = rp.RandomFeatures.sample(width=200, dim=2, law=rp.Uniform(0.3), rng=0)
    network = rp.fit(wide, *lazy(data), penalty=1e-18)
    assert network.about["solver"] == "orthogonal"
    with pytest.raises(InputError, match="penalty is 1e-18, too small"):
        rp.fit(wide, *lazy(data), penalty=1e-18, method="dense")


def test_units_of_the_values_cost_no_digits(client, data, features):
    points, values = data
    scale = np.where(np.arange(6000) < 1500, 0.0, 1.0)  # the first block is all 0
    plain = rp.fit(features, *lazy((points, values[:, 0] * scale)))
    for unit in (2.0**-600, 2.0**600):
        scaled = rp.fit(features, *lazy((points, values[:, 0] * scale * unit)))
        assert np.array_equal(scaled.coefficients, plain.coefficients * unit)


def test_progress_counts_blocks(client, data, features):
    seen: list[Blocks] = []
    rp.fit(features, *lazy(data), progress=seen.append)
    assert [blocks.done for blocks in seen] == sorted({blocks.done for blocks in seen})
    assert str(seen[-1]).startswith("5 of 5 blocks")
    assert seen[-1].total == 5


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar(client, data, features, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    rp.fit(features, *lazy(data))
    assert "blocks" in terminal.getvalue()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p, v, w: (p.map_blocks(spoiled, dtype=float), v, w), "block 3: points has a NaN .* first in row 7"),
        (lambda p, v, w: (p, v.map_blocks(spoiled, dtype=float), w), "block 3: values has a NaN .* first in row 7"),
        (lambda p, v, w: (p, v, -w), r"block \d: weights is .* but must be ≥ 0"),
        (lambda p, v, w: (p, v, 0 * w), "weights is 0.0, but must be ≥ 0 and not all 0"),
        (lambda p, v, w: (p[:, :1], v, w), r"points with shape is \(6000, 1\), but must be of shape \(M, 2\)"),
        (lambda p, v, w: (p, v[:-1], w), r"values with shape is \(5999, 2\), but must be of 6000 rows"),
        (lambda p, v, w: (p, None, w), "values is None"),
        (lambda p, v, w: (p[p[:, 0] > 0], v[:1000], w), r"chunks of values is 1, but must be 5.*compute_chunk_sizes"),
        (lambda p, v, w: (p[p[:, 0] > 0], np.ones(9), None), r"NumPy array is .* must be of known sizes"),
        (lambda p, v, w: (p[p[:, 0] > 0], v[v[:, 0] > 0.5], None), r"block \d: values with shape .* as many as points"),
        (lambda p, v, w: (p, [1.0], w), "values is 'list', but must be a Dask array"),
        (lambda p, v, w: ([delayed(1.0)], None, None), r"block 0 is 'float', but must be \(points, values\)"),
        (lambda p, v, w: ([delayed(1.0)], v, None), "values is 'Array', but must be a list of 1 delayed"),
    ],
)
def test_what_is_wrong_is_named(client, data, features, spoil, message):
    points, values, weights = spoil(*lazy(data), da.ones(6000, chunks=1000))
    with pytest.raises(InputError, match=message):
        rp.fit(features, points, values, weights=weights)


def spoiled(block, block_id=None):
    """NaN in row 7 of block 3."""
    block = block.copy()
    block[7 if block_id[0] == 3 else slice(0)] = np.nan
    return block


def test_outputs_that_differ_between_blocks_are_named(client, features):
    blocks = [delayed((np.zeros((4, 2)), np.zeros((4, outputs)))) for outputs in (2, 2, 3)]
    with pytest.raises(InputError, match=r"values of block 2 with shape is \('m', 3\).*as in block 0"):
        rp.fit(features, blocks)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"penalty": "folds", "folds": 6}, "folds is 6, but must be at most 5"), ({"folds": 3}, "folds is 3")],
)
def test_folds_that_cannot_be(client, data, features, settings, message):
    with pytest.raises(InputError, match=message):
        rp.fit(features, *lazy(data), **settings)


def test_lazy_predictions(client, data, features):
    points, values = data
    network = rp.fit(features, points, values)
    lazy_points = lazy(data)[0]
    predicted = network(lazy_points)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (ROWS, (2,))
    np.testing.assert_allclose(predicted.compute(), network(points), rtol=0, atol=1e-13)
    slope = network.derivative(lazy_points, (1, 0)).compute()
    np.testing.assert_allclose(slope, network.derivative(points, (1, 0)), rtol=0, atol=1e-12)
    unknown = network(lazy_points[lazy_points[:, 0] > 0])
    np.testing.assert_allclose(unknown.compute(), network(points[points[:, 0] > 0]), rtol=0, atol=1e-13)
    with pytest.raises(InputError, match=r"block 3: points has a NaN .* first in row 7"):
        network(lazy_points.rechunk((ROWS, 2)).map_blocks(spoiled, dtype=float)).compute()
    with pytest.raises(InputError, match="points with shape"):
        network(lazy_points[:, :1])


def test_one_coordinate_and_one_output(data):
    features = rp.FourierFeatures.sample(width=5, dim=1, scale=2.0, rng=0)
    x = da.linspace(0, 1, 100, chunks=30)
    scalar, several = (rp.fit(features, x, values) for values in (da.exp(x), da.stack([x, x**2], axis=1)))
    for network in (scalar, several):
        expected = network(x.compute())
        for points in (x, x[:, None]):
            assert network(points).shape == expected.shape
            np.testing.assert_allclose(network(points).compute(), expected, atol=1e-14)


def test_bits_do_not_hang_on_the_workers(data, features, cluster):
    """Two processes, one process with three threads, and this process: the same chunks give the same bits."""

    def fits():
        cases = [{"method": method, "penalty": 1e-4} for method in ("dense", "nufft", "orthogonal")]
        return [rp.fit(features, *lazy(data), **case).coefficients for case in cases]

    with Client(cluster):
        processes = fits()
    with LocalCluster(1, threads_per_worker=3, processes=False, dashboard_address=":0") as other, Client(other):
        threads = fits()
    for one, two, three in zip(processes, threads, fits(), strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)


def test_progress_without_a_client_is_refused(data, features):
    with pytest.raises(InputError, match=r"progress is .*without a client"):
        rp.fit(features, *lazy(data), progress=print)
    with pytest.raises(InputError, match=r"progress is .*unless the data are Dask's"):
        rp.fit(features, *data, progress=print)


def test_adaptive_features_need_rows_at_hand(data):
    with pytest.raises(InputError, match="features is 'adaptive', but must be drawn"):
        rp.fit("adaptive", *lazy(data))


def test_a_killed_worker_changes_no_bit(client, cluster, data, features):
    points, values = lazy(data, (500,) * 12)
    calm = rp.fit(features, points, values, method="dense").coefficients
    slow = points.map_blocks(slowly, 0.15, dtype=float)
    victims = [worker.pid for worker in cluster.workers.values()]
    seen: list[Blocks] = []

    def progress(blocks):
        seen.append(blocks)
        if victims and blocks.done >= 3:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    stormy = rp.fit(features, slow, values, method="dense", progress=progress).coefficients
    assert not victims, "nobody was killed"
    assert np.array_equal(stormy, calm)
    assert seen[-1].done == 12
    client.wait_for_workers(2)


def test_an_interrupt_cancels_the_tasks(client, data, features):
    slow = lazy(data, (100,) * 60)[0].map_blocks(slowly, 0.2, dtype=float)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))

    def progress(blocks):
        if blocks.done and timer.ident is None:  # now the fit is under way, and most of it is still to come
            timer.start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            rp.fit(features, slow, data[1], progress=progress)
    finally:
        signal.signal(signal.SIGINT, before)
    timer.join()
    deadline = time.monotonic() + 20
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=9), st.sampled_from(["dense", "orthogonal"]))
def test_any_chunks_give_the_local_fit(rows, method):
    rng = np.random.default_rng(sum(rows))
    points = rng.uniform(-1, 1, (sum(rows), 1))
    features = rp.RandomFeatures.sample(width=4, dim=1, law=rp.Uniform(2.0), rng=0, constant=True)
    arrays = (da.from_array(array, chunks=(tuple(rows), -1)) for array in (points, np.sin(points)))
    if not sum(rows):
        with pytest.raises(InputError, match="points is empty"):
            rp.fit(features, *arrays, method=method)
        return
    there, here = rp.fit(features, *arrays, method=method), rp.fit(features, points, np.sin(points), method=method)
    np.testing.assert_allclose(there(points), here(points), rtol=0, atol=closeness(here))


def test_without_the_extra_the_error_names_it(data, features, monkeypatch):
    points, values = lazy(data)
    monkeypatch.setitem(sys.modules, "distributed", None)
    for call in (lambda: rp.fit(features, points, values), lambda: rp.fit(features, *data)(points)):
        with pytest.raises(InputError, match=r"pip install 'rannpde\[distributed\]'"):
            call()
