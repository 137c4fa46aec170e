"""Which eigenvalues are wanted: nearest to a number, or from one end of the spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import choose, reject, require
from rannpde.pde.tolerance import COMPARABLE
from rannpde.rounding import COMPUTED

SPECTRUM_ENDS = {
    "lowest": "the smallest real parts",
    "highest": "the largest real parts",
    "lowest imaginary": "the smallest imaginary parts",
    "highest imaginary": "the largest imaginary parts",
    "smallest": "the smallest absolute values",
}
"""What ``which`` may be."""
SORT_KEYS: dict[str, Callable[[Array], Array]] = {
    "lowest": np.real,
    "highest": lambda values: -values.real,
    "lowest imaginary": np.imag,
    "highest imaginary": lambda values: -values.imag,
    "smallest": np.abs,
}
"""The numbers of eigenvalues by which each end sorts them."""


@dataclass(frozen=True)
class Wanted:
    """The order in which eigenvalues are wanted; without ``which`` and ``near`` the bounded end of the spectrum."""

    which: str | None = None
    near: complex | None = None

    @classmethod
    def of(cls, which: Any, near: Any) -> Wanted:
        """Checked arguments of ``rp.eigen``."""
        if which is not None:
            choose("which", which, SPECTRUM_ENDS)
        if near is not None:
            number = isinstance(near, (int, float, complex, np.number)) and not isinstance(near, bool)
            if not number or not np.isfinite(near):
                reject("near", near, "a finite number, real or complex, or None")
            require(which is None, "which", which, "left out beside near", "near asks for the nearest eigenvalues")
        return cls(which, None if near is None else complex(near))

    def decided(self, values: Array) -> Wanted:
        """The wish with an end: eigenvalues of a coarse discretisation show at which one the spectrum is bounded."""
        if self.which is not None or self.near is not None or not len(values):
            return self
        large = values[np.abs(values) >= np.median(np.abs(values))]
        direction = float(np.mean(large.real / np.maximum(np.abs(large), 1e-300)))
        end = "lowest" if direction > COMPARABLE else "highest" if direction < -COMPARABLE else "smallest"
        return replace(self, which=end)

    def order(self, values: Array) -> Array:
        """Positions of values (K,), the most wanted first."""
        keys = SORT_KEYS[self.which or "lowest"](values) if self.near is None else np.abs(values - self.near)
        first = np.argsort(keys, kind="stable")
        rank = np.zeros(len(values))
        level, last = 0, None
        for k in first:
            if last is None or abs(keys[k] - last) > COMPUTED * max(abs(values[k]), 1e-300):
                level, last = level + 1, keys[k]
            rank[k] = level
        return np.lexsort((values.imag, rank))

    @property
    def described(self) -> str:
        """Which eigenvalues are wanted, in words."""
        if self.near is not None:
            shown = self.near.real if self.near.imag == 0 else self.near
            return f"nearest to {shown:.10g}"
        return SPECTRUM_ENDS[self.which or "lowest"]
