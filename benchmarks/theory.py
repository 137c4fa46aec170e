"""Speed of the ridgelet transform: 10⁵ parameter triples of each kind of function, against the limits of the design.

python -m benchmarks.theory
python -m benchmarks.theory --small   the same code on few triples, to see that it runs
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from rannpde.domains import Box, SpaceTime
from rannpde.network.laws import HeavyTailed
from rannpde.theory import FourierTarget, GaussianMixture, admissible, box_target, optimal_law

TRIPLES = 100_000
LIMITS = {"Gaussian mixture": 1.0, "Fourier-given": 10.0, "values on a box": None, "optimal law, 10⁴ draws": None}


def best_of(call: Callable[[], object], repeat: int) -> float:
    """Least seconds of several calls."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    """Print a table of seconds and limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    count = 1000 if small else TRIPLES
    psi = admissible("tanh", 2, 5)
    mixture = GaussianMixture(
        np.array([1.0, -0.5, 0.3]),
        np.array([[0.1, 0.2], [-0.3, 0.4], [0.0, 0.0]]),
        np.array([[1.0, 0.8], [0.6, 1.2], [0.7, 0.7]]),
        np.array([[0, 0], [1, 2], [0, 1]]),
    )
    by_fourier = FourierTarget(2, mixture.fourier, bandwidth=14.0, radius=9.0)
    on_a_box = box_target(mixture, Box([(-5, 5)] * 2), margin=2.0)
    law = optimal_law(GaussianMixture.gaussian(2), SpaceTime(t=(0, 1), x=(-1, 1)))
    weights, biases = HeavyTailed(1.0, 1.0).sample(count, 2, rng=0)
    calls: dict[str, Callable[[], object]] = {
        "Gaussian mixture": lambda: mixture.ridgelet(psi, weights, biases),
        "Fourier-given": lambda: by_fourier.ridgelet(psi, weights, biases),
        "values on a box": lambda: on_a_box.ridgelet(psi, weights, biases),
        "optimal law, 10⁴ draws": lambda: law.sample(count // 10, 2, rng=0),
    }
    print(f"{'kind':>24} {'seconds':>9} {'limit':>7}   ({count} triples, n = 2)")
    for name, call in calls.items():
        limit = LIMITS[name]
        print(f"{name:>24} {best_of(call, 3):9.3f} {'' if limit is None else limit:>7}")


if __name__ == "__main__":
    main()
