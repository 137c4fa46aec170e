"""Facts about the machine and the libraries: kept with every record, printed by ``rannpde doctor``."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.linalg import blas
from threadpoolctl import threadpool_info, threadpool_limits

from rannpde.network import kernels

LIBRARIES = ("rannpde", "numpy", "scipy", "numba", "finufft", "sympy", "matplotlib", "scikit-learn")
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SLOW_RATE = 10.0
"""GFlop/s of one core below which a tuned BLAS is surely not at work (a 2.5 GHz core with AVX2 gives 30 to 60)."""


def facts() -> dict[str, Any]:
    """Versions, processor, cores and BLAS; the same every time it is called on one installation."""
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    names = sorted({f"{p['internal_api']} {p.get('version', '?')} ({p.get('architecture', '?')})" for p in pools})
    return {
        "versions": {name: _version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": cores(),
        "blas": names,
    }


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """BLAS, OpenMP and numba restricted to that many threads, so that sums are rounded alike everywhere."""
    before = numba.get_num_threads()
    with threadpool_limits(threads):
        _limit_numba(threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)


def limit_threads(threads: int) -> None:
    """Restrict BLAS, OpenMP and numba to that many threads for the rest of the life of this process."""
    threadpool_limits(threads)
    _limit_numba(threads)


def _limit_numba(threads: int) -> None:
    numba.set_num_threads(min(threads, numba.get_num_threads()))


def symmetric_product_rate(order: int = 768, repeats: int = 5) -> float:
    """GFlop/s of dsyrk, the work horse of the dense fits, on one core by processor time: other programs may run."""
    design = np.random.default_rng(0).standard_normal((order, 4 * order)).T
    best = np.inf
    with threadpool_limits(1):
        for _ in range(repeats):
            started = time.process_time()
            blas.dsyrk(1.0, design, trans=1)
            best = min(best, time.process_time() - started)
    return 4 * order * order**2 / best / 1e9


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report."""

    name: str
    value: str
    problem: str = ""
    """Empty, or what is wrong and how to put it right."""


def examine() -> list[Check]:
    """Look at everything a study needs."""
    known = facts()
    checks = [Check("Python", f"{known['python']} on {known['platform']}")]
    checks += [
        Check(name, number or "missing", "" if number else f"install it: pip install {name}")
        for name, number in known["versions"].items()
    ]
    several = len({name.split()[0] for name in known["blas"]}) > 1  # the wheels of numpy and scipy each bring OpenBLAS
    remedy = "two BLAS libraries compete for the cores; reinstall numpy and scipy from one source" if several else ""
    checks.append(Check("BLAS", ", ".join(known["blas"]) or "unknown", remedy))
    checks += [_check_threads(known["cores"]), _check_rate(), _check_numba()]
    return checks


def _check_threads(available: int) -> Check:
    threads = max((p["num_threads"] for p in threadpool_info() if p.get("user_api") == "blas"), default=1)
    text = f"{threads} for BLAS, {numba.get_num_threads()} for numba, on {available} cores ({_processor()})"
    if threads < available:
        variables = " and ".join(name for name in THREAD_VARIABLES if name in os.environ) or "the limit"
        return Check("threads", text, f"BLAS may not use all cores, large fits are slower; unset {variables}")
    if threads > available:
        return Check(
            "threads", text, f"more threads than cores slow each other down; set OPENBLAS_NUM_THREADS={available}"
        )
    return Check("threads", text)


def _check_rate() -> Check:
    rate = symmetric_product_rate()
    slow = rate < SLOW_RATE
    problem = "the BLAS is slow; install numpy and scipy wheels with OpenBLAS" if slow else ""
    return Check("dsyrk", f"{rate:.0f} GFlop/s on one core", problem)


def _check_numba() -> Check:
    folder = Path(os.environ.get("NUMBA_CACHE_DIR", Path(kernels.__file__).parent))
    writable = os.access(folder, os.W_OK)
    problem = "" if writable else "its cache cannot be written, so kernels compile at each start; set NUMBA_CACHE_DIR"
    return Check("numba cache", "writable" if writable else str(folder), problem)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"
