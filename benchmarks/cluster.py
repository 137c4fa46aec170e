"""What Dask costs: the same fit here and on a LocalCluster, memory of the workers, bytes moved, weak scaling.

    python -m benchmarks.cluster                     all tables, for a quiet machine with two cores: minutes
    python -m benchmarks.cluster --only overhead
    python -m benchmarks.cluster --points 1e6        the same tables with fewer points

Blocks are made where they are summed, here and there by the same function, so that both sides do the same work. The
numbers of docs/scaling.md come from here. Seconds depend on the machine and on what else it does; compare the ratios.
(A script called distributed.py would hide the package of that name.)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, Worker
from scipy.linalg import blas, lapack

import rannpde as rp
from rannpde.fitting import NormalEquations, OrthogonalEquations
from rannpde.studies.run.environment import limited_threads

CHUNK = 250_000


@contextmanager
def workers(count: int) -> Iterator[Client]:
    """That many processes with one thread each, warmed up by a fit."""
    with (
        LocalCluster(count, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(count)
        fit_there(8, 200 * count, 100)
        yield client


def block(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (rows, 2) and values (rows,), always the same for the same number."""
    points = np.random.default_rng(number).uniform(-1, 1, (rows, 2))
    return points, np.sin(3 * points.sum(axis=1))


def features(width: int) -> rp.FourierFeatures:
    return rp.FourierFeatures.sample(width=width, dim=2, scale=3.0, rng=0)


