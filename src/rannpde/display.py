"""What notebooks and pages show: whether a notebook is running, the frame of a page, and small tables in HTML."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, which shows HTML; nothing is imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def html_page(title: str, style: str, parts: Iterable[str], script: str = "") -> str:
    """A page that points at nothing outside, as text; empty parts are left out.

    >>> html_page("A < B", "", ["<p>text</p>", ""]).count("A &lt; B")
    1
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + (f"\n<script>\n{script}</script>" if script else "")
        + "\n</body>\n</html>\n"
    )


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A small table; cells are text and are escaped.

    >>> html_table([("rank", "12")])
    '<table><tbody><tr><td>rank</td><td>12</td></tr></tbody></table>'
    """
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"


def short_number(value: object) -> str:
    """A fact about a result in few letters: numbers with three digits, lists by their length.

    >>> short_number(0.00012345), short_number(True), short_number([1.0] * 20)
    ('0.000123', 'True', '20 values')
    """
    if isinstance(value, bool) or not isinstance(value, float | int | list | tuple):
        return str(value)[:200]
    if isinstance(value, list | tuple):
        return ", ".join(map(short_number, value)) if len(value) <= 4 else f"{len(value)} values"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
