"""Whoever reads what one call does opens few files: they are counted while it runs."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import rannpde as rp

ROOT = Path(rp.__file__).parent
MOST_FILES, MOST_PACKAGES = 34, 12
"""Modules of ``pde`` that a plain solve enters, each with one idea, and the packages that they stand in: two of them
serve all solves, the memory of the process and whether zero is the only solution. Two modules of 200 lines are read
more easily than one of 400, and count as two."""
CALLS = (rp.solve, rp.fit, rp.Collocation)  # loaded when first asked for: that is not read again with every call


def entered(call: Callable[[], Any]) -> set[str]:
    """Files of the package whose functions a call enters, in any thread; generated methods are in none."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {str(Path(name).relative_to(ROOT)) for name in found if name.startswith(str(ROOT))}


HEAT = {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}
SQUARE = rp.Box(x=(0, 1), y=(0, 1))
WALLS = {"boundary": "u = 0"}

PLAIN = {
    "lines": rp.Problem("u_t + u*u_x = 0.1*u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), HEAT),
    "modes": rp.Problem(
        "u_t = 0.1*u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), {"t=0": "u = sin(2*pi*x)", "x": "periodic"}
    ),
    "products": rp.Problem(
        "u_t = laplace(u)", rp.SpaceTime(t=(0, 0.01), x=(0, 1), y=(0, 1)),
        {"t=0": "u = sin(pi*x)*sin(pi*y)", "boundary": "u = 0"},
    ),
    "cells": rp.Problem("-laplace(u) = 1", SQUARE, WALLS),
    "collocation": rp.Problem("-u_xx = 1", rp.Box(x=(0, 1)), WALLS),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_solve_is_read_in_few_files(kind: str) -> None:
    method = {"collocation": rp.Collocation(width=40), "cells": "cells"}.get(kind, "lines")  # not why others refuse
    files = entered(lambda: rp.solve(PLAIN[kind], tol=1e-2, method=method))
    solver = sorted(name for name in files if name.startswith("pde"))
    assert 8 <= len(solver) <= MOST_FILES, solver
    assert len({Path(name).parent for name in solver}) <= MOST_PACKAGES, solver
    assert len(files) <= MOST_FILES + 16, sorted(files)


def test_what_bends_and_has_a_hole_needs_a_few_more() -> None:
    problem = rp.Problem("-laplace(u) + u**3 = 1", SQUARE - rp.Ball((0.5, 0.5), 0.2), WALLS)
    solver = sorted(
        name for name in entered(lambda: rp.solve(problem, tol=1e-2, method="cells")) if name.startswith("pde")
    )
    assert len(solver) <= MOST_FILES + 4, solver


def test_a_fit_is_read_in_eight_files() -> None:
    x = np.linspace(0, 1, 200)[:, None]
    layer = rp.FourierFeatures.sample(width=20, dim=1, scale=3.0, rng=0)
    files = sorted(entered(lambda: rp.fit(layer, x, np.sin(x[:, 0]), penalty=0)))
    assert len(files) <= 8, files
