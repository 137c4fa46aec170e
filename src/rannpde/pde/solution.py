"""The result of ``solve``: a function with derivatives, and everything needed to judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rannpde.arrays import Array, MultiIndex
from rannpde.domains.norms import relative_errors
from rannpde.errors import InputError, reject
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.export import as_jax, as_torch, in_numpy, written_as_onnx
from rannpde.network.plain import PlainFunction
from rannpde.pde.access import FieldFunction
from rannpde.pde.monitor import EndedSolve, Status
from rannpde.pde.packing import packed_solution
from rannpde.pde.problem.components import vector_fields
from rannpde.pde.problem.problem import Problem
from rannpde.pde.report import History, report_lines, summary
from rannpde.pde.tables import Grid, as_dataframe, as_pyvista, as_xarray, grid_arrays, named_values

if TYPE_CHECKING:
    import pandas
    import pyvista
    import torch
    import xarray
    from matplotlib.figure import Figure

    from rannpde.pde.outputs.quantity import Quantity
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


@dataclass(frozen=True)
class Choice:
    """The method that ran (``name``), its discretisation (``label``), and why it was chosen."""

    name: str
    label: str
    why: str

    def __str__(self) -> str:
        return f"{self.label} ({self.why})"


@dataclass(frozen=True, eq=False, repr=False)
class Solution(EndedSolve):
    """Fields on a domain. Call it for values (M, fields), or (M,) for a single field.

    function : the function itself, values always (M, fields)
    method : which method ran, and why
    status, detail : how it ended; ``converged`` and ``reason`` say it in a word and in a sentence
    estimate : estimate of the relative L² error, the largest over the fields; infinite where nothing is known
    held_out : name → relative residual on fresh points (see ``held_out_residual``)
    losses : name → mean square of the residual, the sums of the paper's PINN loss
    integrals : name → loss × measure of the region, J_PDE for equations
    history : the record of this method (iterations, history, events, …)
    second : another solution of the problem, of another resolution, with which outputs are compared; solved when it is
        needed where None
    stored : outputs that were read from a file, or computed with the solution; None has them computed
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
    second: Solution | None = field(default=None, kw_only=True, repr=False)
    stored: Mapping[str, Quantity] | None = field(default=None, kw_only=True, repr=False)

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

    def __repr__(self) -> str:
        """One line: what was solved, by which method, how it ended, how far it is from the truth by the estimate."""
        return f"<{type(self).__name__} {summary(self)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, a table of residuals, and the picture."""
        from rannpde.plotting.notebook import solution_html

        return solution_html(self)

    @property
    def as_function(self) -> FieldFunction:
        """The fields as a function of the coordinates, which all calls below go through."""
        names = tuple(self.problem.domain.names) if self.problem is not None else ()
        named = len(names) == self.function.dim  # a vector in R^d is one name for d coordinates
        groups, pairs = (self.problem.groups, self.problem.complex) if self.problem is not None else ({}, False)
        return FieldFunction.of(self.function, names if named else (), self.fields, groups, pairs)

    def __call__(self, *points: Any, **coordinates: Any) -> Array:
        """Values at points: ``solution(points)`` with rows (M, n), ``solution(0.5, 0.3)``, ``solution(t=0.5, x=x)``.

        Coordinates are broadcast against each other and give values of their shape; several fields are a last axis. A
        single argument is always points: one point as n numbers, or rows of points.

        >>> import numpy as np, rannpde as rp
        >>> problem = rp.Problem("-laplace(u) = 1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
        >>> solution = rp.solve(problem, tol=1e-4)
        >>> solution(0.5, np.linspace(0, 1, 5)).shape, solution(x=0.5, y=0.5) == solution([0.5, 0.5])
        ((5,), np.True_)
        """
        return self.as_function(*points, **coordinates)

    def __getitem__(self, name: str) -> FieldFunction:
        """One field as a function: ``solution["u"](t=0.5, x=0.3)``, ``solution["u"].derivative("u_x", points)``."""
        return self.as_function[name]

    def derivative(self, first: Any, /, *rest: Any, **named: Any) -> Array:
        """``derivative("u_x", points)``, or by multi-index ``derivative(points, (0, 1))`` of all fields.

        By name it takes points in every form that calls take. By multi-index points are rows (M, n), and the values
        (M,) for a single field, (M, fields) otherwise.
        """
        return self.as_function.derivative(first, *rest, **named)

    def at(self, **coordinates: float) -> FieldFunction:
        """The solution with some coordinates fixed: ``solution.at(t=0.5)`` is a function of space."""
        return self.as_function.at(**coordinates)

    def field(self, name: str, points: Array) -> Array:
        """The values (M,) of one field."""
        return self[name](points)

    # -------------------------------------------------------------------- quantities of interest (docs/answers.md)

    @cached_property
    def companion(self) -> Solution | None:
        """A second solution, finer and with other features, that the bounds of outputs rest on; None where it fails."""
        from rannpde.pde.outputs.companion import solve_companion
        from rannpde.pde.outputs.settings import OutputSettings

        return self.second if self.second is not None else solve_companion(self, OutputSettings())

    @cached_property
    def outputs(self) -> Mapping[str, Quantity]:
        """Name → value with a bound of its error, of the outputs that the problem states."""
        from rannpde.pde.outputs.evaluate import all_outputs

        return self.stored if self.stored is not None else all_outputs(self)

    def integral(self, expression: Any, on: Any = None, t: Any = None) -> Quantity:
        """∫ of an expression, such as ``"dn(u)"`` on a side, with a bound of its error.

        on : None for the domain; a side or several, a shape inside, or the two ends of a line
        t : a time of a problem in time, or several for a time series; None integrates over time too
        """
        from rannpde.pde.outputs.evaluate import asked_integral

        return asked_integral(self, expression, on, t)

    def mean(self, expression: Any, on: Any = None, t: Any = None) -> Quantity:
        """The mean of an expression over a region, as ``integral``."""
        from rannpde.pde.outputs.evaluate import compared, integral

        return integral(compared(self), expression, on, t, mean=True)

    def maximum(self, expression: Any, on: Any = None, t: Any = None) -> Quantity:
        """The largest value of an expression in a region, as ``integral``; ``location`` says where it is."""
        from rannpde.pde.outputs.evaluate import compared, extremum

        return extremum(compared(self), expression, 1.0, on, t)

    def minimum(self, expression: Any, on: Any = None, t: Any = None) -> Quantity:
        """The smallest value of an expression in a region, as ``maximum``."""
        from rannpde.pde.outputs.evaluate import compared, extremum

        return extremum(compared(self), expression, -1.0, on, t)

    def probe(self, points: Any, expression: Any = None, t: Any = None) -> Quantity:
        """The values (M,) of an expression at points (M, n), each with a bound; one point gives one number."""
        from rannpde.pde.outputs.evaluate import compared, probe

        return probe(compared(self), points, expression, t)

    def first_time(self, equation: Any) -> Quantity:
        """The first time at which an equation in values at points holds, such as ``"u(0.5, 0.5) = 1"``."""
        from rannpde.pde.outputs.evaluate import compared, first_time

        return first_time(compared(self), equation)

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
        return Report("\n".join(report_lines(self)))

    def to_arrays(self, grid: Grid = 64) -> dict[str, Array]:
        """Coordinates (1-D arrays) and fields on a tensor grid, NaN outside the domain.

        grid : points along every coordinate over the bounding box; a number for each; or name → number, or points
        """
        axes, fields = grid_arrays(self, grid)
        return axes | fields

    def to_xarray(self, grid: Grid = 64) -> xarray.Dataset:
        """Values on a grid as an xarray.Dataset, if that is installed; ``grid={"t": [0.1, 0.2], "x": 200}`` chooses."""
        return as_xarray(self, grid)

    def to_dataframe(self, grid: Grid = 64) -> pandas.DataFrame:
        """Values on a grid as a pandas.DataFrame, a row for each point inside the domain, where pandas is installed."""
        return as_dataframe(self, grid)

    def to_pyvista(self, resolution: int = 64, time: float | None = None) -> pyvista.UnstructuredGrid:
        """The fields on triangles or tetrahedra that follow the boundary, as a pyvista.UnstructuredGrid.

        resolution : cells along the longest side; time : the time that is shown, the last unless given
        """
        return as_pyvista(self, resolution, time)

    @property
    def vector(self) -> tuple[str, ...]:
        """The fields that are the components of a vector: the first d, if an equation contains ∂_x u and ∂_y v … of
        them.

        These are velocities by their divergence, or displacements by the balance of forces; empty where there are none.
        """
        return () if self.problem is None else vector_fields(self.problem, self.fields)

    def to_vtk(self, path: PathLike, resolution: int = 64, times: Sequence[float] | None = None) -> Path:
        """A ``.vtu`` file for ParaView: triangles or tetrahedra that follow the boundary, with all fields.

        resolution : cells along the longest side; times : times of a problem in time, eleven unless given, one file
        each, listed in a ``.pvd`` file. Gives back the path of the file to open. Needs the extra ``rannpde[geometry]``.
        """
        from rannpde.domains.export.vtk import write_vtk  # the extra loads when it is wanted

        return write_vtk(path, self.stated.domain, partial(named_values, self), resolution, times)

    def to_numpy(self, path: PathLike | None = None) -> PlainFunction:
        """The fields in plain NumPy, as a function of points (M, n); with ``path`` also as a ``.py`` file.

        Networks, cells and lines in random features can be exported, all of them sums of features; an InputError says
        why another function cannot.
        """
        return in_numpy(self._plain(), path)

    def to_torch(self) -> torch.nn.Module:
        """The fields as a torch.nn.Module in double precision, differentiable by autograd; needs torch."""
        return as_torch(self._plain())

    def to_jax(self) -> Callable[[Any], Any]:
        """The fields as a function of JAX for jit, grad and vmap; needs jax with 64 bits enabled."""
        return as_jax(self._plain())

    def to_onnx(self, path: PathLike) -> Path:
        """The fields as an ``.onnx`` file with the input ``points`` (M, n) and the output ``values``; needs onnx."""
        return written_as_onnx(self._plain(), path)

    def _plain(self) -> PlainFunction:
        export = getattr(self.function, "plain", None)
        if export is None:
            kind = type(self.function).__name__
            reject("solution", f"a {kind}", "a sum of features", "solve with method='cells' to export it")
        plain: PlainFunction = export(len(self.fields) == 1)
        return plain

    def stability(self, count: int = 6, **settings: Any) -> Spectrum:
        """Growth rates σ of perturbations w exp(σt) of a stationary solution, the fastest first, with bounds.

        settings : algebraic, near, tol, seconds, rng, progress, as in ``rannpde.pde.spectrum.stability``
        """
        home = import_module("rannpde.pde.spectrum.stability")  # what stands above solutions loads when it is asked for
        spectrum: Spectrum = home.stability(self.stated, self.function, count, **settings)
        return spectrum

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

    def save(self, path: PathLike, exact: bool = False) -> Path:
        """One file that ``rp.load`` reads back; the problem goes with it when it is made of text.

        Large tables of Fourier modes are rounded to a twentieth of the estimated error, which makes files many times
        smaller; ``exact=True`` keeps every bit.
        """
        header, arrays = self.pack(exact)
        return storage.write(path, "solution", header, arrays)

    def pack(self, exact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of that file."""
        return packed_solution(self, exact)
