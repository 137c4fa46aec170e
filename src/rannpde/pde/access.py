"""How solved functions are called: by points, by coordinates in order or by name, with parts fixed, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError, choose, finite_array, finite_points, is_real, reject, suggestion
from rannpde.network.features import multi_index
from rannpde.pde.statement.vocabulary import Vocabulary


class DifferentiableFields(Protocol):
    """Fields on a domain with n coordinates: derivatives at points (M, n) are (M, fields)."""

    @property
    def dim(self) -> int: ...

    def derivative(self, points: Array, derivative: MultiIndex) -> Array: ...


@dataclass(frozen=True, eq=False)
class FieldFunction:
    """Fields of a solution as a function of its coordinates, some of which may be fixed.

    Calls take the points in one of these forms; S is the shape that comes back, followed by an axis of the fields where
    there are several:

        f(points)               rows (M, n) of points: S = (M,); one point as n numbers: S = ();
                                in one dimension also numbers of any shape S
        f(t, x), f(t=…, x=…)    one argument for each coordinate, in their order or by name: S is their common shape
                                (they are broadcast against each other)

    A single argument is therefore always points: in two dimensions ``f([0.3, 0.4])`` is the value at (0.3, 0.4), and
    the values at x = 0.3 and x = 0.4 for one y are ``f([0.3, 0.4], y)``.

    coordinates : their names, empty where they are not known; fields : names of all fields of ``function``
    columns : which fields come back; single : whether one of them comes back without an axis of the fields
    fixed : number of a coordinate → its value
    groups : name of a vector or complex field → names of its components, or of its real and imaginary parts
    pairs : whether columns are real and imaginary parts in turn, and values complex
    """

    function: DifferentiableFields
    coordinates: tuple[str, ...]
    fields: tuple[str, ...]
    columns: tuple[int, ...]
    single: bool
    fixed: Mapping[int, float]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complex_groups: bool = False
    pairs: bool = False

    @classmethod
    def of(
        cls,
        function: DifferentiableFields,
        coordinates: Sequence[str],
        fields: Sequence[str],
        groups: Mapping[str, tuple[str, ...]] | None = None,
        complex_groups: bool = False,
    ) -> FieldFunction:
        """All fields of a function of all coordinates."""
        count = len(fields)
        columns = tuple(range(count))
        return cls(function, tuple(coordinates), tuple(fields), columns, count == 1, {}, groups or {}, complex_groups)

    @property
    def dim(self) -> int:
        """Number of coordinates that are free."""
        return self.function.dim - len(self.fixed)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates that are free."""
        return tuple(name for axis, name in enumerate(self.coordinates) if axis not in self.fixed)

    def __repr__(self) -> str:
        shown = ", ".join(self.fields[column] for column in self.columns)
        where = ", ".join(f"{self.coordinates[axis]} = {value:g}" for axis, value in self.fixed.items())
        return f"<{shown} of ({', '.join(self.names)}){f' at {where}' if where else ''}>"

    def __call__(self, *points: Any, **coordinates: Any) -> Array:
        """Values at points, in any of the forms above."""
        rows, shape = located(points, coordinates, self.names, self.dim)
        return self._values(rows, (0,) * self.dim, shape)

    def derivative(
        self, first: Any, /, *rest: Any, derivative: Sequence[int] | str | None = None, **coordinates: Any
    ) -> Array:
        """A derivative: ``derivative("u_x", …points…)``, or ``derivative(points, (0, 1))`` by its multi-index.

        By name it is one field's, in every form that calls take. By multi-index points are rows (M, n).
        """
        if isinstance(first, str):
            name, index = self._named_derivative(first)
            rows, shape = located(rest, coordinates, self.names, self.dim)
            return self[name]._values(rows, index, shape)
        requested = rest[0] if rest else derivative
        if isinstance(requested, str):
            return self.derivative(requested, first)
        if len(rest) > 1 or coordinates:
            remedy = "name the derivative first to give coordinates one by one: derivative('u_x', t, x)"
            raise InputError(f"derivative takes rows of points and one multi-index; {remedy}")
        rows = finite_points("points", first, self.dim)
        return self._values(rows, multi_index(requested, self.dim), (len(rows),))

    def __getitem__(self, name: str) -> FieldFunction:
        """One field as a function: a vector has all its components, a complex field complex values."""
        columns = choose("field", name, self._known)
        pairs = self.complex_groups and name in self.groups
        return replace(self, columns=columns, single=len(columns) == 1 + pairs, pairs=pairs)

    @property
    def _known(self) -> dict[str, tuple[int, ...]]:
        """Name of a field, or of a group of fields → its columns."""
        known = {self.fields[column]: (column,) for column in self.columns}
        whole = {name: parts for name, parts in self.groups.items() if all(part in known for part in parts)}
        return known | {name: tuple(known[part][0] for part in parts) for name, parts in whole.items()}

    def at(self, **coordinates: Any) -> FieldFunction:
        """The function of the other coordinates, with these fixed: ``at(t=0.5)`` is a function of space."""
        fixed = dict(self.fixed)
        for name, value in coordinates.items():
            axis = self.coordinates.index(_known_coordinate(name, self.names))
            if not (is_real(value) and np.isfinite(value)):
                reject(name, value, "one finite number", "to evaluate at several, call the function")
            fixed[axis] = float(value)
        if len(fixed) == self.function.dim:
            raise InputError(f"at({', '.join(coordinates)}) fixes every coordinate; call the function for its value")
        return replace(self, fixed=fixed)

    def _values(self, rows: Array, index: MultiIndex, shape: tuple[int, ...]) -> Array:
        """Values at rows (M, free coordinates), in that shape."""
        free = [axis for axis in range(self.function.dim) if axis not in self.fixed]
        whole, orders = np.empty((len(rows), self.function.dim)), np.zeros(self.function.dim, dtype=int)
        whole[:, free], orders[free] = rows, index
        for axis, value in self.fixed.items():
            whole[:, axis] = value
        values = self.function.derivative(whole, tuple(orders.tolist()))[:, list(self.columns)]
        if self.pairs:
            values = values[:, ::2] + 1j * values[:, 1::2]
        return values[:, 0].reshape(shape)[()] if self.single else values.reshape(*shape, values.shape[1])

    def _named_derivative(self, text: str) -> tuple[str, MultiIndex]:
        """Field and multi-index over the free coordinates of a name such as ``u_xx``, or of a field alone."""
        known = self._known
        if text in known:
            return text, (0,) * self.dim
        if not self.coordinates:
            raise InputError("names of coordinates are not known here; give derivative(points, index)")
        split = Vocabulary(self.names).subscript(text)
        stem, letters = (text.rpartition("_")[0], ()) if split is None else split
        if stem not in known:
            raise InputError(f"derivative is {text!r}, but {stem or text!r} is no field; {suggestion(stem, known)}")
        if split is None:
            suffix = text.rpartition("_")[2]
            raise InputError(f"derivative is {text!r}, but {suffix!r} is not made of coordinates {_listed(self.names)}")
        return stem, tuple(letters.count(name) for name in self.names)


