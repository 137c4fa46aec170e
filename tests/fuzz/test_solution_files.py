"""Forged files: right hashes, wrong contents. They are refused when they are loaded, or work as any other."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest

from draws import draws
from rannpde.errors import FileError
from rannpde.loading import load
from rannpde.network import storage
from rannpde.pde.collocation.method import Collocation
from rannpde.pde.lines.method import Lines
from rannpde.pde.solve import solve
from rannpde.pde.zoo import zoo

CASES = max(draws(24, 60), int(os.environ.get("RANNPDE_FUZZ", "0")) // 100)
"""Forgeries of each file; every one is written, read and used, which takes some milliseconds."""
JUNK = (None, True, -1, 0, 10**30, 1.5, float("1e308"), "", "x", [], {}, [[]], {"a": 1}, ["u", "v"])
SOLVED = {
    "collocation": lambda: solve(zoo("poisson"), tol=1e-2, method=Collocation(width=40, scale=1.0)),
    "pieces": lambda: solve(
        zoo("helmholtz", length=1.0), tol=0.1, method=Collocation(width=30, scale=5.0, subdomains={"x": 2})
    ),
    "features": lambda: solve(zoo("heat"), tol=1e-2, method=Lines(width=60)),
    "modes": lambda: solve(zoo("advection"), tol=1e-2),
    "products": lambda: solve(zoo("heat", dim=2), tol=1e-2),
}


def places(node: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The paths of all values in a header."""
    found = [path] if path else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, below in items:
        found += places(below, (*path, key))
    return found


def forged_header(header: dict, rng: np.random.Generator) -> dict:
    header = copy.deepcopy(header)
    paths = places(header)
    *before, last = paths[rng.integers(len(paths))]
    node = header
    for key in before:
        node = node[key]
    if rng.uniform() < 0.2:
        del node[last]
    else:
        node[last] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    return header


def forged_arrays(arrays: dict, rng: np.random.Generator) -> dict:
    arrays = dict(arrays)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    kind = rng.integers(6)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = array[..., :-1].copy()
    elif kind == 2:
        arrays[name] = array.astype(complex) if rng.uniform() < 0.5 else np.zeros(array.shape, dtype=np.int64)
    elif kind == 3:
        arrays[name] = array[None].copy()
    elif array.size:
        worse = array.copy()
        worse.flat[rng.integers(array.size)] = (np.nan, np.inf, -np.inf)[rng.integers(3)]
        arrays[name] = worse
    return arrays


@pytest.mark.filterwarnings("ignore::rannpde.pde.problem.checks.ConditionWarning")
@pytest.mark.parametrize("name", SOLVED)
def test_forged_solutions_are_refused_at_load_or_work(name, tmp_path):
    solution = SOLVED[name]()
    path = solution.save(tmp_path / "solution.npz")
    _, header, arrays = storage.read(path, "solution")
    rng = np.random.default_rng(0)
    points = solution.problem.domain.sample(4, rng=0)
    index = (1,) + (0,) * (solution.dim - 1)
    refused = 0
    for _ in range(CASES):
        in_header = rng.uniform() < 0.6
        parts = (forged_header(header, rng), arrays) if in_header else (header, forged_arrays(arrays, rng))
        storage.write(tmp_path / "forged.npz", "solution", *parts)
        try:
            loaded = load(tmp_path / "forged.npz")
        except FileError:
            refused += 1
            continue
        loaded(points)
        loaded.derivative(points, index)
        assert loaded.report()
    assert refused > CASES // 3
