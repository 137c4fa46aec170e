"""Entries of problem files, each read by its own rule and refused with its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from rannpde.errors import InputError, reject, require, suggestion
from rannpde.pde.problem.conditions import naming
from rannpde.pde.statement.build import number

T = TypeVar("T")
ENTRIES_LIMIT = 200
"""Entries of a table: a system of fifty fields with conditions on all sides; more is a mistake or an attack."""


def known(where: str, table: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """The entries of a table; refused where it has other keys than these."""
    entries = table_of(where, table)
    for key in entries:
        if key not in keys:
            raise InputError(f"{where} has the key {key!r}, which is unknown; {suggestion(key, keys)}")
    return entries


def table_of(key: str, value: Any) -> dict[str, Any]:
    require(isinstance(value, Mapping), key, value, "a table")
    require(len(value) <= ENTRIES_LIMIT, f"{key} of size", len(value), f"at most {ENTRIES_LIMIT} entries")
    return dict(value)


def each(key: str, table: Mapping[str, Any], reader: Callable[[str, Any], T]) -> dict[str, T]:
    """The entries of a table within the file, each read by its own rule."""
    return {name: reader(f"{key}.{name}", value) for name, value in table_of(key, table.get(key, {})).items()}


def text(key: str, value: Any) -> str:
    require(isinstance(value, str), key, value, "text")
    return str(value)


def texts(key: str, value: Any) -> list[str]:
    listed = isinstance(value, (list, tuple)) and all(isinstance(entry, str) for entry in value)
    require(listed and len(value) <= ENTRIES_LIMIT, key, value, f"a list of at most {ENTRIES_LIMIT} texts")
    return list(value)


def real(key: str, value: Any) -> float:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < np.inf
    require(plain, key, value, "a finite number")
    return float(value) if isinstance(value, float) else int(value)


def array(key: str, value: Any) -> Any:
    """A number, or a list of numbers, or of rows of them: parameters of problems in R^d may be vectors and matrices."""
    if not isinstance(value, list):
        return real(key, value)
    return [array(key, entry) for entry in value]


def phasor(key: str, value: Any) -> Any:
    """Numbers as ``array`` reads them, or a complex one written as text, "1j" or "0.5-2j": TOML has no form for it."""
    if not isinstance(value, str):
        return array(key, value)
    try:
        return complex(value.replace(" ", ""))
    except ValueError:
        reject(key, value, 'a number, or a complex one such as "1j"')


def boolean(key: str, value: Any) -> bool:
    require(isinstance(value, bool), key, value, "true or false")
    return bool(value)


def formula(key: str, value: Any) -> str | float:
    return value if isinstance(value, str) else real(key, value)


def interval(key: str, value: Any, parameters: Mapping[str, float]) -> list[Any]:
    """[0, 1], ["-pi", "pi"], or a list of such intervals."""
    listed = isinstance(value, (list, tuple)) and 0 < len(value) <= ENTRIES_LIMIT
    require(listed, key, value, "an interval [lower, upper]")
    if all(isinstance(entry, (list, tuple)) for entry in value):
        return [interval_ends(key, entry, parameters) for entry in value]
    return interval_ends(key, value, parameters)


def interval_ends(key: str, value: Any, parameters: Mapping[str, float]) -> list[float]:
    require(len(value) == 2, key, value, "an interval [lower, upper]")
    return constants(key, value, parameters)


def constants(key: str, values: Any, parameters: Mapping[str, float]) -> list[float]:
    """Numbers, or texts such as "pi/2" and "-L"."""
    require(isinstance(values, (list, tuple)), key, values, "a list of numbers")
    with naming(key):
        return [number(value, parameters) for value in values]