def located(
    points: tuple[Any, ...], coordinates: Mapping[str, Any], names: tuple[str, ...], dim: int
) -> tuple[Array, tuple[int, ...]]:
    """Rows (M, dim) of the points that a call names, and the shape in which its values come back.

    >>> located((0.5, [0.1, 0.2]), {}, ("t", "x"), 2)[0].tolist()
    [[0.5, 0.1], [0.5, 0.2]]
    >>> located(([0.3, 0.4],), {}, ("x", "y"), 2)[1]
    ()
    """
    if len(points) == 1 and not coordinates:
        return _rows(points[0], dim)
    parts = dict(zip(names or [f"coordinate {k + 1}" for k in range(dim)], points, strict=False))
    if len(points) > dim:
        reject("points", f"{len(points)} arguments", f"{dim}, one for each coordinate {_listed(names)}".rstrip())
    for name, value in coordinates.items():
        _known_coordinate(name, names)
        if name in parts:
            raise InputError(f"the coordinate {name!r} is given twice, by its position and by its name; give it once")
        parts[name] = value
    missing = [name for name in names if name not in parts]
    if len(parts) < dim:
        missing_names = f"; {', '.join(missing)} missing" if missing else ""
        count = f"{len(parts)} of {dim} coordinates"
        reject("points", f"{count}{missing_names}", "all coordinates, or rows of points (M, n)", "fix some with at(…)")
    arrays = [_coordinate_array(name, parts[name]) for name in names or parts]
    try:
        broadcast = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names or parts, arrays, strict=True))
        raise InputError(f"the shapes of the coordinates do not broadcast: {shapes}; make them equal or 1") from None
    rows = np.stack([array.ravel() for array in broadcast], axis=1)
    return finite_points("points", rows, dim), broadcast[0].shape


def _rows(value: Any, dim: int) -> tuple[Array, tuple[int, ...]]:
    """A single argument: rows of points, one point, or in one dimension numbers of any shape."""
    array = _coordinate_array("points", value)
    if dim == 1 and not (array.ndim == 2 and array.shape[1] == 1):
        return finite_points("points", array.reshape(-1, 1), 1), array.shape
    if dim > 1 and array.shape == (dim,):
        return finite_points("points", array[None], dim), ()
    rows = finite_points("points", value, dim)
    return rows, (len(rows),)


def _coordinate_array(name: str, value: Any) -> Array:
    return finite_array(name, value, tuple(range(8)))


def _known_coordinate(name: str, names: Sequence[str]) -> str:
    if not names:
        raise InputError(f"names of coordinates such as {name!r} are not known here; give rows of points (M, n)")
    if name not in names:
        raise InputError(f"{name!r} is no coordinate here; they are {_listed(names)}")
    return name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
