"""Pictures and pages of eigenvalues: where they lie, with their bounds, and the modes."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rannpde.domains import Domain
from rannpde.io import PathLike
from rannpde.pde.spectrum.pseudospectrum import Pseudospectrum
from rannpde.pde.spectrum.result import Mode, Spectrum, shown_eigenvalue
from rannpde.plotting.document import scrolling_table, write_summary
from rannpde.plotting.figures import HEADING, canvas, component, draw_map, finished
from rannpde.plotting.style import COLOURS, style
from rannpde.plotting.typeset import inline_equation
from rannpde.plotting.view import Panel, View, span

SHOWN_MODES = 12
"""Modes that a picture shows."""
SHOWN_PROFILES = 6
"""Modes on an interval that are drawn into one panel."""


def plot_spectrum(spectrum: Spectrum, path: PathLike | None = None) -> Figure:
    """On an interval the eigenvalues on the left and modes on the right; elsewhere a map of each mode."""
    domain = spectrum.stated.domain
    with style():
        figure = _profiles(spectrum, domain) if domain.dim == 1 else _maps(spectrum, domain)
        name = spectrum.stated.name or f"Eigenvalues {inline_equation(spectrum.stated.eigenvalue)}"
        ended = "" if spectrum.converged else "\nDID NOT CONVERGE"
        figure.suptitle(f"{name}: {spectrum.wanted}{ended}", fontsize=HEADING)
        return finished(figure, path)


def _profiles(spectrum: Spectrum, domain: Domain) -> Figure:
    figure, axes = canvas(1, 2, width=4.4, height=3.4)
    _values(spectrum, axes[0, 0])
    right = axes[0, 1]
    line = span(domain, 0, 600)[:, None]
    for number, mode in enumerate(spectrum.modes[:SHOWN_PROFILES]):
        values = np.reshape(mode(line), (len(line), -1))[:, 0]
        colour = COLOURS[number % len(COLOURS)]
        right.plot(line[:, 0], values.real, color=colour, label=f"{number + 1}")
        if np.iscomplexobj(values):
            right.plot(line[:, 0], values.imag, color=colour, linestyle="--", linewidth=0.9)
    right.set_xlabel(inline_equation(domain.names[0]))
    right.set_ylabel(f"modes {inline_equation(spectrum.fields[0])}")
    right.legend(ncols=2, title="real, dashed imaginary" if any(m.imaginary for m in spectrum.modes) else None)
    return figure


def _values(spectrum: Spectrum, axes: Axes) -> None:
    name = inline_equation(spectrum.stated.eigenvalue)
    values = np.asarray(spectrum.values)
    if np.iscomplexobj(values):
        axes.plot(values.real, values.imag, "o")
        axes.axhline(0.0, color="#888888", linewidth=0.8)
        axes.axvline(0.0, color="#888888", linewidth=0.8)
        axes.set(xlabel=f"real part of {name}", ylabel="imaginary part")
    else:
        axes.errorbar(np.arange(1, len(values) + 1), values, spectrum.bounds, fmt="o", capsize=3)
        axes.set(xlabel="number", ylabel=name)


def _maps(spectrum: Spectrum, domain: Domain) -> Figure:
    modes = spectrum.modes[:SHOWN_MODES]
    columns = min(len(modes), 3 if len(modes) <= 6 else 4)
    rows = -(-len(modes) // columns)
    view = View.of(domain, (0, 1))
    figure, axes = canvas(rows, columns, width=3.2, height=2.8)
    for number, ax in enumerate(axes.ravel()):
        if number >= len(modes):
            ax.remove()
            continue
        mode = modes[number]
        label = f"{inline_equation(spectrum.stated.eigenvalue)} = {_short(mode)}"
        draw_map(figure, ax, view, Panel(label, component(mode.function, 0)))
    return figure


def _short(mode: Mode) -> str:
    value = mode.value
    return f"{value:.8g}" if not isinstance(value, complex) else f"{value.real:.6g} {value.imag:+.6g}i"


def write_spectrum_page(spectrum: Spectrum, path: PathLike, command: str = "") -> Path:
    """A page without scripts: statement, eigenvalues with bounds, picture, report."""
    eigenvalues = zip(spectrum.values, spectrum.bounds, spectrum.multiplicities, strict=True)
    rows = [
        (str(k), escape(shown_eigenvalue(value)), f"{bound:.1e}", str(several))
        for k, (value, bound, several) in enumerate(eigenvalues, start=1)
    ]
    counted = spectrum.counted
    told = f"<p>{escape(counted[0].upper() + counted[1:])}.</p>" if counted else ""
    numbers = told + scrolling_table(("", "eigenvalue", "bound", "multiplicity"), rows)
    return write_summary(spectrum, path, plot_spectrum(spectrum), tables=numbers, command=command)


def plot_pseudospectrum(pseudospectrum: Pseudospectrum, path: PathLike | None = None) -> Figure:
    """Contours of the distance σ_min in powers of ten; eigenvalues as dots."""
    with style():
        figure, axes = canvas(1, 1, width=5.6, height=4.2)
        ax = axes[0, 0]
        levels = np.log10(np.maximum(pseudospectrum.distances, 1e-300))
        drawn = ax.contour(pseudospectrum.real, pseudospectrum.imaginary, levels, levels=9, cmap="viridis")
        figure.colorbar(drawn, ax=ax, label=r"$\log_{10}$ of the smallest singular value")
        values, real, imaginary = pseudospectrum.values, pseudospectrum.real, pseudospectrum.imaginary
        inside = (values.real >= real[0]) & (values.real <= real[-1])
        inside &= (values.imag >= imaginary[0]) & (values.imag <= imaginary[-1])
        ax.plot(values.real[inside], values.imag[inside], ".", color="black", label="eigenvalues")
        ax.set(xlabel="real part", ylabel="imaginary part")
        ax.legend()
        figure.suptitle(f"Pseudospectra: {pseudospectrum.title}", fontsize=HEADING)
        return finished(figure, path)
