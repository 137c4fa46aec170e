"""Rows that Dask holds, block by block: arrays in chunks of any sizes, known or not, and lists of delayed blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from rannpde.arrays import is_lazy
from rannpde.cluster import require_dask
from rannpde.errors import require


@dataclass(frozen=True, eq=False)
class LazyBlock:
    """One block of rows, not yet computed; without ``values``, ``points`` is a pair (points, values), or a triple."""

    number: int
    points: Any
    values: Any | None
    weights: Any | None
    rows: float
    """NaN where the number is not known."""


def lazy_blocks(points: Any, values: Any, weights: Any, dim: int | None) -> list[LazyBlock]:
    """The blocks of rows, in order: of Dask's arrays, or of lists with one delayed object for each block."""
    require_dask("points")
    if isinstance(points, list | tuple):
        return _listed_blocks(points, values, weights)
    import dask
    import dask.array as da

    given = {"points": points, "values": values, "weights": weights}
    require(values is not None, "values", None, "given with an array of points")
    for name, value in given.items():
        allowed = value is None or isinstance(value, da.Array | np.ndarray)
        remedy = "call .to_dask_array() on a dataframe"
        require(allowed, name, type(value).__name__, "a Dask array, as the others are, or a NumPy array", remedy)
    arrays = {name: _whole_rows(name, value, dim) for name, value in given.items() if value is not None}
    lead = next(array for array in arrays.values() if isinstance(array, da.Array))
    # together, so that what points and values share is computed once
    aligned = dask.optimize(*(_aligned(name, array, lead) for name, array in arrays.items()))
    columns = [array.to_delayed(optimize_graph=False).reshape(-1) for array in aligned]
    blocks_of = dict(zip(arrays, columns, strict=True))
    rows = lead.chunks[0]
    weighted = blocks_of.get("weights", [None] * len(rows))
    return [
        LazyBlock(i, blocks_of["points"][i], blocks_of["values"][i], weighted[i], rows[i]) for i in range(len(rows))
    ]


def _whole_rows(name: str, array: Any, dim: int | None) -> Any:
    """The array with all columns of a row in one chunk, of one axis or two."""
    require(array.ndim in (1, 2), f"{name} with shape", array.shape, "an array with 1 or 2 axes")
    if name == "points" and dim is not None:
        fitting = (array.ndim == 2 and array.shape[1] == dim) or (array.ndim == 1 and dim == 1)
        require(fitting, "points with shape", array.shape, f"of shape (M, {dim})", "one row per point")
    return array.rechunk({1: -1}) if array.ndim == 2 and hasattr(array, "rechunk") else array


def _aligned(name: str, array: Any, lead: Any) -> Any:
    """The array in the row chunks of the lead."""
    import dask.array as da

    known = not any(isnan(rows) for rows in lead.chunks[0])
    if not isinstance(array, da.Array):
        remedy = "compute_chunk_sizes() tells them"
        require(known, f"chunks of rows beside {name} as a NumPy array", lead.chunks[0][:3], "of known sizes", remedy)
        _same_rows(name, array, lead)
        return da.from_array(array, chunks=(lead.chunks[0], *array.shape[1:]))
    if known and not any(isnan(rows) for rows in array.chunks[0]):
        _same_rows(name, array, lead)
        return array.rechunk({0: lead.chunks[0]})
    count = len(lead.chunks[0])
    remedy = "compute_chunk_sizes() tells the sizes, then chunks are matched"
    require(len(array.chunks[0]) == count, f"chunks of {name}", len(array.chunks[0]), f"{count}, as points has", remedy)
    return array


def _same_rows(name: str, array: Any, lead: Any) -> None:
    rows = sum(lead.chunks[0])
    require(array.shape[0] == rows, f"{name} with shape", array.shape, f"of {rows} rows, as many as the others")


def _listed_blocks(points: Any, values: Any, weights: Any) -> list[LazyBlock]:
    count = len(points)
    for name, listed in (("values", values), ("weights", weights)):
        fitting = listed is None or (isinstance(listed, list | tuple) and is_lazy(listed) and len(listed) == count)
        require(fitting, name, type(listed).__name__, f"a list of {count} delayed blocks, as points is")
    remedy = "let each block be (points, values, weights)"
    require(weights is None or values is not None, "weights", "a list", "left out without a list of values", remedy)
    entries = zip(points, values or [None] * count, weights or [None] * count, strict=True)
    return [LazyBlock(i, *entry, rows=float("nan")) for i, entry in enumerate(entries)]


def neighbours(blocks: Sequence[LazyBlock], rows: float) -> list[list[LazyBlock]]:
    """Neighbours together until they have that many rows; a block of unknown size stands alone."""
    groups: list[list[LazyBlock]] = []
    count = float("inf")
    for block in blocks:
        if isnan(count + block.rows) or count >= rows:
            groups.append([])
            count = 0.0
        groups[-1].append(block)
        count += block.rows
    return groups
