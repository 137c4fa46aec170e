"""Reference solutions: values of an independent solver at a few thousand points, with how far they can be trusted.

A file ``<name>.npz`` has the float64 arrays ``points`` (M, n), ``values`` (M, fields) and ``accuracy`` (one number: the
relative L² error of the finest grid, from how distances fall from grid to grid); no pickle. How it was made, and its
convergence table, stand in ``<name>.txt`` beside the script that made it (benchmarks/references).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.harness.coefficients import DATA
from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.errors import FileError
from rannpde.io import read_limited

LARGEST = 200_000
"""Bytes of a reference file at most: they are part of the repository."""


@dataclass(frozen=True, eq=False)
class ReferenceSolution:
    """points (M, n) and values (M, fields); accuracy: relative L² of the values themselves; source: what it is."""

    points: Array
    values: Array
    source: str
    accuracy: float = 0.0

    def within(self, domain: Domain) -> ReferenceSolution:
        """The part of it that lies in this domain, which may be shorter in time."""
        inside = domain.contains(self.points)
        return ReferenceSolution(self.points[inside], self.values[inside], self.source, self.accuracy)


def read_reference(name: str) -> ReferenceSolution:
    """The reference solution of that name; FileError where it is missing or damaged.

    >>> reference = read_reference("poisson-2d-c")
    >>> reference.points.shape[1], reference.values.shape[1], reference.accuracy < 1e-7
    (2, 1, True)
    """
    path = DATA / f"{name}.npz"
    read_limited(path, LARGEST)  # refuses what is missing or too large to be one of ours
    try:
        with np.load(path, allow_pickle=False) as arrays:
            points, values, accuracy = (np.asarray(arrays[key], float) for key in ("points", "values", "accuracy"))
    except (KeyError, ValueError, OSError) as error:
        raise FileError(
            f"{path} is no reference solution: {error}; compute it again with benchmarks/references"
        ) from None
    if points.ndim != 2 or values.ndim != 2 or len(points) != len(values) or not np.isfinite(values).all():
        raise FileError(f"{path} holds points {points.shape} and values {values.shape}; compute it again")
    return ReferenceSolution(points, values, "computed by an independent solver", float(accuracy))
