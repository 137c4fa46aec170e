"""Evolved solutions as named arrays and a JSON header, and back; the problem itself travels as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import DenseOutput

from rannpde.errors import FileError
from rannpde.network.network import pack_features, unpack_features
from rannpde.pde.lines.basis import Basis, Rule
from rannpde.pde.lines.boundary import constraints_of
from rannpde.pde.lines.evolved import Evolved, Stretch
from rannpde.pde.lines.fourier import Modes, Spectral
from rannpde.pde.lines.galerkin import Galerkin
from rannpde.pde.lines.march import Path
from rannpde.pde.lines.passes import BOUNDARY_POINTS
from rannpde.pde.lines.radau import Polynomial
from rannpde.pde.problem.evolution import Evolution, evolution_form
from rannpde.pde.problem.problem import Problem

Array = np.ndarray

FOREIGN_DEGREE = 9
"""Degree of the polynomial that stands in the file for a step of an integrator of SciPy's (theirs have degree ≤ 7)."""
_BASIS_ARRAYS = ("weights", "lifting", "lifted", "left", "singular_values")
_RULE_ARRAYS = ("points", "weights", "boundary", "outward")


def pack_evolved(solution: Evolved) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a solution."""
    header: dict[str, Any] = {"stretches": []}
    arrays: dict[str, Array] = {}
    for number, stretch in enumerate(solution.stretches):
        about, own = _pack_system(stretch.system)
        own |= _pack_path(stretch.path)
        header["stretches"].append(about | {"reason": stretch.path.reason, "evaluations": stretch.path.evaluations})
        arrays |= {f"{number}.{name}": array for name, array in own.items()}
    return header, arrays


def unpack_evolved(header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None) -> Evolved:
    """The inverse of ``pack_evolved``; the equations are those of the problem."""
    if problem is None:
        raise FileError("the file holds no problem made of text; pass problem=… to load_solution")
    stretches = []
    for number, about in enumerate(header["stretches"]):
        prefix = f"{number}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        stretches.append(Stretch(_unpack_system(about, own, problem), _unpack_path(about, own)))
    return Evolved(stretches[0].system.evolution, tuple(stretches))


def _pack_system(system: Galerkin | Spectral) -> tuple[dict[str, Any], dict[str, Array]]:
    scales = [system.scales[component] for component in system.evolution.components]
    if isinstance(system, Spectral):
        return {"kind": "modes", "highest": system.modes.highest, "scales": scales}, {}
    first = next(iter(system.bases.values()))
    layer, arrays = pack_features(first.features)  # type: ignore[arg-type]
    arrays = {f"features.{name}": array for name, array in arrays.items()}
    arrays |= {f"rule.{name}": getattr(first.rule, name) for name in _RULE_ARRAYS}
    for field, basis in system.bases.items():
        arrays |= {f"basis.{field}.{name}": getattr(basis, name) for name in _BASIS_ARRAYS}
    weak = any(rate.flux for rate in system.evolution.rates.values())
    return {"kind": "features", "layer": layer, "weak": weak, "scales": scales}, arrays


def _unpack_system(about: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem) -> Galerkin | Spectral:
    evolution = evolution_form(problem, weak=bool(about.get("weak", True)))
    scales = dict(zip(evolution.components, (float(s) for s in about["scales"]), strict=True))
    if about["kind"] == "modes":
        bounds = tuple((float(lower), float(upper)) for lower, upper in evolution.domain.space.bounds)
        return Spectral(evolution, Modes(bounds, int(about["highest"])), scales)
    own = {name.removeprefix("features."): a for name, a in arrays.items() if name.startswith("features.")}
    features = unpack_features(about["layer"], own)
    rule = Rule(*(arrays[f"rule.{name}"] for name in _RULE_ARRAYS))
    bases = {name: _unpack_basis(name, features, rule, arrays, evolution) for name in evolution.orders}
    return Galerkin(evolution, bases, scales)


def _unpack_basis(name: str, features: Any, rule: Rule, arrays: Mapping[str, Array], evolution: Evolution) -> Basis:
    parts: dict[str, Any] = {key: arrays[f"basis.{name}.{key}"] for key in _BASIS_ARRAYS}
    return Basis(features, rule, constraints=constraints_of(evolution, name, BOUNDARY_POINTS), **parts)


def _pack_path(path: Path) -> dict[str, Array]:
    """Times (steps + 1,), states at the beginning of the steps (steps, n), Legendre series (steps, n, degree + 1)."""
    steps = [_polynomial(output) for output in path.outputs]
    return {
        "times": np.array(path.times),
        "starts": np.stack([step.y_old for step in steps]),
        "series": np.stack([step.series for step in steps]),
    }


def _unpack_path(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Path:
    times = tuple(float(t) for t in arrays["times"])
    rows = zip(times[:-1], times[1:], arrays["starts"], arrays["series"], strict=True)
    return Path(times, tuple(Polynomial(*row) for row in rows), str(about["reason"]), int(about["evaluations"]))


def _polynomial(output: DenseOutput) -> Polynomial:
    """A step as a Legendre series; of SciPy's integrators by interpolation, which is exact for polynomials."""
    if isinstance(output, Polynomial):
        return output
    place = np.cos(np.pi * np.arange(FOREIGN_DEGREE, -1, -1) / FOREIGN_DEGREE)
    start = output(output.t_old)
    values = output(output.t_old + 0.5 * (place + 1.0) * (output.t - output.t_old)) - start[:, None]
    series = np.linalg.solve(legendre.legvander(place, FOREIGN_DEGREE), values.T).T
    return Polynomial(output.t_old, output.t, start, series)
