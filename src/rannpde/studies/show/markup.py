"""Parts of HTML pages: the frame, tables, lists, versions. Nothing in them points outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from rannpde.display import html_page
from rannpde.studies.show.chapter import Table


def document(title: str, body: Iterable[str]) -> str:
    """A whole page in the style of reports."""
    return html_page(title, files("rannpde.studies.show").joinpath("report.css").read_text(encoding="utf-8"), body)


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
