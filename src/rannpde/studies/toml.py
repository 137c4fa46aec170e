"""A study from a TOML file. Everything in the file is data: names are looked up in the tables below.

    name = "my-study"
    widths = [16, 32, 64]
    seeds = 3
    penalty = 1e-6

    [target]
    kind = "formula"
    expression = "exp(-t) * sin(pi * x1)"

    [features]
    scale = 5.0

    [[curves]]
    label = "tanh"
    features.activation = "tanh"

A curve's table changes single parameters of the study's. ``preset = "porous-medium"`` starts from a study of the paper.
Files come from strangers: sizes are bounded before anything of that size is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rannpde.errors import FileError, InputError, choose, reject, require, suggestion
from rannpde.io import PathLike, read_toml
from rannpde.pde.zoo.travelling_wave import TravellingWave
from rannpde.studies.cell import LARGEST_INTEGER, Sampling, checked_seeds
from rannpde.studies.curves import FittedCurve, MeasuredCurve, StudyCurve
from rannpde.studies.layer import Layer
from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump, NavierStokes, PorousMedium, Target, WrittenFunction

T = TypeVar("T")

TARGETS: dict[str, type] = {
    "porous-medium": PorousMedium,
    "navier-stokes": NavierStokes,
    "gaussian-bump": GaussianBump,
    "formula": WrittenFunction,
}
OWN = ("target", "features", "sampling", "penalty", "widths")
"""What a curve may set for itself."""
MOST_CURVES = 100
"""[[curves]] of a file: more lines than a figure can show."""


def read_study(path: PathLike) -> Study:
    """The study in that file; FileError or InputError that names the file and what is wrong in it."""
    content = read_toml(path)
    try:
        return parse_study(content, Path(path).stem)
    except InputError as error:
        kind = FileError if isinstance(error, FileError) else InputError
        raise kind(f"study file {path}: {error}") from None


def parse_study(content: Mapping[str, Any], default_name: str = "study") -> Study:
    """The study that a table describes."""
    _refuse_strange("", content)
    _refuse_unknown("the study", content, ("preset", "name", "title", "seeds", "curves", *OWN))
    base = None if "preset" not in content else choose("preset", content["preset"], CHAPTERS)("default").study
    for key in ("target", "widths"):
        if base is None and key not in content:
            raise InputError(f"{key} is missing; give it, or start from a preset: {', '.join(sorted(CHAPTERS))}")
    changes: dict[str, Any] = {key: content[key] for key in ("penalty", "widths", "title") if key in content}
    changes["name"] = content.get("name", default_name)
    changes["target"] = _target(content.get("target", {}), base.target if base else None)
    changes["features"] = _changed("features", base.features if base else Layer(), content.get("features", {}))
    changes["sampling"] = _changed("sampling", base.sampling if base else Sampling(), content.get("sampling", {}))
    if "seeds" in content:
        seeds = content["seeds"]
        count = isinstance(seeds, int) and not isinstance(seeds, bool)
        changes["seeds"] = checked_seeds(range(seeds) if count else seeds)
    study = Study(**changes) if base is None else replace(base, **changes, curves=_kept_curves(base, content))
    curves = content.get("curves", [])
    if not isinstance(curves, list) or not all(isinstance(table, Mapping) for table in curves):
        reject("curves", curves, "a list of tables", "write [[curves]]")
    require(len(curves) <= MOST_CURVES, "the number of curves", len(curves), f"at most {MOST_CURVES}")
    return replace(study, curves=tuple(_curve(table, study) for table in curves)) if curves else study


def _kept_curves(base: Study, content: Mapping[str, Any]) -> tuple[StudyCurve, ...]:
    """The preset's curves, without what the file sets for all of them."""
    if "target" in content:
        return ()
    overridden: dict[str, Any] = {key: None for key in OWN if key in content}
    ignored = sorted(overridden.keys() - {"widths"})
    if ignored and not any(isinstance(curve, FittedCurve) for curve in base.curves):
        remedy = "leave it out; widths can be changed"
        reject(ignored[0], content[ignored[0]], f"left out with the preset {base.name}, which sets it itself", remedy)
    unbiased: dict[str, Any] = {key: None for key in overridden if key == "widths"}  # it has nothing else of these
    curves: list[StudyCurve] = []
    for curve in base.curves:
        if not isinstance(curve, MeasuredCurve):
            curves.append(replace(curve, **(overridden if isinstance(curve, FittedCurve) else unbiased)))
        elif "widths" in content:
            curves.append(replace(curve, measurement=replace(curve.measurement, networks=content["widths"])))
        else:
            curves.append(curve)
    return tuple(curves)


def _curve(table: Mapping[str, Any], study: Study) -> FittedCurve:
    _refuse_unknown("a curve", table, ("label", *OWN))
    if "label" not in table:
        raise InputError('a curve has no label; give it one, e.g. label = "scale 3"')
    changes: dict[str, Any] = {key: table[key] for key in ("label", "penalty", "widths") if key in table}
    if "target" in table:
        changes["target"] = _target(table["target"], study.target)
    for key in ("features", "sampling"):
        if key in table:
            changes[key] = _changed(key, getattr(study, key), table[key])
    return FittedCurve(**changes)


def _target(table: Any, base: Target | None) -> Target:
    """A new target where the kind is given, else the base with changed parameters."""
    if not isinstance(table, Mapping):
        reject("target", table, "a table", 'write [target] and kind = "…"')
    rest = {key: value for key, value in table.items() if key != "kind"}
    if "kind" not in table:
        if base is None:
            raise InputError(f"target has no kind; known: {', '.join(sorted(TARGETS))}")
        return _changed("target", base, rest)
    kind: type[Any] = choose("kind of the target", table["kind"], TARGETS)
    if "wave" in rest:
        rest["wave"] = _changed("target.wave", TravellingWave(), rest["wave"])
    target: Target = _built("target", kind, rest)
    return target


def _changed(where: str, base: T, table: Any) -> T:
    """A copy of a frozen dataclass with the parameters of the table."""
    if not isinstance(table, Mapping):
        reject(where, table, "a table", f"write [{where}], once")
    current = {f.name: getattr(base, f.name) for f in fields(base)}  # type: ignore[arg-type]
    nested = {
        key: _changed(f"{where}.{key}", current[key], value) if is_dataclass(current.get(key)) else value
        for key, value in table.items()
    }
    return _built(where, type(base), current | nested)


def _built(where: str, kind: type[T], parameters: Mapping[str, Any]) -> T:
    _refuse_unknown(where, parameters, [f.name for f in fields(kind)])  # type: ignore[arg-type]
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    try:
        return kind(**plain)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (TypeError, ArithmeticError) as error:
        raise InputError(f"{where} has a parameter that is missing, of the wrong kind or too large: {error}") from None


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{where} has {key[:80]!r}, which is unknown; {suggestion(key, known)}")


def _refuse_strange(where: str, value: Any) -> None:
    """Refuse all but tables, lists, texts, truth values and numbers of ordinary size."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_strange(f"{where}.{key[:80]}".lstrip("."), item)
    elif isinstance(value, list):
        for item in value:
            _refuse_strange(f"an entry of {where}", item)
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        digits = int(value.bit_length() * 0.30103) + 1
        reject(where, f"a whole number of {digits} digits", "at most 2^53", "write a smaller one, or 1e20 for a float")
    elif not isinstance(value, (str, int, float)):
        reject(where, value, "a number, a text, true, false, a list or a table")
