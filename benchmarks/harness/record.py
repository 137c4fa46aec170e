"""What became of a case: one JSON file, written whole, found again when the same is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from rannpde.errors import FileError
from rannpde.io import read_limited, write_whole

LARGEST = 2**20
"""Bytes of a record at most; ours have a few thousand."""

BenchOutcome = Literal["solved", "refused", "crashed", "overran", "waits"]
"""solved: an answer came back, converged or not; refused: the statement or its solution is not possible today."""


@dataclass(frozen=True)
class BenchRecord:
    """One row. Numbers that are not known are None; seconds by the clock and of the processor; memory in MiB.

    settings : tolerance, seconds allowed, small or not, version; a record is used again only for the same
    message : how the solve ended, in a sentence, or what went wrong
    accuracy : of the reference solution itself
    solver, solver_* : the classical solver of the same run
    """

    case: str
    settings: Mapping[str, Any]
    outcome: BenchOutcome
    message: str = ""
    error: float | None = None
    estimate: float | None = None
    converged: bool = False
    method: str = ""
    seconds: float | None = None
    processor_seconds: float | None = None
    memory: float | None = None
    columns: int | None = None
    accuracy: float | None = None
    solver: str = ""
    solver_error: float | None = None
    solver_seconds: float | None = None
    solver_message: str = ""
    picture: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """``<case>.json`` in that folder."""
        table = {key: _plain(value) for key, value in asdict(self).items()}
        return write_whole(folder / f"{self.case}.json", json.dumps(table, ensure_ascii=False, indent=1) + "\n")


def _plain(value: Any) -> Any:
    """JSON knows no NaN and no infinity: such a number is not known."""
    return None if isinstance(value, float) and not isfinite(value) else value


def read_record(folder: Path, case: str) -> BenchRecord | None:
    """The record of a case in that folder, None where there is none; FileError where it is damaged."""
    path = folder / f"{case}.json"
    if not path.exists():
        return None
    try:
        table = json.loads(read_limited(path, LARGEST))
        known = {one.name for one in fields(BenchRecord)}
        if not isinstance(table, dict) or set(table) != known or table["case"] != case:
            raise ValueError("it has other entries than a record of this release")
        return BenchRecord(**table)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no record of a case: {error}; remove it, and the case runs again") from None
