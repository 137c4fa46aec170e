"""Finished cells in an SQLite file: one row each, written in one transaction each, found again by the cell's key.

Every row carries the SHA-256 of its contents, and every environment is named by the SHA-256 of its facts. A row that
does not agree with its checksum is never used: it is reported and dropped, and its cell runs again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from rannpde.errors import FileError, InputError
from rannpde.studies.cell import StudyCell
from rannpde.studies.run.cell import Result, result_from, result_text

APPLICATION_ID = 0x52414E4E
"""'RANN' in the header of our files: how a foreign SQLite file is recognised."""
SCHEMA_VERSION = 2

_COLUMNS = (
    "key TEXT NOT NULL UNIQUE",
    "study TEXT NOT NULL",
    "space_dim INTEGER NOT NULL",
    "width INTEGER NOT NULL",
    "seed INTEGER NOT NULL",
    "error REAL NOT NULL",
    "seconds REAL NOT NULL",
    "result TEXT NOT NULL",
    "parameters TEXT NOT NULL",
    "environment TEXT NOT NULL",
    "finished TEXT NOT NULL",
    "checksum TEXT NOT NULL",
)
_NAMES = tuple(column.split()[0] for column in _COLUMNS)
_SCHEMA = (
    "CREATE TABLE environments (id TEXT PRIMARY KEY, facts TEXT NOT NULL)",
    f"CREATE TABLE cells ({', '.join(_COLUMNS)})",
    "CREATE INDEX cells_by_study ON cells (study, space_dim, width, seed)",
)
_REMEDY = "move it away, or choose another folder with --out"


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
        with ExitStack() as opened:  # a file that is refused is closed before its error leaves
            with self._answered("cannot be opened"):
                connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
            self._connection = opened.enter_context(closing(connection))
            # bytes that are no text become a mark, so that the checksum of that row fails and not the whole reading
            self._connection.text_factory = lambda data: data.decode(errors="replace")
            with self._answered("is damaged"):
                self._prepare()
            self._opened = opened.pop_all()

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def add(self, cell: StudyCell, result: Result, environment: Mapping[str, Any]) -> None:
        """Keep a finished cell, in one transaction: it is there whole or not at all, and never twice."""
        facts = json.dumps(environment, sort_keys=True)
        row = (
            cell.key,
            cell.study,
            cell.target.space_dim,
            max(cell.widths),
            cell.seed,
            result.last_error,
            result.seconds,
            result_text(result),
            cell.canonical,
            _digest(facts),
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._answered("cannot be written", "finished cells are kept"), self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (_digest(facts), facts))
            marks = ", ".join("?" * len(_NAMES))
            self._connection.execute(f"INSERT OR IGNORE INTO cells VALUES ({marks})", (*row, _checksum(row)))

    def keys(self) -> set[str]:
        """Keys of all finished cells whose rows are sound."""
        return {key for _, _, key, record in self._rows() if record is not None}

    def find(self, cells: Iterable[StudyCell]) -> dict[str, Record]:
        """The sound records of those cells that are finished, by key."""
        wanted = {cell.key for cell in cells}
        return {key: record for _, _, key, record in self._rows() if record is not None and key in wanted}

    def drop_damaged(self) -> dict[str, int]:
        """Delete the rows that do not agree with their checksum; how many there were, by the study they name."""
        damaged = [(number, study) for number, study, _, record in self._rows() if record is None]
        if damaged:
            with self._answered("is damaged"), self._transaction():
                self._connection.execute("REINDEX")  # an index may still hold the key that a row had before
                self._connection.executemany("DELETE FROM cells WHERE rowid = ?", [(number,) for number, _ in damaged])
        return dict(Counter(study for _, study in damaged))

    def _rows(self) -> Iterator[tuple[int, str, str, Record | None]]:
        """(row number, study, key, record or None where it is damaged) of every row."""
        with self._answered("is damaged"):
            environments = {
                name: _loaded(facts)
                for name, facts in self._connection.execute("SELECT id, facts FROM environments")
                if isinstance(facts, str) and _digest(facts) == name
            }
            for number, *row in self._connection.execute(f"SELECT rowid, {', '.join(_NAMES)} FROM cells"):
                yield number, str(row[1]), str(row[0]), _record(row, environments)

    def _prepare(self) -> None:
        connection = self._connection
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            with self._transaction():
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in _SCHEMA:
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
        statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql is not None}
        if statements != set(_SCHEMA):  # a table is missing, or something was added that would run when rows are read
            raise FileError(f"records file {self.path} is damaged (its tables are not ours); {_REMEDY}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    @contextmanager
    def _answered(self, trouble: str, remedy: str = _REMEDY) -> Iterator[None]:
        """SQLite's own errors as a FileError that says what to do."""
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise FileError(f"records file {self.path} {trouble} ({error}); {remedy}") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(row: Iterable[Any]) -> str:
    return _digest(json.dumps(list(row)))


def _record(row: list[Any], environments: Mapping[str, Mapping[str, Any] | None]) -> Record | None:
    """The record of a row, or None where anything in it is not as it was written."""
    if not all(isinstance(value, (str, int, float)) for value in row) or _checksum(row[:-1]) != row[-1]:
        return None
    values = dict(zip(_NAMES, row, strict=True))
    environment = environments.get(values["environment"])
    if environment is None or _digest(values["parameters"]) != values["key"]:
        return None
    try:
        return Record(result_from(values["result"]), environment, values["finished"])
    except InputError:
        return None


def _loaded(facts: str) -> Mapping[str, Any] | None:
    try:
        loaded = json.loads(facts)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _refuse_foreign(path: Path) -> None:
    """An existing file must be empty or begin as an SQLite file; SQLite itself would happily write into some others."""
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise FileError(f"records file {path} cannot be read: it is not an ordinary file; {_REMEDY}")
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise FileError(f"records file {path} cannot be read: {error.strerror or error}; {_REMEDY}") from None
    if start and start != b"SQLite format 3\0":
        raise FileError(f"records file {path} is not a records file of this program; {_REMEDY}")
