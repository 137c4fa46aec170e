"""Finished cells in an SQLite file: one row each, written in one transaction each, found again by the cell's key."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from rannpde.errors import FileError
from rannpde.studies.cell import Result
from rannpde.studies.study import Cell

APPLICATION_ID = 0x52414E4E
"""'RANN' in the header of our files: how a foreign SQLite file is recognised."""
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE environments (id TEXT PRIMARY KEY, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
    key TEXT PRIMARY KEY,
    study TEXT NOT NULL,
    space_dim INTEGER NOT NULL,
    width INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    error REAL NOT NULL,
    path TEXT NOT NULL,
    seconds REAL NOT NULL,
    result TEXT NOT NULL,
    parameters TEXT NOT NULL,
    environment TEXT NOT NULL REFERENCES environments (id),
    finished TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX cells_by_study ON cells (study, space_dim, width, seed);
"""


@dataclass(frozen=True)
class Record:
    """A finished cell as it was found in the file."""

    result: Result
    environment: Mapping[str, Any]
    finished: str


class Records:
    """The file, open. Use it as a context manager; a file that is not ours, or damaged, raises FileError untouched."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        _refuse_foreign(self.path)
        try:
            self._connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
        except sqlite3.Error as error:
            raise FileError(f"records file {self.path} cannot be opened: {error}") from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise FileError(f"records file {self.path} is damaged ({error}); {_REMEDY}") from None
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, cell: Cell, result: Result, environment: Mapping[str, Any]) -> None:
        """Keep a finished cell, in one transaction: it is there whole or not at all, and never twice."""
        facts = json.dumps(environment, sort_keys=True)
        number = hashlib.sha256(facts.encode()).hexdigest()[:16]
        row = (
            cell.key,
            cell.study,
            cell.problem.space_dim,
            cell.width,
            cell.seed,
            result.error,
            result.path,
            result.seconds,
            json.dumps(result.as_dict()),
            json.dumps(cell.parameters, sort_keys=True),
            number,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                self._connection.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (number, facts))
                marks = ", ".join("?" * len(row))
                self._connection.execute(f"INSERT OR IGNORE INTO cells VALUES ({marks})", row)
        except sqlite3.Error as error:
            raise FileError(f"records file {self.path} cannot be written: {error}; finished cells are kept") from None

    def keys(self) -> set[str]:
        """Keys of all finished cells."""
        return {key for (key,) in self._connection.execute("SELECT key FROM cells")}

    def find(self, cells: Iterable[Cell]) -> dict[str, Record]:
        """The records of those cells that are finished, by key."""
        wanted = {cell.key for cell in cells}
        query = "SELECT key, result, facts, finished FROM cells JOIN environments ON environment = id"
        return {
            key: Record(Result(**json.loads(result)), json.loads(facts), finished)
            for key, result, facts, finished in self._connection.execute(query)
            if key in wanted
        }

    def _prepare(self) -> None:
        connection = self._connection
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
            return
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise FileError(f"records file {self.path} is an SQLite file of another program; {_REMEDY}")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise FileError(
                f"records file {self.path} has version {version}, this release reads {SCHEMA_VERSION}; {_REMEDY}"
            )
        complaint = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if complaint != "ok":
            raise FileError(f"records file {self.path} is damaged ({complaint}); {_REMEDY}")


_REMEDY = "move it away, or choose another folder with --output"


def _refuse_foreign(path: Path) -> None:
    """An existing file must be empty or begin as an SQLite file; SQLite itself would happily write into some others."""
    try:
        if not path.exists():
            return
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise FileError(f"records file {path} cannot be read: {error.strerror or error}") from None
    if start and start != b"SQLite format 3\0":
        raise FileError(f"records file {path} is not a records file of this program; {_REMEDY}")
