"""Reading the names and intervals of coordinates from arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, finite_array, require, suggestion

Pair = tuple[float, float]


def named_intervals(coordinates: Mapping[str, Any]) -> dict[str, Pair]:
    """{"x": [(0, 1)] * 2, "y": (0, 3)} as {"x1": (0, 1), "x2": (0, 1), "y": (0, 3)}, all checked."""
    pairs = []
    for name, value in coordinates.items():
        array = _intervals(name, value)
        if array.ndim == 1:
            pairs.append((name, pair(name, array)))
        else:
            members = ((f"{name}{number}", row) for number, row in enumerate(array, start=1))
            pairs.extend((member, pair(member, row)) for member, row in members)
    checked_names(tuple(name for name, _ in pairs))
    return dict(pairs)


def expanded_coordinates(key: str, value: Any, names: tuple[str, ...]) -> list[tuple[str, Pair]]:
    """The coordinates that a key of ``restrict`` means, with their new intervals."""
    group = [name for name in names if re.fullmatch(re.escape(key) + r"\d+", name)]
    members = [key] if key in names else group
    if not members:
        raise InputError(f"coordinate is {key!r}, which is unknown; {suggestion(key, names)}")
    array = _intervals(key, value)
    if array.ndim == 1:
        array = np.tile(array, (len(members), 1))
    require(len(array) == len(members), key, array.tolist(), f"{len(members)} intervals, for {', '.join(members)}")
    return [(name, pair(name, row)) for name, row in zip(members, array, strict=True)]


def _intervals(name: str, value: Any) -> Array:
    """value as an array of shape (2,), or (k, 2) for a list of intervals."""
    if isinstance(value, (list, tuple)) and not value:
        return np.empty((0, 2))
    array = finite_array(name, value, (1, 2))
    remedy = "an interval (lower, upper) or a list of them"
    require(array.shape[-1] == 2, f"{name} with shape", array.shape, "of shape (2,) or (k, 2)", remedy)
    return array


def pair(name: str, value: Any) -> Pair:
    """value as (lower, upper), finite and not empty."""
    array = finite_array(name, value, 1)
    require(array.shape == (2,), name, array.tolist(), "an interval (lower, upper)")
    lower, upper = array.tolist()
    require(lower < upper, name, (lower, upper), "an interval with lower < upper", "swap or separate its ends")
    require(np.isfinite(upper - lower), name, (lower, upper), "of finite length")
    return lower, upper


def checked_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, refused unless they are different and could be symbols in an equation."""
    for name in names:
        require(isinstance(name, str) and name.isidentifier(), "coordinate", name, "a name of letters and digits")
    require(len(set(names)) == len(names), "coordinates", names, "of different names")
    return names


class DefaultNames(tuple[str, ...]):
    """x, y, z, or x1, x2, … in more dimensions: names that give way where a shape is combined with one that was named.

    >>> DefaultNames.of(2), DefaultNames.of(4)
    (('x', 'y'), ('x1', 'x2', 'x3', 'x4'))
    """

    __slots__ = ()

    @classmethod
    def of(cls, dim: int) -> DefaultNames:
        return cls(("x", "y", "z")[:dim] if dim <= 3 else (f"x{number}" for number in range(1, dim + 1)))


def checked_shape_name(name: Any) -> str | None:
    """The name of a shape, or None; refused where it could be taken for something else in conditions."""
    if name is None:
        return None
    plain = isinstance(name, str) and bool(re.fullmatch(r"[^\W\d][\w -]*", name)) and name == name.strip()
    require(plain, "name", name, "letters, digits, spaces, - and _, beginning with a letter")
    taken = name == "boundary" or name.startswith("boundary ") or " except" in name
    require(not taken, "name", name, "another word: 'boundary' stands for all sides")
    return str(name)


def coordinate_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """The names given, one per coordinate, or the default ones."""
    if names is None:
        return DefaultNames.of(dim)
    require(len(names) == dim, "names", names, f"{dim} names, one per coordinate")
    return checked_names(tuple(names))