def fit_here(width: int, rows: int, chunk: int = CHUNK) -> rp.Network:
    stream = (block(number, chunk) for number in range(rows // chunk))
    return rp.fit(features(width), stream, penalty=1e-6, method="dense")


def fit_there(width: int, rows: int, chunk: int = CHUNK, method: str = "dense") -> rp.Network:
    count = rows // chunk
    table = da.map_blocks(
        lambda block_id: np.column_stack(block(block_id[0], chunk)),
        chunks=((chunk,) * count, (3,)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    return rp.fit(features(width), table[:, :2], table[:, 2], penalty=1e-6, method=method)


def seconds(call: Callable[[], object], repeat: int = 1) -> float:
    """Least of several."""
    return min(_timed(call) for _ in range(repeat))


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def overhead(points: int) -> None:
    """As many workers with one core each as the local fit has threads.

    Seconds by the clock, and of all processors together: the latter can be compared on a busy machine too.
    """
    print("\noverhead: local fit against workers, calls taking turns, best of 2: by the clock, of processors")
    for count, width, rows in ((1, 64, points), (2, 64, points), (1, 256, points // 10)):
        rows = max(rows, 4 * CHUNK)
        here, there = np.full(2, np.inf), np.full(2, np.inf)
        with workers(count) as client, limited_threads(count):
            fit_here(width, CHUNK)
            for _ in range(2):
                here = np.minimum(here, spent(client, lambda w=width, r=rows: fit_here(w, r)))
                there = np.minimum(there, spent(client, lambda w=width, r=rows: fit_there(w, r)))
        print(f"  {rows:.0e} points, {2 * width + 1} columns, threads = workers = {count}: ", end="")
        pairs = zip(here, there, strict=True)
        print("; ".join(f"{a:.1f} s, {b:.1f} s, {b / a - 1:+.0%}" for a, b in pairs), flush=True)


def spent(client: Client, call: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and seconds of this process and of all workers."""

    def processors() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    before = processors()
    clock = _timed(call)
    return clock, processors() - before


def memory(points: int) -> None:
    """The largest resident memory of a worker must not grow with the points."""
    print("\nmemory: largest resident memory of any worker")
    for rows in (max(points // 10, 4 * CHUNK), points):
        with workers(2) as client:
            before = max(client.run(resident).values())
            fit_there(32, rows)
            after = max(client.run(resident).values())
        print(
            f"  {rows:.0e} points, 65 columns: {after / 2**20:.0f} MB, of which {before / 2**20:.0f} MB before the fit"
        )


def resident() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def moved(points: int) -> None:
    """Bytes between workers for each merge, in units of 8 N²."""
    print("\nbytes moved between workers")
    for width, method in ((64, "dense"), (256, "dense"), (128, "orthogonal")):
        columns, parts, chunk = 2 * width + 1, 16, 2**16
        with workers(2) as client:
            before = sum(client.run(outgoing).values())
            fit_there(width, parts * chunk, chunk, method)
            total = sum(client.run(outgoing).values()) - before
        share = total / (parts - 1) / (8 * columns**2)
        print(
            f"  {parts} parts, {columns} columns, {method}: {total / 2**20:.0f} MB, {share:.2f} × 8 N² for each merge"
        )


def outgoing(dask_worker: Worker) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def scaling(points: int) -> None:
    """As many points for each worker, whatever their number."""
    rows = max(points // 4, 8 * CHUNK)
    print(f"\nweak scaling: {rows:.0e} points for each worker, 129 columns, best of 2")
    found = []
    for count in (1, 2):
        with workers(count):
            found.append(seconds(lambda c=count: fit_there(64, c * rows), 2))
    print(f"  1 worker {found[0]:.1f} s, 2 workers {found[1]:.1f} s, efficiency {found[0] / found[1]:.0%}")


def rates(points: int) -> None:
    """What one core does: the numbers that docs/scaling.md calculates with."""
    print("\nrates of one core")
    size, rows = 2048, 8192
    rng = np.random.default_rng(0)
    design = rng.standard_normal((rows, size))
    with limited_threads(1):
        layer = features(size // 2)
        points_, out = rng.uniform(-1, 1, (rows, 2)), np.empty((rows, layer.columns))
        layer.ridge(points_, 0, out)
        spent = seconds(lambda: layer.ridge(points_, 0, out), 5)
        print(f"  Fourier features: {spent / rows / size * 1e9:.2f} ns for each entry of the design matrix")
        spent = seconds(lambda: blas.dsyrk(1.0, design.T, lower=1), 5)
        print(f"  dsyrk: {rows * size**2 / spent / 1e9:.0f} GFlop/s")
        gram = design.T @ design + 1e3 * np.eye(size)
        spent = seconds(lambda: lapack.dpotrf(gram), 5)
        print(f"  Cholesky: {size**3 / 3 / spent / 1e9:.0f} GFlop/s")
        parts = [NormalEquations(size, 1) for _ in range(2)]
        for part in parts:
            part.add(design, design[:, :1])
        spent = seconds(lambda: parts[0].merge(parts[1]), 5)
        print(f"  merge of sums: {8 * size**2 / spent / 1e9:.2f} GB/s of one part")
        triangles = [OrthogonalEquations(512, 1) for _ in range(2)]
        for triangle in triangles:
            triangle.add(design[:, :512], design[:, :1])
        spent = seconds(lambda: triangles[0].merge(triangles[1]), 5)
        print(f"  merge of triangles: {10 / 3 * 512**3 / spent / 1e9:.0f} GFlop/s")
    with workers(2) as client:
        count = 2000
        spent = seconds(lambda: client.gather(client.map(abs, range(1, count + 1), pure=False)), 2)
        print(f"  scheduler: {spent / count * 1e3:.2f} ms for an empty task")
        array = client.submit(np.ones, size**2, workers=[next(iter(client.scheduler_info()["workers"]))])
        array.result()
        other = list(client.scheduler_info()["workers"])[-1]
        spent = seconds(lambda: client.submit(len, array, workers=[other], pure=False).result(), 1)
        print(f"  a worker fetches {8 * size**2 / spent / 1e9:.2f} GB/s from another on this machine")


TABLES = {"overhead": overhead, "memory": memory, "moved": moved, "scaling": scaling, "rates": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(TABLES), help="one table")
    parser.add_argument("--points", type=float, default=1e7, help="points of the largest fit")
    given = parser.parse_args()
    for name, table in TABLES.items():
        if given.only in (None, name):
            table(int(given.points))


if __name__ == "__main__":  # workers are processes that read this file again
    main()
