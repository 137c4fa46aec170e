"""The output folder: looked at before the work begins, written to so that an interruption leaves the old file whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rannpde.errors import InputError

ROOM = 64 * 2**20
"""Bytes that must be free: records, figures and page of the full size take less than a third of it."""


def prepare_folder(folder: Path) -> Path:
    """Make the folder and try it; InputError where it cannot be made, written to, or has no room."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".trial-"):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"output folder {folder} cannot be used: {reason}; choose another with --output") from None
    if free < ROOM:
        raise InputError(
            f"output folder {folder} has {free / 2**20:.0f} MB free, but {ROOM / 2**20:.0f} MB are needed; "
            "make room or choose another with --output"
        )
    return folder


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write the file beside its place and move it there: a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
