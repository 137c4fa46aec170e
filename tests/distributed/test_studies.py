"""Cells and members on workers: one writer, the results of one machine, kills and deaths that lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import rannpde as rp
from helpers import relative
from rannpde.cli import main
from rannpde.cluster import ClusterError
from rannpde.errors import InputError
from rannpde.pde.zoo import zoo
from rannpde.sklearn import RandomFeatureMap, RaNNRegressor
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.records import Records
from rannpde.studies.run.runner import missing_cells, run_cells
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump

STUDY = Study(
    "tiny",
    GaussianBump(1),
    Layer(scale=5.0),
    widths=(8, 16),
    seeds=(0, 1, 2),
    sampling=Sampling(points_per_width=10, test_points=300),
    curves=(FittedCurve("d = 1"),),
)


@dataclass(frozen=True)
class Difficult(GaussianBump):
    """Cannot be fitted: its values do what ``manner`` says."""

    manner: str = "raise"

    def values(self, points: np.ndarray) -> np.ndarray:
        if self.manner == "die":
            os._exit(9)
        if self.manner == "slow":
            time.sleep(0.3)
            return super().values(points)
        raise RuntimeError("no luck")


def difficult(manner: str, seeds: tuple[int, ...] = (0,)) -> Study:
    curves = (FittedCurve("good"), FittedCurve("bad", Difficult(1, manner=manner)))
    return replace(STUDY, widths=(8,), seeds=seeds, curves=curves)


def errors(path: Path, study: Study) -> list[float]:
    with Records(path) as records:
        found = records.find(study.cells)
        return [found[cell.key].result.error for cell in study.cells]


def test_cells_on_workers_are_those_of_one_machine_and_only_missing_ones_run(cluster, tmp_path):
    seen: list[str] = []
    with Records(tmp_path / "there") as records:
        run_cells(STUDY.cells[:2], records)
        settings = {"scheduler": cluster.scheduler_address, "notice": lambda cell, _: seen.append(cell.key)}
        assert run_cells(STUDY.cells, records, **settings) == []
        assert run_cells(STUDY.cells, records, **settings) == []
        found = records.find(STUDY.cells)
    assert sorted(seen) == sorted(cell.key for cell in STUDY.cells[2:])
    with Records(tmp_path / "here") as records:
        run_cells(STUDY.cells, records)
    assert errors(tmp_path / "there", STUDY) == pytest.approx(errors(tmp_path / "here", STUDY), rel=1e-10)
    assert all(record.environment["threads"] == 1 for record in found.values())


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("raise", "RuntimeError: no luck"),
        pytest.param("die", "2 workers died at one task", marks=pytest.mark.slow),  # each loads everything again
    ],
)
def test_a_cell_that_fails_or_kills_its_workers_takes_no_other_with_it(cluster, tmp_path, manner, reason):
    study = difficult(manner)
    with Records(tmp_path / "r") as records:
        failures = run_cells(study.cells, records, scheduler=cluster.scheduler_address)
        assert [cell.curve for cell, _ in failures] == ["bad"]
        assert reason in failures[0][1].reason
        assert len(records.keys()) == 1


def test_the_command_runs_cells_on_workers(cluster, tmp_path, capsys, monkeypatch):
    file = tmp_path / "mine.toml"
    file.write_text(STUDY_FILE)
    command = ["study", str(file), "--out", str(tmp_path / "out"), "--scheduler", cluster.scheduler_address]
    monkeypatch.setattr(sys, "argv", ["rannpde", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert "report.html" in capsys.readouterr().out.replace("\n", "")
    monkeypatch.setattr(sys, "argv", ["rannpde", *command, "--workers", "2"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--workers is 2, but must be left out with --scheduler" in capsys.readouterr().err.replace("\n", "")


STUDY_FILE = """
name = "mine"
widths = [8, 16]
seeds = 2

[target]
kind = "formula"
expression = "exp(-t) * sin(pi * x1)"

[features]
scale = 5.0

