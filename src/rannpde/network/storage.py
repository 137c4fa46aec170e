"""One file for one object: arrays and a JSON header in an uncompressed zip of .npy members, never pickle.

The header names the format, its version, the kind of object, and the shape, type and SHA-256 of every array, so a
reader knows what it is before it believes it. Files from strangers are checked before a byte is allocated: every member
has its own name, all of them together are no larger than the file, and an array has the size of its declared shape.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError, InputError, finite_array, reject
from rannpde.io import PathLike, whole_file

FORMAT = "rannpde"
VERSION = 1
_HEADER = "header.json"
_HEADER_LIMIT = 16 * 2**20
_TYPES = ("<f8", "<i8", "<c16", "|b1", "|u1")
_NPY_HEADER = 4096
"""Bytes that the header of an .npy member may take; NumPy writes 128."""


def arrays_under(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The arrays whose names begin with a prefix, by the rest of their names.

    >>> arrays_under({"a.x": np.zeros(1), "b.x": np.ones(1)}, "b.")
    {'x': array([1.])}
    """
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def write(path: PathLike, kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Path:
    """Write atomically: a file of that name is replaced by the whole new one, or left as it was.

    Numbers of NumPy in the header are written as plain JSON, so that True stays True and 1 stays 1.
    """
    path = Path(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.str not in _TYPES:
            reject(f"type of array {name!r}", array.dtype.str, f"one of {', '.join(_TYPES)}")
    about = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "object": dict(header),
        "arrays": {
            name: {"shape": list(a.shape), "dtype": a.dtype.str, "sha256": _digest(a)} for name, a in arrays.items()
        },
    }
    text = json.dumps(about, indent=1, default=plain)
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(_HEADER, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return path


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python's: the ``default=`` of json.dumps."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def read(path: PathLike, kind: str | None = None) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """(kind, header, arrays) of a file that ``write`` made. Anything else raises FileError, which says why."""
    path = Path(path)
    with _opened(path) as archive:
        about = _read_header(archive, path)
        if kind is not None and about["kind"] != kind:
            raise FileError(f"{path} holds a {about['kind']}, but a {kind} was asked for")
        arrays = {name: _read_array(archive, path, name, facts) for name, facts in about["arrays"].items()}
    return about["kind"], about["object"], arrays


@contextmanager
def consistent(path: PathLike, kind: str) -> Iterator[None]:
    """Build an object from what ``read`` gave: whatever does not fit together becomes a FileError."""
    try:
        yield
    except FileError:
        raise
    except (InputError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise FileError(f"{path} does not hold a consistent {kind}: {error}") from None


def floats(arrays: Mapping[str, Array], name: str, shape: tuple[int | None, ...] | None = None) -> Array:
    """The array of a file with this name, refused unless it is float64, finite and, where one is given, of that shape
    (None: any)."""
    array = arrays[name]
    if array.dtype != np.float64:
        raise FileError(f"array {name!r} has type {array.dtype}, but must be float64")
    fits = shape is None or (
        array.ndim == len(shape) and all(w in (None, n) for w, n in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise FileError(f"array {name!r} has shape {array.shape}, but must be of shape {shape}")
    return finite_array(f"array {name!r}", array, array.ndim)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever goes wrong while it is read becomes a FileError."""
    if path.exists() and not path.is_file():  # a pipe would wait for ever
        raise FileError(f"{path} cannot be read as a {FORMAT} file: it is not an ordinary file")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path)
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


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Members of one name, compressed ones, or ones that share their bytes are not ours: they could fill the memory."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise FileError(f"{path} has two members of one name; refused")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise FileError(f"{path} has compressed members; it was not written by {FORMAT}")
    total, size = sum(member.file_size for member in members), path.stat().st_size
    if total > size:
        raise FileError(f"{path} has {size} bytes, but its members claim {total}; refused")


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


def _read_array(archive: zipfile.ZipFile, path: Path, name: str, facts: Mapping[str, Any]) -> Array:
    shape, dtype = tuple(facts["shape"]), facts["dtype"]
    if dtype not in _TYPES or not all(type(n) is int and n >= 0 for n in shape):
        raise FileError(f"{path} declares array {name!r} with shape {shape} and type {dtype!r}; refused")
    info = archive.getinfo(f"{name}.npy")
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if not size <= info.file_size <= size + _NPY_HEADER:
        raise FileError(f"{path} holds array {name!r} in {info.file_size} bytes, but its shape {shape} needs {size}")
    array = _parsed(archive.read(info), shape, dtype)
    if array is None or _digest(array) != facts["sha256"]:
        raise FileError(f"{path} is damaged: array {name!r} differs from what its header says")
    return array


def _parsed(data: bytes, shape: tuple[int, ...], dtype: str) -> Array | None:
    """The array of an .npy member; None where its own header, which NumPy would believe, says something else."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        return None
    own_shape, fortran, own_dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_NPY_HEADER)
    rest = len(data) - stream.tell()
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if (own_shape, fortran, own_dtype.str, rest) != (shape, False, dtype, size):
        return None
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape).copy()


def _digest(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
