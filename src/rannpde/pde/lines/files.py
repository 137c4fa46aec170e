"""Solutions of the method of lines from named arrays and a JSON header; the problem itself is stored as text.

Files are not trusted: every array is checked when it is read, and parts that do not fit each other are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError, choose
from rannpde.network.network import unpack_features
from rannpde.network.storage import floats
from rannpde.pde.lines.features.basis import FeatureBasis, Rule
from rannpde.pde.lines.features.galerkin import Galerkin
from rannpde.pde.lines.fourier.equations import Equations
from rannpde.pde.lines.fourier.modes import FourierBasis
from rannpde.pde.lines.fourier.steps import TruncatedStep
from rannpde.pde.lines.fourier.system import FourierSystem
from rannpde.pde.lines.quantised import dequantise
from rannpde.pde.lines.solution import SemiDiscreteSystem, SpaceTimeSolution, TimeSegment
from rannpde.pde.lines.tensor.basis import AXIS_ARRAYS, AxisBasis
from rannpde.pde.lines.tensor.incompressible import flow_of
from rannpde.pde.lines.tensor.system import TensorSystem
from rannpde.pde.lines.tuning import LinesTuning
from rannpde.pde.monitor import Status
from rannpde.pde.problem.evolution import Evolution, constraints_of, evolution_form
from rannpde.pde.problem.problem import Problem
from rannpde.pde.time.dense_output import DenseStep, LegendreStep
from rannpde.pde.time.trajectory import Trajectory

KINDS = ("fourier", "tensor", "features")
"""The kinds of bases in space."""
MOST_BOUNDARY_POINTS = 1000
"""Per side and axis: far more than any tuning needs, and few enough for an untrusted file."""


def unpack_solution(
    header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None
) -> SpaceTimeSolution:
    """The inverse of ``SpaceTimeSolution.pack``; the equations are those of the problem."""
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load")
    segments = []
    for number, about in enumerate(header["segments"]):
        prefix = f"{number}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        system = _unpack_system(about, own, problem)
        if isinstance(system, FourierSystem) and "tables" in own:
            steps_of_modes = _truncated_steps(own, system, about.get("rounding_step"))
            segments.append(TimeSegment(system, _unpack_trajectory(about, own, steps_of_modes)))
            continue
        steps = _legendre_steps(own)
        wanted, first = system.initial_state(), steps[0]
        if first.y_old.shape != wanted.shape or {first.y_old.dtype, first.series.dtype} != {wanted.dtype}:
            raise FileError("the states of the file do not fit its basis in space")
        segments.append(TimeSegment(system, _unpack_trajectory(about, own, steps)))
    ends = [one.trajectory.end for one in segments]
    if not segments or ends != sorted(ends):
        raise FileError("the segments of time in the file are not in order")
    return SpaceTimeSolution(segments[0].system.evolution, tuple(segments))


def _unpack_axes(about: Mapping[str, Any], arrays: Mapping[str, Array], evolution: Evolution) -> dict[str, Any]:
    bases: dict[str, Any] = {}
    for name in evolution.orders:
        axes = []
        for number, (lower, upper) in enumerate(evolution.domain.space.bounds):
            key = f"axis.{name}.{number}"
            own = {part: floats(arrays, f"{key}.{part}") for part in AXIS_ARRAYS}
            prefix = f"{key}.features."
            layer = {part.removeprefix(prefix): a for part, a in arrays.items() if part.startswith(prefix)}
            features = unpack_features(about["layers"][key], layer) if key in about["layers"] else None
            axes.append(AxisBasis((float(lower), float(upper)), features=features, **own))  # type: ignore[arg-type]
        bases[name] = tuple(axes)
    return bases


def _unpack_system(about: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem) -> SemiDiscreteSystem:
    kind = choose("kind of functions", about["kind"], dict(zip(KINDS, KINDS, strict=True)))
    flow = flow_of(problem) if kind == "tensor" and problem.obstacles else None
    weak = bool(about.get("weak", kind != "tensor"))
    evolution = evolution_form(problem, weak=weak) if flow is None else flow.evolution
    scales = dict(zip(evolution.components, map(_positive, about["scales"]), strict=True))
    if kind == "fourier":
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
            raise FileError("the problem has no reflection symmetry about its walls, as the file says it has")
        pairs = zip(space.bounds, repeats, strict=True)
        bounds = tuple((float(a), float(a + (1 + mirrored) * (b - a) / repeat)) for (a, b), repeat in pairs)
        modes = FourierBasis(bounds, highest, parities=equations.parities if mirrored else ())
        return FourierSystem(equations, modes, scales)
    if kind == "tensor":
        return TensorSystem(evolution, _unpack_axes(about, arrays, evolution), scales, weak=flow is not None)
    return Galerkin(evolution, _unpack_bases(about, arrays, evolution), scales)


def _unpack_bases(
    about: Mapping[str, Any], arrays: Mapping[str, Array], evolution: Evolution
) -> dict[str, FeatureBasis]:
    own = {name.removeprefix("features."): a for name, a in arrays.items() if name.startswith("features.")}
    features, dim = unpack_features(about["layer"], own), evolution.domain.space.dim
    points = floats(arrays, "rule.points", (None, dim))
    boundary = floats(arrays, "rule.boundary", (None, dim))
    outward = floats(arrays, "rule.outward", boundary.shape)
    rule = Rule(points, floats(arrays, "rule.weights", (len(points),)), boundary, outward)
    finer = None
    if "finer.points" in arrays:
        nodes = floats(arrays, "finer.points", (None, dim))
        finer = Rule(nodes, floats(arrays, "finer.weights", (len(nodes),)), boundary, outward)
    count = int(about["boundary_points"])
    if features.dim != dim or not 1 <= count <= MOST_BOUNDARY_POINTS:
        raise FileError(f"features of dimension {features.dim} or {count} boundary points do not fit the domain")
    bases = {}
    for name in evolution.orders:
        left = floats(arrays, f"basis.{name}.left", (len(points), None))
        constraints, rank = constraints_of(evolution, name, count), left.shape[1]
        rows = sum(len(constraint.points) for constraint in constraints)
        shapes = {"weights": (features.columns, rank), "lifting": (features.columns, rows), "lifted": (rank, rows)}
        parts: dict[str, Any] = {key: floats(arrays, f"basis.{name}.{key}", shape) for key, shape in shapes.items()}
        singular_values = floats(arrays, f"basis.{name}.singular_values", (rank,))
        bases[name] = FeatureBasis(
            features, rule, left=left, singular_values=singular_values, constraints=constraints, boundary_points=count,
            finer=finer, **parts,
        )  # fmt: skip
    return bases


def _positive(value: Any) -> float:
    if not 0 < float(value) < np.inf:
        raise FileError(f"a scale of {value!r} in the file is not positive")
    return float(value)


def _truncated_steps(
    arrays: Mapping[str, Array], system: FourierSystem, rounding: float | None
) -> tuple[TruncatedStep, ...]:
    times, tables, modes = floats(arrays, "times", (None,)), arrays["tables"], system.modes
    highest, parts, count = floats(arrays, "highest", (None, None, modes.dim)), len(system.parts), len(times) - 1
    fits = len(highest) == count >= 1 and highest.shape[1] >= 2
    if not fits or not ((highest >= 0) & (highest <= np.array(modes.highest))).all():
        raise FileError("the modes of the file do not fit its steps")
    boxes = [[replace(modes, highest=tuple(map(int, one))) for one in step] for step in highest]
    sizes = [parts * box.count for step in boxes for box in step]
    if rounding is not None:
        tables = dequantise(tables, float(rounding), sum(sizes))
    if tables.ndim != 1 or not np.iscomplexobj(tables) or not np.isfinite(tables).all():
        raise FileError("the coefficients of the file are not finite complex numbers")
    if sum(sizes) != len(tables):
        raise FileError("the coefficients of the file do not fit its modes")
    each = iter(np.split(tables, np.cumsum(sizes)[:-1]))
    steps = []
    for number, own in enumerate(boxes):
        shaped = tuple(next(each).reshape(parts, *box.shape) for box in own)
        ends = float(times[number]), float(times[number + 1])
        steps.append(TruncatedStep(*ends, modes, tuple(box.highest for box in own), shaped))
    return tuple(steps)


def _legendre_steps(arrays: Mapping[str, Array]) -> tuple[LegendreStep, ...]:
    times, series = floats(arrays, "times", (None,)), arrays["series"]
    steps, start = len(times) - 1, arrays["starts"]
    fits = series.ndim == 3 and len(series) == steps >= 1 and start.shape == series.shape[:2]
    if not fits or series.shape[2] < 2 or not (np.isfinite(series).all() and np.isfinite(start).all()):
        raise FileError("the steps of the file do not fit each other")
    rows = zip(times[:-1].tolist(), times[1:].tolist(), start, series, strict=True)
    return tuple(LegendreStep(*row) for row in rows)


def _unpack_trajectory(
    about: Mapping[str, Any], arrays: Mapping[str, Array], steps: tuple[DenseStep, ...]
) -> Trajectory:
    times, end = floats(arrays, "times", (None,)), float(about["end"])
    if not ((np.diff(times) > 0).all() and times[-2] < end <= times[-1]):
        raise FileError("the times of the file are not in order")
    events = {str(name): tuple(float(t) for t in when) for name, when in about["events"].items()}
    status = None if about["status"] is None else Status[about["status"]]
    return Trajectory((*times[:-1].tolist(), end), steps, status, str(about["detail"]), events)
