"""Evolved solutions as named arrays and a JSON header, and back; the problem itself travels as text.

Files come from strangers: every array is looked at when it is read, and parts that do not fit each other are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError, choose
from rannpde.network.network import pack_features, unpack_features
from rannpde.network.storage import floats
from rannpde.pde.lines.evolved import Evolved, ProjectedSystem, Stretch
from rannpde.pde.lines.galerkin import Basis, Galerkin, Rule
from rannpde.pde.lines.march import MarchStep, Trajectory
from rannpde.pde.lines.periodic.equations import Equations
from rannpde.pde.lines.periodic.kept import KeptStep
from rannpde.pde.lines.periodic.modes import Modes
from rannpde.pde.lines.periodic.spectral import Spectral
from rannpde.pde.lines.products.axis import Axis
from rannpde.pde.lines.products.incompressible import flow_of
from rannpde.pde.lines.products.tensor import Products
from rannpde.pde.lines.radau import Polynomial
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Status
from rannpde.pde.problem.evolution import Evolution, constraints_of, evolution_form
from rannpde.pde.problem.problem import Problem

_BASIS_ARRAYS = ("weights", "lifting", "lifted", "left", "singular_values")
_AXIS_ARRAYS = ("nodes", "weights", "left", "mixing")
_RULE_ARRAYS = ("points", "weights", "boundary", "outward")


MOST_BOUNDARY_POINTS = 1000
"""Per side and axis: far more than any tuning asks for, few enough to be made for a stranger."""


def pack_evolved(solution: Evolved) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a solution."""
    header: dict[str, Any] = {"function": "evolved", "stretches": []}
    arrays: dict[str, Array] = {}
    for number, stretch in enumerate(solution.stretches):
        about, own = _pack_system(stretch.system)
        own |= _pack_kept(stretch.path) if isinstance(stretch.path.steps[0], KeptStep) else _pack_path(stretch.path)
        header["stretches"].append(about | _about_path(stretch.path))
        arrays |= {f"{number}.{name}": array for name, array in own.items()}
    return header, arrays


