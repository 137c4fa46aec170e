"""The records file: kept, found, never mixed, never overwritten when it is not ours."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from rannpde.errors import FileError
from rannpde.studies.cell import Result
from rannpde.studies.layer import Layer
from rannpde.studies.problems import PorousMedium
from rannpde.studies.records import APPLICATION_ID, Records
from rannpde.studies.study import Study

STUDY = Study("tiny", PorousMedium(1), Layer(), widths=(8, 16), seeds=(0, 1))
RESULT = Result(0.1, {"u": 0.1}, 0.09, 1e-5, 12.0, "dense", 80, 17, 0.01, 0.02)
FACTS = {"python": "3", "cores": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite"


def test_what_was_added_is_found_again_by_another_reader(path: Path) -> None:
    with Records(path) as records:
        for number, cell in enumerate(STUDY.cells):
            records.add(cell, replace(RESULT, error=0.1 * number), FACTS)
    with Records(path) as records:
        found = records.find(STUDY.cells)
        assert [found[cell.key].result.error for cell in STUDY.cells] == [0.1 * n for n in range(4)]
        assert found[STUDY.cells[0].key].environment == FACTS
        assert records.keys() == {cell.key for cell in STUDY.cells}


def test_a_cell_is_never_doubled_and_the_first_result_stays(path: Path) -> None:
    cell = STUDY.cells[0]
    with Records(path) as one, Records(path) as other:
        one.add(cell, RESULT, FACTS)
        other.add(cell, replace(RESULT, error=0.7), FACTS)
        assert other.find([cell])[cell.key].result.error == RESULT.error
    rows = sqlite3.connect(path).execute("SELECT study, space_dim, width, seed, error, path FROM cells").fetchall()
    assert rows == [("tiny", 1, 8, 0, 0.1, "dense")]


def test_a_changed_parameter_finds_nothing(path: Path) -> None:
    with Records(path) as records:
        records.add(STUDY.cells[0], RESULT, FACTS)
        assert records.find(replace(STUDY, penalty=1e-6).cells) == {}


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    """What a kill between the creation and the first transaction leaves."""
    path.touch()
    with Records(path) as records:
        assert records.keys() == set()


def refused(path: Path, message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(FileError, match=message):
        Records(path)
    assert path.read_bytes() == before


def test_a_foreign_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("my thesis\n" * 100)
    refused(path, "not a records file.*--output")


def test_a_short_foreign_file_is_refused(path: Path) -> None:
    path.write_text("abc")
    refused(path, "not a records file")


def test_a_foreign_database_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cells (key TEXT)")
    connection.close()
    refused(path, "another program")


def test_another_version_is_refused(path: Path) -> None:
    Records(path).__exit__(None, None, None)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(path, "version 99")


@pytest.mark.parametrize("place", ["head", "middle", "cut"])
def test_a_damaged_file_is_refused(path: Path, place: str) -> None:
    with Records(path) as records:
        for seed in range(60):
            records.add(replace(STUDY, seeds=(seed,)).cells[0], RESULT, FACTS)
    data = bytearray(path.read_bytes())
    assert APPLICATION_ID.to_bytes(4, "big") in data[:100]
    if place == "head":
        data[100:140] = b"\xff" * 40
    elif place == "middle":
        data[4096:8192] = b"\xa5" * 4096
    else:
        del data[len(data) // 2 :]
    path.write_bytes(data)
    refused(path, "damaged")


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        Records(tmp_path)


def test_a_full_disk_or_lost_permission_is_told(path: Path) -> None:
    with Records(path) as records:
        records._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(FileError, match=r"cannot be written.*finished cells are kept"):
            records.add(STUDY.cells[0], RESULT, FACTS)
