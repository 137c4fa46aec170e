"""Parts of HTML pages: the frame, tables, lists, versions. Nothing in them points outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from rannpde.studies.show.chapter import Table


def document(title: str, body: Iterable[str]) -> str:
    """A whole page in the style of this package; empty parts are left out.

    >>> document("A < B", ["<p>text</p>", ""]).count("A &lt; B")
    1
    """
    style = files("rannpde.studies.show").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


def machine(environments: Sequence[Mapping[str, Any]]) -> str:
    """The section of versions and machine."""
    blocks = "".join(f"<pre>{escape(environment_list(e))}</pre>" for e in environments)
    plural = "" if len(environments) == 1 else " (records of several environments were used)"
    return f'<section><h2 id="machine">Versions and machine{plural}</h2>{blocks}</section>'


def environment_list(environment: Mapping[str, Any]) -> str:
    """A list with one line for each entry of an environment."""
    return "\n".join(f"{name}: {compact(value)}" for name, value in environment.items())


def compact(value: Any) -> str:
    """Text as it is, and other values as JSON in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def bullets(heading: str, sentences: Iterable[str]) -> str:
    """A list under a heading, or nothing."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<h3>{escape(heading)}</h3><ul>{items}</ul>" if items else ""


def table_of(table: Table) -> str:
    """A table that scrolls where the page is too narrow."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(table.caption)}"><table>'
        f"<caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