def unpack_evolved(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> Evolved:
    """The inverse of ``pack_evolved``; the equations are those of the problem."""
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    stretches = []
    for number, about in enumerate(header["stretches"]):
        prefix = f"{number}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        system = _unpack_system(about, own, problem)
        if isinstance(system, Spectral) and "tables" in own:
            stretches.append(Stretch(system, _unpack_path(about, own, _kept_steps(own, system))))
            continue
        steps = _polynomials(own)
        wanted, first = system.initial_state(), steps[0]
        if first.y_old.shape != wanted.shape or {first.y_old.dtype, first.series.dtype} != {wanted.dtype}:
            raise FileError("the states of the file do not fit its functions of space")
        stretches.append(Stretch(system, _unpack_path(about, own, steps)))
    ends = [one.path.end for one in stretches]
    if not stretches or ends != sorted(ends):
        raise FileError("the stretches of time in the file are not in order")
    return Evolved(stretches[0].system.evolution, tuple(stretches))


def _pack_system(system: ProjectedSystem) -> tuple[dict[str, Any], dict[str, Array]]:
    scales = [system.scales[component] for component in system.evolution.components]
    if isinstance(system, Products):
        layers, arrays = _pack_axes(system)
        return {"kind": "tensor", "scales": scales, "layers": layers}, arrays
    if isinstance(system, Spectral):
        mirrored = bool(system.modes.parities)
        whole = zip(system.evolution.domain.space.bounds, system.modes.bounds, strict=True)
        repeats = [round((1 + mirrored) * (b - a) / (upper - lower)) for (a, b), (lower, upper) in whole]
        about = {"kind": "modes", "highest": list(system.modes.highest), "repeats": repeats, "mirrored": mirrored}
        return {**about, "scales": scales}, {}
    assert isinstance(system, Galerkin)
    first = next(iter(system.bases.values()))
    layer, arrays = pack_features(first.features)  # type: ignore[arg-type]
    arrays = {f"features.{name}": array for name, array in arrays.items()}
    arrays |= {f"rule.{name}": getattr(first.rule, name) for name in _RULE_ARRAYS}
    for name, basis in system.bases.items():
        arrays |= {f"basis.{name}.{part}": getattr(basis, part) for part in _BASIS_ARRAYS}
    kept = {"kind": "features", "layer": layer, "weak": system.evolution.weak, "scales": scales}
    return kept | {"boundary_points": first.boundary_points}, arrays


def _pack_axes(system: Products) -> tuple[dict[str, Any], dict[str, Array]]:
    """Each field's axes: nodes, weights, functions, and the random features of those that have some."""
    layers: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for name, axes in system.axes.items():
        for number, axis in enumerate(axes):
            key = f"axis.{name}.{number}"
            arrays |= {f"{key}.{part}": getattr(axis, part) for part in _AXIS_ARRAYS}
            if axis.features is not None:
                layers[key], own = pack_features(axis.features)
                arrays |= {f"{key}.features.{part}": array for part, array in own.items()}
    return layers, arrays


def _unpack_axes(about: Mapping[str, Any], arrays: Mapping[str, Array], evolution: Evolution) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in evolution.orders:
        axes = []
        for number, (lower, upper) in enumerate(evolution.domain.space.bounds):
            key = f"axis.{name}.{number}"
            own = {part: floats(arrays, f"{key}.{part}") for part in _AXIS_ARRAYS}
            prefix = f"{key}.features."
            layer = {part.removeprefix(prefix): a for part, a in arrays.items() if part.startswith(prefix)}
            features = unpack_features(about["layers"][key], layer) if key in about["layers"] else None
            axes.append(Axis((float(lower), float(upper)), features=features, **own))  # type: ignore[arg-type]
        found[name] = tuple(axes)
    return found


def _unpack_system(about: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem) -> ProjectedSystem:
    kind = choose("kind of functions", about["kind"], {"modes": "modes", "tensor": "tensor", "features": "features"})
    flow = flow_of(problem) if kind == "tensor" and problem.obstacles else None
    weak = bool(about.get("weak", kind != "tensor"))
    evolution = evolution_form(problem, weak=weak) if flow is None else flow.evolution
    scales = dict(zip(evolution.components, map(_positive, about["scales"]), strict=True))
    if kind == "modes":
        space, dim = evolution.domain.space, evolution.domain.space.dim
        highest, repeats = (tuple(map(int, about[key])) for key in ("highest", "repeats"))
        most = LinesTuning().most_modes[dim - 1]
        if len(highest) != dim or not all(1 <= high <= most for high in highest):
            raise FileError(f"highest modes of {highest} are beyond all that this release makes")
        if len(repeats) != dim or min(repeats) < 1:
            raise FileError(f"a box cannot be repeated {repeats} times")
        equations = Equations.of(evolution)
        mirrored = bool(about.get("mirrored", False))
        if mirrored and not equations.parities:
            raise FileError("the walls of the problem are no mirrors, as the file says they are")
        pairs = zip(space.bounds, repeats, strict=True)
        bounds = tuple((float(a), float(a + (1 + mirrored) * (b - a) / repeat)) for (a, b), repeat in pairs)
        modes = Modes(bounds, highest, parities=equations.parities if mirrored else ())
        return Spectral(equations, modes, scales)
    if kind == "tensor":
        return Products(evolution, _unpack_axes(about, arrays, evolution), scales, weak=flow is not None)
    return Galerkin(evolution, _unpack_bases(about, arrays, evolution), scales)


def _unpack_bases(about: Mapping[str, Any], arrays: Mapping[str, Array], evolution: Evolution) -> dict[str, Basis]:
    own = {name.removeprefix("features."): a for name, a in arrays.items() if name.startswith("features.")}
    features, dim = unpack_features(about["layer"], own), evolution.domain.space.dim
    points = floats(arrays, "rule.points", (None, dim))
    boundary = floats(arrays, "rule.boundary", (None, dim))
    outward = floats(arrays, "rule.outward", boundary.shape)
    rule = Rule(points, floats(arrays, "rule.weights", (len(points),)), boundary, outward)
    count = int(about["boundary_points"])
    if features.dim != dim or not 1 <= count <= MOST_BOUNDARY_POINTS:
        raise FileError(f"features of dimension {features.dim} or {count} boundary points do not fit the domain")
    found = {}
    for name in evolution.orders:
        left = floats(arrays, f"basis.{name}.left", (len(points), None))
        constraints, rank = constraints_of(evolution, name, count), left.shape[1]
        rows = sum(len(constraint.points) for constraint in constraints)
        shapes = {"weights": (features.columns, rank), "lifting": (features.columns, rows), "lifted": (rank, rows)}
        parts: dict[str, Any] = {key: floats(arrays, f"basis.{name}.{key}", shape) for key, shape in shapes.items()}
        kept = floats(arrays, f"basis.{name}.singular_values", (rank,))
        found[name] = Basis(
            features, rule, left=left, singular_values=kept, constraints=constraints, boundary_points=count, **parts
        )
    return found


def _positive(value: Any) -> float:
    if not 0 < float(value) < np.inf:
        raise FileError(f"a scale of {value!r} in the file is not positive")
    return float(value)


def _about_path(path: Trajectory) -> dict[str, Any]:
    status = None if path.status is None else path.status.name
    return {
        "status": status,
        "detail": path.detail,
        "end": path.end,
        "found": {k: list(v) for k, v in path.found.items()},
    }


def _pack_path(path: Trajectory) -> dict[str, Array]:
    """Ends (steps + 1,), states at the beginning of the steps (steps, n), Legendre series (steps, n, degree + 1)."""
    steps = [step for step in path.steps if isinstance(step, Polynomial)]
    return {
        "times": np.array([steps[0].t_old, *(step.t for step in steps)]),
        "starts": np.stack([step.y_old for step in steps]),
        "series": np.stack([step.series for step in steps]),
    }


def _pack_kept(path: Trajectory) -> dict[str, Array]:
    """Ends (steps + 1,), highest modes (steps, degree + 1, d), and all tables behind each other."""
    steps = [step for step in path.steps if isinstance(step, KeptStep)]
    return {
        "times": np.array([steps[0].t_old, *(step.t for step in steps)]),
        "highest": np.array([step.highest for step in steps], dtype=float),
        "tables": np.concatenate([table.ravel() for step in steps for table in step.tables], dtype=complex),
    }


def _kept_steps(arrays: Mapping[str, Array], system: Spectral) -> tuple[KeptStep, ...]:
    times, tables, modes = floats(arrays, "times", (None,)), arrays["tables"], system.modes
    highest, parts, count = floats(arrays, "highest", (None, None, modes.dim)), len(system.parts), len(times) - 1
    fits = len(highest) == count >= 1 and highest.shape[1] >= 2
    if not fits or not ((highest >= 0) & (highest <= np.array(modes.highest))).all():
        raise FileError("the modes of the file do not fit its steps")
    if tables.ndim != 1 or not np.iscomplexobj(tables) or not np.isfinite(tables).all():
        raise FileError("the coefficients of the file are not finite complex numbers")
    boxes = [[replace(modes, highest=tuple(map(int, one))) for one in step] for step in highest]
    sizes = [parts * box.count for step in boxes for box in step]
    if sum(sizes) != len(tables):
        raise FileError("the coefficients of the file do not fit its modes")
    each = iter(np.split(tables, np.cumsum(sizes)[:-1]))
    steps = []
    for number, own in enumerate(boxes):
        shaped = tuple(next(each).reshape(parts, *box.shape) for box in own)
        ends = float(times[number]), float(times[number + 1])
        steps.append(KeptStep(*ends, modes, tuple(box.highest for box in own), shaped))
    return tuple(steps)


def _polynomials(arrays: Mapping[str, Array]) -> tuple[Polynomial, ...]:
    times, series = floats(arrays, "times", (None,)), arrays["series"]
    steps, start = len(times) - 1, arrays["starts"]
    fits = series.ndim == 3 and len(series) == steps >= 1 and start.shape == series.shape[:2]
    if not fits or series.shape[2] < 2 or not (np.isfinite(series).all() and np.isfinite(start).all()):
        raise FileError("the steps of the file do not fit each other")
    rows = zip(times[:-1].tolist(), times[1:].tolist(), start, series, strict=True)
    return tuple(Polynomial(*row) for row in rows)


def _unpack_path(about: Mapping[str, Any], arrays: Mapping[str, Array], steps: tuple[MarchStep, ...]) -> Trajectory:
    times, end = floats(arrays, "times", (None,)), float(about["end"])
    if not ((np.diff(times) > 0).all() and times[-2] < end <= times[-1]):
        raise FileError("the times of the file are not in order")
    found = {str(name): tuple(float(t) for t in when) for name, when in about["found"].items()}
    status = None if about["status"] is None else Status[about["status"]]
    return Trajectory((*times[:-1].tolist(), end), steps, status, str(about["detail"]), found)
