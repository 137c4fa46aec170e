"""What all HTML pages share: frame and style, verdict, tables; and the page of results that do not move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rannpde.display import html_page
from rannpde.errors import InputError
from rannpde.io import PathLike, write_whole
from rannpde.plotting.shown import wide

if TYPE_CHECKING:
    from rannpde.pde.family.parametric import ParametricSolution
    from rannpde.pde.paths.solution import PathsSolution
    from rannpde.pde.spectrum.result import Spectrum


def write_document(path: PathLike, text: str) -> Path:
    """Write a page to a path that says so."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"path is {str(path)!r}, but must end in .html; for a picture use plot")
    return write_whole(path, text)


def html_document(title: str, parts: Iterable[str], script: str = "") -> str:
    """A page in the style of this package, as text."""
    style = files("rannpde.plotting").joinpath("page.css").read_text(encoding="utf-8")
    return html_page(title, style, parts, script)


def verdict_heading(title: str, converged: bool, reason: str, facts: Iterable[tuple[str, str]]) -> str:
    """Title, verdict and the numbers that matter most."""
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    kind, word = ("", "Converged") if converged else (" failed", "Did not converge")
    verdict = f'<span class="verdict{kind}">{word}</span>'
    return (
        f"<header><h1>{escape(title)}</h1>\n<p>{verdict}: {escape(reason)}.</p>\n"
        f'<dl class="facts">{listed}</dl></header>'
    )


def scrolling_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML; the caller escapes what is text."""
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return wide(f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", f"table of {head[0]}s")


def write_summary(
    result: Spectrum | ParametricSolution | PathsSolution,
    path: PathLike,
    picture: Figure,
    facts: Sequence[tuple[str, str]] = (),
    tables: str = "",
    command: str = "",
) -> Path:
    """A page without scripts: verdict, statement, numbers, picture, report."""
    drawn, problem = StringIO(), result.stated
    picture.savefig(drawn, format="svg")
    text = drawn.getvalue()
    stated = [*map(str, problem.equations.values())]
    stated += [f"{name}: {getattr(one, 'equation', one)}" for name, one in problem.conditions.items()]
    stated += [f"{name} from {one.lower:g} to {one.upper:g}" for name, one in problem.ranges.items()]
    sections = {
        "Problem": f"<pre>{escape(chr(10).join(stated))}</pre>",
        "Results": tables,
        "Picture": wide(f'<div class="drawn">{text[text.index("<svg") :]}</div>', "picture"),
        "Report": f"<pre>{escape(result.report())}</pre>",
        "How it was made": f"<pre>{escape(command)}</pre>" if command else "",
    }
    rows = [*facts, ("time", f"{result.seconds:.2f} s")]
    parts = [verdict_heading(problem.name or f"Solution: {result.title}", result.converged, result.reason, rows)]
    parts += [f"<section><h2>{name}</h2>{body}</section>" for name, body in sections.items() if body]
    return write_document(path, html_document(result.title, parts))
