"""The result of ``rp.eigen``: eigenvalues with bounds, modes that are functions, clusters, how they were computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, finite_points
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.network.features import multi_index
from rannpde.pde.monitor import EndedSolve, Status
from rannpde.pde.problem.problem import Problem
from rannpde.pde.problem.toml import to_table
from rannpde.pde.solution import Choice, Report, SolvedFunction
from rannpde.pde.spectrum.algebra import clusters

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RESIDUALS = "guaranteed by residuals in the norm of the mass (Weinstein, Kato and Temple), up to rounding"
BOUNDARY_VALUES = "guaranteed by the largest value on the boundary (Moler and Payne), up to rounding"
BOUNDARY_RESIDUALS = "estimated by what the conditions leave on the boundary"
SAMPLED_BOUNDARY = "by the largest value at points of the boundary (Moler and Payne); multiplicities by a gap"
TWO_DISCRETISATIONS = "estimated by two discretisations"
WITHIN_BOUNDS = "every bound is below the tolerance"


@dataclass(frozen=True, eq=False)
class Mode:
    """An eigenfunction. Call it for values (M, fields), or (M,) for a single field; its largest value is 1.

    value : the eigenvalue, real or complex; bound : bound of its error
    function, imaginary : real and imaginary part, the second None where the mode is real
    """

    value: complex
    bound: float
    fields: tuple[str, ...]
    function: SolvedFunction
    imaginary: SolvedFunction | None = None

    @property
    def dim(self) -> int:
        return self.function.dim

    def __call__(self, points: Array) -> Array:
        return self.derivative(points, None)

    def derivative(self, points: Array, derivative: Sequence[int] | None) -> Array:
        """∂^α at points (M, n): (M,) for a single field, (M, fields) otherwise."""
        points = finite_points("points", points, self.dim)
        index = multi_index(derivative, self.dim)
        values = self.function.derivative(points, index)
        if self.imaginary is not None:
            values = values + 1j * self.imaginary.derivative(points, index)
        return values[:, 0] if len(self.fields) == 1 else values


@dataclass(frozen=True)
class SpectrumIteration:
    """One discretisation: cells, unknowns, the largest relative error of the wanted eigenvalues, seconds so far."""

    cells: int
    unknowns: int
    estimate: float
    seconds: float

    def __str__(self) -> str:
        known = f", error {self.estimate:.1e}" if isfinite(self.estimate) else ""
        return f"{self.cells} cells, {self.unknowns} unknowns, {self.seconds:.2f} s{known}"


@dataclass(frozen=True, eq=False)
class Spectrum(EndedSolve):
    """Eigenvalues of a problem in the order in which they were asked for, with bounds and modes.

    values (K,) : real where all are, complex otherwise; bounds (K,) : of their errors
    modes : eigenfunctions, in the same order
    wanted : which were asked for, in words; counted : how it was made sure that none is missing
    status, detail : how it ended; tol : the relative error that was asked for
    assurance : what the bounds rest on: residuals of self-adjoint problems, or two discretisations

    >>> import rannpde as rp
    >>> string = rp.Problem("-u_xx = lam*u", rp.Interval(0, 1), {"boundary": "u = 0"}, eigenvalue="lam")
    >>> spectrum = rp.eigen(string, count=3)
    >>> (spectrum.values / np.pi**2).round(9).tolist(), spectrum.converged
    ([1.0, 4.0, 9.0], True)
    >>> float(abs(spectrum.modes[0](np.array([[0.5]]))[0]).round(9))
    1.0
    """

    problem: Problem | None
    fields: tuple[str, ...]
    values: Array
    bounds: Array
    modes: tuple[Mode, ...]
    wanted: str
    counted: str
    method: Choice
    status: Status
    detail: str
    tol: float
    scale: float
    iterations: tuple[SpectrumIteration, ...]
    seconds: float
    assurance: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __getitem__(self, number: int) -> Mode:
        return self.modes[number]

    @property
    def stated(self) -> Problem:
        """The problem; an InputError where the spectrum was read from a file that could not store it."""
        if self.problem is None:
            raise InputError("this spectrum was read from a file without its problem; pass problem=… to load")
        return self.problem

    @property
    def title(self) -> str:
        return self.problem.name if self.problem is not None and self.problem.name else ", ".join(self.fields)

    @cached_property
    def clusters(self) -> tuple[tuple[int, ...], ...]:
        """Positions of eigenvalues that cannot be distinguished: they differ by less than their bounds, or ``tol``."""
        reach = max(self.tol, float(np.max(self.bounds / np.maximum(np.abs(self.values), self.scale), initial=0.0)))
        reach = reach if isfinite(reach) else self.tol
        return tuple(tuple(map(int, group)) for group in clusters(self.values, 2 * reach, self.scale))

    @property
    def multiplicities(self) -> tuple[int, ...]:
        """For each eigenvalue, the number of those that cannot be distinguished from it, itself included."""
        sizes = {member: len(group) for group in self.clusters for member in group}
        return tuple(sizes[k] for k in range(len(self)))

    def report(self) -> Report:
        """A page of text: how it ended, every eigenvalue with its bound, clusters, iterations."""
        verdict = "converged" if self.converged else "DID NOT CONVERGE"
        lines = [f"{self.title}: {verdict} ({self.reason})", f"  {self.method}; {self.wanted}"]
        lines += [f"  {self.counted}"] if self.counted else []
        lines += [f"  bounds: {self.assurance}"] if self.assurance else []
        head = "eigenvalue" if self.problem is None else self.problem.eigenvalue
        lines.append(f"  {'':<4}{head:<46}{'bound':>10}  multiplicity")
        for k, (value, bound) in enumerate(zip(self.values, self.bounds, strict=True)):
            lines.append(f"  {k + 1:<4}{shown_eigenvalue(value):<46}{bound:>10.1e}  {self.multiplicities[k]}")
        lines += [f"  iteration {number}: {one}" for number, one in enumerate(self.iterations, start=1)]
        lines.append(f"  {self.seconds:.2f} s")
        return Report("\n".join(lines))

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, every eigenvalue with its bound, and the picture."""
        from rannpde.plotting.notebook import spectrum_html  # loads when a notebook asks for it

        return spectrum_html(self)

    def __repr__(self) -> str:
        shown = ", ".join(shown_eigenvalue(value) for value in self.values[:6])
        return f"Spectrum({shown}{', …' if len(self) > 6 else ''})"

    def plot(self, path: PathLike | None = None) -> Figure:
        """The eigenvalues with their bounds, and the modes; written to ``path`` if given."""
        from rannpde.plotting.spectrum import plot_spectrum  # pictures load when they are wanted

        return plot_spectrum(self, path)

    def to_html(self, path: PathLike, command: str = "") -> Path:
        """One self-contained page: the problem, eigenvalues with bounds, modes, how it was made."""
        from rannpde.plotting.spectrum import write_spectrum_page

        return write_spectrum_page(self, path, command)

    def save(self, path: PathLike) -> Path:
        """One file that ``rp.load`` reads back; the problem goes with it when it is made of text."""
        header, arrays = self.pack()
        return storage.write(path, "spectrum", header, arrays)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of that file."""
        arrays: dict[str, Array] = {"values": np.asarray(self.values, dtype=complex), "bounds": self.bounds}
        modes = []
        for number, mode in enumerate(self.modes):
            parts: list[dict[str, Any]] = []
            for part, function in enumerate((mode.function, mode.imaginary)):
                if function is not None:
                    header, own = function.pack()
                    parts.append(header)
                    arrays |= {f"{number}.{part}:{name}": array for name, array in own.items()}
            modes.append(parts)
        header = {
            "fields": list(self.fields),
            "modes": modes,
            "real": not np.iscomplexobj(self.values),
            "problem": None if self.problem is None else to_table(self.problem),
            "fingerprint": None if self.problem is None else self.problem.fingerprint,
            "wanted": self.wanted,
            "counted": self.counted,
            "method": [self.method.name, self.method.label, self.method.why],
            "status": self.status.name,
            "detail": self.detail,
            "tol": self.tol,
            "scale": self.scale,
            "iterations": [
                [one.cells, one.unknowns, one.estimate if isfinite(one.estimate) else None, one.seconds]
                for one in self.iterations
            ],
            "seconds": self.seconds,
            "assurance": self.assurance,
        }
        return header, arrays


def shown_eigenvalue(value: complex) -> str:
    """Fourteen digits, real or complex."""
    if not np.iscomplexobj(value):
        return f"{float(np.real(value)):.14g}"
    return f"{value.real:.14g} {'+' if value.imag >= 0 else '-'} {abs(value.imag):.14g}i"
