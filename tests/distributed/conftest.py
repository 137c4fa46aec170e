"""One real cluster of two processes for all modules, and data that every fit of it takes."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import distributed
import numpy as np
import pytest

import rannpde as rp


@pytest.fixture(scope="session")
def cluster() -> Iterator[distributed.LocalCluster]:
    # a task that kills its workers is given up after two of them: each takes seconds to come back; profiling takes a
    # twentieth of a core as long as the cluster lives
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.profile.enabled": False}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def data() -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(0).uniform(-1, 1, (6000, 2))
    values = np.column_stack([np.sin(2 * points.sum(axis=1)), np.cos(points[:, 0]) * points[:, 1]])
    return points, values


@pytest.fixture(scope="session")
def features() -> rp.FourierFeatures:
    return rp.FourierFeatures.sample(width=20, dim=2, scale=3.0, rng=0)
