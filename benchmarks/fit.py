"""Speed of fits as ratios, every pair measured side by side in one run, best of several.

    make bench                       all tables, a few minutes
    python -m benchmarks.fit --only nufft
    python -m benchmarks.fit --small  the same code on sizes of a second, to see that it runs

Seconds depend on the machine and on what else it does; the ratios are what to compare.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_info

import rannpde as rp
from rannpde.fitting.fit import add_dense


def best(*calls: Callable[[], object], repeat: int) -> list[float]:
    """Least seconds of each call, the calls taking turns so that a noisy minute hits all of them."""
    seconds = [np.inf] * len(calls)
    for _ in range(repeat):
        for i, call in enumerate(calls):
            started = time.perf_counter()
            call()
            seconds[i] = min(seconds[i], time.perf_counter() - started)
    return seconds


def in_fresh_process(work: Callable[[bool], dict[str, float]], small: bool) -> dict[str, float]:
    """Facts that work returns, with ``peak``: bytes of resident memory that it needed beyond what was there before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (work, small))


def _measured(work: Callable[[bool], dict[str, float]], small: bool) -> dict[str, float]:
    work(True)  # compile and load first, so that only the work itself is counted
    before = _resident()
    facts = work(small)
    return facts | {"peak": _resident() - before}


def _resident() -> int:
    """Largest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux hands ru_maxrss of the parent down to its children, so it would count the wrong process
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def wave(points: np.ndarray) -> np.ndarray:
    """Two smooth fields with a moving front, like the travelling wave of the paper."""
    front = np.tanh(3 * (points[:, 1] - 1.5 * points[:, 0]))
    return np.column_stack([1.25 + 0.25 * front, 1.5 * front])


def numpy_fit(points: np.ndarray, values: np.ndarray, features: rp.FourierFeatures, penalty: float) -> np.ndarray:
    """The plain way: build the whole design matrix, multiply, Cholesky."""
    phase = points @ features.weights + features.phases
    ones = np.ones((len(points), 1))
    design = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(features.width)
    design = np.concatenate([design, ones], axis=1)
    gram = design.T @ design
    shift = np.full(features.columns, penalty * len(points))
    shift[-1] = 0.0
    gram[np.diag_indices_from(gram)] += shift
    return cho_solve(cho_factor(gram), design.T @ values)


def sklearn_fit(points: np.ndarray, values: np.ndarray, width: int, penalty: float) -> object:
    """RBFSampler and Ridge with as many columns as our cos/sin pairs."""
    design = RBFSampler(gamma=0.5 * 3.5**2, n_components=2 * width, random_state=0).fit_transform(points)
    return Ridge(alpha=penalty * len(points), solver="cholesky").fit(design, values)


def nufft(small: bool) -> None:
    rows, width, penalty = (20_000, 60, 1e-3) if small else (500_000, 250, 1e-3)
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0, 1, rows), rng.uniform(-5, 5, rows)])
    values = wave(points)
    features = rp.FourierFeatures.sample(width=width, dim=2, scale=3.5, rng=0)
    ours = lambda: rp.fit(features, points, values, penalty=penalty)  # noqa: E731
    ours()
    fast = best(ours, repeat=5)[0]
    plain, theirs, again = best(
        lambda: numpy_fit(points, values, features, penalty),
        lambda: sklearn_fit(points, values, width, penalty),
        ours,
        repeat=2,
    )
    fast = min(fast, again)
    reference = features(points[:5000]) @ numpy_fit(points, values, features, penalty)
    network = ours()
    gap = np.linalg.norm(network(points[:5000]) - reference) / np.linalg.norm(reference)
    print(f"Navier–Stokes workload, M = {rows:,}, N = {width}, n = 2, two outputs (solver: {network.about['solver']})")
    print(f"  rannpde.fit               {fast:8.3f} s")
    print(f"  NumPy, cos/sin, F.T @ F   {plain:8.3f} s   {plain / fast:6.1f} times ours   (target 30)")
    print(f"  RBFSampler + Ridge        {theirs:8.3f} s   {theirs / fast:6.1f} times ours   (target 10)")
    print(f"  predictions differ from NumPy's by {gap:.1e} relative   (target 1e-8)")


def five_dimensions(small: bool) -> tuple[rp.FourierFeatures, np.ndarray, np.ndarray]:
    rows, width = (2_560, 256) if small else (40_960, 4_096)
    rng = np.random.default_rng(0)
    points, values = rng.uniform(0, 1, (rows, 6)), rng.standard_normal((rows, 1))
    return rp.FourierFeatures.sample(width=width, dim=6, scale=10.0, rng=0), points, values


def whole_dense_fit(small: bool) -> dict[str, float]:
    features, points, values = five_dimensions(small)
    return {"seconds": rp.fit(features, points, values, penalty=1e-5).about["seconds"]}


def dense(small: bool) -> None:
    features, points, values = five_dimensions(small)
    rows, columns, block = len(points), features.columns, 512
    random_block = np.random.default_rng(1).standard_normal((block, columns))
    features(points[:block])

    def only_dsyrk() -> None:
        gram = np.zeros((columns, columns), order="F")
        for _ in range(rows // block):
            gram = blas.dsyrk(1.0, random_block.T, beta=1.0, c=gram, lower=1, overwrite_c=1)

    def ours() -> rp.NormalEquations:
        equations = rp.NormalEquations(columns, 1, True)
        add_dense(equations, features, points, values, None)
        return equations

    bare, full = best(only_dsyrk, ours, repeat=2)
    print(f"Dense sums, d = 5, M = {rows:,}, N = {features.width:,} ({columns:,} columns)")
    print(f"  dsyrk alone               {bare:8.3f} s   {rows * columns**2 / bare / 1e9:6.1f} GF/s")
    print(f"  features and sums         {full:8.3f} s   {bare / full:6.2f} of its rate   (target 0.75)")
    whole = in_fresh_process(whole_dense_fit, small)
    share = whole["peak"] / (8 * columns**2)
    print(f"  whole fit with Cholesky   {whole['seconds']:8.3f} s   peak {share:.2f} × the Gram matrix   (target 1.3)")


def streamed_fit(small: bool) -> dict[str, float]:
    total, width, block = (200_000, 60, 10_000) if small else (10_000_000, 250, 100_000)
    features = rp.FourierFeatures.sample(width=width, dim=2, scale=3.5, rng=0)

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.default_rng(0)
        for _ in range(total // block):
            points = np.column_stack([rng.uniform(0, 1, block), rng.uniform(-5, 5, block)])
            yield points, wave(points)

    about = rp.fit(features, blocks(), penalty=1e-3).about
    return {"points": total, "width": width, "seconds": about["seconds"]}


def stream(small: bool) -> None:
    facts = in_fresh_process(streamed_fit, small)
    design = facts["points"] * (2 * facts["width"] + 1) * 8
    print(f"{facts['points']:,} points streamed through a fit of width {facts['width']}")
    print(f"  {facts['seconds']:.2f} s with the making of the data")
    print(f"  peak {facts['peak'] / 2**20:.0f} MiB; the design matrix would be {design / 2**20:,.0f} MiB")


def describe_machine() -> None:
    libraries = {f"{i['internal_api']} {i['version']}, {i['num_threads']} threads" for i in threadpool_info()}
    print("Machine:", "; ".join(sorted(libraries)))


TABLES = {"nufft": nufft, "dense": dense, "stream": stream}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TABLES, action="append")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    describe_machine()
    for name in options.only or TABLES:
        TABLES[name](options.small)


if __name__ == "__main__":
    main()
