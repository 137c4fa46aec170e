"""The limit of BLAS threads: held together, given back by the last one."""

import os
import subprocess
import sys
import threading

from threadpoolctl import threadpool_info

from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo
from rannpde.threads import one_core, one_thread, openmp_threads


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_overlapping_blocks_give_back_what_was_there():
    before = blas_threads()
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_solves_in_threads_leave_the_threads_as_they_were():
    before, found = blas_threads(), []
    work = [threading.Thread(target=lambda: found.append(solve(zoo("heat"), tol=1e-4))) for _ in range(3)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(found) == 3
    assert all(one.converged for one in found)
    assert blas_threads() == before


def test_a_task_has_one_core_whatever_the_process_loads_first():
    """A worker whose first task needs no transform: those of the next have one thread too, and so the same bits."""
    code = (
        "from rannpde.threads import one_core\n"
        "with one_core(): pass\n"
        "import finufft\n"
        "from threadpoolctl import threadpool_info\n"
        "with one_core(): print({pool['num_threads'] for pool in threadpool_info() if pool['user_api'] == 'openmp'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{1}"


def test_a_task_on_one_core_asks_openmp_for_one_thread():
    """finufft counts cores itself where it is asked for as many threads as there are."""
    assert openmp_threads() == 0
    with one_core():
        assert openmp_threads() == 1
    assert openmp_threads() == 0


def test_the_bits_of_a_transform_on_one_core_do_not_hang_on_the_environment():
    """Dask's workers are told OMP_NUM_THREADS=1 when they start, and the process that waits for them is not."""
    code = (
        "import hashlib, numpy as np, rannpde as rp\n"
        "from rannpde.threads import one_core\n"
        "points = np.random.default_rng(0).uniform(-1, 1, (6000, 2))\n"
        "features = rp.FourierFeatures.sample(width=40, dim=2, scale=3.0, rng=0)\n"
        "with one_core():\n"
        "    network = rp.fit(features, points, points[:, 0] * points[:, 1], method='nufft', penalty=1e-4)\n"
        "print(hashlib.sha256(network.coefficients.tobytes()).hexdigest())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": count}, capture_output=True, text=True,
            check=True,
        ).stdout
        for count in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1
