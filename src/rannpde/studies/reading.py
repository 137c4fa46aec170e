"""A study from a TOML file. Everything in the file is data: names are looked up in the tables below.

    name = "my-study"
    widths = [16, 32, 64]
    seeds = 3
    penalty = 1e-6

    [problem]
    kind = "formula"
    expression = "exp(-t) * sin(pi * x1)"

    [features]
    scale = 5.0

    [[curves]]
    label = "tanh"
    features.activation = "tanh"

A curve's table changes single parameters of the study's. ``preset = "porous-medium"`` starts from a study of the paper.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rannpde.errors import FileError, InputError, choose, reject, suggestion
from rannpde.pde.zoo.travelling_wave import TravellingWave
from rannpde.studies.catalogue import CHAPTERS
from rannpde.studies.formula import Formula
from rannpde.studies.layer import Layer
from rannpde.studies.problems import GaussianBump, NavierStokes, PorousMedium, Problem
from rannpde.studies.study import Curve, Sampling, Study

T = TypeVar("T")

PROBLEMS: dict[str, type] = {
    "porous-medium": PorousMedium,
    "navier-stokes": NavierStokes,
    "gaussian-bump": GaussianBump,
    "formula": Formula,
}
LARGEST_FILE = 2**20


def read_study(path: str | Path) -> Study:
    """The study in that file; FileError or InputError that names the file and what is wrong in it."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"study file {path} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST_FILE:
        raise FileError(f"study file {path} has {len(data)} bytes, more than {LARGEST_FILE}; this is no study")
    try:
        content = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"study file {path} is not a TOML file: {error}") from None
    try:
        return parse_study(content, path.stem)
    except InputError as error:
        raise InputError(f"study file {path}: {error}") from None


def parse_study(content: Mapping[str, Any], default_name: str = "study") -> Study:
    """The study that a table describes."""
    known = ("preset", "name", "title", "problem", "features", "sampling", "penalty", "widths", "seeds", "curves")
    _refuse_unknown("the study", content, known)
    base = None if "preset" not in content else choose("preset", content["preset"], CHAPTERS)("default").study
    if base is None and ("problem" not in content or "widths" not in content):
        missing = "problem" if "problem" not in content else "widths"
        raise InputError(f"{missing} is missing; give it, or start from a preset: {', '.join(sorted(CHAPTERS))}")
    changes: dict[str, Any] = {key: content[key] for key in ("penalty", "widths", "title") if key in content}
    changes["name"] = content.get("name", default_name)
    changes["problem"] = _problem(content.get("problem", {}), base.problem if base else None)
    changes["features"] = _changed("features", base.features if base else Layer(), content.get("features", {}))
    changes["sampling"] = _changed("sampling", base.sampling if base else Sampling(), content.get("sampling", {}))
    if "seeds" in content:
        seeds = content["seeds"]
        changes["seeds"] = tuple(range(seeds)) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    study = Study(**changes) if base is None else replace(base, **changes, curves=_kept_curves(base, content))
    curves = content.get("curves", [])
    if not isinstance(curves, list) or not all(isinstance(table, Mapping) for table in curves):
        reject("curves", curves, "a list of tables", "write [[curves]]")
    return replace(study, curves=tuple(_curve(table, study) for table in curves)) if curves else study


def _kept_curves(base: Study, content: Mapping[str, Any]) -> tuple[Curve, ...]:
    """The preset's curves, without what the file sets for all of them."""
    overridden: dict[str, Any] = {key: None for key in ("features", "sampling", "penalty", "widths") if key in content}
    if "problem" in content:
        return ()
    return tuple(replace(curve, **overridden) for curve in base.curves)


def _curve(table: Mapping[str, Any], study: Study) -> Curve:
    _refuse_unknown("a curve", table, ("label", "problem", "features", "sampling", "penalty", "widths"))
    if "label" not in table:
        raise InputError('a curve has no label; give it one, e.g. label = "scale 3"')
    changes: dict[str, Any] = {key: table[key] for key in ("label", "penalty", "widths") if key in table}
    if "problem" in table:
        changes["problem"] = _problem(table["problem"], study.problem)
    for key in ("features", "sampling"):
        if key in table:
            changes[key] = _changed(key, getattr(study, key), table[key])
    return Curve(**changes)


def _problem(table: Any, base: Problem | None) -> Problem:
    """A new problem where the kind is given, else the base with changed parameters."""
    if not isinstance(table, Mapping):
        reject("problem", table, "a table", 'write [problem] and kind = "…"')
    rest = {key: value for key, value in table.items() if key != "kind"}
    if "kind" not in table:
        if base is None:
            raise InputError(f"problem has no kind; known: {', '.join(sorted(PROBLEMS))}")
        return _changed("problem", base, rest)
    kind = choose("kind of the problem", table["kind"], PROBLEMS)
    if "wave" in rest:
        rest["wave"] = _changed("problem.wave", TravellingWave(), rest["wave"])
    return _built("problem", kind, rest)


def _changed(where: str, base: T, table: Any) -> T:
    """A copy of a frozen dataclass with the parameters of the table."""
    if not isinstance(table, Mapping):
        reject(where, table, "a table")
    current = parameters_of(base)
    nested = {
        key: _changed(f"{where}.{key}", current[key], value) if is_dataclass(current.get(key)) else value
        for key, value in table.items()
    }
    return _built(where, type(base), current | nested)


def parameters_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {f.name: getattr(value, f.name) for f in fields(value)}


def _built(where: str, kind: Any, parameters: Mapping[str, Any]) -> Any:
    _refuse_unknown(where, parameters, [f.name for f in fields(kind)])
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    try:
        return kind(**plain)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except TypeError as error:
        raise InputError(f"{where} has a parameter that is missing or of the wrong kind: {error}") from None


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Any) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{where} has {key!r}, which is unknown; {suggestion(key, known)}")
