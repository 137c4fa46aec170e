"""Shapes in problem files: one table for each, named by its kind.

[domain]                                        # a box by its coordinates, and what is taken away from it
x = [0, 4]
y = [0, 2]
without = [{ box = { x = [0, 2], y = [1, 2] } }, { ball = { centre = [3, 1], radius = 0.2, name = "hole" } }]

[domain]                                        # or any one shape
t = [0, 1]
polygon = { corners = [[0, 0], [1, 0], [1, 1]], names = ["x", "y"] }

[domain]                                        # or all of R^100, whose points are one vector
t = [0, 1]
x = { euclidean = 100 }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from rannpde.domains import Domain, SpaceTime
from rannpde.domains.boundary.solids import SetOperation
from rannpde.domains.operations.combined import Combined, combined
from rannpde.domains.operations.moved import Moved, Similarity, moved
from rannpde.domains.shapes.boxes import Ball, Box
from rannpde.domains.shapes.euclidean import Euclidean
from rannpde.domains.shapes.formed import Curve, Implicit
from rannpde.domains.shapes.polygon import Polygon
from rannpde.domains.shapes.quadrics import Cylinder, Ellipse, HalfSpace
from rannpde.errors import InputError, require, suggestion
from rannpde.pde.problem.conditions import naming
from rannpde.pde.problem.entries import ENTRIES_LIMIT, constants, interval, known, table_of, text, texts

Parameters = Mapping[str, float]
Reader = Callable[[str, Any, Parameters], Domain]
EntryReader = Callable[[str, Any, Parameters], Any]
OPERATIONS: tuple[SetOperation, ...] = ("union", "intersection", "difference")


def domain_from_table(table: Any, parameters: Parameters) -> Domain:
    """The domain that the table ``domain`` of a file states."""
    entries = table_of("domain", table)
    require(bool(entries), "domain", table, "a table of coordinates, e.g. x = [0, 1]")
    if set(entries) == {"t"}:  # ordinary differential equations
        return _with_holes("domain", entries, parameters)
    time = entries.pop("t", None)
    vector = _vector(entries)
    space = _with_holes("domain", entries, parameters) if vector is None else vector
    if time is None:
        return space
    ends = interval("domain.t", time, parameters)
    with naming("domain"):
        return SpaceTime(ends, **{space.vector if isinstance(space, Euclidean) else "x": space})


def _vector(entries: Mapping[str, Any]) -> Domain | None:
    """R^d, where the one coordinate is a vector: ``x = { euclidean = 100 }``."""
    vectors = [name for name, value in entries.items() if isinstance(value, Mapping) and "euclidean" in value]
    if not vectors:
        return None
    require(
        len(entries) == 1, "domain", sorted(entries), f"{vectors[0]} alone beside t, as it is a vector of all space"
    )
    with naming(f"domain.{vectors[0]}"):
        return Euclidean(known(f"domain.{vectors[0]}", entries[vectors[0]], ("euclidean",))["euclidean"], vectors[0])


def _with_holes(key: str, entries: dict[str, Any], parameters: Parameters) -> Domain:
    """A shape or the intervals of a box, without the shapes of its list ``without``."""
    rest = dict(entries)
    holes = rest.pop("without", [])
    listed = isinstance(holes, (list, tuple)) and len(holes) <= ENTRIES_LIMIT
    require(listed, f"{key}.without", holes, f"a list of at most {ENTRIES_LIMIT} shapes")
    if isinstance(rest.get("polygon"), list) and not _tables(rest["polygon"]):  # corners alone say all
        rest["polygon"] = {"corners": rest["polygon"]}
    kinds = [
        name for name in rest if name in READERS and isinstance(rest[name], (Mapping, list)) and _tables(rest[name])
    ]
    if "ball" in rest and not kinds:  # the oldest form, with error messages of its own
        kinds = ["ball"]
    if kinds:
        require(len(rest) == 1, key, sorted(rest), f"{kinds[0]} alone, beside t and without")
        shape = READERS[kinds[0]](f"{key}.{kinds[0]}", rest[kinds[0]], parameters)
    else:
        require(bool(rest), key, entries, "a shape or the intervals of a box")
        shape = _box(key, rest, parameters)
    for number, hole in enumerate(holes):
        part = shape_from_table(f"{key}.without", hole, parameters)
        with naming(f"{key}.without, number {number + 1}"):
            shape = shape - part
    return shape


def _tables(value: Any) -> bool:
    """Whether a value is a table, or a list of tables: no interval of a coordinate that bears the name of a shape."""
    return isinstance(value, Mapping) or (bool(value) and all(isinstance(part, Mapping) for part in value))


def shape_from_table(key: str, table: Any, parameters: Parameters) -> Domain:
    """The shape that a table such as ``{ ball = { … } }`` states."""
    entries = table_of(key, table)
    kinds = [name for name in entries if name in READERS]
    if not kinds:
        given = ", ".join(sorted(map(str, entries))) or "nothing"
        raise InputError(f"{key} states {given}, but must state one shape; {suggestion(given, READERS)}")
    return _with_holes(key, entries, parameters)


def _box(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = table_of(key, table)
    intervals: dict[str, Any] = {}
    for name, value in entries.items():
        intervals[name] = value if isinstance(value, str) else interval(f"{key}.{name}", value, parameters)
    with naming(key):
        return Box(**intervals)


def _number(key: str, value: Any, parameters: Parameters) -> float:
    return constants(key, [value], parameters)[0]


def _points(key: str, value: Any, parameters: Parameters) -> list[list[float]]:
    listed = isinstance(value, (list, tuple)) and len(value) <= 100 * ENTRIES_LIMIT
    require(listed, key, value, "a list of points")
    return [constants(key, row, parameters) for row in value]


def _loops(key: str, value: Any, parameters: Parameters) -> list[list[list[float]]]:
    require(isinstance(value, (list, tuple)), key, value, "a list of polygons' corners")
    return [_points(key, loop, parameters) for loop in value]


def _text(key: str, value: Any, parameters: Parameters) -> str:
    return text(key, value)


def _texts(key: str, value: Any, parameters: Parameters) -> list[str]:
    return texts(key, value)


def _mesh(file: str, **labels: Any) -> Domain:
    from rannpde.domains.shapes.meshes import mesh

    return mesh(file, **labels)


@dataclass(frozen=True)
class _ShapeEntries:
    """The table of a shape: its constructor, and how the arguments are read that it needs or may have.

    attributes : argument → the attribute that keeps it, where that has another name
    """

    shape: Callable[..., Domain]
    needed: Mapping[str, EntryReader]
    free: Mapping[str, EntryReader] = field(default_factory=dict)
    labels: tuple[str, ...] = ("names", "name")
    attributes: Mapping[str, str] = field(default_factory=dict)

    def read(self, key: str, table: Any, parameters: Parameters) -> Domain:
        readers = {**self.needed, **self.free, **{name: LABELS[name] for name in self.labels}}
        entries = known(key, table, tuple(readers))
        for name in self.needed:
            require(name in entries, key, sorted(entries), f"given with {name}")
        arguments = {name: readers[name](f"{key}.{name}", value, parameters) for name, value in entries.items()}
        with naming(key):
            return self.shape(**arguments)

    def write(self, domain: Domain) -> dict[str, Any]:
        """The entries of a shape; what is None is left out."""
        arguments = (*self.needed, *self.free, *self.labels)
        values = {name: getattr(domain, self.attributes.get(name, name)) for name in arguments}
        return {
            name: _intervals(value) if isinstance(value, Box) else _listed(value)
            for name, value in values.items()
            if value is not None
        }


def _listed(value: Any) -> Any:
    """A value whose tuples are lists, as in a file that was read."""
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


LABELS: dict[str, EntryReader] = {"names": _texts, "name": _text}
SHAPES = {
    "ball": _ShapeEntries(Ball, {"centre": constants, "radius": _number}),
    "ellipse": _ShapeEntries(Ellipse, {"centre": constants, "semi_axes": constants}, {"angle": _number}),
    "halfspace": _ShapeEntries(HalfSpace, {"normal": constants, "offset": _number}),
    "cylinder": _ShapeEntries(Cylinder, {"start": constants, "end": constants, "radius": _number}),
    "polygon": _ShapeEntries(
        Polygon, {"corners": _points}, {"holes": _loops, "edges": _texts}, attributes={"corners": "corner_points"}
    ),
    "implicit": _ShapeEntries(
        Implicit, {"formula": _text, "within": _box}, labels=("name",), attributes={"within": "frame"}
    ),
    "curve": _ShapeEntries(Curve, {"x": _text, "y": _text}, {"span": constants}),
    "mesh": _ShapeEntries(_mesh, {"file": _text}),
}


def _moved(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = known(key, table, ("shape", "factor", "rotation", "shift"))
    require("shape" in entries, key, sorted(entries), "given with shape")
    shape = shape_from_table(f"{key}.shape", entries["shape"], parameters)
    factor = constants(f"{key}.factor", [entries.get("factor", 1.0)], parameters)[0]
    rotation = _points(f"{key}.rotation", entries.get("rotation", np.eye(shape.dim).tolist()), parameters)
    shift = constants(f"{key}.shift", entries.get("shift", [0.0] * shape.dim), parameters)
    matrix = np.array(rotation) if all(len(row) == shape.dim for row in rotation) else np.zeros(0)
    turning = matrix.shape == (shape.dim,) * 2 and np.allclose(matrix @ matrix.T, np.eye(shape.dim), atol=1e-9)
    require(turning and np.linalg.det(matrix) > 0, f"{key}.rotation", rotation, "a rotation matrix")
    require(factor > 0, f"{key}.factor", factor, "> 0")
    require(len(shift) == shape.dim, f"{key}.shift", shift, f"{shape.dim} numbers")
    with naming(key):
        return moved(shape, Similarity(factor, tuple(tuple(row) for row in rotation), tuple(shift)))


def _operation(operation: SetOperation) -> Reader:
    def read(key: str, value: Any, parameters: Parameters) -> Domain:
        listed = isinstance(value, (list, tuple)) and 2 <= len(value) <= ENTRIES_LIMIT
        require(listed, key, value, f"a list of 2 to {ENTRIES_LIMIT} shapes")
        parts = [shape_from_table(key, part, parameters) for part in value]
        with naming(key):
            return reduce(lambda one, other: combined(operation, one, other), parts)

    return read


READERS: dict[str, Reader] = {
    "box": _box,
    **{kind: entries.read for kind, entries in SHAPES.items()},
    "moved": _moved,
    **{operation: _operation(operation) for operation in OPERATIONS},
}


# ------------------------------------------------------------------------------------------------------ writing


def domain_table(domain: Domain) -> dict[str, Any] | None:
    """The table of a domain, or None where a file cannot keep it."""
    if isinstance(domain, SpaceTime):
        space = domain_table(domain.space)
        return None if space is None else {"t": list(domain.time)} | space
    if isinstance(domain, Euclidean):
        return {domain.vector: {"euclidean": domain.size}}
    if isinstance(domain, Box) and domain.name is None:
        return _intervals(domain)
    return _shape_table(domain)


def _intervals(box: Box) -> dict[str, Any]:
    return {name: list(map(float, pair)) for name, pair in zip(box.names, box.bounds, strict=True)}


def _shape_table(domain: Domain) -> dict[str, Any] | None:
    if isinstance(domain, Box):
        return {"box": _intervals(domain) | ({} if domain.name is None else {"name": domain.name})}
    if isinstance(domain, Moved):
        inner = _shape_table(domain.domain)
        move = {name: _listed(getattr(domain.move, name)) for name in ("rotation", "factor", "shift")}
        return None if inner is None else {"moved": {"shape": inner} | move}
    if isinstance(domain, Combined):
        parts = [_shape_table(part) for part in domain.parts]
        return None if None in parts else {domain.operation: parts}
    for kind, entries in SHAPES.items():
        if entries.shape is type(domain):
            return {kind: entries.write(domain)}
    return None
