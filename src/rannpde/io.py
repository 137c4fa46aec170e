"""Files: written whole or not at all, read within a limit of size."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError, InputError

PathLike = str | os.PathLike[str]

TOML_LIMIT = 2**20
"""Bytes of a TOML file at most: a problem or a study is a few pages, more is a mistake or an attack."""
CSV_LIMIT = 64 * 2**20
"""Bytes of a file of measurements: about a million rows."""
FREE_BYTES = 64 * 2**20
"""Bytes that must be free in an output folder: records, figures and page of a full study take a third of it."""


def prepare_folder(folder: PathLike) -> Path:
    """Make the folder and try it, before any work; InputError where it cannot be made, written to, or has no room."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".trial-"):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"output folder {folder} cannot be used: {reason}; choose another with --out") from None
    if free < FREE_BYTES:
        raise InputError(
            f"output folder {folder} has {free / 2**20:.0f} MB free, but {FREE_BYTES / 2**20:.0f} MB are needed; "
            "make room or choose another with --out"
        )
    return folder


@contextmanager
def whole_file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` only where the block ends without an error (an atomic write).

    The permissions are those of a file opened in the ordinary way (they follow the umask).
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_whole(path: PathLike, content: str | bytes) -> Path:
    """Write the content to a file by one atomic replacement; its folder is made if need be."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def read_csv(path: PathLike) -> Array:
    """The numbers (rows, columns) of a file of comma-separated values, with or without a line of names above them."""
    lines = [line for line in read_limited(path, CSV_LIMIT).decode("utf-8", "replace").splitlines() if line.strip()]
    for first in (0, 1):
        try:
            rows = [[float(part) for part in line.split(",")] for line in lines[first:]]
        except ValueError:
            continue
        if not rows or len({len(row) for row in rows}) > 1:
            raise FileError(f"{path} has no rows, or rows of different lengths")
        return np.array(rows)
    raise FileError(f"{path} holds something that is no number below its first line")


def read_limited(path: PathLike, limit: int) -> bytes:
    """The bytes of an ordinary file of at most ``limit`` bytes; FileError, with the reason, for anything else."""
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileError(f"{path} is not an ordinary file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise FileError(f"{path} has more than {limit} bytes; refused")
    return data


def read_toml(path: PathLike) -> dict[str, Any]:
    """The tables of a TOML file; FileError, with the reason, for anything else."""
    data = read_limited(path, TOML_LIMIT)
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise FileError(f"{path} cannot be read as TOML: {error}") from None