[sampling]
test_points = 300
"""


def test_a_scheduler_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("rannpde.cluster.CONNECT_SECONDS", 0.5)
    with Records(tmp_path / "r") as records, pytest.raises(ClusterError, match=r"tcp://127.0.0.1:9 does not answer"):
        run_cells(STUDY.cells, records, scheduler="tcp://127.0.0.1:9")


# ------------------------------------------------------------------------------------------------ a scheduler that dies


@pytest.fixture
def fragile(tmp_path):
    """A scheduler and a worker as processes of their own: (process of the scheduler, address)."""
    file = tmp_path / "scheduler.json"
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": path}}
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--dashboard-address", ":0"]
    with ExitStack() as stack:
        scheduler = subprocess.Popen([*start, "--no-dashboard", "--scheduler-file", str(file)], **quiet)
        stack.callback(stack.enter_context(scheduler).kill)
        start = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
        worker = subprocess.Popen([*start, "--no-dashboard", "--no-nanny", "--nthreads", "1"], **quiet)
        stack.callback(stack.enter_context(worker).kill)
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(1)
            address = client.scheduler.address
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):  # how long a client tries to come back
            yield scheduler, address


@pytest.mark.slow
def test_a_scheduler_that_dies_loses_no_finished_record(fragile, tmp_path, monkeypatch):
    monkeypatch.setattr("rannpde.cluster.CONNECT_SECONDS", 2.0)  # also how long a client tries to come back
    scheduler, address = fragile
    study = difficult("slow", seeds=tuple(range(8)))

    def kill(cell, outcome):
        if scheduler.poll() is None:
            scheduler.send_signal(signal.SIGKILL)
            scheduler.wait()

    with Records(tmp_path / "r") as records:
        with pytest.raises(ClusterError, match=r"connection to the scheduler was lost.*finished cells are kept"):
            run_cells(study.cells, records, scheduler=address, notice=kill)
        kept = records.keys()
        assert kept
        assert run_cells(study.cells[:4], records) == []
        assert kept <= records.keys()
        assert missing_cells(study.cells[:4], records) == []


def test_a_scheduler_that_dies_ends_a_fit_with_an_error(fragile, data, features, monkeypatch):
    monkeypatch.setattr("rannpde.fitting.distributed.LEAF_ROWS", 1)
    scheduler, address = fragile
    slow = da.from_array(data[0], chunks=(200, 2)).map_blocks(lambda block: time.sleep(0.1) or block, dtype=float)

    def kill(blocks):
        scheduler.send_signal(signal.SIGKILL)

    with Client(address), pytest.raises(ClusterError, match=r"connection to the scheduler was lost.*repeat the call"):
        rp.fit(features, slow, data[1], progress=kill)


# --------------------------------------------------------------------------------------------------- ensembles, sklearn


def test_members_of_an_ensemble_on_the_client(cluster, client):
    seen: list[rp.Progress] = []
    problem = zoo("heat")
    there = rp.ensemble(problem, 2, tol=1e-3, rng=1, progress=seen.append)
    points = problem.domain.sample(200, rng=0)
    here = [rp.solve(problem, tol=1e-3, rng=seed) for seed in np.random.default_rng(1).spawn(2)]
    assert there.converged
    assert seen
    assert all(isinstance(at, rp.Progress) and at.number >= 1 for at in seen)
    for one, other in zip(there.members, here, strict=True):
        assert relative(one(points), other(points)) < 1e-3  # the tolerance: BLAS with more threads rounds otherwise
    assert all(error < 1e-2 for error in there.errors()["u"])


def test_members_that_do_not_converge_warn_here_and_wrong_settings_come_back(client):
    with pytest.warns(rp.ConvergenceWarning, match="did not converge"):
        assert not rp.ensemble(zoo("heat"), 2, tol=1e-12, seconds=0.01).converged
    with pytest.raises(InputError, match="tol is 2"):
        rp.ensemble(zoo("heat"), 2, tol=2.0)


def test_estimators_take_dask_arrays(client, data):
    points, values = data
    weights = (np.arange(6000) % 2).astype(float)
    points = np.where(weights[:, None] > 0, points, 9.0)  # rows of weight 0 shape nothing
    lazy = [da.from_array(array, chunks=(1000, *array.shape[1:])) for array in (points, values, weights)]
    here = RaNNRegressor(30, random_state=0).fit(points, values, sample_weight=weights)
    there = RaNNRegressor(30, random_state=0).fit(*lazy[:2], sample_weight=lazy[2])
    np.testing.assert_array_equal(there.network_.features.centre, here.network_.features.centre)
    predicted = there.predict(lazy[0])
    assert isinstance(predicted, da.Array)
    assert relative(predicted.compute(), here.predict(points)) < 1e-9
    assert there.n_features_in_ == 2
    assert there.score(lazy[0][1::2], lazy[1][1::2]) > 0.99
    transformer = RandomFeatureMap(5, random_state=0).fit(lazy[0])
    np.testing.assert_allclose(transformer.transform(lazy[0]).compute(), transformer.transform(points), atol=1e-14)
    with pytest.raises(ValueError, match="X has 1 features"):
        there.predict(lazy[0][:, :1])
    with pytest.raises(InputError, match="2 axes"):
        RaNNRegressor().fit(lazy[2], lazy[2])
    with pytest.raises(InputError, match="block 2: points has a NaN"):
        RaNNRegressor().fit(da.where(da.arange(6000, chunks=1000)[:, None] == 2005, np.nan, lazy[0]), lazy[1])
