"""What every package means by an array, a derivative and a source of random numbers; work in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""float64 unless a docstring says otherwise; shapes are given in docstrings."""
ArrayMap: TypeAlias = Callable[[Array], Array]
"""Points (M, n) to values (M,) or (M, fields)."""
MultiIndex: TypeAlias = tuple[int, ...]
"""One order of differentiation per coordinate: (1, 0) is ∂_t, (0, 2) is ∂_xx."""
Rng: TypeAlias = int | np.random.Generator | None
"""What ``rng=`` takes: a seed, a generator that is used up as it goes, or None for fresh entropy."""

BLOCK_BYTES = 32 * 2**20
"""Memory for one block of a design matrix: large enough for full speed, small enough to stay in the cache's reach."""


def block_rows(columns: int, block_bytes: int = BLOCK_BYTES) -> int:
    """Rows of a block of that many float64 columns."""
    return max(64, block_bytes // (8 * max(columns, 1)))


def row_blocks(count: int, rows: int) -> Iterator[slice]:
    """Consecutive slices that cover range(count)."""
    for start in range(0, count, rows):
        yield slice(start, min(start + rows, count))


def combinations(axes: Iterable[Array]) -> Array:
    """Every combination of an entry of each of d axes (K_1,), …, (K_d,): rows (K_1 ⋯ K_d, d), the last axis fastest.

    >>> combinations([np.array([0, 1]), np.array([5, 6])]).tolist()
    [[0, 5], [0, 6], [1, 5], [1, 6]]
    """
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def is_lazy(value: Any) -> bool:
    """Whether value is Dask's (an array, a delayed block, a future), or a list of such; found without importing Dask.

    >>> is_lazy([[1.0, 2.0]])
    False
    """
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(is_lazy(entry) for entry in value)
    # another library's array must never be taken for lazy; Dask's packages are all named so
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr", "distributed")
