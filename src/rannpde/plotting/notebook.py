"""What notebooks show of problems and solutions: equations as LaTeX; a verdict, a table and a picture as HTML."""

from __future__ import annotations

import base64
import io
from contextlib import suppress
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from rannpde.display import html_table
from rannpde.domains import Box, SpaceTime
from rannpde.errors import InputError
from rannpde.pde.inverse.identified import Identified
from rannpde.pde.problem.conditions import Condition, Data, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.report import summary
from rannpde.pde.spectrum.result import shown_eigenvalue
from rannpde.plotting.figures import save_laid_out
from rannpde.plotting.svg import greek
from rannpde.plotting.typeset import symbol, tex, typeset_equations

if TYPE_CHECKING:
    from rannpde.pde.ensembles import Ensemble
    from rannpde.pde.solution import Solution
    from rannpde.pde.spectrum.continuation.result import Continuation
    from rannpde.pde.spectrum.result import Spectrum

DOTS_PER_INCH = 100
"""Resolution of pictures in notebooks: sharp on common screens, some tens of kilobytes."""


def solution_html(solution: Solution) -> str:
    """The verdict with the estimate, what was identified, the residuals by name, and the picture."""
    known = f"{solution.estimate:.1e}" if isfinite(solution.estimate) else "unknown"
    parts = [
        _verdict(solution.title, solution.converged, solution.reason, solution.method.name, solution.seconds, known)
    ]
    if isinstance(solution, Identified):
        identified = [(greek(name), str(one)) for name, one in solution.parameters.items()]
        identified += [tuple(repr(one).split(": ", 1)) for one in solution.functions.values()]  # type: ignore[misc]
        parts.append(html_table(identified, ("unknown", "estimate")))
    rows = [(name, f"{value:.1e}") for name, value in solution.held_out.items()]
    if rows:
        parts.append(html_table(rows, ("term", "relative residual on fresh points")))
    return _framed(parts, solution)


def spectrum_html(spectrum: Spectrum) -> str:
    """The verdict, every eigenvalue with its bound and its multiplicity, and the picture."""
    parts = [_verdict(spectrum.title, spectrum.converged, spectrum.reason, spectrum.method.label, spectrum.seconds)]
    named = "eigenvalue" if spectrum.problem is None else greek(spectrum.problem.eigenvalue)
    rows = [
        (str(k), shown_eigenvalue(value), f"{bound:.1e}", str(many))
        for k, (value, bound, many) in enumerate(
            zip(spectrum.values, spectrum.bounds, spectrum.multiplicities, strict=True), start=1
        )
    ]
    parts.append(html_table(rows, ("", named, "bound of the error", "multiplicity")))
    return _framed(parts, spectrum)


def continuation_html(continuation: Continuation) -> str:
    """The verdict, folds and branch points with their errors, and the bifurcation diagram."""
    title = continuation.problem.name or ", ".join(continuation.problem.fields)
    parts = [_verdict(title, continuation.converged, continuation.reason, "continuation", continuation.seconds)]
    rows = [(one.kind, f"{one.parameter:.12g}", f"{one.bound:.1e}") for one in continuation.special]
    if rows:
        parts.append(html_table(rows, ("", greek(continuation.parameter), "bound of the error")))
    return _framed(parts, continuation)


def _verdict(title: str, converged: bool, reason: str, method: str, seconds: float, error: str = "") -> str:
    colour, verdict = ("#2e7d32", "Converged") if converged else ("#b3261e", "Did not converge")
    said = f"Estimated relative L² error <b>{error}</b>, by" if error else "By"
    return (
        f'<p><b>{escape(title)}</b>: <b style="color: {colour}">{verdict}</b> ({escape(reason)}).<br>'
        f"{said} {escape(method)} in {seconds:.2f} s.</p>"
    )


def ensemble_html(ensemble: Ensemble) -> str:
    """The members with their estimates, and the picture of mean and spread."""
    rows = [(str(k), summary(member)) for k, member in enumerate(ensemble.members, start=1)]
    return _framed([html_table(rows, ("member", ""))], ensemble)


def _framed(parts: list[str], drawn: Any) -> str:
    with suppress(InputError):  # a solution without its problem, or one that no picture suits, is shown in words
        parts.append(embedded(drawn.plot()))
    return f"<div>{''.join(parts)}</div>"


def embedded(figure: Figure) -> str:
    """A figure as an <img> that needs no file."""
    buffer = io.BytesIO()
    save_laid_out(figure, buffer, dpi=DOTS_PER_INCH)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="picture of the solution" style="max-width: 100%" src="data:image/png;base64,{data}">'


def problem_latex(problem: Problem) -> str:
    r"""Equations, domain and conditions as one block of LaTeX.

    >>> from rannpde.domains import Interval
    >>> print(problem_latex(Problem("-u_xx = pi**2*u", Interval(0, 1), {"boundary": "u = 0"})))
    $$\begin{aligned}
    &-u_{xx} = \pi^{2}\, u && x \in (0,\, 1) \\
    &u = 0 && \text{on boundary}
    \end{aligned}$$
    """
    if problem.parabolic is not None:
        lines = [rf"&\texttt{{{_plain(str(text))}}}" for text in problem.equations.values()]
        return _aligned(lines)
    equations = list(typeset_equations(problem).values())
    lines = [f"&{written}" for written in equations]
    lines[0] += f" && {_region(problem)}"
    lines += [_condition_line(condition, problem) for condition in problem.conditions.values()]
    given = [rf"{symbol(name)} = {value:.6g}" for name, value in problem.parameters.items()]
    given += [rf"{symbol(name)}\text{{ unknown}}" for name in problem.unknown]
    if given:
        lines.append("&" + r",\quad ".join(given))
    return _aligned(lines)


def _aligned(lines: list[str]) -> str:
    return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def _region(problem: Problem) -> str:
    domain = problem.domain
    space = domain.space if isinstance(domain, SpaceTime) else domain
    ends = zip(domain.names, np.asarray(domain.bounds), strict=True)
    box = r",\ ".join(rf"{symbol(name)} \in ({low:.6g},\, {high:.6g})" for name, (low, high) in ends)
    return box if isinstance(space, Box) else rf"{box},\ \text{{{_plain(type(space).__name__)}}}"


def _condition_line(condition: Condition, problem: Problem) -> str:
    if isinstance(condition, Periodic):
        named = "all fields" if condition.fields is None else ", ".join(condition.fields)
        return rf"&\text{{{_plain(named)} periodic in }} {symbol(condition.coordinate)}"
    statement = condition.quantity if isinstance(condition, Data) else condition.equation
    shown = (
        tex(statement, problem.vocabulary) if isinstance(statement, str) else rf"\texttt{{{_plain(str(statement))}}}"
    )
    if isinstance(condition, Data):
        return rf"&{shown}\text{{ measured}} && \text{{{len(np.asarray(condition.values))} values}}"
    where = condition.where
    region = "a part of the boundary" if callable(where) else where if isinstance(where, str) else ", ".join(where)
    return rf"&{shown} && \text{{on {_plain(region)}}}"


def _plain(text: str) -> str:
    """Text that LaTeX shows as it is."""
    table = {"\\": r"\textbackslash{}", "^": r"\char94 ", "~": r"\char126 "} | {c: f"\\{c}" for c in "_&%$#{}"}
    return "".join(table.get(letter, letter) for letter in text)
