"""The records file: kept, found, never mixed, never overwritten when it is not ours."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rannpde.errors import FileError
from rannpde.studies.layer import Layer
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.records import APPLICATION_ID, Records
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

STUDY = Study("tiny", PorousMedium(1), Layer(), widths=(8, 16), seeds=(0, 1))
RESULT = FitResult(0.1, {"u": 0.1}, 0.09, 1e-5, 12.0, "dense", 80, 17, 0.01, 0.02)
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
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT study, space_dim, width, seed, error FROM cells").fetchall()
    assert rows == [("tiny", 1, 8, 0, 0.1)]


def test_a_changed_parameter_finds_nothing(path: Path) -> None:
    with Records(path) as records:
        records.add(STUDY.cells[0], RESULT, FACTS)
        assert records.find(replace(STUDY, penalty=1e-6).cells) == {}


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    """What a kill between the creation and the first transaction leaves."""
    path.touch()
    with Records(path) as records:
        assert records.keys() == set()


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def filled(path: Path) -> None:
    with Records(path) as records:
        for number, cell in enumerate(STUDY.cells):
            records.add(cell, replace(RESULT, error=0.1 + 0.01 * number), FACTS)


def is_open(path: Path) -> bool:
    """Whether this process holds the file open; where the system does not tell, False."""
    handles = Path("/proc/self/fd")
    return any(os.path.realpath(one) == str(path.resolve()) for one in handles.iterdir()) if handles.exists() else False


def refused(path: Path, message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(FileError, match=message):
        Records(path)
    assert path.read_bytes() == before
    assert not is_open(path)


def test_a_foreign_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("my thesis\n" * 100)
    refused(path, "not a records file.*--out")


def test_a_short_foreign_file_is_refused(path: Path) -> None:
    path.write_text("abc")
    refused(path, "not a records file")


def test_a_foreign_database_is_refused(path: Path) -> None:
    change(path, "CREATE TABLE cells (key TEXT)")
    refused(path, "another program")


@pytest.mark.parametrize("version", [1, 99])
def test_another_version_is_refused(path: Path, version: int) -> None:
    Records(path).__exit__(None, None, None)
    change(path, f"PRAGMA user_version = {version}")
    refused(path, f"version {version}, this release reads 2.*--out")


CHANGES = [
    "error = 0.2",
    "error = 'abc'",
    "error = NULLIF(error, error) IS NULL",
    "seconds = seconds * 2",
    "seed = 7",
    "width = 9",
    "study = 'other'",
    "key = 'f' || substr(key, 2)",
    "key = upper(key)",
    "result = replace(result, '0.11', '0.12')",
    "result = '{}'",
    "result = 'not JSON'",
    "result = X'00FF'",
    "result = 3",
    "parameters = replace(parameters, 'PorousMedium', 'PorousMedia')",
    "environment = 'none'",
    "finished = '1970-01-01'",
    "checksum = ''",
    "checksum = X'00'",
]


@pytest.mark.parametrize("assignment", CHANGES)
def test_a_changed_row_is_never_believed_told_dropped_and_written_again(path: Path, assignment: str) -> None:
    filled(path)
    cell = STUDY.cells[1]
    change(path, f"UPDATE cells SET {assignment} WHERE key = ?", cell.key)
    others = {one.key for one in STUDY.cells} - {cell.key}
    with Records(path) as records:
        assert records.keys() == others
        assert set(records.find(STUDY.cells)) == others
        assert list(records.drop_damaged().values()) == [1]
        assert records.drop_damaged() == {}
        records.add(cell, RESULT, FACTS)
        assert records.find([cell])[cell.key].result == RESULT
        assert len(records.keys()) == 4


def test_damaged_rows_are_counted_by_study(path: Path) -> None:
    filled(path)
    change(path, "UPDATE cells SET error = 0.5 WHERE seed = 1")
    with Records(path) as records:
        assert records.drop_damaged() == {"tiny": 2}


@pytest.mark.parametrize("statement", ["facts = '{}'", "facts = 'x'", "facts = 3", "facts = '[1]'", "id = 'x'"])
def test_a_changed_environment_takes_its_rows_with_it(path: Path, statement: str) -> None:
    filled(path)
    change(path, f"UPDATE environments SET {statement}")
    with Records(path) as records:
        assert records.find(STUDY.cells) == {}
        assert records.drop_damaged() == {"tiny": 4}


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE environments",
        "DROP TABLE cells",
        "ALTER TABLE cells DROP COLUMN checksum",
        "ALTER TABLE cells ADD COLUMN more TEXT",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON cells BEGIN DELETE FROM cells; END",
    ],
)
def test_other_tables_than_ours_are_refused(path: Path, statement: str) -> None:
    filled(path)
    change(path, statement)
    refused(path, "damaged.*--out")


def test_a_flipped_byte_never_alters_a_result(path: Path) -> None:
    """Any byte of the rows' pages: the file is refused, or the row is missing; no other error is ever read."""
    filled(path)
    data = path.read_bytes()
    with Records(path) as records:
        sound = {key: record.result for key, record in records.find(STUDY.cells).items()}
    other = path.with_name("flipped.sqlite")
    lost = 0
    for place in range(100, len(data), 97):
        flipped = bytearray(data)
        flipped[place] ^= 0x01
        other.write_bytes(flipped)
        try:
            with Records(other) as records:
                found = {key: record.result for key, record in records.find(STUDY.cells).items()}
        except FileError:
            lost += 1
            continue
        assert found.items() <= sound.items()
        lost += found != sound
    assert lost > 10


def test_a_number_that_sqlite_cannot_hold_is_told(path: Path) -> None:
    with Records(path) as records, pytest.raises(FileError, match="cannot be written"):
        records.add(replace(STUDY.cells[0], seed=2**70), RESULT, FACTS)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see open files")
def test_the_file_is_closed_when_the_block_ends_also_by_an_error(path: Path) -> None:
    seen = []

    def interrupted() -> None:
        with Records(path):
            seen.append(is_open(path))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == [True]
    assert not is_open(path)


def test_a_pipe_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(FileError, match="not an ordinary file"):
        Records(path)


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
