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
    if "ball" in rest and not kinds:  # the oldest form; its mistakes are told in its own words
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


def _arguments(key: str, table: Any, needed: tuple[str, ...], free: tuple[str, ...] = ()) -> dict[str, Any]:
    entries = known(key, table, (*needed, *free, "names", "name"))
    for name in needed:
        require(name in entries, key, sorted(entries), f"given with {name}")
    return entries


def _labels(key: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    if "names" in entries:
        labels["names"] = tuple(texts(f"{key}.names", entries["names"]))
    if "name" in entries:
        labels["name"] = text(f"{key}.name", entries["name"])
    return labels


def _ball(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("centre", "radius"))
    centre = constants(f"{key}.centre", entries["centre"], parameters)
    radius = constants(f"{key}.radius", [entries["radius"]], parameters)[0]
    with naming(key):
        return Ball(centre, radius, **_labels(key, entries))


def _ellipse(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("centre", "semi_axes"), ("angle",))
    centre, axes = (constants(f"{key}.{name}", entries[name], parameters) for name in ("centre", "semi_axes"))
    angle = constants(f"{key}.angle", [entries.get("angle", 0.0)], parameters)[0]
    with naming(key):
        return Ellipse(centre, axes, angle, **_labels(key, entries))


def _halfspace(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("normal", "offset"))
    normal = constants(f"{key}.normal", entries["normal"], parameters)
    offset = constants(f"{key}.offset", [entries["offset"]], parameters)[0]
    with naming(key):
        return HalfSpace(normal, offset, **_labels(key, entries))


def _cylinder(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("start", "end", "radius"))
    start, end = (constants(f"{key}.{name}", entries[name], parameters) for name in ("start", "end"))
    radius = constants(f"{key}.radius", [entries["radius"]], parameters)[0]
    with naming(key):
        return Cylinder(start, end, radius, **_labels(key, entries))


def _rows(key: str, value: Any, parameters: Parameters) -> list[list[float]]:
    listed = isinstance(value, (list, tuple)) and len(value) <= 100 * ENTRIES_LIMIT
    require(listed, key, value, "a list of points")
    return [constants(key, row, parameters) for row in value]


def _polygon(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("corners",), ("holes", "edges"))
    corners = _rows(f"{key}.corners", entries["corners"], parameters)
    holes = entries.get("holes", [])
    require(isinstance(holes, (list, tuple)), f"{key}.holes", holes, "a list of polygons' corners")
    inner = [_rows(f"{key}.holes", hole, parameters) for hole in holes]
    edges = texts(f"{key}.edges", entries["edges"]) if "edges" in entries else None
    with naming(key):
        return Polygon(corners, inner, edges=edges, **_labels(key, entries))


def _implicit(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = known(key, table, ("formula", "within", "name"))
    for name in ("formula", "within"):
        require(name in entries, key, sorted(entries), f"given with {name}")
    box = _box(f"{key}.within", entries["within"], parameters)
    assert isinstance(box, Box)
    with naming(key):
        return Implicit(text("formula", entries["formula"]), box, **_labels(key, entries))


def _curve(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = _arguments(key, table, ("x", "y"), ("span",))
    span: dict[str, Any] = {"span": constants(f"{key}.span", entries["span"], parameters)} if "span" in entries else {}
    with naming(key):
        return Curve(text("x", entries["x"]), text("y", entries["y"]), **span, **_labels(key, entries))


def _mesh(key: str, table: Any, parameters: Parameters) -> Domain:
    from rannpde.domains.shapes.meshes import mesh

    entries = _arguments(key, table, ("file",))
    with naming(key):
        return mesh(text("file", entries["file"]), **_labels(key, entries))


def _moved(key: str, table: Any, parameters: Parameters) -> Domain:
    entries = known(key, table, ("shape", "factor", "rotation", "shift"))
    require("shape" in entries, key, sorted(entries), "given with shape")
    shape = shape_from_table(f"{key}.shape", entries["shape"], parameters)
    factor = constants(f"{key}.factor", [entries.get("factor", 1.0)], parameters)[0]
    rotation = _rows(f"{key}.rotation", entries.get("rotation", np.eye(shape.dim).tolist()), parameters)
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
    "ball": _ball,
    "ellipse": _ellipse,
    "halfspace": _halfspace,
    "cylinder": _cylinder,
    "polygon": _polygon,
    "implicit": _implicit,
    "curve": _curve,
    "mesh": _mesh,
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
    name = {} if getattr(domain, "name", None) is None else {"name": domain.name}  # type: ignore[attr-defined]
    labels = {"names": list(domain.names)} | name
    if isinstance(domain, Box):
        return {"box": _intervals(domain) | name}
    if isinstance(domain, Ball):
        return {"ball": {"centre": list(domain.centre), "radius": domain.radius} | labels}
    if isinstance(domain, Ellipse):
        own = {"centre": list(domain.centre), "semi_axes": list(domain.semi_axes), "angle": domain.angle}
        return {"ellipse": own | labels}
    if isinstance(domain, HalfSpace):
        return {"halfspace": {"normal": list(domain.normal), "offset": domain.offset} | labels}
    if isinstance(domain, Cylinder):
        ends = {"start": list(domain.start), "end": list(domain.end), "radius": domain.radius}
        return {"cylinder": ends | labels}
    if isinstance(domain, Polygon):
        loops = [[list(corner) for corner in loop] for loop in (domain.corner_points, *domain.holes)]
        edges = {} if domain.edges is None else {"edges": list(domain.edges)}
        return {"polygon": {"corners": loops[0], "holes": loops[1:]} | edges | labels}
    if isinstance(domain, Implicit):
        return {"implicit": {"formula": domain.formula, "within": _intervals(domain.frame)} | name}
    if isinstance(domain, Curve):
        return {"curve": {"x": domain.x, "y": domain.y, "span": list(domain.span)} | labels}
    if isinstance(domain, Moved):
        inner = _shape_table(domain.domain)
        move = {"factor": domain.move.factor, "shift": list(domain.move.shift)}
        rotation = [list(row) for row in domain.move.rotation]
        return None if inner is None else {"moved": {"shape": inner, "rotation": rotation} | move}
    if isinstance(domain, Combined):
        parts = [_shape_table(part) for part in domain.parts]
        return None if None in parts else {domain.operation: parts}
    return None
