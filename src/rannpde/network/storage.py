"""One file for one object: arrays and a JSON header in an uncompressed zip of .npy members, never pickle.

The header names the format, its version, the kind of object, and the shape, type and SHA-256 of every array, so a
reader knows what it is before it believes it. Files from strangers are checked before a byte is allocated: a member
must be as large as its declared shape, and no larger than the file that holds it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rannpde.errors import FileError

FORMAT = "rannpde"
VERSION = 1
_HEADER = "header.json"
_HEADER_LIMIT = 16 * 2**20
_TYPES = ("<f8", "<i8", "<c16", "|b1", "|u1")


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Write atomically: a file of that name is replaced by the whole new one, or left as it was."""
    path = Path(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    about = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "object": dict(header),
        "arrays": {
            name: {"shape": list(a.shape), "dtype": a.dtype.str, "sha256": _digest(a)} for name, a in arrays.items()
        },
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
        ):
            archive.writestr(_HEADER, json.dumps(about, indent=1))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def read(path: str | os.PathLike[str], kind: str | None = None) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """(kind, header, arrays) of a file that ``write`` made. Anything else raises FileError, which says why."""
    path = Path(path)
    with _opened(path) as archive:
        about = _read_header(archive, path)
        if kind is not None and about["kind"] != kind:
            raise FileError(f"{path} holds a {about['kind']}, but a {kind} was asked for")
        arrays = {name: _read_array(archive, path, name, facts) for name, facts in about["arrays"].items()}
    return about["kind"], about["object"], arrays


def kind_of(path: str | os.PathLike[str]) -> str:
    """What the file holds, from its header alone."""
    path = Path(path)
    with _opened(path) as archive:
        return _read_header(archive, path)["kind"]


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever goes wrong while it is read becomes a FileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path} does not exist; check the path") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise FileError(
            f"{path} is not a whole {FORMAT} file ({error}); it may be cut short or of another program"
        ) from None
    except (OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FileError(f"{path} cannot be read as a {FORMAT} file: {error}") from None


def _read_header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        info = archive.getinfo(_HEADER)
    except KeyError:
        raise FileError(f"{path} is a zip file without {_HEADER}; it was not written by {FORMAT}") from None
    if info.file_size > _HEADER_LIMIT:
        raise FileError(f"{path} has a header of {info.file_size} bytes, more than {_HEADER_LIMIT}; refused")
    about = json.loads(archive.read(info))
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError(f"{path} is not a {FORMAT} file")
    if about.get("version") != VERSION:
        raise FileError(
            f"{path} has format version {about.get('version')!r}, this release reads {VERSION}; upgrade {FORMAT}"
        )
    if not (isinstance(about.get("kind"), str) and isinstance(about.get("object"), dict)):
        raise FileError(f"{path} has a damaged header")
    return about


def _read_array(archive: zipfile.ZipFile, path: Path, name: str, facts: Mapping[str, Any]) -> np.ndarray:
    shape, dtype = tuple(facts["shape"]), facts["dtype"]
    if dtype not in _TYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise FileError(f"{path} declares array {name!r} with shape {shape} and type {dtype!r}; refused")
    info = archive.getinfo(f"{name}.npy")
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if info.compress_type != zipfile.ZIP_STORED or not size <= info.file_size <= size + 4096:
        raise FileError(f"{path} holds array {name!r} in {info.file_size} bytes, but its shape {shape} needs {size}")
    array = np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False)
    if array.shape != shape or array.dtype.str != dtype or _digest(array) != facts["sha256"]:
        raise FileError(f"{path} is damaged: array {name!r} differs from what its header says")
    return array


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
