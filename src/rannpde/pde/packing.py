"""A solution as a header and arrays, for its file."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.problem.toml import to_table
from rannpde.pde.tolerance import ALGEBRA_SHARE

if TYPE_CHECKING:
    from rannpde.pde.solution import Solution

ROUGHEST_ROUNDING = 1 / (4 * 256)
"""No file is rounded by more than this, however rough the solution: pictures of it, with 256 levels of a colour, stay
the same."""


@runtime_checkable
class RoundedFunction(Protocol):
    """A function whose large tables may be rounded in files, up to a relative L² error."""

    segments: tuple[Any, ...]

    def pack(self, error: float | None = None) -> tuple[dict[str, Any], dict[str, Array]]: ...


def packed_solution(solution: Solution, exact: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of the file of a solution; see ``Solution.save``."""
    if isinstance(solution.function, RoundedFunction) and not exact:
        # where the error is not known, single precision is taken to suffice
        single = float(np.finfo(np.float32).eps)
        justified = min(ALGEBRA_SHARE * solution.estimate, ROUGHEST_ROUNDING)
        function, arrays = solution.function.pack(justified if isfinite(solution.estimate) else single)
    else:
        function, arrays = solution.function.pack()
    header = {
        "fields": list(solution.fields),
        "function": function,
        "problem": None if solution.problem is None else to_table(solution.problem),
        "fingerprint": None if solution.problem is None else solution.problem.fingerprint,
        "method": [solution.method.name, solution.method.label, solution.method.why],
        "status": solution.status.name,
        "detail": solution.detail,
        "estimate": solution.estimate if isfinite(solution.estimate) else None,
        "residuals": {key: dict(getattr(solution, key)) for key in ("held_out", "losses", "integrals")},
        "history": solution.history.to_table(),
        "seconds": solution.seconds,
    }
    if solution.problem is not None and solution.problem.outputs:
        header["outputs"] = {name: quantity.to_table() for name, quantity in solution.outputs.items()}
    return header, arrays
