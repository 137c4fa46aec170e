"""Errors that name the argument, what it was, what it must be, and how to correct it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import numpy as np

from rannpde.arrays import Array

T = TypeVar("T")


class InputError(ValueError):
    """An argument is wrong. The message says which one and what to do."""


class MethodError(InputError):
    """A method did not solve a problem, for a reason that need not stop another method."""


class FileError(InputError):
    """A file is damaged, foreign, or of a version that this release cannot read."""


def reject(argument: str, got: Any, expected: str, remedy: str = "") -> NoReturn:
    """Raise the standard message: ``penalty is -1, but must be ≥ 0; remedy``."""
    raise InputError(f"{argument} is {_shown(got)}, but must be {expected}" + (f"; {remedy}" if remedy else ""))


def _shown(got: Any) -> str:
    """repr, cut to a length that a person reads."""
    if isinstance(got, np.ndarray):
        return np.array2string(got, threshold=6, edgeitems=2, precision=6)
    text = repr(got)
    return text if len(text) <= 200 else text[:197] + "…"


def require(condition: bool, argument: str, got: Any, expected: str, remedy: str = "") -> None:
    """Reject ``argument`` unless the condition holds."""
    if not condition:
        reject(argument, got, expected, remedy)


def choose(argument: str, name: str, table: Mapping[str, T]) -> T:
    """table[name]; an unknown name is answered with the nearest known one and the whole list."""
    if isinstance(name, str) and name in table:
        return table[name]
    raise InputError(f"{argument} is {_shown(name)}, which is unknown; {suggestion(name, table)}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """``did you mean 'tanh'? known: cos, sin, tanh``, or the list alone when nothing is near."""
    known = sorted(set(known))
    near = get_close_matches(str(name)[:100], known, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + "known: " + ", ".join(known)


def whole_number(argument: str, value: Any, least: int = 0) -> int:
    """value as int, refused unless it is a whole number from the least one on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(bool(whole and value >= least), argument, value, f"a whole number ≥ {least}")
    return int(value)


def positive_integer(argument: str, value: Any) -> int:
    """value as int, refused unless it is a whole number ≥ 1."""
    return whole_number(argument, value, 1)


def positive_number(argument: str, value: Any) -> float:
    """value as float, refused unless it is a finite number > 0."""
    require(is_real(value) and 0 < value < np.inf, argument, value, "a finite number > 0")
    return float(value)


def random_generator(argument: str, value: Any) -> np.random.Generator:
    """value as a generator of random numbers, refused unless it is a seed or a generator."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        reject(argument, value, "a whole number ≥ 0 or a numpy.random.Generator")


def probability(argument: str, value: Any) -> float:
    """value as float, refused unless it lies strictly between 0 and 1."""
    require(is_real(value) and 0 < value < 1, argument, value, "a number between 0 and 1", "0.95 means 95 %")
    return float(value)


def is_real(value: Any) -> bool:
    """Whether value is one real number of Python or NumPy; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def finite_array(argument: str, value: Any, ndim: int | tuple[int, ...]) -> Array:
    """value as a float64 array of the wanted number of axes, refused with its first row that is not finite.

    Complex numbers, masked entries, dates and text are refused too: a conversion would lose what they say.
    """
    array = _real_array(argument, value)
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        reject(f"{argument} with shape", array.shape, f"an array with {wanted} axes")
    if not np.isfinite(array).all():
        rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
        first = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(f"{argument} has a NaN or an infinite number, first in row {first}; remove or repair that row")
    return array


def _real_array(argument: str, value: Any) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        reject(argument, "a masked array", "an array of numbers", "drop the masked rows or fill them first")
    try:
        raw = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        reject(argument, type(value).__name__, "an array of numbers")
    complex_entry = raw.dtype.kind == "O" and any(isinstance(entry, complex) for entry in raw.flat)
    if raw.dtype.kind == "c" or complex_entry:
        reject(argument, "complex", "real", "give real and imaginary part as two outputs")
    text = raw.dtype.kind == "O" and any(isinstance(entry, str | bytes) for entry in raw.flat)
    if raw.dtype.kind not in "biufO" or text:
        reject(argument, type(value).__name__, "an array of numbers")
    try:
        return np.asarray(raw, dtype=float)
    except (TypeError, ValueError):
        reject(argument, type(value).__name__, "an array of numbers")


def finite_points(argument: str, value: Any, dim: int | None) -> Array:
    """value as a contiguous (M, dim) float64 array of points; a 1-D array is M points when dim is 1."""
    array = finite_array(argument, value, (1, 2))
    if array.ndim == 1:
        if dim not in (1, None):
            reject(f"{argument} with shape", array.shape, f"of shape (M, {dim})", "one row per point")
        array = array[:, None]
    if dim is not None and array.shape[1] != dim:
        reject(
            f"{argument} with shape", array.shape, f"of shape (M, {dim})", f"one row per point, {dim} coordinates each"
        )
    return np.ascontiguousarray(array)
