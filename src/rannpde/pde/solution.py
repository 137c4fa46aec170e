"""The result of ``solve``: a function with derivatives, and everything needed to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.domains import SpaceTime
from rannpde.domains.norms import relative_errors
from rannpde.errors import InputError, choose, finite_points
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.features import multi_index
from rannpde.pde.monitor import Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.toml import to_table

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from rannpde.pde.spectrum.result import Spectrum


class ConvergenceWarning(UserWarning):
    """A solve that did not reach the wanted error."""


class Report(str):
    """Text that prints itself in an interpreter."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class SolvedFunction(Protocol):
    """The function that a method computes: all fields on the domain, with derivatives, and as arrays for a file."""

    @property
    def dim(self) -> int: ...

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of the features of each subdomain, or each time segment."""
        ...

    def __call__(self, points: Array) -> Array: ...

    def derivative(self, points: Array, derivative: MultiIndex) -> Array: ...

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]: ...


class History(Protocol):
    """The history of the method that ran: its iterations, ranks, steps, and advice."""

    @property
    def advice(self) -> str: ...

    def lines(self) -> list[str]: ...

    def to_table(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Choice:
    """The method that ran (``name``), its discretisation (``label``), and why it was chosen."""

    name: str
    label: str
    why: str

    def __str__(self) -> str:
        return f"{self.label} ({self.why})"


@dataclass(frozen=True, eq=False)
class Solution:
    """Fields on a domain. Call it for values (M, fields), or (M,) for a single field.

    function : the function itself, values always (M, fields)
    method : which method ran, and why
    status, detail : how it ended; ``converged`` and ``reason`` say it in a word and in a sentence
    estimate : of the relative L² error, the largest over the fields; infinite where nothing is known
    held_out : name → relative residual on fresh points (see ``held_out_residual``)
    losses : name → mean square of the residual, the sums of the paper's PINN loss
    integrals : name → loss × measure of the region, J_PDE for equations
    history : what only this method can tell (iterations, history, events, …)
    """

    problem: Problem | None
    fields: tuple[str, ...]
    function: SolvedFunction
    method: Choice
    status: Status
    detail: str
    estimate: float
    held_out: Mapping[str, float]
    losses: Mapping[str, float]
    integrals: Mapping[str, float]
    history: History
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether the wanted error was reached, by the estimate."""
        return self.status.converged

    @property
    def reason(self) -> str:
        """The reason for the end, in a sentence."""
        return self.detail or str(self.status)

    @property
    def dim(self) -> int:
        return self.function.dim

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of the features of each subdomain, or each time segment."""
        return self.function.widths

    @property
    def events(self) -> Mapping[str, tuple[float, ...]]:
        """Event → the times at which it happened; empty for methods without events."""
        return getattr(self.history, "events", {})

    @property
    def score(self) -> float:
        """The largest relative held-out residual."""
        return max(self.held_out.values(), default=np.inf)

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """∂^α at points (M, n): (M,) for a single field, (M, fields) otherwise."""
        points = finite_points("points", points, self.dim)
        values = self.function.derivative(points, multi_index(derivative, self.dim))
        return values[:, 0] if len(self.fields) == 1 else values

    def field(self, name: str, points: Array) -> Array:
        """The values (M,) of one field."""
        choose("field", name, dict.fromkeys(self.fields))
        values = self.function(finite_points("points", points, self.dim))
        return values[:, self.fields.index(name)]

    def residual(self, points: Array) -> dict[str, Array]:
        """Equation name → residual (M,)."""
        return self.stated.residual(self.function, points)

    def errors(self, count: int = 4000, rng: int = 7) -> dict[str, float]:
        """Return for each field the relative L² error on held-out uniform points, where an exact solution is known.

        If a time integration ended early, the error is that up to its end.
        """
        exact = self.stated.exact_solution
        if exact is None:
            return {}
        points = self.stated.domain.sample(count, rng=rng)
        values = self.function(points)
        known = np.isfinite(values).all(axis=1)  # a time integration that ended early is known up to its end
        errors = relative_errors(values[known], exact(points[known]))
        return dict(zip(self.fields, errors.tolist(), strict=True))

    @property
    def stated(self) -> Problem:
        """The problem; an InputError where the solution was read from a file that could not store it."""
        if self.problem is None:
            raise InputError("this solution was read from a file without its problem; pass problem=… to load")
        return self.problem

    @property
    def title(self) -> str:
        return self.problem.name if self.problem is not None and self.problem.name else ", ".join(self.fields)

    def report(self) -> Report:
        """A page of text: how it ended, the estimate, residuals by name, the method's history, errors where known."""
        verdict = "converged" if self.converged else "DID NOT CONVERGE"
        known = f"{self.estimate:.2e}" if isfinite(self.estimate) else "unknown"
        lines = [
            f"{self.title}: {verdict} ({self.reason})",
            f"  {self.method}; columns {sum(self.widths)} in {len(self.widths)} piece(s)",
            f"  estimated relative L² error: {known}",
        ]
        if self.problem is not None:
            lines += [f"  relative L² error of {name}: {error:.2e}" for name, error in self.errors().items()]
        lines.append(f"  {'term':<24}{'loss':>12}{'integral':>12}{'held out':>12}")
        for name in dict.fromkeys([*self.losses, *self.held_out]):
            parts = [table.get(name) for table in (self.losses, self.integrals, self.held_out)]
            shown = "".join(f"{'':>12}" if part is None else f"{part:12.2e}" for part in parts)
            lines.append(f"  {name:<24}{shown}".rstrip())
        lines += [f"  {told}" for told in self.history.lines()]
        lines.append(f"  {self.seconds:.2f} s")
        return Report("\n".join(lines))

    def to_arrays(self, resolution: int = 64) -> dict[str, Array]:
        """Coordinates (1-D arrays) and fields on a tensor grid of the bounding box, NaN outside the domain."""
        domain = self.stated.domain
        most = int(2 ** (24 / domain.dim))
        if not 2 <= resolution <= most:
            raise InputError(f"resolution is {resolution}, too fine or too coarse for {domain.dim}-D; from 2 to {most}")
        axes = [np.linspace(lower, upper, resolution) for lower, upper in domain.bounds]
        grid = combinations(axes)
        values, inside = np.full((len(grid), len(self.fields)), np.nan), domain.contains(grid)
        values[inside] = self.function(grid[inside])
        shape = (resolution,) * domain.dim
        arrays = dict(zip(domain.names, axes, strict=True))
        return arrays | {name: values[:, k].reshape(shape) for k, name in enumerate(self.fields)}

    def to_xarray(self, resolution: int = 64) -> xarray.Dataset:
        """The same as an xarray.Dataset, where xarray is installed."""
        try:
            import xarray
        except ImportError:
            raise InputError("to_xarray needs the package xarray; install it, or use to_arrays()") from None
        arrays = self.to_arrays(resolution)
        names = self.stated.domain.names
        return xarray.Dataset({n: (names, arrays[n]) for n in self.fields}, coords={n: arrays[n] for n in names})

    @property
    def vector(self) -> tuple[str, ...]:
        """The fields that are the components of a vector: the first d, if an equation contains ∂_x u and ∂_y v … of
        them.

        These are velocities by their divergence, or displacements by the balance of forces; empty where there are none.
        """
        problem = self.problem
        if problem is None:
            return ()
        timed = isinstance(problem.domain, SpaceTime)
        size = problem.domain.dim - timed
        first = self.fields[:size]
        if size < 2 or len(first) < size:
            return ()
        for term in problem.terms:
            jets = term.expression.jets if term.kind == "interior" else ()
            if all(any(j.field == n and j.index[k + timed] for j in jets) for k, n in enumerate(first)):
                return first
        return ()

    def to_vtk(self, path: PathLike, resolution: int = 64, times: Sequence[float] | None = None) -> Path:
        """A ``.vtu`` file for ParaView: triangles or tetrahedra that follow the boundary, with all fields.

        resolution : cells along the longest side; times : of a problem in time, eleven unless given, one file each,
        listed in a ``.pvd`` file. Gives back the path of the file to open. Needs the extra ``rannpde[geometry]``.
        """
        from rannpde.domains.export.vtk import write_vtk  # the extra loads when it is wanted

        def values(points: Array) -> dict[str, Array]:
            values_at = self.function(points)
            named = {name: values_at[:, k] for k, name in enumerate(self.fields)}
            vector = self.vector
            return named | ({f"({', '.join(vector)})": values_at[:, : len(vector)]} if vector else {})

        return write_vtk(path, self.stated.domain, values, resolution, times)

    def stability(self, count: int = 6, **settings: Any) -> Spectrum:
        """Growth rates σ of perturbations w exp(σt) of a stationary solution, the fastest first, with bounds.

        settings : still, near, tol, seconds, rng, progress as in ``rannpde.pde.spectrum.stability``; docs/spectrum.md
        """
        home = import_module("rannpde.pde.spectrum.stability")  # what stands above solutions loads when it is asked for
        found: Spectrum = home.stability(self.stated, self.function, count, **settings)
        return found

    def plot(self, path: PathLike | None = None) -> Figure:
        """The picture for the dimension (profiles and a space-time map, panels, slices), with error where known.

        On shapes it ends at the boundary, which is drawn; vectors are streamlines or arrows over their length.
        Returns a matplotlib Figure; with ``path`` it is also written there.
        """
        from rannpde.plotting import plot_solution  # pictures load when they are wanted; named in the layering test

        return plot_solution(self, path)

    def to_html(self, path: PathLike, command: str = "") -> Path:
        """One self-contained page, which needs no network: the problem typeset, pictures with a slider over time (in
        3-D across slices), errors or estimate, residual map, iterations, parameters, versions.

        ``command`` is shown as what made the solution. Gives back the path.

        >>> import rannpde as rp, tempfile
        >>> problem = rp.Problem("u_xx = -u", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = sin(x)")})
        >>> solution = rp.solve(problem, tol=1e-6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solution.to_html(f"{folder}/sine.html").read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from rannpde.plotting import write_page

        return write_page(self, path, command)

    def animate(self, path: PathLike, frames: int = 60, seconds: float = 5.0) -> Path:
        """A GIF of ``frames`` pictures over time (in 3-D across slices) that takes ``seconds``; gives back the path."""
        from rannpde.plotting import animate

        return animate(self, path, frames, seconds)

    def save(self, path: PathLike) -> Path:
        """One file that ``rp.load`` reads back; the problem goes with it when it is made of text."""
        header, arrays = self.pack()
        return storage.write(path, "solution", header, arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of that file."""
        function, arrays = self.function.pack()
        header = {
            "fields": list(self.fields),
            "function": function,
            "problem": None if self.problem is None else to_table(self.problem),
            "fingerprint": None if self.problem is None else self.problem.fingerprint,
            "method": [self.method.name, self.method.label, self.method.why],
            "status": self.status.name,
            "detail": self.detail,
            "estimate": self.estimate if isfinite(self.estimate) else None,
            "residuals": {key: dict(getattr(self, key)) for key in ("held_out", "losses", "integrals")},
            "history": self.history.to_table(),
            "seconds": self.seconds,
        }
        return header, arrays
