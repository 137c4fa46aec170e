"""Runs of many problems: each in a process of its own, counted whatever becomes of it, and never done twice."""

from __future__ import annotations

import os
from pathlib import Path
from time import process_time

import pytest

from long_runs import Died, Endless, Record, apart, run
from rannpde.pde.budget import Budget


def behaves(seed: int) -> dict[str, object]:
    """0 answers, 1 never ends, 2 ends its process."""
    if seed == 1:
        while True:
            pass
    if seed == 2:
        os._exit(3)
    return {"by the processor": Budget().clock is process_time}


@pytest.mark.slow
def test_whatever_a_problem_does_is_counted_once(tmp_path: Path):
    with pytest.raises(Endless):
        apart(behaves, 1, 0.1)
    with pytest.raises(Died):
        apart(behaves, 2, 10.0)
    record = Record(tmp_path / "rows.jsonl")
    first = dict(run(behaves, [0, 2], 10.0, lambda failure: {"failed": str(failure)}, record))
    assert first[0] == {"by the processor": True}
    assert "code 3" in first[2]["failed"]
    assert record.rows() == first
    assert dict(run(behaves, [2, 0], 10.0, lambda failure: {"failed": "again"}, record)) == first


def test_a_record_keeps_rows_by_seed(tmp_path: Path):
    record = Record(tmp_path / "rows.jsonl")
    assert record.rows() == {}
    record.add(7, {"error": 0.5})
    record.add(8, {"error": 0.25})
    assert record.rows() == {7: {"error": 0.5}, 8: {"error": 0.25}}
    assert Record().rows() == {}
