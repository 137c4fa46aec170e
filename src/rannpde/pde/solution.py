"""What ``solve`` gives back: a function with derivatives, and everything needed to judge it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.errors import FileError, InputError, finite_points
from rannpde.network import storage
from rannpde.network.features import multi_index
from rannpde.network.network import pack_features, unpack_features
from rannpde.pde.collocation.attempt import Attempt
from rannpde.pde.collocation.newton import Iteration
from rannpde.pde.collocation.pieces import Piece, PiecewiseNetwork
from rannpde.pde.problem.problem import Problem

if TYPE_CHECKING:
    from rannpde.pde.lines.evolved import Evolved

Array = np.ndarray


class ConvergenceWarning(UserWarning):
    """A solve that did not converge, or whose residual shows that it solved little."""


class Report(str):
    """Text that prints itself in an interpreter."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class Solution:
    """Fields on a domain. Call it for values (M, fields), or (M,) for a single field.

    converged, reason : how the iteration ended
    history : residual norm, step, damping, rank and condition of every Gauss–Newton step
    losses : name → mean square on the collocation points, the sums of the paper's PINN loss
    integrals : name → loss × measure of the region, J_PDE for equations
    held_out : name → relative residual on fresh points (see ``held_out_residual``)
    tried : what the choice of scale and width compared: (label, largest held-out residual)
    seconds, linear_seconds : total time, and the part inside orthogonal factorisations
    estimate : estimated relative L² error over space-time, where the method gives one (the method of lines does)
    notes : further lines of the report
    """

    problem: Problem | None
    fields: tuple[str, ...]
    network: PiecewiseNetwork | Evolved
    converged: bool
    reason: str
    history: tuple[Iteration, ...]
    losses: Mapping[str, float]
    integrals: Mapping[str, float]
    held_out: Mapping[str, float]
    tried: tuple[tuple[str, float], ...]
    seconds: float
    linear_seconds: float
    label: str = ""
    estimate: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def dim(self) -> int:
        return self.network.dim

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """∂^α at points (M, n): (M,) for a single field, (M, fields) otherwise."""
        points = finite_points("points", points, self.dim)
        values = self.network.derivative(points, multi_index(derivative, self.dim))
        return values[:, 0] if len(self.fields) == 1 else values

    def field(self, name: str, points: Array) -> Array:
        """The values (M,) of one field."""
        if name not in self.fields:
            raise InputError(f"no field {name!r}; fields: {', '.join(self.fields)}")
        return self.network.derivative(finite_points("points", points, self.dim), (0,) * self.dim)[
            :, self.fields.index(name)
        ]

    def residual(self, points: Array) -> dict[str, Array]:
        """Equation name → residual (M,)."""
        return self._problem().residual(self.network, points)

    def errors(self, count: int = 4000, rng: int = 7) -> dict[str, float]:
        """Field → relative L² error on fresh uniform points, where the problem knows an exact solution."""
        problem = self._problem()
        if problem.exact_solution is None:
            return {}
        points = problem.domain.sample(count, rng=rng)
        wanted, found = problem.exact_solution(points), self.network(points)
        norms = np.linalg.norm(wanted, axis=0)
        errors = np.linalg.norm(found - wanted, axis=0) / np.where(norms > 0, norms, 1.0)
        return dict(zip(self.fields, errors.tolist(), strict=True))

    @property
    def score(self) -> float:
        """The largest relative held-out residual."""
        return max(self.held_out.values())

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of the features of each piece."""
        return self.network.widths

    def report(self) -> Report:
        """A page of text: how it ended, losses by name, rank and condition, what was tried, errors where known."""
        verdict = "converged" if self.converged else "DID NOT CONVERGE"
        title = self.problem.name if self.problem is not None and self.problem.name else ", ".join(self.fields)
        lines = [
            f"{title}: {verdict} ({self.reason})",
            f"  {self.label}; columns {sum(self.widths)} in {len(self.widths)} piece(s)",
        ]
        lines.append(f"  {'term':<24}{'loss':>12}{'integral':>12}{'held out':>12}")
        for name, loss in self.losses.items():
            held = f"{self.held_out[name]:12.2e}" if name in self.held_out else f"{'':>12}"
            lines.append(f"  {name:<24}{loss:12.2e}{self.integrals.get(name, loss):12.2e}{held}")
        if self.history:
            last = self.history[-1]
            lines.append(f"  {len(self.history)} step(s), rank {last.rank}, condition {last.condition:.1e}")
        lines += [f"  tried {label}: {score:.2e}" for label, score in self.tried]
        lines += [f"  {note}" for note in self.notes]
        if self.estimate is not None:
            lines.append(f"  estimated relative L² error: {self.estimate:.2e}")
        if self.problem is not None:
            lines += [f"  relative L² error of {name}: {error:.2e}" for name, error in self.errors().items()]
        lines.append(f"  {self.seconds:.2f} s, of which {self.linear_seconds:.2f} s in orthogonal factorisations")
        return Report("\n".join(lines))

    def to_arrays(self, resolution: int = 64) -> dict[str, Array]:
        """Coordinates (1-D arrays) and fields on a tensor grid of the bounding box, NaN outside the domain."""
        domain = self._problem().domain
        axes = [np.linspace(lower, upper, resolution) for lower, upper in domain.bounds]
        if resolution**domain.dim > 2**24:
            raise InputError(
                f"resolution is {resolution}, too fine for {domain.dim}-D; at most {int(2 ** (24 / domain.dim))}"
            )
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        values = np.where(domain.contains(grid)[:, None], self.network(grid), np.nan)
        shape = (resolution,) * domain.dim
        arrays = dict(zip(domain.names, axes, strict=True))
        return arrays | {name: values[:, k].reshape(shape) for k, name in enumerate(self.fields)}

    def to_xarray(self, resolution: int = 64) -> Any:
        """The same as an xarray.Dataset, where xarray is installed."""
        try:
            import xarray  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise InputError("to_xarray needs the package xarray; install it, or use to_arrays()") from None
        arrays = self.to_arrays(resolution)
        names = self._problem().domain.names
        return xarray.Dataset({n: (names, arrays[n]) for n in self.fields}, coords={n: arrays[n] for n in names})

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The picture for the dimension (profiles and a space-time map, panels, slices), with error where known.

        Returns a matplotlib Figure; with ``path`` it is also written there.
        """
        from rannpde.plotting import (
            plot_solution,
        )  # the one import of pictures below the studies, named in the layering test

        return plot_solution(self, path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """One file that ``load_solution`` reads back; the problem goes with it when it is made of text."""
        from rannpde.pde.problem.toml import describe  # files build solutions too

        parts, arrays = _pack(self.network)
        header: dict[str, Any] = {"fields": list(self.fields), **parts}
        header["problem"] = None if self.problem is None else describe(self.problem)
        header["facts"] = {
            "converged": self.converged, "reason": self.reason, "label": self.label, "losses": dict(self.losses),
            "integrals": dict(self.integrals), "held_out": dict(self.held_out),
            "tried": [list(one) for one in self.tried],
            "seconds": self.seconds, "linear_seconds": self.linear_seconds,
            "history": [[i.norm, i.step, i.damping, i.rank, i.condition] for i in self.history],
            "estimate": self.estimate, "notes": list(self.notes),
        }  # fmt: skip
        return storage.write(path, "solution", header, arrays)

    def _problem(self) -> Problem:
        if self.problem is None:
            raise InputError("this solution was read from a file without its problem; pass problem=… to load_solution")
        return self.problem


def load_solution(path: str | os.PathLike[str], problem: Problem | None = None) -> Solution:
    """The solution in that file. Its problem is rebuilt from the file when it was made of text, or may be given."""
    from rannpde.pde.problem.toml import problem_from

    _, header, arrays = storage.read(path, "solution")
    try:
        facts = dict(header["facts"])
        history = tuple(Iteration(*row) for row in facts.pop("history"))
        tried = tuple((str(label), float(score)) for label, score in facts.pop("tried"))
        if problem is None and header["problem"] is not None:
            problem = problem_from(header["problem"])
        notes = tuple(str(note) for note in facts.pop("notes", ()))
        network = _unpack(header, arrays, problem)
        return Solution(problem, tuple(header["fields"]), network, history=history, tried=tried, notes=notes, **facts)
    except FileError:
        raise
    except (InputError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FileError(f"{path} does not hold a consistent solution: {error}") from None


def _pack(network: PiecewiseNetwork | Evolved) -> tuple[dict[str, Any], dict[str, Array]]:
    if not isinstance(network, PiecewiseNetwork):
        from rannpde.pde.lines.files import pack_evolved  # the lines build solutions too

        return pack_evolved(network)
    layers: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for number, (piece, coefficients) in enumerate(zip(network.pieces, network.coefficients, strict=True)):
        layer, parts = pack_features(piece.features)  # type: ignore[arg-type]
        layers.append(layer)
        parts |= {"bounds": piece.bounds, "coefficients": coefficients}
        arrays |= {f"{number}.{name}": array for name, array in parts.items()}
    return {"pieces": layers}, arrays


def _unpack(
    header: Mapping[str, Any], arrays: Mapping[str, Array], problem: Problem | None
) -> PiecewiseNetwork | Evolved:
    if "stretches" in header:
        from rannpde.pde.lines.files import unpack_evolved

        return unpack_evolved(header, arrays, problem)
    pieces, coefficients = [], []
    for number, layer in enumerate(header["pieces"]):
        own = {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith(f"{number}.")}
        pieces.append(Piece(own["bounds"], unpack_features(layer, own)))
        coefficients.append(own["coefficients"])
    return PiecewiseNetwork(tuple(pieces), tuple(coefficients))


def solution_of(problem: Problem, best: Attempt, others: Sequence[Attempt], seconds: float) -> Solution:
    """The solution of the best attempt, with what was compared."""
    losses = {name: total / count for name, (total, count) in best.losses.items()}
    measures: dict[str, float] = {}
    for term in problem.terms:
        measures[term.name] = measures.get(term.name, 0.0) + term.measure
    integrals = {name: loss * measures.get(name, 1.0) for name, loss in losses.items()}
    attempts = [best, *others]
    return Solution(
        problem, problem.fields, best.network, best.outcome.converged, best.outcome.reason, best.outcome.history,
        losses, integrals, best.held_out, tuple((one.label, one.score) for one in others) if others else (),
        seconds, sum(one.outcome.solve_seconds for one in attempts), best.label,
    )  # fmt: skip
